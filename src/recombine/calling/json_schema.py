"""JSON Schema of parameters and results: checks, references, and values that fit."""

from __future__ import annotations

import dataclasses
import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recombine.errors import BadInput, did_you_mean

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
COMBINED = ("anyOf", "oneOf", "allOf", "prefixItems")
"""Keywords with a list of schemas."""
MAPPED = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords with schemas by name."""
INNER = ("items", "additionalProperties", "not", "contains")
"""Keywords with one schema."""
DEEPEST = 40
TRIES = 50
SMALLEST, LARGEST = 2, 99
"""Integers are drawn from this range, where the schema gives none."""
FORMATS = {
    "date": "20{0:02d}-{1:02d}-{2:02d}",
    "time": "{1:02d}:{2:02d}:00Z",
    "date-time": "20{0:02d}-{1:02d}-{2:02d}T08:{2:02d}:00Z",
    "email": "person{0}{1}{2}@example.org",
    "uri": "https://example.org/{0}/{1}{2}",
    "ipv4": "10.{0}.{1}.{2}",
    "hostname": "host{0}{1}{2}.example.org",
}
PARTS = ((26, 30), (1, 13), (1, 29))
"""The ranges of the numbers in formats: year, month, day."""
WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "indigo", "juniper", "kelp",
    "lagoon", "maple", "nectar", "onyx", "prairie", "quartz", "ridge", "saffron", "tundra", "umber", "violet",
    "willow", "yarrow", "zephyr",
)  # fmt: skip
"""Values of strings without another rule."""


@dataclasses.dataclass(frozen=True)
class JsonSchema:
    """One schema without references."""

    schema: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The type; that of the first alternative where there are several; empty if any value is allowed."""
        given = self.schema.get("type", "")
        if isinstance(given, Sequence) and not isinstance(given, str):
            given = next((each for each in given if each != "null"), "null")
        if not given:
            for name in ("anyOf", "oneOf", "allOf"):
                kinds = [JsonSchema(each).kind for each in self.schema.get(name, ())]
                given = next((kind for kind in kinds if kind and kind != "null"), "")
                if given:
                    break
        return str(given)

    @property
    def open(self) -> bool:
        """Any value of the type is allowed: there is no list of values, and the type has many."""
        closed = "enum" in self.schema or "const" in self.schema or "pattern" in self.schema
        return not closed and self.kind in ("", "string", "integer", "number", "array", "object")

    def accepts_results_of(self, returns: Mapping[str, Any] | None) -> bool:
        """Whether the result of a function can be given here. A result without a type is taken to fit."""
        if not self.open:
            return False
        kind = "" if returns is None else JsonSchema(returns).kind
        return not kind or not self.kind or kind == self.kind or (kind, self.kind) == ("integer", "number")

    def valid(self, value: Any) -> bool:
        """Whether a value satisfies the schema."""
        from jsonschema import Draft202012Validator

        return Draft202012Validator(dict(self.schema)).is_valid(value)

    def draw(self, rng: np.random.Generator, what: str = "a value") -> Any:
        """Draw a value that satisfies the schema.

        Args:
            rng: The source of chance.
            what: What the value is for, in errors.
        """
        for _ in range(TRIES):
            value = _drawn(self.schema, rng)
            if self.valid(value):
                return value
        raise BadInput(
            f"No value was found for {what}: {str(dict(self.schema))[:200]}.",
            fix="add valid values to the schema: `examples: [...]`",
        )


def _drawn(schema: Mapping[str, Any], rng: np.random.Generator) -> Any:
    if "const" in schema:
        return schema["const"]
    for name in ("enum", "examples"):
        if schema.get(name):
            return schema[name][int(rng.integers(len(schema[name])))]
    for name in ("anyOf", "oneOf", "allOf"):
        options = [each for each in schema.get(name, ()) if each.get("type") != "null"]
        if options:
            rest = {key: value for key, value in schema.items() if key != name}
            return _drawn({**rest, **options[0]}, rng)
    kind = JsonSchema(schema).kind
    if kind == "integer" or kind == "number":
        return _number(schema, rng, whole=kind == "integer")
    if kind == "boolean":
        return bool(rng.integers(2))
    if kind == "array":
        number = min(max(int(schema.get("minItems", 2)), 1), int(schema.get("maxItems", 100)))
        return [_drawn(schema.get("items") or {"type": "string"}, rng) for _ in range(number)]
    if kind == "object":
        needed = schema.get("required", ())
        return {key: _drawn(each, rng) for key, each in schema.get("properties", {}).items() if key in needed}
    return None if kind == "null" else _text(schema, rng)


def _number(schema: Mapping[str, Any], rng: np.random.Generator, *, whole: bool) -> float:
    step = schema.get("multipleOf", 1 if whole else 0.5)
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf))
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf))
    if low == -math.inf:
        low = SMALLEST if high == math.inf else high - LARGEST * step
    if high == math.inf:
        high = max(LARGEST, low + LARGEST * step)
    first, last = math.ceil(low / step), math.floor(high / step)
    value = int(rng.integers(first, max(first, last) + 1)) * step
    if whole:
        return int(value)
    value = round(float(value), 6)
    return value if "multipleOf" in schema else value + 0.25 if value + 0.25 <= high else value


def _text(schema: Mapping[str, Any], rng: np.random.Generator) -> str:
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]].format(*(int(rng.integers(low, high)) for low, high in PARTS))
    text = f"{WORDS[int(rng.integers(len(WORDS)))]}-{int(rng.integers(10, 1000))}"
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 10_000))
    while len(text) < least:
        text += string.ascii_lowercase[int(rng.integers(26))]
    return text[:most]


def checked_schema(schema: Any, what: str) -> dict[str, Any]:
    """A schema with its references filled in.

    Args:
        schema: What a user gave.
        what: What it describes, in errors.

    Returns:
        The schema. What is no JSON Schema, an unknown type, and a reference that leads nowhere, elsewhere or back to
        itself raise `BadInput`.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    if not isinstance(schema, Mapping):
        raise BadInput(
            f"{what}: a JSON Schema is an object, got {type(schema).__name__}.", fix='for example {"type": "string"}'
        )
    _check_types(schema, what, 0)
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        where = "".join(f".{part}" for part in error.absolute_path)
        raise BadInput(
            f"{what} is not JSON Schema: {where.lstrip('.') or 'the schema'}: {error.message[:200]}.",
            fix="see https://json-schema.org/understanding-json-schema",
        ) from None
    return _filled(schema, schema, what, ())


def _check_types(schema: Any, what: str, depth: int) -> None:
    """Name unknown types plainly: the validator's own message lists all alternatives of the meta-schema."""
    if depth > DEEPEST:
        raise BadInput(f"{what}: the schema is nested more than {DEEPEST} deep.")
    if not isinstance(schema, Mapping):
        return
    given = schema.get("type", [])
    for each in [given] if isinstance(given, str) else given if isinstance(given, list) else ():
        if isinstance(each, str) and each not in TYPES:
            other = {"dict": "object", "float": "number", "int": "integer", "str": "string", "list": "array"}
            other |= {"bool": "boolean", "tuple": "array", "double": "number", "any": ""}
            fix = f"write {other[each]!r}" if other.get(each) else did_you_mean(each, TYPES)
            raise BadInput(
                f"{what}: {each!r} is no type of JSON Schema.", fix="leave the type out" if each == "any" else fix
            )
    for inner in _inner_schemas(schema):
        _check_types(inner, what, depth + 1)


def _inner_schemas(schema: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for name in MAPPED:
        if isinstance(schema.get(name), Mapping):
            found += schema[name].values()
    for name in COMBINED:
        if isinstance(schema.get(name), list):
            found += schema[name]
    return found + [schema[name] for name in INNER if isinstance(schema.get(name), Mapping)]


def _filled(node: Any, root: Mapping[str, Any], what: str, path: tuple[str, ...]) -> Any:
    """The schema with each local reference replaced by what it refers to."""
    if isinstance(node, list):
        return [_filled(each, root, what, path) for each in node]
    if not isinstance(node, Mapping):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in path:
            circle = " -> ".join((*path[path.index(reference) :], reference))
            raise BadInput(
                f"{what}: a reference leads back to itself: {circle}.",
                fix="write the schema out to the depth that is needed",
            )
        target = _target(reference, root, what)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**_filled(target, root, what, (*path, reference)), **_filled(rest, root, what, path)}
    return {
        key: value if key in ("enum", "const", "examples", "default") else _filled(value, root, what, path)
        for key, value in node.items()
        if key not in ("$defs", "definitions")
    }


def _target(reference: str, root: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    if not reference.startswith("#"):
        raise BadInput(
            f"{what}: the reference {reference!r} leads to another document.", fix="put the schema under $defs"
        )
    node: Any = root
    for part in reference.lstrip("#").strip("/").split("/"):
        if not part:
            continue
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or name not in node:
            raise BadInput(f"{what}: the reference {reference!r} leads nowhere.", fix="check the names under $defs")
        node = node[name]
    if not isinstance(node, Mapping):
        raise BadInput(f"{what}: the reference {reference!r} does not lead to a schema.")
    return node
