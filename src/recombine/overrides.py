"""Overrides: `a.b=c` on any configuration. A leaf name suffices where it is unique."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from recombine.component import ChangedFields, Component, find, room_of
from recombine.errors import BadInput, RecombineError, did_you_mean

Config = TypeVar("Config", bound=BaseModel)

WITH_COMMAS = "write them with commas between them (a,b), a single one with a comma behind it (a,)"
"""How to write a list in an override. Sweep files have their own way."""


def parse_value(text: str) -> Any:
    """Read a value: JSON, `1,2,3` as a list, anything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError:
        raise BadInput(f"The value {text[:20]}... is nested too deeply.", fix="write a shorter value") from None
    if text.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text.lower()]
    if "," in text:
        return [parse_value(part) for part in text.split(",") if part]
    return text


def split(override: str) -> tuple[str, Any]:
    """Split an override into its name and its value."""
    name, equals, value = override.partition("=")
    if not equals or not name.strip():
        raise BadInput(f"{override!r} is not an override.", fix="write name=value, e.g. width=256")
    return name.strip(), parse_value(value.strip())


def field_names(config: BaseModel, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """List all fields of a configuration by their full name, and whether a component is there."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if name == "kind" and isinstance(config, Component):
            continue
        yield f"{prefix}{name}", isinstance(value, Component)
        if isinstance(value, BaseModel):
            yield from field_names(value, f"{prefix}{name}.")


def _full_name(known: Collection[str], name: str) -> str:
    """The one field that a full name or a leaf name means."""
    if name in known:
        return name
    matches = [full for full in known if full.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    # A study with several sets of runs means its main ones. A control's own setting stays ambiguous: it is seldom
    # right to change one of the two and not the other.
    main = [full for full in matches if full.startswith("base.")]
    others = {full.partition(".")[0] for full in matches if full not in main}
    if len(main) == 1 and all(f"{root}.recipe" in known for root in others):
        return main[0]
    if matches:
        raise BadInput(f"{name!r} could mean {' or '.join(sorted(matches))}.", fix="write the full name")
    leaves = {full.rpartition(".")[2] for full in known}
    raise BadInput(f"There is nothing called {name!r} to set.", fix=did_you_mean(name, {*known, *leaves}))


def apply(config: Config, overrides: Sequence[str]) -> Config:
    """Make a copy of a configuration with overrides (`a.b=c`) applied.

    Args:
        config: Any configuration: a run's, a study's, a component's.
        overrides: Texts `name=value`. A leaf name suffices where it is unique.

    Returns:
        The changed copy. Unknown names, ambiguous names and bad values raise `BadInput`.
    """
    return _changed(config, [split(override) for override in overrides], lists=WITH_COMMAS)


def replace(config: Config, changes: Mapping[str, Any]) -> Config:
    """Make a copy of a configuration with other values; `Configuration.replace` is the method.

    Args:
        config: Any configuration.
        changes: Values by full name or unique leaf name. Components are objects, names or mappings with a `kind`.

    Returns:
        The changed copy, as `apply` makes it.
    """
    return _changed(config, list(changes.items()), lists="give a list or a tuple")


def _changed(config: Config, changes: Sequence[tuple[str, Any]], lists: str) -> Config:
    """Set the values and validate once. `lists` says how a list is given, where a single value came instead.

    Components are changed first, because they decide which fields exist. Validation comes last, because a new component
    may need the values that come with it.
    """
    known = dict(field_names(config))
    # The fields alone: what a configuration has cached is not part of it.
    values = {name: getattr(config, name) for name in type(config).model_fields}
    rest = []
    for name, value in changes:
        try:
            full = _full_name(known, name)
        except BadInput:
            rest.append((name, value))  # It may be a field of a component that is yet to come.
            continue
        if not known[full]:
            rest.append((name, value))
            continue
        component = {"kind": value} if isinstance(value, str) else value
        known = _with_component(known, full, component, functools.reduce(getattr, full.split("."), config))
        _put(values, full, component)
    named = [(_full_name(known, name), value) for name, value in rest]
    for full, value in sorted(named, key=lambda change: change[0].count(".")):
        _put(values, full, value)
    return validate(type(config), values, lists)


def _with_component(known: dict[str, bool], full: str, component: Any, old: Component) -> dict[str, bool]:
    """The known fields after another component takes the place of an old one."""
    kept = {name: is_component for name, is_component in known.items() if not name.startswith(f"{full}.")}
    if isinstance(component, Component):
        kept |= dict(field_names(component, f"{full}."))
    elif isinstance(component, dict) and "kind" in component:
        fields = find(room_of(old), str(component["kind"])).model_fields
        kept |= {f"{full}.{field}": False for field in fields if field != "kind"}
    return kept


def _put(values: dict[str, Any], full: str, value: Any) -> None:
    """Set a nested value. Configurations on the way become their fields; the others stay as they are."""
    *path, leaf = full.split(".")
    for step in path:
        inner = values[step]
        values[step] = values = ChangedFields(inner) if isinstance(inner, Component) else dict(inner)
    values[leaf] = value


def validate(model: type[Config], values: Any, lists: str | None = None) -> Config:
    """Build a configuration from plain values; a bad value raises `BadInput` that names it."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise explain(error, lists) from error


def explain(error: ValidationError, lists: str | None = None) -> RecombineError:
    """Turn the first error of a validation into words: where, what came, what was expected."""
    first = error.errors(include_url=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, RecombineError):
        return inner
    where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function"))
    if isinstance(inner, ValidationError):
        return explain(inner, lists)
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "value_error":
        return BadInput(f"{where}: {message}." if where else f"{message}.")
    if first["type"] == "extra_forbidden":
        return BadInput(f"There is nothing called {where!r} to set.")
    given = first.get("input")
    if first["type"] in ("tuple_type", "list_type"):
        return BadInput(f"{where or 'the value'} = {given!r}: several values are expected.", fix=lists)
    return BadInput(f"{where or 'the value'} = {given!r}: {message[0].lower()}{message[1:]}.")
