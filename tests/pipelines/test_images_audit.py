"""The whole audit on both kinds of pipeline, with a planted answer and without one."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.pipelines import probing
from recombine.pipelines.folder import ImageFolder
from recombine.pipelines.generation import GenerationSettings
from recombine.pipelines.images_audit import audit_images
from recombine.pipelines.judges.base import FunctionJudge, Judge, Judgement
from recombine.pipelines.prompts.sets import SetPrompts, SlotPrompts
from recombine.pipelines.recorded_set import RecordedSet
from recombine.report.images import render_images

QUICK = GenerationSettings(images=2, steps=3, guidance=3.0)
QUICKLY = {"--steps": "3", "--prompts-per-set": "15"}
MANY = SetPrompts(concepts=("cat", "dog", "fox", "owl", "cow", "hen", "hat", "tie"), size=2)


class Chosen(Judge):
    """Says of each prompt how many of its images are right."""

    always_ask = True

    def __init__(self, right):
        self.name, self._right = "chosen", right

    def assess(self, shown):
        return Judgement((), shown.number < self._right[shown.prompt])


class Always(Judge):
    """Finds everything right."""

    fresh, name = True, "always"

    def assess(self, shown):
        return Judgement((), True)


@pytest.fixture
def one_penalty(monkeypatch):
    """A single penalty for the probes, a quarter of the fits: for tests that do not look at their quality."""
    monkeypatch.setattr(probing, "STRENGTHS", (0.1,))


@pytest.fixture(scope="module")
def plain(unet, tmp_path_factory):
    """Without a judge."""
    out = tmp_path_factory.mktemp("audit") / "out"
    return audit_images(unet, {"things": MANY}, out, prompts=22, settings=QUICK), unet, out


def test_without_a_judge_concepts_are_read_all_the_same(plain):
    made, _, _ = plain
    (found,) = made.audit.sets
    assert found.prompts == 22 and found.images == 44 and found.judged == 0 and found.success is None
    assert {one.time for one in found.sites} == {"0.3", "0.5", "0.7", "1.0", "mean"}
    assert len(found.sites) == 5 * 5
    (place,) = found.places
    best = max(found.sites, key=lambda one: one.validation)
    assert best.validation == max(one.validation for one in found.sites)
    assert place.score.estimate in {
        one.test for one in found.sites if math.isclose(one.validation, best.validation, abs_tol=1e-9)
    }
    assert place.text.estimate > 0.8  # The words are there, after all.
    assert abs(place.control - 0.5) < 0.25 and place.selectivity == place.score.estimate - place.control
    assert found.relation.plain is None and found.joint is None and found.table is None
    assert sum(one.related for one in found.points) == sum(one.fold != 3 for one in made.prompts["things"])


def test_a_planted_relation_is_found_and_chance_is_not(plain):
    """Success that follows how well a linear feature of the activations tells the concepts; and success by lot."""
    made, folder, out = plain
    read = {one.prompt: (one.fold, one.decodability) for one in made.audit.sets[0].points}
    right = {}
    for fold in range(5):
        order = sorted((value, name) for name, (place, value) in read.items() if place == fold)
        right |= {name: round(2 * n / (len(order) - 1)) for n, (_, name) in enumerate(order)}
    again = audit_images(folder, {"things": MANY}, out, prompts=22, settings=QUICK, judge=Chosen(right))
    relation = again.audit.sets[0].relation
    assert relation.plain.low > 0.5 and "more often" in relation.verdict
    rng = np.random.default_rng(0)
    lot = {name: int(rng.integers(3)) for name in read}
    other = audit_images(folder, {"things": MANY}, out, prompts=22, settings=QUICK, judge=Chosen(lot))
    found = other.audit.sets[0].relation.plain
    assert found.low < 0 < found.high
    assert other.audit.sets[0].table is not None


def test_the_precision_is_the_one_that_was_used(plain):
    made, folder, out = plain
    assert made.audit.settings["precision"] == "float32" == made.folder.settings()["precision"]
    with pytest.raises(BadInput, match=r"precision 'float32' \(now 'bfloat16'\)"):
        audit_images(folder, {"things": MANY}, out, prompts=22, settings=QUICK, precision="bfloat16")


def test_a_text_encoder_that_overflows_is_left_out(plain, monkeypatch):
    made, folder, out = plain
    real = RecordedSet.encoded
    monkeypatch.setattr(RecordedSet, "encoded", lambda self, name: real(self, name) * np.inf)
    again = audit_images(folder, {"things": MANY}, out, prompts=22, settings=QUICK)
    (found,) = again.audit.sets
    assert found.places[0].text is None and "text_encoder has activations that are not numbers" in str(found.notes)
    assert found.places[0].score == made.audit.sets[0].places[0].score


def test_blackened_images_take_no_part(plain, monkeypatch):
    _, folder, out = plain
    real = ImageFolder.manifest
    first = plain[0].prompts["things"][0].name
    monkeypatch.setattr(
        ImageFolder,
        "manifest",
        lambda self, name: real(self, name) | ({"flagged": [True, True]} if name == first else {}),
    )
    again = audit_images(folder, {"things": MANY}, out, prompts=22, settings=QUICK, judge=Always())
    (found,) = again.audit.sets
    assert found.images == 42 == found.judged
    (point,) = [one for one in found.points if one.prompt == first]
    assert math.isnan(point.decodability) and math.isnan(point.success)


@pytest.mark.usefixtures("one_penalty")
def test_a_transformer_with_slots_and_two_sets(transformer, tmp_path):
    slots = SlotPrompts(
        slots={"animal": ("cat", "dog", "fox", "owl"), "worn": ("hat", "tie", "cow")},
        template="a photo of {a animal} with {a worn}",
    )
    judge = FunctionJudge(lambda image, question: question.concept not in ("owl", "hen"))
    sets = {"dressed": slots, "pets": SetPrompts(concepts=("cat", "dog", "fox", "owl", "cow", "hen"), size=2)}
    made = audit_images(transformer, sets, tmp_path / "out", prompts=15, settings=QUICK, judge=judge)
    dressed, pets = made.audit.sets
    assert dressed.prompts == 12 and [one.place for one in dressed.places] == ["animal", "worn"]
    assert dressed.places[0].chance == 0.25 and dressed.places[0].text_encoder.startswith("text_encoder")
    rates = {one.concept: one.success.estimate for one in dressed.concepts if one.place == "animal"}
    assert rates == {"cat": 1, "dog": 1, "fox": 1, "owl": 0}
    assert dressed.joint.difference.estimate == pytest.approx(0, abs=1e-9)
    assert made.audit.relation is not None and made.audit.relation.combinations > 15
    assert pets.kind == "set" and pets.judged == 30
    page = render_images(made)
    assert page.count("data:image/png;base64") == 24 + 24 and "http:" not in page.split("<script>")[0]
    assert "transformer_blocks.1" in page and "right" in page and "wrong" in page


def test_too_few_prompts_are_said(unet, tmp_path):
    made = audit_images(
        unet,
        {"pets": SetPrompts(concepts=("cat", "dog", "fox"), size=2)},
        tmp_path / "out",
        settings=QUICK,
        judge=FunctionJudge(lambda image, question: True),
    )
    (found,) = made.audit.sets
    assert found.places == () and any("too few prompts" in note for note in found.notes)
    assert found.relation.verdict.startswith("Too few to say")
    assert "Too few to say" in render_images(made)


def test_names_from_users_are_escaped(unet, tmp_path):
    evil = SetPrompts(concepts=("<script>alert(1)</script>", "cat & dog", "fox\u202e", "owl"), size=2)
    judge = FunctionJudge(lambda image, question: "cat" in question.concept)
    made = audit_images(unet, {"<b>": evil}, tmp_path / "out", settings=QUICK, judge=judge)
    page = render_images(made)
    assert "<script>alert" not in page and "<b>" not in page.split("</style>")[1].replace("<b>How", "").replace(
        "<b>Method", ""
    )
    assert "&lt;script&gt;alert(1)" in page and "\u202e" not in page


def test_nothing_to_ask(unet, tmp_path):
    with pytest.raises(BadInput, match="No prompts"):
        audit_images(unet, {}, tmp_path / "out")
    with pytest.raises(BadInput, match="at least one prompt"):
        audit_images(unet, {"pets": MANY}, tmp_path / "out", prompts=0)


@pytest.mark.usefixtures("one_penalty")
def test_the_command(unet, tmp_path, monkeypatch, capsys):
    from recombine.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pets.yaml").write_text("pets: {kind: set, concepts: [cat, dog, fox, owl, cow, hen], size: 2}")
    (tmp_path / "command_judges.py").write_text(
        "def cats(image, question): return question.concept != 'cat'\n"
        "def broken(image, question): raise OSError('gone')\n"
    )

    def run(*more):
        with pytest.raises(SystemExit) as end:
            main(
                ["audit-images", str(unet), "--prompts", "pets.yaml", "--out", "out", "--images-per-prompt", "2"]
                + [
                    word
                    for name, value in (QUICKLY | dict(zip(more[::2], more[1::2], strict=False))).items()
                    for word in ([name] if value is None else [name, value])
                ]
            )
        return end.value.code, capsys.readouterr()

    code, said = run()
    assert code == 0 and "labels.csv" in said.out and "No judge was given" in said.out
    code, said = run("--judge", "command_judges:cats", "--json", None)
    record = json.loads(said.out)
    assert code == 0 and record["sets"][0]["judged"] == 30 and record["sets"][0]["success"]["estimate"] < 1
    rows = list(csv.DictReader((tmp_path / "out/success.csv").read_text().splitlines()))
    assert len(rows) == 60 and {row["success"] for row in rows if row["concept"] == "cat"} == {"0"}
    assert json.loads((tmp_path / "out/audit.json").read_text())["judge"] == "command_judges:cats"
    labels = tmp_path / "out/labels.csv"
    text = labels.read_text()
    filled = list(csv.reader(text.splitlines()))
    with open(labels, "w", newline="") as file:
        csv.writer(file).writerows([filled[0], *([*row[:3], "1", *row[4:]] for row in filled[1:])])
    code, said = run("--judge", f"file:{labels}")
    assert code == 0 and "1.00 [" in said.out and "all images are right" in said.out
    assert list(csv.reader(labels.read_text().splitlines()))[1][3] == "1"  # It was not written over.
    short = (tmp_path / "out/labels.csv").read_text().splitlines()
    labels.write_text("\n".join(short[:-2]))
    code, said = run()
    again = list(csv.DictReader(labels.read_text().splitlines()))
    assert code == 0 and [row["success"] for row in again] == ["1"] * 58 + [""] * 2  # Only what was missing.
    assert [list(row.values())[:3] for row in again] == [row[:3] for row in filled[1:]]
    code, said = run("--judge", "command_judges:broken")
    assert code == 2 and "judged no image" in said.err
    assert "OSError: gone" in (tmp_path / "out/report.html").read_text()
    for more, what in (
        (("--steps", "4"), "other settings"),
        (("--judge", "nonsense"), "not understood"),
        (("--prompts-per-set", "0"), "at least one prompt"),
        (("--judge-model", "x"), "endpoint"),
        (("--seed", "-1"), "Must be >= 0"),
        (("--judge", "openai:http://[::1/v1", "--judge-model", "x"), "not a valid address"),
    ):
        code, said = run(*more)
        assert code == 2 and what in said.err, (more, said.err)


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on(unet, tmp_path):
    """Killed whenever a further prompt is there: in the end the folder is the same as in one go."""
    (tmp_path / "pets.yaml").write_text("pets: {kind: set, concepts: [cat, dog, fox, owl, cow, hen], size: 2}")

    def start(out):
        words = ["audit-images", str(unet), "--prompts", "pets.yaml", "--out", out, "--steps", "3"]
        words += ["--images-per-prompt", "2", "--prompts-per-set", "8"]
        return subprocess.Popen([sys.executable, "-m", "recombine", *words], cwd=tmp_path)

    assert start("whole").wait() == 0
    kills = 0
    for number in (1, 3, 6):
        process = start("cut")
        while process.poll() is None and len(list((tmp_path / "cut").glob("prompts/*"))) < number:
            time.sleep(0.005)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills == 3 and start("cut").wait() == 0
    for path in (tmp_path / "whole/prompts").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "cut" / path.relative_to(tmp_path / "whole")).read_bytes()
    assert not list((tmp_path / "cut/temporary").iterdir())


def test_a_result_shows_itself(plain):
    audited, _, _ = plain
    assert repr(audited).startswith("ImagesAudit(") and "prompts)" in repr(audited)
    page = audited._repr_html_()
    assert "success" in page and "<script" not in page
