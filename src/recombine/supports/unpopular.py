"""A list of all combinations of a core of constituents, and one combination that links each other constituent to it."""

from __future__ import annotations

from typing import Literal

import jax
import numpy as np
from jaxtyping import Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space, SubsetSpace
from recombine.spaces.rows import Rows
from recombine.spaces.subspace import WITH_SUBSPACES, interchangeable, relabelled, subspace, subspace_size
from recombine.supports.base import SupportKind
from recombine.supports.certificate import Promise, whole
from recombine.supports.listed.drawing import sample_rows, seed_key
from recombine.supports.listed.kinds import LONGEST, FixedList, check_memory


class Unpopular(FixedList):
    """Each constituent outside the core occurs in one training combination. The replicate's seed picks the core."""

    too_long = "choose a smaller core, or a larger space"

    kind: Literal["unpopular"] = "unpopular"
    defined_on = WITH_SUBSPACES
    core: PositiveInt | None = None
    """The number of modules, or of values of each factor, in the core. Half of them by default."""

    def obstacle(self, space: Space) -> BadInput | None:
        if space.slots < 2:
            return BadInput("Combinations of one constituent cannot link other constituents to the core.")
        return None

    def _counts(self, space: Space) -> list[int]:
        """The number of modules, or of values of each factor, in the core."""
        totals = [len(parts) for parts in interchangeable(space)]
        return [max(1, total // 2) if self.core is None else min(self.core, total) for total in totals]

    def length(self, space: Space) -> int:
        cut = list(zip(interchangeable(space), self._counts(space), strict=True))
        core = subspace_size(space, np.concatenate([parts[:count] for parts, count in cut]))
        return core + sum(len(parts) - count for parts, count in cut)

    def check(self, space: Space) -> None:
        SupportKind.check(self, space)
        if isinstance(space, SubsetSpace):
            count = self._counts(space)[0]
            if not space.min_active <= count < space.modules:
                raise BadInput(
                    f"A core of {count} of {space.modules} modules is not possible: combinations have at least "
                    f"{space.min_active}, and one module must be outside.",
                    fix=f"choose core={space.min_active}..{space.modules - 1}, or a space with more modules",
                )
        check_memory(self.length(space), fix="give a smaller core=...")
        super().check(space)

    def promises(self, space: Space) -> Promise:
        return whole(self.length(space))

    def rows(self, space: Space, seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        cut = list(zip(interchangeable(space), self._counts(space), strict=True))
        core = [np.sort(rng.permutation(parts)[:count]) for parts, count in cut]
        smaller = subspace(space, np.concatenate(core))
        assert smaller is not None
        inside = relabelled(smaller[0].enumerate(LONGEST), smaller[1], space.slots)
        if isinstance(space, ProductSpace):
            links = _links_of_product(core, interchangeable(space), rng)
        else:
            assert isinstance(space, SubsetSpace)
            links = _links_of_subset(space, core[0], seed)
        return np.concatenate([inside, links])


def _links_of_product(core: list[np.ndarray], values: list[np.ndarray], rng: np.random.Generator) -> Rows:
    """For each value outside the core, a combination with core values of the other factors."""
    blocks = []
    for factor, (inner, every) in enumerate(zip(core, values, strict=True)):
        others = np.setdiff1d(every, inner)
        block = np.stack([rng.choice(parts, len(others)) for parts in core], axis=1)
        block[:, factor] = others
        blocks.append(block)
    return np.concatenate(blocks).astype(np.int32)


def _links_of_subset(space: SubsetSpace, core: Int[np.ndarray, " core"], seed: int) -> Rows:
    """For each module outside the core, a random combination with at least one module of the core."""
    others = np.setdiff1d(np.arange(space.modules), core).astype(np.int32)
    least, most = max(1, space.min_active - 1), min(space.max_active - 1, len(core))
    partners = SubsetSpace(modules=len(core), max_active=most, min_active=least)
    rows = sample_rows(partners, jax.random.fold_in(seed_key(seed), 1), len(others))
    labels = np.array([*core, space.width], np.int32)
    return np.sort(np.insert(relabelled(rows, labels, space.slots - 1), 0, others, axis=1), axis=1)
