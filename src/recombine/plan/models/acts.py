"""Model files of ACTS, in its text format: [System], [Parameter], [Relation], [Constraint]."""

from __future__ import annotations

import re

from recombine.errors import did_you_mean
from recombine.plan.models.rules import Rules
from recombine.plan.models.source import Model, Parameter, Source, check_names, parameter, split_values, tokens_of

SECTIONS = ("system", "parameter", "relation", "constraint", "misc", "test set")
BOOLEAN = ("true", "false")


def read(source: Source) -> Model:
    """A model of ACTS."""
    text = re.sub(r"(?m)--.*$", lambda match: " " * len(match[0]), source.text)
    source = Source(source.where, text)
    section, at = "", 0
    parameters, relations, rules = list[tuple[Parameter, int]](), list[tuple[int, str]](), list[tuple[int, str]]()
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if match := re.fullmatch(r"\[([\w ]+)\]", bare):
            section = match[1].strip().lower()
            if section.removesuffix("s") not in SECTIONS:
                source.fail(at + line.index("["), f"there is no section {match[1]!r}", did_you_mean(section, SECTIONS))
            section = section.removesuffix("s")
        elif bare and section == "parameter":
            parameters.append((_parameter(source, at, line.rstrip()), at))
        elif bare and section == "relation":
            relations.append((at, line.rstrip()))
        elif bare and section == "constraint":
            rules.append((at, line.rstrip()))
        elif bare and not section:
            source.fail(at, "text before the first section", "begin with [System]")
        at += len(line)
    check_names(source, parameters)
    known = [one for one, _ in parameters]
    written = []
    for at, line in rules:
        parser = Rules(source, known, tokens_of(source, at, at + len(line), brackets=False))
        written.append(parser.constraint())
        if parser.here.kind != "end":
            parser.fail(
                f"{parser.named()} is not expected here", "write one constraint per line; arithmetic is not read"
            )
    stronger = tuple(group for at, line in relations if (group := _relation(source, at, line, known)) is not None)
    return Model(tuple(known), tuple(written), (), stronger)


def _parameter(source: Source, at: int, line: str) -> Parameter:
    """A parameter: name (enum): a, b."""
    match = re.match(r"\s*(.+?)\s*(?:\((\w+)\))?\s*:", line)
    if match is None:
        source.fail(at, "this parameter cannot be read", "write name (enum): value, value")
    kind = (match[2] or "enum").lower()
    if kind not in ("enum", "int", "boolean", "bool", "range"):
        source.fail(at + match.start(2), f"there is no type {match[2]!r}", "write enum, int or boolean")
    values = [piece.strip('"') for piece, _ in split_values(source, at + match.end(), at + len(line))]
    if kind.startswith("bool") and values == [""]:
        values = list(BOOLEAN)
    return parameter(source, match[1], values, at)


def _relation(source: Source, at: int, line: str, known: list[Parameter]) -> tuple[tuple[str, ...], int] | None:
    """A relation: R1: (A, B, C, 3)."""
    match = re.search(r"\(([^()]*)\)", line)
    pieces = split_values(source, at + match.start(1), at + match.end(1)) if match else []
    if len(pieces) < 2 or not pieces[-1][0].isdecimal():
        source.fail(at, "this relation cannot be read", "write name: (A, B, C, 3), with the strength last")
    names = []
    for piece, place in pieces[:-1]:
        found = next((one.name for one in known if one.name.lower() == piece.lower()), None)
        if found is None:
            source.fail(
                place, f"there is no parameter called {piece!r}", did_you_mean(piece, [one.name for one in known])
            )
        names.append(found)
    strength = int(pieces[-1][0])
    if not 1 <= strength <= len(names):
        source.fail(pieces[-1][1], f"the strength {strength} is not possible for {len(names)} parameters")
    return (tuple(names), strength) if strength > 2 else None
