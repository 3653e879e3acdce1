"""Tables of scores by combination, made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest


def table(
    combinations: Sequence[Sequence[Any]],
    scores: Sequence[float] | None = None,
    *,
    columns: Sequence[str] | None = None,
    roles: Sequence[str] = (),
    sets: bool = False,
    trained: Sequence[bool] | None = None,
    rows: int | Sequence[int] = 1,
    binary: bool = False,
    scale: Any = None,
) -> Any:
    """Cells of combinations of values: a value for each column, the columns of `roles` sharing one factor; or sets.

    Scores between 0 and 1 have that scale, unless another one is given.
    """
    from recombine.audit.cells import NOTHING, Cells, Factor
    from recombine.audit.scales import Scale

    slots = max(len(one) for one in combinations)
    columns = columns or (["parts"] * slots if sets else [f"f{slot}" for slot in range(slots)])
    factors, number, first = [], {}, 0
    owners = ["parts"] if sets else list(dict.fromkeys("role" if c in roles else c for c in columns))
    for owner in owners:
        mine = [s for s, c in enumerate(columns) if sets or c == owner or (owner == "role" and c in roles)]
        values = sorted({str(one[s]) for one in combinations for s in mine if s < len(one)})
        kind = "set" if sets else "roles" if owner == "role" else "value"
        factors.append(Factor(owner, tuple(values), tuple(roles) if kind == "roles" else (owner,), kind))
        number |= {(s, value): first + index for s in mine for index, value in enumerate(values)}
        first += len(values)
    parts = np.full((len(combinations), slots), NOTHING, dtype=np.int64)
    for index, one in enumerate(combinations):
        held = [number[slot, str(value)] for slot, value in enumerate(one)]
        parts[index, : len(held)] = sorted(held) if sets else held
    values = np.full(len(combinations), 0.5) if scores is None else np.asarray(scores, dtype=float)
    shares = bool(np.nanmin(values) >= 0 and np.nanmax(values) <= 1)
    count = np.where(np.isnan(values), 0, rows)
    return Cells(
        factors=tuple(factors),
        constituents=parts,
        slots=tuple(columns),
        scores=("score",),
        binary=(binary,),
        count=count,
        mean=values[:, None],
        spread=np.where(np.isnan(values), np.nan, values * (1 - values) * count if binary else 0.0)[:, None],
        trained=None if trained is None else np.asarray(trained, dtype=bool),
        scales=(scale or (Scale(0.0, 1.0) if shares else Scale()),),
    )


@pytest.fixture(scope="session")
def make_cells() -> Callable[..., Any]:
    """A function that makes the cells of a table."""
    return table
