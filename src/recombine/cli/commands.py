"""The commands that compute: run, train, report."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recombine.cli.engines import EngineOptions
from recombine.cli.output import Told, console, errors, print_json, table, verdict_table
from recombine.cli.progress import TerminalProgress
from recombine.component import find, kinds
from recombine.engines.base import Engine, Plan, plan
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.probes.scores import Scores
from recombine.store.requests import remember
from recombine.store.store import Store
from recombine.studies.base import Study
from recombine.studies.changed import changed
from recombine.studies.run import newest_records, request_of, run_study, verdicts_of
from recombine.training.config import RunConfig

ALL = "all"
"""In the place of a study's name: every one."""


def use_cache() -> None:
    """Keep compiled programs between processes: a second start compiles nothing."""
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return  # The user has chosen a place.
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(home / "recombine" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def run_command(
    name: str,
    overrides: Sequence[str],
    profile: str,
    store_path: Path,
    report: Path | None,
    engines: EngineOptions,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run a study, or `all` of them in turn."""
    engine = engines.make()
    if name == ALL and (report is not None or overrides):
        raise BadInput(
            "--report and settings belong to one study.",
            fix="run it by its name, or `recombine report STUDY`",
        )
    if not dry_run:
        if report is not None:
            _check_report(report)
        _remember(kinds("studies") if name == ALL else (name,), overrides, profile, store_path)
    documents, failed = [], []
    for one in kinds("studies") if name == ALL else (name,):
        if name == ALL and not as_json:
            errors().print(f"\n{one}", style="bold", highlight=False)
        document = _run_one(
            one, overrides, profile, store_path, report, engine, as_json=as_json, dry_run=dry_run
        )
        documents.append(document)
        failed += document.get("sweep", {}).get("failed", ())
    if as_json:
        print_json(documents if name == ALL else documents[0])
    if failed:
        raise Told(
            f"{len(failed)} runs failed: {', '.join(failed[:5])}.",
            fix="`recombine show RUN` says at which step; a lower rate often helps",
        )


def _remember(names: Sequence[str], overrides: Sequence[str], profile: str, store_path: Path) -> None:
    """Write down all that is asked before any of it trains: `recombine resume` then needs no arguments."""
    asked = [request_of(_study(name, profile, overrides), profile, overrides) for name in names]
    store = Store(store_path)
    for request in asked:
        remember(store, request)


def _study(name: str, profile: str, overrides: Sequence[str]) -> Study:
    kind = find("studies", name)
    assert issubclass(kind, Study)
    return changed(kind.profile(profile), overrides)


def _run_one(
    name: str,
    overrides: Sequence[str],
    profile: str,
    store_path: Path,
    report: Path | None,
    engine: Engine,
    *,
    as_json: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Run one study; prints its tables unless they are wanted as JSON, and returns them."""
    study = _study(name, profile, overrides)
    configs = [config for config, _ in study.runs()]
    if dry_run:
        return plan_document(
            plan(existing_store(store_path), configs, study.measurements()), configs, as_json
        )
    store = Store(store_path)
    ahead = plan(store, configs, study.measurements())
    use_cache()
    if not as_json:
        errors().print(what_is_left(ahead), highlight=False)
    with TerminalProgress(quiet=as_json) as progress:
        result = run_study(study, profile, store, engine, progress, overrides)
    profile = result.profile
    # As everywhere else: corrected together with the other studies of the store.
    records = study_verdicts(store, study, profile)
    page = None
    if report is not None:
        page = _write_report(study, profile, store, report)
    overview = study.overview(result.tables)
    if not as_json:
        out = console()
        out.print(table(study.question, list(overview.columns), overview.itertuples(index=False), left=2))
        out.print(verdict_table(records))
        if page is not None:
            out.print(f"report: {page}", highlight=False, markup=False)
    return {
        "study": study.kind,
        "profile": profile,
        "verdicts": records,
        "overview": overview.to_dict("records"),
        "sweep": dataclasses.asdict(result.sweep),
        "store": str(store_path),
        "report": None if page is None else str(page),
        "problems": store.problems,
    }


def existing_store(path: Path) -> Store | None:
    """The store, if there is one: a dry run makes no folder."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return None
    return Store(path, create=False)


def what_is_left(ahead: Plan) -> str:
    left = ahead.runs - ahead.done - ahead.failed
    if not left and not ahead.measurements:
        return f"All {ahead.runs} runs are in the store already: nothing to train, nothing to measure."
    done = (
        f" ({ahead.done + ahead.failed} of {ahead.runs} are in the store already)"
        if left < ahead.runs
        else ""
    )
    return (
        f"{left} runs to train in {ahead.buckets} programs{done}, {ahead.measurements} measurements to make."
    )


def plan_document(ahead: Plan, configs: Sequence[RunConfig], as_json: bool) -> dict[str, Any]:
    """What would run, and about how long it would take, from the arithmetic of the steps and this machine's speed."""
    from recombine.training.estimate import flops_per_step, machine_flops

    work = sum(flops_per_step(config) * config.recipe.steps for config in configs) / max(1, len(configs))
    left = ahead.runs - ahead.done - ahead.failed
    seconds = work * left / machine_flops()
    if not as_json:
        rows = [(field.name, getattr(ahead, field.name)) for field in dataclasses.fields(ahead)]
        rows.append(
            ("estimated training", f"about {_duration(seconds)} (arithmetic at this machine's speed)")
        )
        console().print(table("What would run", ["", ""], [(name, str(value)) for name, value in rows]))
    return dataclasses.asdict(ahead) | {"estimated_seconds": seconds}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def train_command(
    family: str,
    overrides: Sequence[str],
    store_path: Path,
    engines: EngineOptions,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Train one model."""
    engine = engines.make()
    find("families", family)
    config = apply(validate(RunConfig, {"family": family}), overrides)
    if dry_run:
        document = plan_document(plan(existing_store(store_path), [config], [Scores()]), [config], as_json)
        if as_json:
            print_json(document)
        return
    store = Store(store_path)
    use_cache()
    found = config in store
    if found and not as_json:
        errors().print(f"Run {config.run_id} is in the store already: nothing to train.", highlight=False)
    with TerminalProgress(quiet=as_json) as progress:
        engine.run(store, [config], [Scores()], progress)
    document = run_document(store, config.run_id) | {"found": found}
    if as_json:
        print_json(document)
    else:
        shown = ["steps", "seconds", "compile_seconds", "reached"]
        shown += [f"{config.family.metric}_in", f"{config.family.metric}_held_out"]
        rows = [(name, document.get(name)) for name in shown]
        console().print(table(f"run {config.run_id}", ["", ""], rows))
    if document["status"] == "failed":
        raise Told(
            f"The loss was not finite at step {document['failed_at']}. The run is stored as failed.",
            fix="lower the rate, e.g. rate=0.01",
        )


def run_document(store: Store, run_id: str) -> dict[str, Any]:
    """All that is known of a run, as plain values."""
    run = store.load(run_id)
    kept = ("run", "status", "failed_at", "steps", "seconds", "compile_seconds", "reached")
    return (
        {name: run.manifest[name] for name in kept}
        | store.summaries(run.run_id)
        | {name: run.manifest[name] for name in ("config", "plan", "provenance")}
    )


def report_command(
    name: str | None, profile: str | None, out: Path, store_path: Path, *, as_json: bool
) -> None:
    """Write the report of a study that was run."""
    store = Store(store_path, create=False)
    study, profile = finished(store, name, profile)
    _check_report(out)
    page = _write_report(study, profile, store, out)
    if as_json:
        print_json({"report": str(page), "study": study.kind, "profile": profile})
    else:
        console().print(f"report: {page}", highlight=False, markup=False)


def finished(store: Store, name: str | None, profile: str | None) -> tuple[Study, str]:
    """A study that was run into a store (the only one, if none is named), and in which profile."""
    records = newest_records(store, profile)
    if name is not None:
        find("studies", name)
    if not records or (name is not None and name not in records):
        raise BadInput(
            f"The store {store.path} holds no results of {'any study' if name is None else f'the study {name!r}'}.",
            fix=f"recombine run {name or 'data-scaling'} --store {store.path}",
        )
    if name is None:
        if len(records) > 1:
            raise BadInput(f"The store holds several studies: {', '.join(records)}.", fix="name one")
        name = next(iter(records))
    study = find("studies", name).model_validate(records[name]["config"])
    assert isinstance(study, Study)
    return study, records[name]["profile"]


def _check_report(path: Path) -> None:
    if path.is_dir():
        raise BadInput(f"The report {path} is a folder.", fix="name a file, e.g. report.html")
    if not path.parent.exists():
        raise BadInput(f"The folder {path.parent} of the report does not exist.", fix="make it first")


def _write_report(study: Study, profile: str, store: Store, path: Path) -> Path:
    from recombine.report.study import study_report

    record = newest_records(store, profile)[study.kind]
    return study_report(study, record, store, study_verdicts(store, study, profile), path)


def study_verdicts(store: Store, study: Study, profile: str) -> list[dict[str, Any]]:
    return [record for record in verdicts_of(store, profile) if record["study"] == study.kind]
