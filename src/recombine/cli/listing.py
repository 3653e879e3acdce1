"""The commands that look: ls, show, verdicts."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators
from pydantic import BaseModel

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, SortOption, StoreOption, names_in
from recombine.cli.output import (
    answer,
    asked_rows,
    check_problems,
    looked,
    margin_text,
    mean_text,
    print_asked,
    print_json,
    say,
    say_line,
    table,
    verdict_table,
)
from recombine.cli.run import check_complete, duration, estimated_seconds, run_document
from recombine.component import ROOMS, find, kinds, room_of, summary
from recombine.errors import BadInput, did_you_mean
from recombine.overrides import field_names

if TYPE_CHECKING:
    from rich.tree import Tree


def ls(
    what: str = "runs",
    *,
    where: str | None = None,
    sort: SortOption = None,
    columns: str | None = None,
    group: str | None = None,
    tag: str | None = None,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=0))] = None,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """List the runs of a store, or the components of a kind with one line each.

    Args:
        what: runs, sweeps, or a kind of component: studies, families, models, ...
        where: Only runs for which this holds, e.g. "width >= 128 and family = 'scan'".
        sort: Settings or scores, with commas between; -score_held_out sorts from the largest down.
        columns: What is shown of each run, with commas between; with --group, the numbers to average.
        group: One line per value of these settings, with means and 95 % intervals over replicates.
        tag: Only runs with this tag.
        limit: At most this many lines; by default 200 (all with --json).
    """
    asked = {"--where": where, "--sort": sort, "--columns": columns, "--group": group, "--tag": tag, "--limit": limit}
    for option, value in asked.items():
        if value is not None and what != "runs":
            raise BadInput(f"{option} is for runs.", fix=f"recombine ls {option} ...")
    if what in ROOMS:
        rows = [{"name": kind, "summary": summary(what, kind)} for kind in kinds(what)]
        answer(as_json, rows, table(what, ["name", ""], [tuple(row.values()) for row in rows], left=2))
        return
    if what not in ("runs", "sweeps"):
        raise BadInput(f"There is no list of {what!r}.", fix=did_you_mean(what, ("runs", "sweeps", *ROOMS)))
    store = rc.load_store(store_path)
    if what == "runs":
        from recombine.cli.runs import Asked, list_runs

        list_runs(store, Asked(where, names_in(sort), names_in(columns), names_in(group), tag, limit), as_json)
        return
    looked(store, as_json)
    sweeps = asked_rows(store, "sweep", indexed=True)
    if as_json:
        print_json(sweeps)
    elif sweeps:
        print_asked(sweeps)
    else:
        say(f"No sweep was asked of {store_path}. See `recombine sweep --help`.")
    check_problems(store)


def show(what: str, *, store_path: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Show a study, a sweep, a run, a component's settings, or (`show config`) all settings of a run.

    Args:
        what: config, the name of a component or of a sweep, or the (beginning of the) name of a run.
    """
    rooms = [room for room in ROOMS if what in kinds(room)]
    if what == "config":
        if as_json:
            schema = rc.RunConfig.model_json_schema(mode="serialization")
            # A run may have parents, so its schema refers to itself. Its own fields stand at the top all the same.
            print_json(schema["$defs"]["RunConfig"] | {"$defs": schema["$defs"]})
        else:
            _show_settings("the settings of a run, with their defaults", rc.RunConfig())
    elif not rooms:
        _show_run(what, store_path, as_json)
    elif as_json:
        schemas = {room: find(room, what).model_json_schema() for room in rooms if room != "studies"}
        schemas |= {"studies": _study_document(what)} if "studies" in rooms else {}
        print_json(schemas if len(rooms) > 1 else schemas[rooms[0]])
    else:
        for room in rooms:
            if room == "studies":
                _show_study(what)
            else:
                _show_component(room, what)


def _show_run(name: str, store_path: Path, as_json: bool) -> None:
    from recombine.store.tables import settings_of

    store = rc.load_store(store_path) if store_path.exists() else None
    if store is not None and _show_sweep(store, name, as_json):
        return
    if store is None or not store.names(name):
        known = ["config", *(kind for room in ROOMS for kind in kinds(room))]
        where = f" (no component, and no run or sweep in {store_path})" if store else ""
        raise BadInput(f"There is nothing called {name!r} to show{where}.", fix=did_you_mean(name, known))
    from recombine.store.notes import notes_of
    from recombine.store.tags import tags

    run_id = store.full_name(name)
    labels = [label for label, runs in tags(store).items() if run_id in runs]
    document = run_document(store, name) | {"tags": labels, "notes": notes_of(store, run_id)}
    if as_json:
        print_json(document)
        return
    run = store.load(name)
    certificate = run.setting.support.certificate()
    rows = [(key, value) for key, value in document.items() if not isinstance(value, (dict, list))]
    say(table(f"run {document['run']}", ["", ""], [*rows, *([("tags", " ".join(labels))] if labels else [])]))
    for note in document["notes"]:
        say_line(f"note of {note['time'][:10]}: {note['text']}")
    facts: list[tuple[str, Any]] = [
        ("trained on", f"{certificate.size} of {certificate.space_size} combinations"),
        ("complete", certificate.complete),
        ("connected", certificate.connected),
    ]
    for coverage in certificate.coverage:
        share = f"{coverage.share:.3f}{'' if coverage.exact else ' (sampled)'}"
        facts.append((f"{coverage.strength}-way coverage", share))
    facts.append(("smallest eigenvalue of E[zz']", certificate.spectrum[-1]))
    say(table("certificate of the support", ["", ""], facts))
    if run.parents:
        say(_line_of(store, run.config))
    settings = [(key, str(value)) for key, value in settings_of(run.manifest).items()]
    say(table("configuration", ["", ""], settings))


def _show_sweep(store: rc.Store, name: str, as_json: bool) -> bool:
    """Show a sweep of a store; False if there is none of this name."""
    from recombine.cli.run import check_complete
    from recombine.design.sweeps.recorded import SCORES, recorded_sweep, sweep_names

    if name not in sweep_names(store):
        return False
    sweep = recorded_sweep(store, name)
    document = sweep.record()
    if as_json:
        print_json(document)
    else:
        how = sweep.standing
        axes = [(axis, ", ".join(map(str, values))) for axis, values in sweep.axes.items()]
        facts = [
            ("asked", sweep.request["time"]),
            *axes,
            ("runs", f"{how.done} of {how.runs} done, {how.failed} failed"),
        ]
        say(
            table(
                f"sweep {name}", ["", ""], [*facts, ("measurements", f"{how.measured} of {how.measurements}")], left=2
            )
        )
        rows = []
        for cell in document["cells"]:
            means = [mean_text(*(cell[score + end] for end in ("", "_low", "_high"))) for score in SCORES]
            rows.append((*(str(cell[axis]) for axis in sweep.axes), cell["n"], cell["failed"], *means))
        columns = [*sweep.axes, "n", "failed", *(f"{score} [95 % interval]" for score in SCORES)]
        say(table("means over replicates", columns, rows, left=len(sweep.axes)))
    check_complete(sweep.missing, len(sweep.request["runs"]))
    check_problems(store)
    return True


def _line_of(store: rc.Store, config: rc.RunConfig) -> Tree:
    """The runs that a run comes from as a tree, with what each of them trains."""
    from rich.tree import Tree

    def words(one: rc.RunConfig) -> str:
        trained = f"trains {', '.join(one.trained)}" if one.trained else "trains all weights"
        status = store.status(one.run_id) or "not in the store"
        return f"{one.run_id}  {one.model.kind}, {one.recipe.steps:,} steps, {trained} ({status})"

    def grow(tree: Tree, one: rc.RunConfig) -> None:
        for parent in one.parents:
            grow(tree.add(f"from {words(parent)}", highlight=False), parent)

    tree = Tree(words(config), highlight=False)
    grow(tree, config)
    return tree


def _study_document(kind: str) -> dict[str, Any]:
    """A study before any run: question, arms, claims with margins, profiles with their cost, settings."""
    cls = find("studies", kind)
    assert issubclass(cls, rc.Study)
    usual = cls.profile("laptop" if "laptop" in cls.profiles else next(iter(cls.profiles)))
    profiles = []
    for name in cls.profiles:
        design = cls.profile(name).design
        configs = [config for config, _ in design.runs]
        steps, seconds = sum(config.recipe.steps for config in configs), estimated_seconds(configs)
        profile = {"profile": name, "runs": len(design.run_ids), "steps": steps, "claims": len(design.claims)}
        profiles.append(profile | {"seconds": seconds})
    arms = [
        {
            "arm": name,
            "family": arm.configs[0][0].family.kind,
            "axes": {axis: [str(level) for level in levels] for axis, levels in arm.axes.items() if len(levels) > 1},
            "cells": len(arm.cells),
            "replicates": len(arm.seeds or ()),
        }
        for name, arm in usual.design.arms.items()
    ]
    claims = [
        {
            "claim": claim.name,
            "role": "primary" if claim.primary else claim.role,
            "effect": claim.effect.words,
            "direction": claim.test.direction,
            "margin": claim.test.margin,
            "scales": [{"scale": scale, "margin": margin} for scale, margin in claim.test.scales],
            "needs": list(claim.needs),
            "statement": claim.text,
        }
        for claim in usual.design.claims
    ]
    described = {name: field.description or "" for name, field in cls.model_fields.items() if name != "kind"}
    settings = [{"name": name, "description": " ".join(text.split())} for name, text in described.items()]
    document = {"study": kind, "question": usual.question, "arms": arms, "claims": claims}
    return document | {"profiles": profiles, "settings": settings}


def _show_study(kind: str) -> None:
    document = _study_document(kind)
    say(f"{kind} (studies): {document['question']}", "bold")
    rows: list[Any] = [
        (arm["arm"], arm["family"], "\n".join(map(_axis, arm["axes"].items())), arm["cells"], arm["replicates"])
        for arm in document["arms"]
    ]
    say(table("arms (laptop profile)", ["arm", "family", "axes", "cells", "replicates"], rows, left=3))
    rows = [
        (f"{claim['claim']} ({claim['role']})\n{claim['statement']}\n", margin_text(claim))
        for claim in document["claims"]
    ]
    scaled = [claim for claim in document["claims"] if claim["scales"]]
    say(table("claims, stated before any run", ["claim", "margin"], rows))
    if scaled:
        scales = ", ".join(scale["scale"] for scale in scaled[0]["scales"])
        say(f"Claims with several margins must hold on every scale of the score: {scales}.\n")
    rows = [
        (each["profile"], each["runs"], f"{each['steps']:,}", f"about {duration(each['seconds'])}")
        for each in document["profiles"]
    ]
    say(table("profiles", ["profile", "runs", "steps", "training on this machine"], rows))
    rows = [(setting["name"], setting["description"]) for setting in document["settings"]]
    say(table("settings (recombine run STUDY name=value)", ["name", ""], rows, left=2))


def _axis(axis: tuple[str, list[str]]) -> str:
    name, levels = axis
    shown = ", ".join(levels[:8]) + (f", ... ({len(levels)})" if len(levels) > 8 else "")
    return f"{name}: {shown}"


def _show_component(room: str, kind: str) -> None:
    component = find(room, kind)
    rows = []
    for name, field in component.model_fields.items():
        if name != "kind":
            kind_of = getattr(field.annotation, "__name__", None) or str(field.annotation).replace("typing.", "")
            default = "required" if field.is_required() else repr(field.default)
            rows.append((name, kind_of, default, field.description or ""))
    say(f"{kind} ({room}): {summary(room, kind)}")
    say(table("settings", ["name", "type", "default", ""], rows, left=4))


def _show_settings(title: str, config: rc.RunConfig) -> None:
    rows = []
    for place, is_component in field_names(config):
        *path, leaf = place.split(".")
        node = functools.reduce(getattr, path, config)
        value = getattr(node, leaf)
        if is_component:
            rows.append((place, value.kind, "one of: " + ", ".join(kinds(room_of(value)))))
        elif not isinstance(value, BaseModel):
            description = type(node).model_fields[leaf].description or ""
            rows.append((place, "" if value is None else str(value), description))
    say(table(title, ["name", "default", ""], rows, left=3))


def verdicts(
    *, profile: str | None = None, store_path: StoreOption = DEFAULT_STORE, as_json: JsonOption = False
) -> None:
    """The verdicts of all studies in a store, corrected for their number.

    Args:
        profile: Only studies that ran in this profile.
    """
    from recombine.design.run import newest_records, verdicts_of
    from recombine.store.requests import requests

    store = rc.load_store(store_path)
    records = verdicts_of(store, profile)
    expected = {name: list(dict.fromkeys(record["runs"])) for name, record in newest_records(store, profile).items()}
    there = set(store.names())
    # What `store rm` forgot is not missing.
    asked = {run for request in requests(store, "study") for run in request["runs"]}
    missing = {name: [run for run in runs if run in asked - there] for name, runs in expected.items()}
    nothing = f"No study has run in {store_path}. Try: recombine run data-scaling --profile smoke"
    if store.problems:
        nothing = f"No result in {store_path} can be read."
    answer(as_json, records, verdict_table(records) if records else nothing)
    check_problems(store)
    check_complete([run for lost in missing.values() for run in lost], sum(map(len, expected.values())))
