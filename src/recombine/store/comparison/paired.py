"""`compare`: what differs between two sides, by how much the score does, and whether that is sure."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recombine import _html
from recombine.errors import BadInput, did_you_mean
from recombine.stats.intervals import LEVEL, Interval, t_bounds, t_interval
from recombine.stats.power import needed_replicates
from recombine.store import tables
from recombine.store.comparison.flips import FlippedCombination, Pair, flipped
from recombine.store.comparison.sides import Side

SEEDS = "seeds."
PAIRED, UNPAIRED = "paired by seeds and shared settings", "not paired (no seeds in common), Welch"

SOLVED = 0.5
"""The score from which a combination counts as solved."""
MARGIN = 0.05
"""The difference that matters, if none is given."""


@dataclasses.dataclass(frozen=True)
class DifferentSetting:
    """A setting that has other values on the two sides."""

    name: str
    first: tuple[Any, ...]
    """Its values on the first side; None where a run has no such setting."""
    second: tuple[Any, ...]
    apart: bool
    """No value is on both sides. Other settings differ in part, and runs are paired where they agree."""


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """The second side against the first."""

    first: Side
    second: Side
    score: str
    margin: float
    settings: tuple[DifferentSetting, ...]
    means: tuple[float | None, float | None]
    """The mean score of the runs of each side that are compared."""
    difference: Interval | None
    """The mean of the second minus the first over replicates, with its 95 % interval; None for fewer than 2 replicates."""
    effects: tuple[float, ...]
    """The difference in each replicate, if runs are paired. A replicate is what shares all seeds."""
    pairs: int
    unpaired: tuple[int, int]
    """Runs of each side without a partner."""
    needed: int | None
    """Replicates with which the difference would be on one side of the margin with probability .8; None: unknown or over 1000."""
    combinations: tuple[FlippedCombination, ...]
    """All combinations that both sides were tested on, those that flipped in most pairs first."""
    solved: float
    problems: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The difference in words."""
        if self.difference is None:
            one = f"{self.effects[0]:+.3f}" if len(self.effects) == 1 else "unknown"
            return f"The difference in {self.score} is {one}: one replicate, so no interval."
        low, high, mean = self.difference.low, self.difference.high, self.difference.estimate
        if low > self.margin or high < -self.margin:
            sure = f"{'higher' if mean > 0 else 'lower'} by more than {self.margin:g}"
        elif -self.margin <= low and high <= self.margin:
            sure = f"the same within {self.margin:g}"
        else:
            sure = f"not decided at a margin of {self.margin:g}"
        return f"{self.score} of {self.second.name} is {sure}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]."

    def record(self) -> dict[str, Any]:
        """The comparison as plain values."""
        sides = {
            name: {
                "name": own.name,
                "store": str(own.store.path),
                "runs": len(own.runs),
                "mean": mean,
                "unpaired": alone,
            }
            for name, own, mean, alone in zip(
                ("first", "second"), (self.first, self.second), self.means, self.unpaired, strict=True
            )
        }
        kept = ("score", "margin", "answer", "effects", "pairs", "needed", "solved", "problems")
        rest = {name: getattr(self, name) for name in kept}
        difference = None if self.difference is None else dataclasses.asdict(self.difference)
        lists = {
            name: [dataclasses.asdict(each) for each in getattr(self, name)] for name in ("settings", "combinations")
        }
        return sides | rest | {"difference": difference} | lists

    def __repr__(self) -> str:
        rows = [f"  {each.name}: {_values(each.first)} -> {_values(each.second)}" for each in self.settings]
        return "\n".join([f"{self.first.name} against {self.second.name}", self.answer, *rows])

    def _repr_html_(self) -> str:
        rows = [(each.name, _values(each.first), _values(each.second)) for each in self.settings]
        table = _html.table(["setting that differs", self.first.name, self.second.name], rows)
        return _html.card(self.answer, table)


def _values(values: tuple[Any, ...]) -> str:
    shown = ", ".join("none" if value is None else str(value) for value in values[:6])
    return shown + (f", ... ({len(values)})" if len(values) > 6 else "")


def compare(
    first: Side, second: Side, *, score: str = "score_held_out", margin: float = MARGIN, solved: float = SOLVED
) -> Comparison:
    """Compare two groups of runs.

    Runs are paired where they share their seeds and every setting that has a value in common on both sides. Differences
    of one replicate (the same seeds) are averaged, and the interval is over replicates. Where no seeds are shared, means
    of replicates are compared without pairs.

    Args:
        first: Runs, from `side`.
        second: The runs that are compared with them.
        score: The number that is compared.
        margin: The difference that matters.
        solved: The score from which a combination counts as solved.

    Returns:
        The comparison.

    Example:
        ```python
        found = compare(side(store, "width = 64"), side(store, "width = 128"))
        found.answer
        ```
    """
    if not (math.isfinite(margin) and margin >= 0):
        raise BadInput(f"The margin is {margin}; expected a number from 0 up.", fix="--margin 0.05")
    common = set(first.runs) & set(second.runs)
    if common and first.store.path.resolve() == second.store.path.resolve():
        what = f"{len(common)} runs are on both sides"
        raise BadInput(f"{what}, e.g. {min(common)}.", fix="choose sides that have no run in common")
    sides = [_read(own) for own in (first, second)]
    scored = [name for own in sides for run in own.values() for name, value in run.numbers.items()]
    if score not in scored:
        raise BadInput(f"No run has a number called {score!r}.", fix=did_you_mean(score, set(scored)))
    settings = _different(*sides)
    apart = {each.name for each in settings if each.apart}
    groups = [_grouped(own, apart, score) for own in sides]
    keys = [key for key in groups[0] if key in groups[1]]
    pairs: list[Pair] = [(tuple(groups[0][key]), tuple(groups[1][key])) for key in keys]
    partners = [{run for pair in pairs for run in pair[place]} for place in (0, 1)]
    if pairs:
        effects = _effects(sides, pairs, score)
        interval = t_interval(effects) if len(effects) > 1 else None
        needed = needed_replicates("greater", margin, effects) if margin > 0 else None
    else:
        effects, needed = [], None
        interval = _welch(*(_replicates(own, score) for own in sides))
    compared = [
        [run for run in own.values() if not pairs or run.name in held]
        for own, held in zip(sides, partners, strict=True)
    ]
    return Comparison(
        first=first,
        second=second,
        score=score,
        margin=margin,
        settings=tuple(settings),
        means=tuple(_mean([run.numbers.get(score) for run in runs]) for runs in compared),  # type: ignore[arg-type]
        difference=interval,
        effects=tuple(effects),
        pairs=len(pairs),
        unpaired=tuple(len(own) - len(held) for own, held in zip(sides, partners, strict=True)),  # type: ignore[arg-type]
        needed=needed,
        combinations=tuple(flipped((first.store, second.store), pairs, solved)),
        solved=solved,
        problems=tuple(dict.fromkeys([*first.store.problems, *second.store.problems])),
    )


@dataclasses.dataclass(frozen=True)
class _Run:
    name: str
    settings: dict[str, Any]
    numbers: dict[str, float]

    @property
    def seeds(self) -> str:
        return _key({name: value for name, value in self.settings.items() if name.startswith(SEEDS)})


def _read(own: Side) -> dict[str, _Run]:
    """The sound runs of a side, by their names, from their files."""
    found = {}
    records = {record["run"]: record for record in tables.run_records(own.store, own.runs)}
    for run in own.store.runs(own.runs):
        record = records.get(run.run_id, {})
        numbers = {
            name: float(value)
            for name, value in record.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        }
        found[run.run_id] = _Run(run.run_id, tables.settings_of(run.manifest), numbers)
    if not found:
        raise BadInput(
            f"None of the runs of {own.name!r} can be read.", fix=f"recombine doctor --store {own.store.path}"
        )
    return found


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _different(first: Mapping[str, _Run], second: Mapping[str, _Run]) -> list[DifferentSetting]:
    names = dict.fromkeys(name for own in (first, second) for run in own.values() for name in run.settings)
    found = []
    for name in names:
        if name.startswith(SEEDS):
            continue
        values = [
            {_key(run.settings.get(name)): run.settings.get(name) for run in own.values()} for own in (first, second)
        ]
        if values[0].keys() != values[1].keys():
            apart = values[0].keys().isdisjoint(values[1])
            before, after = (_in_order(own.values()) for own in values)
            found.append(DifferentSetting(name, before, after, apart))
    return found


def _in_order(values: Any) -> tuple[Any, ...]:
    return tuple(
        sorted(
            values,
            key=lambda value: (
                isinstance(value, str),
                value is None,
                value if isinstance(value, (int, float)) else 0,
                str(value),
            ),
        )
    )


def _grouped(own: Mapping[str, _Run], apart: set[str], score: str) -> dict[str, list[str]]:
    """The runs with a score, by their seeds and the settings that both sides can share."""
    found: dict[str, list[str]] = {}
    for run in own.values():
        if score in run.numbers:
            key = _key({name: value for name, value in run.settings.items() if name not in apart and value is not None})
            found.setdefault(key, []).append(run.name)
    return found


def _effects(sides: list[dict[str, _Run]], pairs: list[Pair], score: str) -> list[float]:
    """The mean difference of each replicate."""
    found: dict[str, list[float]] = {}
    for pair in pairs:
        means = [np.mean([own[run].numbers[score] for run in runs]) for own, runs in zip(sides, pair, strict=True)]
        found.setdefault(sides[0][pair[0][0]].seeds, []).append(float(means[1] - means[0]))
    return [float(np.mean(values)) for values in found.values()]


def _replicates(own: Mapping[str, _Run], score: str) -> list[float]:
    found: dict[str, list[float]] = {}
    for run in own.values():
        if score in run.numbers:
            found.setdefault(run.seeds, []).append(run.numbers[score])
    return [float(np.mean(values)) for values in found.values()]


def _welch(first: list[float], second: list[float]) -> Interval | None:
    """The interval of a difference of means of two groups that need not have one spread."""
    if min(len(first), len(second)) < 2:
        return None
    shares = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    mean, error = float(np.mean(second) - np.mean(first)), math.sqrt(sum(shares))
    own = sum(share**2 / (len(values) - 1) for share, values in zip(shares, (first, second), strict=True))
    freedom = sum(shares) ** 2 / own if own else len(first) + len(second) - 2
    low, high = t_bounds(mean, error, freedom + 1)
    return Interval(mean, float(low), float(high), len(first) + len(second), LEVEL, "Welch")


def _mean(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None
