"""Optimisation problems as text: the numbers of the question in digits, answered by the digits of the best answer."""

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
from recombine.language.vocabulary import Vocabulary
from recombine.problems.base import Instances, Problem as Solvable, together
from recombine.problems.digits import WORDS
from recombine.problems.power_flow import PowerFlow
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace

CACHED = 64
"""Sets of instances in the cache. The runs of a replicate share theirs, and solving takes seconds."""
ATTEMPTS = 20
"""Rounds of drawing that replace draws without an answer and repeats."""


class Problem(SequenceFamily):
    """Instances of `problem`, drawn and solved once per replicate. All questions are different."""

    kind: Literal["problem"] = "problem"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": "instances",
        "support": {"kind": "random", "held_out": 0.2, "require_connected": False},
        "model": "decoder",
    }
    problem: field("problems", Solvable) = PowerFlow(solver="batched", text="pairs")  # type: ignore[valid-type]
    """The problem."""
    steps: bool = False
    """Whether answers contain intermediate quantities before and between their numbers."""

    def check(self, space: Space) -> None:
        if not isinstance(space, InstanceSpace):
            raise BadInput(
                f"The family 'problem' needs a space of instances, got {space.title}.", fix="space=instances"
            )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=WORDS)

    @property
    def longest_prompt(self) -> int:
        return self.problem.texts.question.length - 1

    @property
    def longest_answer(self) -> int:
        texts = self.problem.texts
        return (texts.steps if self.steps else texts.answer).length

    def prepare(self, space: Space, key: Array) -> None:
        """Draw, solve and write the instances; `draw` takes them from the cache."""
        self._texts(space.size, jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> WrittenTeacher:
        self.check(space)
        shapes = [
            jax.ShapeDtypeStruct((space.size, length), np.dtype("int32"))
            for length in (self.longest_prompt, self.longest_answer)
        ]
        # The solvers do not use JAX, but `draw` is compiled.
        bits = jax.random.bits(key, (4,), "uint32")
        questions, answers = jax.pure_callback(functools.partial(self._texts, space.size), shapes, bits)
        return WrittenTeacher(questions, answers)

    def _texts(
        self, number: int, bits: UInt32[Array | np.ndarray, " four"]
    ) -> tuple[Int[np.ndarray, "n word"], Int[np.ndarray, "n token"]]:
        seed = int.from_bytes(np.asarray(bits, np.uint32).tobytes(), "little")
        drawn = instances(self.problem, number, seed)
        return (
            self.problem.write_questions(drawn.questions),
            self.problem.write_answers(drawn.questions, drawn.answers, self.steps),
        )


@functools.lru_cache(maxsize=CACHED)
def instances(problem: Solvable, number: int, seed: int) -> Instances:
    """A number of instances with different questions. Draws that the solver does not finish, and repeats, are replaced."""
    drawn, start = None, 0
    for _ in range(ATTEMPTS):
        missing = number - (0 if drawn is None else len(drawn))
        if not missing:
            break
        more = problem.instances(missing, seed, start)
        start += missing
        drawn = _different(more if drawn is None else together([drawn, more]))
    if drawn is None or len(drawn) < number:
        raise BadInput(
            f"{start} draws of {problem.kind} gave {0 if drawn is None else len(drawn)} of {number} different questions "
            "that can be answered.",
            fix="ask for fewer instances",
        )
    return drawn


def _different(drawn: Instances) -> Instances:
    """Remove repeated questions."""
    first = np.sort(np.unique(drawn.questions, axis=0, return_index=True)[1])
    return Instances(
        drawn.questions[first], drawn.answers[first], drawn.costs[first], drawn.numbers[first], drawn.dropped
    )
