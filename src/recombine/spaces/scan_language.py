"""The language of SCAN (Lake and Baroni 2018): commands as rows of constituents, their words and their actions.

A command is one phrase or two with a conjunction. A phrase is a primitive, a direction if it has one, the manner of
turning there (none: a single turn) and how often all of it is done. Constituents are words in a role: "and", "after",
each word of a phrase as part of the *first* phrase, and each as part of the *last*. A phrase that stands alone is
the first and the last in one, so whoever has met "jump" alone has met it in both roles, and with nothing else.

Where a command is a *number*, single phrases come first, then "and", then "after", each by first and last phrase.
Functions of rows and numbers take arrays of numpy and of JAX, with any axes before the last, and can be compiled.
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
    """What a phrase says to do."""
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
"""How many commands there are."""
WIDTH = len(CONJUNCTIONS) + 2 * len(PHRASE_WORDS)
MOST_WORDS = 1 + 2 * max(len(phrase) for phrase in PHRASES)
MOST_ACTIONS = 2 * max(len(phrase_actions(phrase)) for phrase in PHRASES)


def _table(sequences: Sequence[Sequence[int]], pad: int) -> Int[np.ndarray, "n longest"]:
    longest = max(len(one) for one in sequences)
    return np.array([[*one, *[pad] * (longest - len(one))] for one in sequences], np.int32)


_PLACES = [[PHRASE_WORDS.index(word) for word in phrase] for phrase in PHRASES]
_AS_FIRST = _table([[place + 2 for place in places] for places in _PLACES], WIDTH)
_AS_LAST = _table([[place + 2 + len(PHRASE_WORDS) for place in places] for places in _PLACES], WIDTH)
_SAID = _table([[WORDS.index(word) for word in phrase] for phrase in PHRASES], len(WORDS))
_DONE = _table([[ACTIONS.index(one) for one in phrase_actions(phrase)] for phrase in PHRASES], len(ACTIONS))

_BIT = 1 << np.arange(len(PHRASE_WORDS), dtype=np.int32)
_NONE = np.zeros(len(PHRASE_WORDS), np.int32)
# For each constituent, and for the pad, what it adds to the conjunction, to the first and to the last phrase.
_ADDS_CONJUNCTION = np.concatenate([[1, 2], _NONE, _NONE, [0]]).astype(np.int32)
_ADDS_FIRST = np.concatenate([[0, 0], _BIT, _NONE, [0]]).astype(np.int32)
_ADDS_LAST = np.concatenate([[0, 0], _NONE, _BIT, [0]]).astype(np.int32)
_PHRASE_OF = np.full(1 << len(PHRASE_WORDS), -1, np.int32)
_PHRASE_OF[[sum(1 << place for place in places) for places in _PLACES]] = np.arange(COUNT)


def _library(values: Numbers | Rows) -> Any:
    """numpy or its likeness in JAX, whichever made the values."""
    return jnp if isinstance(values, jax.Array) else np


def numbers(rows: Rows) -> Numbers:
    """The number of each command; -1 for sorted rows without repeats that are no commands."""
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
    """Padded sequences one after the other, all pads at the end."""
    made = lib.concatenate(pieces, axis=-1)
    order = lib.argsort(made == pad, axis=-1, stable=True)
    return lib.take_along_axis(made, order, axis=-1)[..., :longest].astype(np.int32)


def word_numbers(rows: Rows) -> Sequences:
    """The words of each command as places in `WORDS`, padded with `len(WORDS)`."""
    lib, pad = _library(rows), len(WORDS)
    conjunction, first, last = parts_of(numbers(rows))
    joined = (conjunction > 0)[..., None]
    said = lib.asarray(_SAID)
    between = lib.where(joined, conjunction[..., None] - 1, pad)
    return _together([said[first], between, lib.where(joined, said[last], pad)], pad, MOST_WORDS, lib)


def action_numbers(rows: Rows) -> Sequences:
    """The actions of each command as places in `ACTIONS`, padded with `len(ACTIONS)`."""
    lib, pad = _library(rows), len(ACTIONS)
    conjunction, first, last = parts_of(numbers(rows))
    swapped = conjunction == 1 + CONJUNCTIONS.index("after")
    done = lib.asarray(_DONE)
    second = done[lib.where(swapped, first, last)]
    pieces = [done[lib.where(swapped, last, first)], lib.where((conjunction > 0)[..., None], second, pad)]
    return _together(pieces, pad, MOST_ACTIONS, lib)


def action_counts(rows: Rows) -> Numbers:
    """How many actions each command asks for."""
    lib = _library(rows)
    return lib.asarray((action_numbers(rows) < len(ACTIONS)).sum(-1))


def command(row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[str, ...]:
    """The words of a command."""
    conjunction, first, last = (int(part) for part in parts_of(numbers(np.asarray(row))))
    said = PHRASES[first]
    return (*said, CONJUNCTIONS[conjunction - 1], *PHRASES[last]) if conjunction else said


def actions(row: Sequence[int] | Int[np.ndarray, " slots"]) -> tuple[str, ...]:
    """What a command says to do, in the order in which it is to be done."""
    conjunction, first, last = (int(part) for part in parts_of(numbers(np.asarray(row))))
    if not conjunction:
        return phrase_actions(PHRASES[first])
    order = (last, first) if CONJUNCTIONS[conjunction - 1] == "after" else (first, last)
    return (*phrase_actions(PHRASES[order[0]]), *phrase_actions(PHRASES[order[1]]))


END = "the end"
_AFTER_A_TURN = (*REPETITIONS, *CONJUNCTIONS, END)
_AFTER = {
    **dict.fromkeys(CONJUNCTIONS, PRIMITIVES),
    **dict.fromkeys(PRIMITIVES, (*MANNERS, *DIRECTIONS, *_AFTER_A_TURN)),
    "turn": (*MANNERS, *DIRECTIONS),
    **dict.fromkeys(MANNERS, DIRECTIONS),
    **dict.fromkeys(DIRECTIONS, _AFTER_A_TURN),
    **dict.fromkeys(REPETITIONS, (*CONJUNCTIONS, END)),
}
"""What may come after each word."""


def parse(words: str | Sequence[str]) -> Int[np.ndarray, " slots"]:
    """The row of a command, given as text or as a list of words."""
    said = words.split() if isinstance(words, str) else list(words)
    allowed: tuple[str, ...] = PRIMITIVES
    joined = False
    for place, word in enumerate([*said, END]):
        over = place == len(said)
        if joined:
            allowed = tuple(one for one in allowed if one not in CONJUNCTIONS)
        if word not in allowed or (word == END and not over):
            came = "the command ends" if over else f"word {place + 1} is {word!r}"
            raise BadInput(
                f"In the command {' '.join(said)!r} {came} where {_listed(allowed)} was expected.",
                fix="two phrases at most, e.g. 'jump around left twice and turn right'",
            )
        joined = joined or word in CONJUNCTIONS
        allowed = _AFTER.get(word, ())
    return np.asarray(rows_of(np.asarray(_number_of(tuple(said)))))


def _listed(options: tuple[str, ...]) -> str:
    return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"


def _number_of(said: Phrase) -> int:
    """The number of a command that keeps to the grammar."""
    for index, conjunction in enumerate(CONJUNCTIONS):
        if conjunction in said:
            cut = said.index(conjunction)
            first, last = PHRASES.index(said[:cut]), PHRASES.index(said[cut + 1 :])
            return COUNT + (index * COUNT + first) * COUNT + last
    return PHRASES.index(said)
