"""Prompts drawn from a set: seeded, all different, and split into folds by combination."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import random
import re
from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

from recombine.audit.decodability.questions import spread_over_folds
from recombine.errors import BadInput
from recombine.pipelines.prompts.sets import Combination, PromptSet, Question

LISTED = 50_000
"""Spaces up to this size are permuted. Larger ones are sampled."""
TRIES = 200
"""Most draws per prompt."""
FOLDS = 5
VALIDATION = 3
"""The fold on which sites are chosen."""
TEST = 4
"""The fold on which the chosen site is scored. Probes are fitted on the others."""


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A sentence that asks for a combination."""

    name: str
    """The name of its folder."""
    set: str
    combination: Combination
    text: str
    questions: tuple[Question, ...]
    fold: int


def draw_prompts(name: str, given: PromptSet, number: int, seed: int) -> list[Prompt]:
    """Draw different combinations of a set.

    Args:
        name: The name of the set.
        given: The set.
        number: The largest number of prompts. A small set gives fewer.
        seed: The seed of the draw, of the folds and of the order of concepts.

    Returns:
        The prompts with their sentences and folds.
    """
    if number < 1:
        raise BadInput(f"Each set needs at least one prompt, got {number}.", fix="--prompts-per-set 100")
    combinations = map(given.combination, _indices(given.size_of_space, number, random.Random(f"{seed} {name}")))
    chosen = list(itertools.islice(filter(given.allowed, combinations), number))
    if not chosen:
        raise BadInput(f"The set {name} allows no combination.", fix="let fewer slots be different from each other")
    folds = spread_over_folds(numbered(given, chosen), given.places, FOLDS, np.random.default_rng([seed, 7]))
    folder = re.sub("[^A-Za-z0-9]", "-", name)[:40]
    prompts = []
    for combination, fold in zip(chosen, folds.tolist(), strict=True):
        order = list(combination)
        if not given.exclusive:
            # A set has no order, so the order in the sentence is random.
            random.Random(f"{seed} {combination}").shuffle(order)
        text = given.prompt(tuple(order))
        digest = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()[:12]
        prompts.append(Prompt(f"{folder}-{digest}", name, combination, text, given.questions(tuple(order)), fold))
    return prompts


def numbered(given: PromptSet, combinations: list[Combination]) -> Int[np.ndarray, "n slot"]:
    """Combinations as numbers of values, counted over all slots. The values of a set are counted once."""
    named = [(place, value) for place in dict.fromkeys(given.places) for value in given.values(place)]
    number = {name: index for index, name in enumerate(named)}
    rows = [[number[name] for name in zip(given.places, row, strict=True)] for row in combinations]
    return np.array(rows, dtype=np.int64).reshape(len(combinations), len(given.places))


def _indices(size: int, number: int, draws: random.Random) -> Iterator[int]:
    """Different numbers below `size` in random order: all of them, or a large sample."""
    if size <= LISTED:
        yield from draws.sample(range(size), size)
        return
    seen: set[int] = set()
    for _ in range(TRIES * number):
        index = draws.randrange(size)
        if index not in seen:
            seen.add(index)
            yield index
