"""Tables of texts run as a family: the right tokens, the right split, a certificate, and a file that may not change."""

from __future__ import annotations

import json
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recombine as rc
from recombine.errors import BadInput
from recombine.language.pair_table import PairSource, read_pairs
from recombine.supports.regions import STRATA, stratum
from recombine.supports.table_split.certificate import compounds_of, of_parse, pair_certificate
from recombine.testing import check_family, check_space, check_support

LINES = [
    ("emma saw a cat", "saw ( emma , cat )", "train", "", "(S (NP emma) (VP (V saw) (NP (D a) (N cat))))"),
    ("a cat saw emma", "saw ( cat , emma )", "train", "", "(S (NP (D a) (N cat)) (VP (V saw) (NP emma)))"),
    ("emma ate a cake", "ate ( emma , cake )", "train", "", "(S (NP emma) (VP (V ate) (NP (D a) (N cake))))"),
    ("noah ate a cat", "ate ( noah , cat )", "dev", "", "(S (NP noah) (VP (V ate) (NP (D a) (N cat))))"),
    ("emma ate a cat", "ate ( emma , cat )", "gen", "new pair", "(S (NP emma) (VP (V ate) (NP (D a) (N cat))))"),
    ("a cat ate emma", "ate ( cat , emma )", "gen", "new pair", "(S (NP (D a) (N cat)) (VP (V ate) (NP emma)))"),
    ("emma saw emma", "saw ( emma , emma )", "gen", "self", "(S (NP emma) (VP (V saw) (NP emma)))"),
    ("noah saw a cat", "saw ( noah , cat )", "gen", "new word", "(S (NP noah) (VP (V saw) (NP (D a) (N cat))))"),
]
NAMES = ("input", "output", "split", "category", "parse")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mini.tsv"
    path.write_text("\n".join("\t".join(line) for line in (NAMES, *LINES)) + "\n")
    return path


def config(table, **more) -> rc.RunConfig:
    return rc.RunConfig(family=rc.families.Pairs(table=str(table), **more))


def test_components_conform():
    run = rc.RunConfig(family="pairs")
    check_space(run.space)
    check_support(run.support, run.space)
    check_family(run.family, run.space)


def test_prompts_and_answers_are_those_of_the_table(table):
    run = config(table)
    setting = rc.training.Setting(run)
    teacher, space, words = setting.teacher, run.space, run.family.vocabulary
    for number, (given, answer, *_) in enumerate(LINES):
        row = space.rows_of(np.array([number]))[0]
        task = teacher.task(jnp.asarray(row), jax.random.key(0))
        assert " ".join(words.spelled(teacher.prompt(task))) == space.name(row) == given
        assert " ".join(words.spelled(teacher.answer(task))) == answer
    assert len({row.tobytes() for row in space.enumerate()}) == len(LINES), "inputs with the same words differ"


def test_the_split(table):
    run = config(table)
    support = rc.training.Setting(run).support
    names = [{run.space.name(row) for row in rows} for rows in (support.rows, support.reserved)]
    assert names[0] == {line[0] for line in LINES if line[2] == "train"}
    assert names[1] == {line[0] for line in LINES if line[2] in ("gen", "dev")}
    only = run.replace(**{"support.test": ("gen",), "support.share": 0.67})
    support = rc.training.Setting(only).support
    assert len(support.rows) == 2 and len(support.reserved) == 4
    for wrong, match in (
        ({"support.train": ("tran",)}, "no split 'tran'; it has dev, gen, train"),
        ({"support.train": ("train", "gen", "dev")}, "No pair is held out"),
        ({"support.test": ("train",)}, "both trained on and held out"),
    ):
        with pytest.raises(BadInput, match=match):
            run.replace(**wrong)


def test_strata_and_certificate_against_counts_by_hand(table):
    run = config(table, parse="").replace(**{"support.test": ("gen",)})
    setting = rc.training.Setting(run)
    support, space = setting.support, run.space
    found = dict(zip(map(space.name, support.reserved), stratum(support.reserved, setting.regions.moment), strict=True))
    expected = {
        "emma ate a cat": STRATA[1],
        "a cat ate emma": STRATA[1],
        "emma saw emma": STRATA[0],
        "noah saw a cat": STRATA[2],
    }
    assert found == expected, "cat and ate never meet; noah is never trained; the number of a pair is no part"
    record = pair_certificate(support)
    assert record["words_unseen"] == 1 / 15 and record["output_words_unseen"] == 1 / 24
    bigrams = [
        Counter(
            c
            for line in LINES
            if line[2] == split
            for n in (2, 3)
            for c in zip(*(line[0].split()[i:] for i in range(n)), strict=False)
        )
        for split in ("train", "gen")
    ]
    unseen = sum(count for compound, count in bigrams[1].items() if compound not in bigrams[0])
    assert record["compounds_unseen"] == unseen / bigrams[1].total()
    assert [record[f"share_{name}"] for name in STRATA] == [0.25, 0.5, 0.25] and record["inputs_trained"] == 0
    words = support.certificate()
    assert words.size == 2 and words.coverage_of(1).share == 6 / 7, "two sets of words; noah is missing"


def test_compounds_follow_parses(table):
    pairs = config(table, parse="parse").family.pairs
    found = Counter(compounds_of(pairs, [0]))
    assert found["S", "NP", "VP"] == found["NP", "emma"] == found["NP", "D", "N"] == 1
    assert found[("VP", "V", "NP"), ("V", "saw")] == 1 and found.total() == 7 + 6
    for wrong in ("(S a", "a", "(S (NP) b)", "S a)", "(S a) (T b)", "( (S a))", ""):
        with pytest.raises(BadInput, match="The parse"):
            of_parse(wrong, ("a",))


def test_a_run_is_named_by_the_content_and_a_changed_file_is_refused(table, tmp_path):
    run = config(table)
    copy = tmp_path / "elsewhere.tsv"
    copy.write_bytes(table.read_bytes())
    assert config(copy).run_id == run.run_id, "the path is no part of the name"
    other = tmp_path / "other.tsv"
    other.write_text(table.read_text().replace("noah", "liam"))
    moved = run.replace(table=str(other))
    assert moved.run_id != run.run_id and "liam" in moved.space.pairs.input_words
    again = rc.RunConfig.model_validate(json.loads(json.dumps(run.dump())))
    assert again == run and again.run_id == run.run_id
    table.write_text(table.read_text() + "\n")
    source = PairSource(**{**vars(run.family.source), "category": "category"})
    with pytest.raises(BadInput, match="has changed since this run was configured"):
        source.pairs()
    table.unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        config(table)


@pytest.mark.parametrize(
    "name, text, match",
    [
        ("t.tsv", "input\toutput\n", "no column 'split'; it has input, output"),
        ("t.tsv", "input\toutput\tsplit\na\tb\n", "Line 2 of t.tsv has 2 values for 3 columns"),
        ("t.tsv", "input\toutput\tsplit\na\t\ttrain\n", "Line 2 of t.tsv has no output"),
        ("t.tsv", "input\toutput\tsplit\n", "has no pairs"),
        ("t.csv", 'input,output,split\n"a,b,train\n', "cannot be read as a table"),
        ("t.jsonl", '{"input": "a", "output": "b", "split": "train"}\n[1]\n', "Line 2 of t.jsonl is not an object"),
        ("t.jsonl", '{"input": "a", "output": 3, "split": "train"}\n', "Line 1 of t.jsonl has no output"),
        ("t.jsonl", '{"input": "a", "outptu": "b", "split": "train"}\n', "no column 'output'.*\n.*'outptu'"),
    ],
)
def test_bad_tables(name, text, match, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput, match=match):
        read_pairs(PairSource(table=str(path)))


def test_formats_and_units_say_the_same(table, tmp_path):
    path = tmp_path / "mini.jsonl"
    path.write_text("\n".join(json.dumps(dict(zip(NAMES, line, strict=True))) for line in LINES))
    assert read_pairs(PairSource(table=str(path))) == read_pairs(PairSource(table=str(table)))
    letters = read_pairs(PairSource(table=str(table), units="characters"))
    assert letters.inputs[0][:5] == tuple("emma ")


def test_a_run_with_all_its_measurements(table, tmp_path):
    """A few steps: whether it learns is not the question here."""
    run = config(table, category="category", parse="parse").replace(
        model={"kind": "decoder", "width": 8, "layers": 1, "heads": 1},
        **{"recipe.steps": 10, "recipe.tasks": 4, "eval_every": 10, "validation_tasks": 8},
    )
    store = rc.Store(tmp_path / "store")
    scores = rc.probes.Scores(combinations=8, draws=1, samples=1)
    rc.LocalEngine().run(store, [run], [scores, rc.probes.PairsCertificate(), rc.probes.Categories()])
    summary = store.summaries(run.run_id)
    test = rc.training.Setting(run).regions.rows("held_out", 8, "test")
    categories = {LINES[number][3] for number in run.space.numbers(test).tolist()}
    columns = {f"whole_{name.replace(' ', '_') or 'none'}" for name in categories}
    assert columns <= set(summary) and columns < rc.probes.Categories().summary_columns(run)
    assert summary["whole_by_category"] == np.mean([summary[name] for name in columns])
    assert summary["words_unseen"] > 0 and 0 <= summary["accuracy_held_out"] <= 1
