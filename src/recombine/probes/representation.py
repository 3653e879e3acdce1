"""What is inside a network that draws a picture: symmetry of its weight sweeps and neurons, and its distinct feature maps."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt

from recombine.cppn.changes import CHANGES
from recombine.cppn.picture import colours
from recombine.cppn.scores import Mirror, axis_of, distinct_maps, few_weights, parity_purity, sweep_asymmetry
from recombine.errors import BadInput
from recombine.families.picture import Picture, PictureTeacher
from recombine.models.base import Network
from recombine.models.cppn import CPPNNetwork
from recombine.probes.base import Measured, Measurement
from recombine.training.prepare import Setting

AMOUNTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The frames of a film strip, as multiples of its largest change."""
NEAR_ZERO = 1e-3
"""Weights smaller than this count as zero."""
MOST_TANGENTS = 2**25
"""The most derivatives of outputs by weights: 256 MB."""
ATTEMPTS = 100
"""Rows of weights that are tried for a film strip before it is left out."""


class Representation(Measurement):
    """Scores of a network that draws a picture, with pictures of its neurons and of its weight sweeps.

    The mirror is about the axis about which the picture itself is more symmetric, so it is the same for every network that
    draws it. `mse` is the error on the picture that the run was trained on, `change_size` how far that is from the picture as it was
    found, and `left` the share of the change that is left. `few_weights_...` is the share of each change that is left, to first
    order, after the few weights that help most have moved. The scores are explained in docs/methods.md. Runs on a
    changed picture get the errors alone.
    """

    kind: Literal["representation"] = "representation"
    draws: PositiveInt = 128
    """Changed rows of weights, for the sweep asymmetry."""
    size: PositiveFloat = 0.1
    """The standard deviation of their noise."""
    maps: PositiveInt = 16
    """The most feature maps in the table, spread evenly over the distinct ones."""
    few: PositiveInt = 8
    """The weights that may move for `few_weights_...`."""
    strips: PositiveInt = 4
    """Film strips in the table: rows of weights that change the picture, changed step by step."""
    strip_size: PositiveFloat = 0.5
    """The standard deviation of the largest change of a film strip."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *("mse", "change_size", "left", "picture_asymmetry", "sweep_asymmetry", "parity_purity", "distinct_maps"),
        *("neurons", "nonzero_weights", *(f"few_weights_{change}" for change in CHANGES)),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        teacher = setting.teacher
        if not isinstance(setting.config.family, Picture) or not isinstance(network, CPPNNetwork):
            raise BadInput(
                f"representation looks at networks that draw pictures; the model is {setting.config.model.kind!r}.",
                fix="family=picture model=cppn",
            )
        assert isinstance(teacher, PictureTeacher)
        outputs, maps = feature_maps(network, teacher)
        target = int(setting.regions.require("trained", 1)[0, 0])
        pictures = np.asarray(teacher.pictures, float)
        error, change = (float(np.mean((each - pictures[target]) ** 2)) for each in (outputs, pictures[0]))
        mirror, uneven = axis_of(colours(pictures[0]))
        summary = {"mse": error, "change_size": change, "picture_asymmetry": uneven, "neurons": float(maps.shape[1])}
        summary["nonzero_weights"] = float(
            sum(int(jnp.sum(jnp.abs(weights) > NEAR_ZERO)) for weights in (*network.layers, network.readout))
        )
        if change:
            summary["left"] = error / change
        rows = [self._row("picture", 0, 0, colours(outputs))]
        if target == 0:
            rows += self._inside(setting, network, teacher, maps, mirror, summary)
        return Measured.from_records(summary, rows)

    def _inside(
        self,
        setting: Setting,
        network: CPPNNetwork,
        teacher: PictureTeacher,
        maps: Float[np.ndarray, "place map"],
        mirror: Mirror,
        summary: dict[str, float],
    ) -> list[dict[str, Any]]:
        """Add the scores of the inside to the summary; return the rows of feature maps and film strips."""
        distinct = distinct_maps(maps)
        purity = parity_purity(maps[:, distinct], mirror)
        # The layers alone: the readout copies outputs, and layers beyond the depth do nothing.
        alive = network.layers[: int(network.depth)]
        draw = functools.partial(_drawn, network)
        seed = setting.config.seeds.teacher
        score = sweep_asymmetry(
            draw,
            teacher.inputs,
            alive,
            mirror=mirror,
            axis=0,
            size=self.size,
            draws=self.draws,
            seed=seed,
            picture=colours,
        )
        summary |= {"distinct_maps": float(len(distinct)), "sweep_asymmetry": score}
        if len(purity):
            summary["parity_purity"] = float(purity.mean())
        pictures = np.asarray(teacher.pictures, float)
        # Large networks at fewer places, evenly spread.
        numbers = pictures[0].size * sum(weights.size for weights in (*network.layers, network.readout))
        every = math.ceil(numbers / MOST_TANGENTS)
        by_weight = tangents(network, teacher.inputs[::every])
        for change, picture in zip(CHANGES, pictures[1:], strict=True):
            wanted = (picture - pictures[0])[::every].ravel()
            if wanted.any():
                summary[f"few_weights_{change}"] = few_weights(by_weight, wanted, self.few)
        chosen = np.unique(np.linspace(0, len(distinct) - 1, min(self.maps, len(distinct))).round().astype(int))
        rows = [
            self._row("map", place, 0, scaled(maps[:, distinct[number]]), float(purity[number]))
            for place, number in enumerate(chosen)
        ]
        return rows + self._strips(draw, alive, teacher, seed)

    def _strips(self, draw: Any, layers: Any, teacher: PictureTeacher, seed: int) -> list[dict[str, Any]]:
        rng, rows, found = np.random.default_rng([seed, 1]), [], 0
        before = np.asarray(draw(layers, teacher.inputs))
        for _ in range(ATTEMPTS):
            if found == self.strips:
                break
            layer = int(rng.integers(len(layers)))
            unit = int(rng.integers(layers[layer].shape[0]))
            noise = np.zeros(layers[layer].shape, np.float32)
            noise[unit] = self.strip_size * rng.standard_normal(noise[unit].shape)
            frames = [
                np.asarray(
                    draw((*layers[:layer], layers[layer] + amount * noise, *layers[layer + 1 :]), teacher.inputs)
                )
                for amount in AMOUNTS
            ]
            if np.mean((colours(frames[-1]) - colours(before)) ** 2) < NEAR_ZERO:
                continue
            rows += [self._row("sweep", found, place, colours(frame)) for place, frame in enumerate(frames)]
            found += 1
        return rows

    @staticmethod
    def _row(
        what: str, number: int, frame: int, pixels: Float[np.ndarray, "place 3"], purity: float = float("nan")
    ) -> dict[str, Any]:
        image = np.clip(np.round(255 * pixels), 0, 255).astype(int).ravel().tolist()
        return {"what": what, "number": number, "frame": frame, "purity": purity, "image": image}


@eqx.filter_jit
def _drawn(network: CPPNNetwork, layers: Any, inputs: Any) -> Any:
    """What a network draws with other weights in its first layers."""
    every = (*layers, *network.layers[len(layers) :])
    return eqx.tree_at(lambda some: some.layers, network, every).trace(jnp.zeros(0), inputs)[0]


def tangents(network: CPPNNetwork, inputs: Any) -> Float[np.ndarray, "weight number"]:
    """The derivative of the outputs at all places by each weight that exists, layer by layer and then of the readout."""
    blocks = _by_place(network, inputs)
    alive = [*blocks[0][: int(network.depth)], blocks[1]]
    flat = [np.moveaxis(np.asarray(block, float), (0, 1), (-2, -1)) for block in alive]
    return np.concatenate([block.reshape(-1, block.shape[-2] * block.shape[-1]) for block in flat])


@eqx.filter_jit
def _by_place(network: CPPNNetwork, inputs: Any) -> Any:
    """The derivative by layers and readout at each place: place, output, row, unit."""

    def at(weights: Any, place: Any) -> Any:
        changed = eqx.tree_at(lambda some: (some.layers, some.readout), network, weights)
        return changed.trace(jnp.zeros(0), place[None])[0][0]

    return jax.vmap(jax.jacrev(at), in_axes=(None, 0))((network.layers, network.readout), inputs)


@eqx.filter_jit
def _traced(network: CPPNNetwork, inputs: Any) -> Any:
    return network.trace(jnp.zeros(0), inputs)


def feature_maps(
    network: CPPNNetwork, teacher: PictureTeacher
) -> tuple[Float[np.ndarray, "place output"], Float[np.ndarray, "place map"]]:
    """The outputs of a network at every place, and the map of every neuron that exists, layer by layer."""
    outputs, sites = _traced(network, teacher.inputs)
    layers = list(sites.values())[: int(network.depth)]
    units = np.flatnonzero(np.asarray(network.units))
    maps = np.concatenate([np.asarray(values, float)[:, units] for values in layers], axis=1)
    return np.asarray(outputs, float), maps


def scaled(values: Float[np.ndarray, " place"]) -> Float[np.ndarray, "place 3"]:
    """A feature map as a grey picture, from its lowest to its highest value."""
    low, high = values.min(), values.max()
    return np.repeat(((values - low) / (high - low if high > low else 1))[:, None], 3, axis=1)
