"""Overrides: `a.b=c` on any configuration, where a leaf name suffices when it is unique."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from recombine.component import Component
from recombine.errors import BadInput, RecombineError, did_you_mean

Config = TypeVar("Config", bound=BaseModel)


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


def _place(config: BaseModel, name: str) -> tuple[str, bool]:
    """The one place that a full or a leaf name means."""
    known = dict(places(config))
    if name in known:
        return name, known[name]
    found = [place for place in known if place.endswith(f".{name}")]
    if len(found) == 1:
        return found[0], known[found[0]]
    if found:
        raise BadInput(f"{name!r} could mean {' or '.join(sorted(found))}.", fix="write the full name")
    leaves = {place.rpartition(".")[2] for place in known}
    raise BadInput(f"There is nothing called {name!r} to set.", fix=did_you_mean(name, {*known, *leaves}))


def apply(config: Config, overrides: Sequence[str]) -> Config:
    """The configuration with overrides applied. Kinds are changed first, for they decide which fields there are."""
    given = [split(override) for override in overrides]
    kinds = [(name, value) for name, value in given if _is_component(config, name)]
    for name, value in kinds:
        place, _ = _place(config, name)
        config = _set(config, [(place, {"kind": value} if isinstance(value, str) else value)])
    # Together, so that two values that only make sense with each other can be given.
    rest = [(_place(config, name)[0], value) for name, value in given if not _is_component(config, name)]
    return _set(config, rest) if rest else config


def _is_component(config: BaseModel, name: str) -> bool:
    try:
        return _place(config, name)[1]
    except BadInput:
        return False


def _set(config: Config, changes: Sequence[tuple[str, Any]]) -> Config:
    values = config.model_dump(mode="json")
    for place, value in changes:
        *path, leaf = place.split(".")
        node = values
        for step in path:
            node = node[step]
        node[leaf] = value
    return validate(type(config), values)


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
    return BadInput(f"{where or 'the value'} = {given!r}: {message[0].lower()}{message[1:]}.")
