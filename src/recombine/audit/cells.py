"""A table of scores by combination, and the activations of its rows: the data of an audit."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine._html import card, listing, table
from recombine.audit.scales import SHARE, UNKNOWN, Scale
from recombine.audit.wording import counted, listed, shown
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.possible import Possible

NOTHING = -1
"""Marks an empty slot."""
Chosen = Bool[np.ndarray, " cell"]
"""Which combinations are meant."""
Result = TypeVar("Result")


def remembered(function: Callable[[Cells], Result]) -> Callable[[Cells], Result]:
    """Keep the result of a function of cells with the cells, which never change."""

    @functools.wraps(function)
    def once(cells: Cells) -> Result:
        kept = cells.__dict__.setdefault("_remembered", {})
        if function not in kept:
            kept[function] = function(cells)
        return kept[function]

    return once


@dataclasses.dataclass(frozen=True)
class Factor:
    """One factor of a combination."""

    name: str
    values: tuple[str, ...]
    """The names of its constituents."""
    columns: tuple[str, ...]
    """The columns that hold it: one, or one for each role."""
    kind: Literal["value", "roles", "set"] = "value"
    """One value; one value in each of several roles that share their values; any number of values."""
    positions: tuple[float, ...] = ()
    """Where each value lies on a line: the mean number in each bin, or the rank of each step; empty if they have no order."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots that a value can stand in: its roles, or the factor itself."""
        return self.columns if self.kind == "roles" else (self.name,)


@dataclasses.dataclass(frozen=True, repr=False)
class Cells:
    """The rows of a table, grouped by combination. Constituents are numbered across all factors."""

    factors: tuple[Factor, ...]
    constituents: Int[np.ndarray, "cell slot"]
    """The constituents of each combination, `NOTHING` in empty slots. Each combination appears once."""
    slots: tuple[str, ...]
    """The name of each slot: the factor, or the column of a role. The slots of a set share one name and ascend."""
    scores: tuple[str, ...]
    """The names of the score columns."""
    binary: tuple[bool, ...]
    """Which scores have only two values, the ends of their scale: failed and passed."""
    count: Int[np.ndarray, " cell"]
    """Scored rows of each combination; 0 for combinations that are only trained on."""
    mean: Float[np.ndarray, "cell score"]
    """Mean score; NaN if there is none."""
    spread: Float[np.ndarray, "cell score"]
    """The sum of squared deviations from the cell's mean."""
    trained: Bool[np.ndarray, " cell"] | None = None
    """Which combinations the model was trained on; None if unknown."""
    notes: tuple[str, ...] = ()
    """What happened while the table was read, in sentences: rows left out and why, factors with many values."""
    scales: tuple[Scale, ...] = ()
    """What the values of each score mean; empty: shares of successes where a score is binary, otherwise unknown."""
    possible: Possible | None = None
    """Which combinations can exist; None if that was not stated."""

    def scale(self, score: int) -> Scale:
        """What the values of a score mean."""
        if self.scales:
            return self.scales[score]
        return SHARE if self.binary[score] else UNKNOWN

    def upright(self, score: int) -> Float[np.ndarray, " cell"]:
        """The mean scores with the sign that makes higher values better."""
        return self.scale(score).sign * self.mean[:, score]

    def shares(self, score: int) -> Float[np.ndarray, " cell"]:
        """The mean scores as shares of the way from the worst to the best value; the scale must be known."""
        scale = self.scale(score)
        return (self.mean[:, score] - scale.worst) / (scale.best - scale.worst)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each constituent with its factor: colour=red."""
        return tuple(f"{factor.name}={value}" for factor in self.factors for value in factor.values)

    @property
    def width(self) -> int:
        """The number of constituents."""
        return sum(len(factor.values) for factor in self.factors)

    @property
    def evaluated(self) -> Bool[np.ndarray, " cell"]:
        """Which combinations have a score."""
        return self.count > 0

    def name(self, cell: int | np.integer) -> str:
        """A combination as text: red + cube; roles with their column: object=dog + object_2=cat."""
        values = [value for factor in self.factors for value in factor.values]
        roles = {column for factor in self.factors if factor.kind == "roles" for column in factor.columns}
        names = (
            f"{slot}={values[constituent]}" if slot in roles else values[constituent]
            for slot, constituent in zip(self.slots, self.constituents[cell], strict=True)
            if constituent != NOTHING
        )
        return " + ".join(names)

    def __repr__(self) -> str:
        """The numbers of combinations and rows, the factors and the scores."""
        return shown([self._title(), *(f"  {name}: {values}" for name, values in self._factors())])

    def _repr_html_(self) -> str:
        return card(self._title(), table(["factor", "values"], self._factors()), listing(self.notes))

    def _title(self) -> str:
        trained = "unknown" if self.trained is None else f"{int(self.trained.sum()):,}"
        return (
            f"Cells: {counted(len(self.constituents), 'combination')} ({trained} trained), "
            f"{counted(int(self.count.sum()), 'scored row')}, scores {listed(self.scores)}"
        )

    def _factors(self) -> list[tuple[str, str]]:
        return [(factor.name, f"{len(factor.values):,} ({listed(factor.values)})") for factor in self.factors]


@dataclasses.dataclass(frozen=True)
class Activations:
    """Activations of the rows of a table by layer, with the combination and the scores of each row."""

    layers: dict[str, Float[np.ndarray, ...]]
    """(row, feature) by layer name, in the order of the computation. Layers may differ in width."""
    cell: Int[np.ndarray, " row"]
    """The index of each row's combination in `Cells`."""
    scores: Float[np.ndarray, ...]
    """(row, score); NaN where a score is missing."""

    def __post_init__(self) -> None:
        shapes = {name: values.shape for name, values in self.layers.items()}
        wrong = {name: shape for name, shape in shapes.items() if len(shape) != 2 or shape[0] != len(self.cell)}
        if wrong:
            raise BadInput(
                f"Activations need one row of features for each of the {len(self.cell)} rows, got the shapes {wrong}.",
                fix="give one array per layer with the rows in the table's order; flatten or average other axes",
            )
