"""The sentences of a space: a fixed template with a phrase for each factor, and their tokens.

A family may provide `sentence(space, constituents) -> str`, a plain Python function. Without it, a sentence names each
factor and its value. The template is found by changing one factor at a time, so the work grows with the number of
constituents, not with the number of combinations.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence

import numpy as np

from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.spaces import ProductSpace, Space

PAD = 0
"""The token for padding. Words are numbered from 1."""

TRIALS = 64
"""Random combinations by which the template is checked."""

Ids = tuple[int, ...]
"""Tokens: the numbers of words."""


def words_of(text: str) -> list[str]:
    """The words and punctuation marks of a text, in lower case."""
    return re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", text.lower())


def tokenized(text: str, vocabulary: Sequence[str], what: str) -> Ids:
    """The tokens of a text; `what` such texts are called in the error message."""
    numbers = {word: number for number, word in enumerate(vocabulary, start=1)}
    words = words_of(text)
    unknown = sorted(set(words) - set(numbers))
    if unknown:
        raise BadInput(
            f"No {what} of this space has the words {', '.join(unknown)}.", fix=f"known: {', '.join(vocabulary)}"
        )
    return tuple(numbers[word] for word in words)


@dataclasses.dataclass(frozen=True)
class Script:
    """The template by which the combinations of a space become sentences."""

    space: ProductSpace
    family: Family
    vocabulary: tuple[str, ...]
    """All words. The first has number 1."""
    order: tuple[int, ...]
    """The factors in the order of the sentence."""
    fixed: tuple[Ids, ...]
    """The fixed words before each factor's phrase, and after the last."""
    phrases: tuple[Ids, ...]
    """The phrase of each constituent."""

    @property
    def length(self) -> int:
        """Words of the longest sentence."""
        longest = (max(map(len, phrases)) for phrases in self._by_factor())
        return sum(map(len, self.fixed)) + sum(longest)

    def _by_factor(self) -> list[tuple[Ids, ...]]:
        ends = zip(self.space.offsets, self.space.levels, strict=True)
        return [self.phrases[offset : offset + level] for offset, level in ends]

    def tokenize(self, text: str) -> Ids:
        """The tokens of a text."""
        return tokenized(text, self.vocabulary, "sentence")

    def sentence_of(self, row: Sequence[int] | np.ndarray) -> str:
        """The sentence of a combination."""
        return sentence_of(self.space, self.family, self.space.constituents(row))

    def compose(self, row: Sequence[int] | np.ndarray) -> Ids:
        """The tokens of a combination's sentence, by the template."""
        parts: list[Ids] = []
        for words, factor in zip(self.fixed, self.order, strict=False):
            parts += [words, self.phrases[int(row[factor])]]
        return tuple(itertools.chain(*parts, self.fixed[-1]))


def sentence_of(space: ProductSpace, family: Family, constituents: tuple[int, ...]) -> str:
    """The sentence of a combination: the family's own, or each factor and its value."""
    own = getattr(family, "sentence", None)
    if own is not None:
        return own(space, constituents)
    spans = zip(space.factors, space.offsets, constituents, strict=True)
    return " ".join(f"{name} {values[part - offset]}" for (name, values), offset, part in spans)


def script_of(space: Space, family: Family) -> Script:
    """The script of a space. Raises BadInput if one template does not give the sentences of all combinations."""
    if not isinstance(space, ProductSpace):
        raise BadInput(
            f"Sentences need a space of factors whose values have names; {space.kind!r} spaces have no names.",
            fix="space=product with factors such as {'colour': ['red', 'blue'], 'shape': 3}, or another encoding",
        )
    variants = [_variants(space, family, factor) for factor in range(space.slots)]
    cuts = [_common(sentences) for sentences in variants]
    base = variants[0][0]
    spans = [(start, len(base) - after) for start, after in cuts]
    order = tuple(sorted(range(space.slots), key=lambda factor: spans[factor]))
    vocabulary = tuple(sorted(set(itertools.chain(*itertools.chain(*variants)))))
    numbers = {word: number for number, word in enumerate(vocabulary, start=1)}

    def ids(words: Sequence[str]) -> Ids:
        return tuple(numbers[word] for word in words)

    edges = [0, *itertools.chain(*(spans[factor] for factor in order)), len(base)]
    fixed = tuple(ids(base[start:end]) for start, end in zip(edges[::2], edges[1::2], strict=True))
    phrases = tuple(
        ids(words[start : len(words) - after])
        for sentences, (start, after) in zip(variants, cuts, strict=True)
        for words in sentences
    )
    script = Script(space, family, vocabulary, order, fixed, phrases)
    _check(script, rising=edges == sorted(edges))
    return script


def _variants(space: ProductSpace, family: Family, factor: int) -> list[list[str]]:
    """The words of the sentences in which one factor has each of its values and the others have their first."""
    sentences = []
    for value in range(space.levels[factor]):
        constituents = list(space.offsets)
        constituents[factor] += value
        sentences.append(words_of(sentence_of(space, family, tuple(constituents))))
    return sentences


def _common(sentences: list[list[str]]) -> tuple[int, int]:
    """The number of words that all sentences have in common at the beginning, and at the end after that."""

    def shared(lists: list[list[str]]) -> int:
        aligned = zip(*lists, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda words: len(set(words)) == 1, aligned))

    start = shared(sentences)
    return start, shared([words[start:][::-1] for words in sentences])


def _check(script: Script, rising: bool) -> None:
    """Check that values have different words, and that the template gives the sentences of other combinations too."""
    for (name, values), phrases in zip(script.space.factors, script._by_factor(), strict=True):
        if len(set(phrases)) < len(phrases):
            raise BadInput(
                f"Two values of the factor {name!r} have the same words: {', '.join(values)}.",
                fix="give each value a name that differs in more than capitals and spaces",
            )
    rng = np.random.default_rng(0)
    values = rng.integers(0, script.space.levels, (TRIALS, script.space.slots))
    values[0] = np.array(script.space.levels) - 1
    for row in values + np.array(script.space.offsets):
        sentence = script.sentence_of(row)
        known = set(words_of(sentence)) <= set(script.vocabulary)
        if not (rising and known and script.compose(row) == script.tokenize(sentence)):
            raise BadInput(
                f"The sentence {sentence!r} does not follow the template of the others.",
                fix="make `sentence` of the family give each factor one phrase, at the same place in every sentence",
            )
