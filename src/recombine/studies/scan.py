"""Does more scale close the gaps of SCAN, and does the certificate of a split tell which one stays open?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator

from recombine.component import field
from recombine.families.lookup_scan import LookupScan
from recombine.families.scan import Scan as ScanFamily
from recombine.models.base import Model
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measurement
from recombine.probes.scan_certificate import ScanCertificateMeasurement
from recombine.probes.scan_commands import ScanCommands
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces import scan_language as language
from recombine.spaces.scan import ScanSpace
from recombine.studies.base import Effect, Study, Tables, ascend
from recombine.studies.reduce import at
from recombine.studies.scan_claims import (
    APART,
    CELLS,
    CLAIMS,
    FEW,
    FITS,
    HARD,
    HELPS,
    JUMP,
    SCALED,
    SPLITS,
)
from recombine.supports.base import SupportKind
from recombine.supports.compound_divergence import CompoundDivergence
from recombine.supports.random import Random
from recombine.supports.regions import STRATA
from recombine.supports.scan_split import ScanSplit
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure


class Scan(Study):
    """Transformers that read a command and say its actions, on the published splits and on one of our own.

    Whether divergence goes with failure over all splits is shown, not claimed: the published ones are few fixed points, the same
    in every replicate, so that no number of replicates would tell. `divergent-fails` asks it within one design.
    """

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
            "depths": (1,),
            "shares": (0.1, 1.0),
            "model": {"kind": "encoder-decoder", "heads": 2},
            "divergent": {"kind": "compound-divergence", "train": 600, "test": 200},
            "combinations": 16,
            "asked": ("simple", "add-jump"),
            "grown": ("width", "share"),
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": "scan",
                "objective": {"kind": "next-token", "groups": 8},
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
        objective=NextToken(groups=8),
        recipe=Fast(tasks=64, samples=1, steps=400),
        every=400,
        validation_tasks=32,
    )
    """What all runs share, the recipe included; support and size of the network are set by the sweep."""
    model: field("models", Model) = EncoderDecoder()  # type: ignore[valid-type]
    """The network; its width and its layers are set by the sweep."""
    widths: tuple[PositiveInt, ...] = (16, 64)
    """Widths of the residual stream, narrowest first. The widest is the size that all splits have."""
    depths: tuple[PositiveInt, ...] = (1, 2)
    """Numbers of layers, fewest first; the most are what all splits have."""
    shares: tuple[float, ...] = (0.05, 1.0)
    """Shares of the training commands, smallest first; the largest is what all splits have."""
    asked: tuple[str, ...] = tuple(CELLS)
    """What is held out, by name. What is left out here saves the time to compile it; its claims are then not decided."""
    grown: tuple[Literal["width", "layers", "share"], ...] = ("width", "layers", "share")
    """Which of these grow. What is left out here is run at its largest level alone; its claims are then not decided."""
    divergent: CompoundDivergence = CompoundDivergence()
    """The split of our own: the same words as often, put together as differently as can be. As many commands that are put
    together alike are what it is compared with."""
    control: field("supports", SupportKind) = Random(number=256, reserve=256)  # type: ignore[valid-type]
    """What the control is trained on: few enough commands to be memorised. The true language is run on as many besides."""
    places: PositiveInt = 2 * (language.MOST_WORDS + language.MOST_ACTIONS + 1)
    """Among so many places tokens stand where they stand at random."""
    longer: PositiveInt = 2
    """So many times as many steps are made there."""
    combinations: PositiveInt = 256
    """Commands of each region that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: initialisation, order of the data, and the splits that are drawn."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "shares")
        ascend(self, "depths", least=2 if "layers" in self.grown else 1)
        if unknown := set(self.asked) - set(CELLS):
            raise ValueError(
                f"asked must be some of {', '.join(map(repr, CELLS))}, got {', '.join(map(repr, sorted(unknown)))}"
            )
        if self.shares[-1] != 1:
            raise ValueError(f"the largest of shares must be 1, as one split has no part, got {self.shares}")
        return self

    @property
    def usual(self) -> dict[str, Any]:
        """The size that every split has: the largest."""
        return {"width": self.widths[-1], "layers": self.depths[-1], "share": self.shares[-1]}

    @property
    def least(self) -> dict[str, Any]:
        """The narrowest network with the smallest share, at which the split at random is run besides."""
        return self.usual | {"width": self.widths[0], "share": self.shares[0]}

    @property
    def smaller(self) -> list[dict[str, Any]]:
        """The sizes at which the scaled splits are run besides: one thing smaller at a time."""
        levels = {"width": self.widths, "layers": self.depths, "share": self.shares}
        return [self.usual | {name: value} for name in self.grown for value in levels[name][:-1]]

    def _support(self, split: str, share: float) -> SupportKind:
        if split == FEW:
            return self.control
        if split == "alike":
            return self.divergent.model_copy(update={"target": 0.0})
        name = "length" if split == APART else split
        return self.divergent if split == "divergent" else ScanSplit(split=name, share=share)  # type: ignore[arg-type]

    def _apart(self) -> dict[str, Any]:
        """What random places change of a run: there is more to learn."""
        recipe = self.base.recipe
        return {
            "objective": self.base.objective.model_copy(update={"spread": self.places}),
            "recipe": recipe.model_copy(update={"steps": self.longer * recipe.steps}),
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        cells = [(self.base.family, split, self.usual) for split in (*SPLITS, APART, FEW)]
        cells += [(self.base.family, split, size) for split in SCALED for size in self.smaller]
        cells += [(self.base.family, "simple", self.least), (LookupScan(), FEW, self.usual)]
        found = []
        for family, split, size in (cell for cell in cells if cell[1] in self.asked):
            model = self.model.model_copy(update={"width": size["width"], "layers": size["layers"]})
            changes = {
                "family": family,
                "support": self._support(split, size["share"]),
                "model": type(model).model_validate(dict(model)),
                **(self._apart() if split == APART else {}),
            }
            labels = {"family": family.kind, "split": split, **size}
            found += [
                (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        scores = Scores(combinations=self.combinations, draws=1, samples=1)
        return [scores, ScanCertificateMeasurement(), ScanCommands()]

    def held_out(self, tables: Tables) -> pd.DataFrame:
        """Held-out commands of the true language at the usual size, with the number of actions in the right answer."""
        names = ["family", "split", *self.usual, "region", "stratum", "replicate", "combination", "whole"]
        frame = tables.combinations.reindex(columns=names)
        wanted = self.usual | {"family": self.base.family.kind, "region": "held_out"}
        for name, value in wanted.items():
            frame = frame[frame[name] == value]
        actions = {
            name: len(language.actions(language.parse(name))) for name in frame["combination"].unique()
        }
        number = frame["combination"].map(actions).astype(float)
        return frame.assign(actions=number, whole=frame["whole"].astype(float))

    def _unmet(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """Accuracy of held-out commands all of whose words met less that of the others, within numbers of actions.

        Each number of actions has the weight of what it can tell, as in `graphs.frequency`. Commands with a new pair are longer,
        so that without this they would fail for their length.
        """
        frame = self.held_out(tables)
        frame = frame[(frame["split"] == "divergent") & frame["stratum"].isin(STRATA[:2])]
        found = np.full(len(self.seeds), np.nan)
        for place, seed in enumerate(self.seeds):
            own = frame[frame["replicate"] == seed]
            cells = own.pivot_table(
                index="actions", columns="stratum", values="whole", aggfunc=["mean", "size"]
            )
            cells = cells.reindex(columns=[(one, name) for one in ("mean", "size") for name in STRATA[:2]])
            met, unmet, of_met, of_unmet = cells.dropna().to_numpy(dtype=float).T
            if len(met):
                found[place] = np.average(met - unmet, weights=of_met * of_unmet / (of_met + of_unmet))
        return found

    def effects(self, tables: Tables) -> list[Effect]:
        def score(
            split: str, name: str = "accuracy_held_out", family: str = self.base.family.kind, **size: Any
        ) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, family=family, split=split, **(self.usual | size))

        lost = {split: score("alike" if split == "divergent" else "simple") - score(split) for split in HARD}
        # What does not grow has no smaller level: nothing is said of it.
        fewest = {"width": self.widths[0], "layers": self.depths[0], "share": self.shares[0]}
        fewest |= {name: np.nan for name in fewest if name not in self.grown}
        control = LookupScan().kind
        values = {
            **{name: score(split, "accuracy_in") for split, name in FITS.items()},
            "in-distribution": score("simple"),
            JUMP: score("add-jump", "right_jump"),
            **{f"{split}-fails": lost[split] for split in HARD},
            "length-fails-at-trained-places": score(APART, "accuracy_in") - score(APART),
            HELPS: score("simple") - score("simple", **self.least),
            **{
                f"{name}-does-not-close-{split}": score(split) - score(split, **{name: least})
                for name, least in fewest.items()
                for split in SCALED
            },
            "unmet-pairs-tell": self._unmet(tables),
            "control-is-learned": score(FEW, "accuracy_in", control),
            "control-fails": score(FEW, family=control),
            "few-commands-tell-more": score(FEW) - score(FEW, family=control),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.scan_figures import figures

        return figures(self, tables)
