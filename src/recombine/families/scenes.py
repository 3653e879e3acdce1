"""Small images of coloured shapes, one or two in each, to be generated from a caption."""

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
from recombine.families.scene_checker import read
from recombine.families.scene_layout import Layout, layout_of
from recombine.families.scene_rendering import PAIR, SINGLE, render
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace

if TYPE_CHECKING:
    import pandas as pd

FACTORS: Mapping[str, tuple[str, ...]] = {
    "shape": ("disc", "square", "triangle", "cross"),
    "colour": ("red", "green", "blue", "yellow"),
    "size": ("small", "large"),
    "place": ("top left", "top right", "bottom left", "bottom right"),
}
"""The space that goes with the family where none is given."""
TWO_THINGS: Mapping[str, tuple[str, ...]] = {name: FACTORS[name.split()[1]] for name in PAIR}
"""A space of scenes with two things, to be given as `space.factors`."""

COUNTED: Mapping[str, tuple[str, str]] = {
    "success": ("whole", "images"),
    "readable": ("seen", "images"),
    "swapped": ("exchanged", "exchangeable"),
    "mirrored": ("reversed", "reversible"),
}
"""Metrics as shares: what is counted, and out of what."""


class ScenesTeacher(Teacher):
    """The renderer, on a space. Nothing of it is random: replicates differ in all else."""

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
        images = jax.vmap(lambda one: render(label, one, self.pixels, self.jitter, self.noise))(
            jax.random.split(by_image, samples)
        )
        # What a generator begins with, at time zero.
        start = jax.random.normal(by_start, images.shape)
        return Batch(
            inputs=jnp.concatenate([start, jnp.zeros((samples, 1))], axis=1),
            targets=images,
            mask=jnp.ones(samples),
            labels=jnp.broadcast_to(label, (samples, len(label))),
        )


class Scenes(Family):
    """Generate an image of a thing (shape, colour, and any of size, place, texture), or of two side by side.

    An image is right when the checker reads every factor of the combination back from it; all else about it is free.
    Metrics: `success` (every factor right), `readable` (every factor told at all), `right_<factor>`; with two things
    `swapped` (shapes right, colours exchanged; of images whose colours should differ) and `mirrored` (left and right
    exchanged; of images whose shapes should differ).
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
        # A look generates images, each in as many passes as the sampler makes: few looks at few tasks.
        "every": 250,
        "validation_tasks": 16,
    }
    pixels: Literal[16, 32] = 16
    """Pixels along each side."""
    jitter: float = Field(default=1.0, ge=0, le=1)
    """How much images of one combination differ in exact place, size, colour and background."""
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
        """A combination in words, always the same; `captions` has others too."""
        layout_of(space)
        assert isinstance(space, ProductSpace)
        parts = zip(space.factors, space.offsets, sorted(constituents), strict=True)
        told = {name: values[part - offset] for (name, values), offset, part in parts}
        if "shape" not in told:
            left, right = (f"{told[f'{side} colour']} {told[f'{side} shape']}" for side in ("left", "right"))
            return f"{left} left of {right}"
        words = [told[name] for name in ("size", "texture", "colour", "shape") if name in told]
        return " ".join([*words, *(["at", told["place"]] if "place" in told else [])])

    def score(self, batch: Batch, predictions: Float[Array, "sample output"]) -> TaskScores:
        assert batch.labels is not None
        meant, mask = batch.labels, batch.mask
        found = read(predictions, labels=meant.shape[1])
        asked = meant >= 0
        right = found == meant

        def count(which: Array) -> Float[Array, ""]:
            return jnp.sum(mask * which)

        scores = {
            "images": jnp.sum(mask),
            "whole": count(jnp.all(right | ~asked, axis=1)),
            "seen": count(jnp.all((found >= 0) | ~asked, axis=1)),
        }
        names = SINGLE if meant.shape[1] == len(SINGLE) else PAIR
        for column, name in enumerate(names):
            scores[f"asked_{_plain(name)}"] = count(asked[:, column])
            scores[f"hit_{_plain(name)}"] = count(asked[:, column] & right[:, column])
        if names is PAIR:
            other = found[:, [2, 3, 0, 1]] == meant
            shapes_differ, colours_differ = meant[:, 0] != meant[:, 2], meant[:, 1] != meant[:, 3]
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

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        sums = {name: float(np.sum(np.asarray(values, float))) for name, values in scores.items()}
        return {
            metric: sums[counted] / sums[out_of]
            for metric, (counted, out_of) in shares(list(sums)).items()
            if sums[out_of]
        }

    def pooled(self, tasks: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        found = shares(list(tasks.columns))
        columns = list(dict.fromkeys(name for pair in found.values() for name in pair))
        frame = tasks.groupby(by, sort=False, observed=True)[columns].sum()
        for metric, (counted, out_of) in found.items():
            # Of what is never asked for there is no share.
            frame[metric] = frame[counted] / frame[out_of].where(frame[out_of] > 0)
        return frame.reset_index()


def shares(statistics: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The metrics that follow from these statistics: what is counted, and out of what. The headline is the first."""
    factors = [name.removeprefix("asked_") for name in statistics if name.startswith("asked_")]
    every = {**COUNTED, **{f"right_{name}": (f"hit_{name}", f"asked_{name}") for name in factors}}
    return {metric: pair for metric, pair in every.items() if set(pair) <= set(statistics)}


def _plain(name: str) -> str:
    return name.replace(" ", "_")
