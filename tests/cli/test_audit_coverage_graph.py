"""`recombine audit --coverage-graph`: a table of facts in; a screen, a document and tables out."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recombine.supports.coverage_graph import SEEN, CoverageGraph

ASKED = ("--fragment", "a,b", "--context", "c", "--outcome", "t")


def frame(n: int = 6, share: float = 0.2, seed: int = 0) -> pd.DataFrame:
    """Two hops through random functions, a random part of them."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, n, (2, n, n))
    rows = [(a, b, c, second[first[a, b], c]) for a, b, c in itertools.product(range(n), repeat=3)]
    return pd.DataFrame(rows, columns=["a", "b", "c", "t"])[rng.random(len(rows)) < share]


@pytest.fixture
def facts(tmp_path):
    path = tmp_path / "facts.csv"
    frame().to_csv(path, index=False)
    return path


def by_hand(table: pd.DataFrame, asked: np.ndarray) -> np.ndarray:
    graph = CoverageGraph(table[["a", "b", "c"]].to_numpy(), table["t"].to_numpy(), [(0, 1)])
    return graph.cutoffs(asked)


def test_one_document(cli, facts):
    document = cli("audit", facts, "--coverage-graph", *ASKED, "--json").document
    table = frame()
    every = np.array([*itertools.product(range(6), repeat=3)])
    fragments = {tuple(one) for one in table[["a", "b"]].to_numpy().tolist()}
    every = every[[tuple(one[:2]) in fragments for one in every.tolist()]]
    truth = by_hand(table, every)
    counts = {one["cutoff"]: one["combinations"] for one in document["cutoffs"]}
    assert counts == {k: int((truth == k).sum()) for k in {0, *truth[truth != SEEN].tolist()}}
    assert document["looked_at"] == document["possible"] == int((truth != SEEN).sum())
    assert document["fragments"] == [["a", "b"]] and document["columns"] == ["a", "b", "c"]
    assert document["uncovered_count"] == counts[0] == sum(document["because"].values())
    listed = [tuple(map(int, one["combination"])) for one in document["uncovered"]]
    assert listed == [tuple(one) for one in every[truth == 0].tolist()]
    shared = [one["shared"] for one in document["thinnest"]]
    assert shared == sorted(shared)
    assert all(1 <= one["sure"] <= one["at_best"] for one in document["collect"])
    assert document["chain"]["cutoff"] == min(k for k in counts if k)


def test_a_screen(cli, facts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    answer = cli("audit", facts, "--coverage-graph", *ASKED, "--k", "2")
    assert answer.code == 0 and answer.err == "", answer.err
    lines = answer.out.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 80
    for words in ("facts.csv", "fragments (a, b)", "How much is covered", "uncovered", "Collect next"):
        assert words in answer.out


def test_the_same_from_any_form_and_by_default(cli, facts, tmp_path):
    table = frame()
    table.to_parquet(tmp_path / "facts.parquet")
    table.to_json(tmp_path / "facts.jsonl", orient="records", lines=True)
    told = []
    for name in ("facts.csv", "facts.parquet", "facts.jsonl"):
        answer = cli("audit", tmp_path / name, "--coverage-graph", "--json")
        assert answer.code == 0, answer.err
        told.append({key: value for key, value in answer.document.items() if key != "source"})
    assert told[0] == told[1] == told[2]
    assert told[0]["outcome"] == "t" and told[0]["fragments"] == [["a", "b"]]


def test_a_table_of_combinations(cli, facts, tmp_path):
    known = frame()[["a", "b"]].to_numpy()[0]
    asked = np.array([(0, 0, 0), (1, 2, 3), (5, 5, 5), (9, 0, 0), (*known, 9), *frame().to_numpy()[:2, :3]])
    asked = np.unique(asked, axis=0)
    pd.DataFrame(asked, columns=["a", "b", "c"]).to_csv(tmp_path / "test.csv", index=False)
    out = ("--tables", tmp_path / "out", "--json")
    document = cli("audit", facts, "--coverage-graph", *ASKED, "--test", "test.csv", *out).document
    truth = by_hand(frame(), asked)
    assert document["trained"] == int((truth == SEEN).sum()) >= 2
    made = pd.read_csv(tmp_path / "out" / "combinations.csv")
    found = {tuple(one[:3]): one[3] for one in made[["a", "b", "c", "cutoff"]].to_numpy().tolist()}
    for one, cutoff in zip(asked.tolist(), truth.tolist(), strict=True):
        assert np.isnan(found[tuple(one)]) if cutoff == SEEN else found[tuple(one)] == cutoff
    because = dict(zip(made[["a", "b", "c"]].itertuples(index=False, name=None), made["because"], strict=True))
    assert "fragment is not in training" in because[9, 0, 0] and "context is not" in because[*known, 9]
    assert len(pd.read_csv(tmp_path / "out" / "fragments.csv")) == len(frame().groupby(["a", "b"]))


def test_several_ways_of_cutting(cli, tmp_path):
    rng = np.random.default_rng(0)
    inputs = np.array([*itertools.product(range(4), repeat=4)])
    one, two, three = rng.integers(0, 4, (3, 4, 4))
    outcome = three[two[one[inputs[:, 0], inputs[:, 1]], inputs[:, 2]], inputs[:, 3]]
    table = pd.DataFrame(np.column_stack([inputs, outcome]), columns=[*"abcdt"]).sample(frac=0.3, random_state=0)
    table.to_csv(tmp_path / "facts.csv", index=False)
    cuts = ("--fragment", "a,b", "--fragment", "a,b,c", "--context", "d")
    document = cli("audit", "facts.csv", "--coverage-graph", *cuts, "--json").document
    graph = CoverageGraph(table[[*"abcd"]].to_numpy(), table["t"].to_numpy(), [(0, 1), (0, 1, 2)])
    truth = graph.cutoffs(inputs)
    counts = {one["cutoff"]: one["combinations"] for one in document["cutoffs"]}
    assert counts == {k: int((truth == k).sum()) for k in {0, *truth[truth != SEEN].tolist()}}
    assert cli("audit", "facts.csv", "--coverage-graph", *cuts).code == 0


def test_a_filter(cli, facts):
    document = cli("audit", facts, "--coverage-graph", *ASKED, "--where", "c < 3", "--json").document
    assert document["sizes"][0][1] == 3 and document["rows"] == int((frame()["c"] < 3).sum())


ROWS = "a,b,c,t\n1,1,1,x\n1,2,1,y\n"
BAD = [
    (ROWS, "--fragment a,q", ["no column 'q'", "its columns: a, b, c, t"]),
    (ROWS, "--fragment a --context c", ["outcome", "a, b, c, t"]),
    (ROWS, "--fragment a,b --context b", ["'b'", "more than once"]),
    (ROWS, "--fragment a,t --outcome t", ["'t'", "more than once"]),
    (ROWS, "--fragment a,b,c --outcome t", ["left for the context"]),
    ("a,t\n1,2\n", "", ["left for the context", "a, t"]),
    (ROWS + "1,,1,y\n2,1, ,\n", "", ["2 rows", "line 4 (b)", "line 5 (c, t)"]),
    (ROWS + "1,1,1,z\n", "", ["line 2 and line 4", "1, 1, 1", "'x' and 'z'"]),
    (ROWS, "--k 0", ["k is 0"]),
    (ROWS, "--factors a,b", ["--factors", "--coverage-graph"]),
    (ROWS, "--score t", ["--score"]),
    (ROWS, "--report x.html", ["no page of the coverage graph", "--json", "--tables"]),
    (ROWS, "--test none.csv", ["none.csv"]),
    (ROWS, "--tables facts.csv", ["is a file"]),
    ("a,b,c,t\n", "", ["no rows", "one row per example"]),
]


@pytest.mark.parametrize(("text", "line", "says"), BAD)
def test_bad_input(cli, tmp_path, text, line, says):
    (tmp_path / "facts.csv").write_text(text)
    answer = cli("audit", "facts.csv", "--coverage-graph", *line.split())
    assert answer.code == 2 and answer.out == "", answer.out + answer.err
    assert all(words in answer.err for words in says) and "Traceback" not in answer.err, answer.err
    assert cli("audit", "facts.csv", "--coverage-graph", *line.split(), "--json").document["exit_code"] == 2


def test_a_test_table_without_a_column(cli, facts, tmp_path):
    (tmp_path / "test.csv").write_text("a,b\n1,2\n")
    answer = cli("audit", facts, "--coverage-graph", *ASKED, "--test", "test.csv")
    assert answer.code == 2 and "test.csv has no column 'c'" in answer.err
    assert "its columns: a, b" in answer.err


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("facts.csv", 'a,b,c,t\n"two\nlines",1,1,x\n\n1,,1,x\n2,1,1,\n', ["line 5 (b)", "line 6 (t)"]),
        ("facts.tsv", "a\tb\tc\tt\n1\t1\t1\tx\n1\t\t1\tx\n", ["line 3 (b)"]),
        ("facts.jsonl", '{"a":1,"b":1,"c":1,"t":2}\n\n{"a":1,"b":"","c":1,"t":2}\n', ["line 3 (b)"]),
        ("facts.json", '[{"a":1,"b":1,"c":1,"t":2},\n{"a":1,"b":"","c":1,"t":2}]', ["row 2 (b)"]),
    ],
)
def test_lines_are_those_of_the_file(cli, tmp_path, name, text, places):
    (tmp_path / name).write_text(text)
    answer = cli("audit", name, "--coverage-graph")
    assert answer.code == 2 and all(place in answer.err for place in places), answer.err


def test_tables_of_an_earlier_table_do_not_stay(cli, facts, tmp_path):
    out = tmp_path / "out"
    assert cli("audit", facts, "--coverage-graph", *ASKED, "--tables", out).code == 0
    assert len(pd.read_csv(out / "collect.csv"))
    whole = frame(share=1.1)
    whole.to_csv(tmp_path / "whole.csv", index=False)
    answer = cli("audit", "whole.csv", "--coverage-graph", *ASKED, "--tables", out)
    assert answer.code == 0 and answer.out.count("written: ") == 3
    left = pd.read_csv(out / "collect.csv")
    assert left.empty and [*left.columns[:3]] == ["a", "b", "c"]
    assert pd.read_csv(out / "combinations.csv").empty


def test_values_that_look_alike_are_told(cli, tmp_path):
    (tmp_path / "facts.csv").write_text('a,b,c,t\nAnn,1,1,x\n"Ann ",1,1,x\nBen,1,2,"x "\n')
    notes = cli("audit", "facts.csv", "--coverage-graph", "--json").document["notes"]
    told = "has values that differ only in white space and count as different: "
    assert notes[:2] == [f"a {told}'Ann' and 'Ann '.", f"t {told}'x' and 'x '."]


def test_a_k_that_is_too_large_is_told(cli, facts):
    notes = cli("audit", facts, "--coverage-graph", *ASKED, "--k", "7", "--json").document["notes"]
    assert any("k is 7, but there are only 6 contexts" in note for note in notes)
    notes = cli("audit", facts, "--coverage-graph", *ASKED, "--k", "6", "--json").document["notes"]
    assert not any("k is" in note for note in notes)


def test_long_names_are_told_apart(cli, tmp_path):
    long = "a very long name of a person that goes on and on "
    rows = [f"{long}{n},1,{c},x" for n in (1, 2) for c in range(2 * n - 2, 2 * n)]
    (tmp_path / "facts.csv").write_text("a,b,c,t\n" + "\n".join(rows) + "\n")
    out = cli("audit", "facts.csv", "--coverage-graph").out
    assert "on and on 1" in out and "on and on 2" in out and "…" in out


def test_an_interrupt_says_that_nothing_is_kept(cli, facts, monkeypatch):
    from recombine.audit.coverage_graph import audit as coverage_graph

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(coverage_graph, "read_facts", interrupted)
    answer = cli("audit", facts, "--coverage-graph", *ASKED)
    assert answer.code == 130 and "Interrupted. Nothing was kept." in answer.err


def test_options_of_the_graph_need_it(cli, facts):
    answer = cli("audit", facts, "--fragment", "a,b", "--score", "t")
    assert answer.code == 2 and "--coverage-graph" in answer.err


def test_names_from_data_are_told_and_not_obeyed(cli, tmp_path):
    nasty = ["\x1b[31mred\x1b[0m", "[bold]x[/bold]", "שלום\u202eabc", "蓝色", "<b>"]
    rows = [(a, b, c, "[red]t" if a == b else "u") for a, b, c in itertools.product(nasty, nasty, "xyz")]
    table = pd.DataFrame(rows, columns=["[bold]a", "b\x1b[0m", "c", "t"])
    table[::2].to_csv(tmp_path / "facts.csv", index=False)
    answer = cli("audit", "facts.csv", "--coverage-graph", "--k", "3")
    assert answer.code == 0, answer.err
    assert "\x1b" not in answer.out + answer.err and "\u202e" not in answer.out
    assert "[bold]a" in answer.out and "[bold]x[/bold]" in answer.out
    answer = cli("audit", "facts.csv", "--coverage-graph", "--fragment", "none")
    assert answer.code == 2 and "\x1b" not in answer.err
    assert cli("audit", "facts.csv", "--coverage-graph", "--json").code == 0


def test_the_page_shows_what_the_command_prints(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    root = Path(__file__).parents[2]
    runpy.run_path(str(root / "examples" / "two_hop_facts.py"))["facts"]().to_csv("facts.csv", index=False)
    page = (root / "docs" / "coverage-graph.md").read_text(encoding="utf-8")
    assert "\n".join(Path("facts.csv").read_text().splitlines()[:4]) in page
    for command, shown in re.findall(r"\$ recombine (audit .*)\n([^`]*)```", page):
        printed = [line.rstrip() for line in cli(*command.split()).out.splitlines()]
        # Empty lines in tables are left out of the page.
        assert [line for line in printed if line] == [line for line in shown.splitlines() if line]


def test_too_many_combinations_are_drawn(cli, facts, monkeypatch):
    from recombine.audit.coverage_graph import audit as coverage_graph

    monkeypatch.setattr(coverage_graph, "LOOKED_AT", 20)
    answer = cli("audit", facts, "--coverage-graph", *ASKED, "--json")
    assert answer.document["looked_at"] == 20 < answer.document["possible"]
    assert any("were drawn" in note for note in answer.document["notes"])


def test_help_loads_nothing_heavy():
    program = (
        "import sys; from recombine.cli.main import app; app(['audit', '--help'], result_action='return_value'); "
        "sys.exit(bool({'jax', 'numpy', 'scipy', 'duckdb', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0 and "--coverage-graph" in done.stdout


def test_the_command_loads_no_jax(facts):
    program = (
        f"import sys; from recombine.cli.main import _guarded; code = _guarded(['audit', {str(facts)!r}, "
        "'--coverage-graph']); sys.exit(code or 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
