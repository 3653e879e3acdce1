"""A rule: constituents form two groups, and combinations that mix the groups are never trained on."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from recombine.errors import BadInput
from recombine.spaces import Space, SubsetSpace
from recombine.spaces.subspace import WITH_SUBSPACES, interchangeable, subspace_size
from recombine.supports.base import OnSubspaces, Sampler, SupportKind
from recombine.supports.certificate import Promise


class GroupSampler(Sampler):
    """Picks a group in proportion to its combinations, draws from its space and renumbers. Nothing is rejected."""

    spaces: tuple[Space, Space] = eqx.field(static=True)
    labels: tuple[Int[Array, " first_and_pad"], Int[Array, " second_and_pad"]]
    threshold: UInt32[Array, ""]
    slots: int = eqx.field(static=True)

    def __call__(self, key: Array) -> Int[Array, " slots"]:
        by_group, by_row = jax.random.split(key)
        rows = []
        for space, labels in zip(self.spaces, self.labels, strict=True):
            row = labels[space.sample(by_row)]
            rows.append(jnp.pad(row, (0, self.slots - len(row)), constant_values=labels[-1]))
        first = jax.random.bits(by_group, dtype=jnp.uint32) < self.threshold
        return jnp.where(first, *rows)


class TwoGroups(OnSubspaces):
    """The drawn rule."""

    @property
    def first(self) -> tuple[Space, Int[np.ndarray, " first_and_pad"]]:
        """The subspace of the first group, and the numbers of its constituents."""
        return self.subspaces[0]

    def sampler(self, pad_to: int | None = None) -> GroupSampler:
        (first, first_labels), (second, second_labels) = self.subspaces
        # Integers first: the number of combinations may not fit a float.
        threshold = min((first.size << 32) // self.size, 2**32 - 1)
        return GroupSampler(
            spaces=(first, second),
            labels=(jnp.asarray(first_labels), jnp.asarray(second_labels)),
            threshold=jnp.asarray(threshold, jnp.uint32),
            slots=self.space.slots,
        )


class Disconnected(SupportKind):
    """All combinations within either of two groups. The replicate's seed picks the groups.

    In a product, the values of every factor are divided in two, and all values of a combination are from one group.
    """

    kind: Literal["disconnected"] = "disconnected"
    defined_on = WITH_SUBSPACES
    groups: Literal["halves", "published"] = "halves"
    """Half of the constituents in each group, or one constituent against all others, as in the published code."""

    def _counts(self, space: Space) -> list[int]:
        """The number of modules, or of values of each factor, in the first group."""
        return [len(parts) // 2 if self.groups == "halves" else 1 for parts in interchangeable(space)]

    def _sizes(self, space: Space) -> tuple[int, int]:
        """The number of combinations of each group."""
        cut = list(zip(interchangeable(space), self._counts(space), strict=True))
        first = subspace_size(space, np.concatenate([parts[:count] for parts, count in cut]))
        return first, subspace_size(space, np.concatenate([parts[count:] for parts, count in cut]))

    def obstacle(self, space: Space) -> BadInput | None:
        sizes = self._sizes(space)
        if not all(sizes):
            what = (
                f"Combinations have at least {space.min_active} of {space.modules} modules"
                if isinstance(space, SubsetSpace)
                else "A factor has only one value"
            )
            return BadInput(f"{what}, so one of the two groups would have no combination.")
        if space.size - sum(sizes) < 2:
            return BadInput(
                f"Only {space.size - sum(sizes)} combinations have constituents of both groups, but validation and test "
                "need one each."
            )
        return None

    def promises(self, space: Space) -> Promise:
        return Promise(complete=True, connected=False, groups=2, unseen=0, size=sum(self._sizes(space)))

    def draw(self, space: Space, seed: int) -> TwoGroups:
        self.check(space)
        rng = np.random.default_rng(seed)
        picked = [
            rng.permutation(parts)[:count]
            for parts, count in zip(interchangeable(space), self._counts(space), strict=True)
        ]
        first = np.concatenate(picked)
        return TwoGroups(space, first, np.setdiff1d(np.arange(space.width), first))
