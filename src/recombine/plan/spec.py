"""The description of a plan in a file or on the command line: space, constraints, costs and budget."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recombine.errors import BadInput, did_you_mean
from recombine.overrides import explain
from recombine.plan.expressions import parse
from recombine.plan.spec_file import Document, KeyPath, read_document
from recombine.plan.stronger import make_groups
from recombine.spaces import ProductSpace, Space, SubsetSpace

WIDEST = 5_000
"""The most levels, or modules, that a space may have: its certificate has a number for each pair of them."""

SPACES = ("factors", "levels", "subsets")
DOCUMENTS = ("", ".yaml", ".yml", ".toml")
"""The endings of plan files; others are model files."""
LISTS = ("forbid", "require", "include")
KEYS = (*SPACES, *LISTS, "cost", "costs", "budget", "strength", "stronger", "collected", "strategy", "seed")

LEVELS = "write levels^factors, for example --levels 3^13 or --levels '4^15 3^17 2^29'"
SUBSETS = "write the number of modules and the most in one combination, for example --subsets 16,3"


@dataclasses.dataclass(frozen=True)
class PlanSpec:
    """What a file or the command line says about a plan. `make_plan(**vars(spec))` makes the plan.

    Settings that are not given are None or empty.
    """

    space: Space
    forbid: tuple[str, ...] = ()
    """Expressions that no combination may satisfy."""
    require: tuple[str, ...] = ()
    """Expressions that every combination must satisfy."""
    include: tuple[str, ...] = ()
    """Expressions that at least one combination each must satisfy."""
    cost: str | None = None
    """one, levels or changes."""
    costs: dict[str, Any] = dataclasses.field(default_factory=dict)
    """The cost of levels: a number for each factor, or for each level of a factor."""
    budget: float | None = None
    strength: int | None = None
    stronger: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Groups of factors with a strength of their own."""
    collected: Path | list[Any] | None = None
    """The combinations that exist already, or a table of them."""
    strategy: str | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    """Remarks about the file."""


def read_spec(path: Path) -> PlanSpec:
    """Read a plan file (YAML or TOML), or a model file of PICT, ACTS or CTWedge.

    Args:
        path: The file. docs/planning.md lists its keys. Every other ending than .yaml, .yml and .toml is a model file.

    Returns:
        The description of the plan. Errors name the line.
    """
    if path.suffix.lower() not in DOCUMENTS and path.is_file():
        return _of_model(path)
    document = read_document(path)
    for key in document.values:
        if key not in KEYS:
            fix = "write constraints under forbid or require" if key == "constraints" else did_you_mean(key, KEYS)
            document.fail((key,), f"a plan has no key {key!r}.", fix)
    space = _space(document)
    lists = {name: _texts(document, name) for name in LISTS}
    _check_expressions(document, lists, space)
    costs = document.values.get("costs", {})
    if not isinstance(costs, dict):
        document.fail(
            ("costs",), "costs must be a mapping.", "for example costs: {camera: 2, object: {dog: 5, cat: 1}}"
        )
    collected = document.values.get("collected")
    if isinstance(collected, str):
        collected = path.parent / collected
    elif collected is not None and not isinstance(collected, list):
        document.fail(("collected",), "collected must be a file or a list of combinations.")
    return PlanSpec(
        space,
        **lists,
        cost=_text(document, "cost"),
        costs=costs,
        budget=_number(document, "budget"),
        strength=_whole(document, "strength"),
        stronger=_stronger(document, space),
        collected=collected,
        strategy=_text(document, "strategy"),
        seed=_whole(document, "seed"),
    )


def _of_model(path: Path) -> PlanSpec:
    from recombine.plan.models import read_model

    model = read_model(path)
    _check_width(sum(len(one.values) for one in model.parameters))
    space = ProductSpace(factors=tuple((one.name, one.values) for one in model.parameters))
    return PlanSpec(space, forbid=model.forbidden, require=model.rules, stronger=model.stronger, notes=model.notes)


def levels_space(text: str) -> ProductSpace:
    """The product space of a text such as `3^13` or `4^15 3^17 2^29`: factors f1, f2, ... with levels 0, 1, ..."""
    counts: list[int] = []
    for piece in re.split(r"[\s,]+", text.strip()):
        match = re.fullmatch(r"(\d{1,6})(?:\^(\d{1,6}))?", piece, re.ASCII)
        if match is None:
            raise BadInput(f"{piece!r} in the levels {text[:80]!r} cannot be read.", fix=LEVELS)
        levels, factors = int(match[1]), int(match[2] or 1)
        if not levels or not factors:
            raise BadInput(f"{piece!r} describes no factor: both numbers must be at least 1.", fix=LEVELS)
        _check_width(sum(counts) + levels * factors)
        counts += [levels] * factors
    return ProductSpace(factors=tuple((f"f{index}", count) for index, count in enumerate(counts, 1)))  # pyright: ignore[reportArgumentType]


def subsets_space(text: str) -> SubsetSpace:
    """The subset space of a text: `16,3` is up to 3 of 16 modules, and `16,3,2` is 2 to 3 of them."""
    pieces = re.split(r"[\s,]+", text.strip())
    if len(pieces) not in (2, 3) or not all(re.fullmatch(r"\d{1,6}", piece, re.ASCII) for piece in pieces):
        raise BadInput(f"The subsets {text[:80]!r} cannot be read.", fix=SUBSETS)
    return _subsets([int(piece) for piece in pieces])


def _subsets(numbers: list[int]) -> SubsetSpace:
    _check_width(numbers[0])
    try:
        fewest = numbers[2] if len(numbers) > 2 else 1
        return SubsetSpace(modules=numbers[0], max_active=numbers[1], min_active=fewest)
    except ValidationError as error:
        raise BadInput(explain(error).message, fix=SUBSETS) from error


def _check_width(width: int) -> None:
    if width > WIDEST:
        raise BadInput(
            f"This space has more than {WIDEST} levels or modules.", fix="keep the factors that matter, or merge levels"
        )


def _space(document: Document) -> Space:
    given = [key for key in SPACES if key in document.values]
    if len(given) != 1:
        problem = "does not describe the space" if not given else f"describes the space twice, by {' and '.join(given)}"
        document.fail((), f"the file {problem}.", "give one of factors, levels and subsets")
    key = given[0]
    value = document.values[key]
    try:
        if key == "factors":
            return _factors(document, value)
        if isinstance(value, list):
            value = (" " if key == "levels" else ",").join(map(str, value))
        if not isinstance(value, str):
            document.fail((key,), f"{key} cannot be read.", LEVELS if key == "levels" else SUBSETS)
        return levels_space(value) if key == "levels" else subsets_space(value)
    except BadInput as error:
        if error.message.startswith(document.where):
            raise
        document.fail((key,), error.message, error.fix)


def _factors(document: Document, given: Any) -> ProductSpace:
    expected = "give a mapping such as factors: {colour: [red, blue], height: 3}"
    if not isinstance(given, dict) or not given:
        document.fail(("factors",), "factors must be a mapping from names to levels.", expected)
    factors: list[tuple[str, tuple[str, ...]]] = []
    for name, levels in given.items():
        where: KeyPath = ("factors", name)
        if isinstance(levels, str):
            if not re.fullmatch(r"\d{1,6}", levels, re.ASCII) or not int(levels):
                document.fail(
                    where, f"the factor {name!r} needs a list of levels or their number, got {levels!r}.", expected
                )
            _check_width(int(levels))
            levels = [str(level) for level in range(int(levels))]
        if not isinstance(levels, list) or not levels or not all(isinstance(level, str) for level in levels):
            document.fail(where, f"the factor {name!r} needs a list of levels or their number.", expected)
        seen = set[str]()
        for index, level in enumerate(levels):
            if level in seen:
                document.fail((*where, index), f"the factor {name!r} has the level {level!r} twice.", "remove one")
            seen.add(level)
        factors.append((name, tuple(levels)))
        _check_width(sum(len(levels) for _, levels in factors))
    return ProductSpace(factors=tuple(factors))


def _texts(document: Document, key: str) -> tuple[str, ...]:
    given = document.values.get(key, [])
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        document.fail(
            (key,), f"{key} must be a list of expressions.", f"for example {key}: ['colour=red and object=dog']"
        )
    return tuple(given)


def _stronger(document: Document, space: Space) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Groups such as `stronger: ["colour, object, table @ 3"]`."""
    groups = []
    for index, text in enumerate(_texts(document, "stronger")):
        try:
            groups.append(parse_group(text, space))
        except BadInput as error:
            document.fail(("stronger", index), error.message, error.fix)
    return tuple(groups)


def parse_group(text: str, space: Space) -> tuple[tuple[str, ...], int]:
    """A group of factors with its strength, from a text such as `colour, object, table @ 3`."""
    names, at, strength = text.rpartition("@")
    factors = tuple(name.strip() for name in names.split(",") if name.strip())
    if not at or not strength.strip().isdecimal():
        raise BadInput(f"The group {text[:80]!r} cannot be read.", fix="write factor, factor, factor @ 3")
    make_groups(space, [(factors, int(strength))])
    return factors, int(strength)


def _check_expressions(document: Document, lists: dict[str, tuple[str, ...]], space: Space) -> None:
    """Parse all expressions while their lines are known."""
    for key, texts in lists.items():
        for index, text in enumerate(texts):
            try:
                parse(text, space)
            except BadInput as error:
                document.fail((key, index), error.message, error.fix)


def _text(document: Document, key: str) -> str | None:
    given = document.values.get(key)
    if given is not None and not isinstance(given, str):
        document.fail((key,), f"{key} must be a word.")
    return given


def _number(document: Document, key: str) -> float | None:
    given = _text(document, key)
    try:
        number = None if given is None else float(given)
    except ValueError:
        document.fail((key,), f"{key} must be a number, got {given!r}.")
    if number is not None and not (math.isfinite(number) and number >= 0):
        document.fail((key,), f"{key} must be a number of at least 0, got {given!r}.")
    return number


def _whole(document: Document, key: str) -> int | None:
    given = _text(document, key)
    if given is not None and not re.fullmatch(r"\d{1,12}", given, re.ASCII):
        document.fail((key,), f"{key} must be an integer, got {given!r}.")
    return None if given is None else int(given)
