"""Functions that a model may call: name, description, parameters as JSON Schema, and the code where it is known."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from recombine.calling.calls import Call
from recombine.calling.json_schema import JsonSchema
from recombine.errors import BadInput, did_you_mean

PYTHON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
"""The JSON Schema types of Python's types."""


class Missing:
    """There is no default: None would be one."""

    def __repr__(self) -> str:
        return "no default"


MISSING = Missing()


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema without references."""
    required: bool = True
    default: Any = MISSING
    """A JSON value, or a `Call` whose result is the default."""

    @property
    def description(self) -> str:
        """What the schema says about the parameter."""
        return str(self.schema.get("description", ""))


@dataclasses.dataclass(frozen=True)
class Function:
    """A function that a model may call."""

    name: str
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    returns: Mapping[str, Any] | None = None
    """JSON Schema of the result; None if unknown."""
    run: Callable[..., Any] | None = dataclasses.field(default=None, compare=False)
    """The code; None if only the description is known."""

    def __getitem__(self, parameter: str) -> Parameter:
        for each in self.parameters:
            if each.name == parameter:
                return each
        raise KeyError(parameter)

    def __contains__(self, parameter: object) -> bool:
        return any(each.name == parameter for each in self.parameters)

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters as one JSON Schema."""
        return {
            "type": "object",
            "properties": {each.name: dict(each.schema) for each in self.parameters},
            "required": [each.name for each in self.parameters if each.required],
        }

    def tool(self) -> dict[str, Any]:
        """The function in the form that chat endpoints take as `tools`."""
        described = {"name": self.name, "description": self.description, "parameters": self.schema}
        return {"type": "function", "function": described}

    @classmethod
    def of(cls, code: Callable[..., Any]) -> Function:
        """Describe a Python function by its signature, its type hints and the first line of its docstring.

        Args:
            code: The function. Its parameters need type hints: str, int, float, bool, list, dict, list[int] ...

        Returns:
            The function with its code. An unknown type raises `BadInput`.
        """
        name = getattr(code, "__name__", repr(code))
        hints = typing.get_type_hints(code)
        parameters = []
        for each in inspect.signature(code).parameters.values():
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                raise BadInput(
                    f"The parameter {each.name!r} of {name} cannot be given by name.",
                    fix="use parameters that can be given by name",
                )
            schema = _schema_of(hints.get(each.name), f"the parameter {each.name!r} of {name}")
            required = each.default is each.empty
            parameters.append(Parameter(each.name, schema, required, MISSING if required else each.default))
            if not required:
                _check_json(each.default, f"The default of the parameter {each.name!r} of {name}")
        returns = _schema_of(hints["return"], f"the result of {name}") if "return" in hints else None
        description = (inspect.getdoc(code) or "").split("\n")[0]
        return cls(name, description, tuple(parameters), returns, code)


def _schema_of(hint: Any, what: str) -> dict[str, Any]:
    if hint is None:
        raise BadInput(f"{what[0].upper()}{what[1:]} has no type.", fix="add a type hint: str, int, list[int], ...")
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return {"type": "array", "items": _schema_of(inner[0], what)}
    if origin is dict:
        return {"type": "object"}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if each is type(None) else _schema_of(each, what) for each in inner]}
    if hint not in PYTHON_TYPES:
        known = ", ".join(each.__name__ for each in PYTHON_TYPES)
        raise BadInput(f"The type {hint!r} of {what} is not known.", fix=f"use one of {known}, list[...], Literal[...]")
    return {"type": PYTHON_TYPES[hint]}


def _check_json(value: Any, what: str) -> None:
    """Refuse what JSON cannot hold, such as a list that contains itself."""
    if isinstance(value, Call):
        return
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        # `json` says "Circular reference detected" of values that contain themselves.
        reason = "contains itself" if "ircular" in str(error) else f"is not JSON ({error})"
        raise BadInput(f"{what} {reason}.", fix="use a default that JSON can hold") from None


class Library(Mapping[str, Function]):
    """Functions by name.

    Args:
        functions: The functions. Names must differ, and a default may not depend on itself.
    """

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions: dict[str, Function] = {}
        for function in functions:
            if function.name in self._functions:
                raise BadInput(f"Two functions are called {function.name!r}.", fix="give every function its own name")
            self._functions[function.name] = function
        if not self._functions:
            raise BadInput("There are no functions.", fix="give at least one function")
        _check_defaults(self)

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Library({', '.join(self)})"

    def tools(self) -> list[dict[str, Any]]:
        """The functions in the form that chat endpoints take as `tools`."""
        return [function.tool() for function in self.values()]


def _check_defaults(library: Library) -> None:
    """Defaults that are calls name functions of the library, and do not depend on themselves."""
    needs: dict[str, list[str]] = {}
    for function in library.values():
        for parameter in function.parameters:
            if isinstance(parameter.default, Call):
                for call in parameter.default.in_order():
                    if call.name not in library:
                        raise BadInput(
                            f"The default of {function.name}.{parameter.name} calls {call.name!r}, which is not there.",
                            fix=did_you_mean(call.name, library),
                        )
                    needs.setdefault(function.name, []).append(call.name)
    settled: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " -> ".join((*path[path.index(name) :], name))
            raise BadInput(f"A default depends on itself: {circle}.", fix="give one of these parameters a plain value")
        if name not in settled:
            for other in needs.get(name, ()):
                visit(other, (*path, name))
            settled.add(name)

    for name in needs:
        visit(name, ())


def with_default_calls(function: Function, names: Iterable[str]) -> Function:
    """Read defaults of the form `{"name": ..., "arguments": ...}` as calls, where the library has that function."""
    known = set(names)
    parameters = []
    for each in function.parameters:
        given = each.default
        if (
            isinstance(given, Mapping)
            and set(given) == {"name", "arguments"}
            and given["name"] in known
            and isinstance(given["arguments"], Mapping)
            and JsonSchema(each.schema).kind != "object"
        ):
            each = dataclasses.replace(each, default=Call(given["name"], given["arguments"]))
        parameters.append(each)
    return dataclasses.replace(function, parameters=tuple(parameters))
