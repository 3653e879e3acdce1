"""The forecast of a plan: near a law that is known, and declined where its scores do not reach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.plan.forecast import declined, forecast_scores, read_scores


def score(number):
    return 1 - (0.05 + 3.0 * number**-0.8)


@pytest.fixture
def scores(tmp_path):
    """Scores by a law, of 4 replicates with a little noise."""
    rng = np.random.default_rng(0)
    rows = [
        (number, 1 - (1 - score(number)) * np.exp(rng.normal(0, 0.02)), replicate)
        for number in (20, 40, 80, 160, 320)
        for replicate in range(4)
    ]
    path = tmp_path / "scores.csv"
    pd.DataFrame(rows, columns=["number", "score", "replicate"]).to_csv(path, index=False)
    return path


def test_the_forecast_is_near_the_law_that_made_the_scores(scores):
    said = forecast_scores(read_scores(scores), collected=100, planned=400)
    assert [one.number for one in said.expected] == [200, 300, 400, 500]
    for one in said.expected:
        assert one.low is not None and one.high is not None and one.score is not None
        assert one.low <= one.score <= one.high and one.score == pytest.approx(score(one.number), abs=0.02)
    assert "5 sizes, 20 to 320 combinations" in said.notes[0] and "4 replicates" in said.notes[0]


def test_it_declines_where_the_scores_do_not_reach(scores):
    far = forecast_scores(read_scores(scores), collected=0, planned=5120)
    assert [one.score is None for one in far.expected] == [False, True, True, True]
    assert "more than 4 times the 320" in declined(far.expected)[0]
    near = forecast_scores(read_scores(scores), collected=0, planned=8)
    assert all(one.score is None for one in near.expected)
    assert "start at 20 combinations" in declined(near.expected)[0]


def test_too_few_sizes_are_declined_too(tmp_path):
    pd.DataFrame({"combinations": [10, 20], "score_held_out": [0.1, 0.2]}).to_parquet(tmp_path / "few.parquet")
    said = forecast_scores(read_scores(tmp_path / "few.parquet"), 0, 20)
    assert len(declined(said.expected)) == 1 and "No scaling law fits the scores" in said.expected[0].declined


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n,score\n1,2\n", "no column 'number'"),
        ("number,value\n1,2\n", "no column 'score'"),
        ("number,score\n1,x\n", "not numbers, the first is 'x' in row 1"),
        ("number,score\n1,\n", "not numbers"),
        ("number,score\n1,95\n", "whose best value is 1"),
        ("number,score\n0,0.5\n", "must be positive"),
        ("", "cannot be read"),
        ('number,score\n"1,2\n', "cannot be read"),
    ],
)
def test_broken_tables(tmp_path, text, says):
    (tmp_path / "scores.csv").write_text(text)
    with pytest.raises(BadInput, match=says):
        read_scores(tmp_path / "scores.csv")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="no file"):
        read_scores(tmp_path / "scores.csv")
    (tmp_path / "scores.parquet").write_text("no")
    with pytest.raises(BadInput, match="cannot be read"):
        read_scores(tmp_path / "scores.parquet")
