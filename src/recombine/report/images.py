"""The page of an audit of images: the answer, what was made, what can be read where, and how that goes with success."""

from __future__ import annotations

import base64
import dataclasses
import io
import itertools
import math
import random
from pathlib import Path
from typing import NamedTuple

from recombine.audit.wording import counted, large
from recombine.figures.audit_names import cut
from recombine.figures.files import write_whole
from recombine.pipelines.drawing import Prompt
from recombine.pipelines.findings import SetFinding
from recombine.pipelines.folder import Folder
from recombine.pipelines.images_audit import Made
from recombine.pipelines.judge import RIGHT
from recombine.pipelines.judging import Answers
from recombine.plain import plain
from recombine.report.audit import told
from recombine.report.audit_answer import Tone, with_ends
from recombine.report.audit_sections import Section, map_section, parts_section
from recombine.report.html import Drawn, drawn_figures, render_page
from recombine.report.images_sections import concepts_section, relation_section, sites_section

QUESTION = "Where does it fail to compose, and do its blocks say so in advance?"
SHOWN = 24
"""Images of a set on the page."""
EDGE = 256
"""Pixels of an image on the page, at most."""


class Picture(NamedTuple):
    """An image on the page."""

    source: str
    prompt: str
    mark: str
    sign: str
    tone: str
    missed: str


class Answer(NamedTuple):
    """The answer of a set."""

    name: str
    sentence: str
    tone: Tone


@dataclasses.dataclass(frozen=True)
class SetPart:
    """All that the page says of one set."""

    number: int
    name: str
    pictures: tuple[Picture, ...]
    sections: tuple[Section, ...]
    drawn: tuple[tuple[Drawn, ...], ...] = ()


def write_images(made: Made, path: str | Path) -> Path:
    """Write the page as one file that opens from disk without a network, and return its path."""
    return write_whole(path, render_images(made))


def render_images(made: Made) -> str:
    """The page as text."""
    audit = told(made.audit)
    parts = [_part(number, made, audit.sets[number]) for number in range(len(audit.sets))]
    drawn = drawn_figures([figure for part in parts for one in part.sections for figure in one.figures])
    left = iter(drawn)
    parts = [
        dataclasses.replace(
            part, drawn=tuple(tuple(itertools.islice(left, len(one.figures))) for one in part.sections)
        )
        for part in parts
    ]
    answers = [_answer(one) for one in audit.sets]
    if audit.relation is not None:
        answers.append(Answer("all sets", audit.relation.verdict, _tone(audit.relation.plain)))
    return render_page(
        "images.html.j2",
        figures=drawn,
        styles=("audit.css", "images.css"),
        title=f"recombine audit-images: {cut(audit.pipeline, 80)}",
        question=QUESTION,
        read=_read(made),
        answers=answers,
        sets=parts,
        facts=_facts(made),
        notes=(*audit.notes, *(f"{one.name}: {note}" for one in audit.sets for note in one.notes)),
    )


def _part(number: int, made: Made, finding: SetFinding) -> SetPart:
    name = made.audit.sets[number].name
    sections = [relation_section(finding), sites_section(finding), concepts_section(finding)]
    if finding.table is not None:
        score = finding.table.scores[0]
        sections += [parts_section(score), map_section(score, told(made.cells[name]), 0)]
    pictures = _pictures(made.prompts[name], made.answers, made.folder)
    return SetPart(
        number + 1, finding.name, tuple(pictures), tuple(one for one in sections if one is not None)
    )


def _answer(finding: SetFinding) -> Answer:
    if finding.judged:
        rate = (
            f"{with_ends(finding.success)} of its images are right"
            if finding.success
            else "one prompt was judged"
        )
        return Answer(finding.name, f"{rate}. {finding.relation.verdict}", _tone(finding.relation.plain))
    best = max((one.score.estimate for one in finding.places), default=math.nan)
    known = f"concepts are read with an accuracy of up to {best:.2f}; " if math.isfinite(best) else ""
    return Answer(
        finding.name, f"No image was judged: {known}nothing can be said of success.", "inconclusive"
    )


def _tone(interval: object) -> Tone:
    low, high = getattr(interval, "low", -1.0), getattr(interval, "high", 1.0)
    return "supported" if low > 0 else "contradicted" if high < 0 else "inconclusive"


def _read(made: Made) -> str:
    audit = made.audit
    prompts, images = sum(one.prompts for one in audit.sets), sum(one.images for one in audit.sets)
    judged = sum(one.judged for one in audit.sets)
    judge = f"judged by {cut(audit.judge, 80)}" if audit.judge else "no judge"
    return f"{counted(prompts, 'prompt')}, {counted(images, 'image')}, {judged:,} of them judged ({judge})."


def _facts(made: Made) -> dict[str, str]:
    audit = made.audit
    facts = {"pipeline": cut(audit.pipeline, 80), "kind": audit.kind, "judge": cut(audit.judge or "none", 80)}
    facts |= {
        name: "its own" if value is None else str(value)
        for name, value in audit.settings.items()
        if name != "pipeline"
    }
    facts |= {f"combinations of {cut(one.name, 40)}": large(one.combinations) for one in audit.sets}
    return {plain(name): plain(value) for name, value in facts.items()}


def _pictures(prompts: list[Prompt], answers: Answers, folder: Folder) -> list[Picture]:
    """Right and wrong ones in turn, drawn by a seed, different prompts first."""
    draws = random.Random(0)
    groups: dict[bool | None, list[tuple[int, Prompt, int]]] = {}
    for prompt in prompts:
        if not folder.has(prompt.name):
            continue
        numbers = [n for n, flag in enumerate(folder.manifest(prompt.name)["flagged"]) if not flag]
        for turn, number in enumerate(draws.sample(numbers, len(numbers))):
            answer = answers.get((prompt.name, number))
            groups.setdefault(None if answer is None else answer.success, []).append((turn, prompt, number))
    for group in groups.values():
        draws.shuffle(group)
        group.sort(key=lambda one: one[0])
    order = [groups[key] for key in (True, False) if key in groups] or [groups.get(None, [])]
    mixed = [one for turn in itertools.zip_longest(*order) for one in turn if one is not None]
    return [_picture(prompt, number, answers, folder) for _, prompt, number in mixed[:SHOWN]]


def _picture(prompt: Prompt, number: int, answers: Answers, folder: Folder) -> Picture:
    from PIL import Image

    with Image.open(folder.image(prompt.name, number)) as image:
        small = image.convert("RGB")
    if max(small.size) > EDGE:
        small.thumbnail((EDGE, EDGE))
    file = io.BytesIO()
    # Small pictures are pixels that somebody wants to see as they are.
    form, kind = ("JPEG", "jpeg") if max(small.size) >= 64 else ("PNG", "png")
    small.save(file, form)
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
    answer = answers.get((prompt.name, number))
    success = None if answer is None else answer.success
    mark, sign, tone = {
        True: ("right", "\N{CHECK MARK}", "right"),
        False: ("wrong", "\N{MULTIPLICATION X}", "wrong"),
        None: ("not judged", "", ""),
    }[success]
    scores = answer.scores if answer is not None else ()
    missed = [
        question.concept
        for question, score in zip(prompt.questions, scores, strict=False)
        if score is not None and score < RIGHT
    ]
    return Picture(source, plain(prompt.text), mark, sign, tone, plain(", ".join(missed)))
