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
        values = _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise BadInput(
            f"{where}, {line}{error.problem or error}.", fix="mend the YAML: check indentation and colons"
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
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
