"""Columns as symbols: what a claim says of an arm's runs, written down before any of them exists."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput, did_you_mean
from recombine.stats.rule import Direction

if TYPE_CHECKING:
    import pandas as pd

    from recombine.design.arm import Arm
    from recombine.design.tables import Tables

Data = Mapping[str, "Tables"]
"""The tables of each arm, by the arm's name."""
Values = Float[np.ndarray, "replicate cell"]
Labels = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Test:
    """An effect with the direction and the margin by which it is judged."""

    __test__ = False  # Not a test of pytest's.

    effect: Column
    direction: Direction
    margin: float
    """The margin; on several scales, that of the first."""
    scales: tuple[tuple[str, float], ...] = ()
    """The scales on which the effect is judged, each with its margin."""


class Scale(NamedTuple):
    """A way to count a score that is 1 where every answer is right, and a margin for differences on it."""

    transform: Callable[[Values], Values]
    margin: float


LEAST_ERROR = 1e-6
"""A smaller error counts as this one: a perfect score has a logarithm, too."""

PLAIN = "R2"
"""The name of the first scale, the score itself, unless a study gives another."""
SCALES: Mapping[str, Scale] = {
    PLAIN: Scale(lambda score: score, 0.05),
    "log error": Scale(lambda score: -np.log(np.maximum(1 - score, LEAST_ERROR)), float(np.log(1.25))),
    "root error": Scale(lambda score: -np.sqrt(np.maximum(1 - score, 0)), 0.05),
}
"""The scales on which gains are compared. A bounded score compresses gains near its ceiling, and a difference of gains can
change its sign from scale to scale. The margins: .05 of R2, an error that is 1.25 times as large, .05 of a root error."""


def scale_names(score: str = PLAIN) -> list[str]:
    """The names of the scales, where the score itself has this name."""
    return [score if name == PLAIN else name for name in SCALES]


def _operator(combine: Callable[..., Values], sign: str) -> Callable[[Column, Column | float], Column]:
    return lambda column, other: column._with(other, combine, sign)


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """One number per replicate and cell of an arm's grid; the numbers come with the runs.

    A column of an arm is reduced over its cells and combined with others until one cell is left, and then judged:
    `main["r2_held_out"].rise().greater(0.05)`. A replicate in which a run failed or is missing has no number (NaN).
    """

    seeds: tuple[int, ...]
    cells: tuple[Labels, ...]
    """The labels of each cell, in the order of the arm's grid."""
    compute: Callable[[Data], Values]
    words: str
    """How the column is written, for error messages and listings."""
    left_out: bool = False
    """Whether a profile leaves out runs that it is about: claims on it are not asked there."""
    arms: frozenset[str] = frozenset()
    """The names of the arms whose tables it reads."""

    # Choosing and reducing cells

    def at(self, **labels: Any) -> Column:
        """The cells with these labels, for instance `at(number=40)`.

        Args:
            **labels: The level of one or more axes; a tuple names several levels of an axis.
        """
        for label, level in labels.items():
            levels = self._levels(label)
            for wanted in level if isinstance(level, tuple) else (level,):
                if wanted not in levels:
                    fix = did_you_mean(str(wanted), map(str, levels))
                    raise BadInput(f"{self.words} has no {label} {wanted!r}.", fix=fix)
        chosen = [index for index, cell in enumerate(self.cells) if _matches(cell, labels)]
        if not chosen:
            raise BadInput(f"{self.words} has no cell with {_named(labels)}.", fix=f"its cells: {self._listed()}")
        cells = tuple(self.cells[index] for index in chosen)
        return self._made(cells, lambda values: values[:, chosen], f"{self.words}.at({_named(labels)})")

    def first(self, axis: str | None = None) -> Column:
        """The value at the first level of an axis; without a name, of the only axis."""
        return self._along(axis, "first", lambda values: values[:, 0])

    def last(self, axis: str | None = None) -> Column:
        """The value at the last level of an axis; without a name, of the only axis."""
        return self._along(axis, "last", lambda values: values[:, -1])

    def rise(self, axis: str | None = None) -> Column:
        """The value at the last level of an axis minus that at its first; without a name, of the only axis."""
        return self._along(axis, "rise", lambda values: values[:, -1] - values[:, 0], least=2)

    def lowest(self, axis: str | None = None) -> Column:
        """The lowest value over all cells, or along an axis."""
        return self._over(axis, "lowest", lambda values: values.min(axis=1))

    def highest(self, axis: str | None = None) -> Column:
        """The highest value over all cells, or along an axis."""
        return self._over(axis, "highest", lambda values: values.max(axis=1))

    def mean(self, axis: str | None = None) -> Column:
        """The mean over all cells, or along an axis."""
        return self._over(axis, "mean", lambda values: values.mean(axis=1))

    def _over(self, axis: str | None, name: str, reduce: Callable[[Values], np.ndarray]) -> Column:
        if axis is None:
            return self._grouped(("scale",), reduce, f"{self.words}.{name}()")
        return self._along(axis, name, reduce)

    def _along(self, axis: str | None, name: str, reduce: Callable[[Values], np.ndarray], least: int = 1) -> Column:
        """Reduce an axis in each group of cells that agree in all other labels."""
        if axis is None:
            axes = [label for label in self._labels() if label != "scale"]
            varying = [label for label in axes if len(self._levels(label)) > 1]
            if len(varying) > 1:
                raise BadInput(
                    f"{self.words}.{name}() could be along {' or '.join(varying)}.",
                    fix=f'name the axis, as in .{name}("{varying[0]}"), or choose cells with .at(...) first',
                )
            axis = next(iter(varying or axes), "")
        self._levels(axis)
        others = tuple(label for label in self._labels() if label != axis)
        for labels, members in self._groups(others).items():
            if len(members) < least:
                raise BadInput(
                    f"{self.words}.{name}({axis!r}) needs {least} levels of {axis!r}; there is one"
                    f"{f' with {_named(dict(labels))}' if labels else ''}.",
                    fix="give the axis more levels, or leave the claim out in this profile",
                )
        return self._grouped(others, reduce, f'{self.words}.{name}("{axis}")')

    def _groups(self, labels: Sequence[str]) -> dict[tuple[tuple[str, Any], ...], list[int]]:
        """The cells that agree in these labels, by their levels."""
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
        for index, cell in enumerate(self.cells):
            groups.setdefault(tuple((k, v) for k, v in cell.items() if k in labels), []).append(index)
        return groups

    def _grouped(self, labels: Sequence[str], reduce: Callable[[Values], np.ndarray], words: str) -> Column:
        """Reduce each group of cells that agree in these labels to one cell."""
        groups = self._groups(labels)
        return self._made(
            [dict(cell) for cell in groups],
            lambda values: np.stack([reduce(values[:, members]) for members in groups.values()], axis=1),
            words,
        )

    # Arithmetic

    def map(self, function: Callable[[Values], Values], name: str = "map") -> Column:
        """Apply a function to the numbers, cell by cell."""
        return self._made(self.cells, function, f"{self.words}.{name}()")

    def clip(self, lower: float | None = None, upper: float | None = None) -> Column:
        """Replace numbers beyond a limit by the limit."""
        return self.map(lambda values: np.clip(values, lower, upper), "clip")

    def log_slope(self, axis: str) -> Column:
        """The slope of the logarithm of the values on that of an axis' levels, by least squares."""
        levels = np.log([float(cell[axis]) for cell in self.cells])
        centred = levels - levels.mean()
        weights = centred / (centred @ centred)
        return self._made(
            ({},), lambda values: (np.log(values) @ weights)[:, None], f'{self.words}.log_slope("{axis}")'
        )

    def log10(self) -> Column:
        """The logarithm to base 10: a difference of logarithms counts factors of ten."""
        return self.map(np.log10, "log10")

    def log2(self) -> Column:
        """The logarithm to base 2: a difference of logarithms counts doublings."""
        return self.map(np.log2, "log2")

    def on_scales(self, least: float = LEAST_ERROR, score: str = PLAIN) -> Column:
        """The same score on each of `SCALES`, as a further axis `scale`.

        Use it where gains or gaps at different heights are compared: the claim then has to hold on every scale.

        Args:
            least: A smaller error counts as this one. An accuracy over n answers cannot tell errors below 1 / n apart.
            score: What the score is called, as the name of the first scale.

        Example:
            ```python
            main["accuracy_held_out"].on_scales(least=0.005, score="accuracy")
            ```
        """
        if score in set(SCALES) - {PLAIN}:
            raise BadInput(f"{score!r} is the name of another scale.", fix='what the score is: "R2", "accuracy"')
        cells = tuple({**cell, "scale": name} for cell in self.cells for name in scale_names(score))

        def change(values: Values) -> Values:
            told = values if least == LEAST_ERROR else np.minimum(values, 1 - least)
            scaled = np.stack([scale.transform(told) for scale in SCALES.values()], axis=-1)
            return scaled.reshape(len(values), -1)

        return self._made(cells, change, f"{self.words}.on_scales()")

    def __neg__(self) -> Column:
        return self._made(self.cells, np.negative, f"-{self.words}")

    __add__ = _operator(np.add, "+")
    __sub__ = _operator(np.subtract, "-")
    __mul__ = _operator(np.multiply, "*")
    __truediv__ = _operator(np.divide, "/")
    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: float) -> Column:
        return -self + other

    def _with(self, other: Column | float, combine: Callable[..., Values], sign: str) -> Column:
        if not isinstance(other, Column):
            return self._made(self.cells, lambda values: combine(values, other), f"({self.words} {sign} {other:g})")
        words = f"({self.words} {sign} {other.words})"
        if ("scale" in self._labels()) != ("scale" in other._labels()):
            raise BadInput(f"{words}: only one of the two is on scales.", fix="put .on_scales() on both, or on neither")
        if self.seeds != other.seeds:
            raise BadInput(
                f"{words}: the replicates differ ({_range(self.seeds)} and {_range(other.seeds)}).",
                fix="compare arms with the same seeds",
            )
        order: list[int] | None = None
        cells = self.cells if len(self.cells) >= len(other.cells) else other.cells
        if len(self.cells) > 1 and len(other.cells) > 1:
            order = _aligned(self.cells, other.cells)
            if order is None:
                raise BadInput(
                    f"{words}: the cells differ ({self._listed()}; and {other._listed()}).",
                    fix="choose the same cells with .at(...), or reduce one side first",
                )

        def compute(data: Data) -> Values:
            right = other.compute(data)
            return combine(self.compute(data), right if order is None else right[:, order])

        return Column(self.seeds, cells, compute, words, self.left_out or other.left_out, self.arms | other.arms)

    # Judging

    def greater(self, margin: float | None = None) -> Test:
        """The effect is greater than the margin, a distance from no effect. Scales have their own margins."""
        return self._judged("greater", margin)

    def less(self, margin: float | None = None) -> Test:
        """The effect is less than minus the margin. Scales have their own margins."""
        return self._judged("less", margin)

    def equivalent(self, margin: float | None = None) -> Test:
        """The effect is within the margin of no effect. Scales have their own margins."""
        return self._judged("equivalent", margin)

    def above(self, threshold: float) -> Test:
        """The value is above a threshold."""
        return self._judged("above", threshold)

    def below(self, threshold: float) -> Test:
        """The value is below a threshold."""
        return self._judged("below", threshold)

    def _judged(self, direction: Direction, margin: float | None) -> Test:
        names = [str(cell["scale"]) for cell in self.cells if "scale" in cell]
        if names != scale_names(names[0]) if names else len(self.cells) != 1:
            raise BadInput(
                f"{self.words} has {len(self.cells)} cells, and a claim is about one number per replicate.",
                fix="choose a cell with .at(...) or reduce with .rise(), .lowest(), .mean(), ...",
            )
        scales = tuple(zip(names, (scale.margin for scale in SCALES.values()), strict=False))
        if (margin is None) != bool(scales):
            raise BadInput(
                f"{self.words} {'has a margin for each scale' if scales else 'has no margin'}.",
                fix="give no margin" if scales else "give a margin, as in .greater(0.05)",
            )
        return Test(self, direction, scales[0][1] if margin is None else margin, scales)

    def values(self, data: Data) -> Float[np.ndarray, " replicate"] | Float[np.ndarray, "scale replicate"]:
        """The numbers of a column with one cell; one row per scale where it is on several."""
        numbers = np.asarray(self.compute(data), dtype=float).T
        return numbers if "scale" in self.cells[0] else numbers[0]

    # Words

    def _made(self, cells: Sequence[Labels], change: Callable[[Values], Values], words: str) -> Column:
        return dataclasses.replace(
            self, cells=tuple(cells), compute=lambda data: change(self.compute(data)), words=words
        )

    def _labels(self) -> dict[str, None]:
        return dict.fromkeys(label for cell in self.cells for label in cell)

    def _levels(self, label: str) -> list[Any]:
        if label not in self._labels():
            raise BadInput(f"{self.words} has no axis {label!r}.", fix=did_you_mean(label, self._labels()))
        return list(dict.fromkeys(cell[label] for cell in self.cells if label in cell))

    def _listed(self) -> str:
        shown = "; ".join(_named(cell) or "one" for cell in self.cells[:6])
        return shown + (f"; ... {len(self.cells)} in all" if len(self.cells) > 6 else "")

    def __repr__(self) -> str:
        return self.words


def from_runs(arm: Arm, column: str, function: Callable[[Tables], pd.DataFrame] | None = None) -> Column:
    """A column of an arm's table of runs, or of a table that a function computes (with a column `run`)."""
    # Made when it is first read: listing claims needs no run names.
    names: list[list[str]] = []

    def compute(data: Data) -> Values:
        names[:] = names or [[config.run_id for config in configs] for configs in arm.configs]
        tables = data[arm.name]
        frame = tables.runs if function is None else function(tables)
        if column not in frame.columns or frame.empty:
            return np.full((len(arm.seeds or ()), len(names)), np.nan)
        series = frame.drop_duplicates("run").set_index("run")[column]
        return np.stack([series.reindex(run_ids).to_numpy(dtype=float) for run_ids in names], axis=1)

    cells = tuple(cell.labels for cell in arm.cells)
    words = f'{arm.name or "arm"}["{column}"]'
    return Column(arm.seeds or (), cells, compute, words, arms=frozenset((arm.name,)))


def statistic(function: Callable[..., Any], *arms: Arm, seeds: Sequence[int] | None = None, **options: Any) -> Column:
    """A custom effect: a function of tables that gives one number per replicate.

    Args:
        function: Called with the `Tables` of each arm and the options. It returns one number per seed: an array in the
            order of the seeds, or a series indexed by `replicate` (missing replicates become NaN).
        *arms: The arms whose tables the function takes.
        seeds: The replicates; by default those of the first arm.
        **options: Passed on to the function.

    Returns:
        A column with one cell, ready for `.greater(...)` and the like.

    Example:
        ```python
        def slope(tables, threshold): ...
        yield claim("grows-slowly", statistic(slope, main, threshold=0.8).below(1.0), "...")
        ```
    """
    chosen = tuple(seeds if seeds is not None else arms[0].seeds or ())
    name = getattr(function, "__name__", type(function).__name__)

    def compute(data: Data) -> Values:
        result = function(*(data[arm.name] for arm in arms), **options)
        if hasattr(result, "reindex"):
            result = result.reindex(list(chosen)).to_numpy(dtype=float)
        result = np.asarray(result, dtype=float)
        if result.shape != (len(chosen),):
            raise BadInput(
                f"The statistic {name!r} gave numbers of shape {result.shape} for {len(chosen)} replicates.",
                fix="return one number per seed, or a series indexed by replicate",
            )
        return result[:, None]

    names = [arm.name for arm in arms]
    return Column(chosen, ({},), compute, f"{name}({', '.join(names)})", arms=frozenset(names))


def lowest(*columns: Column) -> Column:
    """The lowest of several columns, replicate by replicate."""
    return _together("lowest", columns, lambda values: np.min(values, axis=0))


def highest(*columns: Column) -> Column:
    """The highest of several columns, replicate by replicate."""
    return _together("highest", columns, lambda values: np.max(values, axis=0))


def average(*columns: Column) -> Column:
    """The mean of several columns, replicate by replicate."""
    return _together("average", columns, lambda values: np.mean(values, axis=0))


def _together(name: str, columns: Sequence[Column], reduce: Callable[[list[Values]], Values]) -> Column:
    words = f"{name}({', '.join(column.words for column in columns)})"
    if not columns:
        raise BadInput(f"{name}() was given no column.", fix="give at least one")
    first = columns[0]
    if any(column.seeds != first.seeds or len(column.cells) != len(first.cells) for column in columns):
        raise BadInput(f"{words}: the replicates or cells differ.", fix="reduce each to one cell of the same seeds")
    left_out = any(column.left_out for column in columns)
    arms = frozenset[str]().union(*(column.arms for column in columns))

    def compute(data: Data) -> Values:
        return reduce([column.compute(data) for column in columns])

    return Column(first.seeds, first.cells, compute, words, left_out, arms)


def _matches(cell: Labels, labels: Labels) -> bool:
    return all(
        label in cell and (cell[label] in level if isinstance(level, tuple) else cell[label] == level)
        for label, level in labels.items()
    )


def _aligned(first: Sequence[Labels], second: Sequence[Labels]) -> list[int] | None:
    """For each cell of the first column the same cell of the second, by the labels that both have more than one level of."""
    levels = [
        {label: {cell.get(label) for cell in cells} for cell in cells for label in cell} for cells in (first, second)
    ]
    shared = {label for label in levels[0].keys() & levels[1].keys() if max(len(each[label]) for each in levels) > 1}
    places = {tuple((k, v) for k, v in sorted(cell.items()) if k in shared): i for i, cell in enumerate(second)}
    order = [places.get(tuple((k, v) for k, v in sorted(cell.items()) if k in shared)) for cell in first]
    if len(first) != len(second) or len(places) < len(second) or None in order:
        return None
    return [index for index in order if index is not None]


def _named(labels: Labels) -> str:
    return ", ".join(f"{label}={level!r}" for label, level in labels.items())


def _range(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}..{seeds[-1]}" if len(seeds) else "none"
