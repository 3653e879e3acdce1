"""A search for the weights with which experts are mixed: the cross-entropy method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput

ELITE = 4
"""One candidate in this many decides where the next ones are drawn."""
SPREAD = 0.3
"""The first standard deviation of each weight."""
LEAST = 0.02
"""The least standard deviation, so that the search does not stop early."""


def search_weights(
    score: Callable[[Float[np.ndarray, "candidate expert"]], Float[np.ndarray, " candidate"]],
    experts: int,
    *,
    population: int = 16,
    rounds: int = 8,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " expert"], float]:
    """The best weights that the cross-entropy method finds.

    Candidates are drawn from a normal distribution, and the best of them decide where the next ones are drawn. The first round
    also has no expert, each single expert and the mean of all, so the result is never worse than these.

    Args:
        score: Gives a score to each row of weights; higher is better.
        experts: Number of weights.
        population: Candidates in each round.
        rounds: Rounds.
        seed: Draws the candidates.

    Returns:
        The weights with the highest score, and that score.

    Example:
        ```python
        weights, best = search_weights(lambda rows: -((rows - 0.7) ** 2).sum(axis=1), experts=3)
        ```
    """
    draw = np.random.default_rng(seed)
    centre, spread = np.full(experts, 1 / experts), np.full(experts, SPREAD)
    best, highest = centre, -np.inf
    known = np.concatenate([np.zeros((1, experts)), np.eye(experts), centre[None]])
    for number in range(rounds):
        rows = centre + spread * draw.standard_normal((population, experts))
        rows = np.concatenate([known, rows])[:population] if number == 0 else rows
        if len(known) > population:
            raise BadInput(f"A population of {population} is too small for {experts} experts.", fix=f"{2 * len(known)}")
        scores = np.asarray(score(rows), float)
        if scores.shape != (len(rows),) or not np.isfinite(scores).all():
            raise BadInput("Each candidate needs one finite score.", fix="return one finite number per row of weights")
        order = np.argsort(-scores, kind="stable")
        if scores[order[0]] > highest:
            best, highest = rows[order[0]], float(scores[order[0]])
        elite = rows[order[: max(2, population // ELITE)]]
        centre, spread = elite.mean(axis=0), np.maximum(elite.std(axis=0), LEAST)
    return best, highest
