"""Covering designs against allpairspy and covertable: combinations and CPU seconds on the same inputs."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from measuring import row
from recombine import ProductSpace, SubsetSpace
from recombine.supports.covering import Forbidden, allowed, cover

Values = tuple[tuple[int, int], ...]
"""Values of some factors: (factor, value)."""

Rule = tuple[Values, Values]
"""Forbidden: all of the first and none of the second."""

STANDARD: dict[str, tuple[int, ...]] = {
    "3^4": (3,) * 4,
    "3^13": (3,) * 13,
    "2^100": (2,) * 100,
    "4^15 3^17 2^29": (4,) * 15 + (3,) * 17 + (2,) * 29,
    "4^1 3^39 2^35": (4,) + (3,) * 39 + (2,) * 35,
    "10^20": (10,) * 20,
}

CONSTRAINED: dict[str, tuple[tuple[int, ...], list[Rule]]] = {
    "3^13, neighbours never both 0": ((3,) * 13, [(((index, 0), (index + 1, 0)), ()) for index in range(12)]),
    "5^10, 0 only beside 0 or 1": (
        (5,) * 10,
        [(((index, 0),), ((index + 1, 0), (index + 1, 1))) for index in range(0, 10, 2)],
    ),
    "4^15 3^17 2^29, triples": (
        STANDARD["4^15 3^17 2^29"],
        [(((index, 0), (index + 20, 1), (index + 40, 0)), ()) for index in range(12)],
    ),
    "10^20, pairs": (
        (10,) * 20,
        [(((index, value), (index + 1, value)), ()) for index in range(19) for value in (0, 5)],
    ),
}


def _space(levels: Sequence[int]) -> ProductSpace:
    return ProductSpace(
        factors=tuple((f"f{index}", tuple(map(str, range(level)))) for index, level in enumerate(levels))
    )


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its CPU time: all of these keep to one thread, and other work does not count then."""
    begin = time.process_time()
    found = call()
    return found, time.process_time() - begin


def _violated(values: Sequence[int], rules: list[Rule]) -> bool:
    """Whether a combination, or its first factors, violates a rule for certain."""
    return any(
        all(factor < len(values) for factor, _ in (*present, *absent))
        and all(values[factor] == value for factor, value in present)
        and not any(values[factor] == value for factor, value in absent)
        for present, absent in rules
    )


def _allpairspy(levels: Sequence[int], rules: list[Rule]) -> list[list[int]]:
    from allpairspy import AllPairs

    filtered = {"filter_func": lambda values: not _violated(values, rules)} if rules else {}
    return [list(values) for values in AllPairs([list(range(level)) for level in levels], **filtered)]


def _covertable(levels: Sequence[int], rules: list[Rule]) -> list[list[int]]:
    from covertable import make

    constraints = [
        {
            "operator": "or",
            "conditions": [
                *({"operator": "ne", "left": factor, "value": value} for factor, value in present),
                *({"operator": "eq", "left": factor, "value": value} for factor, value in absent),
            ],
        }
        for present, absent in rules
    ]
    return make([list(range(level)) for level in levels], **({"constraints": constraints} if rules else {}))


def _pairs(rows: np.ndarray) -> int:
    """How many pairs some rows cover."""
    width = int(rows.max()) + 1
    met = np.zeros((width, width), bool)
    for one, other in itertools.combinations(range(rows.shape[1]), 2):
        met[rows[:, one], rows[:, other]] = True
    return int(met.sum())


def _compare(name: str, levels: Sequence[int], rules: list[Rule]) -> None:
    space = _space(levels)
    offsets = space.offsets

    def parts(values: Values) -> tuple[int, ...]:
        return tuple(offsets[factor] + value for factor, value in values)

    forbidden = [Forbidden(parts(present), parts(absent)) for present, absent in rules]
    ours, mine = _timed(lambda: cover(space, forbidden=forbidden))
    told = [f"{len(ours.rows)} in {mine:.1f} s"]
    counts: list[int] = []
    for package, make in (("allpairspy", _allpairspy), ("covertable", _covertable)):
        try:
            found, spent = _timed(lambda make=make: make(levels, rules))
        except Exception as error:  # noqa: BLE001  what another package cannot do is part of the comparison
            told.append(f"{package} fails ({type(error).__name__})")
            continue
        rows = np.array(found, np.int64) + np.array(offsets)
        wrong = len(rows) - int(allowed(space, rows, forbidden).sum())
        lacking = ours.covered - _pairs(rows)
        flaws = f", {wrong} forbidden" * (wrong > 0) + f", {lacking} pairs missing" * (lacking > 0)
        told.append(f"{package} {len(rows)} in {spent:.1f} s{flaws}")
        if not flaws:
            counts.append(len(rows))
    assert allowed(space, ours.rows, forbidden).all()
    assert ours.covered == ours.coverable
    ratio = f"{len(ours.rows) / min(counts):.2f} x the combinations of the better one" if counts else "no rival"
    row(f"plan {name}", ratio, "; ".join(told))


def planning() -> None:
    """Pairs with and without constraints against both packages, each once; then what neither is asked for."""
    for name, levels in STANDARD.items():
        _compare(name, levels, [])
    for name, (levels, rules) in CONSTRAINED.items():
        _compare(name, levels, rules)
    for name, space, strength in (
        ("10^100, pairs", _space((10,) * 100), 2),
        ("5^20, triples", _space((5,) * 20), 3),
        ("16 modules by 3, pairs", SubsetSpace(modules=16, max_active=3), 2),
    ):
        found, spent = _timed(lambda space=space, strength=strength: cover(space, strength=strength))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        row(f"plan {name}", f"{len(found.rows)} combinations in {spent:.1f} s", f"peak so far {peak:.0f} MiB")
