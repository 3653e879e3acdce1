"""The file that describes a plan, YAML or TOML, as plain text values that know their line."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any, NoReturn

import yaml

from recombine.errors import BadInput, did_you_mean

MOST_VALUES = 500_000
DEEPEST = 12
LARGEST = 50_000_000
"""Bytes: a longer file does not describe a space."""

Place = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class Document:
    """What a file says: mappings, lists and text, with the line of each where it is known."""

    where: str
    values: dict[str, Any]
    lines: dict[Place, int]

    def fail(self, place: Place, what: str, fix: str | None = None) -> NoReturn:
        """BadInput that names the file, and the line or the key."""
        near = next(
            (self.lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in self.lines), None
        )
        line = f", line {near}" if near is not None else ""
        raise BadInput(f"{self.where}{line}: {what}", fix=fix)


def read_document(path: Path) -> Document:
    """A file's values. Scalars are text, as they are written: a level called `no` is no `False`."""
    if not path.is_file():
        near = [str(one) for ending in ("*.y*ml", "*.toml") for one in sorted(path.parent.glob(ending))]
        raise BadInput(
            f"There is no file {str(path)!r} that describes a space.", fix=did_you_mean(str(path), near[:20])
        )
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(
                f"{path} has more than {LARGEST} bytes.", fix="name the file with factors and levels"
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix="name a YAML or TOML file in UTF-8") from error
    made = _toml(text, str(path)) if path.suffix.lower() == ".toml" else _yaml(text, str(path))
    if not made.values:
        raise BadInput(
            f"{path} is empty.", fix="write factors and their levels, e.g. factors: {colour: [red, blue]}"
        )
    return made


def _toml(text: str, where: str) -> Document:
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise BadInput(
            f"{where} is not TOML: {error}.", fix="mend the TOML: check quotes and brackets"
        ) from error
    return Document(where, _as_text(values), {})


def _as_text(value: Any) -> Any:
    """Numbers, dates and truth values as they would be written."""
    if isinstance(value, dict):
        return {name: _as_text(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml(text: str, where: str) -> Document:
    try:
        # Only composed: no tag of the file makes any object.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        said = f"{where}{line}: {error.problem or error}."
        raise BadInput(said, fix="mend the YAML: check indentation and colons") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{where} is not YAML: {error}.", fix="see docs/planning.md for an example") from error
    made = Document(where, {}, {})
    if root is not None and not isinstance(root, yaml.MappingNode):
        made.fail((), "is not a mapping.", "write keys and values, e.g. factors: {colour: [red, blue]}")
    return dataclasses.replace(made, values={} if root is None else _Plain(made).value(root, ()))


class _Plain:
    """Nodes as plain values. Aliases may stand for each other without end, so values are counted."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.count += 1
        self.document.lines[place] = node.start_mark.line + 1
        if self.count > MOST_VALUES or len(place) > DEEPEST:
            self.document.fail(
                place, "this is too much, or nested too deep.", "list levels, or give their number"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, (*place, index)) for index, one in enumerate(node.value)]
        return node.value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        made = dict[str, Any]()
        for key, value in node.value:
            here = (*place, key.value if isinstance(key, yaml.ScalarNode) else "?")
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value in made:
                self.document.lines[here] = line
                twice = f"the key {key.value!r} stands twice." if isinstance(key, yaml.ScalarNode) else None
                self.document.fail(here, twice or "a key is not a name.", "write name: value, each name once")
            made[key.value] = self.value(value, here)
            self.document.lines[here] = line
        return made
