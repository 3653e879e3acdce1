"""An English caption of a scene, with synonyms and in varying order, read by a text encoder trained with the model."""

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
from pydantic import PositiveInt, model_validator

from recombine.encodings.base import Encoder, Encoding, coefficient_law
from recombine.encodings.script import PAD, Ids, tokenized, words_of
from recombine.encodings.text_reader import TextReader
from recombine.errors import BadInput
from recombine.families.base import Family, Task, Teacher
from recombine.families.scene_layout import layout_of
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

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
"""How each value is said. The first is the one that is always used where captions do not vary."""


GATE = 0.1
"""The share of what a block of the text encoder finds that is added at first."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """Where a caption says the value of a factor."""

    factor: str
    article: bool = False
    """Whether "a" or "an" comes before it."""


Template = tuple[str | Slot, ...]
"""A caption in pieces: words that are always said, and what is said of factors."""


def templates_of(factors: Sequence[str]) -> tuple[Template, ...]:
    """The ways to say a combination of these factors. The first is the plainest."""
    if "left shape" in factors:
        left, right = (
            (Slot(f"{side} colour", article=True), Slot(f"{side} shape")) for side in ("left", "right")
        )
        return (
            (*left, "left of", *right),
            (*left, "to the left of", *right),
            (*right, "right of", *left),
            (*right, "to the right of", *left),
            (*left, "on the left and", *right, "on the right"),
        )
    place = (Slot("place"),) if "place" in factors else ()
    adjectives = [name for name in ("size", "texture", "colour") if name in factors]
    thing = (*(Slot(name, article=not index) for index, name in enumerate(adjectives)), Slot("shape"))
    listed = itertools.chain(*((",", Slot(name)) for name in adjectives))
    return (
        (*thing, *place),
        (*place, "there is", *thing),
        (Slot("shape", article=True), *place, *listed),
    )


@dataclasses.dataclass(frozen=True)
class Grammar:
    """The captions of a space: in Python as text, and as tokens."""

    space: ProductSpace
    templates: tuple[Template, ...]
    said: tuple[tuple[str, ...], ...]
    """What may be said of each constituent."""
    vocabulary: tuple[str, ...]
    """All words. The number of the first is 1."""
    length: int
    """The words of the longest caption."""

    def captions(self, row: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """All captions of a combination."""
        names = (name for name, _ in self.space.factors)
        values = dict(zip(names, map(int, row), strict=True))
        made = []
        for template in self.templates:
            ways = [(piece,) if isinstance(piece, str) else self.words(piece, values) for piece in template]
            made += [" ".join(pieces).replace(" ,", ",") for pieces in itertools.product(*ways)]
        return tuple(made)

    def words(self, slot: Slot, values: Mapping[str, int]) -> tuple[str, ...]:
        """What may be said at a slot."""
        said = self.said[values[slot.factor]]
        return tuple(map(with_article, said)) if slot.article else said

    def tokenize(self, text: str) -> Ids:
        """The numbers of a text's words."""
        return tokenized(text, self.vocabulary, "caption")


def with_article(words: str) -> str:
    """Words with their article."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def grammar_of(space: Space, varied: bool = True) -> Grammar:
    """The captions of a space of scenes; where they are not varied, one for each combination."""
    layout_of(space)
    assert isinstance(space, ProductSpace)
    names = [name for name, _ in space.factors]
    every = [SYNONYMS[name.split()[-1]][value] for name, values in space.factors for value in values]
    said = tuple(every if varied else [words[:1] for words in every])
    templates = templates_of(names)[: None if varied else 1]
    spoken = [*itertools.chain(*said), *itertools.chain(*(map(with_article, words) for words in said))]
    fixed = [piece for template in templates for piece in template if isinstance(piece, str)]
    vocabulary = sorted(set(itertools.chain(*map(words_of, [*spoken, *fixed]))))
    grammar = Grammar(space, templates, said, tuple(vocabulary), 0)
    # The longest words of every factor, in every template: no caption is longer.
    longest = [
        offset + max(range(level), key=lambda value, offset=offset: _most(said[offset + value]))
        for offset, level in zip(space.offsets, space.levels, strict=True)
    ]
    length = max(len(words_of(caption)) for caption in grammar.captions(longest))
    return dataclasses.replace(grammar, length=length)


def _most(said: Sequence[str]) -> int:
    return max(len(words_of(words)) for words in said)


class CaptionEncoder(Encoder):
    """Draws a template and the words of each factor, and shows the numbers of the words, padded at the end."""

    said: Int[Array, "article width synonym longest"]
    """What may be said of each constituent, without and with an article, padded in both directions."""
    synonyms: Int[Array, " width"]
    """How many there are of each."""
    templates: Int[Array, "template word"]
    """Where each word of a caption is found: among all words, then in what is said of the factors in turn."""
    words: int = eqx.field(static=True)
    """How many words there are, the pad among them."""
    length: int = eqx.field(static=True)

    def __call__(self, task: Task, teacher: Teacher, key: Array) -> Float[Array, " code"]:
        by_template, by_word = jax.random.split(key)
        parts = task.combination
        synonym = jax.random.randint(by_word, parts.shape, 0, self.synonyms[parts])
        heard = jnp.concatenate([jnp.arange(self.words), self.said[:, parts, synonym].ravel()])
        ids = heard[self.templates[jax.random.randint(by_template, (), 0, len(self.templates))]]
        # Pads inside the caption go to its end; words keep their order.
        moved = ids[jnp.argsort(ids == PAD, stable=True)]
        return moved[: self.length].astype(jnp.float32)


class Captions(Encoding):
    """The model sees a caption, drawn from all that say the combination. For spaces of scenes: see the family `scenes`."""

    kind: Literal["captions"] = "captions"
    varied: bool = True
    """Whether words and their order vary; otherwise every combination has one caption."""
    width: PositiveInt = 64
    """Numbers in the vector of a word, and in what the model is given."""
    layers: PositiveInt = 1
    """Blocks of the text encoder."""
    heads: PositiveInt = 4
    """Heads of attention; they divide the width."""

    @model_validator(mode="after")
    def _divides(self) -> Captions:
        if self.width % self.heads:
            raise ValueError(f"heads must divide width, got width={self.width} and heads={self.heads}")
        return self

    def grammar(self, space: Space, family: Family) -> Grammar:
        """The captions of a space: in Python as text, and as tokens."""
        if coefficient_law(family) != "k-hot":
            raise BadInput(
                f"Captions do not tell coefficients; those of this family are {coefficient_law(family)}.",
                fix="family=scenes, or encoding=token-embedding",
            )
        return grammar_of(space, self.varied)

    def size(self, space: Space, family: Family) -> int:
        return self.grammar(space, family).length

    def draw(self, space: Space, family: Family, key: Array) -> CaptionEncoder:
        grammar = self.grammar(space, family)
        said = [
            [[grammar.tokenize(change(words)) for words in synonyms] for synonyms in grammar.said]
            for change in (str, with_article)
        ]
        synonyms = [len(words) for words in grammar.said]
        longest = max(len(ids) for table in said for row in table for ids in row)
        table = np.full((2, space.width, max(synonyms), longest), PAD, np.int32)
        for place in itertools.product(range(2), range(space.width)):
            for number, ids in enumerate(said[place[0]][place[1]]):
                table[*place, number, : len(ids)] = ids
        return CaptionEncoder(
            said=jnp.asarray(table),
            synonyms=jnp.array(synonyms, jnp.int32),
            templates=jnp.asarray(_places(grammar, longest)),
            words=len(grammar.vocabulary) + 1,
            length=grammar.length,
        )

    def reader(self, space: Space, family: Family, key: Array) -> TextReader:
        grammar = self.grammar(space, family)
        reader = TextReader.draw(
            len(grammar.vocabulary), grammar.length, self.width, self.layers, self.heads, key
        )
        # At first a caption is nearly the mean of its words, which tells every factor apart from the others. What blocks
        # add all at once mixes them before anything is learned, and networks then compose far worse.
        gated = [dataclasses.replace(block, gates=jnp.full(2, GATE)) for block in reader.blocks]
        return dataclasses.replace(reader, blocks=tuple(gated))

    def features(self, space: Space, family: Family) -> int:
        return self.width


def _places(grammar: Grammar, longest: int) -> Int[np.ndarray, "template word"]:
    """Where the encoder finds each word of a caption, template by template; pads at the end."""
    factors = [name for name, _ in grammar.space.factors]
    rows: list[list[int]] = []
    for template in grammar.templates:
        row: list[int] = []
        for piece in template:
            if isinstance(piece, str):
                row += grammar.tokenize(piece)
            else:
                place = piece.article * len(factors) + factors.index(piece.factor)
                first = len(grammar.vocabulary) + 1 + longest * place
                row += range(first, first + longest)
        rows.append(row)
    width = max(map(len, rows))
    return np.array([row + [PAD] * (width - len(row)) for row in rows], np.int32)
