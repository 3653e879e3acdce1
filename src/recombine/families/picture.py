"""Pictures that evolved networks draw: inputs are places, targets are hue, saturation and brightness there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32
from pydantic import Field, PositiveInt

from recombine.cppn.changes import CHANGES, changed
from recombine.cppn.dense_network import dense
from recombine.cppn.genome import INPUTS, Genome
from recombine.cppn.picture import places
from recombine.cppn.search import Search, chosen
from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.regression import RegressionFamily
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

FOUND = "found"
SPACE = ProductSpace(factors=(("picture", (FOUND, *CHANGES)),))
"""The picture as it was found, and the same with one part changed."""


class PictureTeacher(Teacher):
    """The pictures, and the evolved network as padded arrays: a model can be built from it."""

    inputs: Float[Array, "place 4"]
    pictures: Float[Array, "picture place output"]
    """In the order of the space."""
    first: Float[Array, "4 unit"]
    middle: Float[Array, "layer unit unit"]
    readout: Float[Array, "unit output"]
    activations: Int[Array, " unit"]
    units: Bool[Array, " unit"]
    """Which units of a layer exist; the others fill it up."""
    depth: Int[Array, ""]
    """The number of hidden layers that exist."""

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, len(self.pictures))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        number = len(self.inputs)
        # As many samples as places are the whole picture; otherwise places are drawn.
        at = jnp.arange(number) if samples == number else jax.random.randint(key, (samples,), 0, number)
        return Batch(self.inputs[at], self.pictures[task.combination[0], at], jnp.ones(samples))


class Picture(RegressionFamily):
    """One picture and changed versions of it, drawn by a network that was evolved without a target.

    A combination is one version. The evolved network is found by a novelty search with the teacher's seed, or is given.
    """

    kind: Literal["picture"] = "picture"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": SPACE,
        "support": {"kind": "given", "combinations": ((FOUND,),)},
        "model": "cppn",
    }
    validation_samples: ClassVar[int] = 64
    side: PositiveInt = Field(default=32, ge=8)
    """Pixels of a side."""
    search: Search = Search()
    """The search for the network, where none is given."""
    genome: Genome | None = None
    """The evolved network; None for one that the search finds, a grey picture for each replicate."""

    def check(self, space: Space) -> None:
        if space != SPACE:
            raise BadInput(f"The family 'picture' has its own space, got {space.title}.", fix="leave the space out")

    @property
    def input_size(self) -> int:
        return len(INPUTS)

    @property
    def output_size(self) -> int:
        return 1 if self.genome is None else len(self.genome.outputs)

    @property
    def depth(self) -> int:
        """The most hidden layers of the dense network."""
        return self.search.depth if self.genome is None else dense(self.genome).depth

    @property
    def width(self) -> int:
        """The most units of a layer of the dense network."""
        return self.search.width if self.genome is None else dense(self.genome).width

    def evolved(self, bits: UInt32[Array | np.ndarray, " four"]) -> Genome:
        """The genome of a replicate, from the random bits of its key."""
        if self.genome is not None:
            return self.genome
        return chosen(self.search, int.from_bytes(np.asarray(bits, np.uint32).tobytes(), "little"))

    def prepare(self, space: Space, key: Array) -> None:
        """Search for the genome; `draw` takes it from the cache."""
        self._arrays(jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> PictureTeacher:
        self.check(space)
        # The search does not use JAX, but `draw` is compiled.
        arrays = jax.pure_callback(self._arrays, self._shapes(), jax.random.bits(key, (4,), "uint32"))
        return PictureTeacher(jnp.asarray(places(self.side), jnp.float32), *arrays)

    def _shapes(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The shapes of `_arrays`, which do not depend on what the search finds."""
        depth, width, outputs = self.depth, self.width, self.output_size
        shapes = (
            (SPACE.size, self.side**2, outputs),
            (len(INPUTS), width),
            (depth - 1, width, width),
            (width, outputs),
        )
        others = (((width,), jnp.int32), ((width,), jnp.bool_), ((), jnp.int32))
        return tuple(jax.ShapeDtypeStruct(*each) for each in (*((shape, jnp.float32) for shape in shapes), *others))

    def _arrays(self, bits: UInt32[Array | np.ndarray, " four"]) -> tuple[np.ndarray, ...]:
        genome = self.evolved(bits)
        found = genome.values(places(self.side))[:, list(genome.outputs)].reshape(self.side, self.side, -1)
        pictures = np.stack([found, *(changed(found, change) for change in CHANGES)])
        network, (depth, width) = dense(genome), (self.depth, self.width)
        wide = width - network.width
        middle = np.zeros((depth - 1, width, width), np.float32)
        for layer, matrix in enumerate(network.middle):
            middle[layer, : network.width, : network.width] = matrix
        return (
            pictures.reshape(len(pictures), self.side**2, -1).astype(np.float32),
            np.pad(network.first, ((0, 0), (0, wide))).astype(np.float32),
            middle,
            np.pad(network.readout, ((0, wide), (0, 0))).astype(np.float32),
            np.pad(network.activations, (0, wide)).astype(np.int32),
            np.arange(width) < network.width,
            np.array(network.depth, np.int32),
        )
