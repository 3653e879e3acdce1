"""Model files of CTWedge: Model, Parameters, Constraints."""

from __future__ import annotations

import re

from recombine.plan.models.rules import Rules
from recombine.plan.models.source import Model, Parameter, Source, check_names, parameter, tokens_of

MOST = 5000
"""The most values of a range."""
DECLARED = re.compile(
    r"\s*(?P<name>[\w.]+)\s*::?\s*(?:(?P<boolean>Boolean)\b|\{(?P<values>[^}]*)\}"
    r"|\[\s*(?P<low>-?\d+)\s*\.\.\s*(?P<high>-?\d+)\s*\](?:\s*step\s*(?P<step>\d+))?)\s*;?",
    re.IGNORECASE,
)


def read(source: Source) -> Model:
    """A model of CTWedge."""
    text = re.sub(r"//.*|/\*[\s\S]*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), source.text)
    source = Source(source.where, text)
    head = re.match(r"\s*Model\s+\w+\s*Parameters\s*:", text, re.IGNORECASE)
    if head is None:
        source.fail(0, "expected Model, a name and Parameters:", "begin with: Model Name Parameters:")
    body = re.search(r"\bConstraints\s*:", text, re.IGNORECASE)
    end = body.start() if body else len(text)
    parameters, at = list[tuple[Parameter, int]](), head.end()
    while text[at:end].strip():
        match = DECLARED.match(text, at, end)
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
        if match is None:
            source.fail(
                start, "this parameter cannot be read", "write name: {a, b}, name: Boolean or name: [1 .. 5] step 2"
            )
        parameters.append((_parameter(source, match, start), start))
        at = match.end()
    check_names(source, parameters)
    known = [one for one, _ in parameters]
    return Model(tuple(known), tuple(_rules(source, known, body.end()) if body else ()))


def _parameter(source: Source, match: re.Match[str], at: int) -> Parameter:
    name = match["name"]
    if match["boolean"]:
        return parameter(source, name, ("true", "false"), at)
    if match["values"] is not None:
        # Commas between values are optional.
        values = [piece.strip('"') for piece in re.findall(r'"[^"]*"|[^\s,]+', match["values"])]
        return parameter(source, name, values, at)
    low, high, step = int(match["low"]), int(match["high"]), int(match["step"] or 1)
    if step < 1 or not 0 <= high - low <= MOST * step:
        source.fail(at, f"the range of {name!r} has no values, or more than {MOST}", "write [1 .. 5] step 2")
    return parameter(source, name, [str(value) for value in range(low, high + 1, step)], at)


def _rules(source: Source, known: list[Parameter], begin: int) -> list[str]:
    """The constraints, each between two #."""
    marks = [match.start() for match in re.finditer("#", source.text[begin:])]
    if len(marks) % 2 or (not marks and source.text[begin:].strip()):
        source.fail(
            begin + (marks[-1] if marks else 0), "a constraint is not closed", "write each constraint between two #"
        )
    rules = []
    for first, last in zip(marks[::2], marks[1::2], strict=True):
        parser = Rules(source, known, tokens_of(source, begin + first + 1, begin + last, brackets=False))
        rules.append(parser.constraint())
        if parser.here.kind != "end":
            parser.fail(f"{parser.named()} is not expected here", "arithmetic is not read")
    return rules
