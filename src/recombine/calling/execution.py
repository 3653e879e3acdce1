"""Carrying out programs of calls with the code of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recombine.calling.calls import Call
from recombine.calling.functions import MISSING, Library
from recombine.calling.json_schema import JsonSchema
from recombine.errors import RecombineError


class CannotRun(RecombineError):
    """A call names no function with code, or its arguments do not fit."""


def execute(program: Sequence[Call], library: Library) -> list[Any]:
    """Carry out a program.

    Args:
        program: The calls; inner ones are carried out first.
        library: The functions, with their code.

    Returns:
        The result of each outermost call.
    """
    return [_run(call, library) for call in program]


def _run(call: Call, library: Library) -> Any:
    function = library.get(call.name)
    if function is None or function.run is None:
        raise CannotRun(f"{call.name} has no code.")
    given: dict[str, Any] = {}
    for parameter in function.parameters:
        value = call.arguments.get(parameter.name, parameter.default)
        if value is MISSING:
            if parameter.required:
                raise CannotRun(f"{call.name} needs {parameter.name}.")
            continue
        value = _run(value, library) if isinstance(value, Call) else value
        if not JsonSchema(parameter.schema).valid(value):
            raise CannotRun(f"{call.name}: {parameter.name} cannot be {value!r}.")
        given[parameter.name] = value
    if unknown := [name for name in call.arguments if name not in function]:
        raise CannotRun(f"{call.name} has no parameter {unknown[0]}.")
    try:
        return function.run(**given)
    except Exception as error:
        raise CannotRun(f"{call.name}: {type(error).__name__}: {error}") from error
