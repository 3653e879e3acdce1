"""Covering designs, against brute force on small spaces."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.covering import Covering, Forbidden, Unsatisfiable, allowed, cover, repair as covering_repair
from recombine.supports.covering.constraints import IN, OUT, Rules


def product(*levels: int) -> ProductSpace:
    return ProductSpace(factors={f"f{index}": level for index, level in enumerate(levels)})  # type: ignore[arg-type]


SPACES: list[Space] = [
    product(2, 3, 2, 3),
    product(3, 1, 4),
    product(2, 2, 2, 2, 2),
    SubsetSpace(modules=6, max_active=3),
    SubsetSpace(modules=6, max_active=4, min_active=3),
    SubsetSpace(modules=5, max_active=1),
]
ROWS = [space.enumerate() for space in SPACES]
# Plain numbers only: the checks of array shapes use `random`, which strategies must not.
SHAPES = [(len(rows), space.slots, space.width) for rows, space in zip(ROWS, SPACES, strict=True)]


@pytest.fixture(autouse=True, scope="module")
def impatient() -> Iterator[None]:
    """Small designs need no long search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covering_repair, "PATIENCE", (60, 5))
        yield


Parts = tuple[int, ...]
Rule = tuple[list[int], list[int]]


def met(space: Space, rows: np.ndarray, strength: int) -> set[Parts]:
    """The interactions of some rows, one by one."""
    return {parts for row in rows for parts in itertools.combinations(space.constituents(row), strength)}


def fine(rows: np.ndarray, forbidden: list[Forbidden]) -> np.ndarray:
    """Which rows violate no constraint, one by one."""
    return np.array(
        [
            not any(set(rule.present) <= set(row) and not set(rule.absent) & set(row) for rule in forbidden)
            for row in rows.tolist()
        ],
        bool,
    )


def check(space: Space, strength: int, found: Covering, already: np.ndarray, every: np.ndarray) -> None:
    """All that is said of a covering is so; `every`: the allowed combinations."""
    can = met(space, every, strength)
    have = met(space, already, strength) & can
    assert found.total == space.interactions(strength)
    assert found.coverable == len(can)
    for row, gained in zip(found.rows, found.gained, strict=True):
        now = have | met(space, row[None], strength)
        assert len(now) - len(have) == gained
        have = now
    assert found.covered == len(have)
    proposed = [tuple(row) for row in found.rows.tolist()]
    assert set(proposed) <= {tuple(row) for row in every.tolist()}
    assert len(set(proposed)) == len(proposed)
    assert not set(proposed) & {tuple(row) for row in already.tolist()}


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, list[int], list[Rule], int | None]:
    """A small space, a strength, combinations that are there, constraints, and a number or none."""
    number = draw(st.integers(0, len(SPACES) - 1))
    size, slots, width = SHAPES[number]
    strength = draw(st.integers(1, min(4, slots)))
    already = draw(st.lists(st.integers(0, size - 1), max_size=5))
    part = st.integers(0, width - 1)
    rule = st.tuples(st.lists(part, max_size=3), st.lists(part, max_size=2)).filter(any)
    return number, strength, already, draw(st.lists(rule, max_size=5)), draw(st.none() | st.integers(0, 30))


@settings(deadline=None, max_examples=80)
@given(cases())
def test_everything_that_can_be_covered_is_and_nothing_forbidden_is_proposed(case):
    which, strength, chosen, rules, number = case
    space, already = SPACES[which], ROWS[which][chosen]
    forbidden = [Forbidden(tuple(present), tuple(absent)) for present, absent in rules]
    every = ROWS[which][fine(ROWS[which], forbidden)]
    if not len(every):
        with pytest.raises(Unsatisfiable, match="No combination of"):
            cover(space, strength=strength, already=already, forbidden=forbidden, number=number)
        return
    found = cover(space, strength=strength, already=already, forbidden=forbidden, number=number)
    check(space, strength, found, already, every)
    if number is None:
        assert found.covered == found.coverable
        assert (found.gained > 0).all()
    else:
        # Fewer only where every allowed combination has come.
        left = {tuple(row) for row in every.tolist()} - {tuple(row) for row in already.tolist()}
        assert len(found.rows) == min(number, len(left))


@settings(deadline=None, max_examples=40)
@given(cases())
def test_allowed_and_what_follows_from_a_part_against_brute_force(case):
    which, _, _, rules, _ = case
    space, rows = SPACES[which], ROWS[which]
    forbidden = [Forbidden(tuple(present), tuple(absent)) for present, absent in rules]
    ok = fine(rows, forbidden)
    np.testing.assert_array_equal(allowed(space, rows, forbidden), ok)
    compiled = Rules(space, forbidden)
    has = np.array([[part in row for part in range(space.width)] for row in rows.tolist()])
    state = compiled.start(space.width)
    state[np.arange(space.width), np.arange(space.width)] = IN
    alive = compiled.propagate(state)
    simple = compiled.simple_witness()
    assert simple is None or (fine(simple[None], forbidden)[0] and space.contains(simple[None])[0])
    for part in range(space.width):
        those = has[ok & has[:, part]]
        witness = compiled.witness([part])
        assert (witness is None) == (len(those) == 0)
        if witness is not None:
            # What follows is so in all combinations that are left, and one that is left is not called impossible.
            assert alive[part] and part in witness and fine(witness[None], forbidden)[0]
            assert those[:, state[part, :-1] == IN].all() and not those[:, state[part, :-1] == OUT].any()


@pytest.mark.parametrize(
    ("levels", "rows"), [((3,) * 4, 9), ((2,) * 3, 4), ((2, 3, 4), 12), ((3,) * 13, 17), ((2,) * 20, 8)]
)
def test_few_rows(levels: tuple[int, ...], rows: int):
    space = product(*levels)
    found = cover(space)
    assert found.covered == found.coverable == found.total == len(met(space, found.rows, 2))
    assert len(found.rows) <= rows


def test_triples_of_modules_and_the_known_best_of_pairs():
    # 16 modules by threes: 43 sets are the fewest that have all pairs (Schönheim's bound, which is reached).
    space = SubsetSpace(modules=16, max_active=3)
    assert 43 <= len(cover(space).rows) <= 46
    assert len(cover(space, strength=3).rows) == 560
    assert len(cover(space, strength=1).rows) == 6


def test_the_order_helps_most_first_and_any_prefix_is_good():
    space = product(*[4] * 8)
    whole = cover(space)
    assert (np.diff(whole.gained) <= 0).all()
    rng = np.random.default_rng(0)
    for number in (1, 5, 10, 15):
        random = [len(met(space, rng.integers(0, 4, (number, 8)) + np.arange(0, 32, 4), 2)) for _ in range(20)]
        planned = cover(space, number=number)
        assert len(planned.rows) == number
        assert planned.covered > max(random) or number == 1
        assert whole.gained[:number].sum() >= 0.9 * planned.covered


def test_a_seed_decides():
    space = product(*[3] * 8)
    first, again, other = (cover(space, seed=seed).rows for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_existing_combinations_are_not_proposed_again():
    space = product(*[3] * 6)
    rows = cover(space).rows
    done = cover(space, already=rows)
    assert len(done.rows) == 0 and done.covered == done.total
    half = cover(space, already=rows[:5])
    assert half.gained.sum() == half.total - len(met(space, rows[:5], 2))
    assert len(half.rows) < len(rows)


def test_a_collected_combination_may_break_the_rules_and_counts_only_for_what_can_be_covered():
    space = product(2, 2, 2)
    forbidden = [Forbidden((0, 2))]
    found = cover(space, already=np.array([[0, 2, 4]]), forbidden=forbidden)
    assert (found.total, found.coverable, found.covered) == (12, 11, 11)
    # (0, 4) and (2, 4) are covered by what is there.
    assert found.gained.sum() == 9
    assert allowed(space, found.rows, forbidden).all()


def test_a_budget_beyond_full_coverage_balances():
    space = SubsetSpace(modules=8, max_active=3)
    found = cover(space, number=40)
    assert len({tuple(row) for row in found.rows.tolist()}) == 40
    counts = np.zeros((8, 8), int)
    for row in found.rows:
        counts[np.ix_(row, row)] += 1
    pairs = counts[np.triu_indices(8, 1)]
    # 120 meetings of 28 pairs: 4.3 each.
    assert pairs.min() >= 3 and pairs.max() <= 6
    assert np.ptp(np.diag(counts)) <= 2


def test_a_large_number_gives_all_combinations():
    assert len(cover(product(2, 3), number=50).rows) == 6
    assert len(cover(product(2, 3), number=50, forbidden=[Forbidden((0, 2))]).rows) == 5


def test_sets_are_as_large_as_constraints_allow():
    space = SubsetSpace(modules=6, max_active=3)
    assert (cover(space).rows < 6).all()
    # 0 goes with nothing: it comes alone.
    found = cover(space, strength=1, forbidden=[Forbidden((0, other)) for other in range(1, 6)])
    assert [0, 6, 6] in found.rows.tolist()
    assert found.covered == 6


def test_constraints_that_only_a_search_can_see():
    # f0 = 0 needs one of f1, f2, f3 to be 1, and each of these is excluded by way of another factor.
    space = product(2, 2, 2, 2, 2)
    forbidden = [Forbidden((0, 2, 4, 6)), *(Forbidden((0, part, other)) for part in (3, 5, 7) for other in (8, 9))]
    found = cover(space, forbidden=forbidden)
    every = space.enumerate()
    check(space, 2, found, every[:0], every[fine(every, forbidden)])
    assert not (found.rows[:, 0] == 0).any()


def test_contradictory_constraints_are_named():
    space = ProductSpace(factors={"colour": ["red", "blue"], "shape": ["cube", "ball"]})  # type: ignore[arg-type]
    forbidden = [Forbidden((0, 3)), Forbidden((0,)), Forbidden((), (0,))]
    with pytest.raises(Unsatisfiable, match="never colour=red; never everything without colour=red") as told:
        cover(space, forbidden=forbidden)
    assert "ball" not in str(told.value)


def test_designs_of_large_spaces():
    large = cover(product(*[10] * 40), number=3)
    assert large.gained.tolist() == [780, 780, 780]
    forbidden = [Forbidden((10 * factor, 10 * factor + 11)) for factor in range(39)]
    ruled = cover(product(*[10] * 40), number=3, forbidden=forbidden)
    assert ruled.total - ruled.coverable == 39
    assert len(cover(SubsetSpace(modules=1000, max_active=20), number=3).rows) == 3


def test_progress_is_reported():
    heard: list[tuple[int, int]] = []
    found = cover(product(3, 3, 3), number=12, progress=lambda covered, of: heard.append((covered, of)))
    assert heard[-1] == (found.covered, found.coverable)
    assert all(of == 27 for _, of in heard)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": 0}, "No 0 constituents occur together"),
        ({"strength": 4}, "No 4 constituents occur together"),
        ({"number": -1}, "cannot have fewer than 0"),
        ({"already": np.array([[0, 1, 2]])}, r"row \[0, 1, 2\] is not a combination"),
        ({"already": np.array([[0, 3]])}, "must be rows of 3 whole numbers"),
        ({"forbidden": [Forbidden((9,))]}, "names constituent 9"),
        ({"forbidden": [Forbidden((-1,))]}, "names constituent -1"),
    ],
)
def test_bad_input(settings: dict, message: str):
    with pytest.raises(BadInput, match=message):
        cover(product(3, 3, 3), **settings)


def test_a_table_that_would_not_fit_is_refused():
    with pytest.raises(BadInput, match="lower the strength"):
        cover(product(*[10] * 100), strength=3)
