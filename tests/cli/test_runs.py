"""`recombine ls` with filters and groups, `plot`, `compare`, `note`; and `show`, `report` and `export` of a sweep."""

from __future__ import annotations

import csv
import json
import re
import shutil
import threading
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from recombine.store.notes import add_note, notes_of
from recombine.store.store import Store, load_store

FILE = """
base:
  family: hyperteacher
  space: {kind: subset, modules: 8, max_active: 2}
  model: {kind: mlp, width: 8, depth: 1}
  recipe: {kind: paper, learning_rate: 0.01, steps: 30, tasks: 8, samples: 4}
  support.reserve: 12
  eval_every: 10
  validation_tasks: 8
grid:
  support.number: [12, 20]
replicates: 3
measure: [{kind: scores, combinations: 6, draws: 2, samples: 4}]
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A store in which a small sweep ran. Not to be changed: see `store`."""
    from recombine.design.api import sweep

    place = tmp_path_factory.mktemp("swept")
    (place / "grid.yaml").write_text(FILE)
    sweep(place / "grid.yaml", store=place / "store", quiet=True)
    return place / "store"


@pytest.fixture
def store(swept, tmp_path):
    return shutil.copytree(swept, tmp_path / "store")


def scores(store, number):
    """The held-out scores of one cell, by seed, from the files."""
    frame = load_store(store).runs_df()
    return frame[frame["support.number"] == number].set_index("seeds.init")["score_held_out"].sort_index()


# ls


def test_ls_filters_sorts_and_chooses_columns(cli, store):
    line = ("--where", "number >= 20", "--sort", "-score_held_out", "--columns", "run,number,score_held_out", "--json")
    rows = cli("ls", "--store", store, *line).document
    assert [list(row) for row in rows] == [["run", "support.number", "score_held_out"]] * 3
    assert [row["score_held_out"] for row in rows] == sorted(scores(store, 20), reverse=True)
    words = cli("ls", "--store", store, "--where", "number = 12", "--limit", "2")
    assert words.code == 0 and "3 runs" in words.out and "... and 1 more" in words.out
    assert "None" not in words.out and "mlp 8,1" in words.out
    few = cli("ls", "--store", store, "--columns", "family,steps", "--limit", "1")
    assert "hyperteacher" in few.out and "recipe.steps" not in few.out and "30" in few.out


def test_ls_groups(cli, store):
    rows = cli("ls", "--store", store, "--group", "number", "--json").document
    assert [row["support.number"] for row in rows] == [12, 20]
    expected = scores(store, 12)
    low, high = stats.t.interval(0.95, 2, expected.mean(), stats.sem(expected))
    found = rows[0]
    assert found["runs"] == found["score_held_out_n"] == 3
    assert found["score_held_out"] == pytest.approx(expected.mean())
    assert (found["score_held_out_low"], found["score_held_out_high"]) == (pytest.approx(low), pytest.approx(high))
    words = cli("ls", "--store", store, "--group", "number", "--columns", "score_held_out").out
    assert "2 groups" in words and f"{expected.mean():.3f}" in words


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("--where", "length(repeat('x', 2000000000)) > 1"), "calls repeat"),
        (("--where", "numbr > 3"), "did you mean 'number'"),
        (("--sort", "-scor_held_out"), "score_held_out"),
        (("--columns", "nothing_of_it"), "There is no column"),
        (("--group", "number", "--columns", "family"), "has no mean"),
        (("--tag", "none"), "There is no tag"),
        (("--limit", "-1"), "limit"),
        (("sweeps", "--where", "steps > 3"), "--where is for runs"),
    ],
)
def test_ls_refuses_what_it_cannot_answer(cli, swept, line, says):
    answer = cli("ls", "--store", swept, *line)
    assert answer.code == 2 and says in answer.err and "Traceback" not in answer.err


def test_ls_names_damaged_runs_with_an_index_too(cli, store):
    assert len(cli("ls", "--store", store, "--json").document) == 6
    manifest = next((store / "runs").glob("*/manifest.json"))
    manifest.write_text(manifest.read_text()[:50])
    for _ in range(2):
        answer = cli("ls", "--store", store, "--json")
        assert answer.code == 1 and len(answer.document) == 5 and manifest.parent.name in answer.err


# plot


@pytest.mark.parametrize("ending", ["svg", "html", "json"])
def test_plot_writes_every_kind_of_file(cli, swept, tmp_path, ending):
    answer = cli("plot", "number", "--store", swept, "-o", f"p.{ending}", "--json")
    assert answer.code == 0 and answer.document["runs"] == 6 and answer.document["x"] == "support.number"
    assert "3 replicates" in answer.document["caption"]
    data = (tmp_path / f"p.{ending}").read_bytes()
    if ending == "svg":
        assert xml.etree.ElementTree.fromstring(data).tag.endswith("svg")
    elif ending == "json":
        means = [row for rows in json.loads(data)["datasets"].values() for row in rows if "mean" in row]
        expected = {number: scores(swept, number).mean() for number in (12, 20)}
        assert {row["x"]: row["mean"] for row in means} == pytest.approx(expected)
    else:
        assert b"<html" in data and b"https://" not in data.split(b"<script")[0]


def test_plot_of_texts_and_colours(cli, swept, tmp_path):
    answer = cli("plot", "family", "score_in", "--by", "number", "--store", swept, "-o", "p.svg")
    assert answer.code == 0 and "number 12" in (tmp_path / "p.svg").read_text()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("number", "-o", "p.txt"), "end the name in"),
        (("number", "-o", "no/p.png"), "does not exist"),
        (("number", "status"), "has no mean"),
        (("number", "number"), "against itself"),
        (("failed_at",), "No run has both"),
        (("number", "--where", "steps > 100"), "No run"),
        (("numbr",), "did you mean"),
    ],
)
def test_plot_refuses_what_it_cannot_draw(cli, swept, tmp_path, line, says):
    answer = cli("plot", *line, "--store", swept)
    assert answer.code == 2 and says in answer.err and list(tmp_path.glob("p*")) == []


# compare


def test_compare_pairs_groups_by_seed(cli, swept):
    document = cli("compare", "number = 12", "number = 20", "--store", swept, "--json").document
    effects = (scores(swept, 20) - scores(swept, 12)).to_numpy()
    expected = stats.ttest_1samp(effects, 0).confidence_interval(0.95)
    assert document["pairs"] == 3 and sorted(document["effects"]) == pytest.approx(sorted(effects))
    found = document["difference"]
    assert (found["low"], found["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert [each["name"] for each in document["settings"]] == ["support.number"]
    assert document["settings"][0]["first"] == [12] and document["settings"][0]["second"] == [20]
    words = cli("compare", "number = 12", "number = 20", "--store", swept)
    assert words.code == 0 and "settings that differ" in words.out and "replicates to decide a margin" in words.out


def test_compare_shows_the_combinations_that_flipped_first(cli, swept):
    store = load_store(swept)
    document = cli("compare", "number = 12", "number = 20", "--store", swept, "--json", "--solved", "-0.5").document
    runs = store.runs_df().set_index("run")
    table = store.combinations_df().join(runs[["support.number", "seeds.init"]], on="run")
    both = table.pivot_table(index=["seeds.init", "combination"], columns="support.number", values="score").dropna()
    flips = ((both[12] >= -0.5) != (both[20] >= -0.5)).groupby("combination").sum()
    found = {each["combination"]: each["gained"] + each["lost"] for each in document["combinations"]}
    assert found == flips.to_dict() and sum(found.values()) > 0
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_compare_two_runs_two_stores_and_tags(cli, store, tmp_path):
    names = load_store(store).run_ids()
    two = cli("compare", names[0], names[1], "--store", store)
    assert two.code == 0 and "one replicate" in two.out
    other = tmp_path / "other"
    shutil.copytree(store, other)
    shutil.rmtree(other / "runs" / names[0])
    document = cli("compare", store, other, "--json").document
    assert document["pairs"] == 5 and document["first"]["unpaired"] == 1 and document["settings"] == []
    assert document["difference"]["low"] == document["difference"]["high"] == 0.0 and document["needed"] == 2
    assert "the same within 0.05" in document["answer"]
    cli("store", "tag", "mine", *names[:2], "--store", store)
    assert cli("compare", "mine", "grid", "--store", store).code == 2, "the sweep has the tagged runs too"
    assert cli("compare", "mine", names[3], "--store", store).code == 0


def test_compare_without_common_seeds_is_welch(cli, swept):
    frame = load_store(swept).runs_df()
    first, last = frame["seeds.init"].min(), frame["seeds.init"].max()
    line = (f"init <= {first + 1}", f"init = {last}")
    assert "-" in cli("compare", *line, "--store", swept).out
    from recombine.store.comparison.paired import _welch

    a, b = [0.1, 0.5, 0.3], [0.9, 0.4, 0.8, 0.75]
    expected = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    found = _welch(a, b)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("number = 12", "steps = 30"), "are on both sides"),
        (("zzz", "number = 12"), "no run, tag, study, sweep or store"),
        (("number = 12", "number = 13"), "means no run"),
        (("number = 12", "number = 20", "--score", "r2"), "No run has a number"),
        (("number = 12", "number = 20", "--margin", "-1"), "margin"),
        (("number = 12", "pg_sleep(1) is null"), "calls pg_sleep"),
    ],
)
def test_compare_refuses_sides_that_cannot_be(cli, swept, line, says):
    answer = cli("compare", *line, "--store", swept)
    assert answer.code == 2 and says in answer.err


# note


def test_notes_are_written_shown_and_deleted(cli, store):
    run = load_store(store).run_ids()[0]
    assert cli("note", run[:6], "[red]the loss jumps[/red]\x1b[31m", "--store", store).code == 0
    cli("note", run, "again", "--store", store)
    assert [each["text"][:5] for each in cli("note", run, "--store", store, "--json").document["notes"]] == [
        "[red]",
        "again",
    ]
    for command in (("ls",), ("show", run), ("note", run)):
        words = cli(*command, "--store", store).out
        assert "again" in words and "\x1b" not in words
    assert len(cli("ls", "--store", store, "--where", "note like '%again%'", "--json").document) == 1
    assert len(cli("show", run, "--store", store, "--json").document["notes"]) == 2
    assert cli("note", run, "--clear", "--store", store, "--json").document["removed"] == 2
    assert "There are no notes" in cli("note", run, "--store", store).out
    for line in ((run, " "), (run, "x" * 20_000), (run, "x", "--clear"), ("nothing", "x")):
        assert cli("note", *line, "--store", store).code == 2


def test_notes_of_many_writers_all_stay(store):
    run = load_store(store).run_ids()[0]
    threads = [threading.Thread(target=add_note, args=(Store(store), run, f"note {n}")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {note["text"] for note in notes_of(Store(store), run)} == {f"note {n}" for n in range(8)}


def test_notes_travel_with_their_runs(cli, store, tmp_path):
    run = load_store(store).run_ids()[0]
    cli("note", run, "look here", "--store", store)
    assert cli("store", "archive", "a.zip", run, "--store", store).code == 0
    for _ in range(2):
        assert cli("store", "merge", "a.zip", "--store", "new").code == 0
        assert [note["text"] for note in notes_of(Store("new"), run)] == ["look here"]
    cli("note", run, "and here", "--store", "new")
    cli("store", "merge", store, "--store", "new")
    assert [note["text"] for note in notes_of(Store("new"), run)] == ["look here", "and here"]
    assert cli("store", "rm", run, "--yes", "--store", "new").code == 0 and notes_of(Store("new"), run) == []
    record = store / "notes" / f"{run}.json"
    record.write_text(record.read_text().replace("look", "LOOK"))
    answer = cli("ls", "--store", store)
    assert answer.code == 1 and "damaged" in answer.err
    assert cli("note", run, "more", "--store", store).code == 2, "the damaged record is not overwritten"
    assert cli("doctor", "--store", store).code == 0 and cli("ls", "--store", store).code == 0


# Sweeps as studies


def test_show_report_and_export_of_a_sweep(cli, store, tmp_path):
    document = cli("show", "grid", "--store", store, "--json").document
    assert document["axes"] == {"support.number": [12, 20]} and (document["done"], document["complete"]) == (6, True)
    assert document["cells"][1]["score_held_out"] == pytest.approx(scores(store, 20).mean())
    assert "6 of 6 done" in cli("show", "grid", "--store", store).out
    assert cli("report", "--store", store, "--out", "r.html", "--json").document["runs_found"] == 6
    page = (tmp_path / "r.html").read_text()
    assert "How do scores depend on support.number?" in page and "Score held out against support.number" in page
    files = cli("export", "grid", "--store", store, "--out", "out", "--json").document["files"]
    assert sorted(files) == [f"out/{name}" for name in ("cells.csv", "runs.csv", "score_held_out.png", "score_in.png")]
    with open("out/cells.csv") as file:
        rows = list(csv.DictReader(file))
    assert np.allclose(
        [float(row["score_held_out"]) for row in rows], [scores(store, 12).mean(), scores(store, 20).mean()], atol=1e-5
    )
    run = load_store(store).run_ids()[0]
    shutil.rmtree(store / "runs" / run)
    for command in (("show", "grid"), ("report", "grid", "--out", "r.html"), ("export", "grid", "--out", "out")):
        answer = cli(*command, "--store", store, "--json")
        assert answer.code == 1 and run in answer.err and answer.document["missing"] == [run]
    assert "1 of 6 runs are not in the store" in (tmp_path / "r.html").read_text()
    assert cli("report", "gridd", "--store", store).code == 2


def test_the_code_of_the_page_runs_as_it_stands(swept, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(swept, "runs")
    names = {}
    exec(compile(block, "sweeps.md", "exec"), names)
    assert names["best"]["score_held_out"].is_monotonic_decreasing and len(names["means"]) == 2
    assert names["found"].pairs == 3 and "score_held_out" in names["found"].answer
    assert names["figure"].title == "score_held_out against support.number"
