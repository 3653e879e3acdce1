"""Families whose answers are sequences of tokens: a prompt describes the task; scores are exact match and per token."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from recombine.families.base import Batch, ExactMatchFamily, TargetKind, Task, TaskScores, Teacher
from recombine.language.vocabulary import BEGIN, PAD, Vocabulary


class SequenceTeacher(Teacher):
    """Gives the prompt and the answer of a task. Both are padded at the end; an answer closes with END."""

    @abc.abstractmethod
    def prompt(self, task: Task) -> Int[Array, " word"]:
        """The tokens that describe the task."""

    @abc.abstractmethod
    def answer(self, task: Task) -> Int[Array, " token"]:
        """The tokens of the right answer, followed by END."""

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        """The answer to the prompt. There is only one, so all examples of a task are the same."""
        answer = self.answer(task)
        # Teacher forcing: the network sees the right token before each.
        shown = jnp.concatenate([jnp.array([BEGIN], answer.dtype), answer[:-1]])
        return Batch(
            inputs=jnp.broadcast_to(shown, (samples, len(shown))).astype(jnp.float32),
            targets=jnp.broadcast_to(answer, (samples, len(answer))).astype(jnp.float32),
            mask=jnp.ones(samples),
        )


class WrittenTeacher(SequenceTeacher):
    """Instances that were written beforehand. A combination is the number of an instance."""

    questions: Int[Array, "instance word"]
    answers: Int[Array, "instance token"]

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, len(self.questions))

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return self.questions[task.combination[0]]

    def answer(self, task: Task) -> Int[Array, " token"]:
        return self.answers[task.combination[0]]


class SequenceFamily(ExactMatchFamily, abc.ABC):
    """Targets are the numbers of tokens. Predictions are free-running: the network continues its own tokens."""

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
        """Tokens of the longest prompt."""

    @property
    @abc.abstractmethod
    def longest_answer(self) -> int:
        """Tokens of the longest answer, with END."""

    @property
    def input_size(self) -> int:
        return self.longest_answer

    @property
    def output_size(self) -> int:
        """A logit for each word of the vocabulary at each position."""
        return self.longest_answer * self.vocabulary.size

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
