"""The identifier of a puzzle: which of the trained puzzles this is, and in which version."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.errors import BadInput
from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space


class PuzzleIdentifierEncoder(Encoder):
    """The code is one-hot, with an entry for each puzzle and augmentation."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        return task.vector


class PuzzleIdentifier(Encoding):
    """The model is told which puzzle this is, and in which version. Only families of puzzles with identifiers have that."""

    kind: Literal["puzzle-identifier"] = "puzzle-identifier"

    def size(self, space: Space, family: Family) -> int:
        number = getattr(family, "identifiers", 0)
        if not number:
            raise BadInput(
                f"The encoding 'puzzle-identifier' needs puzzles with identifiers; {family.kind!r} has none.",
                fix="family=arc, or encoding=unsaid",
            )
        return number

    def draw(self, space: Space, family: Family, key: Array) -> PuzzleIdentifierEncoder:
        return PuzzleIdentifierEncoder()
