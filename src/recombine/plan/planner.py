"""From a space, what is collected, a budget and constraints to the combinations that are worth collecting next."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from recombine.errors import BadInput
from recombine.plan.choosing import Choice, Progress, Rows, Task, choose, shortfall
from recombine.plan.costs import Costs, costs_of
from recombine.plan.wording import amount
from recombine.spaces.base import Space
from recombine.supports.certificate import Certificate, certify
from recombine.supports.covering import Forbidden, allowed
from recombine.supports.listed import Listed
from recombine.supports.rows import first_of_each
from recombine.supports.strategies import COVERING

STRENGTH = 2
"""What is covered unless another strength is asked for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """What to collect, in this order, and what is known of it before anything is trained."""

    space: Space
    combinations: Rows
    costs: tuple[float, ...]
    """What each costs, after the one before it."""
    cost: float
    """All of it."""
    certificate_before: Certificate | None
    """None where nothing is collected."""
    certificate_after: Certificate | None
    """None where nothing is collected and nothing planned."""
    strength: int
    covered_before: int
    """Interactions of the strength that are met by what is collected."""
    covered: int
    """Those that are met with the plan."""
    coverable: int
    """Those that the constraints leave."""
    total: int
    notes: tuple[str, ...]
    """What else is to be known: sentences."""


def make_plan(
    space: Space,
    *,
    collected: Rows | None = None,
    strength: int | None = None,
    budget: float | None = None,
    forbidden: Iterable[Forbidden] = (),
    include: Iterable[Iterable[Forbidden]] = (),
    costs: Costs | None = None,
    strategy: str = COVERING,
    seed: int | None = None,
    on: Progress | None = None,
) -> Plan:
    """The combinations to collect next.

    With a strength and no budget: as many as it takes to cover all that the constraints allow. With a budget and no
    strength: all of it is spent, pairs first. With both: whichever ends first. `include` has for each partial
    combination that must occur what is forbidden where it does not.
    """
    notes: list[str] = []
    forbidden = tuple(forbidden)
    task = Task(
        space=space,
        collected=_checked_rows(space, collected, forbidden, notes),
        strength=_checked_strength(space, strength),
        until_covered=budget is None or strength is not None,
        budget=math.inf if budget is None else _checked_budget(budget),
        forbidden=forbidden,
        include=tuple(tuple(one) for one in include),
        costs=costs_of(space) if costs is None else costs,
        strategy=strategy,
        seed=seed,
        on=on,
    )
    choice = choose(task, notes)
    rows = choice.rows
    each = task.costs.each(rows, task.collected[-1] if len(task.collected) else None)
    cost = float(each.sum())
    return Plan(
        space=space,
        combinations=rows,
        costs=tuple(float(one) for one in each),
        cost=cost,
        certificate_before=_certificate(task, task.collected),
        certificate_after=_certificate(task, first_of_each(np.concatenate([task.collected, rows]))),
        strength=task.strength,
        covered_before=choice.before,
        covered=choice.covered,
        coverable=choice.coverable,
        total=choice.total,
        notes=(*notes, *_remarks(task, choice, cost)),
    )


def _remarks(task: Task, choice: Choice, cost: float) -> list[str]:
    """What the numbers come to."""
    said = []
    ruled_out = choice.total - choice.coverable
    if ruled_out:
        said.append(f"The constraints rule out {ruled_out} of {choice.total} {task.things}.")
    short = shortfall(task, choice)
    if short is not None:
        return [*said, short]
    if not len(choice.rows) and len(task.collected):
        said.append(
            f"All {choice.coverable} {task.things} that can meet are met: nothing needs to be collected."
        )
    elif math.isfinite(task.budget) and cost < task.budget - 1e-9:
        left = f"{amount(cost)} of {amount(task.budget)} {task.costs.unit} are spent"
        why = (
            "all is covered"
            if task.until_covered
            else "nothing more fits the budget, or there is nothing more"
        )
        said.append(f"{left}: {why}.")
    return said


def _certificate(task: Task, rows: Rows) -> Certificate | None:
    if not len(rows):
        return None
    return certify(Listed(task.space, rows), tuple(sorted({1, 2, task.strength})))


def _checked_rows(
    space: Space, collected: Rows | None, forbidden: tuple[Forbidden, ...], notes: list[str]
) -> Rows:
    """What is collected, each once, with notes on what is odd about it."""
    if collected is None or not len(collected):
        return np.empty((0, space.slots), np.int32)
    rows = Listed(space, first_of_each(np.asarray(collected, np.int32))).rows
    # The last one counts as such where changes cost, though it may be there before.
    if not np.array_equal(rows[-1], collected[-1]):
        same = np.all(rows == np.asarray(collected)[-1], axis=1)
        rows = np.concatenate([rows[~same], rows[same]])
    if forbidden:
        broken = int((~allowed(space, rows, forbidden)).sum())
        if broken:
            notes.append(
                f"{broken} of {len(rows)} collected combinations break the constraints; they count all the same."
            )
    return rows


def _checked_strength(space: Space, strength: int | None) -> int:
    if strength is None:
        return min(STRENGTH, space.slots)
    if not 1 <= strength <= space.slots:
        raise BadInput(
            f"Strength {strength} was asked for, but no combination has more than {space.slots} parts.",
            fix=f"choose a strength of 1 to {space.slots}",
        )
    return strength


def _checked_budget(budget: float) -> float:
    if not (math.isfinite(budget) and budget >= 0):
        raise BadInput(f"The budget must be a number from 0 on, got {budget}.")
    return float(budget)
