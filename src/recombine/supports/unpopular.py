"""A list of all combinations of a core of constituents, and one combination that links each other one to them."""

from __future__ import annotations

import itertools
from typing import Literal

import jax
import numpy as np
from jaxtyping import Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.drawing import sample_rows, seed_key
from recombine.supports.fixed_list import FixedList, check_rest
from recombine.supports.promise import Promise, whole
from recombine.supports.random_list import LONGEST, check_memory
from recombine.supports.within import alike, relabelled, size_within, undefined, within


class Unpopular(FixedList):
    """Constituents outside the core occur in one training combination each; the replicate's seed picks the core."""

    kind: Literal["unpopular"] = "unpopular"
    core: PositiveInt | None = None
    """How many modules, or values of each factor, are in the core; half of them when it is not given."""

    def obstacle(self, space: Space) -> BadInput | None:
        wrong = undefined(self.kind, space)
        if wrong is None and space.slots < 2:
            return BadInput("In combinations of one constituent nothing is linked to the core.")
        return wrong

    def _counts(self, space: Space) -> list[int]:
        """How many modules, or values of each factor, are in the core."""
        totals = [len(parts) for parts in alike(space)]
        return [max(1, total // 2) if self.core is None else min(self.core, total) for total in totals]

    def length(self, space: Space) -> int:
        cut = list(zip(alike(space), self._counts(space), strict=True))
        core = size_within(space, np.concatenate([parts[:count] for parts, count in cut]))
        return core + sum(len(parts) - count for parts, count in cut)

    def check(self, space: Space) -> None:
        self.require_possible(space)
        if isinstance(space, SubsetSpace) and not (
            space.min_active <= self._counts(space)[0] < space.modules
        ):
            raise BadInput(
                f"A core of {self._counts(space)[0]} of {space.modules} modules is not possible: combinations have "
                f"at least {space.min_active}, and one module must be left outside.",
                fix=f"choose core={space.min_active}..{space.modules - 1}"
                if space.min_active < space.modules
                else "choose a space with more modules",
            )
        length = self.length(space)
        if length > LONGEST:
            check_memory(length, fix=f"give core=..., at most {self._largest(space)}")
        check_rest(space, length, self.reserve, fix="choose a smaller core, or a larger space")

    def _largest(self, space: Space) -> int:
        """The largest core whose combinations fit in memory."""
        fits = (Unpopular(core=core).length(space) <= LONGEST for core in itertools.count(1))
        return sum(1 for _ in itertools.takewhile(bool, fits))

    def promises(self, space: Space) -> Promise:
        return whole(self.length(space))

    def rows(self, space: Space, seed: int) -> Int[np.ndarray, "n slots"]:
        rng = np.random.default_rng(seed)
        cut = list(zip(alike(space), self._counts(space), strict=True))
        core = [np.sort(rng.permutation(parts)[:count]) for parts, count in cut]
        found = within(space, np.concatenate(core))
        assert found is not None
        inside = relabelled(found[0].enumerate(LONGEST), found[1], space.slots)
        if isinstance(space, ProductSpace):
            links = _links_of_product(core, alike(space), rng)
        else:
            assert isinstance(space, SubsetSpace)
            links = _links_of_subset(space, core[0], seed)
        return np.concatenate([inside, links])


def _links_of_product(
    core: list[np.ndarray], values: list[np.ndarray], rng: np.random.Generator
) -> Int[np.ndarray, "n slots"]:
    """For each value outside the core a combination with core values of the other factors."""
    blocks = []
    for factor, (inner, every) in enumerate(zip(core, values, strict=True)):
        others = np.setdiff1d(every, inner)
        block = np.stack([rng.choice(parts, len(others)) for parts in core], axis=1)
        block[:, factor] = others
        blocks.append(block)
    return np.concatenate(blocks).astype(np.int32)


def _links_of_subset(
    space: SubsetSpace, core: Int[np.ndarray, " core"], seed: int
) -> Int[np.ndarray, "n slots"]:
    """For each module outside the core a combination with at least one module of the core, all equally likely."""
    others = np.setdiff1d(np.arange(space.modules), core).astype(np.int32)
    least, most = max(1, space.min_active - 1), min(space.max_active - 1, len(core))
    partners = SubsetSpace(modules=len(core), max_active=most, min_active=least)
    rows = sample_rows(partners, jax.random.fold_in(seed_key(seed), 1), len(others))
    labels = np.array([*core, space.width], np.int32)
    return np.sort(np.insert(relabelled(rows, labels, space.slots - 1), 0, others, axis=1), axis=1)
