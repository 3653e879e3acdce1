"""Subspaces: the combinations that use only some of the constituents, as a space."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

WITH_SUBSPACES = (SubsetSpace, ProductSpace)
"""The kinds of space for which subspaces are defined."""


def subspace(
    space: Space, parts: Iterable[int] | np.ndarray
) -> tuple[Space, Int[np.ndarray, " smaller_width_and_pad"]] | None:
    """The space of combinations that use only these constituents; None if no combination is left.

    With it comes the number in the larger space of each of its constituents (last: of its pad).
    """
    kept = sorted({int(part) for part in parts})
    labels = np.array([*kept, space.width], np.int32)
    if isinstance(space, SubsetSpace):
        if len(kept) < space.min_active:
            return None
        most = min(space.max_active, len(kept))
        return SubsetSpace(modules=len(kept), max_active=most, min_active=space.min_active), labels
    if isinstance(space, ProductSpace):
        chosen = set(kept)
        factors = tuple(
            (name, tuple(value for index, value in enumerate(values, offset) if index in chosen))
            for (name, values), offset in zip(space.factors, space.offsets, strict=True)
        )
        return (ProductSpace(factors=factors), labels) if all(values for _, values in factors) else None
    raise BadInput(f"Subspaces are not defined for a space of kind {space.kind!r}.")


def subspace_size(space: Space, parts: Iterable[int] | np.ndarray) -> int:
    """The number of combinations that use only these constituents."""
    smaller = subspace(space, parts)
    return 0 if smaller is None else smaller[0].size


def relabelled(
    rows: Int[np.ndarray, "n few"], labels: Int[np.ndarray, " labels"], slots: int
) -> Int[np.ndarray, "n slots"]:
    """Rows of the smaller space as rows of the larger one, which has `slots` slots."""
    return np.pad(labels[rows], ((0, 0), (0, slots - rows.shape[1])), constant_values=labels[-1])


def interchangeable(space: Space) -> list[Int[np.ndarray, " n"]]:
    """Groups of interchangeable constituents: all modules, or the values of each factor."""
    every = np.arange(space.width)
    return np.split(every, space.offsets[1:]) if isinstance(space, ProductSpace) else [every]
