import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.errors import BadInput
from recombine.figures.summary import replicates_in_words, require, summarise


def test_interval_is_the_t_interval_of_scipy():
    values = [0.1, 0.4, 0.35, 0.8]
    frame = pd.DataFrame({"size": 7, "replicate": range(4), "r2": values})
    row = summarise(frame, ["size"], "r2").iloc[0]
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert row["size"] == 7
    assert row["replicates"] == 4
    assert [row["mean"], row["low"], row["high"]] == pytest.approx([np.mean(values), *expected])


def test_rows_of_one_replicate_are_averaged_first():
    frame = pd.DataFrame({"size": 1, "replicate": [0, 0, 0, 1], "r2": [1.0, 1.0, 1.0, 3.0]})
    row = summarise(frame, ["size"], "r2").iloc[0]
    assert row["mean"] == 2.0
    assert row["replicates"] == 2


def test_one_replicate_has_a_mean_and_no_interval():
    frame = pd.DataFrame({"size": 1, "replicate": [0], "r2": [0.5]})
    row = summarise(frame, ["size"], "r2").iloc[0]
    assert row["mean"] == 0.5
    assert np.isnan(row["low"])
    assert np.isnan(row["high"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_left_out(bad):
    frame = pd.DataFrame({"size": 1, "replicate": [0, 1, 2], "r2": [0.5, bad, 0.7]})
    row = summarise(frame, ["size"], "r2").iloc[0]
    assert row["replicates"] == 2
    assert row["mean"] == pytest.approx(0.6)


def test_nothing_in_nothing_out():
    frame = pd.DataFrame({"size": [], "replicate": [], "r2": []})
    assert list(summarise(frame, ["size"], "r2").columns) == ["size", "mean", "low", "high", "replicates"]
    assert len(summarise(frame, ["size"], "r2")) == 0


def test_a_missing_column_is_named():
    with pytest.raises(BadInput, match="no column 'r2'"):
        require(pd.DataFrame({"run": []}), ["run", "r2"], "runs")


@pytest.mark.parametrize(
    ("counts", "words"), [([1], "one replicate"), ([4, 4], "over 4 replicates"), ([3, 4], "over 3 to 4"), ([], "no")]
)
def test_the_caption_says_what_the_bars_are(counts, words):
    assert words in replicates_in_words(pd.DataFrame({"replicates": counts}))
