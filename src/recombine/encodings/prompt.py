"""The prompt of a sequence family. Sequence models read its tokens directly."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Encoder, Encoding
from recombine.errors import BadInput
from recombine.families.base import Family, Task, Teacher
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.spaces.base import Space


class PromptEncoder(Encoder):
    """The code is the prompt's tokens, padded at the end."""

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        assert isinstance(teacher, SequenceTeacher)
        return teacher.prompt(task).astype(jnp.float32)


class Prompt(Encoding):
    """The model sees the prompt of the task. For sequence families."""

    kind: Literal["prompt"] = "prompt"

    def size(self, space: Space, family: Family) -> int:
        if not isinstance(family, SequenceFamily):
            raise BadInput(
                f"The family {family.kind!r} has no prompts.", fix="encoding=identity, or a family of sequences"
            )
        return family.longest_prompt

    def draw(self, space: Space, family: Family, key: Array) -> PromptEncoder:
        self.size(space, family)
        return PromptEncoder()
