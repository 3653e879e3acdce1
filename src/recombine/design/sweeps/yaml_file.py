"""Reading a sweep from a YAML file, with errors that name the file, the line or key, and the fix."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from recombine.design.sweeps.grid import SweepFile
from recombine.errors import BadInput, did_you_mean
from recombine.overrides import validate

KEYS = tuple(SweepFile.model_fields)

NUMBER = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
"""Numbers such as 1e-3, which YAML 1.1 takes for text."""


class _Loader(yaml.SafeLoader):
    """Plain values only. A key that stands twice is an error: the first would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} stands twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", NUMBER, list("-+.0123456789"))


OLD_NUMBER = re.compile(r"^[-+]?(0[0-9_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$")
"""Numbers that YAML 1.1 does not read as they look: 010 is 8, and 1:30 is 90."""

MOST_VALUES, DEEPEST = 1_000_000, 100
"""Values of a file, with each alias counted as what it stands for, and how deep they may be nested."""


def _check_size(node: yaml.Node | None, sizes: dict[int, int], depth: int) -> int:
    """The number of values below a node. Aliases share nodes, so a short file can stand for any number of values."""
    if node is None:
        return 0
    if isinstance(node, yaml.ScalarNode):
        number = node.tag.endswith((":int", ":float"))
        if number and node.style is None and OLD_NUMBER.match(node.value):
            raise yaml.constructor.ConstructorError(
                None, None, f"YAML reads {node.value} as another number: write a plain decimal number", node.start_mark
            )
        return 1
    if id(node) in sizes:
        if not sizes[id(node)]:
            raise yaml.constructor.ConstructorError(None, None, "an alias stands for itself", node.start_mark)
        return sizes[id(node)]
    sizes[id(node)] = 0
    inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    size = 1 + sum(_check_size(part, sizes, depth + 1) for part in inner)
    if size > MOST_VALUES or depth > DEEPEST:
        many = "the file has too many values, or is nested too deeply"
        raise yaml.constructor.ConstructorError(None, None, many, node.start_mark)
    sizes[id(node)] = size
    return size


def read_sweep(path: Path) -> SweepFile:
    """The sweep that a file describes."""
    if not path.exists():
        near = [str(one) for one in sorted(path.parent.glob("*.y*ml"))]
        raise BadInput(f"There is no sweep file {path}.", fix=did_you_mean(str(path), near))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The sweep file {path} cannot be read: {error}.", fix="name a YAML file") from error
    values = parse(text, str(path))
    values.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "sweep")
    try:
        return validate(SweepFile, values)
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", fix=error.fix or _advice(error.message)) from error


def parse(text: str, where: str) -> dict[str, Any]:
    """The keys of a sweep file and their values, as they are written."""
    try:
        # Derived from the safe loader: it makes plain values and nothing else.
        loader = _Loader(text)
        node = loader.get_single_node()
        _check_size(node, {}, 0)
        values = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadInput(
            f"{where}, {line}{error.problem or error}.", fix="mend the YAML: check indentation and colons"
        ) from error
    except RecursionError as error:
        raise BadInput(f"{where} is nested too deeply.", fix="see docs/sweeps.md for an example") from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadInput(f"{where} is not YAML: {error}.", fix="see docs/sweeps.md for an example") from error
    if not isinstance(values, dict):
        raise BadInput(
            f"{where} is {'empty' if values is None else 'not a mapping'}.",
            fix=f"write keys and values: {', '.join(KEYS)}",
        )
    for key in values:
        if key not in KEYS:
            raise BadInput(f"{where}: there is no key {key!r} in a sweep.", fix=did_you_mean(str(key), KEYS))
    # A key with nothing behind it is as good as none.
    return {str(key): value for key, value in values.items() if value is not None}


def _advice(message: str) -> str:
    if message.startswith("grid."):
        return "give each setting of the grid a list of values, e.g. model.width: [64, 128]"
    if message.startswith("cases"):
        return "give a list of mappings, e.g. - {recipe.steps: 200}"
    return "see docs/sweeps.md for an example"
