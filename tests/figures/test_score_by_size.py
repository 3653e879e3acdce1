import numpy as np
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.figures.score_by_size import draw_score_by_size, score_by_size_info


def test_means_and_intervals(runs):
    info = score_by_size_info(runs)
    assert info.sizes == (40, 160)
    values = runs.loc[(runs["family"] == "hyperteacher") & (runs["number"] == 40), "r2_held_out"]
    row = info.summary.set_index(["series", "number"]).loc[("held-out combinations", 40)]
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert [row["mean"], row["low"], row["high"]] == pytest.approx([values.mean(), low, high])
    assert set(info.summary["series"]) == {
        "trained combinations",
        "held-out combinations",
        "control, trained",
        "control, held out",
    }


def test_means_below_the_axis_are_kept_with_their_value(runs):
    info = score_by_size_info(runs)
    assert set(info.clipped["series"]) == {"control, held out"}
    assert (info.clipped["mean"] < -0.4).all()
    assert (info.clipped["shown"] < info.floor).all()
    assert (info.clipped["shown"] > info.domain[0]).all()
    assert info.clipped["label"].str.startswith("\N{MINUS SIGN}0.").all()
    assert (info.points["r2"] >= info.floor).all()
    assert "means below \N{MINUS SIGN}0.25" in info.caption


def test_two_series_below_the_axis_do_not_hide_each_other(runs):
    runs["r2_held_out"] -= 2
    info = score_by_size_info(runs)
    assert info.clipped.groupby("number")["shown"].nunique().eq(2).all()
    assert info.clipped.groupby("series")["shown"].nunique().eq(1).all()
    lowest = info.clipped.sort_values("shown").iloc[0]
    assert lowest["series"] == "control, held out"


def test_the_axis_starts_at_zero_where_nothing_is_below(runs):
    info = score_by_size_info(runs[runs["family"] == "hyperteacher"])
    assert info.domain == (0.0, 1.0)
    assert "Triangles" not in info.caption


def test_the_chart_is_valid_and_its_ticks_are_the_sizes(runs):
    spec = draw_score_by_size(score_by_size_info(runs)).to_dict()
    axes = [layer["encoding"]["x"]["axis"]["values"] for layer in spec["layer"] if "x" in layer["encoding"]]
    assert axes
    assert all(ticks == [40, 160] for ticks in axes)


@pytest.mark.parametrize(
    "cut",
    [
        lambda runs: runs.iloc[:0],
        lambda runs: runs[runs["replicate"] == 0],
        lambda runs: runs[runs["number"] == 40],
        lambda runs: runs.assign(r2_held_out=np.nan),
        lambda runs: runs.assign(r2_in=np.nan, r2_held_out=np.inf),
        lambda runs: runs.assign(number=0),
        lambda runs: runs[runs["family"] == "lookup"],
    ],
)
def test_thin_input_draws_something(runs, cut):
    info = score_by_size_info(cut(runs))
    assert info.caption
    assert draw_score_by_size(info).to_dict()


def test_a_wrong_table_is_refused(runs):
    with pytest.raises(BadInput, match="r2_in"):
        score_by_size_info(runs.drop(columns="r2_in"))
