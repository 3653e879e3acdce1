"""Sentences with holes: {animal} is a value as it is, {a animal} has its article."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recombine.errors import BadInput, did_you_mean

HOLE = re.compile(r"\{\s*(?P<article>a\s+)?(?P<name>[^{}]+?)\s*\}")


def holes(template: str) -> tuple[str, ...]:
    """The names in a template, each once, in their order."""
    return tuple(dict.fromkeys(found["name"] for found in HOLE.finditer(template)))


def fill(template: str, values: Mapping[str, str]) -> str:
    """The sentence with its values."""

    def value(found: re.Match[str]) -> str:
        word = values[found["name"]]
        return word if found["article"] is None else with_article(word)

    return HOLE.sub(value, template)


def with_article(word: str) -> str:
    """By the first letter, which is right for most words; give the others their article in the values."""
    return f"{'an' if word[:1].lower() in set('aeiou') else 'a'} {word}"


def check_template(template: str, known: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    """BadInput if a hole has no value, a needed one is not there, or a bracket is left over."""
    found = holes(template)
    for name in found:
        if name not in known:
            raise BadInput(
                f"{where}: {template!r} asks for {{{name}}}, which is no name here.",
                fix=did_you_mean(name, known),
            )
    missing = [name for name in needed if name not in found]
    if missing:
        raise BadInput(
            f"{where}: {template!r} says nothing of {', '.join(missing)}.",
            fix=f"write {{{missing[0]}}} (or {{a {missing[0]}}}) where its value is to stand",
        )
    if "{" in HOLE.sub("", template) or "}" in HOLE.sub("", template):
        raise BadInput(f"{where}: a bracket is left over in {template!r}.", fix="write {name}")
