"""The items of odd-one-out: sentences with two agreements, and pictures of two things with two likenesses."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from recombine.families.scenes.rendering import SHAPES, Appearance, opacity

MASK, THE, THIS, THESE = range(4)
"""The first tokens: the gap that a masked language model fills, and the determiners."""
PREPOSITIONS = 4
FIRST = 4
"""The first preposition; then adjectives, nouns (singular, plural) and verbs (singular, plural)."""
LENGTH = 9
"""the NOUN PREPOSITION the NOUN VERB this ADJECTIVE NOUN"""

RADII = (0.13, 0.21)
CENTRES = ((0.27, 0.5), (0.73, 0.5))
SHIFT = 0.05


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Sentences of nine words. The verb should agree with the first noun, the last determiner with the last noun."""

    words: int
    """Nouns, verbs and adjectives, each."""

    @property
    def size(self) -> int:
        """Numbers of one item: its tokens."""
        return LENGTH

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return FIRST + PREPOSITIONS + 5 * self.words

    def draw(self, obeyed: Bool[Array, " rule"], key: Array) -> Float[Array, " token"]:
        """A sentence that obeys, and breaks, these rules."""
        by_word, by_number = jax.random.split(key)
        preposition = jax.random.randint(by_word, (), 0, PREPOSITIONS)
        adjective, *nouns, verb = jax.random.randint(jax.random.fold_in(by_word, 1), (5,), 0, self.words)
        subject, other, last = jax.random.bernoulli(by_number, 0.5, (3,)).astype(int)
        adjectives = FIRST + PREPOSITIONS
        first_noun, first_verb = adjectives + self.words, adjectives + 3 * self.words
        plurals = [subject, other, last]
        found = [first_noun + 2 * noun + plural for noun, plural in zip(nouns, plurals, strict=True)]
        verb_number = jnp.where(obeyed[0], subject, 1 - subject)
        determiner = jnp.where(obeyed[1], last, 1 - last)
        tokens = [
            *(THE, found[0], FIRST + preposition, THE, found[1]),
            *(first_verb + 2 * verb + verb_number, THIS + determiner, adjectives + adjective, found[2]),
        ]
        return jnp.stack([jnp.asarray(token, jnp.float32) for token in tokens])

    def rules(self, tokens: Int[np.ndarray, " token"]) -> tuple[bool, bool]:
        """Which rules a sentence obeys, read off its tokens: for tests, and for those who look at sentences."""
        first_noun = FIRST + PREPOSITIONS + self.words
        number = [(int(token) - first_noun) % 2 for token in tokens]
        return number[5] == number[1], int(tokens[6]) - THIS == number[8]


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Grey pictures of two things side by side, which should have the same shape and the same size."""

    pixels: int

    @property
    def size(self) -> int:
        """Numbers of one item: its pixels."""
        return self.pixels**2

    def things(self, obeyed: Bool[Array, " rule"], key: Array) -> tuple[Int[Array, " thing"], Int[Array, " thing"]]:
        """The shapes and the sizes of the two things."""
        by_shape, by_other, by_size = jax.random.split(key, 3)
        shape = jax.random.randint(by_shape, (), 0, len(SHAPES))
        other = (shape + jax.random.randint(by_other, (), 1, len(SHAPES))) % len(SHAPES)
        size = jax.random.bernoulli(by_size, 0.5).astype(int)
        shapes = jnp.stack([shape, jnp.where(obeyed[0], shape, other)])
        return shapes, jnp.stack([size, jnp.where(obeyed[1], size, 1 - size)])

    def draw(self, obeyed: Bool[Array, " rule"], key: Array) -> Float[Array, " pixel"]:
        """A picture that obeys, and breaks, these rules. Positions, shades and noise are random."""
        by_things, by_shift, by_shade, by_noise = jax.random.split(key, 4)
        shapes, sizes = self.things(obeyed, by_things)
        shift = jax.random.uniform(by_shift, (2, 2), minval=-SHIFT, maxval=SHIFT)
        appearance = Appearance(shapes, jnp.zeros(2, int), jnp.asarray(CENTRES) + shift, jnp.asarray(RADII)[sizes])
        covered = jax.vmap(lambda thing: opacity(thing, self.pixels))(appearance).max(axis=0).ravel()
        dark, light = jax.random.uniform(by_shade, (2,)) * jnp.array([0.25, 0.3]) + jnp.array([0.05, 0.65])
        return 2 * (dark + covered * (light - dark)) - 1 + 0.05 * jax.random.normal(by_noise, covered.shape)
