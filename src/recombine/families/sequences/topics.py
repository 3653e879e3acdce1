"""Texts with a topic and a style: the topic decides which characters are common, the style how groups of characters follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, PositiveFloat

from recombine.errors import BadInput
from recombine.families.base import Batch, Family, TargetKind, Task, TaskScores, Teacher
from recombine.language.vocabulary import BEGIN, SPECIAL
from recombine.spaces import ProductSpace, Space

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ("topic", "style")
SPACE = ProductSpace(factors=(("topic", tuple(map(str, range(12)))), ("style", tuple(map(str, range(12))))))


class TopicsTeacher(Teacher):
    """The topics and styles of one replicate. A text is a Markov chain, so its exact probability is known."""

    topics: Float[Array, "topic group member"]
    """Logarithms of the probabilities of the characters of each group, by topic."""
    styles: Float[Array, "style group group"]
    """Logarithms of the probabilities of the next group, by style."""
    length: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, len(self.topics) + len(self.styles))

    def text(self, task: Task, key: Array) -> Int[Array, " token"]:
        """A text with the topic and the style of a task, as tokens. The first group is uniform."""
        topic, style = task.combination[0], task.combination[1] - len(self.topics)
        _, groups, members = self.topics.shape
        by_first, by_group, by_member = jax.random.split(key, 3)
        gumbels = jax.random.gumbel(by_group, (self.length - 1, groups))

        def follow(group: Array, gumbel: Array) -> tuple[Array, Array]:
            chosen = jnp.argmax(self.styles[style, group] + gumbel)
            return chosen, chosen

        first = jax.random.randint(by_first, (), 0, groups)
        group = jnp.append(first, jax.lax.scan(follow, first, gumbels)[1])
        member = jax.random.categorical(by_member, self.topics[topic, group])
        return SPECIAL + group * members + member

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        texts = jax.vmap(lambda own: self.text(task, own))(jax.random.split(key, samples))
        shown = jnp.concatenate([jnp.full_like(texts[:, :1], BEGIN), texts[:, :-1]], axis=1)
        return Batch(shown.astype(jnp.float32), texts.astype(jnp.float32), jnp.ones(samples))

    def log_likelihoods(
        self, text: Int[Array, " token"]
    ) -> tuple[Float[Array, "token topic"], Float[Array, "token style"]]:
        """The log-probability of each token under each topic and under each style, in nats.

        Their sum is that of the token, given those before it, under the topic and the style together.
        """
        members = self.topics.shape[2]
        group, member = (text - SPECIAL) // members, (text - SPECIAL) % members
        start = jnp.full((1, len(self.styles)), -jnp.log(self.topics.shape[1]))
        follows = self.styles[:, group[:-1], group[1:]].T
        return self.topics[:, group, member].T, jnp.concatenate([start, follows])

    def exact(self, text: Int[Array, " token"], window: int = 0) -> Float[Array, " token"]:
        """The log-probability of each token given the `window` tokens before it, in nats. 0: given all tokens before it.

        No model that sees no more of a text can predict it better: topic and style are uniform and must be inferred from what is seen.
        """
        by_topic, by_style = self.log_likelihoods(text)
        window = window or self.length
        # A transition lies between two tokens, so a window has one fewer of them.
        return _predicted(by_topic, window) + _predicted(by_style, window - 1)


def _predicted(each: Float[Array, "token value"], window: int) -> Float[Array, " token"]:
    """The log-probability of each token under the mixture of values, weighted by how well they predict the `window` tokens before it."""
    total = jnp.concatenate([jnp.zeros_like(each[:1]), jnp.cumsum(each, axis=0)])
    places = jnp.arange(len(each))
    seen = jax.nn.log_softmax(total[places] - total[jnp.maximum(places - window, 0)], axis=1)
    return jax.nn.logsumexp(seen + each, axis=1)


class Topics(Family):
    """Texts of characters in groups. A topic and a style recombine freely, and both show only in a text as a whole.

    The topic gives the probability of each character in its group, the style that of the next group. A few tokens say little about
    either. A prediction is the log-probability of each token, in nats.
    """

    kind: Literal["topics"] = "topics"
    metric: ClassVar[str] = "log_likelihood"
    targets: ClassVar[TargetKind] = "text"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": SPACE.model_dump(mode="json"),
        "support": {"kind": "random", "held_out": 0.25},
        "objective": "latent-posterior",
        "encoding": "unsaid",
        "model": "latent-decoder",
        "recipe": {"kind": "fast", "tasks": 16, "samples": 1},
    }
    validation_samples: ClassVar[int] = 1
    groups: int = Field(default=4, ge=2)
    """Groups of characters."""
    members: int = Field(default=6, ge=2)
    """Characters of each group."""
    length: int = Field(default=64, ge=2)
    """Characters of a text."""
    concentration: PositiveFloat = 0.6
    """Of the Dirichlet distributions that topics and styles are drawn from. Smaller: fewer tokens are enough to recognise them."""

    def check(self, space: Space) -> None:
        if not isinstance(space, ProductSpace) or tuple(name for name, _ in space.factors) != FACTORS:
            raise BadInput(
                f"The family 'topics' needs the factors topic and style, got {space.title}.",
                fix="space={kind: product, factors: {topic: 12, style: 12}}",
            )

    @property
    def input_size(self) -> int:
        return self.length

    @property
    def output_size(self) -> int:
        """A logit for each character at each place."""
        return self.length * (SPECIAL + self.groups * self.members)

    def draw(self, space: Space, key: Array) -> TopicsTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        (topics, styles), (by_topic, by_style) = space.levels, jax.random.split(key)

        def drawn(key: Array, values: int, size: int) -> Array:
            return jnp.log(jax.random.dirichlet(key, jnp.full(size, self.concentration), (values, self.groups)))

        return TopicsTeacher(drawn(by_topic, topics, self.members), drawn(by_style, styles, self.groups), self.length)

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        real = batch.mask[:, None]
        return {"log2": jnp.sum(predictions * real) / jnp.log(2), "tokens": jnp.sum(jnp.ones_like(predictions) * real)}

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return jnp.sum(scores["log2"]) / jnp.sum(scores["tokens"])

    def metric_names(self, space: Space) -> tuple[str, ...]:
        return (self.metric,)

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        log2, tokens = (float(np.sum(np.asarray(scores[name], float))) for name in ("log2", "tokens"))
        return {self.metric: log2 / tokens}

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        frame = tasks.groupby(by, sort=False, observed=True)[["log2", "tokens"]].sum()
        frame[self.metric] = frame["log2"] / frame["tokens"]
        return frame.reset_index()
