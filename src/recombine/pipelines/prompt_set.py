"""A set of prompts: the combinations of concepts that a pipeline is asked for, without listing them."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from recombine.errors import BadInput
from recombine.pipelines.templates import check_template, fill

Combination = tuple[str, ...]
"""A value for each place; of a set, its concepts in the order of the set."""
MOST_ALTERNATIVES = 20
"""So many other values stand against the true one, for judges that compare."""
CONCEPTS = "concept"
"""The place of all concepts of a set."""


@dataclasses.dataclass(frozen=True)
class Question:
    """What a judge is asked of an image; as text, it is the question."""

    place: str
    concept: str
    text: str
    prompt: str
    alternatives: tuple[str, ...]
    """The prompt with another concept in its place."""

    def __str__(self) -> str:
        return self.text


class PromptSet(BaseModel, abc.ABC):
    """Base of both kinds."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    exclusive: ClassVar[bool]
    """Whether each place has one value; in a set, every concept is there or not."""

    @property
    @abc.abstractmethod
    def places(self) -> tuple[str, ...]:
        """The place of each of a combination's values."""

    @abc.abstractmethod
    def values(self, place: str) -> tuple[str, ...]:
        """What can stand in a place."""

    @property
    @abc.abstractmethod
    def size_of_space(self) -> int:
        """How many combinations there are, forbidden ones included."""

    @abc.abstractmethod
    def combination(self, number: int) -> Combination:
        """The combination of a number below `size_of_space`."""

    def allowed(self, combination: Combination) -> bool:
        """Whether it may be asked for."""
        return True

    @abc.abstractmethod
    def prompt(self, combination: Combination) -> str:
        """The sentence that asks for a combination, in the order in which it is given."""

    @abc.abstractmethod
    def questions(self, combination: Combination) -> tuple[Question, ...]:
        """One for each concept: all must be right."""


class SetPrompts(PromptSet):
    """So many different concepts in one image, out of many: "an image with one cat, one dog and one fox"."""

    exclusive = False

    kind: Literal["set"] = "set"
    concepts: tuple[str, ...]
    size: int = 3
    """Concepts in an image."""
    template: str = "an image with {concepts}"
    each: str = "one {concept}"
    """How a concept stands in the template."""
    question: str = "Is there exactly one {concept} in the image?"

    @field_validator("concepts")
    @classmethod
    def _distinct(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        return checked_values(given, "concepts")

    def model_post_init(self, context: Any, /) -> None:
        if not 1 <= self.size < len(self.concepts):
            raise BadInput(
                f"{self.size} of {len(self.concepts)} concepts: there is nothing to choose.",
                fix="give more concepts, or a smaller size",
            )
        check_template(self.template, ("concepts",), ("concepts",), "template")
        check_template(self.each, ("concept",), ("concept",), "each")
        check_template(self.question, ("concept",), ("concept",), "question")

    @property
    def places(self) -> tuple[str, ...]:
        return (CONCEPTS,) * self.size

    def values(self, place: str) -> tuple[str, ...]:
        return self.concepts

    @property
    def size_of_space(self) -> int:
        return math.comb(len(self.concepts), self.size)

    def combination(self, number: int) -> Combination:
        # The combinatorial number system: no other combination is looked at.
        found, left = [], self.size
        for place in range(len(self.concepts)):
            with_it = math.comb(len(self.concepts) - place - 1, left - 1) if left else 0
            if left and number < with_it:
                found.append(self.concepts[place])
                left -= 1
            else:
                number -= with_it
        return tuple(found)

    def prompt(self, combination: Combination) -> str:
        told = [fill(self.each, {"concept": one}) for one in combination]
        return fill(self.template, {"concepts": ", ".join(told)})

    def questions(self, combination: Combination) -> tuple[Question, ...]:
        prompt = self.prompt(combination)
        others = [one for one in self.concepts if one not in combination]
        return tuple(
            Question(
                CONCEPTS,
                concept,
                fill(self.question, {"concept": concept}),
                prompt,
                tuple(
                    self.prompt(tuple(other if one == concept else one for one in combination))
                    for other in others[:MOST_ALTERNATIVES]
                ),
            )
            for concept in combination
        )


class SlotPrompts(PromptSet):
    """A value in each slot of a sentence: "a photo of a fox wearing a hat"."""

    exclusive = True

    kind: Literal["slots"] = "slots"
    slots: dict[str, tuple[str, ...]]
    """What can stand in each."""
    template: str
    asked: dict[str, str] = {}
    """The question of each slot. It may name other slots too: "Is the {animal} wearing {a clothing}?"."""
    different: tuple[tuple[str, ...], ...] = ()
    """Slots that never have the same value."""

    @field_validator("slots")
    @classmethod
    def _distinct(cls, given: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {name: checked_values(values, name) for name, values in given.items()}

    def model_post_init(self, context: Any, /) -> None:
        names = tuple(self.slots)
        if len(names) < 2:
            raise BadInput(f"Slots: {len(names)}; nothing is combined.", fix="give two slots or more")
        check_template(self.template, names, names, "template")
        for name, question in self.asked.items():
            _known(name, names, "asked")
            check_template(question, names, (name,), f"the question of {name}")
        for group in self.different:
            for name in group:
                _known(name, names, "different")

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.slots)

    def values(self, place: str) -> tuple[str, ...]:
        return self.slots[place]

    @property
    def size_of_space(self) -> int:
        return math.prod(len(values) for values in self.slots.values())

    def combination(self, number: int) -> Combination:
        found = []
        for values in reversed(self.slots.values()):
            number, place = divmod(number, len(values))
            found.append(values[place])
        return tuple(reversed(found))

    def allowed(self, combination: Combination) -> bool:
        named = dict(zip(self.slots, combination, strict=True))
        return all(len({named[name] for name in group}) == len(group) for group in self.different)

    def prompt(self, combination: Combination) -> str:
        return fill(self.template, dict(zip(self.slots, combination, strict=True)))

    def questions(self, combination: Combination) -> tuple[Question, ...]:
        prompt = self.prompt(combination)
        named = dict(zip(self.slots, combination, strict=True))
        made = []
        for place, (name, value) in enumerate(named.items()):
            text = fill(self.asked.get(name, f"Does the image show {{{name}}} as {name}?"), named)
            others = [(*combination[:place], one, *combination[place + 1 :]) for one in self.slots[name]]
            wrong = [one for one in others if one != combination and self.allowed(one)]
            told = tuple(self.prompt(one) for one in wrong[:MOST_ALTERNATIVES])
            made.append(Question(name, value, text, prompt, told))
        return tuple(made)


def checked_values(given: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The values, if there are two different ones at least and none is empty or given twice."""
    values = tuple(one.strip() for one in given)
    twice = sorted({one for one in values if values.count(one) > 1})
    if len(values) < 2 or not all(values) or twice:
        what = f"{twice[0]!r} stands there twice" if twice else f"there are {len(values)}"
        what = "one is empty" if not all(values) else what
        raise BadInput(f"{where}: values must be two or more different ones; {what}.", fix="change the list")
    return values


def _known(name: str, names: tuple[str, ...], where: str) -> None:
    if name not in names:
        raise BadInput(f"{where}: there is no slot {name!r}.", fix=f"slots: {', '.join(names)}")
