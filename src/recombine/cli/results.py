"""The commands that write results down: export, and verdicts as a Markdown table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from recombine.cli.output import CheckFailed, answer, check_file, check_problems, effect_text, errors, margin_text
from recombine.cli.run import ALL, check_complete
from recombine.component import find
from recombine.errors import BadInput
from recombine.plain import plain
from recombine.store.files import explained, finite, read_json, write_json

# Imported in the functions, as `--help` must load nothing heavy.
if TYPE_CHECKING:
    from recombine.design.run import StudyResult
    from recombine.design.sweeps.recorded import RecordedSweep

LARGER = "workstation"
"""The folder in which results of larger runs stand beside the usual ones, and the profile that makes them."""
UNDECIDED = "not decided"
LONGEST = 38
"""The most words of a statement in a cell of a table; longer ones stand below it in full."""
Larger = Mapping[tuple[str, str, int], Mapping[str, Any]]
"""Verdicts of larger runs by study, claim and version."""


def report(
    study: str | None = None,
    *,
    profile: str | None = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"))] = Path("report.html"),
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write the report of a study or sweep: one HTML file that opens from disk.

    Args:
        study: The study or sweep; needed when the store holds several.
        profile: The profile; by default the largest that ran.
        out: The file to write.
    """
    store = rc.load_store(store_path)
    sweep = asked_sweep(store, study, profile)
    if sweep is not None:
        check_file(out)
        page = sweep.report(out)
        document = {"report": str(page), "sweep": sweep.name} | _found_of_sweep(sweep)
        answer(as_json, document, f"report: {page}")
        _check_sweep(sweep)
        return
    result = finished(store, study, profile)
    check_file(out)
    page = result.report(out)
    document = {"report": str(page), "study": result.study.kind, "profile": result.profile}
    answer(as_json, document | found(result), f"report: {page}")
    check_found(result.store, [result])


def asked_sweep(store: rc.Store, name: str | None, profile: str | None) -> RecordedSweep | None:
    """The sweep that is meant: by its name, or the only one of a store without results of studies; None: a study is meant."""
    from recombine.design.run import newest_records
    from recombine.design.sweeps.recorded import recorded_sweep, sweep_names

    if profile is not None or name == ALL:
        return None
    sweeps, studies = sweep_names(store), newest_records(store, None)
    if name is None and not studies and len(sweeps) > 1:
        raise BadInput(f"The store holds several sweeps: {', '.join(sweeps)}.", fix="name one")
    if name is None and not studies and sweeps:
        name = sweeps[0]
    return recorded_sweep(store, name) if name in sweeps and name not in studies else None


def _found_of_sweep(sweep: RecordedSweep) -> dict[str, Any]:
    expected, missing = len(sweep.request["runs"]), list(sweep.missing)
    counts = {"runs_expected": expected, "runs_found": expected - len(missing), "missing": missing}
    return counts | {"problems": sweep.store.problems}


def _check_sweep(sweep: RecordedSweep) -> None:
    check_complete(sweep.missing, len(sweep.request["runs"]))
    check_problems(sweep.store)


def finished(store: rc.Store, name: str | None, profile: str | None) -> StudyResult:
    """The result of a study that ran into a store; the only one, if none is named."""
    from recombine.design.run import newest_records, read_study

    records = newest_records(store, profile)
    if name is not None:
        find("studies", name)
    if not records or (name is not None and name not in records):
        what = "any study" if name is None else f"the study {name!r}"
        fix = f"recombine run {name or 'data-scaling'} --store {store.path}"
        raise BadInput(f"The store {store.path} holds no results of {what}.", fix=fix)
    if name is None and len(records) > 1:
        raise BadInput(f"The store holds several studies: {', '.join(records)}.", fix="name one")
    name = name or next(iter(records))
    study = find("studies", name).model_validate(records[name]["config"])
    assert isinstance(study, rc.Study)
    return read_study(store, records[name], study)


def export(
    study: str | None = None,
    *,
    profile: str | None = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"))] = Path("results"),
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Write results as small files: verdicts.json, overview.csv, a PNG for each figure; with `all`, also verdicts.md.

    Of a sweep: cells.csv, runs.csv, and a PNG for each figure.

    Args:
        study: The study or sweep, or all studies; needed when the store holds several.
        profile: The profile; by default the largest that ran.
        out: The folder to write into.
    """
    from recombine.design.run import newest_records, size_of_profile

    store = rc.load_store(store_path)
    sweep = asked_sweep(store, study, profile)
    if sweep is not None:
        with explained(out):
            files = [str(path) for path in sweep.export(out)]
        answer(as_json, {"files": files, "sweep": sweep.name} | _found_of_sweep(sweep), "\n".join(files))
        _check_sweep(sweep)
        return
    results = []
    if study != ALL:
        results.append(finished(store, study, profile))
        files = _export(results[0], out)
    else:
        files, names = [], sorted(newest_records(store, profile))
        if not names:
            raise BadInput(f"The store {store_path} holds no results.", fix="recombine run STUDY first")
        for name in names:
            result, folder = finished(store, name, profile), out / name
            recorded = _recorded_profile(folder)
            if profile is None and size_of_profile(recorded) > size_of_profile(result.profile):
                kept = f"{folder} keeps its results of the {recorded} profile"
                errors().print(f"{name}: {kept}; this store has {result.profile}.", markup=False)
                continue
            files += _export(result, folder)
            results.append(result)
        files.append(write_verdicts(out))
    written = [str(path) for path in files]
    incomplete = [{"study": each.study.kind} | found(each) for each in results]
    answer(as_json, {"files": written, "studies": incomplete, "problems": store.problems}, "\n".join(written))
    check_found(store, results)


def found(result: StudyResult) -> dict[str, Any]:
    """How many runs a study asked for and how many are there, as plain values."""
    expected, missing, damaged = len(set(result.record["runs"])), list(result.missing), list(result.damaged)
    counts = {"runs_expected": expected, "runs_found": expected - len(missing)}
    return counts | {"missing": missing, "damaged": damaged, "problems": result.store.problems}


def check_found(store: rc.Store, results: Sequence[StudyResult]) -> None:
    """End with exit code 1 if runs are missing or damaged, although the rest was written."""
    check_complete(
        [run for result in results for run in result.missing], sum(len(each.record["runs"]) for each in results)
    )
    damaged = [run for result in results for run in result.damaged]
    if damaged:
        what = f"Measurements of {len(damaged)} runs cannot be read: {', '.join(damaged[:5])}."
        raise CheckFailed(what, fix="recombine resume measures them again")
    check_problems(store)


def _export(result: StudyResult, out: Path) -> list[Path]:
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / "verdicts.json", finite(result.records))
        result.overview.to_csv(out / "overview.csv", index=False, float_format="%.4f")
        written = [rc.figures.save_figure(figure.chart, out / f"{figure.name}.png") for figure in result.figures]
    return [out / "verdicts.json", out / "overview.csv", *written]


def _recorded_profile(folder: Path) -> str:
    """The profile of the results that a folder has; empty if it has none."""
    path = folder / "verdicts.json"
    records = read_json(path) if path.exists() else []
    return str(records[0].get("profile", "")) if records and isinstance(records[0], dict) else ""


def write_verdicts(out: Path) -> Path:
    """Write `verdicts.md` from the results of all studies in a folder.

    Args:
        out: A folder with one folder per study. `p_portfolio` in its `verdicts.json` is corrected over all studies; its
            `note.md`, if there is one, is added to the page. Results of larger runs in `workstation/STUDY` stand beside these.

    Returns:
        The path of the page.
    """
    notes = {path.parent.name: path.read_text(encoding="utf-8").strip() for path in sorted(out.glob("*/note.md"))}
    larger = _settle_recorded(out / LARGER)
    page = out / "verdicts.md"
    page.write_text(markdown(_settle_recorded(out), notes, larger), encoding="utf-8")
    return page


def _settle_recorded(out: Path) -> list[dict[str, Any]]:
    """The verdicts of all studies with results in a folder, settled again; written back to each."""
    folders = {path: read_json(path) for path in sorted(out.glob("*/verdicts.json"))}
    records = [record for own in folders.values() for record in own]
    try:
        verdicts = rc.stats.settle([rc.stats.Verdict.from_record(record) for record in records])
        profiles = [{"profile": record["profile"]} for record in records]
        made = [verdict.record() | profile for verdict, profile in zip(verdicts, profiles, strict=True)]
    except (KeyError, TypeError) as error:
        fix = "remove what is no result of a study, or choose another folder"
        raise BadInput(f"A verdicts.json below {out} is not understood: {error!r}.", fix=fix) from error
    left = iter(made)
    for path, own in folders.items():
        write_json(path, list(itertools.islice(left, len(own))))
    return made


def markdown(
    records: Sequence[Mapping[str, Any]],
    notes: Mapping[str, str] | None = None,
    larger: Sequence[Mapping[str, Any]] = (),
) -> str:
    """All verdicts as Markdown: one row per study with its primary claim, then every claim of each study.

    Args:
        records: Verdicts as plain values.
        notes: What to add about a study, by its name.
        larger: Verdicts of the same studies from larger runs.
    """
    notes = notes or {}
    beside = {(record["study"], record["claim"], record["version"]): record for record in larger}
    studies: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        studies.setdefault(record["study"], []).append(record)
    parts = ["# Verdicts", "## Primary claims", _summary(studies, notes, beside), _answers(records)]
    parts += _undecided(records)
    for study, own in studies.items():
        parts += [f"## {_heading(study, own)}", _claims(own, beside)]
        remarks = [f"- `{_safe(record['claim'])}`: {text}" for record in own for text in _remarks(record)]
        parts += ["\n".join(remarks)] if remarks else []
        parts += [notes[study]] if study in notes else []
    return "\n\n".join(parts) + "\n"


def at_both_sizes(record: Mapping[str, Any], larger: Mapping[str, Any] | None) -> str:
    """The answer of a claim in words, and whether larger runs give the same one."""
    answer = f"**{record['answer']}**"
    if larger is None:
        return answer
    if record["answer"] == larger["answer"]:
        return f"{answer}, at {LARGER} size too"
    words = f"{record['answer']}; at {LARGER} size: {larger['answer']}"
    return words if UNDECIDED in (record["answer"], larger["answer"]) else f"**depends on size** ({words})"


def _beside(record: Mapping[str, Any], larger: Larger) -> Mapping[str, Any] | None:
    return larger.get((record["study"], record["claim"], record["version"]))


def _answers(records: Sequence[Mapping[str, Any]]) -> str:
    """How many claims have each answer, in one sentence."""
    claims = [record["answer"] for record in records if record["role"] == "claim"]
    counts = {answer: claims.count(answer) for answer in sorted(set(claims), key=lambda answer: -claims.count(answer))}
    listed = ", ".join(f"{count} *{answer}*" for answer, count in counts.items())
    undecided = counts.get(UNDECIDED, 0) / max(len(claims), 1)
    return f"Answers of all {len(claims)} claims, without preconditions and controls: {listed}. So {undecided:.0%} are not decided ([which, and why](verdicts.md#what-is-not-decided))."


def _undecided(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """A section on the claims that are not decided: why, and what would decide them. Empty if there are none."""
    rows, own = [], {(record["study"], record["claim"]): record for record in records}
    for record in sorted(records, key=lambda record: not record["primary"]):
        if record["role"] != "claim" or record["answer"] != UNDECIDED:
            continue
        failed = [need for need in record["needs"] if f"precondition {need!r} is" in record["note"]]
        if failed:
            why = f"its precondition is not shown: {', '.join(f'`{need}`' for need in failed)}"
            open_ = [own[record["study"], need] for need in failed]
            cost = ", ".join(_cost(each) for each in open_ if each["answer"] == UNDECIDED)
        elif record["verdict_alone"] != "inconclusive":
            why, cost = "decided alone, but not after correction for the number of claims", ""
        else:
            why, cost = "its interval includes the margin", _cost(record)
        name = f"`{record['claim']}`" + (" (primary)" if record["primary"] else "")
        where = f"[{record['study']}](verdicts.md#{_anchor(_heading(record['study'], [record]))})"
        rows.append([where, name, why, str(record["replicates"]), cost])
    if not rows:
        return []
    head = ["study", "claim", "why it is not decided", "replicates", "replicates that would decide it"]
    text = (
        "The last column is the number of replicates with which the claim would be decided with probability .8, if the mean and "
        "the spread of its effects stay as they are."
    )
    return ["## What is not decided", text, _lines(head, rows)]


def _cost(record: Mapping[str, Any]) -> str:
    """The number of replicates that would decide a claim, in words."""
    from recombine.stats.power import MOST

    needed = rc.stats.needed_to_decide(rc.stats.Verdict.from_record(record))
    return f"more than {MOST:,}: the effect lies at the margin" if needed is None else str(needed)


def _summary(studies: Mapping[str, Sequence[Mapping[str, Any]]], notes: Mapping[str, str], larger: Larger) -> str:
    """One row per main claim: question of its study, whether it holds, effect, and how many claims of the study hold."""
    rows = []
    for study, own in studies.items():
        asked = [record for record in own if record["role"] == "claim"]
        where = f"verdicts.md#{_anchor(_heading(study, own))}"
        note = f"; see the [note]({where})" if study in notes else ""
        held = f"[{sum(map(_holds, own))} of {len(own)}]({where})"
        question = f"[{study}]({study}/): {_question(study)}"
        for main in [record for record in asked if record["primary"]] or (asked or own)[:1]:
            holds = f"{at_both_sizes(main, _beside(main, larger))}{note}"
            rows.append([question, holds, _short(main["statement"]), effect_text(main), held])
    head = ["study and its question", "does it hold?", "main claim", "effect [95 % interval]", "claims that hold"]
    return _lines(head, rows)


def _question(study: str) -> str:
    """The question that a study asks; empty for a study that is not installed."""
    try:
        return (find("studies", study).__doc__ or "").strip().splitlines()[0]
    except (BadInput, IndexError):
        return ""


def _short(statement: str) -> str:
    """A statement without what it has in parentheses."""
    return re.sub(r" \([^()]*(?:\([^()]*\)[^()]*)*\)", "", statement)


def _heading(study: str, records: Sequence[Mapping[str, Any]]) -> str:
    return _safe(f"{study} ({records[0]['profile']} profile)")


def _anchor(heading: str) -> str:
    """The anchor that Markdown gives a heading."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def _holds(record: Mapping[str, Any]) -> bool:
    return record["answer"] == "holds"


def _is_long(statement: str) -> bool:
    return len(statement.split()) > LONGEST


def _remarks(record: Mapping[str, Any]) -> list[str]:
    """What stands below the table: a note of the verdict, and a statement that is too long for a cell."""
    whole = [f"in full: {record['statement']}"] if _is_long(record["statement"]) else []
    return [_safe(text) for text in whole + ([f"{record['note']}."] if record["note"] else [])]


def _claims(records: Sequence[Mapping[str, Any]], larger: Larger) -> str:
    rows = []
    second = any(_beside(record, larger) for record in records)
    for record in records:
        role = "" if record["role"] == "claim" else f"{record['role'].capitalize()}: "
        text = record["statement"]
        statement = f"{role}{_short(text) if _is_long(text) else text}"
        if record["primary"]:
            statement = f"**{statement}** (primary)"
        p = [_p(record[name]) for name in ("p_adjusted", "p_portfolio")]
        basis = [effect_text(record), margin_text(record), str(record["replicates"]), *p]
        again = _beside(record, larger)
        basis += (
            [f"{again['answer']}: {effect_text(again)}, n = {again['replicates']}" if again else ""] if second else []
        )
        rows.append([record["answer"], f"`{record['claim']}`", statement, *basis])
    head = ["does it hold?", "claim", "in words", "effect [95 % interval]", "margin", "n", "p", "p, all studies"]
    return _lines([*head, f"at {LARGER} size"] if second else head, rows)


def _p(value: float | None) -> str:
    return "" if value is None else "<.001" if value < 0.001 else f"{value:.2g}"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_safe(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _safe(text: str) -> str:
    """A text for Markdown. Records may come from other stores: no HTML, no line breaks, no addresses but those of this page."""
    text = plain(text).replace("<", "&lt;")
    return re.sub(r"\]\((?!verdicts\.md#|[\w-]+/\))", "]\\(", text)
