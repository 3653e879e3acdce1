"""The language of SCAN (Lake and Baroni 2018): commands as rows of constituents, their words and their actions.

A command is one phrase, or two phrases with a conjunction. A phrase has a primitive, an optional direction, an optional
manner of turning ("opposite" or "around") and an optional repetition. Constituents are words in a role: "and", "after",
each phrase word in the *first* phrase, and each in the *last* phrase. A single phrase is both the first and the last, so
"jump" alone shows the word in both roles, and with nothing else.

Commands have *numbers*: single phrases first, then "and", then "after", each by first and last phrase. Functions of rows
and numbers take NumPy and JAX arrays with any leading axes, and can be compiled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.errors import BadInput

CONJUNCTIONS = ("and", "after")
PRIMITIVES = ("walk", "look", "run", "jump", "turn")
MANNERS = ("opposite", "around")
DIRECTIONS = ("left", "right")
REPETITIONS = ("twice", "thrice")
PHRASE_WORDS = (*PRIMITIVES, *MANNERS, *DIRECTIONS, *REPETITIONS)
"""The words of phrases. The n-th of them is constituent `2 + n` in the first phrase."""
WORDS = (*CONJUNCTIONS, *PHRASE_WORDS)
ACTIONS = ("I_WALK", "I_LOOK", "I_RUN", "I_JUMP", "I_TURN_LEFT", "I_TURN_RIGHT")

TIMES = {"twice": 2, "thrice": 3}

Phrase = tuple[str, ...]
Numbers = Int[np.ndarray, "*batch"] | Int[Array, "*batch"]
Rows = Int[np.ndarray, "*batch slots"] | Int[Array, "*batch slots"]
Sequences = Int[np.ndarray, "*batch longest"] | Int[Array, "*batch longest"]


def _all_phrases() -> Iterator[Phrase]:
    turns = [(), *itertools.product(DIRECTIONS), *itertools.product(MANNERS, DIRECTIONS)]
    for primitive, turn, often in itertools.product(PRIMITIVES, turns, ("", *REPETITIONS)):
        if turn or primitive != "turn":
            yield (primitive, *turn, *([often] if often else []))


def phrase_actions(phrase: Phrase) -> tuple[str, ...]:
    """The actions of a phrase."""
    turn = [f"I_TURN_{word.upper()}" for word in phrase if word in DIRECTIONS]
    act = [] if phrase[0] == "turn" else [f"I_{phrase[0].upper()}"]
    often = TIMES.get(phrase[-1], 1)
    if "around" in phrase:
        return tuple((turn + act) * 4 * often)
    return tuple((turn * (2 if "opposite" in phrase else 1) + act) * often)


PHRASES = tuple(_all_phrases())
"""All phrases, in the order of their numbers."""
COUNT = len(PHRASES)
SIZE = COUNT + len(CONJUNCTIONS) * COUNT**2
"""The number of commands."""
WIDTH = len(CONJUNCTIONS) + 2 * len(PHRASE_WORDS)
MOST_WORDS = 1 + 2 * max(len(phrase) for phrase in PHRASES)
MOST_ACTIONS = 2 * max(len(phrase_actions(phrase)) for phrase in PHRASES)


def _table(sequences: Sequence[Sequence[int]], pad: int) -> Int[np.ndarray, "n longest"]:
    longest = max(map(len, sequences))
    return np.array([[*items, *[pad] * (longest - len(items))] for items in sequences], np.int32)


_INDICES = [[PHRASE_WORDS.index(word) for word in phrase] for phrase in PHRASES]
_AS_FIRST = _table([[index + 2 for index in indices] for indices in _INDICES], WIDTH)
_AS_LAST = _table([[index + 2 + len(PHRASE_WORDS) for index in indices] for indices in _INDICES], WIDTH)
_PHRASE_TOKENS = _table([[WORDS.index(word) for word in phrase] for phrase in PHRASES], len(WORDS))
_ACTION_TOKENS = _table(
    [[ACTIONS.index(action) for action in phrase_actions(phrase)] for phrase in PHRASES], len(ACTIONS)
)

_BIT = 1 << np.arange(len(PHRASE_WORDS), dtype=np.int32)
_NONE = np.zeros(len(PHRASE_WORDS), np.int32)
# What each constituent, and the pad, adds to the codes of the conjunction, the first and the last phrase.
_ADDS_CONJUNCTION = np.concatenate([[1, 2], _NONE, _NONE, [0]]).astype(np.int32)
_ADDS_FIRST = np.concatenate([[0, 0], _BIT, _NONE, [0]]).astype(np.int32)
_ADDS_LAST = np.concatenate([[0, 0], _NONE, _BIT, [0]]).astype(np.int32)
_PHRASE_OF = np.full(1 << len(PHRASE_WORDS), -1, np.int32)
_PHRASE_OF[[sum(1 << index for index in indices) for indices in _INDICES]] = np.arange(COUNT)


def _library(values: Numbers | Rows) -> Any:
    """NumPy or `jax.numpy`, whichever the values belong to."""
    return jnp if isinstance(values, jax.Array) else np


def numbers(rows: Rows) -> Numbers:
    """The number of each command; -1 for sorted rows without repeats that are not commands."""
    lib = _library(rows)
    conjunction = lib.asarray(_ADDS_CONJUNCTION)[rows].sum(-1)
    first = lib.asarray(_PHRASE_OF)[lib.asarray(_ADDS_FIRST)[rows].sum(-1)]
    last = lib.asarray(_PHRASE_OF)[lib.asarray(_ADDS_LAST)[rows].sum(-1)]
    alone = lib.where(first == last, first, -1)
    joined = COUNT + ((conjunction - 1) * COUNT + first) * COUNT + last
    two = (first >= 0) & (last >= 0) & (conjunction <= len(CONJUNCTIONS))
    return lib.where(conjunction == 0, alone, lib.where(two, joined, -1)).astype(np.int32)


def parts_of(commands: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Conjunction (0: none, 1: and, 2: after), first and last phrase of commands given by their numbers."""
    lib = _library(commands)
    alone, joined = commands < COUNT, commands - COUNT
    conjunction = lib.where(alone, 0, 1 + joined // COUNT**2)
    return (
        conjunction,
        lib.where(alone, commands, joined // COUNT % COUNT),
        lib.where(alone, commands, joined % COUNT),
    )


def rows_of(commands: Numbers) -> Rows:
    """The rows of commands given by their numbers."""
    lib = _library(commands)
    conjunction, first, last = parts_of(commands)
    parts = [
        lib.where(conjunction == 0, WIDTH, conjunction - 1)[..., None],
        lib.asarray(_AS_FIRST)[first],
        lib.asarray(_AS_LAST)[last],
    ]
    return lib.sort(lib.concatenate(parts, axis=-1), axis=-1).astype(np.int32)


def _together(pieces: list[Any], pad: int, longest: int, lib: Any) -> Sequences:
    """Concatenate padded sequences, with all padding at the end."""
    tokens = lib.concatenate(pieces, axis=-1)
    order = lib.argsort(tokens == pad, axis=-1, stable=True)
    return lib.take_along_axis(tokens, order, axis=-1)[..., :longest].astype(np.int32)


def word_numbers(rows: Rows) -> Sequences:
    """The words of each command as indices into `WORDS`, padded with `len(WORDS)`."""
    lib, pad = _library(rows), len(WORDS)
    conjunction, first, last = parts_of(numbers(rows))
    joined = (conjunction > 0)[..., None]
    words = lib.asarray(_PHRASE_TOKENS)
    between = lib.where(joined, conjunction[..., None] - 1, pad)
    return _together([words[first], between, lib.where(joined, words[last], pad)], pad, MOST_WORDS, lib)


def action_numbers(rows: Rows) -> Sequences:
    """The actions of each command as indices into `ACTIONS`, padded with `len(ACTIONS)`."""
    lib, pad = _library(rows), len(ACTIONS)
    conjunction, first, last = parts_of(numbers(rows))
    swapped = conjunction == 1 + CONJUNCTIONS.index("after")
    phrases = lib.asarray(_ACTION_TOKENS)
    second = phrases[lib.where(swapped, first, last)]
    pieces = [phrases[lib.where(swapped, last, first)], lib.where((conjunction > 0)[..., None], second, pad)]
    return _together(pieces, pad, MOST_ACTIONS, lib)


def action_counts(rows: Rows) -> Numbers:
    """The number of actions of each command."""
    lib = _library(rows)
    return lib.asarray((action_numbers(rows) < len(ACTIONS)).sum(-1))


def command(row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[str, ...]:
    """The words of a command."""
    return tuple(WORDS[word] for word in np.asarray(word_numbers(np.asarray(row))) if word < len(WORDS))


def actions(row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[str, ...]:
    """The actions of a command, in the order of their execution."""
    return tuple(ACTIONS[action] for action in np.asarray(action_numbers(np.asarray(row))) if action < len(ACTIONS))


def parse(words: str | Sequence[str]) -> Int[np.ndarray, " slots"]:
    """The row of a command, given as text or as a list of words. `BadInput` names the wrong phrase."""
    given = words.split() if isinstance(words, str) else list(words)
    cut = next((position for position, word in enumerate(given) if word in CONJUNCTIONS), len(given))
    # A single phrase is both the first and the last.
    first, last = tuple(given[:cut]), tuple(given[cut + 1 :] if cut < len(given) else given)
    for phrase in (first, last):
        if phrase not in PHRASES:
            raise BadInput(
                f"{' '.join(phrase)!r} is not a phrase of SCAN, in the command {' '.join(given)!r}.",
                fix="write at most two phrases, for example 'jump around left twice and turn right'",
            )
    parts = [2 + PHRASE_WORDS.index(word) for word in first]
    parts += [2 + len(PHRASE_WORDS) + PHRASE_WORDS.index(word) for word in last]
    parts += [CONJUNCTIONS.index(word) for word in given[cut : cut + 1]]
    return np.array(sorted(parts) + [WIDTH] * (MOST_WORDS - len(parts)), np.int32)
