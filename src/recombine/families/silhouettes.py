"""White shapes on black, to be cleaned of noise: images in which no colour says which pixel belongs to which object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, TaskScores, Teacher
from recombine.families.objects.drawing import anywhere, check_values, opacities
from recombine.families.regression import RegressionFamily
from recombine.families.scenes.rendering import SHAPES
from recombine.spaces import ProductSpace, Space

FACTORS = ("shape", "objects")
SPACE: Mapping[str, tuple[str, ...]] = {
    "shape": ("disc", "square", "triangle", "cross"),
    "objects": ("1", "2", "3", "4"),
}
"""The default space."""
MOST = 5
"""The most objects of an image."""
SPACING = 0.75
"""The least distance between two centres, relative to the sum of their radii. Neighbours may touch and overlap."""
NOBODY, SEVERAL = -1, -2
"""The owner of a pixel of the background, and of a pixel that several objects cover."""


class SilhouettesTeacher(Teacher):
    """The painter, on a space. The labels of an image say which object each pixel belongs to."""

    space: ProductSpace = eqx.field(static=True)
    pixels: int = eqx.field(static=True)
    flips: float = eqx.field(static=True)
    smallest: float = eqx.field(static=True)
    largest: float = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(self.space.slots), self.space.vector(row))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        levels = dict(zip((name for name, _ in self.space.factors), self._levels(task.combination), strict=True))
        factors = dict(self.space.factors)
        usual = jnp.array([SHAPES.index(value) for value in factors["shape"]])
        number = jnp.array([int(value) for value in factors["objects"]])[levels["objects"]]
        present = (jnp.arange(MOST) < number).astype(jnp.float32)

        def example(key: Array) -> tuple[Array, Array, Array]:
            by_shape, by_size, by_place, by_flip = jax.random.split(key, 4)
            shapes = usual[jax.random.randint(by_shape, (MOST,), 0, len(usual))].at[0].set(usual[levels["shape"]])
            radii = jax.random.uniform(by_size, (MOST,), minval=self.smallest, maxval=self.largest)
            centres = anywhere(by_place, present, radii, SPACING)
            covered = opacities(shapes, centres, radii, present, self.pixels) > 0.5
            covered = covered.reshape(MOST, -1)
            count = jnp.sum(covered, axis=0)
            owner = jnp.where(count == 1, jnp.argmax(covered, axis=0), jnp.where(count == 0, NOBODY, SEVERAL))
            image = (count > 0).astype(jnp.float32)
            flipped = jax.random.bernoulli(by_flip, self.flips, image.shape)
            return jnp.where(flipped, 1 - image, image), image, owner

        noisy, clean, owners = jax.vmap(example)(jax.random.split(key, samples))
        return Batch(noisy, clean, jnp.ones(samples), owners.astype(jnp.int32))

    def _levels(self, row: Int[Array, " slots"]) -> list[Int[Array, ""]]:
        return [row[slot] - offset for slot, offset in enumerate(self.space.offsets)]


class Silhouettes(RegressionFamily):
    """Restore an image of one to five white shapes on black, some of whose pixels were flipped.

    A combination is the shape of one object and the number of objects; the other shapes are random. Shapes
    may touch, and overlap a little. `Batch.labels` has the object of each pixel (-1: background, -2: several objects), for measurements of
    how a network divides a scene. Metrics are those of regression; R2 is relative to the variance of a task's pixels.
    """

    kind: Literal["silhouettes"] = "silhouettes"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": {"kind": "product", "factors": SPACE},
        "support": {"kind": "few-objects", "most": 1},
        "encoding": "unsaid",
        "model": {"kind": "mlp", "width": 256, "depth": 1},
        "recipe": {"kind": "fast", "tasks": 64, "samples": 2, "steps": 1000},
        "validation_tasks": 16,
        "eval_every": 250,
    }
    pixels: int = Field(default=28, ge=16, multiple_of=4)
    """Pixels along each side."""
    flips: float = Field(default=0.1, ge=0, lt=0.5)
    """The share of pixels that are flipped in an input."""
    smallest: float = Field(default=0.18, gt=0, le=0.3)
    """The smallest radius of an object, as a share of the image."""
    largest: float = Field(default=0.18, gt=0, le=0.3)
    """The largest radius. By default all objects have one size, as in the data of reconstruction clustering."""

    def check(self, space: Space) -> None:
        given = dict(space.factors) if isinstance(space, ProductSpace) else {}
        if set(given) != set(FACTORS):
            raise BadInput(
                f"Silhouettes need the factors {' and '.join(FACTORS)}. Got {space.title}.",
                fix="leave the space out: the family brings one",
            )
        known = {"shape": SHAPES, "objects": tuple(str(n + 1) for n in range(MOST))}
        check_values(given, known)

    def draw(self, space: Space, key: Array) -> SilhouettesTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return SilhouettesTeacher(space, self.pixels, self.flips, self.smallest, self.largest)

    @property
    def input_size(self) -> int:
        return self.pixels**2

    @property
    def output_size(self) -> int:
        return self.pixels**2

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        # All pixels of a task share one mean: many are black in every image, and have no variance by themselves.
        weight = jnp.broadcast_to(batch.mask[:, None], batch.targets.shape)
        mean, usual = (jnp.sum(weight * values) / jnp.sum(weight) for values in (batch.targets, predictions))
        truth, answer = batch.targets - mean, predictions - usual
        error, spread = jnp.sum(weight * (batch.targets - predictions) ** 2), jnp.sum(weight * truth**2)
        return {
            "error": error,
            "spread": spread,
            "agreement": jnp.sum(weight * truth * answer),
            "power": jnp.sum(weight * answer**2),
            "ratio": error / spread,
        }
