"""The control of sprites that must fail: what is to be said of an image is drawn for each combination on its own."""

from __future__ import annotations

from typing import Literal

import jax
from jaxtyping import Array, Int

from recombine.families.sprites import SpriteFamily, SpriteTeacher
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace


class LookupSpritesTeacher(SpriteTeacher):
    """Says another combination in place of each, drawn from a hash of it: to be memorised, not to be recombined."""

    key: Array

    def told(self, row: Int[Array, " slots"]) -> Int[Array, " slots"]:
        key = self.key
        for slot in range(self.space.slots):
            key = jax.random.fold_in(key, row[slot])
        return self.space.sample(key)


class LookupSprites(SpriteFamily):
    """The images of `sprites` with the factors of another combination, independently drawn; none is ever listed."""

    kind: Literal["lookup-sprites"] = "lookup-sprites"

    def draw(self, space: Space, key: Array) -> LookupSpritesTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return LookupSpritesTeacher(space, self.pixels, self.noise, key)
