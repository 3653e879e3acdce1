import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.figures.calibration import calibration_info, draw_calibration


@pytest.fixture
def table():
    rows = [
        ("probe", 0.2, 0.3, 0.1, 0.5, 10),
        ("probe", 0.8, 0.6, 0.5, 0.7, 30),
        ("certificate", 0.5, 0.5, 0.4, 0.6, 5),
        ("certificate", 0.9, np.nan, np.nan, np.nan, 0),
    ]
    return pd.DataFrame(rows, columns=["predictor", "predicted", "observed", "low", "high", "n"])


def test_the_error_weighs_bins_by_their_cases(table):
    info = calibration_info(table)
    assert [style.name for style in info.styles] == ["probe", "certificate"]
    assert info.errors == pytest.approx(((10 * 0.1 + 30 * 0.2) / 40, 0.0))
    assert info.bins["away"].tolist() == [False, True, False]
    assert info.domain == (0.0, 1.0)


def test_scores_below_zero_widen_both_axes(table):
    info = calibration_info(table.assign(observed=table["observed"] - 0.5))
    assert info.domain[0] < -0.2
    assert info.domain[1] >= 0.8


def test_a_panel_a_predictor(table):
    panels = draw_calibration(calibration_info(table, labels={"certificate": "the certificate"})).to_dict()
    assert [panel["title"]["text"] for panel in panels["concat"]] == ["the certificate", "probe"]


@pytest.mark.parametrize(
    "cut",
    [
        lambda table: table.iloc[:0],
        lambda table: table.iloc[:1],
        lambda table: table.assign(low=np.nan, high=np.nan),
        lambda table: table.assign(predicted=np.nan),
        lambda table: table.assign(predictor='</script><b>"&.[0]'),
    ],
)
def test_thin_input_draws_something(table, cut):
    info = calibration_info(cut(table))
    assert info.caption
    assert draw_calibration(info).to_dict()


def test_a_wrong_table_is_refused(table):
    with pytest.raises(BadInput, match="'n'"):
        calibration_info(table.drop(columns="n"))
