import math

from recombine.figures.audit.intervals import IntervalRow, draw_intervals, intervals_info
from recombine.figures.embed import chart_json


def test_rows_stand_in_their_order_with_words():
    info = intervals_info([IntervalRow("b", 0.5, 0.4, 0.6, "12 rows"), IntervalRow("a", 0.2)], domain=(0.0, 1.0))
    assert list(info.rows["label"]) == ["b", "a"]
    assert list(info.rows["text"]) == ["0.50 [0.40, 0.60]", "0.20, no interval"]
    assert info.domain == (0.0, 1.0)
    assert "without a bar" in info.caption
    draw_intervals(info).to_dict()


def test_differences_have_signs_and_a_line_at_zero():
    info = intervals_info([IntervalRow("a", 0.35, 0.24, 0.46)], zero=True)
    assert list(info.rows["text"]) == ["+0.35 [+0.24, +0.46]"]
    assert info.domain[0] < 0
    assert info.domain[1] > 0.46
    assert "cut off" not in info.caption


def test_a_wild_bar_does_not_flatten_the_rest():
    info = intervals_info([IntervalRow("a", 1.0, 0.9, 1.1), IntervalRow("b", 2.0, -500.0, 500.0)])
    assert info.domain[1] < 10
    assert "cut off" in info.caption


def test_an_estimate_beyond_the_given_axis_widens_it():
    info = intervals_info([IntervalRow("a", 1.4)], domain=(0.0, 1.0))
    assert info.domain[0] < 1.4 < info.domain[1]
    assert "There are no intervals." in info.caption


def test_what_has_no_estimate_is_left_out_and_nothing_is_a_figure_too():
    info = intervals_info([IntervalRow("a", math.nan)])
    assert len(info.rows) == 0
    assert "nothing to show" in chart_json(draw_intervals(info))


def test_long_and_equal_names_stay_apart():
    info = intervals_info([IntervalRow("x" * 900, 1.0), IntervalRow("x" * 901, 2.0), IntervalRow("a\x1b[31m\n", 3.0)])
    assert len(set(info.rows["label"])) == 3
    assert info.rows["label"].str.len().max() < 60
    assert info.rows["whole"].str.len().max() <= 400
    assert info.rows["label"].iloc[2] == "a\\x1b[31m\\n"
