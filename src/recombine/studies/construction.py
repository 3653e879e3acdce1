"""Does a network that solves every combination exist, does training find it, and what would a memoriser need?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from recombine.design import Arm, Claims, Figures, Study, Tables, claim, lowest, statistic
from recombine.design.replicates import needed_sizes, slopes_by_replicate
from recombine.errors import BadInput
from recombine.families import Hyperteacher, Lookup
from recombine.models import MLP, Constructed
from recombine.probes import Measurement, Scores, SupError
from recombine.spaces import SubsetSpace
from recombine.studies.shapes import ascending, fits
from recombine.supports import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SMALL_TEACHER = {"kind": "hyperteacher", "inputs": 8, "hidden": 8, "outputs": 8}


class Construction(Study):
    """Is there a network of moderate size that solves every combination, and does gradient descent find it?

    The theorem says that a ReLU network, whose number of neurons does not grow with the combinations, approximates a whole
    family. That network is built from the teacher and measured. Networks of its size are trained on the same teacher.
    Last, the smallest width that fits a number of combinations is sought, for a teacher with shared constituents and for
    independent functions.
    """

    kind: Literal["construction"] = "construction"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "family": {"kind": "hyperteacher", "inputs": 3, "hidden": 4, "outputs": 3},
                "recipe": {"kind": "fast", "steps": 60},
                "eval_every": 60,
            },
            "knots": (4, 8),
            "modules": (8, 12),
            "fixed": 8,
            "same_size": 4,
            "training_steps": (60, 120),
            "memory_space": {"modules": 8, "max_active": 2},
            "numbers": (8, 12, 20),
            "widths": (4, 16),
            "memory_steps": 60,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"recipe": "paper", "eval_every": 1000},
            "knots": (8, 16, 32, 64),
            "modules": (8, 16, 32, 64, 128),
            "fixed": 32,
            "training_steps": (30_000, 300_000),
            "error_tasks": 1024,
            "memory_space": {"modules": 16, "max_active": 3},
            "numbers": (20, 40, 80, 160, 320),
            "widths": (8, 16, 32, 64, 128, 256, 512, 1024),
            "memory_steps": 300_000,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "sup_error", "rms_error", "bound", "neurons", "weights")

    base: RunConfig = RunConfig.model_validate({"family": SMALL_TEACHER, "eval_every": 100})
    """What all runs share; the teacher of the laptop is smaller than the published one, so that the network is too."""
    knots: tuple[PositiveInt, ...] = (8, 16, 32)
    """ReLUs of each square, fewest first."""
    modules: tuple[PositiveInt, ...] = (8, 16, 32, 64)
    """Numbers of modules at which the network is constructed, fewest first."""
    fixed: PositiveInt = 16
    """The knots at which the number of modules is varied."""
    same_size: PositiveInt = 8
    """The knots of the network whose widths the trained one has."""
    first_seed: NonNegativeInt = 4000
    """Fresh seeds: with those from 1000 on, training was short."""
    training_steps: tuple[PositiveInt, ...] = (500, 4000, 16_000)
    """How long that network is trained, shortest first."""
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
    """A network fits its combinations when r2_in reaches this."""

    def check(self) -> None:
        family = self.base.family
        if not isinstance(family, Hyperteacher) or family.layers != 1:
            fix = "base.family=hyperteacher base.family.layers=1"
            raise BadInput("The construction is for a hyperteacher of one hidden layer.", fix=fix)
        if not isinstance(self.base.space, SubsetSpace):
            raise BadInput("The construction varies the modules of a subset space.", fix="base.space=subset")
        ascending(self, "knots", "modules", "widths", "training_steps")
        ascending(self, "numbers", least=3)

    @property
    def memorised(self) -> Lookup:
        """The family that shares nothing between combinations, with tasks as hard as the teacher's."""
        return Lookup.model_validate(self.base.family.model_dump(exclude={"kind"}))

    def arms(self) -> dict[str, Arm]:
        by_knots = [(knots, self.base.space.width) for knots in dict.fromkeys((*self.knots, self.same_size))]
        cells = list(dict.fromkeys([*by_knots, *((self.fixed, modules) for modules in self.modules)]))
        # The teacher without its numbers: enough to say how large its network is.
        teacher = eqx.filter_eval_shape(self.base.family.draw, self.base.space, jax.random.key(0))
        memory = {"space": self.memory_space, "steps": self.memory_steps, "number": self.numbers}
        model = {width: MLP(width=width, depth=self.memory_depth) for width in self.widths}
        composer = Arm(self.base, **memory, support=Random(), width={w: {"model": each} for w, each in model.items()})
        return {
            "constructed": Arm(
                self.base, model=Constructed(), steps=0, cases=[{"knots": knots, "modules": m} for knots, m in cells]
            ),
            "trained": Arm(
                self.base,
                model=MLP(widths=Constructed(knots=self.same_size).widths(teacher)),
                steps=self.training_steps,
            ),
            "composer": composer,
            "memoriser": composer.replace(family=self.memorised),
        }

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=128, draws=2), SupError(tasks=self.error_tasks)]

    def claims(self, constructed: Arm, trained: Arm, composer: Arm, memoriser: Arm) -> Claims:
        own = {"modules": self.base.space.width}
        by_modules = {"knots": self.fixed, "modules": self.modules}
        ratio = constructed["sup_error"] / constructed.table(self.with_bound)["bound"]
        short = {
            name: trained[name].log10() - constructed[name].at(knots=self.same_size, **own).log10()
            for name in ("rms_error", "sup_error")
        }
        few, many = self.training_steps[0], self.training_steps[-1]
        widths = {name: statistic(self.width_growth, arm) for name, arm in (("one", composer), ("each", memoriser))}
        yield claim(
            "exists",
            ratio.highest().below(1.0),
            "The largest error found of the constructed network stays within the theorem's bound at every number of modules "
            "and of knots (the largest ratio of error to bound).",
            primary=True,
            needs="neurons-do-not-grow",
        )
        yield claim(
            "neurons-do-not-grow",
            constructed["neurons"].at(**by_modules).log_slope("modules").equivalent(0.01),
            "It has the same number of hidden neurons for every number of modules (slope of log neurons on log modules).",
        )
        yield claim(
            "falls-with-the-square",
            constructed["sup_error"].at(knots=self.knots, **own).log_slope("knots").below(-1.8),
            "Its largest error falls with the square of the number of knots (slope of log error on log knots).",
        )
        yield claim(
            "flat-in-modules",
            constructed["sup_error"].at(**by_modules).log_slope("modules").equivalent(0.1),
            "At a fixed number of knots its largest error does not grow with the number of modules (slope of log error on "
            "log modules).",
        )
        yield fits(
            trained["r2_in"].first(),
            f"A network of exactly the same widths, trained for {few} steps on three quarters of the combinations, fits them "
            "(r2_in).",
            name="training-fits",
        )
        yield claim(
            "short-training-falls-short",
            short["rms_error"].first().greater(0.3),
            f"After {few} steps its root mean square error, over trained and held-out combinations, is more than twice that "
            "of the construction (difference of log10).",
            needs="training-fits",
        )
        yield claim(
            "training-falls-short",
            short["rms_error"].last().greater(0.3),
            f"After {many} steps it still is (difference of log10).",
            needs="training-fits",
        )
        yield claim(
            "training-falls-short-at-worst",
            short["sup_error"].last().greater(0.3),
            f"So is its largest error after {many} steps (difference of log10).",
            needs="training-fits",
        )
        yield fits(
            lowest(*(arm["r2_in"].first("number").last("width") for arm in (composer, memoriser))),
            "The widest network fits the fewest combinations, of the teacher and of independent functions (the lower r2_in).",
            name="memory-is-learned",
        )
        yield claim(
            "memoriser-grows",
            (widths["each"] - widths["one"]).greater(0.1),
            "With the number of combinations the smallest width that fits them grows faster for independent random functions, "
            "which can only be memorised, than for a teacher whose combinations share constituents (difference of the slopes "
            "of log width on log number).",
            needs="memory-is-learned",
        )
        yield claim(
            "composer-hardly-grows",
            widths["one"].below(0.5),
            "For the teacher that smallest width grows less than with the square root of the number of combinations (slope "
            "of log width on log number).",
            needs="memory-is-learned",
        )

    def with_bound(self, tables: Tables) -> pd.DataFrame:
        """The runs with the theorem's `bound` beside each constructed network: it follows from the teacher."""
        bounds = {
            config.run_id: config.model.bound(Setting(config).teacher)
            for config, labels in self.design.runs
            if labels["arm"] == "constructed"
        }
        return tables.runs.assign(bound=tables.runs["run"].map(bounds).astype(float))

    def overview_columns(self, tables: Tables) -> pd.DataFrame:
        return self.with_bound(tables)[["run", "bound"]]

    def smallest(self, tables: Tables) -> pd.DataFrame:
        """The smallest width that fits each number of combinations, in each replicate."""
        runs = tables.runs.reindex(columns=["replicate", "number", "width", "r2_in"])
        by = ["replicate", "number"]
        return needed_sizes(
            runs, by, size="width", score="r2_in", threshold=self.threshold, points=len(self.widths)
        ).rename(columns={"needed": "width"})

    def width_growth(self, tables: Tables) -> pd.Series:
        """The slope of log smallest width on log number of combinations in each replicate."""
        return slopes_by_replicate(self.smallest(tables), "number", "width", rows=len(self.numbers))

    def figures(self, constructed: Arm, trained: Arm, composer: Arm, memoriser: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        bounded, own = self.with_bound(constructed.tables), self.base.space.width
        squares = f"Four times the knots should give a sixteenth of the error. All teachers have {own} modules."
        neurons = f"The network has the same hidden neurons everywhere, and {self.fixed} knots in each square."
        for axis, levels, (other, level), words, x_title, title in (
            ("knots", self.knots, ("modules", own), squares, "knots of each square", "fall as the theorem says"),
            (
                "modules",
                self.modules,
                ("knots", self.fixed),
                neurons,
                "modules of the teacher",
                "grow with the modules",
            ),
        ):
            yield lines(
                bounded[(bounded[other] == level) & bounded[axis].isin(levels)],
                bounded[:0],
                x=axis,
                y={"sup_error": "largest error found", "bound": "bound of the theorem"},
                controls=["bound of the theorem"],
                name=f"error_by_{axis}",
                title=f"Does the error {title}?",
                caption="The largest difference between the constructed network and its teacher on sampled tasks and inputs, "
                f"and the most that the theorem allows. No weight is trained. {words}",
                log_y=True,
                x_title=x_title,
                y_title="error",
            )
        here = constructed.frame[(constructed.frame["knots"] == self.same_size) & (constructed.frame["modules"] == own)]
        length = {f"trained-{steps}": f"trained for {steps:,} steps" for steps in self.training_steps}
        named = trained.frame.assign(arm="trained-" + trained.frame["steps"].astype(int).astype(str))
        errors = pd.concat([here, named], ignore_index=True)
        for measure in ("rms_error", "sup_error"):
            with np.errstate(divide="ignore"):
                errors[measure] = np.log10(errors.reindex(columns=[measure])[measure].astype(float))
        yield dots(
            errors,
            category="arm",
            measures={"rms_error": "root mean square", "sup_error": "largest found"},
            labels={"constructed": "constructed from the teacher", **length},
            name="same_size",
            title="Does gradient descent find what exists?",
            caption=f"Two networks of exactly the same widths (those of the construction with {self.same_size} knots) for the "
            "same teacher, on tasks of all combinations: left is better, and one unit is a factor of ten.",
            x_title="log10 of the error",
        )
        names = {"composer": "teacher with shared modules", "memoriser": "independent functions"}
        needed = pd.concat([self.smallest(arm.tables).assign(arm=arm.name) for arm in (composer, memoriser)])
        beyond = int((needed["censored"] != "no").sum())
        note = f" {beyond} of {len(needed)} lie beyond the widths tried and are shown at their end." if beyond else ""
        yield lines(
            needed,
            x="number",
            y="width",
            series="arm",
            labels=names,
            controls=["memoriser"],
            name="smallest_width",
            title="What does a memoriser need?",
            caption=f"The smallest width of {self.memory_depth} hidden layers at which a network trained for "
            f"{self.memory_steps} steps reaches R² {self.threshold:g} on its training combinations, interpolated between "
            f"widths.{note} Independent functions can only be memorised; a teacher's combinations share modules.",
            log_y=True,
            x_title="combinations to fit",
            y_title="smallest width",
        )
