"""The command `recombine audit-images`: parse, call, print."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from recombine.cli.options import JsonOption, SeedOption, split_names
from recombine.cli.output import interval_text, json_text, print_json, say_line, say_written
from recombine.errors import BadInput
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from recombine.pipelines import ImagesResult, SetFinding


def audit_images(
    pipeline: Path,
    *,
    prompts: list[str],
    out: Annotated[Path, Parameter(name=("--out", "-o"))],
    judge: str | None = None,
    judge_model: str | None = None,
    prompts_per_set: int = 100,
    images_per_prompt: int = 4,
    steps: int = 30,
    guidance: float | None = None,
    size: int | None = None,
    seed: SeedOption = 0,
    device: str = "auto",
    precision: str = "auto",
    offload: bool = False,
    as_json: JsonOption = False,
) -> None:
    """Audit a text-to-image pipeline: what it fails to compose, and whether its blocks show it.

    Args:
        pipeline: The folder of a diffusers text-to-image pipeline (safetensors only).
        prompts: Sets of prompts: animals, counting, ... or your own YAML files.
        out: The folder for images and findings; run again to continue.
        judge: file:LABELS.csv, module:function, clip:FOLDER, vqa:FOLDER or openai:URL.
        judge_model: The name of the endpoint's model.
        prompts_per_set: Number of different combinations per set.
        images_per_prompt: Images per prompt, generated together: fewer need less memory.
        steps: Steps of the schedule.
        guidance: Guidance scale; default: the pipeline's.
        size: Height and width in pixels; default: the pipeline's.
        seed: The seed of prompts, noise and bootstraps.
        device: auto, cpu, cuda, cuda:1 or mps.
        precision: auto, float32, float16 or bfloat16.
        offload: Keep only the active part of the pipeline on the accelerator.
    """
    from recombine.pipelines import GenerationSettings, audit_images as run_audit, make_judge, prompt_sets
    from recombine.pipelines.loading import check_folder
    from recombine.report import write_images

    sets = prompt_sets(split_names(prompts))
    settings = GenerationSettings(images_per_prompt, steps, guidance, size, seed)
    check_folder(pipeline)
    if judge is None and judge_model is not None:
        raise BadInput("--judge-model is only for an endpoint.", fix="name the endpoint: --judge openai:URL")
    with ProgressBar("loading") as on:
        asked = None if judge is None else make_judge(judge, model=judge_model, device=device)
        loading = {"device": device, "precision": precision, "offload": offload}
        result = run_audit(
            pipeline, sets, out, judge=asked, prompts=prompts_per_set, settings=settings, on=on, **loading
        )
        on("writing the report")
        files = _write(result, out)
        files["report"] = str(write_images(result, out / "report.html"))
    if as_json:
        print_json(result.audit.record() | {"files": files})
    else:
        _say(result, files)
    if judge is not None and not any(answer.success is not None for answer in result.answers.values()):
        kept = "The images are kept; the report has no success rates."
        fix = "read its errors in the notes of the report, fix it, and run the same command again"
        raise BadInput(f"The judge {judge} judged no image. {kept}", fix=fix)


def _write(result: ImagesResult, out: Path) -> dict[str, str]:
    """Write the findings, the table of successes, and a table for human labels."""
    from recombine.figures.files import write_whole

    written = {
        "findings": str(write_whole(out / "audit.json", json_text(result.audit.record(), indent=1))),
        "success": str(write_whole(out / "success.csv", _csv(_success(result)))),
    }
    text = _more_labels(out / "labels.csv", _labels(result))
    if text is not None:
        written["labels"] = str(write_whole(out / "labels.csv", text))
    return written


def _more_labels(path: Path, rows: list[dict[str, Any]]) -> str | None:
    """The table of labels with its missing rows; None if nothing is missing. Existing labels are kept."""
    if not path.exists():
        return _csv(rows)
    try:
        held = path.read_bytes().decode("utf-8")
        table = csv.DictReader(io.StringIO(held.removeprefix("\ufeff"), newline=""))
        names = list(table.fieldnames or ())
        if not {"prompt", "image", "concept", "success"} <= set(names):
            return None
        known = {_row_key(row, "place" in names) for row in table}
    except (OSError, UnicodeDecodeError, csv.Error):
        return None
    missing = [row for row in rows if _row_key(row, "place" in names) not in known]
    end = "" if held.endswith("\n") else "\r\n"
    return held + end + _csv(missing, names) if missing else None


def _row_key(row: dict[str, Any], places: bool) -> tuple[str, ...]:
    names = ("prompt", "image", "concept", *(("place",) if places else ()))
    return tuple(str(row.get(name) or "0" * (name == "image")).strip() for name in names)


def _success(result: ImagesResult) -> list[dict[str, Any]]:
    """One row per image and concept, also for `recombine audit`."""
    rows = []
    named = {prompt.name: prompt for drawn in result.prompts.values() for prompt in drawn}
    for (folder, number), answer in result.answers.items():
        prompt = named[folder]
        for index, question in enumerate(prompt.questions):
            score = answer.scores[index] if index < len(answer.scores) else None
            row = {"set": prompt.set, "prompt": prompt.text, "folder": folder, "image": number}
            row |= {"place": question.place, "concept": question.concept, "score": "" if score is None else score}
            success = "" if answer.success is None else int(answer.success)
            rows.append(row | {"success": success, "error": answer.error})
    return rows


def _labels(result: ImagesResult) -> list[dict[str, Any]]:
    """One row per image and concept, with an empty column `success`."""
    return [
        {
            "prompt": prompt.text,
            "image": number,
            "concept": question.concept,
            "success": "",
            "place": question.place,
            "question": question.text,
            "file": str(result.folder.image(prompt.name, number).relative_to(result.folder.path)),
        }
        for each in result.prompts.values()
        for prompt in each
        if result.folder.has(prompt.name)
        for number, flag in enumerate(result.folder.manifest(prompt.name)["flagged"])
        if not flag
        for question in prompt.questions
    ]


def _csv(rows: list[dict[str, Any]], names: list[str] | None = None) -> str:
    """Rows as CSV under a line of their names; or without it, to follow a table with these names."""
    text = io.StringIO()
    if rows:
        table = csv.DictWriter(text, names or list(rows[0]), extrasaction="ignore")
        if names is None:
            table.writeheader()
        table.writerows(rows)
    return text.getvalue()


def _say(result: ImagesResult, files: dict[str, str]) -> None:
    audit = result.audit
    say_line(f"{audit.pipeline}: {audit.kind}")
    for finding in audit.sets:
        _say_set(finding)
    if audit.relation is not None:
        say_line("all sets", "bold")
        say_line(f"  {audit.relation.verdict}")
    for note in (*audit.notes, *(f"{finding.name}: {note}" for finding in audit.sets for note in finding.notes)):
        say_line(note, "dim")
    if not audit.judge:
        say_line("No judge was given. Fill in labels.csv and use it: --judge file:LABELS.csv", "dim")
    say_written(files.values())


def _say_set(finding: SetFinding) -> None:
    counts = f"{finding.prompts} prompts, {finding.images} images, {finding.judged} judged"
    rate = f", {interval_text(finding.success)} right" if finding.success is not None else ""
    say_line(f"{finding.name}: {counts}{rate}", "bold")
    for place in finding.places:
        text = f"; text encoder alone {interval_text(place.text)}" if place.text is not None else ""
        say_line(
            f"  {place.place} at {place.block}, {place.time} of the schedule: {interval_text(place.score)}, "
            f"chance {place.chance:.2f}, selectivity {place.selectivity:+.2f}{text}"
        )
    say_line(f"  {finding.relation.verdict}")
    if finding.joint is not None:
        say_line(f"  {finding.joint.sentence}")
    if finding.table is not None:
        say_line(f"  Parts or combination? {finding.table.scores[0].parts.verdict}")
