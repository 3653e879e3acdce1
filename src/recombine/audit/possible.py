"""Which combinations can exist: stated by the user, or asked about where the table suggests that some cannot."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from recombine.audit.atoms import Atoms, atoms_of, distinct
from recombine.audit.cells import NOTHING, Cells, Factor, remembered
from recombine.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from recombine.spaces.product import ProductSpace
    from recombine.supports.covering import Forbidden

COMMON = 5.0
"""A pair that never occurs is asked about if it would be expected in this many combinations."""
SURE = 0.05
"""It must also be expected so often that no pair of the table would be missing by chance, at this probability."""
MOST_ATOMS = 3_000
"""Tables with more values are not searched for such pairs."""
SHOWN = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Possible:
    """The combinations that a plan file allows."""

    space: ProductSpace
    forbidden: tuple[Forbidden, ...]
    title: str
    """The name of the file."""


def read_possible(path: str | Path) -> Possible:
    """Read the space and the constraints of a plan file (docs/planning.md).

    Args:
        path: The file, YAML or TOML.
    """
    from recombine.plan.constraints import compile_constraints
    from recombine.plan.spec import read_spec
    from recombine.spaces.product import ProductSpace

    spec, title = read_spec(Path(path)), Path(path).name
    if not isinstance(spec.space, ProductSpace):
        raise BadInput(
            f"{title} describes subsets, not factors with values.", fix="give factors: {colour: [red, blue]}"
        )
    return Possible(spec.space, compile_constraints(spec.forbid, spec.require, spec.space), title)


def with_possible(cells: Cells, possible: Possible) -> Cells:
    """Cells that know which combinations can exist. Raises BadInput if the table has other factors or values."""
    names = [name for name, _ in possible.space.factors]
    slots = list(dict.fromkeys(cells.slots))
    if any(factor.kind == "set" for factor in cells.factors):
        raise BadInput(f"{possible.title} describes factors, but the table has sets.", fix="leave out --space")
    if sorted(names) != sorted(slots):
        raise BadInput(
            f"{possible.title} has the factors {', '.join(names)}, but the audit has {', '.join(slots)}.",
            fix="name the same factors in both (of roles: their columns)",
        )
    levels = dict(possible.space.factors)
    for place, value in _occurring(cells):
        if value not in levels[place]:
            raise BadInput(
                f"{possible.title} has no value {value!r} of {place}, but the table does.",
                fix=did_you_mean(value, levels[place]),
            )
    known = dataclasses.replace(cells, possible=possible)
    wrong = np.flatnonzero(~allowed_cells(known, cells.constituents))
    if len(wrong):
        some = "; ".join(cells.name(cell) for cell in wrong[:SHOWN].tolist())
        more = f" and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
        note = f"The table has combinations that {possible.title} forbids: {some}{more}. Correct the constraint."
        known = dataclasses.replace(known, notes=(*known.notes, note))
    return known


def _occurring(cells: Cells) -> list[tuple[str, str]]:
    """The values that occur, by slot."""
    values = [value for factor in cells.factors for value in factor.values]
    pairs = []
    for index, place in enumerate(cells.slots):
        used = distinct(cells.constituents[:, index])
        pairs += [(place, values[part]) for part in used[used != NOTHING].tolist()]
    return pairs


def numbers_in_space(cells: Cells) -> Int[np.ndarray, "slot constituent"]:
    """The number of each constituent in each slot of the space that was stated; `NOTHING` if it has none."""
    assert cells.possible is not None
    space = cells.possible.space
    at = {
        (name, level): offset + index
        for (name, levels), offset in zip(space.factors, space.offsets, strict=True)
        for index, level in enumerate(levels)
    }
    numbers = np.full((len(cells.slots), cells.width), NOTHING, dtype=np.int64)
    owner = {place: factor for factor in cells.factors for place in factor.slots}
    for index, place in enumerate(cells.slots):
        start = _start(cells, owner[place])
        for value_index, value in enumerate(owner[place].values):
            numbers[index, start + value_index] = at.get((place, value), NOTHING)
    return numbers


def _start(cells: Cells, factor: Factor) -> int:
    before = 0
    for other in cells.factors:
        if other is factor or other.name == factor.name:
            return before
        before += len(other.values)
    return before


def allowed_cells(cells: Cells, constituents: Int[np.ndarray, "n slot"]) -> Bool[np.ndarray, " n"]:
    """Which combinations can exist, as far as was stated, or as the table suggests: without pairs to ask about."""
    if cells.possible is not None:
        from recombine.supports.covering import allowed

        numbers = numbers_in_space(cells)
        slot = np.arange(len(cells.slots))
        rows = np.where(constituents == NOTHING, NOTHING, numbers[slot, constituents])
        full = (rows != NOTHING).all(1)
        fine = np.ones(len(rows), dtype=bool)
        ordered = np.sort(rows[full], axis=1).astype(np.int32)
        fine[full] = allowed(cells.possible.space, ordered, cells.possible.forbidden)
        return fine
    return without_asked(cells, constituents)


def without_asked(cells: Cells, constituents: Int[np.ndarray, "n slot"]) -> Bool[np.ndarray, " n"]:
    """Which combinations have no pair of values that must be asked about."""
    fine = np.ones(len(constituents), dtype=bool)
    atoms = atoms_of(cells)
    for one, two in asked_pairs(cells).tolist():
        fine &= ~(_holds(cells, atoms, one, constituents) & _holds(cells, atoms, two, constituents))
    return fine


def _holds(cells: Cells, atoms: Atoms, atom: int, constituents: Int[np.ndarray, "n slot"]) -> Bool[np.ndarray, " n"]:
    names = list(dict.fromkeys(cells.slots))
    slots = [index for index, place in enumerate(cells.slots) if names.index(place) == atoms.slot[atom]]
    return (constituents[:, slots] == atoms.constituent[atom]).any(1)


@remembered
def asked_pairs(cells: Cells) -> Int[np.ndarray, "pair 2"]:
    """Pairs of atoms of different slots that never occur, in training or evaluation, although both values are common.

    If the values of two slots were independent, such a pair would be expected in several combinations. Perhaps it
    cannot exist. Without a stated space it is asked about and never proposed. The most expected ones come first.
    """
    atoms = atoms_of(cells)
    places = [factor.kind == "set" for factor in cells.factors for _ in factor.slots]
    nothing = np.empty((0, 2), dtype=np.int64)
    if cells.possible is not None or atoms.number > MOST_ATOMS or any(places) or len(places) < 2:
        return nothing
    everything = np.ones(len(atoms.rows), dtype=bool)
    uses = np.bincount(atoms.rows[atoms.rows != NOTHING], minlength=atoms.number).astype(float)
    expected = np.outer(uses, uses) / len(atoms.rows)
    possible = np.triu(atoms.slot[:, None] != atoms.slot[None, :], 1)
    same = atoms.constituent[:, None] == atoms.constituent[None, :]
    possible &= ~same  # A value in two roles at once is treated elsewhere.
    members = atoms.members(atoms.interactions(everything, 2))
    if len(members):
        possible[np.minimum(*members.T), np.maximum(*members.T)] = False
    number = max(int(np.triu(atoms.slot[:, None] != atoms.slot[None, :], 1).sum()), 1)
    asked = np.argwhere(possible & (expected >= max(COMMON, math.log(number / SURE))))
    order = np.argsort(-expected[asked[:, 0], asked[:, 1]], kind="stable")
    return asked[order] if len(asked) else nothing


def possible_pairs(cells: Cells) -> Bool[np.ndarray, "constituent constituent"] | None:
    """Which pairs of constituents of the stated space occur in some combination that can exist; None without one."""
    if cells.possible is None:
        return None
    from recombine.supports.covering.constraints import Rules
    from recombine.supports.covering.feasible import coverable

    rules = Rules(cells.possible.space, cells.possible.forbidden)
    return coverable(cells.possible.space, 2, rules, np.random.default_rng(0))
