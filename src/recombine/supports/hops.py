"""Facts of which a part is seen: chains of two or three random functions, of whose domains training sees a share."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.supports.base import SupportKind
from recombine.supports.listed import Listed

INNER = {"two-hop": 1, "non-tree": 1, "three-hop": 2}
"""How many functions lie inside the last one. Inputs are two more."""
KINDS = tuple(INNER)
Chain = Literal["two-hop", "three-hop", "non-tree"]


class HopSupport(Listed):
    """A list of inputs, with the inner functions by which it was made."""

    def __init__(
        self,
        space: Space,
        rows: Int[np.ndarray, "n slots"],
        reserved: Int[np.ndarray, "m slots"],
        inner: Int[np.ndarray, "function token token"],
    ) -> None:
        super().__init__(space, rows, reserved=reserved)
        self.inner = inner

    @property
    def structure(self) -> Int[Array, "function token token"]:
        return jnp.asarray(self.inner)


class Hops(SupportKind):
    """Trains on inputs all of whose steps have facts that may be seen; the others of these and the rest are held out.

    The inputs are tokens (x1, x2, x3), or four for three hops. The inner functions are drawn here, as which facts may be seen
    depends on them: b = f1(x1, x2), c = f2(b, x3). The last function is the family's. Facts are the arguments of a
    function; a random `seen` of each function's are for training. For `non-tree` the last function takes (b, x2, x3), so that b alone
    does not stand for (x1, x2).
    """

    kind: Literal["hops"] = "hops"
    chain: Chain = "two-hop"
    """Which functions there are."""
    number: PositiveInt = 2000
    """How many inputs are trained on."""
    seen: float = Field(default=0.7, gt=0, lt=1)
    """The share of each function's facts that training may use."""
    reserve: PositiveInt = 512
    """Inputs that are held out: half of them with facts that are for training, half with one that is not."""

    def obstacle(self, space: Space) -> BadInput | None:
        wanted = INNER[self.chain] + 2
        if not isinstance(space, ProductSpace) or len(set(space.levels)) > 1 or space.slots != wanted:
            return BadInput(
                f"hops with chain={self.chain} needs a space of {wanted} factors with the same number of tokens each, got "
                f"{space.title}.",
                fix="space=product with factors "
                + "{"
                + ", ".join(f"x{n + 1}: 20" for n in range(wanted))
                + "}",
            )
        return None

    def check(self, space: Space) -> None:
        self.require_possible(space)
        facts = 2 if self.chain != "three-hop" else 3
        expected = int(space.size * self.seen**facts * 0.8)
        half = self.reserve // 2
        if self.number + half > expected:
            raise BadInput(
                f"About {expected} inputs of this space have facts for training, fewer than number={self.number} and half of "
                f"reserve={self.reserve}.",
                fix=f"number={max(1, expected - half)}, or more tokens",
            )

    def length(self, space: Space) -> int:
        return self.number

    def draw(self, space: Space, seed: int) -> HopSupport:
        self.check(space)
        assert isinstance(space, ProductSpace)
        rng = np.random.default_rng([seed, 53])
        tokens = space.levels[0]
        inner = rng.integers(0, tokens, (INNER[self.chain], tokens, tokens))
        values = rng.permutation(space.size)
        inputs = np.stack(np.unravel_index(values, space.levels), axis=1)
        facts = steps(self.chain, inputs, inner)
        allowed = np.all([_facts(rng, (tokens,) * len(fact), self.seen)[fact] for fact in facts], axis=0)
        rows = (inputs + np.array(space.offsets)).astype(np.int32)
        inside, outside = rows[allowed], rows[~allowed]
        # Those held out come first, so that they are the same whatever the number.
        half = self.reserve // 2
        trained = inside[half : half + self.number]
        if len(trained) < self.number:
            raise BadInput(f"Only {len(inside)} inputs have facts for training.", fix="a smaller number")
        return HopSupport(
            space, trained, np.concatenate([inside[:half], outside[: self.reserve - half]]), inner
        )


def steps(
    chain: Chain, inputs: Int[np.ndarray, "n position"], inner: Int[np.ndarray, "function token token"]
) -> list[tuple[np.ndarray, ...]]:
    """The arguments of each function for each input, the first function first."""
    x = inputs.T
    found: list[tuple[np.ndarray, ...]] = [(x[0], x[1])]
    bridge = inner[0][x[0], x[1]]
    if chain == "non-tree":
        return [*found, (bridge, x[1], x[2])]
    for function, other in zip([*inner[1:], None], x[2:], strict=True):
        found.append((bridge, other))
        if function is not None:
            bridge = function[bridge, other]
    return found


def _facts(rng: np.random.Generator, shape: tuple[int, ...], seen: float) -> Bool[np.ndarray, ...]:
    """Which arguments of a function are for training: an exact share of them."""
    number = int(np.prod(shape))
    return rng.permutation(number).reshape(shape) < round(seen * number)
