"""How many combinations will it take? A law fitted on small runs forecasts larger ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.stats.forecasts import COVERS
from recombine.stats.scaling_law import PREDICTIVE, REACH, Needed, needed
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.studies.scaling_law_forecasts import (
    FITTED,
    HELD_OUT,
    answers,
    errors,
    exponents,
    forecast_r2,
    forecasts,
    mean_law,
    number_of_weights,
    overview,
)
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

Target = Annotated[float, Field(lt=1)]

CONTROL = "control"
"""The role of runs on the control family."""


_claim = claims_of("scaling-law")


CLAIMS = (
    _claim(
        "fits",
        "With the widest network and the most combinations the training tasks are fitted (r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "beats-last-value",
        "A law of loss = 1 - R2, fitted on small runs, forecasts runs with four times the combinations and weights better "
        "than taking the nearest small run for it (absolute error of log loss, last value minus law, mean over forecasts).",
        "greater",
        0.05,
        primary=True,
        needs=("fits",),
    ),
    _claim(
        "beats-a-line",
        "It forecasts better than a straight line of log loss on log sizes: its floor is worth having.",
        "greater",
        0.02,
        needs=("fits",),
    ),
    *(
        _claim(
            f"beats-last-value-in-{name}",
            f"It forecasts better than the last value where only {words} is larger.",
            "greater",
            0.05,
            needs=("fits",),
        )
        for name, words in (("combinations", "the number of combinations"), ("weights", "the network"))
    ),
    _claim(
        "intervals-are-honest",
        "Its 80 % intervals hold 70 % to 90 % of what came (share within the intervals, less .8).",
        "equivalent",
        (COVERS[1] - COVERS[0]) / 2,
        needs=("fits",),
    ),
    _claim(
        "terms-do-not-add-up",
        "Where the network is larger the law expects too much loss (log loss, law less what came): a larger network makes "
        "more of few combinations than a sum of one term for each allows.",
        "greater",
        0.1,
        needs=("fits",),
    ),
    _claim(
        "more-combinations-help",
        "In the fitted runs loss falls as the number of combinations grows (exponent; a line's, which may be negative).",
        "above",
        0.0,
        needs=("fits",),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control: r2_in with few combinations.",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "On independent random functions predictions for held-out combinations have nothing to do with the truth, with few "
        "combinations and with many (correlation within tasks, mean of both).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
    _claim(
        "control-promises-nothing",
        "A law of the control's runs does not promise that more combinations will help: the R2 that it forecasts at four "
        "times their largest number.",
        "below",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class ScalingLaw(Study):
    """E + A N^-a + B P^-b, fitted to the small runs of a grid of combinations N and weights P, one law a replicate.

    It must then forecast the larger runs of its replicate, up to (a little beyond) four times in N and in P, better than
    two simple rules and with intervals that hold what they promise. Further out it declines.
    """

    kind: Literal["scaling-law"] = "scaling-law"
    question: ClassVar[str] = (
        "Can small runs tell how many combinations, and how large a network, a given score will take?"
    )
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
            "base": {
                "space": {"kind": "subset", "modules": 16, "max_active": 4},
                "recipe": "paper",
                "every": 100,
            },
            "numbers": (40, 80, 160, 320),
            "larger_numbers": (640, 1280),
            "widths": (125, 250, 500),
            "larger_widths": (1024,),
            "wide_numbers": (80, 160, 320),
            "depth": 4,
            "reserve": 1000,
        },
    }

    base: RunConfig = RunConfig()
    """What all runs share; model and support are set by the sweep."""
    numbers: tuple[PositiveInt, ...] = (40, 56, 80)
    """Numbers of combinations on which the law is fitted, with every width of `widths`."""
    larger_numbers: tuple[PositiveInt, ...] = (160, 320)
    """Those that it must forecast, with every width."""
    widths: tuple[PositiveInt, ...] = (32, 43, 58)
    """Widths on which the law is fitted. It is told the number of weights that a width makes."""
    larger_widths: tuple[PositiveInt, ...] = (128,)
    """Those that it must forecast."""
    wide_numbers: tuple[PositiveInt, ...] = (40, 80)
    """Numbers, of those fitted, with which the larger widths are trained too."""
    depth: PositiveInt = 3
    reserve: NonNegativeInt = 376
    """Combinations of the common test."""
    targets: tuple[Target, ...] = (0.8, 0.9, 0.95)
    """Held-out R2 for which the overview says how many combinations are needed."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which there is nothing to forecast."""

    @model_validator(mode="after")
    def _grid(self) -> Self:
        ascend(self, "numbers", "widths", least=3)
        ascend(self, "larger_numbers", "larger_widths", least=1)
        if not set(self.wide_numbers) <= set(self.numbers) or not self.wide_numbers:
            raise ValueError(
                f"wide_numbers must be some of the numbers {self.numbers}, got {self.wide_numbers}"
            )
        if len(self.control_numbers) < 4:
            raise ValueError(
                "wide_numbers and larger_numbers must be four numbers or more: the control's law needs them"
            )
        weights = {width: self.weights(width) for width in (*self.widths, *self.larger_widths)}
        small, large = weights[self.widths[-1]], weights[self.larger_widths[-1]]
        for what, times in (
            ("larger_numbers", self.larger_numbers[-1] / self.numbers[-1]),
            ("larger_widths", large / small),
        ):
            if times < REACH:
                raise ValueError(
                    f"{what} must reach {REACH:g} times what is fitted (of combinations, of weights), got {times:.2f} times"
                )
        return self

    def weights(self, width: int) -> int:
        """The number of weights that a width makes."""
        return number_of_weights(self.base.model_copy(update={"model": MLP(width=width, depth=self.depth)}))

    @property
    def grid(self) -> dict[tuple[int, int], str]:
        """Width and number of each cell, with its role."""
        fitted = {(width, number): FITTED for width in self.widths for number in self.numbers}
        more = {(width, number): HELD_OUT for width in self.widths for number in self.larger_numbers}
        wide = {(width, number): HELD_OUT for width in self.larger_widths for number in self.control_numbers}
        return fitted | more | wide

    @property
    def control_numbers(self) -> list[int]:
        """The numbers of combinations of the control, with the widest network: a law needs four."""
        return sorted({*self.wide_numbers, *self.larger_numbers})

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        cells = [(self.base.family, width, number, role) for (width, number), role in self.grid.items()]
        cells += [(self.control, self.larger_widths[-1], number, CONTROL) for number in self.control_numbers]
        weights = {width: self.weights(width) for width in (*self.widths, *self.larger_widths)}
        found = []
        for family, width, number, role in cells:
            changes = {
                "family": family,
                "model": MLP(width=width, depth=self.depth),
                "support": Random(number=number, reserve=self.reserve),
            }
            labels = {"family": family.kind, "role": role, "width": width, "number": number}
            labels["parameters"] = weights[width]
            found += [
                (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores()]

    def main(self, tables: Tables) -> pd.DataFrame:
        """The runs that laws are about."""
        return tables.runs[tables.runs["role"] != CONTROL]

    def forecasts(self, tables: Tables) -> pd.DataFrame:
        """A row for each forecast, with the errors of the law and of what it must beat."""
        return errors(forecasts(self.main(tables), self.seeds, len(self.grid)))

    def effects(self, tables: Tables) -> list[Effect]:
        seeds = list(self.seeds)
        table = self.forecasts(tables)
        control = tables.runs[tables.runs["role"] == CONTROL]
        widest, few, many = self.larger_widths[-1], self.wide_numbers[0], self.larger_numbers[-1]

        def mean(values: pd.Series, kept: pd.Series | None = None) -> Float[np.ndarray, " replicate"]:
            chosen = values if kept is None else values[kept]
            return chosen.groupby(table["replicate"]).mean().reindex(seeds).to_numpy(dtype=float)

        def of_control(name: str, number: int) -> Float[np.ndarray, " replicate"]:
            return at(control, name, seeds, number=number)

        by_last = table["last_error"] - table["law_error"]
        fitted = sum(role == FITTED for role in self.grid.values())
        values = {
            "fits": at(self.main(tables), "r2_in", seeds, width=widest, number=many),
            "beats-last-value": mean(by_last),
            "beats-a-line": mean(table["line_error"] - table["law_error"]),
            "beats-last-value-in-combinations": mean(by_last, table["larger"] == "number"),
            "beats-last-value-in-weights": mean(by_last, table["larger"] == "parameters"),
            "intervals-are-honest": mean(table["inside"]) - PREDICTIVE,
            "terms-do-not-add-up": mean(table["surplus"], table["larger"] != "number"),
            "more-combinations-help": exponents(self.main(tables), seeds, fitted),
            "control-is-learned": of_control("r2_in", few),
            "control-stays-at-zero": np.mean(
                [of_control("correlation_held_out", number) for number in (few, many)], axis=0
            ),
            "control-promises-nothing": forecast_r2(
                control, seeds, self.control_numbers, round(REACH * many)
            ),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def answers(self, tables: Tables) -> dict[float, str]:
        """For each target how many combinations it takes with the largest network, in words."""
        return answers(self.main(tables), self.targets, self.base.space.size)

    def overview(self, tables: Tables) -> pd.DataFrame:
        """Means over replicates in each cell, what was forecast there, and how many combinations each target takes."""
        return overview(
            tables.runs,
            self.forecasts(tables),
            self.answers(tables),
            {"family": self.base.family.kind, "width": self.larger_widths[-1]},
        )

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.scaling_law_figures import figures

        return figures(self, tables)


def combinations_needed(
    tables: Tables,
    target: float = 0.95,
    *,
    parameters: float | None = None,
    family: str = "hyperteacher",
    beyond: bool = False,
) -> Needed:
    """How many combinations held-out R2 = `target` takes, with an interval, by the law of all runs of the tables.

    `parameters`: the weights of the network; those of the largest that was trained unless told otherwise. What needs more
    than four times the largest number of combinations is refused, unless `beyond`. The interval is that of the mean over
    replicates.
    """
    if not target < 1:
        raise BadInput(f"R2 is below 1, but the target is {target:g}.", fix="0.95 is usual")
    law = mean_law(tables.runs[tables.runs["family"] == family])
    asked = law.largest[1] if parameters is None else parameters
    return needed(law, 1 - target, asked, beyond=beyond)
