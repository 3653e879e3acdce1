import numpy as np
import pandas as pd
import pytest

from recombine.figures.curves import MOST_STEPS, curves_info
from recombine.figures.lines import draw_lines


def test_means_at_steps_that_all_replicates_have(curves):
    info = curves_info(curves)
    rows = info.summary[(info.summary["facet"] == "trained combinations") & (info.summary["series"] == "trained on 40")]
    assert list(rows["x"]) == [0, 10, 20, 30, 40, 50]
    assert list(rows["mean"]) == pytest.approx([step / 100 for step in rows["x"]])
    assert set(rows["replicates"]) == {3}
    # The runs that went on are still there, each for itself.
    assert info.points["x"].max() == 100
    assert [style.name for style in info.styles] == ["trained on 40", "trained on 160"]


def test_long_curves_are_thinned_with_both_ends():
    steps = np.arange(5000)
    frame = pd.DataFrame(
        {"replicate": 0, "number": 4, "step": steps, "loss": 1.0, "score_in": 0.5, "score_held_out": 0.5}
    )
    shown = curves_info(frame).points["x"]
    assert shown.nunique() == MOST_STEPS
    assert (shown.min(), shown.max()) == (0, 4999)


def test_the_axis_goes_as_low_as_it_must(curves):
    assert curves_info(curves).domain == (-0.25, 1.0)
    assert "cut off" in curves_info(curves).caption
    assert curves_info(curves.assign(score_held_out=0.5)).domain == (0.0, 1.0)


@pytest.mark.parametrize(
    "cut",
    [
        lambda curves: curves.iloc[:0],
        lambda curves: curves[curves["replicate"] == 0],
        lambda curves: curves[curves["number"] == 40],
        lambda curves: curves.assign(score_held_out=np.nan),
        lambda curves: curves.assign(score_in=np.nan, score_held_out=np.nan),
        lambda curves: curves[curves["step"] == 0],
    ],
)
def test_thin_input_draws_something(curves, cut):
    info = curves_info(cut(curves))
    assert info.caption
    assert draw_lines(info).to_dict()
