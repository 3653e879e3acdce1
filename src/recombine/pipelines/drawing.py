"""Prompts drawn from a set: seeded, distinct, nothing listed that can be drawn, and cut by combination."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from recombine.audit.questions import spread_over_folds
from recombine.errors import BadInput
from recombine.pipelines.prompt_set import Combination, PromptSet, Question

LISTED = 50_000
"""Spaces up to this size are permuted; larger ones are drawn from."""
TRIES = 200
"""Draws for each prompt that is wanted, before a set counts as too narrow."""
FOLDS = 5
VALIDATION = 3
"""The fold on which sites are chosen."""
TEST = 4
"""The fold on which the choice is scored. Probes are fitted on the others."""
PARTS = ("train", "train", "train", "validation", "test")
"""What each fold is."""


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A sentence that asks for a combination."""

    name: str
    """Of its folder."""
    set: str
    combination: Combination
    text: str
    questions: tuple[Question, ...]
    fold: int

    @property
    def part(self) -> str:
        """train, validation or test."""
        return PARTS[self.fold]


def draw_prompts(name: str, given: PromptSet, number: int, seed: int) -> list[Prompt]:
    """Different combinations of a set, at most `number`, each with its sentence and the fold that it belongs to."""
    if number < 1:
        raise BadInput(f"Each set needs one prompt at least, got {number}.", fix="--prompts-per-set 100")
    draws = random.Random(f"{seed} {name}")
    chosen = _distinct(given, number, draws)
    if not chosen:
        raise BadInput(f"The set {name} allows no combination.", fix="have fewer slots that must differ")
    folds = spread_over_folds(numbered(given, chosen), given.places, FOLDS, np.random.default_rng([seed, 7]))
    made = []
    for combination, fold in zip(chosen, folds.tolist(), strict=True):
        order = list(combination)
        if not given.exclusive:
            # A set has no order, so that of the sentence is not to tell anything.
            random.Random(f"{seed} {combination}").shuffle(order)
        text = given.prompt(tuple(order))
        digest = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:12]
        made.append(
            Prompt(f"{_safe(name)}-{digest}", name, combination, text, given.questions(tuple(order)), fold)
        )
    return made


def numbered(given: PromptSet, combinations: list[Combination]) -> Int[np.ndarray, "n slot"]:
    """Combinations as numbers of values, counted through all places; a set's values are counted once."""
    first: dict[str, int] = {}
    for place in dict.fromkeys(given.places):
        first[place] = sum(len(given.values(one)) for one in first)
    known = {place: {value: at for at, value in enumerate(given.values(place))} for place in first}
    return np.array(
        [
            [first[place] + known[place][value] for place, value in zip(given.places, one, strict=True)]
            for one in combinations
        ],
        dtype=np.int64,
    ).reshape(len(combinations), len(given.places))


def _distinct(given: PromptSet, number: int, draws: random.Random) -> list[Combination]:
    found: list[Combination] = []
    for place in _places(given.size_of_space, number, draws):
        combination = given.combination(place)
        if given.allowed(combination):
            found.append(combination)
        if len(found) == number:
            break
    return found


def _places(size: int, number: int, draws: random.Random) -> Iterator[int]:
    """Different numbers below `size` in random order: all of them, or as many as are worth trying."""
    if size <= LISTED:
        yield from draws.sample(range(size), size)
        return
    seen: set[int] = set()
    for _ in range(TRIES * number):
        place = draws.randrange(size)
        if place not in seen:
            seen.add(place)
            yield place


def _safe(name: str) -> str:
    """A name that may be that of a folder."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name)[:40]
