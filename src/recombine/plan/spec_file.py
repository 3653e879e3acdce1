"""YAML and TOML files as plain text values with their line numbers, for precise error messages."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from recombine._lazy import LazyModule
from recombine.errors import BadInput
from recombine.plan.wording import no_file

if TYPE_CHECKING:
    import yaml
else:
    yaml = LazyModule("yaml")  # Model files do without.

MOST_VALUES = 500_000
DEEPEST = 12
LARGEST = 50_000_000
"""The largest file in bytes."""

KeyPath = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class Document:
    """The content of a file: mappings, lists and text, with the line of each where it is known."""

    where: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    def fail(self, keys: KeyPath, what: str, fix: str | None = None) -> NoReturn:
        """Raise BadInput with the file and, where it is known, the line."""
        near = next((self.lines[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in self.lines), None)
        line = f", line {near}" if near is not None else ""
        raise BadInput(f"{self.where}{line}: {what}", fix=fix)


def read_document(path: Path) -> Document:
    """Read a YAML or TOML file. Scalars stay text as written, so that a level called `no` does not become `False`."""
    if not path.is_file():
        raise no_file(path, "", (".yaml", ".yml", ".toml"))
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path} has more than {LARGEST} bytes.", fix="give a file with factors and levels")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", fix="give a YAML or TOML file in UTF-8") from error
    document = _toml(text, str(path)) if path.suffix.lower() == ".toml" else _yaml(text, str(path))
    if not document.values:
        raise BadInput(
            f"{path} is empty.", fix="write factors and their levels, for example factors: {colour: [red, blue]}"
        )
    return document


def _toml(text: str, where: str) -> Document:
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise BadInput(f"{where} is not TOML: {error}.", fix="correct the TOML: check quotes and brackets") from error
    return Document(where, _as_text(values), {})


def _as_text(value: Any) -> Any:
    """Numbers, dates and booleans as they are written."""
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _yaml(text: str, where: str) -> Document:
    try:
        # Composing builds nodes only, so no tag in the file can create an object.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise BadInput(
            f"{where}{line}: {error.problem or error}.", fix="correct the YAML: check indentation and colons"
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{where} is not YAML: {error}.", fix="see docs/planning.md for an example") from error
    document = Document(where, {}, {})
    if root is not None and not isinstance(root, yaml.MappingNode):
        document.fail(
            (), "the file is not a mapping.", "write keys and values, for example factors: {colour: [red, blue]}"
        )
    return dataclasses.replace(document, values={} if root is None else _Plain(document).value(root, ()))


class _Plain:
    """Converts nodes to plain values. Aliases can multiply without end, so values are counted."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.count = 0

    def value(self, node: yaml.Node, keys: KeyPath) -> Any:
        self.count += 1
        self.document.lines[keys] = node.start_mark.line + 1
        if self.count > MOST_VALUES or len(keys) > DEEPEST:
            self.document.fail(
                keys, "the file has too many values, or is nested too deeply.", "list levels, or give their number"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*keys, index)) for index, item in enumerate(node.value)]
        return node.value

    def _mapping(self, node: yaml.MappingNode, keys: KeyPath) -> dict[str, Any]:
        values = dict[str, Any]()
        for key, value in node.value:
            here = (*keys, key.value if isinstance(key, yaml.ScalarNode) else "?")
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value in values:
                self.document.lines[here] = line
                twice = f"the key {key.value!r} occurs twice." if isinstance(key, yaml.ScalarNode) else None
                self.document.fail(here, twice or "a key is not a name.", "write name: value, with each name once")
            values[key.value] = self.value(value, here)
            self.document.lines[here] = line
        return values
