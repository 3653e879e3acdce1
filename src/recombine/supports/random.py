"""A random list of combinations, by number or by held-out share. Complete and connected by default."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.spaces import Space, SubsetSpace
from recombine.supports.listed.kinds import NumberOrShare


class Random(NumberOrShare):
    """`number` combinations, or all but a held-out share, drawn without replacement.

    Example:
        ```python
        Random(number=40, reserve=100).draw(SubsetSpace(modules=16, max_active=3), seed=0)
        ```
    """

    kind: Literal["random"] = "random"
    sizes: Literal["up_to", "exactly"] = "up_to"
    """Subset spaces: combinations of up to max_active modules, or of exactly that number."""
    most_active: PositiveInt | None = None
    """Subset spaces: the most modules of a training combination. Reserved combinations may have more."""

    def pool(self, space: Space) -> Space:
        if self.sizes == "up_to" and self.most_active is None:
            return space
        if not isinstance(space, SubsetSpace):
            name = "most_active" if self.most_active is not None else "sizes=exactly"
            raise BadInput(f"{name} needs a subset space.", fix="remove it: here all combinations have equal size")
        most = space.max_active if self.most_active is None else self.most_active
        if most not in space.sizes:
            raise BadInput(
                f"most_active={most}, but combinations have {space.min_active} to {space.max_active} modules.",
                fix=f"choose {space.min_active}..{space.max_active}",
            )
        if self.sizes == "exactly":
            return space.exactly(most)
        return SubsetSpace(modules=space.modules, max_active=most, min_active=space.min_active)
