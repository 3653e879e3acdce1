import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.figures.axes import Reference
from recombine.figures.lines import draw_lines, lines_info

LABELS = {"in": "trained", "out": "held out", "lookup": "control", "noise": "second control"}


@pytest.fixture
def frame():
    draw = np.random.default_rng(0)
    level = {"in": 0.9, "out": 0.5, "lookup": -0.6, "noise": -2.0}
    rows = [
        (replicate, size, series, depth, level[series] + 0.05 * draw.normal())
        for replicate, size, series, depth in itertools.product(range(4), (10, 40, 160), level, (2, 3))
    ]
    return pd.DataFrame(rows, columns=["replicate", "size", "series", "depth", "score"])


def test_means_and_intervals(frame):
    info = lines_info(frame, "size", "score", "series", "depth", labels=LABELS)
    chosen = frame.query("size == 40 and series == 'out' and depth == 3")["score"]
    row = info.summary.set_index(["facet", "series", "x"]).loc[("3", "held out", 40)]
    low, high = stats.t.interval(0.95, 3, chosen.mean(), stats.sem(chosen))
    assert [row["mean"], row["low"], row["high"]] == pytest.approx([chosen.mean(), low, high])
    assert info.facets == ("2", "3")
    assert [style.name for style in info.styles] == list(LABELS.values())
    assert len(info.points) == len(frame)


def test_replicates_are_averaged_before_the_interval(frame):
    info = lines_info(frame, "size", "score", "series")
    assert set(info.summary["replicates"]) == {4}


def test_means_below_the_floor_have_rows_of_their_own(frame):
    info = lines_info(frame, "size", "score", "series", labels=LABELS, floor=-0.25, ceiling=1.0)
    assert set(info.clipped["series"]) == {"control", "second control"}
    assert (info.clipped["shown"] < -0.25).all()
    assert (info.clipped["shown"] > info.domain[0]).all()
    assert info.clipped.groupby("x")["shown"].nunique().eq(2).all()
    assert (info.points["y"] >= -0.25).all()
    assert "means below \N{MINUS SIGN}0.25; the number below each" in info.caption
    spec = draw_lines(info).to_dict()
    ticks = [layer["encoding"]["y"].get("axis", {}).get("values") for layer in spec["layer"]]
    assert [-0.25, 0, 0.25, 0.5, 0.75, 1] in ticks


def test_the_axis_starts_at_zero_where_nothing_is_below(frame):
    info = lines_info(frame[frame["series"] == "in"], "size", "score", floor=-0.25, ceiling=1.0)
    assert info.floor == info.domain[0] == 0
    assert 1 < info.domain[1] < 1.1
    assert "Triangles" not in info.caption


def test_a_floor_above_zero_stays(frame):
    info = lines_info(frame[frame["series"] == "in"], "size", "score", floor=0.5, ceiling=1.0)
    assert info.domain[0] == 0.5


def test_a_logarithmic_axis_has_geometric_means():
    frame = pd.DataFrame({"replicate": [0, 1, 2, 0], "n": [1, 1, 1, 0], "loss": [0.1, 1.0, 10.0, 5.0]})
    info = lines_info(frame, "n", "loss", log_y=True)
    assert info.summary["mean"].tolist() == pytest.approx([1.0])
    assert (info.summary["low"] > 0).all()
    assert info.dropped == 1
    assert "1 row at or below zero" in info.caption
    assert "logarithm" in info.caption
    assert lines_info(frame, "n", "loss", log=False).dropped == 0


def test_references_are_seen_and_may_belong_to_one_panel(frame):
    lines = [Reference(1.4, "published", 3), Reference(0.95, "threshold"), Reference(0.1, "absent", 9)]
    info = lines_info(frame, "size", "score", "series", "depth", references=lines)
    assert info.domain[1] > 1.4
    assert [one.facet for one in info.references] == ["3", None]
    first, second = (str(panel) for panel in draw_lines(info).to_dict()["concat"])
    assert "'published'" not in str(first)
    assert len(second) > len(first)


def test_a_bar_that_is_cut_is_said():
    frame = pd.DataFrame({"replicate": [0, 1], "n": [1, 1], "score": [0.0, 1.0]})
    assert "cut off" in lines_info(frame, "n", "score").caption


@pytest.mark.parametrize(
    "cut",
    [
        lambda frame: frame.iloc[:0],
        lambda frame: frame[frame["replicate"] == 0],
        lambda frame: frame[frame["size"] == 10],
        lambda frame: frame.assign(score=np.nan),
        lambda frame: frame.assign(size=0),
        lambda frame: frame.assign(series='</script><b>"&.[0]'),
        lambda frame: frame.assign(depth=np.nan),
    ],
)
@pytest.mark.parametrize("floor", [None, -0.25])
def test_thin_input_draws_something(frame, cut, floor):
    info = lines_info(cut(frame), "size", "score", "series", "depth", floor=floor, controls=("lookup",))
    assert info.caption
    assert draw_lines(info).to_dict()


def test_a_wrong_table_is_refused(frame):
    with pytest.raises(BadInput, match="'width'"):
        lines_info(frame, "width", "score", "series")
