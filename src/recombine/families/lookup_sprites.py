"""The control of sprites that must fail: the target factors are drawn independently for each combination."""

from __future__ import annotations

from typing import Literal

from jaxtyping import Array, Int

from recombine.families.base import combination_key
from recombine.families.sprites import Sprites, SpritesTeacher
from recombine.spaces import ProductSpace, Space


class LookupSpritesTeacher(SpritesTeacher):
    """The targets are the factors of another combination, drawn from a hash: a network can memorise but not recombine."""

    key: Array

    def target_combination(self, row: Int[Array, " slots"]) -> Int[Array, " slots"]:
        return self.space.sample(combination_key(self.key, row))


class LookupSprites(Sprites):
    """The images of `sprites`, with the factors of another, independently drawn combination as targets."""

    kind: Literal["lookup-sprites"] = "lookup-sprites"

    def draw(self, space: Space, key: Array) -> LookupSpritesTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return LookupSpritesTeacher(space, self.pixels, self.noise, key)
