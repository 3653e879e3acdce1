"""Logs that are truncated, newer or something else, and templates that match nothing: what is wrong is said."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import recombine as rc
from recombine.audit.logs.log import Log
from recombine.errors import BadInput

RECORDED = Path(__file__).parent / "recorded"


def refused(source, match: str, factors=("a",), score="exact") -> BadInput:
    with pytest.raises(BadInput, match=match) as caught:
        rc.audit.read_cells(source, factors=factors, scores=[score])
    assert caught.value.exit_code == 2 and len(caught.value.message) < 900
    return caught.value


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json", "wandb_answers.table.json", "mlflow_answers.json"])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_truncated(name, share, tmp_path):
    content = (RECORDED / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(content[: int(len(content) * share)])
    refused(Log(path, template="a {a}"), "truncated")


def test_damaged_archives(tmp_path):
    content = bytearray((RECORDED / "inspect.eval").read_bytes())
    for start in (3000, 9000, 15000):
        damaged = bytearray(content)
        damaged[start : start + 60] = bytes(60)
        path = tmp_path / "log.eval"
        path.write_bytes(damaged)
        refused(path, "truncated or damaged|not as inspect writes it")
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("header.json", '{"version": 2, "status": "success"}')
        out.writestr("samples/1_epoch_1.json", "[" * 100_000)
    refused(path, "not as inspect writes it|damaged")


def test_truncated_lines_name_the_line(tmp_path):
    for name in ("samples_scene_objects.jsonl", "geneval_results.jsonl"):
        path = tmp_path / name
        path.write_text((RECORDED / name).read_text()[:-40])
        number = len(path.read_text().splitlines())
        refused(path, f"Line {number} of {name} is not JSON")


def test_truncated_runs_of_helm(tmp_path):
    for name in ("per_instance_stats.json", "instances.json"):
        content = (RECORDED / "helm_run" / name).read_text()
        (tmp_path / name).write_text(content[:-30] if name.startswith("per") else content)
    refused(tmp_path, "per_instance_stats.json ends in the middle")
    (tmp_path / "instances.json").unlink()
    refused(tmp_path, "neither instances.json nor scenario_state.json")


def test_newer_versions(tmp_path):
    document = json.loads((RECORDED / "inspect.json").read_text())
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document | {"version": 3}))
    assert "samples_df" in str(refused(path, "version 3 of Inspect's log format"))
    path.write_text(json.dumps({**document, "samples": [{**document["samples"][0], "metadata": "new"}]}))
    refused(path, "Sample 1 of log.json is not as inspect writes it")
    lines = [json.loads(line) for line in (RECORDED / "samples_scene_objects.jsonl").read_text().splitlines()]
    del lines[2]["resps"]
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    refused(path, "Sample 3 of samples.jsonl lacks resps")


def test_unfinished_evaluations_are_noted(tmp_path):
    document = json.loads((RECORDED / "inspect.json").read_text())
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document | {"status": "cancelled", "samples": document["samples"][:8]}))
    cells = rc.audit.read_cells(path, factors=["metadata.colour", "metadata.object"], scores=["exact"])
    assert any("status 'cancelled'" in note for note in cells.notes)
    archive = tmp_path / "log.eval"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("_journal/start.json", json.dumps({"version": 2, "eval": document["eval"]}))
        for number, sample in enumerate(document["samples"][:8]):
            out.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    cells = rc.audit.read_cells(archive, factors=["metadata.colour", "metadata.object"], scores=["exact"])
    assert any("status 'started'" in note for note in cells.notes) and cells.count.sum() == 8


def test_archives_that_are_no_logs(tmp_path):
    archive = tmp_path / "log.eval"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("readme.txt", "hello")
    refused(archive, "not a log of Inspect")
    archive.write_bytes(b"")
    refused(archive, "log.eval")


def test_templates_that_match_nothing_or_twice(tmp_path):
    path = RECORDED / "inspect.eval"
    error = refused(
        Log(path, template="the {a} of {b}"), "None of the 24 prompts .* matches the template 'the {a} of {b}', such as"
    )
    assert "{_}" in str(error)
    refused(
        Log(path, template="a {a} {b}"), "matches the prompt .* in two ways: a=red, b=ball on a table or a=red ball"
    )
    refused(Log(path, template=["a {a} {b} on a {_}", "a {b} {a} on a {_}"]), "Two templates match the prompt")
    refused(Log(path, parse=lambda prompt: prompt), "The function returned 'a red ball on a table'")
    refused(Log(path, parse=lambda prompt: {"a": 1 / 0}), "failed on the prompt of sample 1, .*ZeroDivisionError")
    refused(Log(path, parse=lambda prompt: None), "None of the 24 prompts .* matches the function")
    refused(Log(path, template="{a}", prompt="question"), "no column 'question'")
    no_prompts = tmp_path / "t.csv"
    no_prompts.write_text("x,exact\n1,1\n")
    refused(Log(no_prompts, template="a {a}"), "t.csv has no prompts.*\n.*--prompt")
    with pytest.raises(BadInput, match="Both a template and a function"):
        Log(path, template="{a}", parse=str)
    with pytest.raises(BadInput, match=r"no format of logs called 'inspct'"):
        _ = Log(path, format="inspct").reader


def test_names_of_columns_are_suggested():
    refused(
        RECORDED / "inspect.eval",
        "no column 'metadata.color'.*\n.*did you mean 'metadata.colour'",
        factors=["metadata.color"],
    )
    refused(RECORDED / "inspect.eval", "no column 'accuracy'", factors=["metadata.colour"], score="accuracy")
    refused(Log("nowhere.eval", template="{a} {b}"), "no file 'nowhere.eval'")
