"""Combinations of the held-out test and of training that one side solves and the other does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from recombine.store.store import Store

Pair = tuple[tuple[str, ...], tuple[str, ...]]
"""The runs of both sides that share their seeds and all other settings that can be shared."""


@dataclasses.dataclass(frozen=True)
class FlippedCombination:
    """A combination with its scores on both sides, over all pairs of runs that were tested on it."""

    combination: str
    first: float
    """Its mean score on the first side."""
    second: float
    difference: float
    """The second minus the first."""
    pairs: int
    gained: int
    """Pairs in which only the second side solves it."""
    lost: int
    """Pairs in which only the first side solves it."""
    regions: str
    """Where it is on both sides, for example `held_out`, or `held_out, in`."""

    @property
    def flips(self) -> int:
        """Pairs in which exactly one side solves it."""
        return self.gained + self.lost


def flipped(stores: tuple[Store, Store], pairs: Sequence[Pair], solved: float) -> list[FlippedCombination]:
    """The combinations that both sides were tested on: those that flipped in most pairs first, then by their difference.

    Args:
        stores: The stores of both sides.
        pairs: The runs that belong together.
        solved: The score from which a combination counts as solved.

    Returns:
        All combinations; none where there are no tables of the measurement `scores`.
    """
    sides = [
        _scores(store, {run: number for number, pair in enumerate(pairs) for run in pair[place]})
        for place, store in enumerate(stores)
    ]
    if sides[0].empty or sides[1].empty:
        return []
    both = sides[0].merge(sides[1], on=["pair", "combination"], suffixes=("_first", "_second"))
    if both.empty:
        return []
    before, after = both["score_first"] >= solved, both["score_second"] >= solved
    both = both.assign(gained=~before & after, lost=before & ~after)
    both["region"] = np.where(
        both["region_first"] == both["region_second"],
        both["region_first"],
        both["region_first"] + " / " + both["region_second"],
    )
    found = []
    for name, own in both.groupby("combination", sort=False):
        first, second = float(own["score_first"].mean()), float(own["score_second"].mean())
        counts = len(own), int(own["gained"].sum()), int(own["lost"].sum())
        regions = ", ".join(sorted(set(own["region"])))
        found.append(FlippedCombination(str(name), first, second, second - first, *counts, regions))
    return sorted(found, key=lambda each: (-each.flips, -abs(each.difference), each.combination))


def _scores(store: Store, pair_of: Mapping[str, int]) -> pd.DataFrame:
    """One row per pair and combination: its mean score over the runs of one side."""
    table = store.combinations_df(list(pair_of))
    if table.empty or "score" not in table:
        return pd.DataFrame()
    table = table.assign(pair=table["run"].map(pair_of), combination=table["combination"].astype(str))
    table = table[np.isfinite(table["score"].astype(float))]
    by = table.groupby(["pair", "combination"])
    regions = by["region"].agg(lambda names: ", ".join(sorted(set(names.astype(str)))))
    return pd.DataFrame({"score": by["score"].mean(), "region": regions}).reset_index()
