"""Recipes: optimiser, learning-rate schedule, batch and number of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.recipes.base import Recipe as Recipe
    from recombine.recipes.fast import Fast as Fast
    from recombine.recipes.paper import Paper as Paper
