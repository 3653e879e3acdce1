"""Which combinations a plan has: by covering, by covering within costs, or by a published strategy."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean
from recombine.plan.costs import Costs
from recombine.plan.ordering import covered_by, ordered, weighable
from recombine.plan.wording import amount, interactions_of
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace
from recombine.supports.covering import Covering, Forbidden, allowed, cover
from recombine.supports.rows import RowSet, first_of_each
from recombine.supports.strategies import COVERING, STRATEGIES, combinations, length
from recombine.supports.walk import walk, walkable

MOST = 200_000
"""So many combinations one plan may have."""
PATIENCE = 20_000
"""So many combinations of a strategy in a row that cannot be taken, and it is given up."""
ROUND = 200
"""So many combinations at a time are added when all is covered and budget is left."""

Rows = Int[np.ndarray, "_ slots"]
Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """All that a plan is made from."""

    space: Space
    collected: Rows
    strength: int
    until_covered: bool
    """Stop when all is covered that can be, though the budget may reach further."""
    budget: float
    forbidden: tuple[Forbidden, ...]
    include: tuple[tuple[Forbidden, ...], ...]
    """For each partial combination that must occur, what is forbidden where it does not."""
    costs: Costs
    strategy: str
    seed: int | None
    on: Progress | None

    def cover(self, already: Rows, number: int | None, more: Sequence[Forbidden] = ()) -> Covering:
        """The covering of the rest."""
        return cover(
            self.space,
            strength=self.strength,
            number=number,
            already=already if len(already) else None,
            forbidden=(*self.forbidden, *more),
            seed=self.seed or 0,
            on=self.on,
        )

    @property
    def things(self) -> str:
        """What is covered, in the plural."""
        return interactions_of(self.strength, subsets=not isinstance(self.space, ProductSpace))


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The combinations, and what is to be said of them."""

    rows: Rows
    before: int
    """Interactions that are met by what is collected."""
    covered: int
    coverable: int
    total: int
    needed: int | None = None
    """How many combinations cover all that can be; None where nobody counted."""


def choose(task: Task, notes: list[str]) -> Choice:
    """The combinations to collect, in the order in which they help most."""
    if task.strategy != COVERING:
        if task.include:
            raise BadInput(
                f"The strategy {task.strategy!r} knows nothing of combinations to include.",
                fix="leave them out, or take the strategy covering",
            )
        return _counted(task, _by_strategy(task, notes))
    begun = _included(task, notes)
    if task.costs.kind == "one":
        return _by_number(task, begun)
    if (
        task.costs.kind == "changes"
        and isinstance(task.space, ProductSpace)
        and walkable(task.space, task.strength)
    ):
        return _by_walking(task, begun)
    return _by_cost(task, begun, notes)


def _together(task: Task, rows: Rows) -> Rows:
    return np.concatenate([task.collected, rows])


def _spent(task: Task, rows: Rows) -> float:
    last = task.collected[-1] if len(task.collected) else None
    return float(task.costs.each(rows, last).sum()) if len(rows) else 0.0


def _counted(task: Task, rows: Rows, whole: Covering | None = None, needed: int | None = None) -> Choice:
    """The choice with what it covers. `whole` is any covering of this task: it knows what can be covered."""
    every = first_of_each(_together(task, rows))
    if whole is None:
        total = task.space.interactions(task.strength)
        whole = task.cover(every, 0) if task.forbidden else None
        coverable = total if whole is None else whole.coverable
    else:
        total, coverable = whole.total, whole.coverable
    met = [covered_by(task.space, one, task.strength) for one in (task.collected, every)]
    before, covered = (min(one, coverable) for one in met)
    return Choice(rows, before, covered, coverable, total, needed)


def _included(task: Task, notes: list[str]) -> Rows:
    """A combination for each partial one that must occur and is not there yet."""
    rows = np.empty((0, task.space.slots), np.int32)
    for lacking in task.include:
        there = _together(task, rows)
        if len(there) and allowed(task.space, there, lacking).any():
            continue
        found = task.cover(there, 1, lacking).rows
        tried = np.concatenate([rows, found])
        if _spent(task, tried) > task.budget:
            notes.append("The budget ends before all is included that must be.")
            break
        rows = tried
    return rows.astype(np.int32)


def _by_number(task: Task, begun: Rows) -> Choice:
    """Each combination costs one."""
    there = _together(task, begun)
    if math.isinf(task.budget):
        whole = task.cover(there, None)
        rows = np.concatenate([begun, whole.rows])
        return _counted(task, rows, whole, len(rows))
    left = int(min(task.budget, task.space.size)) - len(begun)
    if left > MOST:
        raise BadInput(
            f"A plan has at most {MOST} combinations, {in_words(left)} were asked for.",
            fix="lower the budget",
        )
    if task.until_covered:
        whole = task.cover(there, None)
        if len(whole.rows) <= left:
            rows = np.concatenate([begun, whole.rows])
            return _counted(task, rows, whole, len(rows))
        needed = len(begun) + len(whole.rows)
    else:
        needed = None
    if left <= 0:
        return _counted(task, begun, needed=needed)
    some = task.cover(there, left)
    return _counted(task, np.concatenate([begun, some.rows]), some, needed)


def _by_cost(task: Task, begun: Rows, notes: list[str]) -> Choice:
    """Levels cost, or changes do where no walk is possible: a covering in the order of what is met for the cost."""
    there = _together(task, begun)
    whole = task.cover(there, None)
    left = task.budget - _spent(task, begun)
    if weighable(task.space, len(whole.rows) + len(there), task.strength):
        order = ordered(
            task.space, whole.rows, task.costs, strength=task.strength, already=there, budget=left
        )
        added = whole.rows[order]
    else:
        notes.append(
            f"There are too many {task.things} to weigh them against costs: the order is by what is met."
        )
        added = _fitting(task, begun, whole.rows)
    rows = np.concatenate([begun, added])
    needed = len(begun) + len(whole.rows)
    if not task.until_covered:
        rows = _spend_rest(task, rows)
    return _counted(task, rows, whole, needed)


def _fitting(task: Task, begun: Rows, rows: Iterable[np.ndarray], most: int = MOST) -> Rows:
    """Of these, one after the other, what fits the budget after what was begun; the first that does not ends it."""
    last = begun[-1] if len(begun) else task.collected[-1] if len(task.collected) else None
    left = task.budget - _spent(task, begun)
    taken: list[np.ndarray] = []
    for row in itertools.islice(rows, most):
        left -= float(task.costs.next(row[None], last)[0])
        if left < -1e-9:
            break
        taken.append(row)
        last = row
    return np.array(taken, np.int32).reshape(len(taken), task.space.slots)


def _spend_rest(task: Task, rows: Rows) -> Rows:
    """More combinations, with what is covered least, while the budget lasts."""
    while len(rows) < MOST:
        more = _fitting(task, rows, task.cover(_together(task, rows), ROUND).rows)
        if not len(more):
            break
        rows = np.concatenate([rows, more])
    return rows


def _by_walking(task: Task, begun: Rows) -> Choice:
    """Changes of factors cost: few of them from one combination to the next."""
    assert isinstance(task.space, ProductSpace)
    there, rows, whole = _together(task, begun), begun, None
    if not len(there):
        whole = task.cover(there, 1)
        rows = _fitting(task, rows, whole.rows)
        there = _together(task, rows)
        if not len(rows):
            return _counted(task, rows, whole)
    settings: dict[str, Any] = {"strength": task.strength, "forbidden": task.forbidden}
    unseen = task.space.width - len(np.unique(there))
    short = task.budget - _spent(task, rows) < unseen
    steps = walk(task.space, there[-1], already=there, spread=short, **settings)
    rows = np.concatenate([rows, _fitting(task, rows, _told(task, steps))])
    if task.forbidden:
        # Steps of a few changes may all be forbidden where a jump is not.
        whole = task.cover(_together(task, rows), None)
        every = _together(task, rows)
        left = task.budget - _spent(task, rows)
        order = ordered(
            task.space, whole.rows, task.costs, strength=task.strength, already=every, budget=left
        )
        rows = np.concatenate([rows, whole.rows[order]])
    while not task.until_covered and len(rows) < MOST:
        every = _together(task, rows)
        again = walk(task.space, every[-1], already=every[:0], avoid=every, **settings)
        more = _fitting(task, rows, _told(task, again), MOST - len(rows))
        if not len(more):
            break
        rows = np.concatenate([rows, more])
    return _counted(task, rows, whole)


def _told(task: Task, rows: Iterable[np.ndarray]) -> Iterable[np.ndarray]:
    """The same rows, each told to whoever waits. How many there will be is not known: no end is named."""
    for place, row in enumerate(rows):
        if task.on is not None:
            task.on(place, 0)
        yield row


def _by_strategy(task: Task, notes: list[str]) -> Rows:
    if task.strategy not in STRATEGIES:
        raise BadInput(
            f"There is no strategy called {task.strategy!r}.",
            fix=did_you_mean(task.strategy, (COVERING, *STRATEGIES)),
        )
    if not isinstance(task.space, ProductSpace):
        raise BadInput(
            f"The strategy {task.strategy!r} varies factors, and subsets have none.",
            fix="take the strategy covering",
        )
    number = length(task.strategy, task.space)
    if math.isinf(task.budget) and (number is None or number > MOST):
        said = "has no end" if number is None else f"has {in_words(number)} combinations here"
        raise BadInput(f"The strategy {task.strategy!r} {said}.", fix="say how much to collect with a budget")
    base = task.collected[-1] if len(task.collected) else None
    rows = combinations(task.strategy, task.space, base=base, seed=task.seed)
    left_out = [0]
    taken = _fitting(task, task.collected[:0], _usable(task, rows, left_out))
    if left_out[0]:
        notes.append(f"{left_out[0]} combinations of {task.strategy} break the constraints and are left out.")
    return taken


def _usable(task: Task, rows: Iterable[np.ndarray], left_out: list[int]) -> Iterable[np.ndarray]:
    """Those that are allowed and neither collected nor planned already; `left_out` counts the forbidden ones."""
    seen, idle = RowSet(task.collected), 0
    met = set[bytes]()
    for row in rows:
        idle += 1
        if idle > PATIENCE or len(met) + len(seen) >= task.space.size:
            return
        if row.tobytes() in met or seen.contains(row[None])[0]:
            continue
        met.add(row.tobytes())
        if task.forbidden and not allowed(task.space, row[None], task.forbidden)[0]:
            left_out[0] += 1
            continue
        idle = 0
        yield row


def shortfall(task: Task, choice: Choice) -> str | None:
    """What a budget leaves unmet, in a sentence; None if it leaves nothing."""
    missing = choice.coverable - choice.covered
    if missing <= 0:
        return None
    share = f"{choice.covered / choice.coverable * 100:.1f} %"
    text = f"{choice.covered} of {choice.coverable} {task.things} are met ({share}), {missing} are not."
    if math.isinf(task.budget):
        return text
    text = f"The budget of {amount(task.budget)} {task.costs.unit} is below what full coverage needs: {text}"
    return text if choice.needed is None else f"{text} For all of them it takes {choice.needed} combinations."
