"""Choose the combinations of a plan: by covering, by covering within costs, or by a published strategy."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, did_you_mean
from recombine.plan.costs import Costs, covered_by, ordered, weighable
from recombine.plan.stronger import Group, stronger_rows
from recombine.plan.wording import amount, interactions_of
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace
from recombine.spaces.rows import RowSet, first_of_each
from recombine.supports.covering import COVERING, Covering, Forbidden, allowed, cover
from recombine.supports.covering.walk import walk, walkable

MOST = 200_000
"""The most combinations that one plan may have."""
PATIENCE = 20_000
"""A strategy ends after this many combinations in a row that cannot be taken."""
ROUND = 200
"""The number of combinations added at a time when everything is covered and budget is left."""

Rows = Int[np.ndarray, "_ slots"]
Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a plan depends on."""

    space: Space
    collected: Rows
    strength: int
    until_covered: bool
    """Stop when everything that is possible is covered, even if budget is left."""
    budget: float
    forbidden: tuple[Forbidden, ...]
    include: tuple[tuple[Forbidden, ...], ...]
    """For each partial combination that must occur: the constraints that only combinations with it satisfy."""
    costs: Costs
    strategy: str
    seed: int | None
    progress: Progress | None
    stronger: tuple[Group, ...] = ()
    """Groups of factors with a higher strength."""

    def cover(self, already: Rows, number: int | None, more: Sequence[Forbidden] = ()) -> Covering:
        """A covering of everything that `already` does not cover."""
        return cover(
            self.space,
            strength=self.strength,
            number=number,
            already=already if len(already) else None,
            forbidden=(*self.forbidden, *more),
            seed=self.seed or 0,
            progress=self.progress,
        )

    @property
    def things(self) -> str:
        """The name of what is covered, in the plural."""
        return interactions_of(self.strength, subsets=not isinstance(self.space, ProductSpace))


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
    """The chosen combinations, and how much they cover."""

    rows: Rows
    before: int
    """The number of interactions that the collected combinations cover."""
    covered: int
    coverable: int
    total: int
    needed: int | None = None
    """The number of combinations that cover everything possible; None where it was not computed."""


def choose(problem: Problem, notes: list[str]) -> Choice:
    """The combinations to collect, the most useful first."""
    if problem.strategy != COVERING:
        if problem.include or problem.stronger:
            what = "include given combinations" if problem.include else "cover groups of factors more strongly"
            raise BadInput(
                f"The strategy {problem.strategy!r} cannot {what}.", fix="remove that, or use the strategy covering"
            )
        return _counted(problem, _by_strategy(problem, notes))
    begun = _included(problem, notes)
    if problem.costs.kind == "one":
        return _by_number(problem, begun)
    if (
        problem.costs.kind == "changes"
        and isinstance(problem.space, ProductSpace)
        and walkable(problem.space, problem.strength)
    ):
        return _by_walking(problem, begun)
    return _by_cost(problem, begun, notes)


def _together(problem: Problem, rows: Rows) -> Rows:
    return np.concatenate([problem.collected, rows])


def _spent(problem: Problem, rows: Rows) -> float:
    last = problem.collected[-1] if len(problem.collected) else None
    return float(problem.costs.in_order(rows, last).sum()) if len(rows) else 0.0


def _counted(problem: Problem, rows: Rows, whole: Covering | None = None, needed: int | None = None) -> Choice:
    """The choice with its coverage. `whole` is any covering of this problem, which knows what can be covered."""
    every = first_of_each(_together(problem, rows))
    if whole is None:
        total = problem.space.interactions(problem.strength)
        whole = problem.cover(every, 0) if problem.forbidden else None
        coverable = total if whole is None else whole.coverable
    else:
        total, coverable = whole.total, whole.coverable
    counts = [covered_by(problem.space, part, problem.strength) for part in (problem.collected, every)]
    before, covered = (min(count, coverable) for count in counts)
    return Choice(rows, before, covered, coverable, total, needed)


def _included(problem: Problem, notes: list[str]) -> Rows:
    """Combinations for what must occur and is not collected yet: partial combinations, and groups of higher strength."""
    rows = np.empty((0, problem.space.slots), np.int32)
    for lacking in problem.include:
        there = _together(problem, rows)
        if len(there) and allowed(problem.space, there, lacking).any():
            continue
        longer = np.concatenate([rows, problem.cover(there, 1, lacking).rows])
        if _spent(problem, longer) > problem.budget:
            notes.append("The budget is too small for all combinations that must be included.")
            break
        rows = longer
    if problem.stronger:
        given = problem.forbidden, problem.seed or 0, problem.strength
        more, sentences = stronger_rows(problem.space, problem.stronger, _together(problem, rows), *given)
        fitting = _fitting(problem, rows, more)
        short = len(fitting) < len(more)
        notes += ["The budget is too small for the groups of higher strength."] if short else sentences
        rows = np.concatenate([rows, fitting])
    return rows.astype(np.int32)


def _by_number(problem: Problem, begun: Rows) -> Choice:
    """Each combination costs one."""
    there = _together(problem, begun)
    if math.isinf(problem.budget):
        whole = problem.cover(there, None)
        rows = np.concatenate([begun, whole.rows])
        return _counted(problem, rows, whole, len(rows))
    left = int(min(problem.budget, problem.space.size)) - len(begun)
    if left > MOST:
        raise BadInput(
            f"A plan has at most {MOST} combinations, but the budget allows {in_words(left)}.", fix="lower the budget"
        )
    needed = None
    if problem.until_covered:
        whole = problem.cover(there, None)
        needed = len(begun) + len(whole.rows)
        if len(whole.rows) <= left:
            return _counted(problem, np.concatenate([begun, whole.rows]), whole, needed)
    if left <= 0:
        return _counted(problem, begun, needed=needed)
    some = problem.cover(there, left)
    return _counted(problem, np.concatenate([begun, some.rows]), some, needed)


def _by_cost(problem: Problem, begun: Rows, notes: list[str]) -> Choice:
    """Levels cost, or changes do where no walk is possible: a covering, ordered by what each covers per cost."""
    there = _together(problem, begun)
    whole = problem.cover(there, None)
    left = problem.budget - _spent(problem, begun)
    if weighable(problem.space, len(whole.rows) + len(there), problem.strength):
        order = ordered(problem.space, whole.rows, problem.costs, strength=problem.strength, already=there, budget=left)
        added = whole.rows[order]
    else:
        notes.append(f"There are too many {problem.things} to compare with costs: the order depends on coverage alone.")
        added = _fitting(problem, begun, whole.rows)
    rows = np.concatenate([begun, added])
    needed = len(begun) + len(whole.rows)
    if not problem.until_covered:
        rows = _spend_rest(problem, rows)
    return _counted(problem, rows, whole, needed)


def _fitting(problem: Problem, begun: Rows, rows: Iterable[np.ndarray], most: int = MOST) -> Rows:
    """The rows, in order, that fit the budget after `begun`. The first that does not fit ends the list."""
    last = begun[-1] if len(begun) else problem.collected[-1] if len(problem.collected) else None
    left = problem.budget - _spent(problem, begun)
    taken: list[np.ndarray] = []
    for row in itertools.islice(rows, most):
        left -= float(problem.costs.following(row[None], last)[0])
        if left < -1e-9:
            break
        taken.append(row)
        last = row
    return np.array(taken, np.int32).reshape(len(taken), problem.space.slots)


def _spend_rest(problem: Problem, rows: Rows) -> Rows:
    """Add combinations with the least covered interactions while the budget lasts."""
    while len(rows) < MOST:
        more = _fitting(problem, rows, problem.cover(_together(problem, rows), ROUND).rows)
        if not len(more):
            break
        rows = np.concatenate([rows, more])
    return rows


def _by_walking(problem: Problem, begun: Rows) -> Choice:
    """Changes of factors cost: the walk changes few factors from one combination to the next."""
    assert isinstance(problem.space, ProductSpace)
    there, rows, whole = _together(problem, begun), begun, None
    if not len(there):
        whole = problem.cover(there, 1)
        rows = _fitting(problem, rows, whole.rows)
        there = _together(problem, rows)
        if not len(rows):
            return _counted(problem, rows, whole)
    settings: dict[str, Any] = {"strength": problem.strength, "forbidden": problem.forbidden}
    unseen = problem.space.width - len(np.unique(there))
    short = problem.budget - _spent(problem, rows) < unseen
    steps = walk(problem.space, there[-1], already=there, spread=short, **settings)
    rows = np.concatenate([rows, _fitting(problem, rows, _reported(problem, steps))])
    if problem.forbidden:
        # All steps of few changes may be forbidden where a larger jump is allowed.
        whole = problem.cover(_together(problem, rows), None)
        every = _together(problem, rows)
        left = problem.budget - _spent(problem, rows)
        order = ordered(problem.space, whole.rows, problem.costs, strength=problem.strength, already=every, budget=left)
        rows = np.concatenate([rows, whole.rows[order]])
    while not problem.until_covered and len(rows) < MOST:
        every = _together(problem, rows)
        again = walk(problem.space, every[-1], already=every[:0], avoid=every, **settings)
        more = _fitting(problem, rows, _reported(problem, again), MOST - len(rows))
        if not len(more):
            break
        rows = np.concatenate([rows, more])
    return _counted(problem, rows, whole)


def _reported(problem: Problem, rows: Iterable[np.ndarray]) -> Iterable[np.ndarray]:
    """The same rows, with progress reported for each. The total is unknown, so it is reported as 0."""
    for index, row in enumerate(rows):
        if problem.progress is not None:
            problem.progress(index, 0)
        yield row


def _by_strategy(problem: Problem, notes: list[str]) -> Rows:
    # Not at the top: they are part of a support, which loads JAX.
    from recombine.supports.varied.strategies import STRATEGIES, combinations, length

    if problem.strategy not in STRATEGIES:
        raise BadInput(
            f"There is no strategy called {problem.strategy!r}.",
            fix=did_you_mean(problem.strategy, (COVERING, *STRATEGIES)),
        )
    if not isinstance(problem.space, ProductSpace):
        raise BadInput(
            f"The strategy {problem.strategy!r} needs factors, and subsets have none.", fix="use the strategy covering"
        )
    number = length(problem.strategy, problem.space)
    if math.isinf(problem.budget) and (number is None or number > MOST):
        extent = "has no end" if number is None else f"has {in_words(number)} combinations here"
        raise BadInput(f"The strategy {problem.strategy!r} {extent}.", fix="give a budget")
    base = problem.collected[-1] if len(problem.collected) else None
    rows = combinations(problem.strategy, problem.space, base=base, seed=problem.seed)
    left_out = [0]
    taken = _fitting(problem, problem.collected[:0], _usable(problem, rows, left_out))
    if left_out[0]:
        notes.append(f"{left_out[0]} combinations of {problem.strategy} break the constraints and are left out.")
    return taken


def _usable(problem: Problem, rows: Iterable[np.ndarray], left_out: list[int]) -> Iterable[np.ndarray]:
    """The rows that are allowed and not collected or planned yet. `left_out` counts the forbidden ones."""
    collected, idle = RowSet(problem.collected), 0
    visited = set[bytes]()
    for row in rows:
        idle += 1
        if idle > PATIENCE or len(visited) + len(collected) >= problem.space.size:
            return
        if row.tobytes() in visited or collected.contains(row[None])[0]:
            continue
        visited.add(row.tobytes())
        if problem.forbidden and not allowed(problem.space, row[None], problem.forbidden)[0]:
            left_out[0] += 1
            continue
        idle = 0
        yield row


def shortfall(problem: Problem, choice: Choice) -> str | None:
    """A sentence about what stays uncovered; None if everything is covered."""
    missing = choice.coverable - choice.covered
    if missing <= 0:
        return None
    share = f"{choice.covered / choice.coverable * 100:.1f} %"
    text = f"{choice.covered} of {choice.coverable} {problem.things} are covered ({share}), {missing} are not."
    if math.isinf(problem.budget):
        return text
    text = f"The budget of {amount(problem.budget)} {problem.costs.unit} is too small for full coverage: {text}"
    return text if choice.needed is None else f"{text} Full coverage takes {choice.needed} combinations."
