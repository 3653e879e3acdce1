"""Each format, from samples that the tool itself wrote (`recorded/README.md` says how)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import recombine as rc
from recombine.audit.logs.log import Log, reader_of

RECORDED = Path(__file__).parent / "recorded"
SCENES = "a {colour} {object} on a {place}"
PAIRS = "a {colour} {object}"


@pytest.mark.parametrize(
    "name, format",
    [
        ("inspect.eval", "inspect"),
        ("inspect.json", "inspect"),
        ("samples_scene_objects.jsonl", "lm-eval"),
        ("helm_run", "helm"),
        ("helm_run/per_instance_stats.json", "helm"),
        ("geneval_results.jsonl", "geneval"),
        ("wandb_answers.table.json", "wandb"),
        ("mlflow_answers.json", "mlflow"),
    ],
)
def test_formats_are_recognised(name, format):
    reader = reader_of(RECORDED / name)
    assert reader is not None and reader.name == format


def means(log, factors, score, **more):
    """The mean score of each combination."""
    cells = rc.audit.read_cells(log, factors=factors, scores=[score], **more)
    return {cells.name(index): float(cells.mean[index, 0]) for index in range(len(cells.count))}, cells


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json"])
def test_inspect(name):
    """The model of the recording fails on red cups, and on green things on the floor."""
    for factors, log in (
        (["colour", "object", "place"], Log(RECORDED / name, template=SCENES)),
        (["metadata.colour", "metadata.object", "metadata.place.name"], RECORDED / name),
    ):
        for score in ("exact", "checks.all"):
            found, cells = means(log, factors, score)
            assert len(found) == 12 and cells.count.tolist() == [2] * 12
            for combination, mean in found.items():
                fails = ("red" in combination and "cup" in combination) or (
                    "green" in combination and "floor" in combination
                )
                assert mean == (not fails), combination
    peek = Log(RECORDED / name, template=SCENES).peek()
    assert peek.factors == ("colour", "object", "place") and peek.scores == ("exact", "checks.object", "checks.all")


def test_lm_evaluation_harness():
    path = RECORDED / "samples_scene_objects.jsonl"
    found, _ = means(Log(path, template="What is a {colour} {object}?"), ["colour", "object"], "acc")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert found == {f"{one['doc']['colour']} + {one['doc']['object']}": one["acc"] for one in records}
    assert means(path, ["doc.colour", "doc.object"], "acc")[0] == found
    assert Log(path).peek().scores == ("acc", "acc_norm")
    assert means(Log(path, template="What is a {c} {o}?", prompt="doc.question"), ["c", "o"], "acc")[0] == found


def test_filters_of_lm_evaluation_harness_are_named(tmp_path):
    lines = (RECORDED / "samples_scene_objects.jsonl").read_text().splitlines()
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join([*lines, *(line.replace('"filter": "none"', '"filter": "strict"') for line in lines)]))
    cells = rc.audit.read_cells(path, factors=["doc.colour", "doc.object"], scores=["acc"])
    assert any("counts once for each filter (none, strict)" in note for note in cells.notes)


def test_helm():
    log = Log(RECORDED / "helm_run", template="What is a {colour} {object}?")
    found, cells = means(log, ["colour", "object"], "exact_match", where="perturbation = 'none'")
    assert found["red + cup"] == 1 and found["green + cup"] == 0.5 and found["green + dog"] == 0
    assert cells.count.tolist() == [2] * 6
    perturbed, _ = means(log, ["perturbation", "trial"], "exact_match")
    assert perturbed == pytest.approx({f"{p} + {t}": (5 - t) / 6 for p in ("none", "lowercase") for t in (0, 1)})


def test_geneval():
    path = RECORDED / "geneval_results.jsonl"
    found, cells = means(
        Log(path, template="a photo of a {colour:red|blue|green} {object}"), ["colour", "object"], "correct"
    )
    assert found["green + cup"] == 0.5 and found["green + dog"] == 0 and sum(found.values()) == 4.5
    assert "1 prompt of 13 does not match the template, such as 'a photo of a dog left of a cup'." in cells.notes
    assert means(path, ["color_1", "class_1"], "correct", where="tag = 'colors'")[0] == found
    assert "position_2" in Log(path).peek().columns


@pytest.mark.parametrize("name, score", [("wandb_answers.table.json", "success"), ("mlflow_answers.json", "correct")])
def test_exported_tables(name, score):
    found, _ = means(Log(RECORDED / name, template=PAIRS), ["colour", "object"], score)
    assert found == {
        f"{colour} + {thing}": 0.5 if colour == "green" else 1.0
        for colour in ("red", "blue", "green")
        for thing in ("ball", "cup")
    }


def test_any_table_with_prompts(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "question,ok\n" + "".join(f"a {c} {o},{int(c != 'green')}\n" for c in ("red", "green") for o in ("cup", "box"))
    )
    found, _ = means(Log(path, template=PAIRS), ["colour", "object"], "ok")
    assert found["green + box"] == 0 and found["red + cup"] == 1


def test_a_function_of_the_prompt_and_several_templates():
    path = RECORDED / "mlflow_answers.json"
    words, _ = means(
        Log(path, parse=lambda prompt: dict(zip("cd", prompt.split()[1:], strict=True))), ["c", "d"], "correct"
    )
    several = Log(path, template=["a red {object}", "a {colour:blue|green} {object}"])
    _, cells = means(several, ["object"], "correct")
    assert len(words) == 6 and cells.count.sum() == 12 and several.peek().factors == ("object", "colour")


def test_a_log_is_audited_like_a_table():
    log = Log(RECORDED / "inspect.eval", template="a {colour} {object} on a {_}")
    audit = rc.audit_table(log, factors=["colour", "object"], scores="exact")
    assert audit.source.endswith("inspect.eval") and audit.combinations == 6


BIG = """
import json, resource, sys
import recombine as rc
from recombine.audit.logs.log import Log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cells = rc.audit.read_cells(Log(sys.argv[1], template="a {colour} {object}"), factors=["colour", "object"], scores=["exact"])
print(json.dumps([int(cells.count.sum()), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024]))
"""


def test_large_logs_are_streamed(tmp_path):
    """A log of 100 MB is read in a small part of that; in a process of its own, so that nothing else counts."""
    path, number = tmp_path / "log.json", 10_000
    with path.open("w") as out:
        out.write('{"version": 2, "status": "success", "eval": {}, "samples": [')
        for index in range(number):
            sample = {"id": index, "input": f"a {'red' if index % 2 else 'blue'} {'cup' if index % 3 else 'box'}"}
            sample |= {"events": "x" * 10_000, "scores": {"exact": {"value": "C" if index % 5 else "I"}}}
            out.write(("," if index else "") + json.dumps(sample))
        out.write("]}")
    done = subprocess.run([sys.executable, "-c", BIG, str(path)], capture_output=True, text=True, check=True)
    rows, memory = json.loads(done.stdout)
    assert rows == number and memory < path.stat().st_size * 0.5, f"{memory / 1e6:.0f} MB"
