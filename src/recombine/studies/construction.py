"""Does a network that solves every combination exist, does training find it, and what would a memoriser need?"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from pydantic import Field, PositiveInt, model_validator

from recombine.errors import BadInput
from recombine.families.base import Family, Teacher
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.constructed import Constructed
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.probes.sup_error import SupError
from recombine.spaces.subset import SubsetSpace
from recombine.stats.threshold import Reached, reached
from recombine.store.store import Store
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.construction_slopes import growth, log_slope
from recombine.studies.reduce import at
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

if TYPE_CHECKING:
    from recombine.figures.base import Figure


_claim = claims_of("construction")


CLAIMS = (
    _claim(
        "exists",
        "The largest error found of the constructed network stays within the theorem's bound at every number of modules and of "
        "knots (the largest ratio of error to bound).",
        "below",
        1.0,
        primary=True,
        needs=("neurons-do-not-grow",),
    ),
    _claim(
        "neurons-do-not-grow",
        "It has the same number of hidden neurons whatever the number of modules (slope of log neurons on log modules).",
        "equivalent",
        0.01,
    ),
    _claim(
        "falls-with-the-square",
        "Its largest error falls with the square of the number of knots (slope of log error on log knots).",
        "below",
        -1.8,
    ),
    _claim(
        "flat-in-modules",
        "At a fixed number of knots its largest error does not grow with the number of modules (slope of log error on log "
        "modules).",
        "equivalent",
        0.1,
    ),
    _claim(
        "training-fits",
        "A network of exactly the same widths, trained on three quarters of the combinations, fits them (r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "training-falls-short",
        "After the steps of the recipe its root mean square error, over trained and held-out combinations, is more than twice that of "
        "the construction (difference of log10).",
        "greater",
        0.3,
        needs=("training-fits",),
    ),
    _claim(
        "training-falls-short-at-worst",
        "So is its largest error (difference of log10).",
        "greater",
        0.3,
        needs=("training-fits",),
    ),
    _claim(
        "memory-is-learned",
        "The widest network fits the fewest combinations, of the teacher and of independent functions (the lower r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "memoriser-grows",
        "With the number of combinations the smallest width that fits them grows faster for independent random functions, "
        "which can only be memorised, than for a teacher whose combinations share parts (difference of the slopes of log "
        "width on log number).",
        "greater",
        0.1,
        needs=("memory-is-learned",),
    ),
    _claim(
        "composer-hardly-grows",
        "For the teacher that smallest width grows less than with the square root of the number of combinations (slope of "
        "log width on log number).",
        "below",
        0.5,
        needs=("memory-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""

SMALL_TEACHER = {"kind": "hyperteacher", "inputs": 8, "hidden": 8, "outputs": 8}


class Construction(Study):
    """Three questions about one theorem: a network written down from the teacher, a trained one of its size, a memoriser.

    The theorem says that a ReLU network whose neurons do not multiply with the combinations approximates a whole family.
    The network is built and measured. Networks of its size are trained on the same teacher. Last, the smallest width
    that fits a number of combinations is sought, for a teacher with shared parts and for independent functions.
    """

    kind: Literal["construction"] = "construction"
    question: ClassVar[str] = (
        "Is there a network of moderate size that solves every combination, and does gradient descent find it?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "family": {"kind": "hyperteacher", "inputs": 3, "hidden": 4, "outputs": 3},
                "recipe": {"kind": "fast", "steps": 60},
                "every": 60,
            },
            "knots": (4, 8),
            "modules": (8, 12),
            "fixed": 8,
            "same_size": 4,
            "memory_space": {"modules": 8, "max_active": 2},
            "numbers": (8, 12, 20),
            "widths": (4, 16),
            "memory_steps": 60,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"recipe": "paper", "every": 1000},
            "knots": (8, 16, 32, 64),
            "modules": (8, 16, 32, 64, 128),
            "fixed": 32,
            "error_tasks": 1024,
            "memory_space": {"modules": 16, "max_active": 3},
            "numbers": (20, 40, 80, 160, 320),
            "widths": (8, 16, 32, 64, 128, 256, 512, 1024),
            "memory_steps": 300_000,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("part", "family", "modules", "knots", "number", "width")
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "sup_error", "rms_error", "bound", "neurons", "weights")

    base: RunConfig = RunConfig.model_validate({"family": SMALL_TEACHER, "every": 100})
    """What all runs share; the teacher of the laptop is smaller than the published one, so that the network is too."""
    knots: tuple[PositiveInt, ...] = (8, 16, 32)
    """ReLUs of each square, fewest first."""
    modules: tuple[PositiveInt, ...] = (8, 16, 32, 64)
    """Numbers of modules at which the network is constructed, fewest first."""
    fixed: PositiveInt = 16
    """The knots at which the number of modules is varied."""
    same_size: PositiveInt = 8
    """The knots of the network whose widths the trained one has."""
    error_tasks: PositiveInt = 256
    """Tasks of trained and of held-out combinations over which the largest error is sought, for each network."""
    memory_space: SubsetSpace = SubsetSpace(modules=12, max_active=3)
    """The space of the networks that memorise."""
    numbers: tuple[PositiveInt, ...] = (10, 20, 40, 80)
    """Numbers of combinations to be memorised, fewest first."""
    widths: tuple[PositiveInt, ...] = (16, 32, 64, 128)
    """Widths tried, smallest first."""
    memory_depth: PositiveInt = 2
    memory_steps: PositiveInt = 300
    threshold: float = Field(default=0.8, lt=1)
    """A network fits its combinations when r2_in is so high."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        family = self.base.family
        if not isinstance(family, Hyperteacher) or family.layers != 1:
            raise BadInput(
                "The construction is for a hyperteacher of one hidden layer.",
                fix="base.family=hyperteacher base.family.layers=1",
            )
        if not isinstance(self.base.space, SubsetSpace):
            raise BadInput("The construction varies the modules of a subset space.", fix="base.space=subset")
        ascend(self, "knots", "modules", "widths")
        ascend(self, "numbers", least=3)
        return self

    @property
    def memorised(self) -> Lookup:
        """The family that shares nothing between combinations, with tasks as hard as the teacher's."""
        return Lookup.model_validate(self.base.family.model_dump(exclude={"kind"}))

    @property
    def built(self) -> list[tuple[int, int]]:
        """Knots and modules of the constructed networks."""
        by_knots = [(knots, self.base.space.width) for knots in dict.fromkeys((*self.knots, self.same_size))]
        return list(dict.fromkeys([*by_knots, *((self.fixed, one) for one in self.modules)]))

    @property
    def shape(self) -> Teacher:
        """The teacher without its numbers: enough to say how large its network is."""
        return eqx.filter_eval_shape(self.base.family.draw, self.base.space, jax.random.key(0))

    def space(self, modules: int) -> SubsetSpace:
        """The space of the theorem's networks, with another number of modules."""
        return SubsetSpace.model_validate(self.base.space.model_dump() | {"modules": modules})

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        family, recipe = self.base.family, self.base.recipe
        found = []

        def add(labels: dict[str, Any], **changes: Any) -> None:
            every = {"family": family.kind, "knots": 0, "number": 0, "width": 0} | labels
            for seed in self.seeds:
                found.append((self.run(self.base, seed, **changes), every | {"replicate": seed}))

        for knots, modules in self.built:
            add(
                {"part": "constructed", "modules": modules, "knots": knots},
                model=Constructed(knots=knots),
                space=self.space(modules),
                recipe=recipe.model_copy(update={"steps": 0}),
            )
        same = {"part": "trained", "modules": self.base.space.width, "knots": self.same_size}
        add(same, model=MLP(widths=Constructed(knots=self.same_size).widths(self.shape)))
        own = {"part": "memory", "modules": self.memory_space.width}
        for memory, number, width in itertools.product((family, self.memorised), self.numbers, self.widths):
            add(
                own | {"family": memory.kind, "number": number, "width": width},
                space=self.memory_space,
                support=Random(number=number),
                family=memory,
                model=MLP(width=width, depth=self.memory_depth),
                recipe=recipe.model_copy(update={"steps": self.memory_steps}),
            )
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=128, draws=2), SupError(tasks=self.error_tasks)]

    def tables(self, store: Store) -> Tables:
        """With the theorem's `bound` beside each constructed network: it follows from the teacher."""
        tables = super().tables(store)
        bounds = {
            config.run_id: config.model.bound(Setting(config).teacher)
            for config, _ in self.runs()
            if isinstance(config.model, Constructed)
        }
        return dataclasses.replace(
            tables, runs=tables.runs.assign(bound=tables.runs["run"].map(bounds).astype(float))
        )

    def smallest(self, tables: Tables, family: Family) -> dict[int, list[Reached | None]]:
        """The smallest width that fits, by number of combinations and replicate; None where a run failed."""
        found = {}
        for number in self.numbers:
            cell = {"part": "memory", "family": family.kind, "number": number}
            scores = [at(tables.runs, "r2_in", self.seeds, **cell, width=width) for width in self.widths]
            found[number] = [
                reached(self.widths, curve, self.threshold) if np.isfinite(curve).all() else None
                for curve in np.stack(scores, axis=1)
            ]
        return found

    def effects(self, tables: Tables) -> list[Effect]:
        def built(name: str, knots: int, modules: int) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, part="constructed", knots=knots, modules=modules)

        def trained(name: str) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, part="trained")

        own = self.base.space.width
        ratios = [built("sup_error", *cell) / built("bound", *cell) for cell in self.built]
        by_knots = np.stack([built("sup_error", knots, own) for knots in self.knots])
        by_modules = np.stack([built("sup_error", self.fixed, modules) for modules in self.modules])
        units = np.stack([built("neurons", self.fixed, modules) for modules in self.modules])
        fewest = [
            at(
                tables.runs,
                "r2_in",
                self.seeds,
                part="memory",
                family=family.kind,
                number=self.numbers[0],
                width=self.widths[-1],
            )
            for family in (self.base.family, self.memorised)
        ]
        composer, memoriser = (
            growth(self.smallest(tables, one)) for one in (self.base.family, self.memorised)
        )
        short = {
            name: np.log10(trained(name)) - np.log10(built(name, self.same_size, own))
            for name in ("rms_error", "sup_error")
        }
        values = {
            "exists": np.max(ratios, axis=0),
            "neurons-do-not-grow": log_slope(self.modules, units),
            "falls-with-the-square": log_slope(self.knots, by_knots),
            "flat-in-modules": log_slope(self.modules, by_modules),
            "training-fits": trained("r2_in"),
            "training-falls-short": short["rms_error"],
            "training-falls-short-at-worst": short["sup_error"],
            "memory-is-learned": np.min(fewest, axis=0),
            "memoriser-grows": memoriser - composer,
            "composer-hardly-grows": composer,
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.construction_figures import figures

        return figures(self, tables)
