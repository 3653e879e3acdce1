import numpy as np
import pandas as pd
import pytest

from recombine.figures.scatter import draw_scatter, scatter_info


@pytest.fixture
def frame():
    draw = np.random.default_rng(2)
    group = np.repeat([40, 80, 160], 10)
    x = draw.random(30) + group / 100
    return pd.DataFrame({"size": group, "x": x, "y": 0.4 * x - group / 50 + 0.1 * draw.normal(size=30)})


def slope(info, series):
    part = info.lines[info.lines["series"] == series]
    return np.diff(part["y"])[0] / np.diff(part["x"])[0]


def test_the_common_slope_is_that_of_a_regression_with_a_constant_for_each_group(frame):
    info = scatter_info(frame, "x", "y", "size", fit="common")
    design = np.column_stack([frame["x"], pd.get_dummies(frame["size"]).to_numpy(float)])
    expected = np.linalg.lstsq(design, frame["y"], rcond=None)[0][0]
    assert [slope(info, name) for name in ("40", "80", "160")] == pytest.approx([expected] * 3)


def test_the_note_stands_in_the_caption_and_above_the_plot(frame):
    info = scatter_info(frame, "x", "y", "size", note="within sizes: r = 0.6")
    assert info.caption == "30 points. Within sizes: r = 0.6."
    assert draw_scatter(info).to_dict()["title"]["text"] == "within sizes: r = 0.6"


@pytest.mark.parametrize(
    "cut",
    [
        lambda frame: frame.iloc[:0],
        lambda frame: frame.iloc[:1],
        lambda frame: frame.assign(x=1.0),
        lambda frame: frame.assign(y=np.nan),
        lambda frame: frame.assign(size='</script><b>"&.[0]'),
        lambda frame: pd.concat([frame] * 20),
    ],
)
@pytest.mark.parametrize("fit", ["none", "common"])
def test_thin_input_draws_something(frame, cut, fit):
    info = scatter_info(cut(frame), "x", "y", "size", fit=fit, ordered=True)
    assert info.caption
    assert draw_scatter(info).to_dict()
