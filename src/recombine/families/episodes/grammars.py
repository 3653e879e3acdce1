"""Small grammars of instructions, a new one in each episode: words stand for colours, for a repetition and for a pattern."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.families.episodes import ALONE, QUESTION, EpisodeFamily, EpisodeTeacher, episode_space
from recombine.families.sequences import SequenceFamily
from recombine.language.vocabulary import END, PAD, SPECIAL, Vocabulary
from recombine.spaces import Space

WORDS = tuple(f"{first}{last}" for first in ("da", "lu", "wi", "zu") for last in ("x", "g", "f", "p"))
COLOURS = ("red", "green", "blue", "yellow", "pink", "black", "white", "brown", "gold", "grey", "lime", "plum")
SEPARATOR = "|"
CONTEXTS = ("shown", "other", ALONE)

PRIMITIVES = 4
"""Words that stand for a colour."""
AGAIN, PATTERN = PRIMITIVES, PRIMITIVES + 1
"""The roles of the word that repeats the one before it, and of the word that makes a pattern of what is on its two sides."""
REPEATS = (2, 3)
"""How often the first of these words may repeat."""
PATTERNS = ("yx", "xyx", "yxy", "xxy", "xyy", "yxx", "yyx")
"""What the second may make of x on its left and y on its right."""

Command = tuple[int, ...]
"""Roles: 0 to 3 for a primitive, then `AGAIN` and `PATTERN`."""

MOST_WORDS = 5
MOST_COLOURS = 9
"""The words of the longest command and the colours of the longest answer."""


@functools.cache
def commands() -> dict[str, tuple[Command, ...]]:
    """The commands of a grammar, by kind.

    `study` are shown. `new` are as long, with another primitive. `longer` have both functions; `longest` have both twice or a
    pattern within a pattern.
    """
    pairs = list(itertools.permutations(range(PRIMITIVES), 2))
    alone = [(word,) for word in range(PRIMITIVES)]
    repeated = [(word, AGAIN) for word in range(PRIMITIVES)]
    patterns = [(left, PATTERN, right) for left, right in pairs]
    study = [*alone, *repeated[:2], (0, PATTERN, 1), (2, PATTERN, 0)]
    longer = [(left, AGAIN, PATTERN, right) for left, right in pairs]
    longer += [(left, PATTERN, right, AGAIN) for left, right in pairs]
    longest: list[Command] = [(left, AGAIN, PATTERN, right, AGAIN) for left, right in pairs]
    longest += [(a, PATTERN, b, PATTERN, c) for a, b, c in itertools.permutations(range(PRIMITIVES), 3)]
    new = [command for command in [*repeated, *patterns] if command not in study]
    return {"study": tuple(study), "new": tuple(new), "longer": tuple(longer), "longest": tuple(longest)}


@functools.cache
def every_command() -> tuple[Command, ...]:
    """All commands, those of the study first."""
    return tuple(itertools.chain(*commands().values()))


@functools.cache
def names() -> tuple[str, ...]:
    """The names of the queries: their kind and the roles of their words."""
    signs = [*(f"p{number}" for number in range(PRIMITIVES)), "again", "pattern"]
    return tuple(
        f"{kind} {'.'.join(signs[role] for role in command)}" for kind, some in commands().items() for command in some
    )


def interpret(command: Command, repeats: int, pattern: str) -> list[int]:
    """The primitives that a command describes, in order.

    A repetition applies to the primitive before it. Patterns apply from left to right.

    Args:
        command: The roles of its words.
        repeats: How often a repeated primitive is written.
        pattern: What becomes of x and y.
    """
    operands: list[list[int]] = []
    for role in command:
        if role == AGAIN:
            operands[-1] = operands[-1] * repeats
        elif role != PATTERN:
            operands.append([role])
    result = operands[0]
    for other in operands[1:]:
        result = [value for sign in pattern for value in (result if sign == "x" else other)]
    return result


def _rows(sequences: Sequence[Sequence[int]], length: int) -> Int[np.ndarray, "sequence length"]:
    """Sequences as rows, with -1 after their end."""
    rows = np.full((len(sequences), length), -1, np.int32)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


@functools.cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """The roles of each command, and the primitives of its answer by the meaning of the two functions; -1 after the end."""
    meanings = itertools.product(REPEATS, PATTERNS)
    answers = [[interpret(command, *meaning) for command in every_command()] for meaning in meanings]
    return _rows(every_command(), MOST_WORDS), np.stack([_rows(own, MOST_COLOURS) for own in answers])


class GrammarsTeacher(EpisodeTeacher):
    """The grammars of one replicate: which word has which role, which colour a primitive is, and what the functions do."""

    def grammar(self, key: Array) -> tuple[Array, Array, Array]:
        """The words by role, the colours by primitive, and the number of the meaning of the functions."""
        by_word, by_colour, by_meaning = jax.random.split(jax.random.fold_in(key, 0), 3)
        words = jax.random.permutation(by_word, len(WORDS))[: PATTERN + 1]
        colours = jax.random.permutation(by_colour, len(COLOURS))[:PRIMITIVES]
        return words, colours, jax.random.randint(by_meaning, (), 0, len(REPEATS) * len(PATTERNS))

    def _written(self, key: Array, query: Int[Array, "*query"]) -> tuple[Array, Array]:
        """The tokens of commands and those of their answers, with PAD after the end."""
        roles, answers = (jnp.asarray(table) for table in tables())
        words, colours, meaning = self.grammar(key)
        command, answer = roles[query], answers[meaning, query]
        shift = SPECIAL + len(WORDS) + 2
        return (
            jnp.where(command < 0, PAD, SPECIAL + words[jnp.maximum(command, 0)]),
            jnp.where(answer < 0, PAD, shift + colours[jnp.maximum(answer, 0)]),
        )

    def study(self, key: Array, context: Int[Array, ""], number: Int[Array, ""]) -> Int[Array, " word"]:
        # The grammars of another context are those of numbers that no episode has.
        other = self.rules(number + self.levels[1] * self.levels[2])
        shown = jax.lax.select(context == CONTEXTS.index("other"), jax.random.key_data(other), jax.random.key_data(key))
        key = jax.random.wrap_key_data(shown)
        count = len(commands()["study"])
        command, answer = self._written(key, jax.random.permutation(jax.random.fold_in(key, 1), count))
        between = jnp.full((count, 1), SPECIAL + len(WORDS))
        most = max(map(len, commands()["study"]))
        colours = max(REPEATS[-1], max(map(len, PATTERNS)))
        return jnp.concatenate([command[:, :most], answer[:, :colours], between], axis=1).ravel()

    def query(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " word"]:
        return jnp.append(self._written(key, query)[0], SPECIAL + len(WORDS) + 1)

    def reply(self, key: Array, context: Int[Array, ""], query: Int[Array, ""]) -> Int[Array, " token"]:
        answer = jnp.append(self._written(key, query)[1], PAD)
        return answer.at[jnp.sum(answer != PAD)].set(END)


class Grammars(EpisodeFamily):
    """Commands of a small grammar, answered by colours, as `dax wig luf` by `green red green`.

    An episode is one grammar. Of its six words, four stand for a colour, one repeats the primitive before it (twice or three
    times), and one makes a pattern of what is on its two sides. Words, colours and both meanings are drawn for each grammar.
    Queries are of four kinds (`commands`): those shown in the study examples, `new` ones of the same length, and two kinds of longer
    ones. The contexts differ in what is shown before the query: the study examples (`shown`), those of `other` grammars, which
    tell nothing, or none (`alone`).
    """

    kind: Literal["grammars"] = "grammars"
    contexts: ClassVar[tuple[str, ...]] = CONTEXTS
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": episode_space(CONTEXTS, names()),
        "support": {"kind": "episodes", "queries": ["new", "longer"], "test_queries": ["new", "longer", "longest"]},
        "model": "decoder",
    }

    @property
    def queries(self) -> tuple[str, ...]:
        return names()

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(words=(*WORDS, SEPARATOR, QUESTION, *COLOURS))

    @property
    def longest_prompt(self) -> int:
        study = commands()["study"]
        colours = max(REPEATS[-1], max(map(len, PATTERNS)))
        return len(study) * (max(map(len, study)) + colours + 1) + MOST_WORDS + 1

    @property
    def longest_answer(self) -> int:
        return MOST_COLOURS + 1

    def draw(self, space: Space, key: Array) -> GrammarsTeacher:
        self.check(space)
        return GrammarsTeacher(key, tuple(len(values) for _, values in space.factors))  # type: ignore[attr-defined]
