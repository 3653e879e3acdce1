"""An English caption of a scene, with synonyms and varying word order. A text encoder reads it, trained with the model."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.encodings.base import Encoder
from recombine.encodings.script import PAD, Ids, tokenized, words_of
from recombine.encodings.text_encoder import TextEncoder, TextEncoding
from recombine.families.base import Family, Task, Teacher
from recombine.families.scenes.layout import layout_of
from recombine.spaces import ProductSpace, Space

SYNONYMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "shape": {
        "disc": ("disc", "circle", "ball"),
        "square": ("square", "box"),
        "triangle": ("triangle", "wedge"),
        "cross": ("cross", "plus"),
        "ring": ("ring", "hoop"),
        "bar": ("bar", "strip"),
    },
    "colour": {
        "red": ("red", "crimson", "scarlet"),
        "green": ("green", "emerald"),
        "blue": ("blue", "cobalt"),
        "yellow": ("yellow", "golden"),
        "purple": ("purple", "violet"),
        "cyan": ("cyan", "turquoise"),
        "orange": ("orange", "tangerine"),
        "white": ("white", "snowy"),
    },
    "size": {"small": ("small", "tiny", "little"), "large": ("large", "big", "huge")},
    "place": {
        "top left": ("at the top left", "in the upper left corner"),
        "top right": ("at the top right", "in the upper right corner"),
        "bottom left": ("at the bottom left", "in the lower left corner"),
        "bottom right": ("at the bottom right", "in the lower right corner"),
        "middle": ("in the middle", "at the centre"),
    },
    "texture": {"plain": ("plain", "solid"), "striped": ("striped", "stripy"), "faded": ("faded", "fading")},
}
"""The words for each value. The first is always used where captions do not vary."""


GATE = 0.1
"""The initial gates of the text encoder's blocks."""


@dataclasses.dataclass(frozen=True)
class FactorSlot:
    """The place of a factor's value in a caption."""

    factor: str
    article: bool = False
    """Whether "a" or "an" comes before it."""


Template = tuple[str | FactorSlot, ...]
"""A caption in pieces: fixed words, and slots for the values of factors."""


def templates_of(factors: Sequence[str]) -> tuple[Template, ...]:
    """The templates for captions of these factors. The first is the plainest."""
    if "left shape" in factors:
        left, right = (
            (FactorSlot(f"{side} colour", article=True), FactorSlot(f"{side} shape")) for side in ("left", "right")
        )
        return (
            (*left, "left of", *right),
            (*left, "to the left of", *right),
            (*right, "right of", *left),
            (*right, "to the right of", *left),
            (*left, "on the left and", *right, "on the right"),
        )
    place = (FactorSlot("place"),) if "place" in factors else ()
    adjectives = [name for name in ("size", "texture", "colour") if name in factors]
    thing = (*(FactorSlot(name, article=not index) for index, name in enumerate(adjectives)), FactorSlot("shape"))
    listed = itertools.chain(*((",", FactorSlot(name)) for name in adjectives))
    return ((*thing, *place), (*place, "there is", *thing), (FactorSlot("shape", article=True), *place, *listed))


@dataclasses.dataclass(frozen=True)
class Grammar:
    """The captions of a space, as text and as tokens."""

    space: ProductSpace
    templates: tuple[Template, ...]
    synonyms: tuple[tuple[str, ...], ...]
    """The synonyms for each constituent."""
    vocabulary: tuple[str, ...]
    """All words. The first has number 1."""
    length: int
    """Words of the longest caption."""

    def captions(self, row: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """All captions of a combination."""
        names = (name for name, _ in self.space.factors)
        values = dict(zip(names, map(int, row), strict=True))
        captions = []
        for template in self.templates:
            choices = [(piece,) if isinstance(piece, str) else self.words(piece, values) for piece in template]
            captions += [" ".join(pieces).replace(" ,", ",") for pieces in itertools.product(*choices)]
        return tuple(captions)

    def words(self, slot: FactorSlot, values: Mapping[str, int]) -> tuple[str, ...]:
        """The possible words at a slot."""
        synonyms = self.synonyms[values[slot.factor]]
        return tuple(map(with_article, synonyms)) if slot.article else synonyms

    def tokenize(self, text: str) -> Ids:
        """The tokens of a text."""
        return tokenized(text, self.vocabulary, "caption")


def with_article(words: str) -> str:
    """Words with their article."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def grammar_of(space: Space, varied: bool = True) -> Grammar:
    """The captions of a space of scenes: with all synonyms and templates, or (not `varied`) one of each combination."""
    layout_of(space)
    assert isinstance(space, ProductSpace)
    names = [name for name, _ in space.factors]
    every = [SYNONYMS[name.split()[-1]][value] for name, values in space.factors for value in values]
    synonyms = tuple(every if varied else [words[:1] for words in every])
    templates = templates_of(names)[: None if varied else 1]
    phrases = [*itertools.chain(*synonyms), *itertools.chain(*(map(with_article, words) for words in synonyms))]
    fixed = [piece for template in templates for piece in template if isinstance(piece, str)]
    vocabulary = sorted(set(itertools.chain(*map(words_of, [*phrases, *fixed]))))
    grammar = Grammar(space, templates, synonyms, tuple(vocabulary), 0)
    # No caption is longer than those with the longest synonyms of every factor.
    lengths = [max(len(words_of(words)) for words in several) for several in synonyms]
    longest = [
        max(range(offset, offset + level), key=lengths.__getitem__)
        for offset, level in zip(space.offsets, space.levels, strict=True)
    ]
    length = max(len(words_of(caption)) for caption in grammar.captions(longest))
    return dataclasses.replace(grammar, length=length)


class CaptionEncoder(Encoder):
    """Draws a template and a synonym for each factor. The code is the tokens of the caption, padded at the end."""

    phrases: Int[Array, "article width synonym longest"]
    """The tokens of the synonyms of each constituent, without and with an article, padded in both directions."""
    synonyms: Int[Array, " width"]
    """Number of synonyms of each constituent."""
    templates: Int[Array, "template word"]
    """The source of each word of a caption: an index into all words, followed by the drawn synonyms of the factors."""
    words: int = eqx.field(static=True)
    """Number of words, with the pad."""
    length: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        by_template, by_word = jax.random.split(key)
        row = task.combination
        synonym = jax.random.randint(by_word, row.shape, 0, self.synonyms[row])
        source = jnp.concatenate([jnp.arange(self.words), self.phrases[:, row, synonym].ravel()])
        tokens = source[self.templates[jax.random.randint(by_template, (), 0, len(self.templates))]]
        # Pads inside the caption move to its end; words keep their order.
        caption = tokens[jnp.argsort(tokens == PAD, stable=True)]
        return caption[: self.length].astype(jnp.float32)


class Captions(TextEncoding):
    """The model sees a random caption of the combination. For spaces of scenes; see the family `scenes`."""

    kind: Literal["captions"] = "captions"
    varied: bool = True
    """Whether words and their order vary. Otherwise every combination has one caption."""

    def grammar(self, space: Space, family: Family) -> Grammar:
        """The captions of a space, as text and as tokens."""
        self.refuse_coefficients(family, "family=scenes")
        return grammar_of(space, self.varied)

    def size(self, space: Space, family: Family) -> int:
        return self.grammar(space, family).length

    def draw(self, space: Space, family: Family, key: Array) -> CaptionEncoder:
        grammar = self.grammar(space, family)
        phrases = [
            [[grammar.tokenize(change(words)) for words in synonyms] for synonyms in grammar.synonyms]
            for change in (str, with_article)
        ]
        synonyms = [len(words) for words in grammar.synonyms]
        longest = max(len(ids) for table in phrases for row in table for ids in row)
        table = np.full((2, space.width, max(synonyms), longest), PAD, np.int32)
        for article, constituent in itertools.product(range(2), range(space.width)):
            for number, ids in enumerate(phrases[article][constituent]):
                table[article, constituent, number, : len(ids)] = ids
        return CaptionEncoder(
            phrases=jnp.asarray(table),
            synonyms=jnp.array(synonyms, jnp.int32),
            templates=jnp.asarray(_sources(grammar, longest)),
            words=len(grammar.vocabulary) + 1,
            length=grammar.length,
        )

    def embedder(self, space: Space, family: Family, key: Array) -> TextEncoder:
        grammar = self.grammar(space, family)
        encoder = TextEncoder.draw(len(grammar.vocabulary), grammar.length, self.width, self.layers, self.heads, key)
        # With small gates a caption is at first nearly the mean of its words, which keeps the factors apart. Ungated blocks
        # mix the factors before anything is learned, and networks then compose far worse.
        gated = [dataclasses.replace(block, gates=jnp.full(2, GATE)) for block in encoder.blocks]
        return dataclasses.replace(encoder, blocks=tuple(gated))


def _sources(grammar: Grammar, longest: int) -> Int[np.ndarray, "template word"]:
    """The source of each word of a caption, for each template; see `CaptionEncoder.templates`."""
    factors = [name for name, _ in grammar.space.factors]

    def source(piece: str | FactorSlot) -> Ids:
        if isinstance(piece, str):
            return grammar.tokenize(piece)
        number = piece.article * len(factors) + factors.index(piece.factor)
        first = len(grammar.vocabulary) + 1 + longest * number
        return tuple(range(first, first + longest))

    rows = [[*itertools.chain(*map(source, template))] for template in grammar.templates]
    return np.array([*itertools.zip_longest(*rows, fillvalue=PAD)], np.int32).T
