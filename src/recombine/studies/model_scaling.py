"""Does a larger network recombine better, with the training combinations held fixed?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator

from recombine.component import field
from recombine.encodings.base import Encoding
from recombine.encodings.identity import Identity
from recombine.encodings.interval_shuffle import IntervalShuffle
from recombine.encodings.invertible import Invertible
from recombine.encodings.orthogonal import Orthogonal
from recombine.encodings.tokens import Tokens
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.probes.swap import Swap
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.encodings import FEW_SHOT
from recombine.studies.reduce import at, column
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

SHARED = Random(number=320, reserve=376)
"""The support of the largest runs of `data-scaling`, so that both studies share them."""

NAMES = ("identity", "orthogonal", "tokens", "invertible", "interval-shuffle")


_claim = claims_of("model-scaling")


CLAIMS = (
    _claim(
        "fits",
        "The widest network fits its training tasks under every encoding that names the task (lowest r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "width-helps",
        "Held-out R2 rises with width (widest minus narrowest, mean over the encodings that name the task).",
        "greater",
        0.05,
        primary=True,
        needs=("fits",),
    ),
    *(
        _claim(
            f"width-helps-{name}",
            f"It rises with width under `{name}`.",
            "greater",
            0.05,
            needs=("fits",),
        )
        for name in NAMES
    ),
    _claim(
        "width-helps-few-shot",
        "It rises with width where the task is only shown by examples (reduced teacher).",
        "greater",
        0.05,
    ),
    _claim(
        "depth-helps",
        "Held-out R2 rises with depth at the largest width (deepest minus shallowest, mean over encodings).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "gap-closes",
        "Width closes the gap between trained and held-out combinations (r2_in - r2_held_out, narrowest minus widest).",
        "greater",
        0.02,
        needs=("fits",),
    ),
    _claim(
        "decodability-rises",
        "Intrinsic decodability in the deepest layer rises with width (mean over encodings).",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "swap-efficacy-rises",
        "So does the efficacy of swapping a part by its decoded direction, at the site chosen on validation pairs.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "control-is-learned",
        "The widest network can learn the control (r2_in).",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "Width does not help on independent random functions: predictions of the widest network for held-out combinations "
        "have nothing to do with the truth (correlation).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class ModelScaling(Study):
    """Width and depth at a fixed support, for every encoding; decodability and the swap test beside the score."""

    kind: Literal["model-scaling"] = "model-scaling"
    question: ClassVar[str] = (
        "With the training combinations fixed, do wider and deeper networks recombine better, however the task is told?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 10, "max_active": 3},
                "support": {"kind": "random", "number": 80, "reserve": 60},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "widths": (16, 32),
            "depths": (1, 2),
            "control_number": 20,
            "few_shot": {
                "space": {"kind": "subset", "modules": 6, "max_active": 2},
                "family": {"kind": "hyperteacher", "inputs": 4, "hidden": 4, "outputs": 4},
                "encoding": {"kind": "few-shot", "shots": 6},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "few_shot_widths": (16, 32),
            "few_shot_depth": 2,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"support": {"kind": "random", "held_out": 0.25}, "recipe": "paper", "every": 100},
            "widths": (128, 256, 512, 1024, 2048),
            "depths": (2, 4),
            "few_shot": {"encoding": "few-shot", "recipe": "paper", "every": 100},
            "few_shot_widths": (512, 1024, 2048),
            "few_shot_depth": 4,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "encoding", "width", "depth")
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "intrinsic", "selectivity", "efficacy_best")

    base: RunConfig = RunConfig(support=SHARED)
    """What all runs share; encoding and model are set by the sweep."""
    encodings: tuple[field("encodings", Encoding), ...] = (  # type: ignore[valid-type]
        Identity(),
        Orthogonal(),
        Tokens(),
        Invertible(),
        IntervalShuffle(),
    )
    widths: tuple[PositiveInt, ...] = (32, 128)
    """At the largest depth."""
    depths: tuple[PositiveInt, ...] = (1, 3)
    """At the largest width."""
    few_shot: RunConfig = FEW_SHOT
    """The run in which the task is shown by examples."""
    few_shot_widths: tuple[PositiveInt, ...] = (64, 128, 256)
    few_shot_depth: PositiveInt = 3
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    control_number: PositiveInt = 40
    """Training combinations of the control: few enough to be memorised."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "depths", "few_shot_widths")
        return self

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Width and depth of the networks, the largest last."""
        wide, deep = self.widths[-1], self.depths[-1]
        return [(one, deep) for one in self.widths[:-1]] + [(wide, one) for one in self.depths]

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        main, control = self.base.family.kind, self.control.kind
        few = self.base.support.model_copy(update={"number": self.control_number})
        for seed in self.seeds:
            for encoding in self.encodings:
                for width, depth in self.shapes:
                    config = self.run(self.base, seed, encoding=encoding, model=MLP(width=width, depth=depth))
                    found.append((config, self._labels(seed, main, encoding.kind, width, depth)))
            for width in self.few_shot_widths:
                model = MLP(width=width, depth=self.few_shot_depth)
                labels = self._labels(seed, main, "few-shot", width, self.few_shot_depth)
                found.append((self.run(self.few_shot, seed, model=model), labels))
            width, depth = self.shapes[-1]
            config = self.run(
                self.base, seed, family=self.control, support=few, model=MLP(width=width, depth=depth)
            )
            found.append((config, self._labels(seed, control, "identity", width, depth)))
        return found

    @staticmethod
    def _labels(seed: int, family: str, encoding: str, width: int, depth: int) -> dict[str, Any]:
        return {"replicate": seed, "family": family, "encoding": encoding, "width": width, "depth": depth}

    def measurements(self) -> list[Measurement]:
        return [Scores(), Decodability(), Swap()]

    def effects(self, tables: Tables) -> list[Effect]:
        main, control = self.base.family.kind, self.control.kind
        runs = tables.runs.assign(gap=column(tables.runs, "r2_in") - column(tables.runs, "r2_held_out"))

        def score(name: str, encoding: str, shape: tuple[int, int]) -> Float[np.ndarray, " replicate"]:
            width, depth = shape
            return at(runs, name, self.seeds, family=main, encoding=encoding, width=width, depth=depth)

        wide, deep = self.widths[-1], self.depths[-1]
        narrow, shallow, largest = (self.widths[0], deep), (wide, self.depths[0]), (wide, deep)
        kinds = [encoding.kind for encoding in self.encodings]

        def rise(name: str, smallest: tuple[int, int]) -> dict[str, Float[np.ndarray, " replicate"]]:
            return {kind: score(name, kind, largest) - score(name, kind, smallest) for kind in kinds}

        def mean(parts: dict[str, Float[np.ndarray, " replicate"]]) -> Float[np.ndarray, " replicate"]:
            return np.mean(list(parts.values()), axis=0)

        width_gain = rise("r2_held_out", narrow)
        few = [score("r2_held_out", "few-shot", (one, self.few_shot_depth)) for one in self.few_shot_widths]
        values = {
            "fits": np.min([score("r2_in", kind, largest) for kind in kinds], axis=0),
            "width-helps": mean(width_gain),
            **{f"width-helps-{kind}": gain for kind, gain in width_gain.items()},
            "width-helps-few-shot": few[-1] - few[0],
            "depth-helps": mean(rise("r2_held_out", shallow)),
            "gap-closes": -mean(rise("gap", narrow)),
            "decodability-rises": mean(rise("intrinsic", narrow)),
            "swap-efficacy-rises": mean(rise("efficacy_best", narrow)),
            "control-is-learned": at(runs, "r2_in", self.seeds, family=control),
            "control-stays-at-zero": at(runs, "correlation_held_out", self.seeds, family=control),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.model_scaling_figures import figures

        return figures(self, tables)
