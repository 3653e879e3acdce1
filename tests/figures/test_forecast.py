import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.figures.forecast import draw_forecast, forecast_info


@pytest.fixture
def tables():
    points = pd.DataFrame(
        [(32, 10, 0.1, True), (32, 20, 0.3, True), (32, 40, 0.5, False), (32, 80, 0.95, False), (64, 10, 0.4, True)],
        columns=["width", "x", "y", "fitted"],
    )
    xs = np.geomspace(10, 100, 21)
    curve = pd.concat(
        [pd.DataFrame({"width": width, "x": xs, "predicted": np.log10(xs) - 0.9}) for width in (32, 64)],
        ignore_index=True,
    )
    curve = curve.assign(low=curve["predicted"] - 0.25, high=curve["predicted"] + 0.25)
    baselines = pd.DataFrame({"width": 32, "name": ["held out", "mean"], "x": [40, 40], "predicted": [0.3, 0.4]})
    return points, curve, baselines


def test_held_out_points_within_the_band_are_counted(tables):
    info = forecast_info(*tables, facet="width")
    # At 40 the band is 0.70 +- 0.25, at 80 it is 1.00 +- 0.25.
    assert "2 of 2 held-out points lie within the band" in info.caption
    points, curve, baselines = tables
    narrow = forecast_info(points, curve.assign(low=curve["predicted"] - 0.1), baselines, facet="width")
    assert "1 of 2 held-out points lie within the band" in narrow.caption
    short = forecast_info(points, curve[curve["x"] < 50], baselines, facet="width")
    assert "1 of 1 held-out point lie within the band" in short.caption


def test_the_forecast_begins_between_the_last_fitted_point_and_the_first_held_out_one(tables):
    assert forecast_info(*tables, facet="width").begins == {"32": pytest.approx(np.sqrt(20 * 40))}


def test_a_baseline_called_like_the_points_has_a_name_of_its_own(tables):
    names = [style.name for style in forecast_info(*tables, facet="width", law="mean").styles]
    assert len(set(names)) == len(names) == 5
    assert {"fitted on", "held out", "mean", "held out (2)", "mean (2)"} == set(names)


def test_points_of_one_kind_only_and_interpolation(tables):
    points, curve, _ = tables
    info = forecast_info(points[points["fitted"]], curve, facet="width")
    assert info.begins == {}
    assert "within the band" not in info.caption
    assert draw_forecast(info).to_dict()


@pytest.mark.parametrize(
    "cut",
    [
        lambda points, curve, baselines: (points.iloc[:0], curve.iloc[:0], baselines.iloc[:0]),
        lambda points, curve, baselines: (points, curve.iloc[:0], None),
        lambda points, curve, baselines: (points.iloc[:0], curve, None),
        lambda points, curve, baselines: (points.assign(y=np.nan), curve, baselines),
        lambda points, curve, baselines: (points, curve.assign(low=np.nan, high=np.nan), baselines),
        lambda points, curve, baselines: (points, curve, baselines.assign(name='</script><b>"&.[0]')),
    ],
)
@pytest.mark.parametrize(("log_y", "facet"), [(False, "width"), (True, None)])
def test_thin_input_draws_something(tables, cut, log_y, facet):
    info = forecast_info(*cut(*tables), facet=facet, log_y=log_y)
    assert info.caption
    assert draw_forecast(info).to_dict()


def test_a_wrong_table_is_refused(tables):
    points, curve, _ = tables
    with pytest.raises(BadInput, match="'fitted'"):
        forecast_info(points.drop(columns="fitted"), curve)
