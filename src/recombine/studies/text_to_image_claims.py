"""What the study `text-to-image` claims."""

from __future__ import annotations

from recombine.studies.base import claims_of

COMPLETE, MISSING, CORNER, BESIDE = "complete", "missing", "corner", "two things"
RANDOM = "random"
"""Combinations of one thing drawn by lot, so that some pairs meet often and some may not. One of the `full` size's arms."""
ARMS = (COMPLETE, MISSING, CORNER, BESIDE)
"""What is trained on: every pair of parts met; some pairs never; what differs from one combination in two factors at
most; scenes with two things."""

_claim = claims_of("text-to-image")

ONE = (COMPLETE, MISSING, CORNER)
"""The arms whose scenes have one thing: all claims but that of binding are about them."""

FITS = {arm: f"fits-{arm.replace(' ', '-')}" for arm in ARMS}
NEEDS = ("judge-is-right", *(FITS[arm] for arm in ONE))
READS = (*NEEDS, "readable-inside")

CLAIMS = (
    _claim(
        "judge-is-right",
        "The checker reads rendered images back, clean and with noise of .2 (share that it does not, worst of what is trained on).",
        "below",
        0.02,
        role="precondition",
    ),
    *(
        _claim(
            FITS[arm],
            f"The network draws trained combinations as they were asked for ({said}; success).",
            "above",
            least,
            role="precondition",
        )
        for arm, said, least in (
            (COMPLETE, "every pair met", 0.7),
            (MISSING, "some pairs never met", 0.7),
            (CORNER, "around one combination", 0.7),
            (BESIDE, "two things", 0.3),
        )
    ),
    _claim(
        "readable-inside",
        "The parts of held-out combinations can be read off the network at all: R2 at the chosen block and moment.",
        "above",
        0.05,
        role="precondition",
    ),
    _claim(
        "decodability-relates",
        "Within runs, held-out combinations whose parts can be read off the network's blocks while it draws are those that "
        "it draws right (rank correlation over combinations, mean over what is trained on).",
        "greater",
        0.1,
        primary=True,
        needs=READS,
    ),
    _claim(
        "beyond-rivals",
        "The same with the rivals taken out: frequency of the rarest part, pairs that met, distance from training, how well "
        "the parts are drawn in trained combinations, decodability from the text encoder and from an untrained network, rarity "
        "among the combinations that probes are fitted on (partial rank correlation).",
        "greater",
        0.05,
        needs=READS,
    ),
    _claim(
        "early",
        "The same, rivals taken out, when a third of the way is made and little of the image is there.",
        "greater",
        0.05,
        needs=READS,
    ),
    _claim(
        "tells-the-factor",
        "It also tells which factor of a combination goes wrong (rank correlation over combinations and factors, means of "
        "combinations and of factors taken out).",
        "greater",
        0.1,
        needs=READS,
    ),
    _claim(
        "over-runs",
        "Runs whose blocks tell more of the parts draw more held-out combinations right (rank correlation over runs that are "
        "trained on lists of the same kind).",
        "greater",
        0.1,
        needs=READS,
    ),
    _claim(
        "over-runs-beyond-rivals",
        "The same with decodability from the text encoder and from the untrained network, and success on trained combinations, "
        "taken out.",
        "greater",
        0.1,
        needs=READS,
    ),
    _claim(
        "selective",
        "Training makes the parts more selectively decodable: R2 less that of random codes of combinations, trained less "
        "untrained.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "falls-short",
        "With complete support fewer held-out combinations than trained ones are drawn right, though all their pairs met "
        "(success, trained less held out).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "missing-conjunctions",
        "Where a pair of parts never met, held-out combinations lose more success against complete support than the others of "
        "the same runs do (on the same combinations).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "distance",
        "Trained on what differs from one combination in two factors at most, a network draws combinations one step away "
        "right more often than those two steps away, though every pair of parts met (success; parts are rarer there, too).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "parts-fail-independently",
        "Within held-out combinations joint success is the product of the parts' successes (difference, readable images).",
        "equivalent",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "colours-are-exchanged",
        "Where both shapes are right and both colours wrong, the two things have each other's colours more often than if wrong "
        "colours were drawn by lot (share of such held-out images, less chance).",
        "greater",
        0.1,
        needs=("judge-is-right", FITS[BESIDE]),
    ),
    _claim(
        "nothing-is-copied",
        "Right images of held-out combinations do not lie closer to images of trained ones than rendered images do (share "
        "below the nearest twentieth of rendered ones).",
        "below",
        0.1,
        needs=NEEDS,
    ),
    _claim(
        "control-untrained",
        "What is read off an untrained network has no relation to what the trained one draws right (rank correlation).",
        "equivalent",
        0.1,
        role="control",
        needs=NEEDS,
    ),
)
"""Stated before any run that decides was measured, and versioned with this file."""

SCALING = {
    "widths": _claim(
        "wider-composes",
        "Wider networks draw more held-out combinations right (complete support, widest less narrowest).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    "numbers": _claim(
        "more-combinations-compose",
        "Networks trained on more combinations draw more held-out ones right (complete support, most less fewest).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    "steps": _claim(
        "shape-is-last",
        "Trained for the fewest steps, a network gets the shape of held-out combinations right less often than the colour, "
        "which changes more of the image.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    "more_pairs": _claim(
        "more-gaps-cost-more",
        "The more pairs never met, the fewer held-out combinations are drawn right (usual number of gaps less the most).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    "reaches": _claim(
        "a-smaller-corner-composes-less",
        "Trained on a smaller corner, a network draws fewer held-out combinations right (usual reach less the smallest).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    "by_lot": _claim(
        "covering-pairs-helps",
        "As many combinations drawn by lot serve less than those that make every pair meet (success on held-out ones).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
}
"""What is asked only where that is varied."""
