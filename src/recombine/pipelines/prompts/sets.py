"""Sets of prompts: combinations of concepts that a pipeline is asked to show. They are never listed."""

from __future__ import annotations

import abc
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from recombine.errors import BadInput, did_you_mean

PLACEHOLDER = re.compile(r"\{\s*(?P<article>a\s+)?(?P<name>[^{}]+?)\s*\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The sentence with its values filled in."""

    def value(match: re.Match[str]) -> str:
        word = values[match["name"]]
        return word if match["article"] is None else with_article(word)

    return PLACEHOLDER.sub(value, template)


def with_article(word: str) -> str:
    """The word with a or an, by its first letter. Values that need the other article must include it."""
    return f"{'an' if word[:1].lower() in set('aeiou') else 'a'} {word}"


def check_template(template: str, known: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    """Raise `BadInput` if a placeholder is unknown, a needed one is missing, or a bracket is unmatched."""
    used = [match["name"] for match in PLACEHOLDER.finditer(template)]
    for name in used:
        if name not in known:
            raise BadInput(
                f"{where}: {template!r} contains {{{name}}}, which is not a known name.", fix=did_you_mean(name, known)
            )
    if missing := [name for name in needed if name not in used]:
        raise BadInput(
            f"{where}: {template!r} does not contain {', '.join(missing)}.",
            fix=f"write {{{missing[0]}}} (or {{a {missing[0]}}}) where its value belongs",
        )
    if {"{", "}"} & set(PLACEHOLDER.sub("", template)):
        raise BadInput(f"{where}: unmatched bracket in {template!r}.", fix="write {name}")


Combination = tuple[str, ...]
"""One value per slot; for a set, its concepts in the order of the set."""
MOST_ALTERNATIVES = 20
"""Largest number of alternatives to the true value, for judges that compare prompts."""
CONCEPTS = "concept"
"""The slot name of all concepts of a set."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A question to a judge about an image. `str` gives its text."""

    place: str
    concept: str
    text: str
    prompt: str
    alternatives: tuple[str, ...]
    """The prompts with another concept in its place."""

    def __str__(self) -> str:
        return self.text


class PromptSet(BaseModel, abc.ABC):
    """The base class of both kinds of sets."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    exclusive: ClassVar[bool]
    """Each slot has exactly one value. Otherwise each concept is present or absent."""

    @property
    @abc.abstractmethod
    def places(self) -> tuple[str, ...]:
        """The slot of each value of a combination."""

    @abc.abstractmethod
    def values(self, place: str) -> tuple[str, ...]:
        """The possible values of a slot."""

    @property
    @abc.abstractmethod
    def size_of_space(self) -> int:
        """The number of combinations, including forbidden ones."""

    @abc.abstractmethod
    def combination(self, number: int) -> Combination:
        """The combination with this number, which is below `size_of_space`."""

    def allowed(self, combination: Combination) -> bool:
        """The combination is allowed."""
        return True

    @abc.abstractmethod
    def prompt(self, combination: Combination) -> str:
        """The sentence that asks for a combination, with the values in the given order."""

    @abc.abstractmethod
    def questions(self, combination: Combination) -> tuple[Question, ...]:
        """One question per concept. An image is a success if all are answered with yes."""

    def _question(self, place: str, combination: Combination, index: int, text: str, others: Sequence[str]) -> Question:
        """The question about one concept of a combination; in the alternatives, another concept is in its place."""
        changed = [(*combination[:index], other, *combination[index + 1 :]) for other in others]
        wrong = [other for other in changed if other != combination and self.allowed(other)][:MOST_ALTERNATIVES]
        return Question(place, combination[index], text, self.prompt(combination), tuple(map(self.prompt, wrong)))


class SetPrompts(PromptSet):
    """Several different concepts in one image: "an image with one cat, one dog and one fox"."""

    exclusive = False

    kind: Literal["set"] = "set"
    concepts: tuple[str, ...]
    size: int = 3
    """Number of concepts in an image."""
    template: str = "an image with {concepts}"
    each: str = "one {concept}"
    """The text of one concept in the template."""
    question: str = "Is there exactly one {concept} in the image?"

    @field_validator("concepts")
    @classmethod
    def _distinct(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return checked_values(given, "concepts")

    def model_post_init(self, context: Any, /) -> None:
        if not 1 <= self.size < len(self.concepts):
            raise BadInput(
                f"{self.size} of {len(self.concepts)} concepts: there is nothing to combine.",
                fix="give more concepts, or a smaller size",
            )
        for field, name in {"template": "concepts", "each": "concept", "question": "concept"}.items():
            check_template(getattr(self, field), (name,), (name,), field)

    @property
    def places(self) -> tuple[str, ...]:
        return (CONCEPTS,) * self.size

    def values(self, place: str) -> tuple[str, ...]:
        return self.concepts

    @property
    def size_of_space(self) -> int:
        return math.comb(len(self.concepts), self.size)

    def combination(self, number: int) -> Combination:
        # The combinatorial number system: no other combination is computed.
        chosen: list[str] = []
        for index, concept in enumerate(self.concepts):
            left = self.size - len(chosen)
            with_it = math.comb(len(self.concepts) - index - 1, left - 1) if left else 0
            if number < with_it:
                chosen.append(concept)
            else:
                number -= with_it
        return tuple(chosen)

    def prompt(self, combination: Combination) -> str:
        texts = [fill(self.each, {"concept": concept}) for concept in combination]
        return fill(self.template, {"concepts": ", ".join(texts)})

    def questions(self, combination: Combination) -> tuple[Question, ...]:
        others = [concept for concept in self.concepts if concept not in combination]
        texts = [fill(self.question, {"concept": concept}) for concept in combination]
        return tuple(self._question(CONCEPTS, combination, index, text, others) for index, text in enumerate(texts))


class SlotPrompts(PromptSet):
    """A value in each slot of a sentence: "a photo of a fox wearing a hat"."""

    exclusive = True

    kind: Literal["slots"] = "slots"
    slots: dict[str, tuple[str, ...]]
    """The values of each slot."""
    template: str
    asked: dict[str, str] = {}
    """The question about each slot. It may contain other slots too: "Is the {animal} wearing {a clothing}?"."""
    different: tuple[tuple[str, ...], ...] = ()
    """Groups of slots that must have different values."""

    @field_validator("slots")
    @classmethod
    def _distinct(cls, given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {name: checked_values(values, name) for name, values in given.items()}

    def model_post_init(self, context: Any, /) -> None:
        names = tuple(self.slots)
        if len(names) < 2:
            raise BadInput(
                f"Two slots or more are needed, got {len(names)}.",
                fix="add a slot: with one there is nothing to combine",
            )
        check_template(self.template, names, names, "template")
        known = [("asked", name) for name in self.asked]
        for where, name in [*known, *(("different", name) for group in self.different for name in group)]:
            if name not in names:
                raise BadInput(f"{where}: there is no slot {name!r}.", fix=f"slots: {', '.join(names)}")
        for name, question in self.asked.items():
            check_template(question, names, (name,), f"the question of {name}")

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.slots)

    def values(self, place: str) -> tuple[str, ...]:
        return self.slots[place]

    @property
    def size_of_space(self) -> int:
        return math.prod(len(values) for values in self.slots.values())

    def combination(self, number: int) -> Combination:
        chosen = []
        for values in reversed(self.slots.values()):
            number, index = divmod(number, len(values))
            chosen.append(values[index])
        return tuple(reversed(chosen))

    def allowed(self, combination: Combination) -> bool:
        named = dict(zip(self.slots, combination, strict=True))
        return all(len({named[name] for name in group}) == len(group) for group in self.different)

    def prompt(self, combination: Combination) -> str:
        return fill(self.template, dict(zip(self.slots, combination, strict=True)))

    def questions(self, combination: Combination) -> tuple[Question, ...]:
        named = dict(zip(self.slots, combination, strict=True))
        questions = []
        for index, name in enumerate(named):
            text = fill(self.asked.get(name, f"Does the image show {{{name}}} as {name}?"), named)
            questions.append(self._question(name, combination, index, text, self.slots[name]))
        return tuple(questions)


def checked_values(given: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The values without surrounding spaces. Raise `BadInput` unless there are at least two, all different and not empty."""
    values = tuple(value.strip() for value in given)
    twice = sorted({value for value in values if values.count(value) > 1})
    if len(values) < 2 or not all(values) or twice:
        many = f"{twice[0]!r} is there twice" if twice else f"there are {len(values)}"
        what = many if all(values) else "one is empty"
        raise BadInput(f"{where}: two or more different values are needed; {what}.", fix="change the list")
    return values
