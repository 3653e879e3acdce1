"""Model files of PICT: parameters, sub-models with a strength of their own, constraints."""

from __future__ import annotations

import re

from recombine.errors import did_you_mean
from recombine.plan.models.rules import Rules, has
from recombine.plan.models.source import Model, Parameter, Source, check_names, parameter, split_values, tokens_of

STARTS = re.compile(r"\s*(?:IF\b|NOT\b|\[|\()", re.IGNORECASE)
"""How a constraint begins."""


def read(source: Source) -> Model:
    """A model of PICT."""
    lines, at = list[tuple[int, str]](), 0
    # Comments become spaces, so that places in the text stay.
    text = re.sub(r"(?m)^[ \t]*#.*$", lambda match: " " * len(match[0]), source.text)
    source = Source(source.where, text)
    for line in text.splitlines(keepends=True):
        lines.append((at, line))
        at += len(line)
    parameters, groups, notes = list[tuple[Parameter, int]](), list[tuple[int, str]](), dict[str, None]()
    begin = len(text)
    for at, line in lines:
        if not line.strip():
            continue
        if STARTS.match(line):
            begin = at
            break
        if line.lstrip().startswith("{"):
            groups.append((at, line))
        else:
            parameters.append((_parameter(source, at, line.rstrip(), parameters, notes), at))
    check_names(source, parameters)
    known = [one for one, _ in parameters]
    parser = Rules(source, known, tokens_of(source, begin, len(text), brackets=True))
    rules = []
    while parser.here.kind != "end":
        rules.append(parser.constraint())
        if not parser.take(";"):
            parser.fail(f"expected ';' at the end of a constraint, got {parser.named()}", "end each constraint with ;")
    failing = [one for one in known if one.negative]
    forbidden = [
        f"{has(first, sorted(first.negative))} and {has(second, sorted(second.negative))}"
        for index, first in enumerate(failing)
        for second in failing[index + 1 :]
    ]
    stronger = tuple(group for at, line in groups if (group := _group(source, at, line, known)) is not None)
    return Model(tuple(known), tuple(rules), tuple(forbidden), stronger, tuple(notes))


def _parameter(
    source: Source, at: int, line: str, before: list[tuple[Parameter, int]], notes: dict[str, None]
) -> Parameter:
    """A parameter: name: value, alias | value, ~negative, value (weight), <other parameter>."""
    name, colon, _ = line.partition(":")
    if not colon:
        source.fail(at + len(line), "expected ':' after the name of a parameter", "write name: value, value")
    values, aliases, negative = list[str](), dict[str, str](), set[str]()
    for piece, place in split_values(source, at + len(name) + 1, at + len(line)):
        if match := re.fullmatch(r"<\s*(.+?)\s*>", piece):
            other = next((one for one, _ in before if one.name.lower() == match[1].lower()), None)
            if other is None:
                known = [one.name for one, _ in before]
                source.fail(place, f"there is no parameter called {match[1]!r} above", did_you_mean(match[1], known))
            values += other.values
            aliases |= other.aliases
            negative |= other.negative
            continue
        if match := re.fullmatch(r"(.*\S)\s*\(\s*\d+\s*\)", piece):
            notes["Weights of values are ignored: a plan uses values as evenly as coverage allows."] = None
            piece = match[1]
        fails = piece.startswith("~")
        names = [_bare(one) for one in piece.removeprefix("~").split("|")]
        if not all(names):
            source.fail(place, f"the parameter {name.strip()!r} has an empty value", "write name: value, value")
        values.append(names[0])
        aliases |= dict.fromkeys(names[1:], names[0])
        negative |= {names[0]} if fails else set()
    return parameter(source, name.strip(), values, at, aliases=aliases, negative=frozenset(negative))


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _group(source: Source, at: int, line: str, known: list[Parameter]) -> tuple[tuple[str, ...], int] | None:
    """A sub-model: { A, B, C } @ 3."""
    match = re.fullmatch(r"\s*\{([^}]*)\}\s*(?:@\s*(\d+))?\s*", line)
    if match is None:
        source.fail(at, "this sub-model cannot be read", "write { A, B, C } @ 3")
    names = []
    for piece, place in split_values(source, at + match.start(1), at + match.end(1)):
        found = next((one.name for one in known if one.name.lower() == piece.lower()), None)
        if found is None:
            source.fail(
                place, f"there is no parameter called {piece!r}", did_you_mean(piece, [one.name for one in known])
            )
        names.append(found)
    strength = int(match[2] or 2)
    if not 1 <= strength <= len(names):
        source.fail(
            at + match.start(2),
            f"the strength {strength} is not possible for {len(names)} parameters",
            f"write 1 to {len(names)}",
        )
    return (tuple(names), strength) if strength > 2 else None
