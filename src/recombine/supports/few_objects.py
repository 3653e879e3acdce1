"""Scenes with few objects, without some conjunctions of shape and colour. The rest of the space is held out."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool
from pydantic import NonNegativeInt, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space
from recombine.supports import Listed, SupportKind
from recombine.supports.certificate import Promise
from recombine.supports.listed.kinds import check_rest

SALT = 71
"""Makes the draws independent of those of other kinds with the same seed."""


class ShownConjunctions(Listed):
    """A list of scenes, with the conjunctions of shape and colour that training may show at all."""

    shown: Bool[np.ndarray, "shape colour"] | None = None

    @property
    def structure(self) -> Bool[Array, "shape colour"] | None:
        return None if self.shown is None else jnp.asarray(self.shown)


class FewObjects(SupportKind):
    """Trains on scenes of `fewest` to `most` objects, without some conjunctions of shape and colour.

    The space has the factors `shape`, `objects` (how many there are, as numbers) and perhaps `colour`. The replicate's seed
    picks the conjunctions that are left out, no two with the same shape or colour. The family never shows them in training,
    not even beside the object that is asked for.
    """

    kind: Literal["few-objects"] = "few-objects"
    defined_on = (ProductSpace,)
    fewest: PositiveInt = 1
    """The fewest objects of a training scene."""
    most: PositiveInt = 3
    """The most objects of a training scene."""
    conjunctions: NonNegativeInt = 0
    """The number of conjunctions of shape and colour that are left out."""

    def obstacle(self, space: Space) -> BadInput | None:
        assert isinstance(space, ProductSpace)
        given = dict(space.factors)
        if not {"shape", "objects"} <= set(given) or not all(number.isdecimal() for number in given["objects"]):
            return BadInput(
                f"few-objects needs the factors shape and objects, whose values are numbers. Got {space.title}.",
                fix="family=objects or family=silhouettes, which bring such a space",
            )
        if not any(self.fewest <= int(number) <= self.most for number in given["objects"]):
            numbers = ", ".join(given["objects"])
            return BadInput(
                f"No scene has {self.fewest} to {self.most} objects.", fix=f"scenes here have {numbers} objects"
            )
        most = min(len(given["shape"]), len(given.get("colour", ()))) - 2
        if self.conjunctions > max(most, 0):
            return BadInput(
                f"{self.conjunctions} conjunctions cannot be left out: every shape and colour must stay in use.",
                fix=f"conjunctions={max(most, 0)}",
            )
        return None

    def check(self, space: Space) -> None:
        super().check(space)
        check_rest(space, self.length(space), 0, "train on fewer numbers of objects, or leave out a conjunction")

    def length(self, space: Space) -> int:
        assert isinstance(space, ProductSpace)
        numbers = sum(self.fewest <= int(number) <= self.most for number in dict(space.factors)["objects"])
        others = space.size // len(dict(space.factors)["objects"])
        named = len(dict(space.factors)["shape"]) * len(dict(space.factors).get("colour", ("",)))
        return (others - self.conjunctions * (others // named)) * numbers

    def promises(self, space: Space) -> Promise:
        return Promise(size=self.length(space))

    def draw(self, space: Space, seed: int) -> ShownConjunctions:
        self.check(space)
        assert isinstance(space, ProductSpace)
        names = [name for name, _ in space.factors]
        rows = space.enumerate()
        level = {name: rows[:, slot] - space.offsets[slot] for slot, name in enumerate(names)}
        numbers = np.array([int(number) for number in dict(space.factors)["objects"]])[level["objects"]]
        kept = (numbers >= self.fewest) & (numbers <= self.most)
        shown = None
        if "colour" in names:
            rng = np.random.default_rng([seed, SALT])
            shapes, colours = (len(dict(space.factors)[name]) for name in ("shape", "colour"))
            shown = np.ones((shapes, colours), bool)
            shown[rng.permutation(shapes)[: self.conjunctions], rng.permutation(colours)[: self.conjunctions]] = False
            kept &= shown[level["shape"], level["colour"]]
        support = ShownConjunctions(space, rows[kept])
        support.shown = shown
        return support
