"""Images that a network generates for every combination, beside the nearest training images."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import at_once, over_tasks
from recombine.supports.regions import distance, stratum
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

NOISE = 0.2
"""The standard deviation of the noise on images that test the checker; pixels go from -1 to 1."""
LEVELS = 255
"""Pixels are stored as whole numbers from 0 to this."""


@dataclasses.dataclass(frozen=True)
class PaintTask:
    """An image of one task by the network and one by the renderer, and whether each is correct."""

    family: Family
    objective: Objective

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_data, by_model, by_noise = jax.random.split(key, 3)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, 1)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        drawn = self.objective.evaluate(network, codes, batches, by_model)[0]
        noised = jnp.clip(batch.targets + NOISE * jax.random.normal(by_noise, batch.targets.shape), -1, 1)
        # In one call, so that the checker is compiled once.
        every = jnp.stack([drawn, batch.targets, noised])
        whole = jax.vmap(self.family.score, in_axes=(None, 0))(batch, every)["whole"]
        right = dict(zip(("drawn whole", "real whole", "noised whole"), whole, strict=True))
        return {"drawn": drawn[0], "real": batch.targets[0]} | right


@dataclasses.dataclass(frozen=True)
class RenderTask:
    """An image of one task as the renderer makes it."""

    def __call__(self, dynamic: Any, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, _, batch = draw_examples(teacher, encoder, row, key, 1)
        return {"real": batch.targets[0]}


class Gallery(Measurement):
    """A generated image of every combination (in small spaces), checked, with the nearest of many training-like images.

    Training renders a new image of a trained combination each time, and so does this. `checker_error` and
    `checker_error_noised` are the shares of *rendered* images, clean and with noise, that the checker does not recognise:
    the judge's own error. `copied_right` is the share of correct images of held-out combinations that are nearer to an image
    of a trained one than the nearest twentieth of rendered images of these combinations: .05 if nothing is copied. Many images
    of each combination are rendered for it, as the nearest twentieth of few images is hardly known.
    `copied_wrong` is the same for incorrect images: it is large where a network falls back to its training combinations.
    """

    kind: Literal["gallery"] = "gallery"
    combinations: PositiveInt = 256
    """The largest number of combinations of each region."""
    draws: PositiveInt = 1
    """The number of images of each combination."""
    training_images: PositiveInt = 2048
    """The number of training-like images to search for the nearest, spread evenly over trained combinations."""
    renders: PositiveInt = 16
    """The number of rendered images of each held-out combination whose distances are the usual ones."""

    version: ClassVar[int] = 2
    summary_names: ClassVar[tuple[str, ...]] = (
        *("checker_error", "checker_error_noised", "copied_right", "copied_wrong"),
        *("away_trained", "away_held_out", "away_real_trained", "away_real_held_out"),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, regions = setting.config, setting.regions
        if config.family.targets != "images":
            raise BadInput(
                f"A gallery shows images; the targets of {config.family.kind!r} are {config.family.targets}.",
                fix="family=scenes",
            )
        number = self.combinations
        by_region = {
            "trained": regions.require("trained", number),
            "held_out": regions.require("held_out", number, "test"),
            "validation": regions.rows("held_out", number, "validation"),
            "rest": regions.rows("rest", number),
        }
        by_region = {name: rows for name, rows in by_region.items() if len(rows)}
        paint, batch = PaintTask(config.family, config.objective), at_once(setting)
        tasks = {name: np.repeat(some, self.draws, axis=0) for name, some in by_region.items()}
        parts = [
            over_tasks(paint, setting, network, some, Stream.TEST, f"gallery {name}", batch)
            for name, some in tasks.items()
        ]
        painted = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        rows = np.concatenate([*tasks.values()])
        where = np.repeat([*tasks], [len(some) for some in tasks.values()])
        # New images of trained combinations, rendered as in training.
        trained = by_region["trained"]
        rendered = np.repeat(trained, max(1, self.training_images // len(trained)), axis=0)
        training = over_tasks(RenderTask(), setting, None, rendered, Stream.PROBE, "gallery training")["real"]
        near, away = nearest(painted["drawn"], training)
        _, usual = nearest(painted["real"], training)
        again = np.repeat(tasks["held_out"], self.renders, axis=0)
        renders = over_tasks(RenderTask(), setting, None, again, Stream.PROBE, "gallery renders")["real"]
        expected = nearest(renders, training)[1].reshape(-1, self.renders)
        return Measured(
            _summary(painted, where, away, usual, expected),
            {
                "combination": [config.space.name(row) for row in rows],
                "constituents": [list(config.space.constituents(row)) for row in rows],
                "region": where.tolist(),
                "stratum": stratum(rows, regions.moment).tolist(),
                "distance": distance(rows, by_region["trained"], config.space.width).tolist(),
                "right": (painted["drawn whole"] > 0).tolist(),
                "away": away.tolist(),
                "away_real": usual.tolist(),
                "image": [shades(image) for image in painted["drawn"]],
                "nearest": [shades(training[index]) for index in near],
                "rendered": [shades(image) for image in painted["real"]],
            },
        )


def nearest(
    images: Float[np.ndarray, "n pixel"], among: Float[np.ndarray, "m pixel"]
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The index of the nearest of some images for each image, and its distance: the root mean square over pixels."""
    images, among = np.asarray(images, np.float64), np.asarray(among, np.float64)
    squares = (images**2).sum(1)[:, None] + (among**2).sum(1) - 2 * images @ among.T
    near = squares.argmin(1)
    return near, np.sqrt(np.maximum(squares.min(1), 0) / images.shape[1])


def shades(image: Float[np.ndarray, " pixel"]) -> list[int]:
    """Convert the pixels of an image, from -1 to 1, to whole numbers."""
    return np.clip(np.round((np.asarray(image) + 1) / 2 * LEVELS), 0, LEVELS).astype(int).tolist()


def _summary(
    painted: dict[str, np.ndarray],
    where: np.ndarray,
    away: np.ndarray,
    usual: np.ndarray,
    expected: Float[np.ndarray, "held_out render"],
) -> dict[str, float]:
    """The checker's own error, and the share of images that are too near to training images.

    Args:
        painted: Images and what the checker says of them, by name.
        where: The region of each image.
        away: The distance of each drawn image to the nearest training image.
        usual: The same of a rendered image of its combination.
        expected: The same of many rendered images of each held-out combination.
    """
    summary = {
        "checker_error": float(np.mean(painted["real whole"] < 1)),
        "checker_error_noised": float(np.mean(painted["noised whole"] < 1)),
    }
    held_out = where == "held_out"
    for name, right in (("right", painted["drawn whole"] > 0), ("wrong", painted["drawn whole"] < 1)):
        chosen = right[held_out]
        if chosen.any():
            # Rendered images of the *same* combinations give the usual distance. Some combinations are nearer to training
            # than others, and a network draws these right more often.
            near = np.quantile(expected[chosen], 0.05, method="weibull")  # Unbiased: .05 of few images, too.
            summary[f"copied_{name}"] = float(np.mean(away[held_out][chosen] < near))
    for region in ("trained", "held_out"):
        summary[f"away_{region}"] = float(np.mean(away[where == region]))
        summary[f"away_real_{region}"] = float(np.mean(usual[where == region]))
    return summary
