"""Which factors and values a space of scenes may have, and the labels of its combinations."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from recombine.errors import BadInput, did_you_mean
from recombine.families.scenes.rendering import PAIR, SINGLE
from recombine.spaces import ProductSpace, Space

REQUIRED = ("shape", "colour")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the combinations of a space become labels.

    A *label* has a number for each factor of `SINGLE` or of `PAIR`, independent of the factors of the space and their
    order: the number of the value in that list, or -1 where the space does not have the factor.
    """

    factors: tuple[str, ...]
    """The factors of a label: of one thing or of two."""
    columns: tuple[int, ...]
    """The place of each factor of the space in a label."""
    numbers: tuple[int, ...]
    """The number of each constituent in a label."""

    def label(self, row: Int[Array, " slots"]) -> Int[Array, " label"]:
        """The label of a combination."""
        empty = jnp.full(len(self.factors), -1, jnp.int32)
        return empty.at[np.array(self.columns)].set(jnp.array(self.numbers, jnp.int32)[row])


def layout_of(space: Space) -> Layout:
    """The layout of a space. Raises BadInput if its combinations are not scenes."""
    given = dict(space.factors) if isinstance(space, ProductSpace) else {}
    alone = set(REQUIRED) <= set(given) <= set(SINGLE)
    if not alone and set(given) != set(PAIR):
        others = [name for name in SINGLE if name not in REQUIRED]
        raise BadInput(
            f"Scenes have the factors {' and '.join(REQUIRED)}, and any of {', '.join(others)}; or, with two things, "
            f"{', '.join(PAIR)}. Got {space.title}.",
            fix='space.factors={"shape": ["disc", "square"], "colour": ["red", "blue"]}, or leave the space out: the '
            "family brings one",
        )
    known = SINGLE if alone else PAIR
    for name, values in given.items():
        for value in values:
            if value not in known[name]:
                raise BadInput(
                    f"Scenes have no {name} called {value!r}.",
                    fix=f"{did_you_mean(value, known[name])} The values: {', '.join(known[name])}",
                )
    names = tuple(known)
    numbers = tuple(known[name].index(value) for name, values in given.items() for value in values)
    return Layout(names, tuple(names.index(name) for name in given), numbers)
