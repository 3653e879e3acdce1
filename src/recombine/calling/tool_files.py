"""Function schemas from a file: the forms of OpenAI, Anthropic and MCP, and bare lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recombine.calling.functions import MISSING, Function, Library, Parameter, with_default_calls
from recombine.calling.json_schema import checked_schema
from recombine.errors import BadInput

PARAMETERS = ("parameters", "input_schema", "inputSchema")
"""Where the schema of the parameters stands, in the forms of OpenAI, Anthropic and MCP."""
RESULTS = ("returns", "response", "output_schema", "outputSchema", "output_parameters")
FORM = '[{"name": "weather", "description": "...", "parameters": {"type": "object", "properties": {...}}}]'
LARGEST = 20_000_000
"""Most bytes of a file of functions."""


def read_tools(path: str | Path) -> Library:
    """Read functions from a JSON file.

    Args:
        path: The file: a list of functions (`{"type": "function", "function": {...}}`, or `name`, `description` and
            `parameters`), or an object with the list under `tools` or `functions`. Results may have a schema under `returns`.

    Returns:
        The functions.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise BadInput(f"{path} has more than {LARGEST // 10**6} MB.", fix="give a file with function schemas only")
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}.", fix="name a JSON file with --tools") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}.", fix=f"write {FORM}") from None
    return make_library(given, str(path))


def make_library(given: Any, what: str = "the functions") -> Library:
    """Make functions of JSON data.

    Args:
        given: A list of functions, or an object with the list under `tools` or `functions`.
        what: Where the data comes from, in errors.

    Returns:
        The functions.
    """
    if isinstance(given, Mapping):
        given = next((given[key] for key in ("tools", "functions") if key in given), [given])
    if not isinstance(given, list):
        raise BadInput(f"{what}: expected a list of functions, got {type(given).__name__}.", fix=f"write {FORM}")
    functions = [_function(each, f"{what}, function {number}") for number, each in enumerate(given, 1)]
    names = [function.name for function in functions]
    return Library(with_default_calls(function, names) for function in functions)


def _function(given: Any, where: str) -> Function:
    if isinstance(given, Mapping) and isinstance(given.get("function"), Mapping):
        given = given["function"]
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"{where} has no name.", fix=f"write {FORM}")
    where = f"{where} ({name[:60]!r})"
    schema = next((given[key] for key in PARAMETERS if given.get(key) is not None), {})
    schema = checked_schema(schema, where)
    if schema.get("type", "object") != "object":
        raise BadInput(
            f"{where}: the parameters must be an object, got {schema['type']!r}.", fix='write "type": "object"'
        )
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if unknown := [each for each in required if each not in properties]:
        raise BadInput(f"{where}: the required parameter {unknown[0]!r} has no schema.", fix="add it to the properties")
    parameters = tuple(
        Parameter(
            each,
            inner if isinstance(inner, Mapping) else {},
            each in required,
            inner.get("default", MISSING) if isinstance(inner, Mapping) else MISSING,
        )
        for each, inner in properties.items()
    )
    returns = next((given[key] for key in RESULTS if given.get(key) is not None), None)
    if returns is not None:
        returns = checked_schema(returns, f"{where}, its result")
    description = given.get("description")
    return Function(name, description if isinstance(description, str) else "", parameters, returns)
