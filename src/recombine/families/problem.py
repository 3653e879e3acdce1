"""Problems with a known best answer as text: the question's numbers in digits, answered by those of the best answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from jaxtyping import Array, Int, UInt32

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.sequences import SequenceFamily, WrittenTeacher
from recombine.families.vocabulary import Vocabulary
from recombine.problems.base import Problem as Solvable
from recombine.problems.instances import Instances, together
from recombine.problems.power_flow import PowerFlow
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace

KEPT = 64
"""So many sets of instances are kept: the runs of a replicate share theirs, and solving takes seconds."""
ATTEMPTS = 20
"""So often draws are made up for that have no answer or were drawn before."""


class Problem(SequenceFamily):
    """Instances of `problem`, drawn and solved once a replicate; no question is there twice."""

    kind: Literal["problem"] = "problem"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": "instances",
        "support": {"kind": "random", "held_out": 0.2, "require_connected": False},
        "model": "decoder",
    }
    problem: field("problems", Solvable) = PowerFlow(solver="batched", text="pairs")  # type: ignore[valid-type]
    """What is asked."""
    steps: bool = False
    """Whether intermediate quantities are said before and between the answer's numbers."""

    def check(self, space: Space) -> None:
        if not isinstance(space, InstanceSpace):
            raise BadInput(
                f"The family 'problem' has instances without parts, got {space.title}.", fix="space=instances"
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=self.problem.texts.answer.words)

    @property
    def longest_prompt(self) -> int:
        return self.problem.texts.question.length - 1

    @property
    def longest(self) -> int:
        texts = self.problem.texts
        return (texts.steps if self.steps else texts.answer).length

    def prepare(self, space: Space, key: Array) -> None:
        """Instances are found and written here; `draw` finds them kept."""
        self._texts(space.size, jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> WrittenTeacher:
        self.check(space)
        shapes = [
            jax.ShapeDtypeStruct((space.size, length), np.dtype("int32"))
            for length in (self.longest_prompt, self.longest)
        ]
        # Solvers are not made of JAX; drawing is.
        bits = jax.random.bits(key, (4,), "uint32")
        questions, answers = jax.pure_callback(functools.partial(self._texts, space.size), shapes, bits)
        return WrittenTeacher(questions, answers)

    def _texts(
        self, number: int, bits: UInt32[Array | np.ndarray, " four"]
    ) -> tuple[Int[np.ndarray, "n word"], Int[np.ndarray, "n token"]]:
        seed = int.from_bytes(np.asarray(bits, np.uint32).tobytes(), "little")
        found = instances(self.problem, number, seed)
        return (
            self.problem.write_questions(found.questions),
            self.problem.write_answers(found.questions, found.answers, self.steps),
        )


@functools.lru_cache(maxsize=KEPT)
def instances(problem: Solvable, number: int, seed: int) -> Instances:
    """So many instances with different questions. Draws that a solver does not finish, and repeats, are made up for."""
    found, start = None, 0
    for _ in range(ATTEMPTS):
        missing = number - (0 if found is None else len(found))
        if not missing:
            break
        more = problem.instances(missing, seed, start)
        start += missing
        found = _different(more if found is None else together([found, more]))
    if found is None or len(found) < number:
        raise BadInput(
            f"{start} draws of {problem.kind} gave {0 if found is None else len(found)} of {number} different questions "
            "that can be answered.",
            fix="ask for fewer instances",
        )
    return found


def _different(found: Instances) -> Instances:
    """Without the questions that were drawn before."""
    first = np.sort(np.unique(found.questions, axis=0, return_index=True)[1])
    return Instances(
        found.questions[first], found.answers[first], found.costs[first], found.numbers[first], found.dropped
    )
