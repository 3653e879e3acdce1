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
from recombine.studies.encodings import FEW_SHOT, Longer, recipe_for
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
    *(
        _claim(
            f"fits-{name}",
            f"The widest network fits its training tasks under `{name}` (r2_in).",
            "above",
            0.8,
            role="precondition",
        )
        for name in NAMES
    ),
    _claim(
        "width-helps",
        "Held-out R2 rises with width where the network sees the task vector itself (`identity`; widest minus narrowest).",
        "greater",
        0.05,
        primary=True,
        needs=("fits-identity",),
        version=2,
    ),
    *(
        _claim(
            f"width-helps-{name}",
            f"It rises with width under `{name}`.",
            "greater",
            0.05,
            needs=(f"fits-{name}",),
            version=2,
        )
        for name in NAMES[1:]
    ),
    _claim(
        "width-helps-few-shot",
        "It rises with width where the task is only shown by examples (reduced teacher).",
        "greater",
        0.05,
    ),
    _claim(
        "depth-helps",
        "Held-out R2 rises with depth at the largest width (`identity`; deepest minus shallowest).",
        "greater",
        0.05,
        needs=("fits-identity",),
        version=2,
    ),
    _claim(
        "gap-closes",
        "Width closes the gap between trained and held-out combinations (`identity`; r2_in - r2_held_out, narrowest minus "
        "widest).",
        "greater",
        0.02,
        needs=("fits-identity",),
        version=2,
    ),
    _claim(
        "decodability-rises",
        "Intrinsic decodability in the deepest layer rises with width (`identity`).",
        "greater",
        0.05,
        needs=("fits-identity",),
        version=2,
    ),
    _claim(
        "swap-efficacy-rises",
        "So does the efficacy of swapping a part by its decoded direction, at the site chosen on validation pairs "
        "(`identity`; an edit that does harm counts as none).",
        "greater",
        0.05,
        needs=("fits-identity",),
        version=2,
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
"""Stated before any run, and versioned with this file. Version 2 was written after a look at seeds 1000 to 1011, in which
one encoding that was not fitted decided over all claims; so later seeds decide."""


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
            "longer": (),
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
        "laptop": {"first_seed": 2000},
        "paper": {
            "longer": (),
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
    longer: Longer = (("tokens", 1000), ("interval-shuffle", 2000))
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
                recipe = recipe_for(encoding, self.base, self.longer)
                for width, depth in self.shapes:
                    model = MLP(width=width, depth=depth)
                    config = self.run(self.base, seed, encoding=encoding, model=model, recipe=recipe)
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
        runs = tables.runs.assign(
            gap=column(tables.runs, "r2_in") - column(tables.runs, "r2_held_out"),
            helpful=column(tables.runs, "efficacy_best").clip(lower=0),
        )

        def score(name: str, encoding: str, shape: tuple[int, int]) -> Float[np.ndarray, " replicate"]:
            width, depth = shape
            return at(runs, name, self.seeds, family=main, encoding=encoding, width=width, depth=depth)

        wide, deep = self.widths[-1], self.depths[-1]
        narrow, shallow, largest = (self.widths[0], deep), (wide, self.depths[0]), (wide, deep)
        kinds = [encoding.kind for encoding in self.encodings]
        plain = kinds[0]

        def rise(name: str, smallest: tuple[int, int], kind: str = plain) -> Float[np.ndarray, " replicate"]:
            return score(name, kind, largest) - score(name, kind, smallest)

        few = [score("r2_held_out", "few-shot", (one, self.few_shot_depth)) for one in self.few_shot_widths]
        values = {
            **{f"fits-{kind}": score("r2_in", kind, largest) for kind in kinds},
            "width-helps": rise("r2_held_out", narrow),
            **{f"width-helps-{kind}": rise("r2_held_out", narrow, kind) for kind in kinds[1:]},
            "width-helps-few-shot": few[-1] - few[0],
            "depth-helps": rise("r2_held_out", shallow),
            "gap-closes": -rise("gap", narrow),
            "decodability-rises": rise("intrinsic", narrow),
            # What a probe reads badly is moved too far: efficacies far below none differ in nothing that matters.
            "swap-efficacy-rises": rise("helpful", narrow),
            "control-is-learned": at(runs, "r2_in", self.seeds, family=control),
            "control-stays-at-zero": at(runs, "correlation_held_out", self.seeds, family=control),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.model_scaling_figures import figures

        return figures(self, tables)
