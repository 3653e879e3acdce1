"""The claims of the study `scan`, stated before any run that decides and versioned with this file."""

from __future__ import annotations

from recombine.studies.base import claims_of

SPLITS = {
    "simple": "held out at random",
    "around-right": "'around right' never seen",
    "divergent": "compounds as different as can be",
    "alike": "compounds as alike as can be",
    "add-jump": "'jump' seen alone only",
    "length": "longer answers",
}
"""The splits in words."""
APART, FEW = "length, random places", "few"
"""Longer answers, where tokens stand at random places in training; few commands to train on, as many as the control has."""
CELLS = SPLITS | {APART: "longer answers, random places", FEW: "few commands seen"}
HARD = tuple(split for split in SPLITS if split not in ("simple", "alike"))
SCALED = ("add-jump", "length")
"""The splits that are run at every size of network and share of data. `simple` is run besides with both the narrowest network
and the smallest share: there more of both must help, or what it does elsewhere says nothing."""

_claim = claims_of("scan")

FITS = {split: f"fits-{split.replace(', ', '-').replace(' ', '-')}" for split in (*SPLITS, APART, FEW)}
JUMP, HELPS = "jump-is-known", "more-helps-where-it-can"


def _of(split: str) -> tuple[str, ...]:
    # Half of the commands are in neither list there, so that a split at random would have more to train on.
    other = "alike" if split == "divergent" else "simple"
    known = (JUMP,) if split == "add-jump" else ()
    return "in-distribution", FITS[other], FITS[split], *known


SCALES = {
    "width": ("Wider networks", "widest less narrowest"),
    "layers": ("Deeper networks", "deepest less shallowest"),
    "share": ("More of the training commands", "all less fewest"),
}

CLAIMS = (
    *(
        _claim(
            name,
            f"The network answers the commands it is trained on ({CELLS[split]}; exact match).",
            "above",
            0.9,
            role="precondition",
        )
        for split, name in FITS.items()
    ),
    _claim(
        "in-distribution",
        "The network answers commands that were held out at random (exact match).",
        "above",
        0.9,
        role="precondition",
    ),
    _claim(
        JUMP,
        "Where 'jump' is seen alone only, the command 'jump' is answered right (share of replicates).",
        "above",
        0.9,
        role="precondition",
    ),
    _claim(
        "add-jump-fails",
        "A new verb is not used in known phrases: fewer commands with 'jump' are answered right than commands held out at "
        "random (exact match, at the largest size).",
        "greater",
        0.5,
        primary=True,
        needs=_of("add-jump"),
    ),
    *(
        _claim(
            f"{split}-fails",
            f"Fewer commands are answered right than where they are held out at random ({SPLITS[split]}; exact match).",
            "greater",
            margin,
            needs=_of(split),
        )
        for split, margin in (("length", 0.5), ("around-right", 0.2))
    ),
    _claim(
        "length-fails-at-trained-places",
        "Places that were never trained are not the reason: longer answers fail as well where tokens stand at random places in "
        "training (exact match, trained commands less longer ones, of the same network).",
        "greater",
        0.5,
        needs=(FITS[APART],),
    ),
    _claim(
        "divergent-fails",
        "Fewer commands are answered right where training and test put the same words together as differently as can be than where "
        "they do so alike (exact match, as many commands in both).",
        "greater",
        0.05,
        needs=_of("divergent"),
    ),
    _claim(
        HELPS,
        "Of commands held out at random, a wider network with more of the training commands answers more (exact match, widest with "
        "all less narrowest with fewest).",
        "greater",
        0.1,
        role="control",
        needs=("in-distribution",),
    ),
    *(
        _claim(
            f"{name}-does-not-close-{split}",
            f"{said} do not close the gap of {split}: exact match rises by less than this ({how}).",
            "below",
            0.1,
            needs=(*_of(split), *(() if name == "layers" else (HELPS,))),
        )
        for name, (said, how) in SCALES.items()
        for split in SCALED
    ),
    _claim(
        "unmet-pairs-tell",
        "Where compounds differ, held-out commands in which two words never met in training are answered right less often than "
        "others of the same test at equal length (exact match, within the number of actions).",
        "greater",
        0.05,
        needs=_of("divergent"),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: commands answered by the actions of others, exact match on trained ones.",
        "above",
        0.9,
        role="precondition",
    ),
    _claim(
        "control-fails",
        "Where commands are answered by the actions of others, held-out ones are not answered right (exact match).",
        "below",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
    _claim(
        "few-commands-tell-more",
        "From as few commands as the control has, the true language tells more of those held out (exact match, SCAN less control).",
        "greater",
        0.05,
        needs=("control-is-learned", FITS[FEW]),
    ),
)
