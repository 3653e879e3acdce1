"""Decodability of a user's model: activations with a known answer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.decomposition import PCA

from recombine.audit.cells import Activations, Cells
from recombine.audit.decodability import cross_fitting
from recombine.audit.decodability.cross_fitting import FOLDS, rows_of
from recombine.audit.decodability.linear_probe import LinearProbe
from recombine.audit.decodability.probing import decodability
from recombine.audit.decodability.questions import questions, spread_over_folds
from recombine.audit.findings import DecodabilityFinding, Site
from recombine.errors import BadInput

MakeCells = Callable[..., Cells]
GRID = list(itertools.product("abcde", "vwxyz"))


def one_hot(cells: Cells) -> np.ndarray:
    """A column for each constituent of a combination."""
    return (cells.constituents[:, :, None] == np.arange(cells.width)).any(1).astype(float)


def with_layers(
    cells: Cells, rows: int, scores: np.ndarray | None = None, /, **layers: Callable[[np.ndarray], np.ndarray]
) -> Activations:
    """Activations of so many rows of each combination; a layer is a function from the rows' combinations."""
    cell = np.repeat(np.arange(len(cells.constituents)), rows)
    values = np.zeros(len(cells.constituents)) if scores is None else scores
    return Activations({name: layer(cell) for name, layer in layers.items()}, cell, values[cell][:, None])


def planted(cells: Cells, noise: float, width: int = 30, seed: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    """Each part has a direction; noise is of each row."""
    rng = np.random.default_rng(seed)
    codes = one_hot(cells) @ rng.normal(size=(cells.width, width))
    return lambda cell: codes[cell] + noise * rng.normal(size=(len(cell), width))


def memorised(cells: Cells, noise: float = 0.1, width: int = 60) -> Callable[[np.ndarray], np.ndarray]:
    """Each combination has a code of its own."""
    rng = np.random.default_rng(1)
    codes = rng.normal(size=(len(cells.constituents), width))
    return lambda cell: codes[cell] + noise * rng.normal(size=(len(cell), width))


def noise(cell: np.ndarray) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(len(cell), 20))


def site(found: DecodabilityFinding, layer: str, factor: str) -> Site:
    (one,) = [one for one in found.sites if (one.layer, one.factor) == (layer, factor)]
    return one


@pytest.fixture(scope="module")
def finding(make_cells: MakeCells) -> DecodabilityFinding:
    cells = make_cells(GRID)
    layers = {"noise": noise, "planted": planted(cells, 0.3), "memorised": memorised(cells)}
    return decodability(cells, with_layers(cells, 6, None, **layers), 0)


def test_a_linear_code_of_the_parts_is_read_and_selective(finding: DecodabilityFinding):
    for factor in ("f0", "f1"):
        found = site(finding, "planted", factor)
        assert found.score.estimate > 0.95
        assert found.score.low > 0.7 and found.score.high <= 1
        assert found.chance == pytest.approx(0.2)
        assert found.selectivity == pytest.approx(found.score.estimate - found.control)
        assert found.selectivity > 0.3


def test_a_code_by_combination_is_known_by_heart_only(finding: DecodabilityFinding):
    """Dealt out values are read on other rows of the same combinations, parts are not read on other combinations."""
    for factor in ("f0", "f1"):
        found = site(finding, "memorised", factor)
        assert found.score.estimate < 0.45
        assert found.control > 0.95
        assert found.selectivity < -0.5


def test_noise_is_at_chance(finding: DecodabilityFinding):
    for factor in ("f0", "f1"):
        found = site(finding, "noise", factor)
        assert found.score.low < found.chance < found.score.high
        assert abs(found.control - found.chance) < 0.1


def test_the_layer_that_holds_the_parts_is_chosen(finding: DecodabilityFinding):
    assert finding.chosen == {"f0": "planted", "f1": "planted"}
    assert all(one.estimate > 0.95 for one in finding.chosen_score.values())
    assert finding.relation is None
    assert "does not vary" in finding.note


def test_it_is_deterministic(make_cells: MakeCells):
    cells = make_cells(GRID)
    activations = with_layers(cells, 2, None, planted=planted(cells, 1.0))
    assert decodability(cells, activations, 0) == decodability(cells, activations, 0)


def test_no_combination_is_fitted_and_scored(make_cells: MakeCells, monkeypatch: pytest.MonkeyPatch):
    """In the probes that answer and in those that choose; and both sides of each hold every value."""
    cells = make_cells(GRID)
    seen: list[list[np.ndarray]] = []

    class Watched(LinearProbe):
        def __init__(self, features: Any, *rest: Any) -> None:
            super().__init__(features, *rest)
            self.mine = [features]
            seen.append(self.mine)

        def log_odds(self, features: Any, strength: float) -> Any:
            self.mine.append(features)
            return super().log_odds(features, strength)

    monkeypatch.setattr(cross_fitting, "LinearProbe", Watched)
    activations = with_layers(cells, 3, None, number=lambda cell: cell[:, None] * np.ones((1, 2)))
    rows, _ = rows_of(cells, activations, np.random.default_rng(0))
    assert rows is not None
    asked, _ = questions(cells, rows.fold >= 0)
    cross_fitting.read_layer(rows, rows.layers["number"], asked)
    assert len(seen) == FOLDS * (FOLDS + 1) // 2
    for fitted, *tried in seen:
        inside = set(fitted[:, 0].astype(int))
        assert all(not inside & set(one[:, 0].astype(int)) for one in tried)
        assert len({GRID[one][0] for one in inside}) == len({GRID[one][1] for one in inside}) == 5


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(12, 60), st.integers(2, 6))
def test_values_are_spread_over_folds(seed: int, number: int, values: int):
    """A value of two combinations or more is never in one fold alone, and folds are of like size."""
    rng = np.random.default_rng(seed)
    parts = np.unique(
        np.column_stack([rng.integers(values, size=number), values + rng.integers(9, size=number)]), axis=0
    )
    fold = spread_over_folds(parts, ("f0", "f1"), FOLDS, rng)
    for value in np.unique(parts):
        where = fold[(parts == value).any(1)]
        if len(where) >= 2:
            assert len(set(where.tolist())) >= 2
    assert np.bincount(fold, minlength=FOLDS).max() <= 3 + len(parts) // 2


def test_a_layer_is_not_chosen_where_it_is_scored(make_cells: MakeCells):
    """Among many layers of noise the best looks good; scored on other combinations, what was chosen is at chance."""
    cells = make_cells(GRID)
    shapes = {
        f"layer {n}": (lambda cell, n=n: np.random.default_rng([n]).normal(size=(len(cell), 8))) for n in range(12)
    }
    finding = decodability(cells, with_layers(cells, 1, None, **shapes), 0)
    best = max(one.score.estimate for one in finding.sites)
    assert best > 0.3
    assert max(one.estimate for one in finding.chosen_score.values()) < best
    assert np.mean([one.estimate for one in finding.chosen_score.values()]) < 0.33
    assert "one row" in finding.note


def test_intervals_cover_the_accuracy(make_cells: MakeCells):
    """Layers with a code so noisy that it is read in part: the interval holds what many more rows would give."""
    cells = make_cells(list(itertools.product("abcd", "wxyz", "01")))
    many = with_layers(cells, 40, None, a=planted(cells, 3.0, 6, 0))
    truth = decodability(cells, many, 0).sites[0].score.estimate
    codes = one_hot(cells) @ np.random.default_rng(0).normal(size=(cells.width, 6))
    inside = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        activations = with_layers(
            cells, 8, None, a=lambda cell, rng=rng: codes[cell] + 3.0 * rng.normal(size=(len(cell), 6))
        )
        score = decodability(cells, activations, 0).sites[0].score
        inside += score.low <= truth <= score.high
    assert inside >= 7


def graded(make_cells: MakeCells, seed: int, between: float, within: float) -> tuple[Cells, Activations, list[str]]:
    """Combinations whose parts are written more or less loudly, in two strata; the score follows that, or the stratum."""
    rng = np.random.default_rng(seed)
    combinations = list(itertools.product(range(10), range(10)))
    cells = make_cells(combinations)
    strata = rng.integers(2, size=100)
    loud = rng.normal(size=100)
    gain = np.exp(0.4 * loud + 1.2 * strata)
    score = within * loud + between * strata + 0.5 * rng.normal(size=100)
    codes = one_hot(cells) @ rng.normal(size=(20, 40)) * gain[:, None]
    layer = lambda cell: codes[cell] + 2.5 * rng.normal(size=(len(cell), 40))  # noqa: E731
    return cells, with_layers(cells, 4, score, a=layer), [f"s{one}" for one in strata]


def test_a_relation_to_the_score_is_found_within_strata(make_cells: MakeCells):
    cells, activations, strata = graded(make_cells, 0, 0.0, 1.0)
    relation = decodability(cells, activations, 0, strata=strata).relation
    assert relation is not None
    assert relation.low > 0.1 and relation.estimate > 0.3
    assert (relation.replicates, relation.method) == (100, "bootstrap")


def test_a_relation_between_strata_alone_is_none(make_cells: MakeCells):
    """Both rise from one stratum to the other: over all combinations they go together, within strata they do not."""
    found = []
    for seed in range(2):
        cells, activations, strata = graded(make_cells, seed, 3.0, 0.0)
        plain = decodability(cells, activations, 0)
        assert plain.relation is not None and plain.relation.low > 0.1
        assert "No coverage strata" in plain.note
        within = decodability(cells, activations, 0, strata=strata).relation
        assert within is not None and within.low < 0.1
        found.append(within.estimate)
    assert abs(np.mean(found)) < 0.12


def test_roles_are_read_by_place(make_cells: MakeCells):
    """The first object is written, the second is not, though both have the same values."""
    cells = make_cells(list(itertools.permutations("abcdef", 2)), columns=["one", "two"], roles=["one", "two"])
    rng = np.random.default_rng(0)
    first = rng.normal(size=(6, 20))[cells.constituents[:, 0]]
    activations = with_layers(cells, 4, None, a=lambda cell: first[cell] + 0.3 * rng.normal(size=(len(cell), 20)))
    found = decodability(cells, activations, 0)
    assert site(found, "a", "one").score.estimate > 0.9
    assert site(found, "a", "two").score.estimate < 0.5


def test_a_set_is_read_value_by_value(make_cells: MakeCells):
    cells = make_cells([one for size in (1, 2, 3) for one in itertools.combinations("abcdef", size)], sets=True)
    layers = {"planted": planted(cells, 0.3), "noise": noise, "memorised": memorised(cells)}
    found = decodability(cells, with_layers(cells, 4, None, **layers), 0)
    assert site(found, "planted", "parts").chance == 0.5
    assert site(found, "planted", "parts").score.estimate > 0.95
    assert abs(site(found, "noise", "parts").score.estimate - 0.5) < 0.12
    assert site(found, "memorised", "parts").selectivity < -0.2


def test_rare_values_are_left_out_with_a_note(make_cells: MakeCells):
    cells = make_cells([*GRID, ("q", "v"), ("r", "w")])
    found = decodability(cells, with_layers(cells, 3, None, a=planted(cells, 0.3)), 0)
    assert "2 values of f0 in a single combination" in found.note
    assert site(found, "a", "f0").chance == pytest.approx(0.2)
    assert site(found, "a", "f0").score.estimate > 0.9


def test_too_little_data_gives_a_note_and_no_error(make_cells: MakeCells):
    few = make_cells(GRID[:6])
    found = decodability(few, with_layers(few, 2, None, a=noise), 0)
    assert (found.sites, found.chosen, found.relation) == ((), {}, None)
    assert "There are activations of 6 combinations; 10 are needed" in found.note
    # Every value is in one combination only.
    alone = make_cells([(n, n) for n in range(15)])
    found = decodability(alone, with_layers(alone, 2, None, a=noise), 0)
    assert found.sites == () and found.relation is None
    assert "f0 cannot be decoded: too few of its values" in found.note
    cells = make_cells(GRID)
    found = decodability(cells, with_layers(cells, 2, None, a=lambda cell: np.ones((len(cell), 3))), 0)
    assert found.sites == () and "Layer a is the same in all rows" in found.note


def test_rows_that_are_not_numbers_and_missing_scores(make_cells: MakeCells):
    cells = make_cells(GRID)
    activations = with_layers(cells, 3, np.arange(25.0), a=planted(cells, 0.5), b=noise)
    activations.layers["a"][4] = np.nan
    activations.scores[:30] = np.nan
    found = decodability(cells, activations, 0)
    assert "activations are not finite: 1 row." in found.note
    assert found.relation is not None and found.relation.replicates == 15
    assert all(math.isfinite(one.control) for one in found.sites)


def test_large_layers_are_reduced_with_a_note(make_cells: MakeCells, monkeypatch: pytest.MonkeyPatch):
    """Fewer rows, and of a wide layer the directions in which it varies most, as scikit-learn finds them."""
    monkeypatch.setattr(cross_fitting, "MOST_FEATURES", 20)
    monkeypatch.setattr(cross_fitting, "MOST_ROWS", 120)
    cells = make_cells(GRID)
    activations = with_layers(cells, 8, None, a=planted(cells, 0.3, width=60), b=noise)
    rows, _ = rows_of(cells, activations, np.random.default_rng([0, 5]))
    assert rows is not None
    assert {name: values.shape for name, values in rows.layers.items()} == {"a": (120, 20), "b": (120, 20)}
    assert (np.bincount(rows.cell) >= 4).all()
    kept = ((rows.layers["a"] - rows.layers["a"].mean(0)) ** 2).sum() / 120
    whole = PCA().fit(activations.layers["a"]).explained_variance_
    assert kept > 0.95 * whole[:20].sum()
    found = decodability(cells, activations, 0)
    assert "120 of 200 rows with activations were used" in found.note
    assert "Layers wider than 20 were reduced to the 20 directions" in found.note
    assert site(found, "a", "f0").score.estimate > 0.9


def test_a_factor_of_very_many_values(make_cells: MakeCells):
    cells = make_cells([(number // 2, number % 4) for number in range(240)])
    found = decodability(cells, with_layers(cells, 1, None, a=planted(cells, 0.1)), 0)
    assert "f0 has 120 values; decodability covers the 100" in found.note
    assert site(found, "a", "f1").score.estimate > 0.9


def test_activations_of_the_wrong_shape_are_refused():
    with pytest.raises(BadInput, match="for each of the 3 rows"):
        Activations({"a": np.zeros((4, 2))}, np.zeros(3, int), np.zeros((3, 1)))
