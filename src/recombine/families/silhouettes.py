"""White shapes on black, to be cleaned of noise: images in which no colour says which pixel belongs to which object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, TaskScores, Teacher
from recombine.families.objects.drawing import anywhere, check_values, opacities
from recombine.families.regression import RegressionFamily
from recombine.families.scenes.rendering import SHAPES
from recombine.spaces import ProductSpace, Space

FACTORS = ("shape", "objects")
SPACE: Mapping[str, tuple[str, ...]] = {
    "shape": ("square", "triangle", "inverted triangle"),
    "objects": ("1", "2", "3", "4"),
}
"""The default space, for outlines."""
FILLED: Mapping[str, tuple[str, ...]] = {**SPACE, "shape": ("disc", "square", "triangle", "cross")}
"""A space for filled shapes."""
MOST = 5
"""The most objects of an image."""
NOBODY, SEVERAL = -1, -2
"""The owner of a pixel of the background, and of a pixel that several objects cover."""
OUTLINE = (7, 12)
"""Rows and columns of the largest outline."""


def outlines() -> Mapping[str, Bool[np.ndarray, "row column"]]:
    """Outlines of shapes, about two pixels wide: those of the data of Reichert and Serre (arXiv 1312.6115)."""
    rows, columns = np.mgrid[: OUTLINE[0], : OUTLINE[1]]
    square = (columns < 7) & ((np.abs(rows - 3) > 1) | (np.abs(columns - 3) > 1))
    away = np.abs(columns - 5.5)
    triangle = (away < rows + 1) & ~((away < rows - 2) & (rows < 5))
    return {"square": square, "triangle": triangle, "inverted triangle": triangle[::-1]}


class SilhouettesTeacher(Teacher):
    """The painter, on a space. The labels of an image say which object each pixel belongs to."""

    space: ProductSpace = eqx.field(static=True)
    family: Silhouettes = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(self.space.slots), self.space.vector(row))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        levels = dict(zip((name for name, _ in self.space.factors), self._levels(task.combination), strict=True))
        names = dict(self.space.factors)
        number = jnp.array([int(value) for value in names["objects"]])[levels["objects"]]
        present = jnp.arange(MOST) < number

        def example(key: Array) -> tuple[Array, Array, Array]:
            by_shape, by_size, by_place, by_flip = jax.random.split(key, 4)
            shapes = jax.random.randint(by_shape, (MOST,), 0, len(names["shape"])).at[0].set(levels["shape"])
            if self.family.style == "outlines":
                covered = self._outlined(names["shape"], shapes, by_place)
            else:
                covered = self._filled(names["shape"], shapes, present, by_size, by_place)
            covered = covered.reshape(MOST, -1) & present[:, None]
            count = jnp.sum(covered, axis=0)
            owner = jnp.where(count == 1, jnp.argmax(covered, axis=0), jnp.where(count == 0, NOBODY, SEVERAL))
            image = (count > 0).astype(jnp.float32)
            flipped = jax.random.bernoulli(by_flip, self.family.flips, image.shape)
            return jnp.where(flipped, 1 - image, image), image, owner

        noisy, clean, owners = jax.vmap(example)(jax.random.split(key, samples))
        return Batch(noisy, clean, jnp.ones(samples), owners.astype(jnp.int32))

    def _outlined(
        self, names: tuple[str, ...], shapes: Int[Array, " object"], key: Array
    ) -> Bool[Array, "object row column"]:
        """Outlines anywhere in the image, whatever they cover."""
        drawn = outlines()
        table, pixels = jnp.array([drawn[name] for name in names]), self.family.pixels
        room = pixels + 1 - jnp.array([[drawn[name].any(axis).sum() for axis in (1, 0)] for name in names])
        corners = jnp.floor(jax.random.uniform(key, (len(shapes), 2)) * room[shapes]).astype(int)
        # A square is narrower than the table, so near the border its empty columns need room.
        empty = jnp.zeros((pixels, pixels + OUTLINE[1]), bool)
        placed = jax.vmap(lambda shape, corner: jax.lax.dynamic_update_slice(empty, shape, corner))
        return placed(table[shapes], corners)[:, :, :pixels]

    def _filled(
        self, names: tuple[str, ...], shapes: Int[Array, " object"], present: Bool[Array, " object"], *keys: Array
    ) -> Bool[Array, "object row column"]:
        """Filled shapes of random sizes, which overlap a little."""
        family, (by_size, by_place) = self.family, keys
        radii = jax.random.uniform(by_size, (MOST,), minval=family.smallest, maxval=family.largest)
        shown = present.astype(jnp.float32)
        centres = anywhere(by_place, shown, radii, family.spacing)
        known = jnp.array([SHAPES.index(name) for name in names])
        return opacities(known[shapes], centres, radii, shown, family.pixels) > 0.5

    def _levels(self, row: Int[Array, " slots"]) -> list[Int[Array, ""]]:
        return [row[slot] - offset for slot, offset in enumerate(self.space.offsets)]


class Silhouettes(RegressionFamily):
    """Restore an image of one to five white shapes on black, some of whose pixels were flipped.

    A combination is the shape of one object and the number of objects; the other shapes are random. Shapes may overlap.
    `Batch.labels` has the object of each pixel (-1: background, -2: several objects), for measurements of how a network divides a
    scene. Metrics are those of regression; R2 is relative to the variance of a task's pixels.

    `style="outlines"` is the data of the published comparison of reconstruction clustering: outlines of squares and
    triangles of one size, anywhere in the image. `style="filled"` has filled shapes of several sizes, with a least distance; its
    spaces have other shapes (`families.silhouettes.FILLED`).
    """

    kind: Literal["silhouettes"] = "silhouettes"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": {"kind": "product", "factors": SPACE},
        "support": {"kind": "few-objects", "most": 1},
        "encoding": "unsaid",
        "objective": "binary",
        "model": {"kind": "mlp", "width": 256, "depth": 2},
        "recipe": {"kind": "fast", "tasks": 64, "samples": 2, "steps": 6000},
        "validation_tasks": 16,
        "eval_every": 250,
    }
    pixels: int = Field(default=28, ge=16, multiple_of=4)
    """Pixels along each side."""
    flips: float = Field(default=0.2, ge=0, lt=0.5)
    """The share of pixels that are flipped in an input."""
    style: Literal["outlines", "filled"] = "outlines"
    """Outlines of one size, or filled shapes of several sizes."""
    smallest: float = Field(default=0.1, gt=0, le=0.3)
    """The smallest radius of a filled shape, as a share of the image."""
    largest: float = Field(default=0.25, gt=0, le=0.3)
    """The largest radius of a filled shape."""
    spacing: float = Field(default=0.6, ge=0)
    """The least distance between the centres of two filled shapes, relative to the sum of their radii."""

    def check(self, space: Space) -> None:
        given = dict(space.factors) if isinstance(space, ProductSpace) else {}
        if set(given) != set(FACTORS):
            raise BadInput(
                f"Silhouettes need the factors {' and '.join(FACTORS)}. Got {space.title}.",
                fix="leave the space out: the family brings one",
            )
        shapes = tuple(outlines()) if self.style == "outlines" else SHAPES
        known = {"shape": shapes, "objects": tuple(str(n + 1) for n in range(MOST))}
        check_values(given, known)

    def draw(self, space: Space, key: Array) -> SilhouettesTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return SilhouettesTeacher(space, self)

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
