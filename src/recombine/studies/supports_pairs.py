"""Supports that are compared in pairs, and their scores on the combinations that both of a pair hold out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from recombine.families.base import Family
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.studies.base import Tables
from recombine.studies.reduce import pooled
from recombine.supports.base import SupportKind
from recombine.supports.disconnected import Disconnected
from recombine.supports.missing_part import MissingPart

if TYPE_CHECKING:
    import pandas as pd


def without_the_part_apart(space: Space, seed: int) -> SupportKind:
    """The support without the part that the published rule sets apart in this replicate: the two are then pairs."""
    apart = Disconnected(groups="published").draw(space, seed).first[1]
    return MissingPart(part=int(apart[0])) if isinstance(space, SubsetSpace) else MissingPart()


def size_of(kind: SupportKind, space: Space) -> int:
    """How many combinations a kind trains on."""
    size = kind.promises(space).size
    assert size is not None
    return size


def _held_out(frame: pd.DataFrame, family: str, support: str) -> pd.DataFrame:
    chosen = (frame["family"] == family) & (frame["support"] == support) & (frame["region"] == "held_out")
    return frame[chosen]


def shared(tables: Tables, family: Family, first: str, second: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scores of two supports on the combinations that both hold out in a replicate.

    Kinds of support leave out different combinations, some of them harder: only those in common compare.
    """
    frame = tables.combinations
    if "region" not in frame:
        return frame[:0], frame[:0]
    place = ["replicate", "combination"]
    one, other = (_held_out(frame, family.kind, support) for support in (first, second))
    return one.merge(other[place], on=place), other.merge(one[place], on=place)


def lost(
    tables: Tables, family: Family, seeds: Sequence[int], support: str, against: str
) -> Float[np.ndarray, " replicate"]:
    """By how much the headline score is lower than with the other support, by replicate.

    Not a number where a run failed or is missing, or where nothing is held out by both.
    """
    scores = []
    for part in shared(tables, family, against, support):
        if part.empty:
            return np.full(len(seeds), np.nan)
        # Combinations hold sums over their tasks, so that those of a replicate can be pooled.
        pool = pooled if family.targets == "numbers" else family.pooled
        by_replicate = pool(part, ["replicate"]).set_index("replicate")[family.metric]
        scores.append(by_replicate.reindex(list(seeds)).to_numpy(dtype=float))
    return scores[0] - scores[1]
