"""Does a network need what a probe reads? Erases the constituents from a layer (LEACE) and runs the rest."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.families.base import Family
from recombine.models.base import Edit, Network
from recombine.objectives.base import Objective
from recombine.probes.activations import Activations, EditedNetwork, EditRegion, ProbeSplits, fit_probe, probe_splits
from recombine.probes.base import Measured, Measurement
from recombine.probes.ridge import mean_r2
from recombine.probes.tasks import over_tasks
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples, score_tasks
from recombine.training.streams import Stream

NEGLIGIBLE = 1e-8
"""Directions whose variance is below this share of the largest count as having none."""

CALL = 256
"""Tasks in one compiled call."""


class Eraser(NamedTuple):
    """h - (h - mean) `down` `up`: removes a subspace from activations and keeps their mean."""

    mean: Float[np.ndarray | Array, " d"]
    down: Float[np.ndarray | Array, "d rank"]
    up: Float[np.ndarray | Array, "rank d"]

    def __call__(self, values: Any) -> Any:
        return values - (values - self.mean) @ self.down @ self.up


def leace(
    features: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n k"], floors: int = 0, seed: int = 0
) -> list[Eraser]:
    """Fit LEACE: the smallest change (by the features' covariance) after which no linear map predicts the targets.

    Closed form of Belrose et al. (2023): with V the pseudo-inverse root of the features' covariance and P the
    orthogonal projection on the range of V cov(features, targets), h - V^+ P V (h - mean). The eraser is followed by
    `floors` others, of random subspaces of the same rank.
    """
    features, targets = np.asarray(features, np.float64), np.asarray(targets, np.float64)
    mean = features.mean(0)
    centred = features - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(features))
    varies = values > NEGLIGIBLE * values[-1]
    lengths, axes = np.sqrt(values[varies]), vectors[:, varies]
    cross = centred.T @ (targets - targets.mean(0)) / len(features)
    left, strengths, _ = np.linalg.svd(axes.T @ cross / lengths[:, None], full_matrices=False)
    rank = int(np.sum(strengths > NEGLIGIBLE * max(strengths.max(initial=0.0), 1e-30)))
    rng = np.random.default_rng([seed, 3])
    bases = [left[:, :rank]]
    bases += [np.linalg.qr(rng.normal(size=(len(lengths), rank)))[0] for _ in range(floors)]
    return [Eraser(mean, axes / lengths @ base, (axes * lengths @ base).T) for base in bases]


@dataclasses.dataclass(frozen=True)
class EraseTask:
    """Scores of one task: unchanged, with each eraser at each site, and with each site replaced by its mean."""

    family: Family
    objective: Objective
    samples: int

    def __call__(self, dynamic: Any, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        network, erasers = dynamic
        by_data, by_model = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, self.samples)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))

        def score(model: Network) -> dict[str, Array]:
            scores = score_tasks(self.family, self.objective, model, codes, batches, by_model)
            return {name: values[0] for name, values in scores.items()}

        named = _named("before", score(network))
        for site, several in erasers.items():
            runs = jax.vmap(lambda eraser, at=site: score(EditedNetwork(network, at_site(at, eraser))))(several)
            to_mean = at_site(site, lambda values, mean=several.mean[0]: jnp.broadcast_to(mean, values.shape))
            flat = score(EditedNetwork(network, to_mean))
            named |= _named(site, runs) | _named(f"{site}/mean", flat)
        return named


def _named(name: str, scores: dict[str, Array]) -> dict[str, Array]:
    return {f"{name}/score {part}": value for part, value in scores.items()}


def at_site(site: str, change: Any) -> Edit:
    """An edit of one site."""
    return lambda name, values: change(values) if name == site else values


class Erasure(Measurement):
    """The score of a network after the constituents are erased from one layer (LEACE).

    The eraser is fitted on some held-out combinations and applied to others. After it no linear map from the layer to the
    task vector is better than the mean. If the score stays the same, the network did not use what a probe reads.

    `before`, `after`: the family's headline score without and with erasure.
    `random`: the mean score when random subspaces of the same rank are erased instead.
    `mean`: the score when the whole layer is replaced by its mean, which is the most that erasing can do.
    `damage`, `damage_random`: the fall of the score, as a share of the fall from `before` to `mean`.
    `decodable_before`, `decodable_after`: R2 of new ridge probes, fitted on combinations that the eraser was not fitted on
    and scored on a third set. About 0 or below if the erasure generalises.
    """

    kind: Literal["erasure"] = "erasure"
    region: EditRegion = "held_out"
    """The combinations to score: held-out ones that nothing was fitted on, or trained ones."""
    combinations: PositiveInt = 512
    """The largest number of held-out combinations of each side."""
    draws: PositiveInt = 8
    """The number of tasks of each combination to fit on."""
    tasks: PositiveInt = 512
    """The number of tasks to score."""
    samples: PositiveInt = 16
    """The number of examples of each scored task."""
    floors: PositiveInt = 4
    """The number of random subspaces whose scores are averaged."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *("before", "after", "random", "mean"),
        *("damage", "damage_random", "decodable_before", "decodable_after"),
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        splits = probe_splits(setting, network, self.combinations, self.draws)
        erasers = {
            site: leace(splits.fit[site], splits.fit["vector"], self.floors, setting.config.seeds.support)
            for site in splits.sites
        }
        rows = splits.test_rows
        if self.region == "trained":
            rows = setting.regions.require("trained", self.combinations)
        # The number of tasks of two combinations differs by at most one.
        run = self._run(setting, network, erasers, np.resize(rows, (self.tasks, rows.shape[1])))
        headline = setting.config.family.headline

        def score(name: str, eraser: int | None = None) -> float:
            prefix = f"{name}/score "
            chosen = {key.removeprefix(prefix): run[key] for key in run if key.startswith(prefix)}
            if eraser is not None:
                chosen = {key: values[:, eraser] for key, values in chosen.items()}
            return float(headline(chosen))

        records = []
        for site, several in erasers.items():
            before, after, mean = score("before"), score(site, 0), score(f"{site}/mean")
            random = float(np.mean([score(site, number) for number in range(1, len(several))]))
            most = before - mean
            numbers = {
                "before": before,
                "after": after,
                "random": random,
                "mean": mean,
                "damage": (before - after) / most if most > 0 else float("nan"),
                "damage_random": (before - random) / most if most > 0 else float("nan"),
                "decodable_before": decodable(splits, site, None),
                "decodable_after": decodable(splits, site, several[0]),
            }
            labels = {"site": site, "trivial": splits.trivial(site), "rank": several[0].down.shape[1]}
            records.append(labels | numbers)
        return Measured.from_records({name: records[-1][name] for name in self.summary_names}, records)

    def _run(
        self, setting: Setting, network: Network, erasers: dict[str, list[Eraser]], rows: Int[np.ndarray, "n slots"]
    ) -> dict[str, np.ndarray]:
        config = setting.config
        compute = EraseTask(config.family, config.objective, self.samples)
        stacked = {
            site: Eraser(*(jnp.asarray(np.stack(parts), jnp.float32) for parts in zip(*several, strict=True)))
            for site, several in erasers.items()
        }
        return over_tasks(compute, setting, (network, stacked), rows, Stream.PROBE, "erasure", CALL)


def decodable(splits: ProbeSplits, site: str, eraser: Eraser | None) -> float:
    """R2 of a new probe of a site, erased or not: fitted, chosen and scored on three disjoint sets of combinations."""

    def erased(given: Activations) -> Activations:
        values = given[site] if eraser is None else eraser(np.asarray(given[site], np.float64))
        return {"vector": given["vector"], site: values}

    probe = fit_probe(erased(splits.referee), erased(splits.validation), site)
    return mean_r2(splits.test["vector"], probe.predict(erased(splits.test)[site]))
