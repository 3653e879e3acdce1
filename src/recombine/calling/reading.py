"""Calls in a model's answer: as JSON, as Python, or as the `tool_calls` of a chat endpoint."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recombine.calling.calls import Call
from recombine.calling.functions import Library

LONGEST = 200_000
"""Longer answers are not read."""
DEEPEST = 50
TAGGED = re.compile(r"<(tool_call|function_call|functioncall|tool_calls)>(.*?)(?:</\1>|\Z)", re.DOTALL)
FENCED = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
REFERENCE = re.compile(r"[$#]?[{<(]*[$#]?(?P<label>[A-Za-z_]*\d*)(?:[.\[].*)?[})>]*[$]?", re.DOTALL)
ARGUMENTS = ("arguments", "parameters", "args", "input")
NAMES = ("name", "function", "tool", "function_name")
BESIDE = {"label", "id", "type", "index", "description"}
"""Keys that may stand beside a name and arguments."""
CONSTANTS = {"true": True, "false": False, "null": None}
"""What JSON calls Python's constants."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was read from an answer."""

    calls: tuple[Call, ...] = ()
    """The calls that are not inside others."""
    problem: str = ""
    """`prose`: no call was tried. `unreadable`: a call was tried that cannot be read. Empty if there are calls."""


PROSE, UNREADABLE = Reading(problem="prose"), Reading(problem="unreadable")


class _CannotRead(Exception):
    """This is not a call in this notation."""


def read_calls(text: str, library: Library | None = None) -> Reading:
    """Read the calls that a text contains.

    Read are JSON (`{"name": ..., "arguments": ...}`, alone, in lists, in each other, with labels that later calls refer to),
    Python (`f(x=g(y=1))`, `a = g(y=1)`, lists of calls), fenced code, and `<tool_call>` tags.

    Args:
        text: The answer of a model. What it thinks before `</think>` is left out.
        library: The functions. Positional arguments get the names of their parameters from it, a Python call inside a
            sentence counts if it names one of them, and a string that is a call of one of them counts as this call.

    Returns:
        The calls, or what the problem is.
    """
    text = text.rpartition("</think>")[2].strip()
    if not text or len(text) > LONGEST:
        return UNREADABLE if text else PROSE
    reader = _Reader(library)
    tagged = [piece for _, piece in TAGGED.findall(text)]
    fenced = [piece for piece in FENCED.findall(text) if piece.strip()]
    for pieces in (tagged, fenced, [text]):
        calls: list[Call] = []
        with contextlib.suppress(_CannotRead):
            for piece in pieces:
                calls += reader.read(piece.strip())
        if calls:
            return Reading(tuple(calls))
    for piece in _embedded(text):
        with contextlib.suppress(_CannotRead):
            if calls := reader.read(piece):
                return Reading(tuple(calls))
    return UNREADABLE if tagged or _looks_like_a_call(text, library) else PROSE


def read_tool_calls(tool_calls: Any) -> Reading:
    """Read the `tool_calls` of a chat message. Arguments are plain values: an endpoint carries out no inner calls.

    Args:
        tool_calls: The list of the message.

    Returns:
        The calls. If the arguments of one are not a JSON object, all are unreadable.
    """
    calls = []
    if not isinstance(tool_calls, Sequence) or isinstance(tool_calls, str):
        return UNREADABLE if tool_calls else PROSE
    for each in tool_calls:
        function = each.get("function") if isinstance(each, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str):
            return UNREADABLE
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments or "{}")
            except (ValueError, RecursionError):
                return UNREADABLE
        if not isinstance(arguments, Mapping):
            if arguments is not None:
                return UNREADABLE
            arguments = {}
        calls.append(Call(name, dict(arguments)))
    return Reading(tuple(calls)) if calls else PROSE


def _embedded(text: str) -> Iterator[str]:
    """Pieces of a text that may be calls: from a bracket to its end, and lines."""
    decoder = json.JSONDecoder()
    for start in [match.start() for match in re.finditer(r"[\[{]", text)][:DEEPEST]:
        with contextlib.suppress(ValueError, RecursionError):
            _, end = decoder.raw_decode(text, start)
            yield text[start:end]
    for line in text.splitlines():
        if "(" in line:
            yield line.strip().strip("`").lstrip("-*0123456789. ")


def _looks_like_a_call(text: str, library: Library | None) -> bool:
    """The text tries to be a call: it has a name and arguments, or begins a call of a known function."""
    if re.search(r'"(?:name|function)"\s*:', text) and re.search(r'"(?:arguments|parameters)"\s*:', text):
        return True
    return any(re.search(rf"(?<!\w){re.escape(name)}\(", text) for name in library or ())


class _Reader:
    """Reads one piece of text in either notation."""

    def __init__(self, library: Library | None) -> None:
        self._library = library

    def read(self, piece: str) -> list[Call]:
        piece = piece.strip()
        if not piece:
            return []
        try:
            document = json.loads(piece)
        except (ValueError, RecursionError):
            return self._python(piece)
        if not isinstance(document, (Mapping, list)):
            raise _CannotRead
        return self._json(document)

    # JSON

    def _json(self, document: Any) -> list[Call]:
        if isinstance(document, Mapping):
            inner = next((document[key] for key in ("tool_calls", "calls", "function_calls") if key in document), None)
            document = inner if isinstance(inner, list) else [document]
        made: list[Call] = []
        labels: dict[str, Call] = {}
        used: set[int] = set()
        for each in document:
            call = self._json_call(each, labels, used, 0)
            if call is None:
                raise _CannotRead
            made.append(call)
            labels[f"{len(made)}"] = call
            if isinstance(each, Mapping) and isinstance(each.get("label") or each.get("id"), str):
                labels[(each.get("label") or each["id"]).strip("$")] = call
        return [call for call in made if id(call) not in used]

    def _json_call(self, given: Any, labels: Mapping[str, Call], used: set[int], depth: int) -> Call | None:
        """The call that a JSON value is, or None."""
        if not isinstance(given, Mapping) or depth > DEEPEST:
            return None
        if isinstance(given.get("function"), Mapping):  # The form of a chat endpoint, written as text.
            given = given["function"]
        name = next((given[key] for key in NAMES if isinstance(given.get(key), str)), None)
        key = next((key for key in ARGUMENTS if key in given), None)
        if name is not None and (key is not None or set(given) <= {*NAMES, *BESIDE}):
            arguments = given.get(key, {}) if key else {}
            if set(given) - {*NAMES, *ARGUMENTS, *BESIDE}:
                return None
        elif len(given) == 1:  # {"function": {"parameter": value}}
            ((name, arguments),) = given.items()
            if not isinstance(arguments, Mapping) or (self._library is not None and name not in self._library):
                return None
        else:
            return None
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments or "{}")
            except (ValueError, RecursionError):
                return None
        if not isinstance(arguments, Mapping):
            return None
        values = {str(key): self._json_value(value, labels, used, depth) for key, value in arguments.items()}
        return Call(name, values)

    def _json_value(self, value: Any, labels: Mapping[str, Call], used: set[int], depth: int) -> Any:
        if isinstance(value, Mapping) and any(key in value for key in NAMES) and any(key in value for key in ARGUMENTS):
            call = self._json_call(value, labels, used, depth + 1)
            return value if call is None else call
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
            only = self._json_value(value[0], labels, used, depth + 1)
            return only if isinstance(only, Call) else value
        if not isinstance(value, str):
            return value
        if value[:1] in "$#{<" or value.strip("$") in labels:
            match = REFERENCE.fullmatch(value)
            call = labels.get(match["label"]) if match and match["label"] and not value.isdecimal() else None
            if call is not None:
                used.add(id(call))
                return call
        return self._text_value(value)

    def _text_value(self, value: str) -> Any:
        """A string, or the call of a known function that it is."""
        name = value.partition("(")[0].strip()
        if self._library is not None and value.rstrip().endswith(")") and name in self._library:
            with contextlib.suppress(_CannotRead):
                calls = self._python(value)
                if len(calls) == 1:
                    return calls[0]
        return value

    # Python

    def _python(self, piece: str) -> list[Call]:
        try:
            tree = ast.parse(piece, mode="exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _CannotRead from None
        made: list[Call] = []
        variables: dict[str, Call] = {}
        used: set[int] = set()
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0], statement.value
                calls = self._python_calls(value, variables, used)
                if isinstance(target, ast.Name) and len(calls) == 1:
                    variables[target.id] = calls[0]
                made += calls
            elif isinstance(statement, ast.Expr):
                made += self._python_calls(statement.value, variables, used)
            elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
                raise _CannotRead
        if not made or any("\n" in call.name for call in made):
            raise _CannotRead
        return [call for call in made if id(call) not in used]

    def _python_calls(self, node: ast.expr, variables: Mapping[str, Call], used: set[int]) -> list[Call]:
        if isinstance(node, (ast.List, ast.Tuple)):
            return [call for each in node.elts for call in self._python_calls(each, variables, used)]
        if isinstance(node, ast.Name) and node.id in variables:
            return []  # The last line names the result.
        if not isinstance(node, ast.Call):
            raise _CannotRead
        name = ast.unparse(node.func)
        known = self._library is None or name in self._library
        if not known and name == "print" and len(node.args) == 1:
            return self._python_calls(node.args[0], variables, used)
        return [self._python_call(node, variables, used)]

    def _python_call(self, node: ast.Call, variables: Mapping[str, Call], used: set[int]) -> Call:
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            raise _CannotRead
        name = ast.unparse(node.func)
        function = None if self._library is None else self._library.get(name)
        parameters = [] if function is None else [each.name for each in function.parameters]
        arguments: dict[str, Any] = {}
        for position, value in enumerate(node.args):
            # The name of an argument too many is none that a schema can have.
            key = parameters[position] if position < len(parameters) else f"positional {position + 1}"
            arguments[key] = self._python_value(value, variables, used)
        for keyword in node.keywords:
            if keyword.arg is None:
                given = self._python_value(keyword.value, variables, used)
                if not isinstance(given, Mapping):
                    raise _CannotRead
                arguments |= given
            else:
                arguments[keyword.arg] = self._python_value(keyword.value, variables, used)
        return Call(name, arguments)

    def _python_value(self, node: ast.expr, variables: Mapping[str, Call], used: set[int]) -> Any:
        inner = node
        while isinstance(inner, (ast.Attribute, ast.Subscript)):  # The result of a call, or a field of it.
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in variables:
            call = variables[inner.id]
            used.add(id(call))
            return call
        if isinstance(node, ast.Name) and node.id in CONSTANTS:
            return CONSTANTS[node.id]
        if isinstance(node, ast.Call):
            return self._python_call(node, variables, used)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._python_value(each, variables, used) for each in node.elts]
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            values = [self._python_value(each, variables, used) for each in node.values]
            return {str(key): value for key, value in zip(keys, values, strict=True)}
        try:
            value = ast.literal_eval(node)
            json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            raise _CannotRead from None
        return value
