"""What scores mean: scales, directions, successes, trials, clusters, ordered factors."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings, strategies as st

from recombine.audit.audit import audit_cells, audit_table
from recombine.audit.comparison.compare import compare_tables
from recombine.audit.comparison.gate import check_gate
from recombine.audit.reading.read import read_cells
from recombine.errors import BadInput

FACTORS = {"factors": ["colour", "shape"], "split": ("split", "train")}


def frame(kind: str = "real", seed: int = 0, rows: int = 3) -> pd.DataFrame:
    """A table in which held-out combinations are worse, and one colour is worst."""
    rng = np.random.default_rng(seed)
    lines = []
    for a, b in itertools.product("abcdef", "uvwxyz"):
        split = "train" if rng.random() < 0.5 else "test"
        mean = 0.85 - 0.3 * (split == "test") - 0.35 * (a == "a")
        for _ in range(rows):
            score = float(rng.random() < mean) if kind == "binary" else mean + 0.05 * rng.normal()
            lines.append((a, b, split, score))
    return pd.DataFrame(lines, columns=["colour", "shape", "split", "score"])


def words(audit) -> list[str]:
    """Everything that an audit says of its score, without numbers."""
    (score,) = audit.scores
    said = [text for advice in score.advice for text in (advice.rule, advice.sentence, advice.because)]
    said += [score.parts.verdict, *(each.name for each in score.slices), *(each.name for each in score.effects.effects)]
    said += [each.name for each in (*score.parts.hardest_parts, *score.parts.easiest_parts)]
    return [re.sub(r"[-+]?\d+(,\d{3})*(\.\d+)?(e[-+]?\d+)?", "#", text) for text in said]


TABLES = {kind: frame(kind) for kind in ("real", "binary")}
BASE = {kind: words(audit_table(table, scores="score", quick=True, **FACTORS)) for kind, table in TABLES.items()}


@settings(max_examples=10, deadline=None)
@given(
    kind=st.sampled_from(["real", "binary"]),
    unit=st.floats(0.01, 1e4),
    shift=st.floats(-100, 100),
    flipped=st.booleans(),
)
@example("binary", 7051.942349848853, -18.0, False)  # Two slices lose the same but for rounding.
def test_an_affine_change_of_the_score_changes_no_word(kind, unit, shift, flipped):
    table = TABLES[kind].assign(score=lambda each: (-1 if flipped else 1) * unit * each["score"] + shift)
    changed = audit_table(table, scores="score", quick=True, lower_is_better=flipped, **FACTORS)
    assert words(changed) == BASE[kind]


def test_an_affine_change_with_its_scale_changes_no_word_of_the_whole_audit():
    table = TABLES["real"].assign(score=lambda each: each["score"].clip(0, 1))
    errors = table.assign(score=lambda each: 100 - 100 * each["score"])
    plain = audit_table(table, scores="score", scale=(0, 1), **FACTORS)
    turned = audit_table(errors, scores="score", scale=(0, 100), lower_is_better=True, **FACTORS)
    assert words(plain) == words(turned)
    assert turned.scores[0].overall.estimate == pytest.approx(100 - 100 * plain.scores[0].overall.estimate)
    assert turned.scores[0].lowest[0].score == pytest.approx(100 - 100 * plain.scores[0].lowest[0].score)


@pytest.mark.parametrize("texts", [("pass", "fail"), ("Passed", "FAILED"), ("true", "false"), ("yes", "no")])
def test_words_for_success_are_read_as_what_they_are(texts):
    table = TABLES["binary"].assign(score=lambda each: np.where(each["score"] == 1, *texts))
    plain = read_cells(TABLES["binary"], scores=["score"], **FACTORS)
    cells = read_cells(table, scores=["score"], **FACTORS)
    np.testing.assert_array_equal(cells.mean, plain.mean)
    assert cells.binary == (True,) and cells.scale(0).ends == (0, 1)


def test_success_is_a_text():
    table = TABLES["binary"].assign(score=lambda each: np.where(each["score"] == 1, "solved it", "timeout"))
    cells = read_cells(table, scores=["score"], success="solved it", **FACTORS)
    np.testing.assert_array_equal(cells.mean, read_cells(TABLES["binary"], scores=["score"], **FACTORS).mean)
    none = read_cells(table, scores=["score"], success="sovled it", **FACTORS)
    assert any("No row has 'sovled it'" in note and "'timeout'" in note for note in none.notes)


def test_percentages_have_a_scale():
    table = TABLES["real"].assign(score=lambda each: each["score"].clip(0, 1).map("{:.0%}".format))
    cells = read_cells(table, scores=["score"], **FACTORS)
    assert cells.scale(0).ends == (0, 100) and cells.scale(0).percent and 40 < cells.mean.mean() < 80
    table.loc[3, "score"] = "0.4"
    with pytest.raises(BadInput, match="percentage in 107 of 108"):
        read_cells(table, scores=["score"], **FACTORS)


def test_trials_are_counts_or_shares():
    table = TABLES["binary"]
    by = ["colour", "shape", "split"]
    counts = table.groupby(by, as_index=False).agg(score=("score", "sum"), n=("score", "size"))
    shares = counts.assign(score=lambda each: (each["score"] / each["n"]).round(2))
    plain = read_cells(table, scores=["score"], **FACTORS)
    for aggregated, error in ((counts, 1e-12), (shares, 0.005)):
        cells = read_cells(aggregated, scores=["score"], trials="n", **FACTORS)
        np.testing.assert_allclose(cells.mean, plain.mean, atol=error)
        np.testing.assert_array_equal(cells.count, plain.count)
        np.testing.assert_allclose(cells.spread, plain.spread, atol=4 * error)
        assert cells.binary == (True,)
    for column, value, words_of in (("n", 0, "number of trials"), ("score", 4, "more successes than trials")):
        broken = counts.copy()
        broken.loc[0, column] = value
        with pytest.raises(BadInput, match=words_of):
            read_cells(broken, scores=["score"], trials="n", **FACTORS)


def test_rows_of_a_cluster_count_as_one():
    table = TABLES["real"].assign(prompt=lambda each: each["colour"] + each["shape"])
    twice = pd.concat([table, table])
    cells = read_cells(twice, scores=["score"], cluster="prompt", **FACTORS)
    assert (cells.count == 1).all() and any("216 rows became 36" in note for note in cells.notes)
    np.testing.assert_allclose(cells.mean, read_cells(table, scores=["score"], **FACTORS).mean)


def test_numbers_are_put_into_bins_and_have_a_trend():
    rng = np.random.default_rng(0)
    size = rng.integers(0, 1000, 400)
    shape = rng.choice([*"uvwx"], 400)
    score = 0.2 + 0.0006 * size + 0.02 * rng.normal(size=400)
    table = pd.DataFrame({"size": size, "shape": shape, "score": score})
    audit = audit_table(table, factors=["size", "shape"], scores="score", numeric={"size": 4}, quick=True)
    assert audit.factors == {"size": 4, "shape": 4} and audit.combinations == 16
    cells = read_cells(table, factors=["size", "shape"], scores=["score"], numeric={"size": (0, 250, 500, 1000)})
    assert cells.factors[0].values == ("0 to 250", "250 to 500", "500 to 1000")
    whole = audit_cells(cells)
    (trend,) = [each for each in whole.scores[0].effects.effects if each.kind == "trend"]
    low, high = cells.factors[0].positions[0], cells.factors[0].positions[-1]
    assert trend.size.low < 0.0006 * (high - low) < trend.size.high and trend.p < 1e-4
    steps = table.assign(size=lambda each: pd.cut(each["size"], [-1, 300, 600, 1000], labels=["small", "mid", "large"]))
    cells = read_cells(steps, factors=["size", "shape"], scores=["score"], ordinal={"size": ("small", "mid", "large")})
    assert cells.factors[0].values == ("small", "mid", "large")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"scale": (0, 0.5)}, "not on the scale"),
        ({"scale": (1, 0)}, "does not ascend"),
        ({"chance": 0.1}, "scale of the score 'score' is unknown"),
        ({"scale": (0, 1), "chance": 2.0}, "not on the scale"),
        ({"trials": "n"}, "no column 'n'"),
        ({"trials": "split", "cluster": "split"}, "no clusters"),
        ({"cluster": "colour"}, "also as a factor"),
        ({"numeric": ["colour"]}, "named as numeric, but has the value"),
        ({"numeric": ["height"]}, "is no factor"),
        ({"numeric": {"colour": 1}}, "cannot have 1 bins"),
        ({"ordinal": {"colour": ("a", "b")}}, "none of the steps"),
        ({"success": "x", "scale": (0, 1)}, "needs no scale"),
    ],
)
def test_what_contradicts_itself_is_refused(columns, message):
    table = TABLES["real"].assign(score=lambda each: each["score"].clip(0, 1))
    with pytest.raises(BadInput, match=message) as error:
        read_cells(table, scores=["score"], **FACTORS, **columns)
    assert error.value.fix


def test_chance_moves_what_low_means():
    table = TABLES["real"].assign(score=lambda each: 0.25 + 0.2 * each["score"].clip(0, 1))
    (score,) = audit_table(table, scores="score", scale=(0, 1), chance=0.25, quick=True, **FACTORS).scores
    assert "above chance" in next(a.because for a in score.advice if a.rule == "coverage-fine-model-limit")


def test_a_comparison_knows_the_direction():
    old, new = TABLES["binary"], frame("binary", seed=1)
    errors = [table.assign(score=lambda each: 1 - each["score"]) for table in (old, new)]
    columns = {"scores": ["score"], **FACTORS}
    (up,) = compare_tables(old, new, **columns).scores
    down = compare_tables(*errors, lower_is_better=True, **columns)
    (score,) = down.scores
    assert {each.values for each in up.lost} == {each.values for each in score.lost if each.after != each.before}
    assert [each.name for each in up.worse] == [each.name for each in score.worse]
    audit = audit_table(errors[1], lower_is_better=True, quick=True, scores="score", **FACTORS)
    passed = [check.passed for check in check_gate(audit, comparison=down, allow_drop=0.01)]
    upright = audit_table(new, quick=True, scores="score", **FACTORS)
    assert passed == [
        c.passed for c in check_gate(upright, comparison=compare_tables(old, new, **columns), allow_drop=0.01)
    ]


def test_a_constant_score_gets_one_advice():
    (score,) = audit_table(TABLES["real"].assign(score=3.5), scores="score", **FACTORS).scores
    assert [advice.rule for advice in score.advice] == ["constant-score"] and "nothing to fix" not in score.advice[
        0
    ].sentence
    assert score.parts.verdict.startswith("Unknown.")
