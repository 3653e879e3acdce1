"""The commands `run` and `train`: they print what `run_study` and the engine return."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recombine as rc
from recombine.cli.options import (
    DEFAULT_STORE,
    LOCAL,
    DryOption,
    EngineOptions,
    JsonOption,
    Overrides,
    StoreOption,
    TrackOption,
)
from recombine.cli.output import CheckFailed, answer, check_file, errors, message, print_json, say, table, verdict_table
from recombine.errors import BadInput, MissingPackage

# Imported in the functions: `recombine run --help` does not load JAX.
if TYPE_CHECKING:
    from recombine.design.run import StudyResult

ALL = "all"
"""Instead of a study's name: every study."""


def run(
    study: str,
    *overrides: Overrides,
    profile: str = "laptop",
    store_path: StoreOption = DEFAULT_STORE,
    report: Path | None = None,
    track: TrackOption = None,
    engines: EngineOptions = LOCAL,
    as_json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Run a study: train what is missing, measure it, and decide its claims.

    Args:
        study: The study, or all; `recombine ls studies` lists them.
        profile: smoke, demo, laptop, paper (or one of the study's own): same code, other sizes.
        report: Also write the report page to this file.
    """
    from recombine.component import kinds
    from recombine.design.run import request_of, run_study
    from recombine.store.requests import remember
    from recombine.trackers.tracking import trackers_of

    engine, every = engines.make(), study == ALL
    if every and (report is not None or overrides):
        fix = "run it by its name, or `recombine report STUDY`"
        raise BadInput("--report and settings belong to one study.", fix=fix)
    if report is not None:
        check_file(report)
    trackers = trackers_of(track)
    # Every study is built before anything trains: what cannot run is found now.
    studies, skipped = _built(kinds("studies") if every else (study,), profile, overrides, skip=every)
    if dry_run:
        documents = [_dry_run(each, store_path, as_json, titled=every) for each in studies]
    else:
        store = rc.Store(store_path)
        for each in studies:
            remember(store, request_of(each, profile, overrides))
        documents = []
        for each in studies:
            if not as_json:
                errors().print(what_is_left(_plan(each, store, titled=every)), highlight=False)
            with rc.training.ProgressDisplay(quiet=as_json) as progress:
                result = run_study(each, profile, store, engine, progress, overrides, trackers)
            documents.append(_shown(result, report, as_json))
    if as_json:
        print_json([*documents, *skipped] if every else documents[0])
    expected = sum(document.get("runs_expected", 0) for document in documents)
    check_complete([run_id for document in documents for run_id in document.get("missing", ())], expected)
    check_failed([run_id for document in documents for run_id in document.get("sweep", {}).get("failed", ())])


def _built(
    names: Sequence[str], profile: str, overrides: Sequence[str], *, skip: bool
) -> tuple[list[rc.Study], list[dict[str, Any]]]:
    """The studies of these names, checked, and those that need a package that is not installed."""
    from pydantic import ValidationError

    from recombine.component import find
    from recombine.design.changed import changed
    from recombine.overrides import explain

    studies, skipped = [], []
    for name in names:
        try:
            try:
                kind = find("studies", name)
            except ValidationError as error:
                raise explain(error) from error  # The defaults of a study are validated when it is imported.
            assert issubclass(kind, rc.Study)
            if skip and profile not in kind.profiles:
                continue
            study = changed(kind.profile(profile), overrides)
            _ = study.design.runs
            studies.append(study)
        except MissingPackage as error:
            if not skip:
                raise
            message(f"skipped {name}: {error.message}\n  fix: {error.fix}", style="yellow")
            skipped.append({"study": name, "skipped": error.message, "fix": error.fix})
    return studies, skipped


def _plan(study: rc.Study, store: rc.Store | None, *, titled: bool) -> rc.engines.Plan:
    """What is left of a study; its name goes first where there are several."""
    if titled:
        errors().print(f"\n{study.kind}", style="bold", highlight=False)
    return rc.engines.plan(store, [config for config, _ in study.design.runs], study.design.measurements)


def _dry_run(study: rc.Study, store_path: Path, as_json: bool, *, titled: bool) -> dict[str, Any]:
    from recombine.design.run import newest_records, replicates_needed

    store = existing_store(store_path)
    ahead = _plan(study, store, titled=titled and not as_json)
    expected = rc.engines.estimate(store, [config for config, _ in study.design.runs], study.design.measurements)
    document = plan_document(ahead, expected, as_json)
    record = newest_records(store).get(study.kind) if store is not None else None
    rows = [] if record is None else replicates_needed(record)
    if not as_json and record is not None:
        head = ["claim", "recorded", "would decide it"]
        lines = [(row["claim"], row["replicates"], row["needed"] or "too many") for row in rows]
        say(table(f"replicates, from the recorded spread ({record['profile']} profile; probability .8)", head, lines))
    elif not as_json:
        say("No effects of this study are recorded here, so how many replicates would decide its claims is unknown.")
    return document | {"replicates_needed": rows}


def _shown(result: StudyResult, report: Path | None, as_json: bool) -> dict[str, Any]:
    """Print a result, unless JSON is wanted, and return it as plain values."""
    page = None if report is None else result.report(report)
    overview = result.overview
    if not as_json:
        say(table(result.study.question, list(overview.columns), overview.itertuples(index=False), left=2))
        say(verdict_table(result.records))
        if page is not None:
            say(f"report: {page}")
    document = {"study": result.study.kind, "profile": result.profile, "verdicts": result.records}
    sweep = None if result.sweep is None else dataclasses.asdict(result.sweep)
    document |= {"overview": overview.to_dict("records"), "sweep": sweep, "store": str(result.store.path)}
    document |= {"runs_expected": len(result.record["runs"]), "missing": list(result.missing)}
    return document | {"report": None if page is None else str(page), "problems": result.store.problems}


def check_complete(missing: Sequence[str], expected: int) -> None:
    """End with exit code 1 if runs are missing although the command ended."""
    if missing:
        fix = "were they removed? `recombine resume` trains them again"
        lost = f"{len(missing)} of {expected} runs are not in the store: {', '.join(missing[:5])}."
        raise CheckFailed(lost, fix=fix)


def check_failed(run_ids: Sequence[str]) -> None:
    """End with exit code 1 if runs failed."""
    if run_ids:
        fix = "`recombine show RUN` says at which step; a lower learning rate often helps"
        raise CheckFailed(f"{len(run_ids)} runs failed: {', '.join(run_ids[:5])}.", fix=fix)


def existing_store(path: Path) -> rc.Store | None:
    """The store, if there is one: a dry run creates no folder."""
    empty = not path.exists() or (path.is_dir() and not any(path.iterdir()))
    return None if empty else rc.load_store(path)


def what_is_left(ahead: rc.engines.Plan) -> str:
    """One line about what a command is going to do."""
    left = ahead.runs - ahead.done - ahead.failed
    if not left and not ahead.measurements:
        return f"All {ahead.runs} runs are in the store already: nothing to train, nothing to measure."
    done = f" ({ahead.done + ahead.failed} of {ahead.runs} are in the store already)" if left < ahead.runs else ""
    return f"{left} runs to train in {ahead.buckets} programs{done}, {ahead.measurements} measurements to make."


def plan_document(ahead: rc.engines.Plan, expected: rc.engines.Estimate, as_json: bool) -> dict[str, Any]:
    """What would run, and about how long: compiling, training and measuring each by itself."""
    if not as_json:
        rows = [(field.name, str(getattr(ahead, field.name))) for field in dataclasses.fields(ahead)]
        kept = f" ({expected.kept_programs} of them are on disk)" if expected.kept_programs else ""
        programs = expected.new_programs + expected.kept_programs
        rows.append((f"compiling {programs} programs{kept}", f"about {duration(expected.compiling)}"))
        rows.append(("training", f"about {duration(expected.training)}"))
        rows.append(("measuring", f"about {duration(expected.measuring)}"))
        rows.append(("in all, in one process", f"about {duration(expected.seconds)}"))
        say(table("What would run", ["", ""], rows))
        if ahead.steps or ahead.measurements:
            say(f"The times rest on {expected.basis}.{_busy()}")
    parts = {name: getattr(expected, name) for name in ("compiling", "training", "measuring")}
    programs = {name: getattr(expected, f"{name}_programs") for name in ("new", "kept", "guessed")}
    seconds = {"estimated_seconds": expected.seconds, "estimated_parts": parts, "programs": programs}
    return dataclasses.asdict(ahead) | seconds


def _busy() -> str:
    """A sentence about other work on this machine, where there is much: then nobody knows the time well."""
    from recombine.store.provenance import threads

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < 1.5 * threads():
        return ""
    return f" This machine is busy now (load {load:.0f} on {threads()} cores), so it may take several times as long."


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def train(
    family: str,
    *overrides: Overrides,
    measure: list[str] | None = None,
    track: TrackOption = None,
    store_path: StoreOption = DEFAULT_STORE,
    engines: EngineOptions = LOCAL,
    as_json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Train one model, store it and score it.

    Args:
        family: The family of tasks; `recombine ls families` lists them.
        measure: Measurements besides the scores: decodability,swap; `recombine ls probes` lists them.
    """
    from recombine.cli.options import split_names
    from recombine.component import find, resolve
    from recombine.overrides import apply, validate
    from recombine.trackers.tracking import Tracking, trackers_of

    trackers = trackers_of(track)
    engine = engines.make()
    find("families", family)  # Its error names the nearest family.
    config = apply(validate(rc.RunConfig, {"family": family}), overrides)
    more = [resolve("probes", name) for name in split_names(measure) if name != "scores"]
    measurements = [rc.probes.Scores(), *more]
    if dry_run:
        known = existing_store(store_path)
        work = [config], measurements
        document = plan_document(rc.engines.plan(known, *work), rc.engines.estimate(known, *work), as_json)
        if as_json:
            print_json(document)
        return
    store = rc.Store(store_path)
    stored = config in store
    if stored and not as_json:
        errors().print(f"Run {config.run_id} is in the store already: nothing to train.", highlight=False)
    with rc.training.ProgressDisplay(quiet=as_json) as progress, Tracking(trackers, "train", progress) as tracking:
        engine.run(store, [config], measurements, tracking)
        tracking.scores(store)
    document = run_document(store, config.run_id) | {"found": stored}
    shown = ["steps", "seconds", "compile_seconds", "reached"]
    shown += [f"{config.family.metric}_in", f"{config.family.metric}_held_out"]
    shown += sorted(name for one in more for name in one.summary_columns(config) or () if name in document)
    rows = [(name, document.get(name)) for name in shown]
    answer(as_json, document, table(f"run {config.run_id}", ["", ""], rows))
    if document["status"] == "failed":
        failure = f"The loss was not finite at step {document['failed_at']}. The run is stored as failed."
        raise CheckFailed(failure, fix="lower the learning rate, e.g. learning_rate=0.01")


def run_document(store: rc.Store, run_id: str) -> dict[str, Any]:
    """All that is known of a run, as plain values."""
    from recombine.store.manifest import ENDING

    run = store.load(run_id)
    document = {name: run.manifest[name] for name in ENDING} | store.summaries(run.run_id)
    return document | {name: run.manifest[name] for name in ("config", "plan", "provenance")}
