"""Does the network use what a probe reads? One constituent is swapped for another inside it, and it runs on."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.models.base import Edit, Network
from recombine.probes.activations import InterferedRegion, Probed, fit_probe, probed
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import control_targets
from recombine.probes.neighbours import replaced_rows, replaced_task, replacements
from recombine.probes.ridge import mean_r2
from recombine.probes.tasks import over_tasks
from recombine.spaces.base import Space
from recombine.supports.rows import RowSet
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

SHRINKAGE = 1e-4
"""What is added to a covariance's diagonal, as a share of the mean variance."""

CALL = 256
"""Pairs in one compiled call."""


@dataclasses.dataclass(frozen=True)
class SwapTask:
    """Runs one pair of tasks that differ in one constituent, with every edit at every site.

    A row is the combination followed by the slot and the constituent that comes into it.
    """

    space: Space
    family: Family
    samples: int

    def __call__(self, dynamic: Any, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        network, maps = dynamic
        by_task, by_batch, by_code = jax.random.split(key, 3)
        task = teacher.task(row[:-2], by_task)
        other = replaced_task(self.space, task, row[-2:])
        batch, wanted = (teacher.batch(one, by_batch, self.samples) for one in (task, other))
        code, other_code = (encoder(one, teacher, by_code) for one in (task, other))
        # Where a teacher's inputs depend on the task, its answer for the other task is known at the common ones alone.
        common = jnp.all(batch.inputs == wanted.inputs, axis=1)
        wanted = Batch(batch.inputs, wanted.targets, batch.mask * wanted.mask * common)
        before, trace = network.trace(code, batch.inputs)
        after, donors = network.trace(other_code, batch.inputs)
        change = other.vector - task.vector

        def far(outputs: Array) -> Array:
            return jnp.sum(batch.mask[:, None] * (self._answer(outputs) - self._answer(after)) ** 2)

        found = {"change": change, "gap": far(before)}
        found |= self._scores("before", wanted, before) | self._scores("own", wanted, after)
        for site, edits in maps.items():
            runs = jax.vmap(
                lambda one, at=site: network.trace(code, batch.inputs, shifted(at, one @ change))[0]
            )(edits)
            patched = network.trace(code, batch.inputs, patch(site, donors[site]))[0]
            step = jnp.mean(donors[site] - trace[site], axis=0)
            stepped = network.trace(code, batch.inputs, shifted(site, step))[0]
            found |= {f"{site}/far": jax.vmap(far)(runs)}
            found |= {f"{site}/patched": far(patched), f"{site}/stepped": far(stepped)}
            found |= {f"{site}/values": trace[site][0]} | self._scores(site, wanted, runs[0])
        return found

    def _answer(self, outputs: Float[Array, "sample output"]) -> Float[Array, "sample output"]:
        """What is compared: numbers as they are, classes by their probabilities."""
        return jax.nn.softmax(outputs) if self.family.targets == "classes" else outputs

    def _scores(self, name: str, batch: Batch, outputs: Float[Array, "sample output"]) -> dict[str, Array]:
        return {
            f"{name}/score {part}": jnp.asarray(value)
            for part, value in self.family.score(batch, outputs).items()
        }


def shifted(site: str, shift: Float[Array, " d"]) -> Edit:
    """Adds something at one site."""
    return lambda name, values: values + shift if name == site else values


def patch(site: str, donor: Float[Array, "sample d"]) -> Edit:
    """Puts another run's activations in place of those at one site."""
    return lambda name, values: donor[: len(values)] if name == site else values


class Swap(Measurement):
    """The swap test: activations are moved until a probe reads another constituent, and the network runs on.

    At a site with activations h of covariance S, W is a ridge probe of the task vector z. A pair of tasks z and z' has
    the same inputs and coefficients and differs in one constituent. The edit h' = h + S W (W' S W)^-1 (z' - z) is the
    smallest change, measured by S, after which the probe reads z' - z more than before. (W itself is a filter, not
    the direction in which the constituents are encoded.) The edit is linear and does not respect a ReLU: units may come
    out negative, which the network has never seen. That it goes on well from there is part of what is tested.

    `efficacy`: 1 - |f(h') - f(z', x)|^2 / |f(h) - f(z', x)|^2 by the network's *own* answers, sums over all pairs.
    `ceiling`: the same, with the whole layer taken from the run of z'. Below 1 where a site is not all that goes on.
    `ceiling_shift`: the same, with the mean difference of both runs over the pair's own inputs added: what an edit that does
    not look at the input can hope for. Where it is low, a part acts through products with the input, not as a direction.
    `floor_random`, `floor_control`: the same, in random directions (mean of some) and in those of the probe of the
    control task, the edit as long as the true one (Mahalanobis). About 0 or below.
    `accuracy`: the headline score of f(h') by the *teacher's* answers for z'; that of f(h) is `accuracy_before`, that
    of f(z', x) `accuracy_own`.
    `specificity`: how far the other constituents stay as they were, read by a probe that was fitted on other
    combinations: 1 - |change|^2 / |spread|^2; `moved` is the share of z' - z by which this probe sees the swapped ones change.
    `decodable`: R2 of the edit's probe. What it reads badly is moved too far (by about 1 / R2), so that the efficacy may lie
    far below 0 where little can be read: look at both.
    `trivial`: a layer that was told the constituents by a linear code. It does not count.
    """

    kind: Literal["swap"] = "swap"
    region: InterferedRegion = "held_out"
    """Where both tasks of a pair come from: never-trained combinations, or trained ones. Probes never see either."""
    combinations: PositiveInt = 512
    """The most held-out combinations of each side."""
    draws: PositiveInt = 8
    """Tasks of each combination to fit on."""
    pairs: PositiveInt = 512
    """The most pairs."""
    samples: PositiveInt = 8
    """Inputs of each pair."""
    floors: PositiveInt = 4
    """Random maps whose efficacy is averaged."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        found = probed(setting, network, self.combinations, self.draws)
        fitted = {site: self._maps(setting, found, site) for site in found.sites}
        maps = {site: one for site, (one, _) in fitted.items()}
        pairs = self._test_pairs(setting, found)
        test = self._run(setting, network, maps, pairs, "swap test")
        choice = self._run(setting, network, maps, self._choice_pairs(setting, found, pairs), "swap choice")
        headline = setting.config.family.headline
        records = []
        for site in found.sites:
            record = {
                "site": site,
                "trivial": found.trivial(site),
                "decodable": fitted[site][1],
                **efficacies(test, site),
                "accuracy": float(headline(statistics(test, site))),
                "accuracy_before": float(headline(statistics(test, "before"))),
                "accuracy_own": float(headline(statistics(test, "own"))),
                **specificity(found, site, maps[site][0], test),
                "validation_efficacy": efficacies(choice, site)["efficacy"],
                "n": len(test["gap"]),
            }
            records.append(record)
        # On validation combinations, among the layers that count: nothing is chosen by what it is scored on.
        counting = [record for record in records if not record["trivial"]] or records
        best = max(counting, key=lambda record: record["validation_efficacy"])
        columns = {name: [record[name] for record in records] for name in records[0]}
        columns["best"] = [record is best for record in records]
        reported = (
            "efficacy",
            "ceiling",
            "ceiling_shift",
            "floor_random",
            "floor_control",
            "accuracy",
            "specificity",
        )
        summary = {name: records[-1][name] for name in reported}
        return Measured(summary | {f"{name}_best": best[name] for name in reported}, columns)

    def _maps(
        self, setting: Setting, found: Probed, site: str
    ) -> tuple[Float[np.ndarray, "edit d width"], float]:
        """The edits of a site, and how well their probe reads combinations that it was not fitted on."""
        seed = setting.config.seeds.support
        targets = control_targets(found.fit_rows, found.fit["vector"], seed)
        probe = fit_probe(found.fit, found.validation, site, targets)
        maps = shift_maps(found.fit[site], probe.weights, probe.beside, self.floors, seed)
        return maps, mean_r2(found.rest["vector"], probe.predict(found.rest[site]))

    def _test_pairs(self, setting: Setting, found: Probed) -> Int[np.ndarray, "n columns"]:
        if self.region == "trained":
            rows = setting.regions.require("trained", self.combinations)
            return self._pairs(setting, rows, setting.support.contains, self.pairs)

        def unused(rows: np.ndarray) -> np.ndarray:
            return ~setting.support.contains(rows) & ~found.seen.contains(rows)

        return self._pairs(setting, found.rest_rows, unused, self.pairs)

    def _choice_pairs(
        self, setting: Setting, found: Probed, test: Int[np.ndarray, "m columns"]
    ) -> Int[np.ndarray, "n columns"]:
        rows, ways = test[:, :-2], test[:, -2:]
        scored = RowSet(np.concatenate([rows, replaced_rows(rows, ways)]))

        def unscored(rows: np.ndarray) -> np.ndarray:
            return ~setting.support.contains(rows) & ~scored.contains(rows)

        return self._pairs(setting, found.validation_rows, unscored, min(self.pairs, CALL))

    def _pairs(
        self, setting: Setting, rows: Int[np.ndarray, "n slots"], allowed: Any, number: int
    ) -> Int[np.ndarray, "m columns"]:
        """Pairs of tasks as rows for `SwapTask`, equally many of each combination as far as they go."""
        each = -(-number // len(rows))
        owner, ways = replacements(setting.config.space, rows, each, setting.config.seeds.support, allowed)
        if not len(owner):
            raise BadInput(
                f"No two combinations that differ in one constituent were found for the swap test ({self.region}).",
                fix="hold out more combinations (region=held_out) or train on more (region=trained)",
            )
        return np.concatenate([rows[owner], ways], axis=1).astype(np.int32)[:number]

    def _run(
        self,
        setting: Setting,
        network: Network,
        maps: dict[str, np.ndarray],
        pairs: Int[np.ndarray, "n columns"],
        region: str,
    ) -> dict[str, np.ndarray]:
        compute = SwapTask(setting.config.space, setting.config.family, self.samples)
        dynamic = network, {site: jnp.asarray(one, jnp.float32) for site, one in maps.items()}
        return over_tasks(compute, setting, dynamic, pairs, Stream.PROBE, region, CALL)


def shift_maps(
    features: Float[np.ndarray, "n d"],
    weights: Float[np.ndarray, "d width"],
    control: Float[np.ndarray, "d width"],
    floors: int,
    seed: int,
) -> Float[np.ndarray, "edit d width"]:
    """From a change of z to a change of h: by the probe, by the control task's probe, then at random.

    With R the root of S and G = W' S W all of them are R Q G^(-1/2), where Q has orthonormal columns: those of the
    whitened probe (then this is S W G^-1), of the whitened control probe, or random ones. So all are equally long.
    """
    rng = np.random.default_rng([seed, 2])
    covariance = np.atleast_2d(np.cov(np.asarray(features, np.float64), rowvar=False))
    size = len(covariance)
    covariance += SHRINKAGE * np.trace(covariance) / size * np.eye(size)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    _, lengths, axes = np.linalg.svd(root @ weights, full_matrices=False)
    # Directions of z that the probe cannot tell (values of a factor add up to one) are not moved along.
    inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 1e-6 * lengths.max())
    scale = axes.T * inverse @ axes
    bases = [root @ weights, root @ control, *(rng.normal(size=weights.shape) for _ in range(floors))]
    return np.stack([root @ _orthonormal(base) @ scale for base in bases])


def _orthonormal(base: Float[np.ndarray, "d width"]) -> Float[np.ndarray, "d width"]:
    """The nearest matrix with orthonormal columns."""
    left, _, right = np.linalg.svd(base, full_matrices=False)
    return left @ right


def efficacies(run: dict[str, np.ndarray], site: str) -> dict[str, float]:
    """Efficacy, ceiling and floors at one site, by sums over all pairs."""
    gap = run["gap"].sum(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        edited = 1 - run[f"{site}/far"].sum(0, dtype=np.float64) / gap
        ceiling, shift = (
            1 - run[f"{site}/{name}"].sum(dtype=np.float64) / gap for name in ("patched", "stepped")
        )
    return {
        "efficacy": float(edited[0]),
        "ceiling": float(ceiling),
        "ceiling_shift": float(shift),
        "floor_random": float(edited[2:].mean()),
        "floor_control": float(edited[1]),
    }


def statistics(run: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The family's statistics of each pair under one name."""
    prefix = f"{name}/score "
    return {key.removeprefix(prefix): values for key, values in run.items() if key.startswith(prefix)}


def specificity(
    found: Probed, site: str, edit: Float[np.ndarray, "d width"], run: dict[str, np.ndarray]
) -> dict[str, float]:
    """What a probe that took no part in the edit sees of it: the others stay, the swapped ones move."""
    referee = fit_probe(found.referee, found.validation, site)
    change = np.asarray(run["change"], np.float64)
    seen = change @ edit.T @ referee.weights
    before = referee.predict(run[f"{site}/values"])
    kept = change == 0
    spread = ((before - before.mean(0)) ** 2)[kept].sum()
    return {
        "specificity": float(1 - (seen[kept] ** 2).sum() / spread) if spread > 0 else float("nan"),
        "moved": float((seen * change).sum() / (change**2).sum()),
    }
