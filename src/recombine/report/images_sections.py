"""What the page of an audit of images shows of one set of prompts."""

from __future__ import annotations

import math

import pandas as pd

from recombine.audit.wording import counted
from recombine.figures.base import Figure
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.pipelines.findings import Relation, SetFinding
from recombine.pipelines.relating import ALL
from recombine.report.audit_answer import with_ends
from recombine.report.audit_sections import Section
from recombine.report.html import Table


def relation_section(finding: SetFinding) -> Section:
    """Success against decodability, a point a prompt, and what the rivals leave of it."""
    relation = finding.relation
    points = [one for one in finding.points if one.related and math.isfinite(one.success)]
    frame = pd.DataFrame(
        {
            "decodability": [one.decodability for one in points],
            "success": [one.success for one in points],
            "prompt": [one.text for one in points],
        }
    )
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
            caption_lead="A point is a prompt. Its concepts are read by probes that were fitted on other prompts. As probes of different "
            "folds are not equally bold, the correlation compares prompts of one fold only and may differ from what the cloud suggests.",
        )
        figures.append(
            Figure("images_relation", "Decodability and success", info.caption, draw_scatter(info))
        )
    joint = finding.joint
    lead = [relation.verdict, *([joint.sentence] if joint is not None else [])]
    numbers = [("images that are right", with_ends(finding.success))] if finding.success is not None else []
    if joint is not None:
        numbers += [
            ("all concepts right", with_ends(joint.joint)),
            ("product of the concepts' own", with_ends(joint.product)),
            ("joint less product", with_ends(joint.difference, sign=True)),
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
        own = relation.rivals.get(name)
        held = relation.partial.get(name)
        rows.append(
            (
                "all rivals" if name == ALL else name,
                None if own is None else with_ends(own, sign=True),
                None if held is None else with_ends(held, sign=True),
            )
        )
    columns = ["what", "its correlation with success", "decodability with it held still"]
    note = (
        "Rank correlations over prompts with 95 % intervals by leaving out concepts. The concepts themselves are an effect each, so "
        "they have no one correlation. Another dash: it cannot be had, for the reason below."
    )
    return [Table("Rivals", columns, rows, note)]


def sites_section(finding: SetFinding) -> Section | None:
    """What can be read at which block and point of the schedule."""
    if not finding.sites:
        return None
    frame = pd.DataFrame(
        [(one.block, one.time, one.place, one.test) for one in finding.sites],
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
        caption_lead="How well concepts can be read off each block at four points of the schedule and in their mean, on test prompts.",
    )
    rows = [
        (
            one.place,
            one.block,
            one.time,
            with_ends(one.score),
            one.chance,
            one.control,
            one.selectivity,
            None if one.text is None else with_ends(one.text),
        )
        for one in finding.places
    ]
    columns = [
        "place", "block", "point", "accuracy", "chance", "shuffled labels", "selectivity", "text encoder",
    ]  # fmt: skip
    table = Table(
        "At the sites chosen on validation prompts",
        columns,
        rows,
        "Accuracy is balanced over answers, on test prompts. Selectivity is accuracy less that with labels dealt out at random. The last "
        "column reads the text encoder alone.",
        names=(0, 1),
    )
    figure = Figure("images_sites", "What can be read where", info.caption, draw_matrix(info))
    return Section("What can be read where", figures=(figure,), tables=(table,))


def concepts_section(finding: SetFinding) -> Section | None:
    """A line a concept."""
    if not finding.concepts:
        return None
    order = sorted(
        finding.concepts, key=lambda one: (one.success is None, one.success.estimate if one.success else 0)
    )
    several = len({one.place for one in order}) > 1
    rows = [
        (
            *((one.place,) if several else ()),
            one.concept,
            one.prompts,
            one.images or None,
            None if one.success is None else with_ends(one.success),
            None if math.isnan(one.decodability) else one.decodability,
        )
        for one in order
    ]
    columns = [*(("place",) if several else ()), "concept", "prompts", "judged images", "right", "read"]
    note = "Hardest first. Right: in how many images, over prompts. Read: how often a probe that was fitted on other prompts finds it there."
    return Section("Concepts", tables=(Table("Concepts", columns, rows, note, names=(0,)),))
