"""The commands: what they print, for people and for machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recombine.cli.results import write_verdicts
from recombine.component import ROOMS, kinds
from recombine.spaces.product import ProductSpace
from recombine.store.files import moved, sealed
from recombine.store.store import Store
from recombine.supports.random import Random
from recombine.training.outcome import Outcome
from recombine.training.prepare import Setting

TRAIN_KEYS = {"steps", "seconds", "compile_seconds", "reached", "r2_in", "r2_held_out"}
VERDICT_KEYS = {"claim", "study", "verdict", "effect", "interval", "margin", "replicates", "primary"}


@pytest.mark.usefixtures("fresh_programs")
def test_train_prints_one_document(cli, small_run):
    answer = cli("train", "hyperteacher", *small_run, "--json")
    assert answer.code == 0 and answer.err == ""
    assert set(answer.document) >= TRAIN_KEYS
    assert answer.document["steps"] == 30 and answer.document["reached"] is None
    assert answer.document["seconds"] > 0 and answer.document["compile_seconds"] > 0
    assert isinstance(answer.document["r2_in"], float)
    assert answer.document["found"] is False
    assert answer.document["config"]["support"]["number"] == 20
    assert Store("runs").run_ids() == [answer.document["run"]]


def test_training_again_does_nothing_and_says_so(cli, small_run):
    first = cli("train", "hyperteacher", *small_run)
    assert first.code == 0 and "r2_held_out" in first.out
    files = {path: path.stat().st_mtime_ns for path in Store("runs").path.rglob("*") if path.is_file()}
    second = cli("train", "hyperteacher", *small_run)
    assert second.code == 0 and "nothing to train" in second.err
    assert second.out == first.out
    third = cli("train", "hyperteacher", *small_run, "--json")
    assert third.document["found"] is True
    assert {path: path.stat().st_mtime_ns for path in files} == files
    measured = cli("train", "hyperteacher", *small_run, "--measure", "scores,certificate")
    assert measured.code == 0 and "pairs_met" in measured.out, "the run is measured and not trained again"
    assert cli("train", "hyperteacher", "--measure", "certificat", "--dry-run").code == 2


def test_a_target_stops_a_run(cli, small_run):
    reached = cli("train", "hyperteacher", *small_run, "target=-1000", "--json").document
    assert reached["reached"] is True and reached["steps"] == 10
    missed = cli("train", "hyperteacher", *small_run, "target=0.999", "--json").document
    assert missed["reached"] is False and missed["steps"] == 30


def test_run_prints_one_document(finished):
    place, answer = finished
    document = answer.document
    assert answer.err == ""
    assert document["study"] == "data-scaling" and document["profile"] == "smoke, changed"
    assert len(document["verdicts"]) == 11 and all(set(one) >= VERDICT_KEYS for one in document["verdicts"])
    assert document["sweep"]["trained"] == 8 and document["sweep"]["failed"] == []
    assert len(document["overview"]) == 4 and document["problems"] == []
    assert document["store"] == str(place) and document["report"] is None


def test_running_again_does_nothing_and_says_so(cli, copy, small_study):
    arguments = ("run", "data-scaling", "--profile", "smoke", *small_study, "--store", copy)
    runs = {path: path.stat().st_mtime_ns for path in copy.glob("runs/*/*") if path.is_file()}
    answer = cli(*arguments)
    assert answer.code == 0
    assert "All 8 runs are in the store already: nothing to train, nothing to measure." in answer.err
    assert "lookup" in answer.out and "rises" in answer.out
    document = cli(*arguments, "--json").document
    assert (document["sweep"]["trained"], document["sweep"]["found"]) == (0, 8)
    assert {path: path.stat().st_mtime_ns for path in runs} == runs


def test_a_larger_sweep_trains_only_what_is_new(cli, copy, small_study):
    more = [*small_study, "replicates=3"]
    dry = cli("run", "data-scaling", "--profile", "smoke", *more, "--store", copy, "--dry-run", "--json")
    assert (dry.document["runs"], dry.document["done"], dry.document["steps"]) == (12, 8, 120)
    answer = cli("run", "data-scaling", "--profile", "smoke", *more, "--store", copy, "--json")
    assert (answer.document["sweep"]["trained"], answer.document["sweep"]["found"]) == (4, 8)


def test_verdicts(cli, finished):
    place, ran = finished
    answer = cli("verdicts", "--store", place, "--json")
    assert answer.code == 0 and isinstance(answer.document, list)
    assert answer.document == ran.document["verdicts"]
    for verdict in answer.document:
        assert set(verdict) >= VERDICT_KEYS
        assert verdict["verdict"] in ("supported", "contradicted", "equivalent", "inconclusive")
        if verdict["claim"].startswith(
            ("decod", "control-decod", "selectivity")
        ):  # A probe has too few combinations to read at this size.
            assert verdict["effect"] is None and verdict["verdict"] == "inconclusive"
            continue
        low, high = verdict["interval"]
        assert low <= verdict["effect"] <= high
        assert verdict["replicates"] == 2
    assert [verdict["claim"] for verdict in answer.document if verdict["primary"]] == ["rises"]
    words = cli("verdicts", "--store", place)
    assert words.code == 0 and "rises" in words.out and "primary" in words.out
    assert cli("verdicts", "--store", place, "--profile", "paper", "--json").document == []
    assert "No study has run" in cli("verdicts", "--store", place, "--profile", "paper").out


def test_ls_lists_runs(cli, finished):
    place, _ = finished
    answer = cli("ls", "--store", place, "--json")
    assert answer.code == 0 and len(answer.document) == 8
    assert {one["support.number"] for one in answer.document} == {12, 20}
    assert all(one["failed_at"] is None and isinstance(one["r2_in"], float) for one in answer.document)
    words = cli("ls", "runs", "--store", place)
    assert words.code == 0 and "8 runs in" in words.out
    assert answer.document[0]["run"][:8] in words.out


@pytest.mark.parametrize("room", ROOMS)
def test_ls_lists_components_with_a_line_each(cli, room):
    answer = cli("ls", room, "--json")
    assert answer.code == 0 and answer.document
    for one in answer.document:
        assert one["name"] and one["summary"] and "\n" not in one["summary"]
    words = cli("ls", room)
    assert words.code == 0 and all(one["name"] in words.out for one in answer.document)


def test_show_a_run(cli, finished):
    place, _ = finished
    run = cli("ls", "--store", place, "--json").document[0]
    answer = cli("show", run["run"][:10], "--store", place, "--json")
    assert answer.code == 0
    assert answer.document["run"] == run["run"] and set(answer.document) >= TRAIN_KEYS
    assert set(answer.document["provenance"]) == {"time", "versions", "machine"}
    words = cli("show", run["run"], "--store", place)
    assert words.code == 0
    assert "complete" in words.out and "coverage" in words.out and "space.modules" in words.out


def test_show_config_prints_the_schema(cli):
    answer = cli("show", "config", "--json")
    assert answer.code == 0
    assert {"space", "support", "family", "model", "recipe", "seeds", "target"} <= set(answer.document["properties"])
    words = cli("show", "config")
    assert words.code == 0
    for name in ("space.modules", "recipe.learning_rate", "seeds.teacher", "target", "hyperteacher"):
        assert name in words.out


@pytest.mark.parametrize("name", ["mlp", "hyperteacher", "random", "fast", "subset", "scores"])
def test_show_a_component(cli, name):
    assert "properties" in cli("show", name, "--json").document
    assert name in cli("show", name).out


def test_show_a_study_before_any_run(cli):
    """Question, arms, claims with margins, and what each profile costs."""
    document = cli("show", "data-scaling", "--json").document
    assert [arm["arm"] for arm in document["arms"]] == ["main", "lookup"]
    assert document["arms"][0]["axes"] == {"number": ["40", "80", "160", "320"]}
    (primary,) = [claim for claim in document["claims"] if claim["role"] == "primary"]
    assert (primary["claim"], primary["direction"], primary["margin"]) == ("rises", "greater", 0.05)
    assert {profile["profile"]: profile["runs"] for profile in document["profiles"]} | {"paper": 0} == {
        "smoke": 8,
        "demo": 48,
        "laptop": 96,
        "paper": 0,
    }
    said = cli("show", "data-scaling")
    words = said.out
    assert said.code == 0, said.err
    assert "stated before any run" in words and "selectivity-exceeds-control" in words


def test_run_all_goes_on_without_a_package_that_one_study_needs(cli, monkeypatch):
    """Two lines say which study is skipped and how to install what it needs."""
    from recombine import component
    from recombine.errors import MissingPackage

    def find(room, kind):
        if kind == "constraints":
            raise MissingPackage("Power flow problems need pypower.", fix="pip install 'recombine[constraints]'")
        return real(room, kind)

    real = component.find
    monkeypatch.setattr(component, "kinds", lambda room: ("constraints", "data-growth"))
    monkeypatch.setattr(component, "find", find)
    answer = cli("run", "all", "--profile", "smoke", "--dry-run")
    assert answer.code == 0 and "What would run" in answer.out
    lines = [line for line in answer.err.splitlines() if "constraints" in line]
    assert lines == [
        "skipped constraints: Power flow problems need pypower.",
        "  fix: pip install 'recombine[constraints]'",
    ]
    alone = cli("run", "constraints", "--profile", "smoke", "--dry-run")
    assert alone.code == 2 and "pip install" in alone.err


def test_doctor(cli, finished):
    place, _ = finished
    answer = cli("doctor", "--json")
    assert answer.code == 0 and answer.document["ok"] is True
    assert set(answer.document["versions"]) >= {"python", "recombine", "jax", "numpy"}
    checked = cli("doctor", "--store", place, "--json")
    assert checked.code == 0 and checked.document["problems"] == []
    assert (checked.document["store"]["runs"], checked.document["store"]["studies"]) == (8, 1)
    assert "Everything is in order" in cli("doctor").out


def test_doctor_finds_damage_of_every_kind(cli, copy):
    store = Store(copy)
    first, second, third, fourth = store.run_ids()[:4]
    (store.folder(first) / "manifest.json").write_text("{")
    weights = store.folder(second) / "weights.safetensors"
    weights.write_bytes(b"\xff" * weights.stat().st_size)
    curves = store.folder(third) / "curves.parquet"
    curves.write_bytes(b"\xff" * curves.stat().st_size)
    table = next((store.folder(fourth) / "measurements").glob("*.parquet"))
    table.write_bytes(b"")
    looked = cli("doctor", "--store", copy, "--dry-run", "--json")
    assert looked.code == 1 and looked.document["ok"] is False and looked.document["repaired"] is False
    assert len(looked.document["problems"]) == 4 and moved(copy) == []
    for run in (first, second, third, fourth):
        assert any(run in problem["place"] for problem in looked.document["problems"])
    words = cli("doctor", "--store", copy, "--dry-run")
    assert words.code == 1 and "4 problems" in words.err and f"recombine doctor --store {copy}" in words.err
    assert "to be done" in words.out

    answer = cli("doctor", "--store", copy)
    assert answer.code == 0 and "Repaired. Nothing was deleted" in answer.out
    assert "made anew" in answer.out and "set aside" in answer.out
    assert len(Store(copy).run_ids()) == 7, "only the run without weights is lost"
    again = cli("doctor", "--store", copy, "--json")
    assert again.code == 0 and again.document["problems"] == [] and again.document["store"]["runs"] == 7
    assert again.document["store"]["set aside"] == len(moved(copy))


def test_what_the_doctor_cannot_repair_remains(cli, copy):
    store = Store(copy)
    place = store.folder(store.run_ids()[0]) / "manifest.json"
    place.write_text(json.dumps(sealed(json.loads(place.read_text()) | {"format": 99})))
    answer = cli("doctor", "--store", copy)
    assert answer.code == 1 and "1 problems" in answer.err and "nothing was deleted" in answer.err
    assert "newer" in answer.out and place.exists()
    assert cli("doctor", "--dry-run").code == 2


def test_damage_is_told_on_standard_error_and_the_rest_is_listed(cli, copy):
    run = Store(copy).run_ids()[0]
    (copy / "runs" / run / "weights.safetensors").unlink()
    answer = cli("ls", "--store", copy, "--json")
    assert answer.code == 1 and len(answer.document) == 7
    assert answer.err.count("warning:") == 1 and run in answer.err and "what was shown is not all" in answer.err
    shown = cli("show", run, "--store", copy, "--json")
    assert shown.code == 2 and "weights.safetensors is missing" in shown.document["error"]


def test_a_damaged_run_is_set_aside_and_trained_again(cli, copy, small_study):
    run = Store(copy).run_ids()[0]
    (copy / "runs" / run / "weights.safetensors").write_bytes(b"")
    answer = cli("run", "data-scaling", "--profile", "smoke", *small_study, "--store", copy, "--json")
    assert answer.code == 0
    assert (answer.document["sweep"]["trained"], answer.document["sweep"]["found"]) == (1, 7)
    assert len(answer.document["problems"]) == 1 and "set aside" in answer.document["problems"][0]
    assert [path.name[:16] for path in moved(copy)] == [run]


def test_report(cli, copy, tmp_path):
    answer = cli("report", "data-scaling", "--store", copy, "--out", tmp_path / "page.html", "--json")
    assert answer.code == 0, answer.err
    assert answer.document["study"] == "data-scaling"
    page = (tmp_path / "page.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>") and "rises" in page


@pytest.mark.parametrize("command", [("train", "hyperteacher"), ("run", "data-scaling", "--profile", "smoke")])
def test_a_dry_run_trains_nothing_and_makes_no_folder(cli, tmp_path, command):
    answer = cli(*command, "--store", tmp_path / "new", "--dry-run", "--json")
    assert answer.code == 0
    assert set(answer.document) >= {"runs", "done", "buckets", "steps", "measurements", "estimated_seconds"}
    assert answer.document["done"] == 0 and answer.document["estimated_seconds"] > 0
    words = cli(*command, "--store", tmp_path / "new", "--dry-run")
    assert words.code == 0 and "runs" in words.out and "about" in words.out
    assert not (tmp_path / "new").exists() and list(tmp_path.iterdir()) == []


def test_a_dry_run_in_an_empty_folder_or_a_store_changes_nothing(cli, tmp_path, copy, small_study):
    (tmp_path / "empty").mkdir()
    assert cli("train", "hyperteacher", "--store", tmp_path / "empty", "--dry-run").code == 0
    assert list((tmp_path / "empty").iterdir()) == []
    before = sorted(str(path) for path in copy.rglob("*"))
    answer = cli("run", "data-scaling", "--profile", "smoke", *small_study, "--store", copy, "--dry-run", "--json")
    assert (answer.document["done"], answer.document["measurements"]) == (8, 0)
    assert answer.document["estimated_seconds"] == 0
    assert sorted(str(path) for path in copy.rglob("*")) == before


def test_the_store_can_be_named_by_the_environment(cli, finished, monkeypatch):
    monkeypatch.setenv("RECOMBINE_STORE", str(finished[0]))
    assert len(cli("ls", "--json").document) == 8


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(cli, shell):
    answer = cli("completion", shell)
    assert answer.code == 0 and "recombine" in answer.out
    assert all(command in answer.out for command in ("train", "verdicts", "--store"))


def test_the_bash_completion_is_a_sound_script(cli, tmp_path):
    (tmp_path / "script").write_text(cli("completion", "bash").out)
    subprocess.run(["bash", "-n", tmp_path / "script"], check=True)


def test_help_and_version(cli):
    for arguments in ((), ("--help",), ("train", "--help"), ("run", "--help")):
        answer = cli(*arguments)
        assert answer.code == 0 and "Usage: recombine" in answer.out and answer.err == ""
    from recombine import __version__

    assert cli("--version").out.strip() == __version__


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["--version"], ["ls", "studies", "--json"], ["completion", "bash"]]
)
def test_light_commands_do_not_import_what_is_heavy(arguments, tmp_path):
    script = (
        "import json, sys\n"
        "from recombine.cli.main import _guarded\n"
        f"code = _guarded({arguments!r})\n"
        "heavy = {'jax', 'numpy', 'pandas', 'scipy', 'equinox', 'optax', 'pyarrow', 'duckdb', 'altair'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    # As a new process, and without the hook that checks types in tests.
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=os.environ, check=True
    )
    assert json.loads(done.stderr.splitlines()[-1]) == []


NAME = "[red]x[/red] [/oops] \\[y\\]"


def test_names_from_data_are_printed_as_they_are():
    import io

    from rich.console import Console

    from recombine.cli.output import table, verdict_table

    out = Console(file=io.StringIO(), width=200)
    out.print(table(NAME, [NAME, "b"], [(NAME, NAME), ("plain", 1.0)]))
    claim = {
        "answer": "holds",
        "primary": True,
        "role": "claim",
        "interval": [0.1, None],
        "claim": NAME,
        "statement": NAME,
        "note": NAME,
        "effect": 0.5,
        "direction": "greater",
        "margin": 0.05,
        "replicates": 12,
    }
    out.print(verdict_table([claim]))
    text = out.file.getvalue()
    assert text.count(NAME) == 7
    assert "[0.100, -]" in text


def test_a_store_and_a_factor_with_signs_of_markup(cli, tmp_path, tiny):
    place = tmp_path / "[red]x[" / "red]"
    factors = {"[bold]colour[/]": ["[red]", "[/red]"], "b": 3, "c": 3}
    config = tiny(space=ProductSpace(factors=factors), support=Random(number=10))
    curves = [{"step": 1, "loss": 1.0, "score_in": 0.0, "score_held_out": 0.0}]
    outcome = Outcome(config, Setting(config).network(), curves, 1, 0.0, 0.0, None, None, 1)
    Store(place).commit(outcome)
    for command in (("ls",), ("show", config.run_id), ("verdicts",), ("doctor",)):
        answer = cli(*command, "--store", place)
        assert answer.code == 0, answer.err
        text = answer.out.replace("\n", "").replace(" ", "")
        assert ("[bold]colour[/]" if command[0] == "show" else "[red]x[/red]") in text


def test_export_writes_small_files(cli, copy, tmp_path):
    answer = cli("export", "--store", copy, "--out", tmp_path / "results", "--json")
    assert answer.code == 0, answer.err
    files = json.loads(answer.out)["files"]
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"verdicts.json", "overview.csv", "score_by_size.png", "combination_map.png"} <= names
    assert {tmp_path / "results" / name for name in names} == {Path(file) for file in files}
    verdicts = json.loads((tmp_path / "results" / "verdicts.json").read_text())
    assert [one["claim"] for one in verdicts if one["primary"]] == ["rises"]
    assert (tmp_path / "results" / "score_by_size.png").read_bytes().startswith(b"\x89PNG")


def test_export_of_all_writes_a_folder_a_study_and_one_table(cli, copy, tmp_path):
    answer = cli("export", "all", "--store", copy, "--out", tmp_path / "results")
    assert answer.code == 0, answer.err
    assert (tmp_path / "results" / "data-scaling" / "verdicts.json").exists()
    page = (tmp_path / "results" / "verdicts.md").read_text()
    assert "## Primary claims" in page and "## data-scaling (smoke, changed profile)" in page
    tables = [part.splitlines() for part in page.split("\n\n") if part.startswith("| ")]
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)
    assert [name in page for name in ("## Primary claims", "## What is not decided")] == [True, True] and len(
        tables
    ) == 3


@pytest.mark.parametrize(
    ("usual", "larger", "words"),
    [
        ("supported", "supported", "**holds**, at workstation size too"),
        ("supported", "contradicted", "**depends on size** (holds; at workstation size: does not hold)"),
        ("supported", "inconclusive", "holds; at workstation size: not decided"),
    ],
)
def test_larger_runs_stand_beside_the_usual_ones(tmp_path, usual, larger, words):
    def write(folder, verdict, effect):
        claim = {"claim": "weak", "study": "another", "statement": "It is so.", "role": "claim", "primary": True}
        judged = {"direction": "greater", "margin": 0.1, "verdict": verdict, "verdict_alone": verdict, "version": 1}
        numbers = {"effect": effect, "interval": [effect - 0.05, effect + 0.05], "replicates": 8, "p": 0.01}
        more = {"needs": [], "p_adjusted": 0.01, "note": ""}
        (folder / "another").mkdir(parents=True)
        record = claim | judged | numbers | more | {"profile": folder.name}
        (folder / "another" / "verdicts.json").write_text(json.dumps([record]))

    effects = {"supported": 0.3, "contradicted": -0.3, "inconclusive": 0.1}
    write(tmp_path, usual, effects[usual])
    write(tmp_path / "workstation", larger, effects[larger])
    page = write_verdicts(tmp_path).read_text()
    assert words in page and "| at workstation size |" in page
    assert f"{effects[larger]:.3f} [" in page


def test_results_of_other_stores_stay_and_count(cli, copy, tmp_path):
    out = tmp_path / "results"
    claim = {
        "claim": "weak",
        "study": "another",
        "statement": "It is so.",
        "role": "claim",
        "primary": True,
        "needs": [],
    }
    judged = {"direction": "greater", "margin": 0.1, "verdict": "supported", "verdict_alone": "supported", "version": 1}
    numbers = {"effect": 0.2, "interval": [0.11, 0.29], "replicates": 12, "p": 0.04, "p_adjusted": 0.04, "note": ""}
    (out / "another").mkdir(parents=True)
    recorded = out / "another" / "verdicts.json"
    recorded.write_text(json.dumps([claim | judged | numbers | {"profile": "laptop"}]))
    assert cli("export", "all", "--store", copy, "--out", out).code == 0
    assert "## another (laptop profile)" in (out / "verdicts.md").read_text()
    (weak,) = json.loads(recorded.read_text())
    assert weak["p_portfolio"] == pytest.approx(0.08), "two primary claims now"
    assert weak["p_adjusted"] == pytest.approx(0.04), "another study changes no verdict"
    assert weak["verdict"] == weak["verdict_alone"] == "supported"
    # The store has a smaller profile of data-scaling than what is recorded there: that stays.
    own = out / "data-scaling" / "verdicts.json"
    larger = [one | {"profile": "laptop"} for one in json.loads(own.read_text())]
    own.write_text(json.dumps(larger))
    kept = cli("export", "all", "--store", copy, "--out", out)
    assert kept.code == 0 and "keeps its results" in " ".join(kept.err.split())
    assert {one["profile"] for one in json.loads(own.read_text())} == {"laptop"}
    recorded.write_text("[{}]")
    refused = cli("export", "all", "--store", copy, "--out", out)
    assert refused.code == 2 and "not understood" in refused.err


def test_all_studies_can_be_planned_at_once(cli):
    answer = cli("run", "all", "--profile", "smoke", "--dry-run", "--json")
    assert answer.code == 0, answer.err
    assert len(answer.document) == len(kinds("studies")) and all(one["runs"] for one in answer.document)
    refused = cli("run", "all", "--profile", "smoke", "width=8")
    assert refused.code == 2 and "belong to one study" in refused.err


def test_a_name_in_two_rooms_shows_both(cli):
    answer = cli("show", "decodability")
    assert "decodability (probes)" in answer.out and "decodability (studies)" in answer.out
    assert set(cli("show", "decodability", "--json").document) == {"probes", "studies"}
