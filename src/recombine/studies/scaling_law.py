"""How many combinations will it take? A law fitted on small runs forecasts larger ones."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, average, claim, control, statistic
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.stats import law_of_runs
from recombine.stats.forecasts import COVERS
from recombine.stats.law_of_runs import FITTED, HELD_OUT
from recombine.stats.scaling_law import PREDICTIVE, REACH
from recombine.studies.shapes import ascending, control_fails, fits
from recombine.supports import Random
from recombine.training.config import RunConfig

LARGER = {"number": "more combinations", "parameters": "a larger network", "both": "both"}
METHODS = {"law_error": "the law", "last_error": "last value", "line_error": "straight line"}


class ScalingLaw(Study):
    """Can small runs tell how many combinations, and how large a network, a given score will take?

    In each replicate the law E + A N^-a + B P^-b is fitted to the small runs of a grid of combinations N and weights P. It
    must then forecast the larger runs of its replicate, up to (a little beyond) four times in N and in P, better than two
    simple rules and with honest intervals. Further out it declines.
    """

    kind: Literal["scaling-law"] = "scaling-law"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 10, "max_active": 3},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "numbers": (16, 22, 32),
            "larger_numbers": (128,),
            "widths": (8, 12, 16),
            "larger_widths": (66,),
            "wide_numbers": (16, 22, 32),
            "depth": 1,
            "reserve": 47,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 4}, "recipe": "paper", "eval_every": 100},
            "numbers": (40, 80, 160, 320),
            "larger_numbers": (640, 1280),
            "widths": (125, 250, 500),
            "larger_widths": (1024,),
            "wide_numbers": (80, 160, 320),
            "depth": 4,
            "reserve": 1000,
        },
    }

    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "forecast", "inside")

    base: RunConfig = RunConfig()
    """What all runs share; the arms set model and support."""
    numbers: tuple[PositiveInt, ...] = (40, 56, 80)
    """Numbers of combinations on which the law is fitted, with every width of `widths`."""
    larger_numbers: tuple[PositiveInt, ...] = (160, 320)
    """Numbers that it must forecast, with every width."""
    widths: tuple[PositiveInt, ...] = (32, 43, 58)
    """Widths on which the law is fitted. The law is in the number of weights that follows."""
    larger_widths: tuple[PositiveInt, ...] = (128,)
    """Widths that it must forecast."""
    wide_numbers: tuple[PositiveInt, ...] = (40, 80)
    """Fitted numbers with which the larger widths are trained too."""
    depth: PositiveInt = 3
    reserve: NonNegativeInt = 376
    """Combinations of the common test."""
    targets: tuple[Annotated[float, Field(lt=1)], ...] = (0.8, 0.9, 0.95)
    """Held-out R2 for which the figure says how many combinations are needed."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which there is nothing to forecast."""

    def check(self) -> None:
        ascending(self, "numbers", "widths", least=3)
        ascending(self, "larger_numbers", "larger_widths", least=1)
        if not set(self.wide_numbers) <= set(self.numbers) or not self.wide_numbers:
            raise ValueError(f"wide_numbers must be some of the numbers {self.numbers}, got {self.wide_numbers}")
        if len(self.control_numbers) < 4:
            raise ValueError(
                "wide_numbers and larger_numbers must be four numbers or more: the control's law needs them"
            )
        times = {
            "larger_numbers": self.larger_numbers[-1] / self.numbers[-1],
            "larger_widths": self.weights(self.larger_widths[-1]) / self.weights(self.widths[-1]),
        }
        for name, factor in times.items():
            if factor < REACH:
                raise ValueError(
                    f"{name} must reach {REACH:g} times what is fitted (of combinations, of weights), got {factor:.2f} times"
                )

    def weights(self, width: int) -> int:
        """The number of weights that a width makes."""
        return law_of_runs.number_of_weights(self.base.replace(model=MLP(width=width, depth=self.depth)))

    @property
    def control_numbers(self) -> tuple[int, ...]:
        """The numbers of combinations of the control, with the widest network: a law needs four."""
        return tuple(sorted({*self.wide_numbers, *self.larger_numbers}))

    def arms(self) -> dict[str, Arm]:
        shared = {"model": MLP(depth=self.depth), "support": Random(reserve=self.reserve)}
        larger = [{"width": width, "number": number} for width in self.widths for number in self.larger_numbers]
        wider = [{"width": width, "number": number} for width in self.larger_widths for number in self.control_numbers]
        return {
            "fitted": Arm(self.base, **shared, width=self.widths, number=self.numbers),
            "larger": Arm(self.base, **shared, cases=[*larger, *wider]),
            "lookup": Arm(
                self.base, **shared, family=self.control, width=(self.larger_widths[-1],), number=self.control_numbers
            ),
        }

    def claims(self, fitted: Arm, larger: Arm, lookup: Arm) -> Claims:
        def mean(column: str, *among: str) -> Column:
            return statistic(self.mean_forecast, fitted, larger, column=column, among=among or tuple(LARGER))

        many, few = self.larger_numbers[-1], self.wide_numbers[0]
        yield fits(
            larger["r2_in"].at(width=self.larger_widths[-1], number=many),
            "With the widest network and the most combinations the training tasks are fitted (r2_in).",
        )
        yield claim(
            "beats-last-value",
            mean("over_last").greater(0.05),
            "A law of loss = 1 - R2, fitted on small runs, forecasts runs with four times the combinations and weights better "
            "than the nearest small run does (absolute error of log loss, last value minus law, mean over forecasts).",
            primary=True,
            needs="fits",
        )
        yield claim(
            "beats-a-line",
            mean("over_line").greater(0.02),
            "It forecasts better than a straight line of log loss on log sizes: its floor is worth having.",
            needs="fits",
        )
        for name, larger_size, words in (
            ("combinations", "number", "the number of combinations"),
            ("weights", "parameters", "the network"),
        ):
            yield claim(
                f"beats-last-value-in-{name}",
                mean("over_last", larger_size).greater(0.05),
                f"It forecasts better than the last value where only {words} is larger.",
                needs="fits",
            )
        yield claim(
            "intervals-are-honest",
            (mean("inside") - PREDICTIVE).equivalent((COVERS[1] - COVERS[0]) / 2),
            "Its 80 % intervals hold 70 % to 90 % of the true losses (share within the intervals, less .8).",
            needs="fits",
        )
        yield claim(
            "terms-do-not-add-up",
            mean("surplus", "parameters", "both").greater(0.1),
            "Where the network is larger the law expects too much loss (log loss, law less truth): a larger network makes more "
            "of few combinations than a sum of one term for each allows.",
            needs="fits",
        )
        yield claim(
            "more-combinations-help",
            statistic(self.exponents, fitted).above(0.0),
            "In the fitted runs loss falls as the number of combinations grows (exponent of a line, which may be negative).",
            needs="fits",
        )
        correlation = lookup["correlation_held_out"]
        yield from control_fails(
            lookup["r2_in"].at(number=few),
            average(correlation.at(number=few), correlation.at(number=many)),
            "The network can learn the control: r2_in with few combinations.",
            "On independent random functions predictions for held-out combinations do not correlate with the truth, with few "
            "combinations and with many (correlation within tasks, mean of both).",
        )
        yield control(
            "control-promises-nothing",
            statistic(self.promise, lookup).below(0.05),
            "A law of the control's runs does not promise that more combinations will help: the R2 that it forecasts at four "
            "times their largest number.",
            needs="control-is-learned",
        )

    # Laws: functions of tables

    def with_sizes(self, tables: Tables) -> pd.DataFrame:
        """The runs of an arm with their role for a law and their number of weights."""
        runs = tables.runs
        weights = {width: self.weights(width) for width in (*self.widths, *self.larger_widths)}
        role = runs["arm"].map({"fitted": FITTED, "larger": HELD_OUT})
        return runs.assign(role=role, parameters=runs["width"].map(weights))

    def both(self, fitted: Tables, larger: Tables) -> pd.DataFrame:
        """The runs that a law is fitted on and those that it forecasts."""
        return pd.concat([self.with_sizes(fitted), self.with_sizes(larger)], ignore_index=True)

    def forecasts(self, fitted: Tables, larger: Tables) -> pd.DataFrame:
        """One row per forecast, with the errors of the law and of the rules that it must beat."""
        cells = len(self.design.arms["fitted"].cells) + len(self.design.arms["larger"].cells)
        table = law_of_runs.errors(law_of_runs.forecasts(self.both(fitted, larger), self.seeds, cells))
        return table.assign(
            over_last=table["last_error"] - table["law_error"], over_line=table["line_error"] - table["law_error"]
        )

    def mean_forecast(self, fitted: Tables, larger: Tables, column: str, among: tuple[str, ...]) -> pd.Series:
        """A column of the forecasts, averaged over those in which certain sizes are larger."""
        table = self.forecasts(fitted, larger)
        return table[table["larger"].isin(among)].groupby("replicate")[column].mean()

    def exponents(self, fitted: Tables) -> Any:
        """How fast loss falls with combinations, in each replicate."""
        return law_of_runs.exponents(self.with_sizes(fitted), self.seeds, len(self.widths) * len(self.numbers))

    def promise(self, lookup: Tables) -> Any:
        """The R2 that a law of the control forecasts far out, in each replicate."""
        asked = round(REACH * self.larger_numbers[-1])
        return law_of_runs.forecast_r2(self.with_sizes(lookup), self.seeds, self.control_numbers, asked)

    def overview_columns(self, tables: Tables) -> pd.DataFrame:
        """What the law forecast for each larger run, and whether its interval held the truth."""
        runs, arms = self.with_sizes(tables), self.design.data(tables.study)
        table = self.forecasts(arms["fitted"], arms["larger"])
        table = table.assign(forecast=1 - table["law"].astype(float), role=HELD_OUT)
        keys = ["role", "replicate", "number", "parameters"]
        return runs.merge(table[[*keys, "forecast", "inside"]], how="left", on=keys)[["run", "forecast", "inside"]]

    def figures(self, fitted: Arm, larger: Arm) -> Figures:
        from recombine.figures.axes import Reference
        from recombine.figures.forecast import draw_forecast, forecast_info
        from recombine.figures.study import Figure, dots

        runs = self.both(fitted.tables, larger.tables)
        means = law_of_runs.with_loss(runs).dropna(subset=["loss"])
        means = means.assign(y=np.log(means["loss"])).groupby(["role", "width", "parameters", "number"])["y"].mean()
        means = means.reset_index()
        means = means.assign(y=np.exp(means["y"]), x=means["number"], fitted=means["role"] == FITTED)
        answers = law_of_runs.answers(runs, self.targets, self.base.space.size)
        info = forecast_info(
            means,
            *law_of_runs.curves(means),
            facet="width",
            facet_labels={width: f"width {width}" for width in (*self.widths, *self.larger_widths)},
            law="E + A/N^a + B/P^b",
            log_y=True,
            references=[Reference(1 - target, f"R² {target:g}") for target in self.targets],
            x_title="training combinations",
            y_title="loss, 1 − held-out R²",
            caption_lead="Means over replicates, and one law of these means for all panels (verdicts rest on one law per "
            "replicate). N is the number of combinations, P the number of weights; combinations needed at width "
            f"{self.larger_widths[-1]}, by the law of all runs: "
            f"{'; '.join(f'R² {target:g}: {words}' for target, words in answers.items())}.",
        )
        yield Figure("scaling_law", "What do small runs say of larger ones?", info.caption, draw_forecast(info))
        table = self.forecasts(fitted.tables, larger.tables).astype(dict.fromkeys(METHODS, float))
        yield dots(
            table.groupby(["larger", "replicate"])[list(METHODS)].mean().reset_index(),
            category="larger",
            measures=METHODS,
            labels=LARGER,
            name="forecast_errors",
            title="Is the law worth having?",
            caption="The error of forecasts of larger runs (0.1 is about 10 % of the loss; smaller is better), by what is larger "
            "than in the fitted runs. `Last value` takes the nearest small run; the straight line is one of log loss on log "
            "sizes.",
            floor=0.0,
            x_title="error of log loss",
        )
