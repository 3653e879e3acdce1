"""Chains of two or three random functions. Training sees a share of the facts of each function."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int
from pydantic import Field, PositiveInt

from recombine.errors import BadInput
from recombine.spaces import ProductSpace, Space
from recombine.supports import Listed, SupportKind

INNER = {"two-hop": 1, "non-tree": 1, "three-hop": 2}
"""The number of functions before the last one. There are two more inputs than that."""
Chain = Literal["two-hop", "three-hop", "non-tree"]


class HopSupport(Listed):
    """A list of inputs, with the inner functions that determined it."""

    inner: Int[np.ndarray, "function token token"]

    @property
    def structure(self) -> Int[Array, "function token token"]:
        return jnp.asarray(self.inner)


class Hops(SupportKind):
    """Trains on inputs whose steps use only training facts. Half of the test also does, and half uses another fact.

    The inputs are tokens (x1, x2, x3), or four tokens for three hops. The inner functions are drawn here, because they
    decide which facts an input uses: b = f1(x1, x2), c = f2(b, x3). The family draws the last function. A fact is one
    argument tuple of a function; a random share `seen` of each function's facts is for training. With `non-tree` the
    last function takes (b, x2, x3), so that b alone does not replace (x1, x2).
    """

    kind: Literal["hops"] = "hops"
    chain: Chain = "two-hop"
    """The functions of the chain."""
    number: PositiveInt = 2000
    """The number of training inputs."""
    seen: float = Field(default=0.7, gt=0, lt=1)
    """The share of each function's facts that training uses."""
    reserve: PositiveInt = 512
    """The number of held-out inputs: half with training facts only, half with another fact."""

    def obstacle(self, space: Space) -> BadInput | None:
        wanted = INNER[self.chain] + 2
        if not isinstance(space, ProductSpace) or len(set(space.levels)) > 1 or space.slots != wanted:
            return BadInput(
                f"hops with chain={self.chain} needs a product space of {wanted} factors with equally many tokens, got "
                f"{space.title}.",
                fix="space=product with factors " + "{" + ", ".join(f"x{n + 1}: 20" for n in range(wanted)) + "}",
            )
        return None

    def check(self, space: Space) -> None:
        super().check(space)
        facts = 2 if self.chain != "three-hop" else 3
        expected = int(space.size * self.seen**facts * 0.8)
        half = self.reserve // 2
        if self.number + half > expected:
            raise BadInput(
                f"About {expected} inputs of this space have only training facts, fewer than number={self.number} and half of "
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
        # Held-out inputs come first, so that they do not depend on the number.
        half = self.reserve // 2
        trained = inside[half : half + self.number]
        if len(trained) < self.number:
            raise BadInput(f"Only {len(inside)} inputs have only training facts.", fix="choose a smaller number")
        held_out = np.concatenate([inside[:half], outside[: self.reserve - half]])
        support = HopSupport(space, trained, reserved=held_out)
        support.inner = inner
        return support


def steps(
    chain: Chain, inputs: Int[np.ndarray, "n position"], inner: Int[np.ndarray, "function token token"]
) -> list[tuple[np.ndarray, ...]]:
    """The arguments of each function for each input, the first function first."""
    x = inputs.T
    arguments: list[tuple[np.ndarray, ...]] = [(x[0], x[1])]
    bridge = inner[0][x[0], x[1]]
    if chain == "non-tree":
        return [*arguments, (bridge, x[1], x[2])]
    for function, other in zip([*inner[1:], None], x[2:], strict=True):
        arguments.append((bridge, other))
        if function is not None:
            bridge = function[bridge, other]
    return arguments


def _facts(rng: np.random.Generator, shape: tuple[int, ...], seen: float) -> Bool[np.ndarray, ...]:
    """Which facts of a function are for training: an exact share of them."""
    number = int(np.prod(shape))
    return rng.permutation(number).reshape(shape) < round(seen * number)
