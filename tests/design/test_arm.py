"""Arms: grids of runs, and columns of them as symbols."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from recombine.design import Arm, Study, Tables, average, claim, highest, lowest, precondition, statistic
from recombine.errors import BadInput
from recombine.families import Lookup
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.supports import Balanced, Random
from recombine.training.config import RunConfig, Seeds

BASE = RunConfig(model=MLP(width=8, depth=1), recipe=Fast(steps=5))


def arm(**settings: Any) -> Arm:
    return Arm(BASE, **settings).bind("main", range(2))


def table(arms: Arm | tuple[Arm, ...], **columns: Any) -> dict[str, Tables]:
    """Tables in which a column is a function of the labels of a run."""
    arms = (arms,) if isinstance(arms, Arm) else arms
    runs = [run for one in arms for run in one.runs]
    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in runs])
    rows = [{"run": c.run_id} | {name: f(names) for name, f in columns.items()} for c, names in runs]
    tables = Tables.from_frames(labels, {"runs": pd.DataFrame(rows).drop_duplicates("run")})
    return {one.name: tables.arm(one.name, one.axes) for one in arms}


# The grid


def test_a_tuple_is_an_axis_a_value_is_shared_and_every_replicate_has_its_seed():
    grid = arm(support=Random(reserve=100), number=(40, 80), width=(8, 16))
    assert grid.axes == {"number": (40, 80), "width": (8, 16)}
    assert len(grid.runs) == 2 * 2 * 2
    for config, labels in grid.runs:
        assert config.support == Random(number=labels["number"], reserve=100)
        assert config.model == MLP(width=labels["width"], depth=1)
        assert config.seeds == Seeds.replicate(labels["replicate"]) and labels["arm"] == "main"


def test_levels_have_labels_bundles_set_several_things_and_functions_see_the_cell():
    grid = arm(
        support={"random": Random(number=40), "balanced": lambda cell: Balanced(number=40 + cell.seed)},
        length={"short": {"steps": 5}, "long": {"steps": 10, "width": 16}},
    )
    found = {(names["support"], names["length"], names["replicate"]): config for config, names in grid.runs}
    assert found["random", "short", 0].support == Random(number=40)
    assert found["balanced", "long", 1].support == Balanced(number=41)
    assert found["random", "long", 0].recipe.steps == 10 and found["random", "long", 0].model.width == 16
    assert found["random", "short", 1].model.width == 8


def test_an_axis_may_only_feed_a_function():
    grid = arm(budget=(1, 2), support=lambda cell: Random(number=40 * cell.budget, reserve=10))
    assert [config.support.number for config, _ in grid.runs] == [40, 40, 80, 80]
    within = arm(number=(40, 80), support=lambda cell: Random(number=cell.number + 1))
    assert [config.support.number for config, _ in within.runs] == [41, 41, 81, 81]


def test_cases_vary_together_and_are_crossed_with_the_axes():
    grid = arm(cases=[{"width": 8, "depth": 2}, {"width": 16, "depth": 1}], number=(40, 80))
    assert [(c.labels["width"], c.labels["depth"], c.labels["number"]) for c in grid.cells] == [
        (8, 2, 40),
        (8, 2, 80),
        (16, 1, 40),
        (16, 1, 80),
    ]


def test_replace_changes_settings_and_none_removes_them():
    main = Arm(BASE, number=(40, 80), width=16)
    other = main.replace(family=Lookup(), number=(40,), width=None).bind("other", range(1))
    ((config, labels),) = other.runs
    assert (config.family, config.model.width, labels["number"]) == (Lookup(), 8, 40)
    assert main.given["number"] == (40, 80)


@pytest.mark.parametrize(
    "settings, message, fix",
    [
        ({"widht": 4}, "nothing called 'widht'", "did you mean 'width'"),
        ({"number": ()}, "no cells", "at least one level"),
        ({"support": (Random(number=1), Random(number=2))}, "one label", "mapping"),
        ({"number": (40, -1)}, "number = -1", None),
    ],
)
def test_wrong_settings_are_found_when_the_arm_is_bound(settings, message, fix):
    with pytest.raises(BadInput, match=message) as caught:
        Arm(BASE, **settings).bind("main", range(2))
    assert fix is None or fix in (caught.value.fix or "")


# Columns


NUMBERS = (40, 80, 160)
SCORE = {40: 0.5, 80: 0.9, 160: 0.7}


@pytest.fixture(scope="module")
def scores():
    grid = arm(number=NUMBERS, width=(8, 16))
    return grid, table(grid, r2=lambda names: SCORE[names["number"]] + names["width"] / 100 + names["replicate"] / 10)


def test_reductions_are_over_levels_in_their_order(scores):
    grid, data = scores
    r2 = grid["r2"]
    narrow = r2.at(width=8)
    np.testing.assert_allclose(narrow.first().values(data), [0.58, 0.68])
    np.testing.assert_allclose(narrow.last().values(data), [0.78, 0.88])
    np.testing.assert_allclose(narrow.rise().values(data), [0.2, 0.2])
    np.testing.assert_allclose(narrow.lowest().values(data), [0.58, 0.68])
    np.testing.assert_allclose(narrow.highest().values(data), [0.98, 1.08])
    np.testing.assert_allclose(r2.mean().values(data), [0.82, 0.92])
    np.testing.assert_allclose(r2.rise("width").mean().values(data), [0.08, 0.08])
    np.testing.assert_allclose(r2.rise("number").at(width=16).values(data), [0.2, 0.2])
    np.testing.assert_allclose(r2.at(number=(40, 80), width=8).rise().values(data), [0.4, 0.4])


def test_columns_are_combined_cell_by_cell(scores):
    grid, data = scores
    narrow, wide = grid["r2"].at(width=8), grid["r2"].at(width=16)
    np.testing.assert_allclose((wide - narrow).rise().values(data), [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose((wide - narrow).highest().values(data), [0.08, 0.08])
    with pytest.raises(BadInput, match="the cells differ"):
        _ = narrow.at(number=(40, 80)) - wide.at(number=(80, 160))
    np.testing.assert_allclose((wide.first() - narrow.first()).values(data), [0.08, 0.08])
    np.testing.assert_allclose((1 - narrow.first()).values(data), [0.42, 0.32])
    np.testing.assert_allclose((2 * narrow - narrow).last().values(data), narrow.last().values(data))
    np.testing.assert_allclose((narrow - narrow.first()).last().values(data), [0.2, 0.2])
    np.testing.assert_allclose((narrow / narrow).log2().highest().values(data), [0.0, 0.0])
    first, last = narrow.first(), narrow.last()
    np.testing.assert_allclose(lowest(first, last).values(data), first.values(data))
    np.testing.assert_allclose(highest(first, last).values(data), last.values(data))
    np.testing.assert_allclose(average(first, last).values(data), [0.68, 0.78])
    np.testing.assert_allclose((-first).clip(lower=-0.6).values(data), [-0.58, -0.6])


def test_a_failed_or_missing_run_takes_its_replicate_out(scores):
    grid, _ = scores
    holes = table(grid, r2=lambda names: np.nan if (names["number"], names["replicate"]) == (80, 1) else 0.5)
    r2 = grid["r2"].at(width=8)
    assert np.isnan(r2.lowest().values(holes)).tolist() == [False, True]
    assert np.isnan(r2.mean().values(holes)).tolist() == [False, True]
    assert not np.isnan(r2.rise().values(holes)).any()
    assert np.isnan(grid["nothing"].mean().values(holes)).all()


def test_a_statistic_is_a_function_of_tables(scores):
    grid, data = scores
    by_replicate = statistic(lambda tables: tables.runs.groupby("replicate")["r2"].max(), grid)
    np.testing.assert_allclose(by_replicate.values(data), [1.06, 1.16])
    with pytest.raises(BadInput, match=r"shape \(3,\) for 2 replicates"):
        statistic(lambda tables: [1, 2, 3], grid).values(data)
    doubled = grid.table(lambda tables: tables.runs.assign(twice=2 * tables.runs["r2"]))
    np.testing.assert_allclose(doubled["twice"].mean().values(data), [1.64, 1.84])


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda r2: r2.rise(), "could be along number or width"),
        (lambda r2: r2.at(number=41), "no number 41"),
        (lambda r2: r2.at(depth=1), "no axis 'depth'"),
        (lambda r2: r2.rise("depth"), "no axis 'depth'"),
        (lambda r2: r2.at(number=40).rise("number"), "needs 2 levels of 'number'"),
        (lambda r2: r2.greater(0.1), "6 cells"),
        (lambda r2: r2.mean() - Arm(BASE).bind("other", range(3))["r2"], "the replicates differ"),
    ],
)
def test_columns_that_make_no_sense_are_found_before_any_run(wrong, message):
    with pytest.raises(BadInput, match=message):
        wrong(arm(number=NUMBERS, width=(8, 16))["r2"])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(6, 9), min_size=1, max_size=3, unique=True),
    st.integers(0, 2**32 - 1),
)
def test_reducing_one_axis_and_then_the_other_is_reducing_both(widths, depths, seed):
    grid = arm(width=tuple(widths), depth=tuple(depths))
    draw = np.random.default_rng(seed)
    values = {key: draw.standard_normal() for key in itertools.product(widths, depths, range(2))}
    data = table(grid, y=lambda names: values[names["width"], names["depth"], names["replicate"]])
    y = grid["y"]
    for reduce in ("lowest", "highest", "mean"):
        one = getattr(getattr(y, reduce)("width"), reduce)().values(data)
        np.testing.assert_allclose(one, getattr(y, reduce)().values(data), atol=1e-12)
    wide = y.at(width=widths[-1]) - y.at(width=widths[0]) if len(widths) > 1 and len(depths) == 1 else None
    if wide is not None:
        np.testing.assert_allclose(wide.values(data), y.rise("width").values(data), atol=1e-12)


# A study


class Small(Study):
    """Does it rise?"""

    kind: Literal["small"] = "small"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {"smoke": {}}
    column: str = "r2_held_out"
    level: int = 40
    needs: str = "fits"
    twice: bool = False

    def arms(self):
        return {"main": Arm(BASE, number=(40, 80)), "absent": None}

    def claims(self, main, absent=None):
        assert absent is None
        yield precondition("fits", main["r2_in"].at(number=self.level).above(0.8), "It fits.")
        yield claim("rises", main[self.column].rise().greater(0.05), "It rises.", primary=True, needs=self.needs)
        if self.twice:
            yield claim("rises", main[self.column].rise().greater(0.05), "It rises.")


def test_claims_are_listed_before_any_run():
    design = Small().design
    assert [item.name for item in design.claims] == ["fits", "rises"]
    assert repr(design.claims[1].effect) == 'main["r2_held_out"].rise("number")'
    rises = design.claims[1].of("small")
    assert (rises.direction, rises.margin, rises.primary, rises.needs) == ("greater", 0.05, True, ("fits",))
    assert Small().question == "Does it rise?" and Small() == Small() and len(design.run_ids) == 24


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"column": "r2_held"}, "no column 'r2_held'"),
        ({"level": 41}, "no number 41"),
        ({"needs": "fit"}, "needs 'fit'"),
        ({"twice": True}, "Two claims are called 'rises'"),
    ],
)
def test_a_claim_about_what_does_not_exist_is_found_when_the_study_is_loaded(settings, message):
    with pytest.raises(BadInput, match=f"Study 'small': .*{message}"):
        _ = Small(**settings).design


def test_a_copy_of_a_study_makes_its_own_design():
    study = Small()
    assert len(study.design.run_ids) == 24
    assert len(study.model_copy(update={"replicates": 3}).design.run_ids) == 6
    assert len(study.replace(replicates=2).design.run_ids) == 4


def test_claims_that_ask_for_an_arm_that_does_not_exist_are_refused():
    class Wrong(Small):
        """Does it?"""

        def claims(self, mian):
            yield from ()

    with pytest.raises(BadInput, match="asks for an arm 'mian'"):
        _ = Wrong().design
