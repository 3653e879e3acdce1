"""The page of an audit of images: the answer, the images, what can be decoded where, and how that goes with success."""

from __future__ import annotations

import base64
import io
import itertools
import math
import random
from pathlib import Path
from typing import Any

import pandas as pd

from recombine.audit.wording import counted, large
from recombine.figures import Figure, draw_matrix, draw_scatter, matrix_info, scatter_info
from recombine.figures.files import write_whole
from recombine.figures.wording import cut
from recombine.pipelines.findings import Relation, SetFinding
from recombine.pipelines.folder import ImageFolder
from recombine.pipelines.images_audit import ImagesResult
from recombine.pipelines.judges.base import THRESHOLD
from recombine.pipelines.judges.judging import Judgements
from recombine.pipelines.prompts.drawing import Prompt
from recombine.pipelines.relation import ALL
from recombine.plain import plain
from recombine.report.audit.answer import Tone, with_ends
from recombine.report.audit.sections import Section, draw_sections, map_section, parts_section
from recombine.report.html import Table, render_page
from recombine.report.visible import visible

QUESTION = "Where does it fail to compose, and do its blocks say so in advance?"
SHOWN = 24
"""Images per set on the page."""
EDGE = 256
"""The longest edge of an image on the page, in pixels."""
MARKS = {
    True: ("right", "\N{CHECK MARK}", "right"),
    False: ("wrong", "\N{MULTIPLICATION X}", "wrong"),
    None: ("not judged", "", ""),
}
"""The word, the sign and the tone of an image, by its success."""


def write_images(made: ImagesResult, path: str | Path) -> Path:
    """Write the page of an audit of images as one self-contained HTML file.

    Args:
        made: The audit, with its prompts, images and answers.
        path: The file to write.

    Returns:
        The path of the file.
    """
    return write_whole(path, render_images(made))


def render_images(made: ImagesResult) -> str:
    """The page as HTML text."""
    audit = visible(made.audit)
    parts = [_part(number, made, finding) for number, finding in enumerate(audit.sets)]
    answers = [_answer(each) for each in audit.sets]
    if audit.relation is not None:
        answers.append(("all sets", audit.relation.verdict, _tone(audit.relation.plain)))
    return render_page(
        "images.html.j2",
        figures=draw_sections(parts),
        styles=("audit.css", "images.css"),
        title=f"recombine audit-images: {cut(audit.pipeline, 80)}",
        question=QUESTION,
        read=_read(made),
        answers=[dict(zip(("name", "sentence", "tone"), each, strict=True)) for each in answers],
        sets=parts,
        facts=_facts(made),
        notes=(*audit.notes, *(f"{each.name}: {note}" for each in audit.sets for note in each.notes)),
    )


def _part(number: int, made: ImagesResult, finding: SetFinding) -> dict[str, Any]:
    """What the template shows of one set of prompts, without the drawn figures."""
    name = made.audit.sets[number].name
    sections = [relation_section(finding), sites_section(finding), concepts_section(finding)]
    if finding.table is not None:
        score = finding.table.scores[0]
        sections += [parts_section(score), map_section(score, visible(made.cells[name]), 0)]
    pictures = _pictures(made.prompts[name], made.answers, made.folder)
    part = {"number": number + 1, "name": finding.name, "pictures": pictures}
    return part | {"sections": [section for section in sections if section is not None]}


def _answer(finding: SetFinding) -> tuple[str, str, Tone]:
    """The name of the set, the answer, and its tone."""
    if finding.judged:
        rate = f"{with_ends(finding.success)} of its images are right" if finding.success else "one prompt was judged"
        return finding.name, f"{rate}. {finding.relation.verdict}", _tone(finding.relation.plain)
    best = max((place.score.estimate for place in finding.places), default=math.nan)
    known = f"concepts can be decoded with an accuracy of up to {best:.2f}; " if math.isfinite(best) else ""
    return finding.name, f"No image was judged: {known}success is unknown.", "inconclusive"


def _tone(interval: object) -> Tone:
    low, high = getattr(interval, "low", -1.0), getattr(interval, "high", 1.0)
    return "supported" if low > 0 else "contradicted" if high < 0 else "inconclusive"


def _read(made: ImagesResult) -> str:
    audit = made.audit
    prompts, images = sum(each.prompts for each in audit.sets), sum(each.images for each in audit.sets)
    judged = sum(each.judged for each in audit.sets)
    judge = f"judged by {cut(audit.judge, 80)}" if audit.judge else "no judge"
    return f"{counted(prompts, 'prompt')}, {counted(images, 'image')}, {judged:,} of them judged ({judge})."


def _facts(made: ImagesResult) -> dict[str, str]:
    audit = made.audit
    facts = {"pipeline": cut(audit.pipeline, 80), "kind": audit.kind, "judge": cut(audit.judge or "none", 80)}
    for name, value in audit.settings.items():
        facts.setdefault(name, "the pipeline's default" if value is None else str(value))
    facts |= {f"combinations of {cut(each.name, 40)}": large(each.combinations) for each in audit.sets}
    return {plain(name): plain(value) for name, value in facts.items()}


def _pictures(prompts: list[Prompt], answers: Judgements, folder: ImageFolder) -> list[dict[str, str]]:
    """Right and wrong images in turn, drawn with a fixed seed, different prompts first."""
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
        group.sort(key=lambda image: image[0])
    order = [groups[key] for key in (True, False) if key in groups] or [groups.get(None, [])]
    mixed = [image for turn in itertools.zip_longest(*order) for image in turn if image is not None]
    return [_picture(prompt, number, answers, folder) for _, prompt, number in mixed[:SHOWN]]


def _picture(prompt: Prompt, number: int, answers: Judgements, folder: ImageFolder) -> dict[str, str]:
    from PIL import Image

    with Image.open(folder.image(prompt.name, number)) as image:
        small = image.convert("RGB")
    if max(small.size) > EDGE:
        small.thumbnail((EDGE, EDGE))
    file = io.BytesIO()
    # Small images stay lossless.
    form, kind = ("JPEG", "jpeg") if max(small.size) >= 64 else ("PNG", "png")
    small.save(file, form)
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
    answer = answers.get((prompt.name, number))
    success, scores = (None, ()) if answer is None else (answer.success, answer.scores)
    mark, sign, tone = MARKS[success]
    asked = zip(prompt.questions, scores, strict=False)
    missed = [question.concept for question, score in asked if score is not None and score < THRESHOLD]
    texts = {"prompt": plain(prompt.text), "missed": plain(", ".join(missed))}
    return texts | {"source": source, "mark": mark, "sign": sign, "tone": tone}


def relation_section(finding: SetFinding) -> Section:
    """Success against decodability, one point per prompt, and what remains with rival explanations held constant."""
    relation = finding.relation
    points = [point for point in finding.points if point.related and math.isfinite(point.success)]
    rows = [(point.decodability, point.success, point.text) for point in points]
    frame = pd.DataFrame(rows, columns=["decodability", "success", "prompt"])
    figures = []
    if relation.plain is not None:
        info = scatter_info(
            frame,
            "decodability",
            "success",
            name="prompt",
            note=f"rank correlation {with_ends(relation.plain, sign=True)}, {counted(relation.combinations, 'prompt')}",
            x_title="decodability of its concepts (mean log-probability of the truth)",
            y_title="share of its images that are right",
            caption_lead="One point per prompt. Probes that were fitted on other prompts decode its concepts. Probes of different folds differ in "
            "confidence, so the correlation compares prompts within a fold and may differ from the visible trend.",
        )
        figures.append(Figure("images_relation", "Decodability and success", info.caption, draw_scatter(info)))
    lead, joint = [relation.verdict], finding.joint
    numbers = [("images that are right", with_ends(finding.success))] if finding.success is not None else []
    if joint is not None:
        lead.append(joint.sentence)
        numbers += [
            ("all concepts right", with_ends(joint.joint)),
            ("product of the concepts' rates", with_ends(joint.product)),
            ("joint minus product", with_ends(joint.difference, sign=True)),
        ]
    return Section(
        "Decodability and success",
        lead=tuple(lead),
        numbers=tuple(numbers),
        figures=tuple(figures),
        tables=tuple(_rivals(relation)),
        notes=relation.notes,
    )


def _rivals(relation: Relation) -> list[Table]:
    if relation.plain is None:
        return []
    rows: list[tuple[object, ...]] = [("decodability", with_ends(relation.plain, sign=True), None)]
    for name in dict.fromkeys((*relation.rivals, *relation.partial)):
        intervals = (relation.rivals.get(name), relation.partial.get(name))
        shown = (None if interval is None else with_ends(interval, sign=True) for interval in intervals)
        rows.append(("all rivals" if name == ALL else name, *shown))
    columns = ["variable", "correlation with success", "correlation of decodability, with it held constant"]
    note = (
        "Rank correlations over prompts, with 95 % intervals by leaving out concepts. Each concept has its own effect, so the "
        "concepts have no single correlation. Any other dash: not available, for the reason below."
    )
    return [Table("Rivals", columns, rows, note)]


def sites_section(finding: SetFinding) -> Section | None:
    """What can be decoded at which block and point of the schedule."""
    if not finding.sites:
        return None
    frame = pd.DataFrame(
        [(site.block, site.time, site.place, site.test) for site in finding.sites],
        columns=["block", "time", "place", "test"],
    )
    several = frame["place"].nunique() > 1
    info = matrix_info(
        frame,
        "block",
        "time",
        "test",
        "place" if several else None,
        column_title="point of the schedule",
        value_title="balanced accuracy",
        caption_lead="How well concepts can be decoded from each block at four points of the schedule and from their mean, on test prompts.",
    )
    rows = []
    for place in finding.places:
        text = None if place.text is None else with_ends(place.text)
        numbers = (with_ends(place.score), place.chance, place.control, place.selectivity)
        rows.append((place.place, place.block, place.time, *numbers, text))
    columns = ["place", "block", "point", "accuracy", "chance", "shuffled labels", "selectivity", "text encoder"]
    note = (
        "Accuracy is balanced over answers, on test prompts. Selectivity is accuracy minus that with shuffled labels. The last "
        "column decodes from the text encoder alone."
    )
    table = Table("At the sites chosen on validation prompts", columns, rows, note, names=(0, 1))
    figure = Figure("images_sites", "What can be decoded where", info.caption, draw_matrix(info))
    return Section("What can be decoded where", figures=(figure,), tables=(table,))


def concepts_section(finding: SetFinding) -> Section | None:
    """One line per concept."""
    if not finding.concepts:
        return None
    several = len({concept.place for concept in finding.concepts}) > 1
    rows = []
    for concept in sorted(finding.concepts, key=lambda each: each.success.estimate if each.success else math.inf):
        success = None if concept.success is None else with_ends(concept.success)
        decoded = None if math.isnan(concept.decodability) else concept.decodability
        name = (concept.place, concept.concept) if several else (concept.concept,)
        rows.append((*name, concept.prompts, concept.images or None, success, decoded))
    columns = [*(["place"] if several else []), "concept", "prompts", "judged images", "right", "decoded"]
    note = "Hardest first. Right: the share of images with the concept, over prompts. Decoded: how often a probe that was fitted on other prompts finds it."
    return Section("Concepts", tables=(Table("Concepts", columns, rows, note, names=(0,)),))
