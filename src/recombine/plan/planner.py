"""Make a plan: which combinations to collect next, from a space, a budget and constraints."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recombine import _html
from recombine._show import shorten
from recombine.errors import BadInput
from recombine.plan.choosing import Choice, Problem, Progress, Rows, choose, shortfall
from recombine.plan.collected import as_names, as_rows, header, read_collected
from recombine.plan.constraints import compile_constraints, compiled
from recombine.plan.costs import make_costs
from recombine.plan.stronger import make_groups
from recombine.plan.wording import amount, certificate_rows, interactions_of
from recombine.spaces import ProductSpace, Space
from recombine.spaces.rows import checked_rows, first_of_each
from recombine.supports.covering import COVERING, Forbidden, allowed

if TYPE_CHECKING:
    from recombine.supports.certificate import Certificate

STRENGTH = 2
"""The default strength: plans cover pairs."""
SHOWN = 10
"""The number of combinations that the `repr` of a plan shows."""


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The combinations to collect, in this order, and what is known about them before any training."""

    space: Space
    collected: Rows
    """The combinations that exist already, each once."""
    combinations: Rows
    """The combinations to collect, as rows. `names` has them as text."""
    costs: tuple[float, ...]
    """The cost of each combination, collected after the one before it."""
    cost: float
    """The total cost."""
    strength: int
    """The size of the interactions that the plan covers: 2 for pairs."""
    covered_before: int
    """The number of interactions that the collected combinations cover."""
    covered: int
    """The number of interactions that are covered with the plan."""
    coverable: int
    """The number of interactions that the constraints allow."""
    total: int
    """The number of interactions of the space."""
    notes: tuple[str, ...]
    """Further remarks, one sentence each."""

    @functools.cached_property
    def certificate_before(self) -> Certificate | None:
        """The certificate of what is collected already. None if nothing is."""
        return self._certificate(self.collected)

    @functools.cached_property
    def certificate_after(self) -> Certificate | None:
        """The certificate of collected and planned combinations together. None if there are none."""
        return self._certificate(first_of_each(np.concatenate([self.collected, self.combinations])))

    def _certificate(self, rows: Rows) -> Certificate | None:
        if not len(rows):
            return None
        # Imported and computed when it is asked for: both may take longer than the plan.
        from recombine.supports.certificate import certify
        from recombine.supports.listed import Listed

        return certify(Listed(self.space, rows), tuple(sorted({1, 2, self.strength})))

    @property
    def names(self) -> list[list[str]] | list[list[int]]:
        """The combinations as lists of values, in the order of the factors, or as lists of modules."""
        return as_names(self.combinations, self.space)

    def _title(self) -> str:
        things = interactions_of(self.strength, subsets=not isinstance(self.space, ProductSpace))
        return (
            f"Plan: collect {len(self.combinations)} combinations at a cost of {amount(self.cost)}; "
            f"{self.covered} of {self.coverable} {things} covered, {self.covered_before} before"
        )

    def _hidden(self) -> str:
        return f"and {len(self.combinations) - SHOWN} more" if len(self.combinations) > SHOWN else ""

    def __repr__(self) -> str:
        shown = [shorten(", ".join(map(str, row)), 100) for row in self.names[:SHOWN]]
        hidden = [self._hidden()] if self._hidden() else []
        return "\n".join([self._title(), *(f"  {line}" for line in [*shown, *hidden, *self.notes])])

    def _repr_html_(self) -> str:
        columns = header(self.space)
        rows = [[*row, *[""] * (len(columns) - len(row))] for row in self.names[:SHOWN]]
        before, after = (
            certificate_rows(certificate, self.space, self.strength)
            for certificate in (self.certificate_before, self.certificate_after)
        )
        facts = [(name, old, new) for (name, old), (_, new) in zip(before, after, strict=True)]
        return _html.card(
            self._title(),
            _html.table(columns, rows),
            *([_html.paragraph(self._hidden())] if self._hidden() else []),
            _html.table(("certificate", "before", "after"), facts),
            *map(_html.paragraph, self.notes),
        )


def make_plan(
    space: Space,
    *,
    collected: Rows | Sequence[Any] | Path | None = None,
    strength: int | None = None,
    budget: float | None = None,
    forbid: Iterable[str] = (),
    require: Iterable[str] = (),
    include: Iterable[str] = (),
    stronger: Mapping[Sequence[str], int] | Iterable[tuple[Sequence[str], int]] = (),
    cost: str | None = None,
    costs: Mapping[str, Any] | None = None,
    strategy: str | None = None,
    seed: int | None = None,
    notes: Iterable[str] = (),
    progress: Progress | None = None,
) -> Plan:
    """Choose the combinations to collect next.

    With a strength and no budget, the plan covers every interaction that the constraints allow. With a budget and no
    strength, it spends the whole budget, pairs first. With both, it stops at whichever comes first. The names of the
    arguments are those of a plan file, so `make_plan(**vars(read_spec(path)))` makes the plan of a file.

    Args:
        space: The space of all combinations.
        collected: What is there already: rows, lists of values, or a table to read.
        strength: The size of the interactions to cover: 2 for pairs, 3 for sets of three.
        budget: The most that the plan may cost.
        forbid: Expressions that no collected combination may satisfy, for example "colour=red and shape=cube".
        require: Expressions that every collected combination must satisfy.
        include: Expressions that at least one combination each must satisfy.
        stronger: Groups of factors with a strength of their own: `{("a", "b", "c"): 3}`.
        cost: "one" (each combination costs 1), "levels" or "changes" (each changed factor costs 1).
        costs: The cost of levels: a number for each factor, or for each level of a factor.
        strategy: A published strategy such as "stair" instead of the planner's own, "covering".
        seed: The seed of random choices. Equal seeds give equal plans.
        notes: Remarks about the request, such as those of a model file, which the plan repeats.
        progress: Called with the number of interactions that are covered and that can be, after each combination.

    Returns:
        The plan. Its certificates before and after are computed on first use.

    Example:
        ```python
        space = ProductSpace(factors={"colour": ["red", "blue"], "shape": ["cube", "ball", "cone"]})
        make_plan(space, strength=2, forbid=["colour=red and shape=cube"]).names
        ```
    """
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise BadInput(f"The budget must be a number of at least 0, got {budget}.")
    notes = list(notes)
    rows = _as_rows(space, collected)
    forbidden = compile_constraints(forbid, require, space)
    problem = Problem(
        include=tuple(tuple(compiled(text, space, hold=False)) for text in include),
        costs=make_costs(space, cost, costs),
        space=space,
        collected=_checked_rows(space, rows, forbidden, notes),
        strength=_checked_strength(space, strength),
        until_covered=budget is None or strength is not None,
        budget=math.inf if budget is None else float(budget),
        forbidden=forbidden,
        strategy=strategy or COVERING,
        seed=seed,
        progress=progress,
        stronger=make_groups(space, stronger),
    )
    choice = choose(problem, notes)
    rows = choice.rows
    each = problem.costs.in_order(rows, problem.collected[-1] if len(problem.collected) else None)
    total = float(each.sum())
    return Plan(
        space=space,
        collected=problem.collected,
        combinations=rows,
        costs=tuple(float(price) for price in each),
        cost=total,
        strength=problem.strength,
        covered_before=choice.before,
        covered=choice.covered,
        coverable=choice.coverable,
        total=choice.total,
        notes=(*notes, *_remarks(problem, choice, total)),
    )


def _as_rows(space: Space, collected: Rows | Sequence[Any] | Path | None) -> Rows | None:
    if isinstance(collected, Path):
        return read_collected(collected, space)
    return collected if collected is None or isinstance(collected, np.ndarray) else as_rows(collected, space)


def _remarks(problem: Problem, choice: Choice, cost: float) -> list[str]:
    """Sentences about coverage and budget."""
    remarks = []
    ruled_out = choice.total - choice.coverable
    if ruled_out:
        remarks.append(f"The constraints rule out {ruled_out} of {choice.total} {problem.things}.")
    short = shortfall(problem, choice)
    if short is not None:
        return [*remarks, short]
    if not len(choice.rows) and len(problem.collected):
        remarks.append(
            f"All {choice.coverable} {problem.things} that are possible are covered: nothing needs to be collected."
        )
    elif math.isfinite(problem.budget) and cost < problem.budget - 1e-9:
        spent = f"The plan spends {amount(cost)} of {amount(problem.budget)} {problem.costs.unit}"
        why = (
            "everything is covered"
            if problem.until_covered
            else "no further combination fits the budget, or none is left"
        )
        remarks.append(f"{spent}: {why}.")
    return remarks


def _checked_rows(space: Space, collected: Rows | None, forbidden: tuple[Forbidden, ...], notes: list[str]) -> Rows:
    """The collected combinations without repeats, with a note where some break the constraints."""
    if collected is None or not len(collected):
        return np.empty((0, space.slots), np.int32)
    rows = checked_rows(space, first_of_each(np.asarray(collected, np.int32)))
    # Where changes cost, the plan continues from the last combination, so it stays last also where it repeats.
    if not np.array_equal(rows[-1], collected[-1]):
        same = np.all(rows == np.asarray(collected)[-1], axis=1)
        rows = np.concatenate([rows[~same], rows[same]])
    if forbidden:
        broken = int((~allowed(space, rows, forbidden)).sum())
        if broken:
            notes.append(
                f"{broken} of {len(rows)} collected combinations break the constraints. They count as collected."
            )
    return rows


def _checked_strength(space: Space, strength: int | None) -> int:
    if strength is None:
        return min(STRENGTH, space.slots)
    if not 1 <= strength <= space.slots:
        raise BadInput(
            f"Strength {strength} is not possible: a combination has at most {space.slots} constituents.",
            fix=f"choose a strength of 1 to {space.slots}",
        )
    return strength
