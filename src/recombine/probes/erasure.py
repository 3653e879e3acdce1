"""Does the network need what a probe reads? The constituents are erased from a layer, and it runs on."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.families.base import Family
from recombine.models.base import Edit, Network
from recombine.objectives.base import Objective
from recombine.probes.activations import Activations, Edited, InterferedRegion, Probed, fit_probe, probed
from recombine.probes.base import Measured, Measurement
from recombine.probes.ridge import mean_r2
from recombine.probes.tasks import over_tasks
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples, score_tasks
from recombine.training.streams import Stream

NEGLIGIBLE = 1e-8
"""Directions with less variance than this share of the largest are taken to have none."""

CALL = 256
"""Tasks in one compiled call."""


class Eraser(NamedTuple):
    """h - (h - mean) `down` `up`: takes a subspace out of activations and leaves their mean."""

    mean: Float[np.ndarray | Array, " d"]
    down: Float[np.ndarray | Array, "d rank"]
    up: Float[np.ndarray | Array, "rank d"]

    def __call__(self, values: Any) -> Any:
        return values - (values - self.mean) @ self.down @ self.up


def leace(
    features: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n k"], floors: int = 0, seed: int = 0
) -> list[Eraser]:
    """The least change (by the covariance of the features) after which no linear map knows the targets, exactly.

    Closed form of Belrose et al. (2023): with V the pseudo-inverse root of the features' covariance and P the
    orthogonal projection on the range of V cov(features, targets), h - V^+ P V (h - mean). After it come `floors`
    erasers of random subspaces: the same, with a projection of the same rank on random directions.
    """
    features, targets = np.asarray(features, np.float64), np.asarray(targets, np.float64)
    mean = features.mean(0)
    centred = features - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(features))
    there = values > NEGLIGIBLE * values[-1]
    lengths, axes = np.sqrt(values[there]), vectors[:, there]
    cross = centred.T @ (targets - targets.mean(0)) / len(features)
    left, strengths, _ = np.linalg.svd(axes.T @ cross / lengths[:, None], full_matrices=False)
    rank = int(np.sum(strengths > NEGLIGIBLE * max(strengths.max(initial=0.0), 1e-30)))
    rng = np.random.default_rng([seed, 3])
    bases = [left[:, :rank]]
    bases += [np.linalg.qr(rng.normal(size=(len(lengths), rank)))[0] for _ in range(floors)]
    return [Eraser(mean, axes / lengths @ base, (axes * lengths @ base).T) for base in bases]


@dataclasses.dataclass(frozen=True)
class EraseTask:
    """Scores one task as it is, with each eraser at each site, and with the site replaced by its mean."""

    family: Family
    objective: Objective
    samples: int

    def __call__(self, dynamic: Any, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        network, erasers = dynamic
        by_data, by_model = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, self.samples)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))

        def score(which: Network) -> dict[str, Array]:
            scores = score_tasks(self.family, self.objective, which, codes, batches, by_model)
            return {name: values[0] for name, values in scores.items()}

        found = _named("before", score(network))
        for site, several in erasers.items():
            runs = jax.vmap(lambda one, at=site: score(Edited(network, at_site(at, one))))(several)
            mean = several.mean[0]
            flat = score(
                Edited(network, at_site(site, lambda values, m=mean: jnp.broadcast_to(m, values.shape)))
            )
            found |= _named(site, runs) | _named(f"{site}/mean", flat)
        return found


def _named(name: str, scores: dict[str, Array]) -> dict[str, Array]:
    return {f"{name}/score {part}": value for part, value in scores.items()}


def at_site(site: str, change: Any) -> Edit:
    """Changes one site."""
    return lambda name, values: change(values) if name == site else values


class Erasure(Measurement):
    """The score of a network from one layer of which the constituents were erased (LEACE).

    The eraser is fitted on some held-out combinations and used on others. Afterwards no linear map from the layer
    to the task vector is better than its mean; if the network does as well as before, it did not use what a probe reads.

    `before`, `after`: the family's headline score without and with erasure.
    `random`: the score when random subspaces of the same rank are erased instead (mean of some).
    `mean`: the score when the whole layer is replaced by its mean: all that erasing can do.
    `damage`, `damage_random`: how far from `before` to `mean` the score falls, as a share.
    `decodable_before`, `decodable_after`: R2 of ridge probes fitted afresh, on combinations that the eraser was not
    fitted on, and scored on a third set. About 0 or below where the erasure holds beyond what it was fitted on.
    """

    kind: Literal["erasure"] = "erasure"
    region: InterferedRegion = "held_out"
    """Which combinations are scored: never-trained ones that nothing was fitted on, or trained ones."""
    combinations: PositiveInt = 512
    """The most held-out combinations of each side."""
    draws: PositiveInt = 8
    """Tasks of each combination to fit on."""
    tasks: PositiveInt = 512
    """The most tasks that are scored."""
    samples: PositiveInt = 16
    """Examples of each task that is scored."""
    floors: PositiveInt = 4
    """Random subspaces whose scores are averaged."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        found = probed(setting, network, self.combinations, self.draws)
        erasers = {
            site: leace(found.fit[site], found.fit["vector"], self.floors, setting.config.seeds.support)
            for site in found.sites
        }
        run = self._run(setting, network, erasers, self._rows(setting, found))
        headline = setting.config.family.headline

        def score(name: str, which: int | None = None) -> float:
            prefix = f"{name}/score "
            chosen = {key.removeprefix(prefix): run[key] for key in run if key.startswith(prefix)}
            if which is not None:
                chosen = {key: values[:, which] for key, values in chosen.items()}
            return float(headline(chosen))

        records = []
        for site, several in erasers.items():
            before, after, mean = score("before"), score(site, 0), score(f"{site}/mean")
            random = float(np.mean([score(site, number) for number in range(1, len(several))]))
            most = before - mean
            record = {
                "site": site,
                "trivial": found.trivial(site),
                "rank": several[0].down.shape[1],
                "before": before,
                "after": after,
                "random": random,
                "mean": mean,
                "damage": (before - after) / most if most > 0 else float("nan"),
                "damage_random": (before - random) / most if most > 0 else float("nan"),
                "decodable_before": decodable(found, site, None),
                "decodable_after": decodable(found, site, several[0]),
            }
            records.append(record)
        columns = {name: [record[name] for record in records] for name in records[0]}
        labels = ("site", "trivial", "rank")
        return Measured({name: records[-1][name] for name in records[-1] if name not in labels}, columns)

    def _rows(self, setting: Setting, found: Probed) -> Int[np.ndarray, "n slots"]:
        rows = found.rest_rows
        if self.region == "trained":
            rows = setting.regions.require("trained", self.combinations)
        # Equally many tasks of each combination, up to one.
        return np.resize(rows, (self.tasks, rows.shape[1]))

    def _run(
        self,
        setting: Setting,
        network: Network,
        erasers: dict[str, list[Eraser]],
        rows: Int[np.ndarray, "n slots"],
    ) -> dict[str, np.ndarray]:
        config = setting.config
        compute = EraseTask(config.family, config.objective, self.samples)
        stacked = {
            site: Eraser(*(jnp.asarray(np.stack(parts), jnp.float32) for parts in zip(*several, strict=True)))
            for site, several in erasers.items()
        }
        return over_tasks(compute, setting, (network, stacked), rows, Stream.PROBE, "erasure", CALL)


def decodable(found: Probed, site: str, eraser: Eraser | None) -> float:
    """R2 of a fresh probe of a site, erased or not. Fitted, chosen and scored on three sets of other combinations."""

    def seen(part: Activations) -> Activations:
        values = part[site] if eraser is None else eraser(np.asarray(part[site], np.float64))
        return {"vector": part["vector"], site: values}

    probe = fit_probe(seen(found.referee), seen(found.validation), site)
    return mean_r2(found.rest["vector"], probe.predict(seen(found.rest)[site]))
