"""Does more scale close the gaps of SCAN, and does the certificate of a split tell which one stays open?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator
from scipy import stats

from recombine.component import field
from recombine.families.lookup_scan import LookupScan
from recombine.families.scan import Scan as ScanFamily
from recombine.models.base import Model
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.probes.base import Measurement
from recombine.probes.scan_certificate import ScanCertificateMeasurement
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.scan import ScanSpace
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.supports.base import SupportKind
from recombine.supports.compound_divergence import CompoundDivergence
from recombine.supports.random import Random
from recombine.supports.scan_split import ScanSplit
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

SPLITS = {
    "simple": "held out at random",
    "around-right": "'around right' never seen",
    "divergent": "compounds as different as can be",
    "alike": "compounds as alike as can be",
    "add-jump": "'jump' seen alone only",
    "length": "longer answers",
}
"""The splits in words."""
HARD = tuple(split for split in SPLITS if split not in ("simple", "alike"))
SCALED = ("simple", "add-jump", "length")
"""The splits that are run at every size of network and share of data."""

_claim = claims_of("scan")

FITS = tuple(f"fits-{split}" for split in SPLITS)
NEEDS = (*FITS, "in-distribution")
"""Of claims over all splits. The others need what they compare."""


def _of(split: str) -> tuple[str, ...]:
    # Half of the commands are in neither list there, so that a split at random would have more to train on.
    other = "alike" if split == "divergent" else "simple"
    return "in-distribution", f"fits-{other}", f"fits-{split}"


SCALES = {
    "width": ("Wider networks", "widest less narrowest"),
    "layers": ("Deeper networks", "deepest less shallowest"),
    "share": ("More of the training commands", "all less fewest"),
}

CLAIMS = (
    *(
        _claim(
            f"fits-{split}",
            f"The network answers the commands it is trained on ({SPLITS[split]}; exact match).",
            "above",
            0.9,
            role="precondition",
        )
        for split in SPLITS
    ),
    _claim(
        "in-distribution",
        "The network answers commands that were held out at random (exact match).",
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
        "divergent-fails",
        "Fewer commands are answered right where training and test put the same words together as differently as can be than where "
        "they do so alike (exact match, as many commands in both).",
        "greater",
        0.05,
        needs=_of("divergent"),
    ),
    *(
        _claim(
            f"{name}-does-not-close-{split}",
            f"{said} do not close the gap of {split}: exact match rises by less than this ({how}).",
            "below",
            0.1,
            needs=_of(split),
        )
        for name, (said, how) in SCALES.items()
        for split in ("add-jump", "length")
    ),
    _claim(
        "divergence-tells",
        "Of the splits that are not drawn at random, those whose compounds diverge more are those that fail more (rank "
        "correlation over the four, of a number known before training).",
        "greater",
        0.3,
        needs=NEEDS,
    ),
    _claim(
        "unmet-pairs-tell",
        "Where compounds differ, held-out commands in which two words never met in training are answered right less often than "
        "others of the same test (exact match).",
        "greater",
        0.05,
        needs=_of("divergent"),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: commands answered by the actions of others, exact match on trained ones.",
        "above",
        0.3,
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
)
"""Stated before any run that decides, and versioned with this file."""


class Scan(Study):
    """Transformers that read a command and say its actions, on the published splits and on one of our own."""

    kind: Literal["scan"] = "scan"
    question: ClassVar[str] = (
        "Does more scale close the gaps of SCAN, and does the certificate of a split tell which one stays open?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "scan",
                "recipe": {"kind": "fast", "tasks": 8, "samples": 1, "steps": 6},
                "every": 6,
                "validation_tasks": 4,
            },
            "widths": (8, 16),
            "depths": (1, 2),
            "shares": (0.1, 1.0),
            "model": {"kind": "encoder-decoder", "heads": 2},
            "divergent": {"kind": "compound-divergence", "train": 600, "test": 200},
            "combinations": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": "scan",
                "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 10_000},
                "every": 500,
                "validation_tasks": 128,
            },
            "widths": (32, 128, 512),
            "depths": (1, 2, 6),
            "shares": (0.04, 0.2, 1.0),
            "combinations": 4096,
            "replicates": 12,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "split", "width", "layers", "share")
    shown: ClassVar[tuple[str, ...]] = (
        "accuracy_in",
        "accuracy_held_out",
        "step_accuracy_held_out",
        "compound_divergence",
        "pairs_unmet",
    )

    base: RunConfig = RunConfig(
        family=ScanFamily(),
        space=ScanSpace(),
        support=ScanSplit(),
        recipe=Fast(tasks=128, samples=1, steps=600),
        every=200,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; support and size of the network are set by the sweep."""
    model: field("models", Model) = EncoderDecoder()  # type: ignore[valid-type]
    """The network; its width and its layers are set by the sweep."""
    widths: tuple[PositiveInt, ...] = (32, 128)
    """Widths of the residual stream, narrowest first. The widest is the size that all splits have."""
    depths: tuple[PositiveInt, ...] = (1, 2)
    """Numbers of layers, fewest first; the most are what all splits have."""
    shares: tuple[float, ...] = (0.2, 1.0)
    """Shares of the training commands, smallest first; the largest is what all splits have."""
    divergent: CompoundDivergence = CompoundDivergence()
    """The split of our own: the same words as often, put together as differently as can be. As many commands that are put
    together alike are what it is compared with."""
    control: field("supports", SupportKind) = Random(number=256, reserve=256)  # type: ignore[valid-type]
    """What the control is trained on: few enough commands to be memorised."""
    combinations: PositiveInt = 512
    """Commands of each region that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: initialisation, order of the data, and the splits that are drawn."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "depths", "shares")
        if self.shares[-1] != 1:
            raise ValueError(f"the largest of shares must be 1, as one split has no part, got {self.shares}")
        return self

    @property
    def usual(self) -> dict[str, Any]:
        """The size that every split has: the largest."""
        return {"width": self.widths[-1], "layers": self.depths[-1], "share": self.shares[-1]}

    @property
    def smaller(self) -> list[dict[str, Any]]:
        """The sizes at which the scaled splits are run besides: one thing smaller at a time."""
        levels = {"width": self.widths, "layers": self.depths, "share": self.shares}
        return [self.usual | {name: value} for name, values in levels.items() for value in values[:-1]]

    def _support(self, split: str, share: float) -> SupportKind:
        if split == "alike":
            return self.divergent.model_copy(update={"target": 0.0})
        return self.divergent if split == "divergent" else ScanSplit(split=split, share=share)  # type: ignore[arg-type]

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        cells = [(split, self.usual) for split in SPLITS]
        cells += [(split, size) for split in SCALED for size in self.smaller]
        main = self.base.family
        given = [(main, split, size, self._support(split, size["share"])) for split, size in cells]
        given.append((LookupScan(), "simple", self.usual, self.control))
        found = []
        for family, split, size, support in given:
            model = self.model.model_copy(update={"width": size["width"], "layers": size["layers"]})
            changes = {"family": family, "support": support, "model": type(model).model_validate(dict(model))}
            labels = {"family": family.kind, "split": split, **size}
            found += [
                (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=self.combinations, draws=1, samples=1), ScanCertificateMeasurement()]

    def effects(self, tables: Tables) -> list[Effect]:
        def score(
            split: str, name: str = "accuracy_held_out", family: str = self.base.family.kind, **size: Any
        ) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, family=family, split=split, **(self.usual | size))

        lost = {split: score("alike" if split == "divergent" else "simple") - score(split) for split in HARD}
        met, unmet = (score("divergent", f"accuracy_{one}") for one in ("all_pairs_met", "some_pairs_unmet"))
        fewest = {"width": self.widths[0], "layers": self.depths[0], "share": self.shares[0]}
        apart = np.array([score(split, "compound_divergence") for split in HARD])
        values = {
            **{f"fits-{split}": score(split, "accuracy_in") for split in SPLITS},
            "in-distribution": score("simple"),
            **{f"{split}-fails": lost[split] for split in HARD},
            **{
                f"{name}-does-not-close-{split}": score(split) - score(split, **{name: least})
                for name, least in fewest.items()
                for split in ("add-jump", "length")
            },
            "divergence-tells": _ranked(apart, np.array([lost[split] for split in HARD])),
            "unmet-pairs-tell": met - unmet,
            "control-is-learned": score("simple", "accuracy_in", LookupScan().kind),
            "control-fails": score("simple", family=LookupScan().kind),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.scan_figures import figures

        return figures(self, tables)


def _ranked(
    one: Float[np.ndarray, "split replicate"], other: Float[np.ndarray, "split replicate"]
) -> Float[np.ndarray, " replicate"]:
    """The rank correlation over splits in each replicate; not a number where one is missing."""
    found = np.full(one.shape[1], np.nan)
    for number in range(one.shape[1]):
        if np.isfinite(one[:, number]).all() and np.isfinite(other[:, number]).all():
            ranks = [stats.rankdata(values[:, number]) for values in (one, other)]
            level = min(np.ptp(rank) for rank in ranks) == 0
            found[number] = 0.0 if level else np.corrcoef(*ranks)[0, 1]
    return found
