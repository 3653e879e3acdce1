"""Arms: named sets of runs, each a base with a grid of settings over it and replicates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from recombine.component import Component
from recombine.design.column import Column, from_runs
from recombine.errors import BadInput, did_you_mean
from recombine.overrides import field_names, validate
from recombine.probes.base import Measurement
from recombine.training.config import RunConfig, Seeds

if TYPE_CHECKING:
    import pandas as pd

    from recombine.design.tables import Tables

Labels = dict[str, Any]

RUN_COLUMNS = ("run", "status", "failed_at", "steps", "seconds", "compile_seconds", "reached", "metric")
"""Columns of every run beside its labels and measurements."""


class Cell(NamedTuple):
    """One cell of an arm's grid."""

    labels: Labels
    """The level of each axis, as tables and claims name it."""
    settings: dict[str, Any]
    """The settings of the cell: values by name, or functions of a cell."""


class Arm:
    """A set of runs: a base configuration, a grid of settings over it, and replicates.

    A setting is named as in an override: by its leaf name where that is unique (`width`), or in full. Its value is

    - a single value or component: every run has it;
    - a tuple or list: an axis of the grid, whose levels are labelled by the values (a component by its kind);
    - a mapping from labels to values: an axis with these labels. A value that is itself a mapping without a
      `kind` is a bundle: several settings that go together under one label;
    - a function of a cell: called for each run with the cell's labels and `seed` as attributes, for settings that
      depend on several axes or on the replicate.

    Args:
        base: What all runs share.
        cases: Settings that vary together: each mapping is crossed with the axes. Its entries are labels too.
        seeds: The seeds of the replicates; None for those of the study.
        settings: The settings, as above.

    Example:
        ```python
        main = Arm(RunConfig(), support=Random(reserve=376), number=(40, 80, 160, 320))
        control = main.replace(family=Lookup(), number=(40, 320))
        main["r2_held_out"].rise()  # most minus fewest combinations, one number for each replicate
        ```
    """

    def __init__(
        self,
        base: RunConfig,
        *,
        cases: Sequence[Mapping[str, Any]] = (),
        seeds: Sequence[int] | None = None,
        **settings: Any,
    ) -> None:
        self.base = base
        self.given = settings
        self.cases = tuple(dict(case) for case in cases) or ({},)
        self.seeds = None if seeds is None else tuple(seeds)
        self.name = ""
        self._known: frozenset[str] | None = None
        self._tables: Tables | None = None
        self._frame: pd.DataFrame | None = None

    def replace(self, **changes: Any) -> Self:
        """Make an arm with other settings; `base`, `cases` and `seeds` may change as well.

        Args:
            **changes: Settings as in `Arm`. A setting that is given as None is removed.

        Returns:
            The new arm.
        """
        parts: dict[str, Any] = {"base": self.base, "cases": self.cases, "seeds": self.seeds}
        parts |= {name: changes.pop(name) for name in tuple(parts) if name in changes}
        settings = {name: value for name, value in (self.given | changes).items() if value is not None}
        return type(self)(**parts, **settings)

    def bind(self, name: str, seeds: Sequence[int], measurements: Sequence[Measurement] = ()) -> Self:
        """Name the arm, give it the study's seeds where it has none, and check its settings.

        Args:
            name: The arm's name in the study.
            seeds: The study's seeds.
            measurements: What is measured of each run: it decides which columns there are.
        """
        arm = self.replace(seeds=self.seeds or seeds)
        arm.name = name
        try:
            arm._check()
            arm._known = arm._columns(measurements)
        except BadInput as error:
            raise BadInput(f"Arm {name!r}: {error.message}", fix=error.fix) from error
        return arm

    def with_tables(self, tables: Tables) -> Self:
        """The same arm with the tables of its runs, for figures and custom statistics."""
        arm = self.replace()
        arm.name, arm._known, arm._tables = self.name, self._known, tables
        return arm

    @functools.cached_property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """The labels of each axis, in their order."""
        levels: dict[str, dict[Any, None]] = {}
        for cell in self.cells:
            for label, level in cell.labels.items():
                levels.setdefault(label, {})[level] = None
        return {label: tuple(values) for label, values in levels.items()}

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the grid: each case crossed with each level of each axis."""
        axes = {name: levels for name, value in self.given.items() if (levels := _levels(value)) is not None}
        fixed = {name: value for name, value in self.given.items() if name not in axes}
        cells = []
        for case, levels in itertools.product(self.cases, itertools.product(*map(dict.items, axes.values()))):
            labels, settings = {_leaf(name): _label(v) for name, v in case.items() if not _derived(v)}, {}
            for name, (label, value) in zip(axes, levels, strict=True):
                labels[_leaf(name)] = label
                settings |= dict(value) if _bundle(value) else {name: value}
            cells.append(Cell(labels, {**fixed, **case, **settings}))
        return tuple(cells)

    @functools.cached_property
    def runs(self) -> list[tuple[RunConfig, Labels]]:
        """The runs with their labels: `arm`, the labels of the cell, `replicate`."""
        return [
            (config, {"arm": self.name, **cell.labels, "replicate": seed})
            for cell, configs in zip(self.cells, self.configs, strict=True)
            for config, seed in zip(configs, self._seeds, strict=True)
        ]

    @functools.cached_property
    def configs(self) -> list[list[RunConfig]]:
        """The configuration of each cell's replicates."""
        return [list(self._replicates(cell)) for cell in self.cells]

    @property
    def _seeds(self) -> tuple[int, ...]:
        if self.seeds is None:
            raise BadInput(f"Arm {self.name!r} has no seeds.", fix="use it in a study, or give seeds=range(...)")
        return self.seeds

    def _replicates(self, cell: Cell) -> Iterator[RunConfig]:
        derived = {name: value for name, value in cell.settings.items() if _derived(value)}
        shared = None if derived else self.base.replace(**self._set(cell, {}))
        for seed in self._seeds:
            config = shared
            if config is None:
                here = SimpleNamespace(**cell.labels, seed=seed)
                config = self.base.replace(**self._set(cell, {name: value(here) for name, value in derived.items()}))
            yield validate(RunConfig, dict(config) | {"seeds": Seeds.replicate(seed)})

    def _set(self, cell: Cell, computed: dict[str, Any]) -> dict[str, Any]:
        """The settings of a run. Axes inside a component that is computed are up to the function that computes it."""
        inside = {
            full.rpartition(".")[2]
            for name in computed
            for full, _ in field_names(self.base)
            if full.startswith(f"{name}.")
        } | {field for value in computed.values() if isinstance(value, Component) for field in type(value).model_fields}
        plain = {n: v for n, v in cell.settings.items() if n not in computed and not (computed and n in inside)}
        return {name: value for name, value in (plain | computed).items() if not self._label_only(name, cell)}

    def _label_only(self, name: str, cell: Cell) -> bool:
        """Whether an axis only feeds functions of a cell: it is no setting by itself."""
        if not any(_derived(value) for value in cell.settings.values()):
            return False
        known = [full for full, _ in field_names(self.base)]
        parts = [value for value in cell.settings.values() if isinstance(value, Component)]
        known += [f"{part.kind}.{field}" for part in parts for field in type(part).model_fields]
        return name not in known and not any(full.endswith(f".{name}") for full in known)

    def _check(self) -> None:
        """Build every cell once, so that wrong settings are found before anything trains."""
        if not self.cells:
            raise BadInput("it has no cells.", fix="give every axis at least one level")
        _ = self.configs

    def _columns(self, measurements: Sequence[Measurement]) -> frozenset[str] | None:
        """The columns of the table of runs; None where a measurement does not declare its own."""
        known: set[str] = set(RUN_COLUMNS)
        for config in {(config.family, config.space): config for (config, *_) in self.configs}.values():
            for measurement in measurements:
                declared = measurement.summary_columns(config)
                if declared is None:
                    return None
                known |= declared
        return frozenset(known) if measurements else None

    # Tables: present once the runs are done.

    @property
    def tables(self) -> Tables:
        """The tables of the arm's runs; only figures and custom statistics have them."""
        if self._tables is None:
            raise BadInput(
                f"Arm {self.name!r} has no tables yet: its runs come later.",
                fix='in claims use columns, as in main["r2_held_out"].rise(), or statistic(function, main)',
            )
        return self._tables

    @property
    def frame(self) -> pd.DataFrame:
        """One row per run: labels, settings, and summary numbers of the measurements."""
        return self.tables.runs if self._frame is None else self._frame

    def with_frame(self, frame: pd.DataFrame) -> Self:
        """The same arm with another table of runs, for figures that show some of them or add a column."""
        arm = self.with_tables(self.tables)
        arm._frame = frame
        return arm

    # Columns

    def __getitem__(self, column: str) -> Column:
        """A column of the table of runs, as a symbol: its values are known once the runs are done.

        Args:
            column: A summary number of a measurement (`r2_held_out`), or a label or setting of the runs.
        """
        if self._known is not None and column not in self._known | self.axes.keys():
            raise BadInput(
                f"Arm {self.name!r} has no column {column!r}.", fix=did_you_mean(column, self._known | self.axes.keys())
            )
        return from_runs(self, column)

    def table(self, function: Callable[..., pd.DataFrame], **options: Any) -> DerivedTable:
        """A table that is computed from the arm's tables, with one row per run.

        Args:
            function: From the arm's `Tables` to a frame with a column `run`.
            **options: Passed on to the function.

        Returns:
            The table; its columns are symbols like those of the arm.
        """
        return DerivedTable(self, functools.partial(function, **options))

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={' '.join(map(str, levels))}" for name, levels in self.axes.items())
        count = f"{len(self.cells)} cells" + (f" x {len(self.seeds)} replicates" if self.seeds else "")
        return f"Arm({self.name or 'unnamed'}: {axes or 'one cell'}; {count})"


class DerivedTable:
    """A table computed from an arm's tables: see `Arm.table`."""

    def __init__(self, arm: Arm, function: Callable[[Tables], pd.DataFrame]) -> None:
        self.arm = arm
        self.function = function

    def __getitem__(self, column: str) -> Column:
        return from_runs(self.arm, column, self.function)


def _levels(value: Any) -> dict[Any, Any] | None:
    """The levels of an axis by their labels; None for a single value."""
    if isinstance(value, Mapping) and "kind" not in value:
        return dict(value)
    if isinstance(value, (tuple, list, range)):
        labels = [_label(level) for level in value]
        if len(set(labels)) < len(labels):
            raise BadInput(
                f"Two levels of an axis have one label: {labels}.", fix="give a mapping from labels to values"
            )
        return dict(zip(labels, value, strict=True))
    return None


def _label(value: Any) -> Any:
    """A level as it is labelled: a space by its title, another component by its kind."""
    return getattr(value, "title", value.kind) if isinstance(value, Component) else value


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _derived(value: Any) -> bool:
    """Whether a setting is a function of a cell."""
    return callable(value) and not isinstance(value, (Component, type))


def _bundle(value: Any) -> bool:
    return isinstance(value, Mapping) and "kind" not in value
