"""Overrides: `a.b=c` on any configuration, where a leaf name suffices when it is unique."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from recombine.component import Component, find, room_of
from recombine.errors import BadInput, RecombineError, did_you_mean

Config = TypeVar("Config", bound=BaseModel)

SEVERAL = "several values are expected."
WITH_COMMAS = "write them with commas between them (a,b), a single one with a comma behind it (a,)"
"""How an override is written that is a list; files say it otherwise."""


def parse_value(text: str) -> Any:
    """A value as JSON; `1,2,3` as a list; anything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text.lower()]
    if "," in text:
        return [parse_value(part) for part in text.split(",") if part]
    return text


def split(override: str) -> tuple[str, Any]:
    """The name and the value of one override."""
    name, equals, value = override.partition("=")
    if not equals or not name.strip():
        raise BadInput(f"{override!r} is not an override.", fix="write name=value, e.g. width=256")
    return name.strip(), parse_value(value.strip())


def places(config: BaseModel, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """All places of a configuration by their full name, and whether a component stands there."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if name == "kind" and isinstance(config, Component):
            continue
        yield f"{prefix}{name}", isinstance(value, Component)
        if isinstance(value, BaseModel):
            yield from places(value, f"{prefix}{name}.")


def _find(known: Collection[str], name: str) -> str:
    """The one place that a full or a leaf name means."""
    if name in known:
        return name
    found = [place for place in known if place.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    # Of a study with several sets of runs the main ones are meant. A control's own setting stays ambiguous: to change
    # one of the two and not the other is seldom wanted.
    main = [place for place in found if place.startswith("base.")]
    others = {place.partition(".")[0] for place in found if place not in main}
    if len(main) == 1 and all(f"{root}.recipe" in known for root in others):
        return main[0]
    if found:
        raise BadInput(f"{name!r} could mean {' or '.join(sorted(found))}.", fix="write the full name")
    leaves = {place.rpartition(".")[2] for place in known}
    raise BadInput(f"There is nothing called {name!r} to set.", fix=did_you_mean(name, {*known, *leaves}))


def apply(config: Config, overrides: Sequence[str]) -> Config:
    """The configuration with overrides applied.

    Kinds are changed first, for they decide which fields there are; nothing is validated before all is set, for
    a new kind may need the values that come with it.
    """
    known = dict(places(config))
    values = config.model_dump(mode="json")
    rest = []
    for name, value in (split(override) for override in overrides):
        try:
            place = _find(known, name)
        except BadInput:
            rest.append((name, value))  # It may be a field of a kind that is yet to come.
            continue
        if not known[place]:
            rest.append((name, value))
            continue
        component = {"kind": value} if isinstance(value, str) else value
        known = _with_kind(known, place, component, _at(config, place))
        _put(values, place, component)
    for name, value in rest:
        _put(values, _find(known, name), value)
    try:
        return validate(type(config), values)
    except BadInput as error:
        if error.fix is None and error.message.endswith(SEVERAL):
            raise BadInput(error.message, fix=WITH_COMMAS) from error
        raise


def _with_kind(known: dict[str, bool], place: str, component: Any, old: Component) -> dict[str, bool]:
    """The places once another component stands at one of them."""
    kept = {name: is_component for name, is_component in known.items() if not name.startswith(f"{place}.")}
    if isinstance(component, dict) and "kind" in component:
        fields = find(room_of(old), str(component["kind"])).model_fields
        kept |= {f"{place}.{field}": False for field in fields if field != "kind"}
    return kept


def _at(config: BaseModel, place: str) -> Any:
    """What stands at a place."""
    for step in place.split("."):
        config = getattr(config, step)
    return config


def _put(values: dict[str, Any], place: str, value: Any) -> None:
    *path, leaf = place.split(".")
    for step in path:
        values = values[step]
    values[leaf] = value


def validate(model: type[Config], values: Any) -> Config:
    """A configuration from plain values, with errors in words."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise explain(error) from error


def explain(error: ValidationError) -> RecombineError:
    """The first error of a validation in words: where, what came, what was expected."""
    first = error.errors(include_url=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, RecombineError):
        return inner
    where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function"))
    if isinstance(inner, ValidationError):
        return explain(inner)
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "value_error":
        return BadInput(f"{where}: {message}." if where else f"{message}.")
    if first["type"] == "extra_forbidden":
        return BadInput(f"There is nothing called {where!r} to set.")
    given = first.get("input")
    if first["type"] in ("tuple_type", "list_type"):
        return BadInput(f"{where or 'the value'} = {given!r}: {SEVERAL}")
    return BadInput(f"{where or 'the value'} = {given!r}: {message[0].lower()}{message[1:]}.")
