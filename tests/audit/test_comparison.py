"""Two audits compared, and the gate."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recombine.audit.audit import audit_table
from recombine.audit.comparison.compare import compare, compare_tables, paired_p, sign_test
from recombine.audit.comparison.gate import check_gate, parse_condition
from recombine.audit.comparison.scored import read_scored
from recombine.errors import BadInput

COLUMNS = {"factors": ["colour", "shape"], "scores": ["success"], "split": ("split", "train")}


def frame(worse: str = "", seed: int = 0, low: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [
        (a, b, "train" if (ord(a) + ord(b)) % 3 else "test", int(rng.random() < (low if a == worse else 0.9)))
        for a, b in itertools.product("rgbcmy", "uvwxyz")
        for _ in range(6)
    ]
    return pd.DataFrame(rows, columns=["colour", "shape", "split", "success"])


def test_differences_are_the_paired_t_of_scipy():
    old, new = frame(), frame("r", seed=1)
    comparison = compare_tables(old, new, **COLUMNS)
    means = [table.groupby(["colour", "shape"])["success"].mean() for table in (old, new)]
    (score,) = comparison.scores
    expected = stats.ttest_rel(means[1], means[0])
    interval = score.overall.difference
    assert interval is not None
    assert [interval.low, interval.high] == pytest.approx(list(expected.confidence_interval()))
    for value in ("r", "g"):
        change = next(each for each in score.values if each.name == f"colour={value}")
        assert change.estimate == pytest.approx(means[1][value].mean() - means[0][value].mean())
    lost = (means[0] >= 0.5) & (means[1] < 0.5)
    assert {each.values for each in score.lost} == set(lost[lost].index)
    assert "colour=r" in {each.name for each in score.worse}


def test_the_sign_test_and_the_paired_test_are_those_of_scipy():
    assert sign_test(3, 9) == pytest.approx(stats.binomtest(3, 12).pvalue)
    differences = np.random.default_rng(0).normal(0.3, 1, 12)
    assert paired_p(differences) == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert paired_p(np.full(4, 0.5)) == 2 * 0.5**4


def test_what_got_worse_is_named_although_the_mean_rose():
    old, new = frame("g", low=0.0), frame("r", seed=1, low=0.3)
    (score,) = compare_tables(old, new, **COLUMNS).scores
    assert score.overall.estimate > 0
    assert "Although the mean did not fall, worse: colour=r" in score.sentence


def test_a_document_gives_the_same_comparison_as_the_table(tmp_path):
    import json

    scored = read_scored(frame(), **COLUMNS)
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"scored": scored.record()}))
    new = read_scored(frame("r", seed=1), **COLUMNS)
    assert compare(read_scored(path), new).scores == compare(scored, new).scores


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"scores": []}', "kept no combinations"),
        ('{"a": 1}', "is not an audit"),
        ('{"scored": {"format": 99, "version": "9.9"}}', "recombine 9.9"),
        (
            '{"scored": {"format": 1, "slots": ["a"], "scores": ["s"], "binary": [true], "csv": "a,rows,mean s\\nx"}}',
            "read",
        ),
        ('{\n  "source": "x', "not the whole"),
    ],
)
def test_a_broken_baseline_is_refused(tmp_path, text, words):
    path = tmp_path / "audit.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=words):
        read_scored(path, **COLUMNS)


def test_other_factors_and_other_tables_are_refused():
    old = read_scored(frame(), **COLUMNS)
    with pytest.raises(BadInput, match="has the factors"):
        compare(
            old, read_scored(frame().rename(columns={"shape": "form"}), **COLUMNS | {"factors": ["colour", "form"]})
        )
    other = frame().assign(shape=lambda table: table["shape"] + "2")
    with pytest.raises(BadInput, match="no combination in common"):
        compare(old, read_scored(other, **COLUMNS))


def test_the_gate():
    audit = audit_table(frame("r"), **COLUMNS)
    same = compare_tables(frame(), frame(), **COLUMNS)
    worse = compare_tables(frame(), frame("r", seed=1), **COLUMNS)
    assert [check.passed for check in check_gate(audit, ["overall.score < 0", "overall.score < 1"])] == [True, False]
    assert all(check.passed for check in check_gate(audit, ["lost.combinations > 0"], comparison=same, allow_drop=0.0))
    failed = [check for check in check_gate(audit, comparison=worse, allow_drop=0.02) if not check.passed]
    assert failed and "a drop of" in failed[0].sentence


@pytest.mark.parametrize(
    "text",
    [
        "overall < .5",
        "overall.score",
        "nothing.score < 1",
        "overall.nothing < 1",
        "lost.combinations > 0",
        "x.overall.score < 1",
    ],
)
def test_a_gate_that_names_what_is_not_there_is_refused(text):
    audit = audit_table(frame(), **COLUMNS)
    with pytest.raises(BadInput) as error:
        check_gate(audit, [text])
    assert error.value.fix


def test_a_condition_may_name_a_score_with_dots():
    condition = parse_condition("exact.match.overall.low <= -1e-3")
    assert (condition.score, condition.group, condition.field) == ("exact.match", "overall", "low")
    assert condition.value == -0.001
