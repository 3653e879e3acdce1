"""Spaces: all combinations that a task can have.

`ProductSpace` has one value of each factor in a combination, for example a colour and a shape. `SubsetSpace` has any
few of a number of modules. The other spaces belong to one family of tasks each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.spaces.base import Space as Space
    from recombine.spaces.instances import InstanceSpace as InstanceSpace
    from recombine.spaces.lists import ListSpace as ListSpace
    from recombine.spaces.number_pairs import NumberPairs as NumberPairs
    from recombine.spaces.pairs import PairSpace as PairSpace
    from recombine.spaces.product import ProductSpace as ProductSpace
    from recombine.spaces.scan import ScanSpace as ScanSpace
    from recombine.spaces.subset import SubsetSpace as SubsetSpace
