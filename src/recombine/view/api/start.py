"""The Start page: forms from the configuration's schema, a dry run, and commands that are started, watched and stopped."""

from __future__ import annotations

import functools
import json
import re
import uuid
from typing import Any

from pydantic import BaseModel

from recombine.component import find, kinds, room_of, summary
from recombine.design.study import Study
from recombine.design.sweeps.grid import NAME
from recombine.errors import BadInput, did_you_mean
from recombine.overrides import field_names, validate
from recombine.training.config import RunConfig
from recombine.view.jobs import run_once
from recombine.view.viewer import Viewer

DRY_SECONDS = 120.0
MOST_SETTINGS = 200
OVERRIDE = re.compile(r"[A-Za-z_][\w.-]*=[^\n]*")
LEFT_OUT = ("parents", "trains", "seeds")
"""Settings of a run that the form of a sweep does not offer: replicates set the seeds."""


def forms(viewer: Viewer) -> dict[str, Any]:
    """What can be started: studies with their questions, and the kinds of components."""
    return {
        "studies": [{"name": kind, "question": summary("studies", kind)} for kind in kinds("studies")],
        "families": [{"name": kind, "summary": summary("families", kind)} for kind in kinds("families")],
        "probes": list(kinds("probes")),
        "store": str(viewer.store_path),
    }


# Forms


def study_form(study: str) -> dict[str, Any]:
    """The settings of a study: type and description from its schema, values from each of its profiles."""
    kind = _study(study)
    fields = [field for field in _fields(kind) if field["name"] != "kind"]
    profiles = {}
    for name in kind.profiles:
        values = kind.profile(name).model_dump(mode="json")
        profiles[name] = {field["name"]: values.get(field["name"]) for field in fields}
    return {"study": study, "question": summary("studies", study), "fields": fields, "profiles": profiles}


def settings_form(body: dict[str, Any]) -> dict[str, Any]:
    """All settings of a run, given some of them: the choice of a component decides which settings follow."""
    given = body.get("settings", {})
    if not isinstance(given, dict) or len(given) > MOST_SETTINGS:
        raise BadInput("The settings are no mapping of names to values.")
    family = given.get("family", "hyperteacher")
    config = validate(RunConfig, {"family": family})
    for name, value in given.items():
        if name != "family":
            config = config.replace(**{name: value})
    found = []
    for place, is_component in field_names(config):
        if place.split(".")[0] in LEFT_OUT:
            continue
        *path, leaf = place.split(".")
        node: Any = functools.reduce(getattr, path, config)
        value = getattr(node, leaf)
        if is_component:
            found.append(
                {"name": place, "type": "choice", "value": value.kind, "choices": list(kinds(room_of(value)))}
                | _words(node, leaf)
            )
        elif not isinstance(value, BaseModel):
            fields = {field["name"]: field for field in _fields(type(node))}
            plain = node.model_dump(mode="json", include={leaf})[leaf]
            found.append(fields[leaf] | {"name": place, "value": plain})
    return {"fields": found}


def _words(node: BaseModel, leaf: str) -> dict[str, str]:
    return {"description": type(node).model_fields[leaf].description or ""}


@functools.cache
def _schema(kind: type[BaseModel]) -> dict[str, Any]:
    return kind.model_json_schema(mode="serialization")


def _fields(kind: type[BaseModel]) -> list[dict[str, Any]]:
    """The fields of a configuration as a form shows them."""
    schema = _schema(kind)
    properties = schema.get("properties") or schema["$defs"][kind.__name__]["properties"]
    fields = []
    for name, field in kind.model_fields.items():
        entry = properties.get(name, {})
        options = [option for option in entry.get("anyOf", [entry]) if option.get("type") != "null"]
        main = options[0] if options else {}
        types = {"integer": "whole", "number": "number", "boolean": "truth", "string": "text", "array": "list"}
        shown = "choice" if "enum" in main else types.get(str(main.get("type")), "json")
        fields.append(
            {
                "name": name,
                "type": shown,
                "choices": [str(value) for value in main.get("enum", ())],
                "least": main.get("minimum", main.get("exclusiveMinimum")),
                "most": main.get("maximum", main.get("exclusiveMaximum")),
                "optional": len(options) < len(entry.get("anyOf", options)),
                "description": " ".join((field.description or "").split()),
            }
        )
    return fields


# Commands


def dry_run(viewer: Viewer, body: dict[str, Any]) -> dict[str, Any]:
    """What would run, how much is done already, and about how long it takes."""
    title, arguments = _arguments(viewer, body)
    if arguments[0] == "resume":
        raise BadInput("A request that is resumed has no dry run here.")
    code, document = run_once([*arguments, "--dry-run"], DRY_SECONDS)
    if code or not isinstance(document, dict) or "error" in document:
        answer = document if isinstance(document, dict) else {}
        raise BadInput(str(answer.get("error", "The dry run failed.")), fix=answer.get("fix"))
    return {"title": title, "command": _shown(arguments), "plan": document}


def begin(viewer: Viewer, body: dict[str, Any]) -> dict[str, Any]:
    """Start a study, a sweep, or what was begun and is not done."""
    title, arguments = _arguments(viewer, body)
    return viewer.jobs.start("run", title, arguments).record()


def jobs(viewer: Viewer) -> list[dict[str, Any]]:
    """What was started here, the newest first."""
    return viewer.jobs.records()


def stop(viewer: Viewer, job: str) -> dict[str, Any]:
    """Stop a command as Ctrl-C does: finished runs are kept."""
    return viewer.jobs.stop(job).record()


def _arguments(viewer: Viewer, body: dict[str, Any]) -> tuple[str, list[str]]:
    """The title and the arguments of a command. No text of a page becomes an option."""
    store = f"--store={viewer.store_path.absolute()}"
    what = body.get("what")
    if what == "study":
        kind = _study(str(body.get("study", "")))
        name, profile = str(body["study"]), str(body.get("profile", ""))
        if profile not in kind.profiles:
            raise BadInput(f"{name!r} has no profile {profile[:50]!r}.", fix=did_you_mean(profile, kind.profiles))
        return f"{name} ({profile})", ["run", name, *_overrides(body), f"--profile={profile}", store]
    if what == "sweep":
        sweep = body.get("sweep")
        name = sweep.get("name") if isinstance(sweep, dict) else None
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            raise BadInput("A sweep needs a name.", fix="letters, digits, dots and dashes")
        folder = viewer.scratch / f"sweep-{uuid.uuid4().hex}"
        folder.mkdir()
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(sweep), encoding="utf-8")  # JSON is YAML.
        return f"{name} (sweep)", ["sweep", str(file), store]
    if what == "resume":
        known = {request["name"] for request in _requests(viewer)}
        name = str(body.get("name", ""))
        if name not in known:
            raise BadInput(f"Nothing called {name[:50]!r} was begun.", fix=did_you_mean(name, known))
        return f"{name} (resumed)", ["resume", store, "--", name]
    raise BadInput("Say what to start: a study, a sweep, or what to resume.")


def _requests(viewer: Viewer) -> list[dict[str, Any]]:
    from recombine.store.requests import requests

    return requests(viewer.store)


def _overrides(body: dict[str, Any]) -> list[str]:
    given = body.get("overrides", [])
    if not isinstance(given, list) or len(given) > MOST_SETTINGS:
        raise BadInput("The changed settings are no list.")
    for text in given:
        if not isinstance(text, str) or not OVERRIDE.fullmatch(text):
            raise BadInput(f"{str(text)[:80]!r} is not a setting.", fix="write name=value, e.g. replicates=4")
    return given


def _study(name: str) -> type[Study]:
    kind = find("studies", name)
    assert issubclass(kind, Study)
    return kind


def _shown(arguments: list[str]) -> str:
    return " ".join(["recombine", *arguments])
