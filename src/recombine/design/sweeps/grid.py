"""A sweep as it is written down: a grid over any settings of a run, with replicates. A study without claims."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, PositiveInt, field_validator

from recombine.component import Configuration, field, find
from recombine.errors import BadInput
from recombine.overrides import apply, field_names, split, validate
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.training.config import RunConfig, Seed, Seeds

MOST_RUNS = 200_000
"""More are refused before they are written out: such a grid is a slip."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""A sweep's name is that of a file."""

OWN = ("name", "replicates", "first_seed")
"""What an override sets of the sweep itself; any other name means a setting of its base."""

Settings = dict[str, Any]
Varied = Annotated[list[Any], Field(min_length=1)]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One combination of the varied settings, with its runs: one a replicate."""

    labels: dict[str, Any]
    """The varied settings, as they are shown."""
    runs: tuple[tuple[RunConfig, int], ...]
    """Each run with the seed of its replicate."""


class SweepFile(BaseModel):
    """What a sweep file says."""

    model_config = Configuration.model_config

    name: str = Field(pattern=NAME)
    """What the store calls the sweep; where none is given, the name of its file."""
    base: Settings = {}
    """What all runs share: settings of a run, nested or by their full or leaf names."""
    grid: dict[str, Varied] = {}
    """Every combination of these values is a cell."""
    cases: Annotated[list[Settings], Field(min_length=1)] = [{}]
    """Settings that go together; each case is crossed with the grid."""
    replicates: PositiveInt = 12
    """Runs of each cell, each with its own teacher, support, initialisation and data."""
    first_seed: Seed = 0
    """The seed of the first replicate."""
    measure: list[field("probes", Measurement)] = [Scores()]  # type: ignore[valid-type]
    """What is measured of each run."""

    @field_validator("base", "grid", "cases", mode="after")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            if "ircular" in str(error):
                raise BadInput(
                    "A value contains itself.",
                    fix="write the settings out: an anchor (&) cannot stand inside its own value",
                ) from error
            raise BadInput(
                f"A value is no number, text, list or mapping: {error}.", fix="put dates and the like in quotes"
            ) from error
        return value

    def changed(self, overrides: Sequence[str]) -> SweepFile:
        """The sweep with overrides (`a.b=c`) on its base, or on its number of replicates, first seed and name."""
        values = dict(self)
        base = dict(self.base)
        for name, value in (split(override) for override in overrides):
            if name in OWN:
                values[name] = value
                continue
            name = name.removeprefix("base.")
            base.pop(name, None)  # What comes later wins.
            base[name] = value
        made = validate(SweepFile, values | {"base": base})
        made._refuse_varied([name for name in base if name not in self.base or base[name] != self.base[name]])
        return made

    def _refuse_varied(self, names: Sequence[str]) -> None:
        """Overrides of what the sweep varies would do nothing."""
        if not names:
            return
        settings = self._varied()[0]
        config = self._cell(settings)
        varied = {_place(config, name): name for cell in self._varied() for name, _ in _flat(cell)}
        for name in names:
            same = varied.get(_place(config, name))
            if same is not None:
                raise BadInput(
                    f"{name!r} cannot be set: the sweep varies {same!r}.",
                    fix="change the grid or the cases in the file",
                )

    def _varied(self) -> list[Settings]:
        """The varied settings of each cell."""
        number = len(self.cases) * math.prod(len(values) for values in self.grid.values()) * self.replicates
        if number > MOST_RUNS:
            raise BadInput(f"The sweep has {number} runs.", fix=f"up to {MOST_RUNS} are possible: shorten it")
        rows = itertools.product(*self.grid.values())
        grid = [dict(zip(self.grid, row, strict=True)) for row in rows]
        return [case | combination for case in self.cases for combination in grid]

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells with their runs. Nothing is drawn: whatever cannot be is found here, before anything trains."""
        self._check_names()
        found: list[Cell] = []
        seen: dict[str, str] = {}
        varied = self._varied()
        for settings in varied:
            config = self._cell(settings)
            fixed = self._fixed_seeds(settings, config)
            runs = []
            for seed in range(self.first_seed, self.first_seed + self.replicates):
                seeds = Seeds.replicate(seed).model_dump() | fixed
                run = validate(RunConfig, dict(config) | {"seeds": seeds})
                here = f"{_words(settings)}, replicate {seed}"
                if run.run_id in seen:
                    raise BadInput(
                        f"Two runs of the sweep are the same: {seen[run.run_id]}; and {here}.",
                        fix="leave one out (or free a seed that is fixed)",
                    )
                seen[run.run_id] = here
                runs.append((run, seed))
            found.append(Cell(_labels(varied, settings, config), tuple(runs)))
        return tuple(found)

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """The runs and their labels, as a study has them."""
        return [(run, cell.labels | {"replicate": seed}) for cell in self.cells for run, seed in cell.runs]

    def measurements(self) -> list[Measurement]:
        """What is measured of each run."""
        return list(self.measure)

    def _check_names(self) -> None:
        for case in self.cases:
            both = sorted(case.keys() & self.grid.keys())
            if both:
                raise BadInput(f"{both[0]!r} stands in the grid and in a case.", fix="leave it in one of them")

    def _cell(self, settings: Settings) -> RunConfig:
        """The configuration of a cell; an error says whether the base or the cell is to blame."""
        try:
            config = self._config(self.base, settings)
            _refuse_twice(config, settings)
            return config
        except BadInput as error:
            where = f"cell {_words(settings)}"
            try:
                self._config(self.base, {})
            except BadInput as of_base:
                if of_base.message == error.message:
                    where = "base"
            raise BadInput(f"{where}: {error.message}", fix=error.fix) from error

    def _config(self, base: Settings, settings: Settings) -> RunConfig:
        """A run with these settings, beginning from what goes with its family."""
        kind = _kind_of(settings.get("family", base.get("family")))
        if kind is not None:
            find("families", kind)  # Its error names the nearest family.
        start = RunConfig() if kind is None else validate(RunConfig, {"family": kind})
        changes = [*_flat(_without_replaced(base, settings)), *_flat(_without_repeated(base, settings))]
        return apply(start, [f"{name}={json.dumps(value)}" for name, value in changes])

    def _fixed_seeds(self, settings: Settings, config: RunConfig) -> dict[str, int]:
        """The seeds that the file sets itself: these stay as they are in every replicate."""
        names = [_place(config, name) for name, _ in (*_flat(self.base), *_flat(settings))]
        parts = [name.removeprefix("seeds.") for name in names if name.startswith("seeds.")]
        return {part: getattr(config.seeds, part) for part in parts}


def _kind_of(value: Any) -> str | None:
    """The kind that a value names: `mlp`, or a mapping with a kind."""
    if isinstance(value, dict):
        value = value.get("kind")
    return value if isinstance(value, str) else None


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings as full names and values; a component's kind comes under the component's name."""
    for name, value in settings.items():
        place = f"{prefix}{name}"
        if not isinstance(value, dict):
            yield place, value
        elif "kind" not in value:
            yield from _flat(value, f"{place}.")
        else:
            yield place, value["kind"]
            yield from ((f"{place}.{inner}", item) for inner, item in value.items() if inner != "kind")


def _without_replaced(base: Settings, settings: Settings) -> Settings:
    """The base without the components that a cell replaces by others: their settings go with them."""
    replaced = {
        name for name, value in base.items() if name in settings and _kind_of(settings[name]) != _kind_of(value)
    }
    return {name: value for name, value in base.items() if name not in replaced or _kind_of(value) is None}


def _without_repeated(base: Settings, settings: Settings) -> Settings:
    """A cell's settings without kinds that stand in the base already: the base's settings of them hold."""
    return {
        name: value
        for name, value in settings.items()
        if not (isinstance(value, str) and isinstance(base.get(name), dict) and base[name].get("kind") == value)
    }


def _place(config: RunConfig, name: str) -> str:
    """The full name of a setting; the name itself where it has none in this configuration."""
    known = [place for place, _ in field_names(config)]
    found = [name] if name in known else [place for place in known if place.endswith(f".{name}")]
    return found[0] if len(found) == 1 else name


def _refuse_twice(config: RunConfig, settings: Settings) -> None:
    """One setting under two names (`width`, `model.width`): one of them would do nothing."""
    seen: dict[str, str] = {}
    for name, _ in _flat(settings):
        place = _place(config, name)
        if place in seen:
            raise BadInput(f"{seen[place]!r} and {name!r} are the same setting.", fix="leave one of them out")
        seen[place] = name


def shown(value: Any) -> Any:
    """A value as a label: numbers and words as they are, a component by its kind and settings."""
    if isinstance(value, dict):
        parts = [f"{name}={shown(item)}" for name, item in value.items() if name != "kind"]
        return " ".join([*([str(value["kind"])] if "kind" in value else []), *parts])
    return ",".join(str(shown(item)) for item in value) if isinstance(value, list) else value


def _words(settings: Settings) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in settings.items()) or "(the base)"


def _labels(varied: Sequence[Settings], settings: Settings, config: RunConfig) -> dict[str, Any]:
    """A cell's labels: what varies between the cells. What a case leaves out is shown as it stands."""
    labels: dict[str, Any] = {}
    for name in dict.fromkeys(name for cell in varied for name in cell):
        if name in settings:
            labels[name] = shown(settings[name])
            continue
        value: Any = config
        for step in _place(config, name).split("."):
            value = getattr(value, step, None)
        labels[name] = shown(value.model_dump(mode="json") if isinstance(value, BaseModel) else value)
    return labels
