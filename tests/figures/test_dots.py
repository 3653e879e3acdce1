import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.figures.axes import Reference
from recombine.figures.dots import dots_info, draw_dots

MEASURES = {"score_in": "trained", "score_held_out": "held out"}


@pytest.fixture
def frame():
    draw = np.random.default_rng(1)
    kinds = {"random": 0.4, "connected": 0.9, "star": -0.8}
    rows = [
        (replicate, kind, 0.95 + 0.01 * draw.normal(), kinds[kind] + 0.03 * draw.normal())
        for replicate, kind in itertools.product(range(5), kinds)
    ]
    return pd.DataFrame(rows, columns=["replicate", "support", "score_in", "score_held_out"])


def test_means_and_intervals(frame):
    info = dots_info(frame, "support", MEASURES)
    chosen = frame.loc[frame["support"] == "connected", "score_held_out"]
    row = info.summary.set_index(["row", "series"]).loc[("connected", "held out")]
    low, high = stats.t.interval(0.95, 4, chosen.mean(), stats.sem(chosen))
    assert [row["mean"], row["low"], row["high"]] == pytest.approx([chosen.mean(), low, high])
    assert info.rows == ("random", "connected", "star")


def test_rows_are_ordered_by_labels(frame):
    named = dots_info(frame, "support", MEASURES, labels={"star": "a star", "random": "at random"})
    assert named.rows == ("a star", "at random", "connected")


def test_notes_and_published_values_stand_at_their_rows(frame):
    info = dots_info(
        frame,
        "support",
        MEASURES,
        notes={"star": "every pair shares a part", "absent": "x"},
        published={"score_held_out": {"random": 0.5, "absent": 0.1}, "unknown": {"random": 1.0}},
        references=[Reference(0.95, "threshold"), Reference(0.2, "chance")],
        columns=True,
    )
    assert info.notes == ("", "", "every pair shares a part")
    assert info.published.to_dict("records") == [{"row": "random", "series": "held out", "value": 0.5}]
    assert "Hollow diamonds" in info.caption
    panels = draw_dots(info).to_dict()["concat"]
    assert len(panels) == 2
    assert [panel["title"]["text"] for panel in panels] == ["trained", "held out"]


def test_means_below_the_floor_become_triangles(frame):
    info = dots_info(frame, "support", MEASURES, floor=-0.25, ceiling=1.0)
    assert info.domain[0] == -0.25
    assert "means below \N{MINUS SIGN}0.25" in info.caption
    assert "triangle-left" in str(draw_dots(info).to_dict())
    assert not ((info.points["row"] == "star") & (info.points["series"] == "held out")).any()


@pytest.mark.parametrize(
    "cut",
    [
        lambda frame: frame.iloc[:0],
        lambda frame: frame[frame["replicate"] == 0],
        lambda frame: frame[frame["support"] == "star"],
        lambda frame: frame.assign(score_in=np.nan),
        lambda frame: frame.assign(score_in=np.nan, score_held_out=np.inf),
        lambda frame: frame.assign(support='</script><b>"&.[0]'),
    ],
)
@pytest.mark.parametrize(("floor", "columns"), [(None, True), (0.0, False)])
def test_thin_input_draws_something(frame, cut, floor, columns):
    info = dots_info(cut(frame), "support", MEASURES, floor=floor, ceiling=1.0, columns=columns)
    assert info.caption
    assert draw_dots(info).to_dict()


def test_a_wrong_table_is_refused(frame):
    with pytest.raises(BadInput, match="'accuracy'"):
        dots_info(frame, "support", ["accuracy"])
