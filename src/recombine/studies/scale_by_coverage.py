"""Does scale help where training covered the combination, and only there?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, average, claim
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.studies.shapes import SMOKE_SPACE, ascending, control_fails, fits, other_family
from recombine.supports import Gaps
from recombine.training.config import RunConfig

AXES = {
    "width": "the width of the network",
    "steps": "the number of examples of each combination",
    "number": "the number of combinations",
}
"""What is scaled, in words."""

STRATA = {
    "all_pairs_met": "all pairs met in training",
    "some_pairs_unmet": "a pair never met",
    "part_unseen": "a constituent never seen",
}
COVERED, UNMET, UNSEEN = STRATA
UNCOVERED = {"unmet-pair": UNMET, "unseen-part": UNSEEN}
WORDS = {
    UNMET: "combinations with a pair that never met",
    UNSEEN: "combinations with a constituent that was never seen",
}
CONTROL = "control: independent functions"


class ScaleByCoverage(Study):
    """Does scale help more where training covered the constituents and pairs of a combination?

    Held-out scores against width, examples and combinations, by what training showed of each held-out combination. Each
    replicate has one constituent that is never seen and pairs that never meet, at every scale. A common held-out test
    has combinations of all sorts, and the largest support decides once where each of them belongs. Gains are compared on
    several scales of the score: R2 cannot exceed 1, so it compresses the gains of combinations that do well.
    """

    kind: Literal["scale-by-coverage"] = "scale-by-coverage"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"space": SMOKE_SPACE},
            "widths": (16, 64),
            "depth": 2,
            "steps": (50, 100),
            "numbers": (25, 50),
            "pairs": 4,
            "reserve": 60,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000},
        "workstation": {
            "widths": (32, 128, 512),
            "steps": (188, 750, 1500),
            "numbers": (64, 256),
            "replicates": 6,
            "first_seed": 4500,
        },
        "paper": {
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 4}, "recipe": "paper", "eval_every": 100},
            "widths": (128, 256, 512, 1024),
            "depth": 4,
            "steps": (10_000, 40_000, 160_000, 300_000),
            "numbers": (64, 256, 1024),
            "reserve": 500,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "correlation_held_out")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set model, steps and support."""
    widths: tuple[PositiveInt, ...] = (32, 64, 128, 256)
    """Widths of the network."""
    depth: PositiveInt = 4
    """Hidden layers of the network."""
    steps: tuple[PositiveInt, ...] = (188, 375, 750, 1500)
    """Training steps. Every step draws fresh examples, so more steps mean more examples of each combination."""
    numbers: tuple[PositiveInt, ...] = (64, 128, 256)
    """Numbers of training combinations."""
    parts: NonNegativeInt = 1
    """Constituents that are never seen."""
    pairs: NonNegativeInt = 12
    """Pairs of the other constituents that never meet."""
    reserve: PositiveInt = 200
    """Combinations of the common test."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same sweep must fail."""

    def check(self) -> None:
        other_family(self)
        ascending(self, "widths", "steps", "numbers")

    @property
    def levels(self) -> dict[str, tuple[int, ...]]:
        """The levels of each axis, smallest first. One axis is scaled at a time, with the others at their largest."""
        return {"width": self.widths, "steps": self.steps, "number": self.numbers}

    def arms(self) -> dict[str, Arm]:
        largest = {axis: levels[-1] for axis, levels in self.levels.items()}
        smaller = [largest | {axis: level} for axis, levels in self.levels.items() for level in levels[:-1]]
        ends = [largest | {axis: levels[0]} for axis, levels in self.levels.items()]
        main = Arm(
            self.base,
            cases=[*smaller, largest],
            model=MLP(depth=self.depth),
            support=Gaps(number=self.numbers[-1], parts=self.parts, pairs=self.pairs, reserve=self.reserve),
        )
        return {"main": main, "lookup": main.replace(family=self.control, cases=[*ends, largest])}

    def along(self, axis: str) -> dict[str, int]:
        """The labels of the cells along one axis: the other axes are at their largest."""
        return {other: levels[-1] for other, levels in self.levels.items() if other != axis}

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        largest = {axis: levels[-1] for axis, levels in self.levels.items()}
        scores = {stratum: main.table(self.by_stratum)[stratum].on_scales() for stratum in STRATA}

        def gain(stratum: str, *axes: str) -> Column:
            """What scale gains in one stratum: the mean over what is scaled."""
            return average(*(scores[stratum].at(**self.along(axis)).rise(axis) for axis in axes or AXES))

        yield fits(main["r2_in"].at(**largest), "At the largest scale the network fits its training tasks (r2_in).")
        for name, stratum in UNCOVERED.items():
            yield claim(
                f"interaction-{name}",
                (gain(COVERED) - gain(stratum)).greater(),
                f"Scale helps more on combinations whose pairs all met in training than on {WORDS[stratum]} (difference of "
                "gains, largest minus smallest, mean over what is scaled).",
                primary=True,
                needs="fits",
                version=2,
            )
            for axis, words in AXES.items():
                yield claim(
                    f"interaction-{name}-{axis}",
                    (gain(COVERED, axis) - gain(stratum, axis)).greater(),
                    f"The same where {words} alone is scaled.",
                    needs="fits",
                    version=2,
                )
        for name, stratum in {"covered": COVERED, **UNCOVERED}.items():
            yield claim(
                f"helps-{name}",
                gain(stratum).greater(),
                f"Scale helps on {WORDS.get(stratum, 'combinations whose pairs all met')} (largest minus smallest, mean over "
                "what is scaled).",
                needs="fits",
                version=2,
            )
        for name, stratum in UNCOVERED.items():
            yield claim(
                f"{name}-lags",
                (scores[COVERED] - scores[stratum]).at(**largest).greater(),
                f"At the largest scale {WORDS[stratum]} do worse than those whose pairs all met.",
                needs="fits",
                version=2,
            )
        yield from control_fails(
            lookup["r2_in"].at(number=self.numbers[0]),
            lookup["correlation_held_out"].mean(),
            "The network can learn the control: r2_in with the fewest combinations.",
            "On independent random functions, predictions for held-out combinations do not correlate with the truth at any "
            "scale (correlation within tasks, mean over scales).",
        )

    def by_stratum(self, tables: Tables) -> pd.DataFrame:
        """R2 of each run in each stratum. A combination has the stratum that the largest support gives it, in every run."""
        frame = tables.combinations
        if "region" not in frame:
            return frame.reindex(columns=["run", *STRATA])
        frame = frame[frame["region"] == "held_out"]
        largest = frame[(frame[list(self.levels)] == [levels[-1] for levels in self.levels.values()]).all(axis=1)]
        keys = ["replicate", "combination"]
        fixed = frame.drop(columns="stratum").merge(largest[[*keys, "stratum"]], on=keys)
        scores = self.base.family.pooled(fixed, ["run", "stratum"]).pivot(index="run", columns="stratum", values="r2")
        return scores.reindex(columns=list(STRATA)).reset_index()

    def overview_columns(self, tables: Tables) -> pd.DataFrame:
        names = {COVERED: "r2_covered"} | {
            stratum: f"r2_{name.replace('-', '_')}" for name, stratum in UNCOVERED.items()
        }
        return self.by_stratum(tables).rename(columns=names)

    def figures(self, main: Arm, lookup: Arm) -> Figures:
        from recombine.figures.study import lines

        frame = self.by_scale(main, lookup)
        shared: dict[str, Any] = {
            "x": "times",
            "series": "stratum",
            "facet": "axis",
            "facet_labels": {"width": "wider network", "steps": "more examples", "number": "more combinations"},
            "x_title": "scale, as a multiple of the smallest",
        }
        words = (
            f"Width goes from {self.widths[0]} to {self.widths[-1]}, steps from {self.steps[0]} to {self.steps[-1]} (every step "
            f"brings fresh examples), combinations from {self.numbers[0]} to {self.numbers[-1]}. What is not scaled is at its "
            "largest. The largest support decides where a combination belongs."
        )
        yield lines(
            frame,
            y="r2",
            name="scale_by_coverage",
            title="What does scale buy, and where?",
            caption=f"R² on held-out combinations, by what training showed of them. {words} In the control every combination is an "
            "independent function, so nothing can be recombined.",
            labels=[*STRATA.values(), CONTROL],
            controls=[CONTROL],
            floor=-0.25,
            ceiling=1.0,
            y_title="held-out R²",
            **shared,
        )
        yield lines(
            frame[frame["stratum"] != CONTROL],
            y="error",
            name="error_by_coverage",
            title="How many times does scale divide the error?",
            caption=f"The error, 1 - R², on held-out combinations, on a logarithmic axis: parallel lines are divided alike. {words}",
            labels=list(STRATA.values()),
            log_y=True,
            y_title="error on held-out combinations (1 - R²)",
            **shared,
        )

    def by_scale(self, main: Arm, lookup: Arm) -> pd.DataFrame:
        """One row per run, axis and stratum: `times` is the scale as a multiple of the smallest on its axis."""
        own = main.frame.merge(self.by_stratum(main.tables), on="run", how="left")
        rows = []
        for axis, levels in self.levels.items():
            for runs, columns in ((own, STRATA), (lookup.frame, {"r2_held_out": CONTROL})):
                for other, level in self.along(axis).items():
                    runs = runs[runs[other] == level]
                for column, stratum in columns.items():
                    scores = runs.reindex(columns=["replicate", column]).rename(columns={column: "r2"})
                    rows.append(scores.assign(axis=axis, times=runs[axis] / levels[0], stratum=stratum))
        frame = pd.concat(rows, ignore_index=True)
        return frame.assign(error=1 - frame["r2"])
