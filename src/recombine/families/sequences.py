"""What families share whose answers are sequences of tokens: told by a prompt, scored whole and token by token."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from recombine.families.base import Batch, TargetKind, Task, TaskScores, Teacher
from recombine.families.vocabulary import BEGIN, PAD, Vocabulary
from recombine.families.whole import WholeFamily


class SequenceTeacher(Teacher):
    """Says what a task is and what its answer is. Both are padded at the end; an answer closes with END."""

    @abc.abstractmethod
    def prompt(self, task: Task) -> Int[Array, " word"]:
        """The tokens that tell the task."""

    @abc.abstractmethod
    def answer(self, task: Task) -> Int[Array, " token"]:
        """The tokens that are right, with END behind them."""

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        """The answer to the prompt. There is one, so every example of a task is the same."""
        answer = self.answer(task)
        # What a network is shown while it learns: the right token before each.
        shown = jnp.concatenate([jnp.array([BEGIN], answer.dtype), answer[:-1]])
        return Batch(
            inputs=jnp.broadcast_to(shown, (samples, len(shown))).astype(jnp.float32),
            targets=jnp.broadcast_to(answer, (samples, len(answer))).astype(jnp.float32),
            mask=jnp.ones(samples),
        )


class WrittenTeacher(SequenceTeacher):
    """Instances that were written down beforehand: a combination is the number of one."""

    questions: Int[Array, "instance word"]
    answers: Int[Array, "instance token"]

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(1), jnp.zeros(len(self.questions)).at[row].set(1.0))

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return self.questions[task.combination[0]]

    def answer(self, task: Task) -> Int[Array, " token"]:
        return self.answers[task.combination[0]]


class SequenceFamily(WholeFamily, abc.ABC):
    """Targets are the numbers of tokens. A prediction is what a network said by itself, token after token."""

    targets: ClassVar[TargetKind] = "tokens"
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "next-token",
        "encoding": "prompt",
        "model": "encoder-decoder",
        "recipe": {"kind": "fast", "samples": 1},
    }
    validation_samples: ClassVar[int] = 1

    @property
    @abc.abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The words of prompts and answers."""

    @property
    @abc.abstractmethod
    def longest_prompt(self) -> int:
        """The tokens of the longest prompt."""

    @property
    @abc.abstractmethod
    def longest(self) -> int:
        """The tokens of the longest answer, with its END."""

    @property
    def input_size(self) -> int:
        return self.longest

    @property
    def output_size(self) -> int:
        """A number for each word at each place."""
        return self.longest * self.vocabulary.size

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        counts = batch.targets != PAD
        right = (predictions == batch.targets) & counts
        real = batch.mask > 0
        return {
            "right": jnp.sum(right * batch.mask[:, None]),
            "steps": jnp.sum(counts * batch.mask[:, None]),
            "whole": jnp.sum((right | ~counts).all(axis=1) & real).astype(jnp.float32),
            "episodes": jnp.sum(real).astype(jnp.float32),
        }
