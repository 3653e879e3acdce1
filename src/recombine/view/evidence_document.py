"""The document of the Evidence page: every claim of every study, its answer in words, its replicates, its figures."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from recombine.component import find, kinds, summary
from recombine.design.claims import Effect
from recombine.design.run import Record, read_study, size_of_profile
from recombine.design.study import Study
from recombine.errors import BadInput, RecombineError
from recombine.figures.embed import chart_json
from recombine.figures.verdict_forest import in_order
from recombine.figures.wording import answer_in_words, interval_in_words, margin_in_words, p_in_words, signed
from recombine.report.html import TONES, verdict_counts
from recombine.stats.verdicts import settle
from recombine.store.files import finite, read_json
from recombine.store.store import Store, is_store, load_store

FORMAT = 1
"""Raised when readers of the document must change."""

VERDICTS = "verdicts.json"

Document = dict[str, Any]


def evidence(
    source: str | os.PathLike[str] | Store, *, images: str = "", figures: bool = True, runs: bool = True
) -> Document:
    """Everything that the Evidence page shows, as plain values for JSON.

    Args:
        source: A store, the folder of a store, or a folder of exported results such as `docs/results`: a folder per study
            with `verdicts.json` and one PNG per figure, at most one level deeper for larger profiles.
        images: What comes before the path of a figure's image, relative to `source`: an address or another folder. Only
            for exported results.
        figures: Include figures. Those of a store are drawn anew from its tables, which takes seconds per study.
        runs: Include the names of the runs behind each replicate. Only a store has them.

    Returns:
        `format`, and `studies`: one entry per study and profile, with its question, answer, figures and claims. Primary
        claims come first.

    Example:
        ```python
        document = rc.view.evidence("docs/results")
        [claim["answer"] for study in document["studies"] for claim in study["claims"] if claim["primary"]]
        ```
    """
    if isinstance(source, Store):
        studies = _of_store(source, figures, runs)
    elif is_store(Path(source)):
        studies = _of_store(load_store(source), figures, runs)
    else:
        studies = _of_folder(Path(source), images if figures else None)
    return {"format": FORMAT, "studies": sorted(studies, key=_place)}


def write_evidence_page(source: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Write the Evidence page of exported results as static files, which open from disk and need no server.

    Args:
        source: A folder of exported results, such as `docs/results`.
        folder: The folder to write into. It gets `evidence.html`, `evidence-data.js` (the document as a script, because a
            page that was opened from disk cannot fetch), `evidence-page.js`, style sheets, and the images. To show the
            evidence inside another page: the two scripts, in this order, after an element `<main id="evidence">`.

    Returns:
        The path of the page.
    """
    source, folder = Path(source), Path(folder)
    document = evidence(source)
    folder.mkdir(parents=True, exist_ok=True)
    for figure in (figure for study in document["studies"] for figure in study["figures"]):
        target = folder / figure["src"]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / figure["src"], target)
    static = resources.files("recombine.view") / "static"
    for name in STYLES:
        (folder / name).write_text((static / name).read_text(encoding="utf-8"), encoding="utf-8")
    page = folder / "evidence.html"
    page.write_text((static / "evidence-page.html").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "evidence-page.js").write_text(_joined(static), encoding="utf-8")
    # Names in the results are data: inside a script, no text can end it.
    (folder / "evidence-data.js").write_text(f"window.recombineEvidence = {chart_json(document)};\n", encoding="utf-8")
    return page


STYLES = ("theme.css", "evidence.css", "page.css")
SCRIPTS = ("dom.js", "points.js", "evidence.js", "evidence-page.js")
"""The modules of the page, each after those that it imports."""


def _joined(static: Traversable) -> str:
    """The modules as one classic script: browsers load no modules from disk."""
    modules = [(static / name).read_text(encoding="utf-8") for name in SCRIPTS]
    text = re.sub(r"^import .*\n", "", "\n".join(modules), flags=re.MULTILINE)
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f'(function () {{\n"use strict";\n{text}}})();\n'


def _place(entry: Mapping[str, Any]) -> tuple[str, int]:
    return entry["study"], size_of_profile(entry["profile"])


def entry_id(study: str, profile: str) -> str:
    """The name of an entry in links."""
    return f"{study}.{profile}".replace(", ", "-").replace(" ", "-").replace("/", "-")


# Exported results


def _of_folder(folder: Path, images: str | None) -> Iterable[Document]:
    paths = [path for depth in ("*", "*/*") for path in sorted(folder.glob(f"{depth}/{VERDICTS}"))]
    if not paths:
        fix = "give a store, or a folder that `recombine export all --out FOLDER` wrote"
        raise BadInput(f"{folder} is no store and has no results: no {VERDICTS} below it.", fix=fix)
    for path in paths:
        records = read_json(path)
        if not _sound(records):
            raise BadInput(f"{path} is not understood: expected a list of verdicts.", fix="export the results again")
        pictures = [] if images is None else sorted(path.parent.glob("*.png"))
        figures = [
            {
                "name": picture.stem,
                "title": picture.stem.replace("_", " ").replace("-", " ").capitalize(),
                "caption": "",
                "src": f"{images or ''}{picture.relative_to(folder).as_posix()}",
            }
            for picture in pictures
        ]
        if records:
            yield _entry(records, str(records[0].get("profile", "")), figures) | {"live": False}


def _sound(records: Any) -> bool:
    keys = {"claim", "study", "statement", "role", "primary", "answer", "effect", "interval", "replicates", "note"}
    return isinstance(records, list) and all(isinstance(each, dict) and each.keys() >= keys for each in records)


# Stores


def _of_store(store: Store, figures: bool, runs: bool) -> Iterable[Document]:
    for record in store.studies():
        try:
            entry = store_entry(record)
        except (BadInput, KeyError, TypeError, ValueError) as error:
            store.report(f"The effects of the study {record['study']!r} cannot be read: {error}")
            continue
        if runs:
            behind = runs_behind(record)
            for claim in entry["claims"]:
                claim["runs"] = behind.get(claim["claim"], [])
        if figures:
            entry["figures"] = store_figures(store, record)
        yield entry


def store_entry(record: Record) -> Document:
    """A study that ran into a store, without its figures and runs.

    Args:
        record: What the store keeps of the study.
    """
    effects = [Effect.from_record(item) for item in record["effects"]]
    verdicts = [verdict.record() for verdict in settle([effect.judge() for effect in effects])]
    entry = _entry(verdicts, record["profile"], []) | {"live": True}
    provenance = record["provenance"]
    return entry | {"study": record["study"], "time": provenance.get("time", ""), "size": len(set(record["runs"]))}


def study_of(record: Record) -> Study:
    """The study of a record, with its settings; BadInput if it is not installed or has changed."""
    study = find("studies", record["study"]).model_validate(record["config"])
    assert isinstance(study, Study)
    return study


def store_figures(store: Store, record: Record) -> list[Document]:
    """The figures of a study that ran into a store, as Vega-Lite specifications. Empty if it cannot be read."""
    import json

    try:
        drawn = read_study(store, record, study_of(record)).figures
    except (RecombineError, ValueError) as error:
        store.report(f"The figures of the study {record['study']!r} cannot be drawn: {error}")
        return []
    return [
        {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "spec": json.loads(chart_json(figure.chart)),
        }
        for figure in drawn
    ]


def runs_behind(record: Record) -> dict[str, list[list[str]]]:
    """The names of the runs behind each replicate of each claim.

    Args:
        record: What the store keeps of the study.

    Returns:
        For each claim, one list of names per replicate, in the order of its values. Claims whose replicates cannot be
        matched are left out: those of a study that has changed since.
    """
    try:
        design = study_of(record).design
    except (BadInput, ValueError):
        return {}
    kept, behind = set(record["runs"]), {}
    counts = {item["claim"]["name"]: _count(item["values"]) for item in record["effects"]}
    for claim in design.claims:
        seeds = list(claim.effect.seeds)
        by_seed: dict[int, list[str]] = {seed: [] for seed in seeds}
        for name in sorted(claim.effect.arms):
            for config, labels in design.arms[name].runs:
                if labels["replicate"] in by_seed and config.run_id in kept:
                    by_seed[labels["replicate"]].append(config.run_id)
        if counts.get(claim.name) == len(seeds):
            behind[claim.name] = [list(dict.fromkeys(by_seed[seed])) for seed in seeds]
    return behind


def _count(values: Sequence[Any]) -> int:
    """The number of replicates of an effect: a list of numbers, or one such list per scale."""
    return len(values[0]) if values and isinstance(values[0], list) else len(values)


# Words


def _entry(records: Sequence[Mapping[str, Any]], profile: str, figures: list[Document]) -> Document:
    kind = str(records[0]["study"]) if records else ""
    claims = [record for record in records if record["role"] == "claim"]
    main = [record for record in claims if record["primary"]] or claims[:1]
    return {
        "id": entry_id(kind, profile),
        "study": kind,
        "question": summary("studies", kind) if kind in kinds("studies") else "",
        "profile": profile,
        "answer": [answer_in_words(record) for record in main],
        "counts": verdict_counts(records),
        "claims": [_claim(record) for record in in_order(records)],
        "figures": figures,
        "command": f"recombine run {kind} --profile {profile.partition(',')[0]}",
    }


def _claim(record: Mapping[str, Any]) -> Document:
    """A verdict as the page shows it: numbers, and the same in words."""
    role = str(record["role"])
    kind = "primary claim" if record["primary"] else "secondary claim" if role == "claim" else role
    adjusted = record.get("p_adjusted")
    kept = ("claim", "statement", "primary", "answer", "effect", "interval", "replicates", "note")
    made = {name: record[name] for name in kept} | {
        "kind": kind,
        "role": role,
        "tone": TONES.get(str(record["answer"]), "inconclusive"),
        "needs": list(record.get("needs", ())),
        "direction": record.get("direction"),
        "margin": record.get("margin"),
        "words": {
            "effect": signed(record["effect"]),
            "interval": interval_in_words(record["interval"]),
            "margin": margin_in_words(record.get("direction"), record.get("margin")),
            "p": p_in_words(record.get("p") if adjusted is None else adjusted),
        },
        "scales": [
            {
                "scale": scale["scale"],
                "words": f"{signed(scale['effect'])}, {interval_in_words(scale['interval'])}",
                "margin": margin_in_words(record.get("direction"), scale.get("margin")),
            }
            for scale in record.get("scales") or ()
        ],
        "values": list(record.get("values") or ()),
        "runs": [],
    }
    return finite(made)
