"""Next-token prediction on a small family of sequences: the loss, free-running scores, and that it learns."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array, Int

from recombine.encodings.prompt import Prompt
from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import BEGIN, END, PAD, SPECIAL, Vocabulary, padded
from recombine.models.decoder import Decoder
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.models.mlp import MLP
from recombine.objectives.next_token import NextToken
from recombine.overrides import validate
from recombine.recipes.fast import Fast
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.testing import check_encoding
from recombine.training.config import RunConfig
from recombine.training.trainer import train

SPACE = SubsetSpace(modules=6, max_active=3)


class BackwardsTeacher(SequenceTeacher):
    width: int

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        active = (row < self.width).astype(jnp.float32)
        return Task(row, active, jnp.zeros(self.width).at[row].add(active, mode="drop"))

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return jnp.where(task.combination < self.width, SPECIAL + task.combination, PAD)

    def answer(self, task: Task) -> Int[Array, " token"]:
        said = self.prompt(task)[::-1]
        said = said[jnp.argsort(said == PAD, stable=True)]
        return jnp.append(said, PAD).at[jnp.sum(said != PAD)].set(END)


class Backwards(SequenceFamily):
    """The prompt backwards."""

    kind: Literal["backwards"] = "backwards"

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=tuple("abcdef"))

    @property
    def longest_prompt(self) -> int:
        return 3

    @property
    def longest_answer(self) -> int:
        return 4

    def draw(self, space: Space, key: Array) -> Teacher:
        return BackwardsTeacher(space.width)


def config(**changes: Any) -> RunConfig:
    given = {
        "space": SPACE,
        "support": Random(number=30),
        "family": Backwards(),
        "encoding": Prompt(),
        "model": EncoderDecoder(width=32, layers=1, heads=2),
        "objective": NextToken(),
        "recipe": Fast(steps=150, tasks=32, samples=1),
        "eval_every": 50,
        "validation_tasks": 10,
    }
    return validate(RunConfig, given | changes)


def batch_of(answers: list[list[int]], length: int = 4) -> Batch:
    """A task for each answer, with a leading task axis."""
    targets = jnp.asarray(padded(answers, length), jnp.float32)
    flat = Batch(jnp.zeros_like(targets), targets, jnp.ones(len(targets)))
    return jax.tree.map(lambda leaf: leaf[:, None], flat)


def test_the_loss_is_the_mean_over_tokens_that_count() -> None:
    batch = batch_of([[4, 5, END], [6, END], [3, 4, 5, END]])
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1, 4 * 9)), jnp.float32)
    labels = batch.targets.astype(int)
    each = optax.softmax_cross_entropy_with_integer_labels(logits.reshape(3, 1, 4, 9), labels)
    wanted = np.asarray(each)[np.asarray(labels) != PAD].mean()
    np.testing.assert_allclose(NextToken().loss(logits, batch), wanted, rtol=1e-5)


def test_scores_count_whole_answers_and_their_tokens() -> None:
    batch = jax.tree.map(lambda leaf: leaf[:, 0], batch_of([[4, 5, END], [6, END], [3, 4, 5, END]]))
    said = jnp.asarray(padded([[4, 5, END], [6, 6, END], [3, 4, 4, END]], 4), jnp.float32)
    family = Backwards()
    scores = family.score(batch, said)
    assert family.metrics(scores) == {"accuracy": pytest.approx(1 / 3), "step_accuracy": pytest.approx(7 / 9)}
    assert float(family.headline(scores)) == pytest.approx(1 / 3)


def test_an_answer_that_goes_on_is_not_whole() -> None:
    batch = jax.tree.map(lambda leaf: leaf[:, 0], batch_of([[4, END]]))
    scores = Backwards().score(batch, jnp.asarray([[4, 5, END, PAD]], jnp.float32))
    assert Backwards().metrics(scores)["accuracy"] == 0


def test_what_is_shown_is_the_answer_one_place_later() -> None:
    teacher = Backwards().draw(SPACE, jax.random.key(0))
    batch = teacher.batch(teacher.task(jnp.array([1, 4, 6]), jax.random.key(0)), jax.random.key(0), 2)
    assert batch.targets.tolist() == [[SPECIAL + 4, SPECIAL + 1, END, PAD]] * 2
    assert batch.inputs.tolist() == [[BEGIN, SPECIAL + 4, SPECIAL + 1, END]] * 2


def test_prompts_tell_combinations_apart() -> None:
    check_encoding(Prompt(), SPACE, Backwards())
    with pytest.raises(BadInput, match="no prompts"):
        Prompt().size(SPACE, Hyperteacher())


def test_it_learns_what_it_is_shown() -> None:
    outcome = train(config())
    first, last = outcome.curves[0], outcome.curves[-1]
    assert last["loss"] < first["loss"] - 0.2
    assert last["score_in"] > 0.6


def test_short_sequences_meet_the_distances_of_long_ones() -> None:
    objective = NextToken(random_positions=64)
    numbers = jnp.asarray(np.random.default_rng(0).integers(3, 8, 4000))
    short = np.asarray(objective._positions(jax.random.key(1), numbers, 7))
    whole = np.asarray(objective._positions(jax.random.key(2), jnp.full(4000, 7), 7))
    assert (np.diff(whole, axis=1) > 0).all() and whole.max() < 64 and whole.min() >= 0
    # From the first token to the third of three, and to the last of seven.
    assert np.quantile(short[:, 2] - short[:, 0], 0.95) > np.quantile(whole[:, 6] - whole[:, 0], 0.05)


def test_places_apart() -> None:
    outcome = train(config(objective=NextToken(random_positions=24), model=Decoder(width=32, layers=1, heads=2)))
    assert outcome.curves[-1]["loss"] < outcome.curves[0]["loss"] - 0.2
    with pytest.raises(BadInput, match="random_positions=6 positions are too few"):
        config(objective=NextToken(random_positions=6))


def test_other_models_are_refused() -> None:
    with pytest.raises(BadInput, match="not made for tokens"):
        config(model=MLP())


def test_words_and_numbers() -> None:
    vocabulary = Vocabulary(words=("walk", "run"))
    assert vocabulary.size == 5
    assert vocabulary.numbers(["run", "walk"]) == (4, 3)
    assert vocabulary.spelled([4, 3, END, 4]) == ("run", "walk")
    assert vocabulary.spelled([4, BEGIN, 9, PAD]) == ("run", "?", "?")
    with pytest.raises(BadInput, match="'rum' is not a word") as error:
        vocabulary.numbers(["rum"])
    assert "run" in str(error.value.fix)
    with pytest.raises(ValueError, match="twice: run"):
        Vocabulary(words=("run", "run"))
    with pytest.raises(BadInput, match="there is room for 1"):
        padded([[3, 4]], 1)
