"""Small images of coloured shapes, one or two in each, to be generated from a caption.

`rendering` draws the images, `layout` turns combinations of a space into labels, and `checker` reads the labels back from
images. The checker is not trained: it compares an image with the renderer's own shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from recombine.families.base import Batch, Family, TargetKind, Task, TaskScores, Teacher
from recombine.families.scenes.checker import read
from recombine.families.scenes.layout import Layout, layout_of
from recombine.families.scenes.rendering import PAIR, SINGLE, render
from recombine.spaces import ProductSpace, Space

if TYPE_CHECKING:
    import pandas as pd

FACTORS: Mapping[str, tuple[str, ...]] = {
    "shape": ("disc", "square", "triangle", "cross"),
    "colour": ("red", "green", "blue", "yellow"),
    "size": ("small", "large"),
    "place": ("top left", "top right", "bottom left", "bottom right"),
}
"""The default space."""
TWO_THINGS: Mapping[str, tuple[str, ...]] = {name: FACTORS[name.split()[1]] for name in PAIR}
"""A space of scenes with two things, for `space.factors`."""

COUNTED: Mapping[str, tuple[str, str]] = {
    "success": ("whole", "images"),
    "readable": ("seen", "images"),
    "swapped": ("exchanged", "exchangeable"),
    "mirrored": ("reversed", "reversible"),
}
"""Metrics that are ratios of two statistics."""


class ScenesTeacher(Teacher):
    """The renderer on a space. Nothing about it is random: all replicates have the same one."""

    space: ProductSpace = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)
    pixels: int = eqx.field(static=True)
    jitter: float = eqx.field(static=True)
    noise: float = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task(row, jnp.ones(self.space.slots), self.space.vector(row))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        by_image, by_start = jax.random.split(key)
        label = self.layout.label(task.combination)
        images = jax.vmap(lambda image_key: render(label, image_key, self.pixels, self.jitter, self.noise))(
            jax.random.split(by_image, samples)
        )
        # The noise from which generation starts, at time zero.
        start = jax.random.normal(by_start, images.shape)
        return Batch(
            inputs=jnp.concatenate([start, jnp.zeros((samples, 1))], axis=1),
            targets=images,
            mask=jnp.ones(samples),
            labels=jnp.broadcast_to(label, (samples, len(label))),
        )


class Scenes(Family):
    """Generate an image of a thing (shape, colour, and any of size, place, texture), or of two side by side.

    An image is right when the checker reads every factor of the combination back from it; everything else is free.
    Metrics: `success` (all factors right), `readable` (all factors can be read), `right_<factor>`; with two things also
    `swapped` (shapes right, colours exchanged; out of images whose colours should differ) and `mirrored` (left and right
    exchanged; out of images whose shapes should differ).
    """

    kind: Literal["scenes"] = "scenes"
    metric: ClassVar[str] = "success"
    targets: ClassVar[TargetKind] = "images"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": {"kind": "product", "factors": FACTORS},
        "encoding": "captions",
        "model": "unet",
        "objective": "flow-matching",
        "recipe": {"kind": "fast", "tasks": 64, "samples": 2, "steps": 1500},
        # An evaluation generates images, with many passes of the network each: so evaluations are rare and small.
        "eval_every": 250,
        "validation_tasks": 16,
    }
    pixels: Literal[16, 32] = 16
    """Pixels along each side."""
    jitter: float = Field(default=1.0, ge=0, le=1)
    """How much images of one combination differ in exact position, size, colour and background."""
    noise: float = Field(default=0.0, ge=0, le=0.3)
    """The standard deviation of the noise on each channel of each pixel; channels go from -1 to 1."""

    def check(self, space: Space) -> None:
        layout_of(space)

    @property
    def input_size(self) -> int:
        return self.output_size + 1

    @property
    def output_size(self) -> int:
        return 3 * self.pixels**2

    def draw(self, space: Space, key: Array) -> ScenesTeacher:
        layout = layout_of(space)
        assert isinstance(space, ProductSpace)
        return ScenesTeacher(space, layout, self.pixels, self.jitter, self.noise)

    def sentence(self, space: Space, constituents: Sequence[int]) -> str:
        """A combination in words, always the same ones; the encoding `captions` varies them."""
        layout_of(space)
        assert isinstance(space, ProductSpace)
        parts = zip(space.factors, space.offsets, sorted(constituents), strict=True)
        words = {name: values[part - offset] for (name, values), offset, part in parts}
        if "shape" not in words:
            left, right = (f"{words[f'{side} colour']} {words[f'{side} shape']}" for side in ("left", "right"))
            return f"{left} left of {right}"
        thing = [words[name] for name in ("size", "texture", "colour", "shape") if name in words]
        return " ".join([*thing, *(["at", words["place"]] if "place" in words else [])])

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        assert batch.labels is not None
        wanted, mask = batch.labels, batch.mask
        shown = read(predictions, labels=wanted.shape[1])
        asked = wanted >= 0
        right = shown == wanted

        def count(which: Array) -> Float[Array, ""]:
            return jnp.sum(mask * which)

        scores = {
            "images": jnp.sum(mask),
            "whole": count(jnp.all(right | ~asked, axis=1)),
            "seen": count(jnp.all((shown >= 0) | ~asked, axis=1)),
        }
        names = SINGLE if wanted.shape[1] == len(SINGLE) else PAIR
        for column, name in enumerate(names):
            scores[f"asked_{_plain(name)}"] = count(asked[:, column])
            scores[f"hit_{_plain(name)}"] = count(asked[:, column] & right[:, column])
        if names is PAIR:
            other = shown[:, [2, 3, 0, 1]] == wanted
            shapes_differ, colours_differ = wanted[:, 0] != wanted[:, 2], wanted[:, 1] != wanted[:, 3]
            swapped = right[:, 0] & other[:, 1] & right[:, 2] & other[:, 3]
            scores |= {
                "exchanged": count(colours_differ & swapped),
                "exchangeable": count(colours_differ),
                "reversed": count(shapes_differ & jnp.all(other, axis=1)),
                "reversible": count(shapes_differ),
            }
        return scores

    def headline(self, scores: TaskScores) -> Float[Array, ""]:
        return jnp.sum(scores["whole"]) / jnp.sum(scores["images"])

    def metric_names(self, space: Space) -> tuple[str, ...]:
        factors = space.factors if isinstance(space, ProductSpace) else ()
        return (*COUNTED, *(f"right_{name.replace(' ', '_')}" for name, _ in factors))

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        sums = {name: float(np.sum(np.asarray(values, float))) for name, values in scores.items()}
        return {
            metric: sums[counted] / sums[out_of]
            for metric, (counted, out_of) in shares(list(sums)).items()
            if sums[out_of]
        }

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        ratios = shares(list(tasks.columns))
        columns = list(dict.fromkeys(name for pair in ratios.values() for name in pair))
        frame = tasks.groupby(by, sort=False, observed=True)[columns].sum()
        for metric, (counted, out_of) in ratios.items():
            # Undefined where nothing is counted.
            frame[metric] = frame[counted] / frame[out_of].where(frame[out_of] > 0)
        return frame.reset_index()


def shares(statistics: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The metrics that follow from these statistics, each as numerator and denominator. The headline is the first."""
    factors = [name.removeprefix("asked_") for name in statistics if name.startswith("asked_")]
    every = {**COUNTED, **{f"right_{name}": (f"hit_{name}", f"asked_{name}") for name in factors}}
    return {metric: pair for metric, pair in every.items() if set(pair) <= set(statistics)}


def _plain(name: str) -> str:
    return name.replace(" ", "_")
