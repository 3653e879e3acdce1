"""Small grey images of one shape, whose factors are the targets: the classic test of disentanglement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.errors import BadInput, did_you_mean
from recombine.families.base import Batch, Family, Task, TaskScores, Teacher
from recombine.families.scenes.rendering import SHAPES, Appearance, opacity
from recombine.spaces import ProductSpace, Space

if TYPE_CHECKING:
    import pandas as pd

ORDERED = ("size", "column", "row")
"""The factors whose values are ordered, in the order of the targets. Shape comes before them."""
FACTORS = ("shape", *ORDERED)
SPACE: Mapping[str, tuple[str, ...] | int] = {"shape": SHAPES[:4], "size": 4, "column": 6, "row": 6}
"""The default space."""

SMALLEST, LARGEST = 0.12, 0.22
"""The radii of the first and the last size; the others are evenly spaced."""
EDGE = 0.3
"""The position of the first column and row, as a share of the side; the last ones are as far from the other end."""
DARK, LIGHT = (0.05, 0.3), (0.65, 0.95)
"""The ranges of grey of backgrounds and of shapes."""


def spaced(number: Int[Array, ""], levels: int, first: float, last: float) -> Float[Array, ""]:
    """The value of a level, where levels are evenly spaced."""
    return first + (last - first) * number / (levels - 1)


def standardised(number: Int[Array, ""], levels: int) -> Float[Array, ""]:
    """The number of a level, with mean 0 and variance 1 over all levels."""
    return (2 * number - (levels - 1)) * (3 / (levels**2 - 1)) ** 0.5


class SpritesTeacher(Teacher):
    """The renderer, on a space. The targets are the factors of the image."""

    space: ProductSpace = eqx.field(static=True)
    pixels: int = eqx.field(static=True)
    noise: float = eqx.field(static=True)

    def target_combination(self, row: Int[Array, " slots"]) -> Int[Array, " slots"]:
        """The combination whose factors are the targets where this one is shown."""
        return row

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(self.space.slots), self.space.vector(row))

    def levels(self, row: Int[Array, " slots"]) -> dict[str, tuple[Int[Array, ""], int]]:
        """The level of each factor, and its number of levels. Shapes are numbered as in SHAPES."""
        levels = {
            name: (row[slot] - offset, len(values))
            for slot, ((name, values), offset) in enumerate(zip(self.space.factors, self.space.offsets, strict=True))
        }
        number, count = levels["shape"]
        return levels | {"shape": (_shapes(self.space)[number], count)}

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        shown, target = self.levels(task.combination), self.levels(self.target_combination(task.combination))
        appearance = Appearance(
            shape=shown["shape"][0],
            texture=jnp.zeros((), int),
            centre=jnp.stack([spaced(*shown[name], EDGE, 1 - EDGE) for name in ("column", "row")]),
            radius=spaced(*shown["size"], SMALLEST, LARGEST),
        )
        covered = opacity(appearance, self.pixels).ravel()

        by_dark, by_light, by_noise = jax.random.split(key, 3)
        dark = jax.random.uniform(by_dark, (samples, 1), minval=DARK[0], maxval=DARK[1])
        light = jax.random.uniform(by_light, (samples, 1), minval=LIGHT[0], maxval=LIGHT[1])
        images = 2 * (dark + covered * (light - dark)) - 1
        images = images + self.noise * jax.random.normal(by_noise, images.shape)
        targets = jnp.concatenate(
            [self._shape(target["shape"][0]), jnp.stack([standardised(*target[name]) for name in ORDERED])]
        )
        label = jnp.stack([*(target[name][0] for name in FACTORS), *(jnp.array(target[n][1]) for n in ORDERED)])
        return Batch(
            inputs=images,
            targets=jnp.broadcast_to(targets, (samples, len(targets))),
            mask=jnp.ones(samples),
            labels=jnp.broadcast_to(label.astype(jnp.int32), (samples, len(label))),
        )

    def _shape(self, number: Int[Array, ""]) -> Float[Array, " shape"]:
        """One-hot over all shapes, with mean 0 and a total variance of 1 over those of the space."""
        here = _shapes(self.space)
        share = jnp.zeros(len(SHAPES)).at[here].set(1 / len(here))
        return (jax.nn.one_hot(number, len(SHAPES)) - share) / (1 - 1 / len(here)) ** 0.5


def _shapes(space: ProductSpace) -> Int[Array, " value"]:
    """The number in SHAPES of each shape of a space."""
    return jnp.array([SHAPES.index(value) for value in dict(space.factors)["shape"]])


class Sprites(Family):
    """Predict shape, size, column and row of the sprite in an image. Shades and noise are random.

    The image shows the combination, so the encoding must not: use `unsaid`. Every factor has variance 1 over the whole
    space, and R2 is relative to this variance on every set of combinations. So it is defined, as 1 minus the squared
    error, even where a set has only one value of a factor. Metrics: `r2` (mean over factors), `success` (all factors
    right: the nearest value is the true one), `r2_<factor>`, `right_<factor>`.
    """

    kind: Literal["sprites"] = "sprites"
    metric: ClassVar[str] = "r2"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": {"kind": "product", "factors": SPACE},
        "encoding": "unsaid",
        "model": "convnet",
        "recipe": {"kind": "fast", "tasks": 128, "samples": 1, "steps": 500},
    }
    pixels: Literal[16, 32] = 16
    """Pixels along each side."""
    noise: float = Field(default=0.05, ge=0)
    """The standard deviation of the noise on each pixel; pixels go from -1 to 1."""

    def check(self, space: Space) -> None:
        given = dict(space.factors) if isinstance(space, ProductSpace) else {}
        if set(given) != set(FACTORS) or min(len(values) for values in given.values()) < 2:
            raise BadInput(
                f"Sprites need the factors {', '.join(FACTORS)}, each with at least two values. Got {space.title}.",
                fix='space.factors={"shape": ["disc", "square"], "size": 3, "column": 4, "row": 4}, or leave the space '
                "out: the family brings one",
            )
        for value in given["shape"]:
            if value not in SHAPES:
                raise BadInput(
                    f"There is no shape called {value!r}.",
                    fix=f"{did_you_mean(value, SHAPES)} The shapes: {', '.join(SHAPES)}",
                )

    def draw(self, space: Space, key: Array) -> SpritesTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return SpritesTeacher(space, self.pixels, self.noise)

    @property
    def input_size(self) -> int:
        return self.pixels**2

    @property
    def output_size(self) -> int:
        return len(SHAPES) + len(ORDERED)

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        assert batch.labels is not None
        shapes = len(SHAPES)
        error = (predictions - batch.targets) ** 2
        by_factor = [error[:, :shapes].sum(axis=1), *error[:, shapes:].T]
        # Right: the nearest level is the true one. Beyond the first and the last level, these are the nearest.
        levels = batch.labels[:, len(FACTORS) :].astype(jnp.float32)
        number = jnp.round(predictions[:, shapes:] / (2 * (3 / (levels**2 - 1)) ** 0.5) + (levels - 1) / 2)
        nearest = jnp.clip(number, 0, levels - 1) == batch.labels[:, 1 : len(FACTORS)]
        right = [jnp.argmax(predictions[:, :shapes], axis=1) == batch.labels[:, 0], *nearest.T]

        def total(values: Array) -> Float[Array, ""]:
            return jnp.sum(batch.mask * values)

        scores = {"images": total(jnp.ones_like(batch.mask)), "whole": total(jnp.all(jnp.stack(right), axis=0))}
        for name, squares, good in zip(FACTORS, by_factor, right, strict=True):
            scores |= {f"error_{name}": total(squares), f"hit_{name}": total(good)}
        return scores

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        error = sum(jnp.sum(scores[f"error_{name}"]) for name in FACTORS)
        return 1 - error / (len(FACTORS) * jnp.sum(scores["images"]))

    def metric_names(self, space: Space) -> tuple[str, ...]:
        return ("r2", "success", *(f"{metric}_{name}" for metric in ("r2", "right") for name in FACTORS))

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        sums = {name: float(np.sum(np.asarray(values, float))) for name, values in scores.items()}
        return {name: float(value) for name, value in _metrics(sums).items()}

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        counted = [f"{what}_{name}" for name in FACTORS for what in ("error", "hit")]
        frame = tasks.groupby(by, sort=False, observed=True)[["images", "whole", *counted]].sum()
        return frame.assign(**_metrics(frame)).reset_index()


def _metrics(sums: Any) -> dict[str, Any]:
    """The metrics, from sums over tasks given as numbers or as columns."""
    single = {f"r2_{name}": 1 - sums[f"error_{name}"] / sums["images"] for name in FACTORS}
    mean = sum(single.values()) / len(FACTORS)
    right = {f"right_{name}": sums[f"hit_{name}"] / sums["images"] for name in FACTORS}
    return {"r2": mean, "success": sums["whole"] / sums["images"], **single, **right}
