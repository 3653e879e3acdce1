"""The command that audits a text-to-image pipeline: parse, call, print."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.cli.audit import split_names
from recombine.cli.audit_summary import interval_text
from recombine.cli.output import console, print_json
from recombine.cli.waiting import Waiting
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.pipelines.findings import SetFinding
    from recombine.pipelines.images_audit import Made


def audit_images_command(
    pipeline: Path,
    out: Path,
    *,
    prompts: Sequence[str] = (),
    judge: str | None = None,
    judge_model: str | None = None,
    prompts_per_set: int = 100,
    images_per_prompt: int = 4,
    steps: int = 30,
    guidance: float | None = None,
    size: int | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    offload: bool = False,
    as_json: bool = False,
) -> None:
    """Make images, have them judged, read the blocks, and write and print what that says."""
    from recombine.pipelines.generating import Settings
    from recombine.pipelines.images_audit import audit_images
    from recombine.pipelines.judge import make_judge
    from recombine.pipelines.loading import check_folder
    from recombine.pipelines.prompt_files import prompt_sets
    from recombine.report.images import write_images

    sets = prompt_sets(split_names(prompts))
    settings = Settings(images_per_prompt, steps, guidance, size, seed)
    check_folder(pipeline)
    if judge is None and judge_model is not None:
        raise BadInput("--judge-model names the model of an endpoint.", fix="name it too: --judge openai:URL")
    with Waiting("loading") as on:
        asked = None if judge is None else make_judge(judge, model=judge_model, device=device)
        made = audit_images(
            pipeline,
            sets,
            out,
            judge=asked,
            prompts=prompts_per_set,
            settings=settings,
            device=device,
            precision=precision,
            offload=offload,
            on=on,
        )
        on("writing the report")
        files = _write(made, out)
        files["report"] = str(write_images(made, out / "report.html"))
    if as_json:
        print_json(made.audit.record() | {"files": files})
    else:
        _say(made, files)
    if judge is not None and not any(one.success is not None for one in made.answers.values()):
        raise BadInput(
            f"The judge {judge} said nothing of any image; the images are kept, and the report is without success.",
            fix="see the report's notes for what it said, mend it, and run the same command again",
        )


def _write(made: Made, out: Path) -> dict[str, str]:
    """The findings, the table of successes, and a table for people to fill in."""
    from recombine.figures.files import write_whole
    from recombine.store.files import finite

    record = json.dumps(finite(made.audit.record()), indent=1, allow_nan=False, default=str)
    written = {
        "findings": str(write_whole(out / "audit.json", record)),
        "success": str(write_whole(out / "success.csv", _csv(_success(made)))),
    }
    labels = out / "labels.csv"
    text = _more_labels(labels, _labels(made))
    if text is not None:
        written["labels"] = str(write_whole(labels, text))
    return written


def _more_labels(path: Path, rows: list[dict[str, Any]]) -> str | None:
    """The table with the rows that it lacks; None where it is to stay. It may be half filled in: what stands there is kept."""
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
    if not missing:
        return None
    text = io.StringIO()
    csv.DictWriter(text, names, extrasaction="ignore").writerows(missing)
    return held + ("" if held.endswith("\n") else "\r\n") + text.getvalue()


def _row_key(row: dict[str, Any], places: bool) -> tuple[str, ...]:
    names = ("prompt", "image", "concept", *(("place",) if places else ()))
    return tuple(str(row.get(name) or "0" * (name == "image")).strip() for name in names)


def _success(made: Made) -> list[dict[str, Any]]:
    """A row an image and concept, for `recombine audit` and for whoever wants to look."""
    rows = []
    named = {one.name: one for each in made.prompts.values() for one in each}
    for (prompt, number), answer in made.answers.items():
        one = named[prompt]
        for place, question in enumerate(one.questions):
            score = answer.scores[place] if place < len(answer.scores) else None
            rows.append(
                {
                    "set": one.set,
                    "prompt": one.text,
                    "folder": prompt,
                    "image": number,
                    "place": question.place,
                    "concept": question.concept,
                    "score": "" if score is None else score,
                    "success": "" if answer.success is None else int(answer.success),
                    "error": answer.error,
                }
            )
    return rows


def _labels(made: Made) -> list[dict[str, Any]]:
    """A row an image and concept, with nothing in `success` yet."""
    return [
        {
            "prompt": prompt.text,
            "image": number,
            "concept": question.concept,
            "success": "",
            "place": question.place,
            "question": question.text,
            "file": str(made.folder.image(prompt.name, number).relative_to(made.folder.path)),
        }
        for each in made.prompts.values()
        for prompt in each
        if made.folder.has(prompt.name)
        for number, flag in enumerate(made.folder.manifest(prompt.name)["flagged"])
        if not flag
        for question in prompt.questions
    ]


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    if rows:
        table = csv.DictWriter(text, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return text.getvalue()


def _say(made: Made, files: dict[str, str]) -> None:
    from recombine.plain import plain

    audit, out = made.audit, console()

    def line(text: str, style: str | None = None) -> None:
        out.print(plain(text), style=style, markup=False, highlight=False, soft_wrap=True)

    line(f"{audit.pipeline}: {audit.kind}")
    for one in audit.sets:
        _say_set(one, line)
    if audit.relation is not None:
        line("all sets", "bold")
        line(f"  {audit.relation.verdict}")
    for note in (*audit.notes, *(f"{one.name}: {note}" for one in audit.sets for note in one.notes)):
        line(note, "dim")
    if not audit.judge:
        line("No judge was named. Fill in labels.csv and name it: --judge file:LABELS.csv", "dim")
    for name in files.values():
        line(f"written: {name}")


def _say_set(one: SetFinding, line: Any) -> None:
    rate = f", {interval_text(one.success)} right" if one.success is not None else ""
    line(f"{one.name}: {one.prompts} prompts, {one.images} images, {one.judged} judged{rate}", "bold")
    for place in one.places:
        text = f"; text encoder alone {interval_text(place.text)}" if place.text is not None else ""
        line(
            f"  {place.place} at {place.block}, {place.time} of the schedule: {interval_text(place.score)}, "
            f"chance {place.chance:.2f}, selectivity {place.selectivity:+.2f}{text}"
        )
    line(f"  {one.relation.verdict}")
    if one.joint is not None:
        line(f"  {one.joint.sentence}")
    if one.table is not None:
        line(f"  Parts or combination? {one.table.scores[0].parts.verdict}")
