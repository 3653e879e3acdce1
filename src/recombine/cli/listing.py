"""The commands that look: ls, show, verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.cli.output import console, print_json, table, verdict_table
from recombine.component import ROOMS, find, kinds, room_of, summary
from recombine.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from recombine.store.store import Store


def list_command(what: str, store_path: Path, tag: str | None = None, *, as_json: bool) -> None:
    """List runs (those of a tag), sweeps, or components."""
    if tag is not None and what != "runs":
        raise BadInput("--tag is for runs.", fix="recombine ls --tag NAME")
    if what in ROOMS:
        found = [{"name": kind, "summary": summary(what, kind)} for kind in kinds(what)]
        if as_json:
            print_json(found)
        else:
            console().print(table(what, ["name", ""], [tuple(item.values()) for item in found], left=2))
        return
    if what not in ("runs", "sweeps"):
        raise BadInput(f"There is no list of {what!r}.", fix=did_you_mean(what, ("runs", "sweeps", *ROOMS)))
    from recombine.store.store import Store

    store = Store(store_path, create=False)
    if what == "sweeps":
        from recombine.cli.asked import asked_rows, print_asked

        sweeps = asked_rows(store, "sweep")
        if as_json:
            print_json(sweeps)
        else:
            print_asked(sweeps, nothing=f"No sweep was asked of {store_path}. See `recombine sweep --help`.")
        return
    _list_runs(store, tag, as_json)


def _list_runs(store: Store, tag: str | None, as_json: bool) -> None:
    from recombine.store.tables import run_records, with_headline
    from recombine.store.tags import tagged

    chosen = None if tag is None else tagged(store, tag)
    if as_json:
        print_json(run_records(store, chosen))
        return
    columns = ["run", "family", "space", "trained on", "model", "steps", "in", "held out"]
    rows = [
        _run_row(
            run.run_id,
            run.manifest,
            with_headline(run.manifest["config"]["family"]["kind"], store.summaries(run.run_id)),
        )
        for run in store.runs(chosen)
    ]
    title = f"{len(rows)} runs in {store.path}" + ("" if tag is None else f" tagged {tag!r}")
    console().print(table(title, columns, rows, left=3))
    if tag is None:
        from recombine.cli.asked import asked_rows, print_asked

        print_asked(asked_rows(store, "sweep"))


def _run_row(run_id: str, manifest: dict[str, Any], scores: dict[str, Any]) -> tuple[Any, ...]:
    """A run in one line of a terminal."""
    config = manifest["config"]
    support = config["support"]
    trained_on = support["kind"]
    if support.get("number") or support.get("held_out"):
        trained_on = str(support.get("number") or f"{1 - support['held_out']:.0%}")
    failed = manifest["failed_at"]
    return (
        run_id[:8],
        config["family"]["kind"],
        _numbers(config["space"]),
        trained_on,
        f"{config['model']['kind']} {_numbers(config['model'])}",
        manifest["steps"],
        scores.get("score_in") if failed is None else "failed",
        scores.get("score_held_out") if failed is None else f"at step {failed}",
    )


def _numbers(component: dict[str, Any]) -> str:
    """A component by its numbers: `16,3`; by its kind where it has none."""
    found = [
        str(value) for name, value in component.items() if isinstance(value, int) and name != "min_active"
    ]
    return ",".join(found) or component["kind"]


def show_command(what: str, store_path: Path, picture: Path | None = None, *, as_json: bool) -> None:
    """Show the settings of a run, a component, or one stored run; of a family also one example as a picture."""
    if picture is not None:
        _write_picture(what, store_path, picture, as_json)
        return
    if what == "config":
        from recombine.training.config import RunConfig

        if as_json:
            print_json(RunConfig.model_json_schema(mode="serialization"))
        else:
            _print_settings("the settings of a run, with their defaults", RunConfig())
        return
    rooms = [room for room in ROOMS if what in kinds(room)]
    if rooms and as_json:
        schemas = {room: find(room, what).model_json_schema() for room in rooms}
        print_json(schemas if len(rooms) > 1 else schemas[rooms[0]])
    for room in [] if as_json else rooms:
        _show_component(room, what)
    if rooms:
        return
    from recombine.cli.commands import run_document
    from recombine.store.store import Store
    from recombine.store.tables import flatten

    store = Store(store_path, create=False) if store_path.exists() else None
    if store is None or not store.names(what):
        known = ["config", *(kind for room in ROOMS for kind in kinds(room))]
        where = f" (no component, and no run in {store_path})" if store else ""
        raise BadInput(f"There is nothing called {what!r} to show{where}.", fix=did_you_mean(what, known))
    document = run_document(store, what)
    if as_json:
        print_json(document)
        return
    certificate = store.load(what).setting.support.certificate()
    rows = [(name, value) for name, value in document.items() if not isinstance(value, dict)]
    console().print(table(f"run {document['run']}", ["", ""], rows))
    facts = [
        ("trained on", f"{certificate.size} of {certificate.space_size} combinations"),
        ("complete", certificate.complete),
        ("connected", certificate.connected),
        *(
            (f"{one.strength}-way coverage", f"{one.share:.3f}{'' if one.exact else ' (sampled)'}")
            for one in certificate.coverage
        ),
        ("smallest eigenvalue of E[zz']", certificate.spectrum[-1]),
    ]
    console().print(table("certificate of the support", ["", ""], facts))
    settings = [(name, str(value)) for name, value in flatten(document["config"])]
    console().print(table("configuration", ["", ""], settings))


def _write_picture(what: str, store_path: Path, path: Path, as_json: bool) -> None:
    """One example of a family, or of a stored run's family, as a figure."""
    from recombine.figures.save import save_figure
    from recombine.overrides import validate
    from recombine.store.files import explained
    from recombine.store.store import Store
    from recombine.studies.pictures import episodes
    from recombine.training.config import RunConfig

    if what in kinds("families"):
        config = validate(RunConfig, {"family": what})
    else:
        config = Store(store_path, create=False).load(what).config
    made = episodes(config)
    if not made:
        raise BadInput(
            f"The family {config.family.kind!r} has no picture.",
            fix="choose preferences or goals, the grid worlds",
        )
    with explained(path):
        written = save_figure(made[0].chart, path)
    if as_json:
        print_json({"picture": str(written), "family": config.family.kind})
    else:
        console().print(f"picture: {written}", highlight=False, markup=False)


def _show_component(room: str, kind: str) -> None:
    component = find(room, kind)
    rows = [
        (
            name,
            _type(field.annotation),
            "required" if field.is_required() else repr(field.default),
            field.description or "",
        )
        for name, field in component.model_fields.items()
        if name != "kind"
    ]
    console().print(f"{kind} ({room}): {summary(room, kind)}", markup=False, highlight=False)
    console().print(table("settings", ["name", "type", "default", ""], rows, left=4))


def _type(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")


def _print_settings(title: str, config: Any) -> None:
    from pydantic import BaseModel

    from recombine.overrides import places

    rows = []
    for place, is_component in places(config):
        node = config
        *path, leaf = place.split(".")
        for step in path:
            node = getattr(node, step)
        value = getattr(node, leaf)
        field = type(node).model_fields[leaf]
        if is_component:
            rows.append((place, value.kind, "one of: " + ", ".join(kinds(room_of(value)))))
        elif not isinstance(value, BaseModel):
            rows.append((place, "" if value is None else str(value), field.description or ""))
    console().print(table(title, ["name", "default", ""], rows, left=3))


def verdicts_command(
    profile: str | None, store_path: Path, *, as_json: bool, as_markdown: bool = False
) -> None:
    """Show all verdicts of a store."""
    from recombine.store.store import Store
    from recombine.studies.run import verdicts_of

    records = verdicts_of(Store(store_path, create=False), profile)
    if as_json:
        print_json(records)
    elif as_markdown:
        from recombine.cli.results import markdown

        sys.stdout.write(markdown(records))
    elif records:
        console().print(verdict_table(records))
    else:
        advice = "Try: recombine run data-scaling --profile smoke"
        console().print(f"No study has run in {store_path}. {advice}", markup=False, highlight=False)
