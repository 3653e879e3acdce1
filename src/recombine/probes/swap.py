"""Does a network use what a probe reads? Swaps one constituent for another in a layer and runs the rest."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.models.base import Edit, Network
from recombine.probes.activations import EditRegion, ProbeSplits, fit_probe, probe_splits
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import control_targets
from recombine.probes.neighbours import Allowed, replaced_rows, replaced_task, replacements
from recombine.probes.ridge import mean_r2
from recombine.probes.tasks import over_tasks
from recombine.spaces.base import Space
from recombine.spaces.rows import RowSet
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

SHRINKAGE = 1e-4
"""Added to the diagonal of a covariance, as a share of the mean variance."""

CALL = 256
"""Pairs in one compiled call."""

ProbeWeights = Float[np.ndarray, "d width"]
Pairs = Int[np.ndarray, "_ columns"]
"""Rows for `SwapTask`."""


@dataclasses.dataclass(frozen=True)
class SwapTask:
    """The outputs for one pair of tasks that differ in one constituent, with every edit at every site.

    A row is the combination, followed by the slot and its new constituent.
    """

    space: Space
    family: Family
    samples: int

    def __call__(self, dynamic: Any, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        network, maps = dynamic
        by_task, by_batch, by_code = jax.random.split(key, 3)
        task = teacher.task(row[:-2], by_task)
        other = replaced_task(self.space, task, row[-2:])
        batch, wanted = (teacher.batch(each, by_batch, self.samples) for each in (task, other))
        code, other_code = (encoder(each, teacher, by_code) for each in (task, other))
        # Where inputs depend on the task, the target of the other task is known only at the common inputs.
        common = jnp.all(batch.inputs == wanted.inputs, axis=1)
        wanted = Batch(batch.inputs, wanted.targets, batch.mask * wanted.mask * common)
        before, trace = network.trace(code, batch.inputs)
        after, donors = network.trace(other_code, batch.inputs)
        change = other.vector - task.vector

        def edited(edit: Edit) -> Array:
            return network.trace(code, batch.inputs, edit)[0]

        def far(outputs: Array) -> Array:
            return jnp.sum(batch.mask[:, None] * (self._answer(outputs) - self._answer(after)) ** 2)

        arrays = {"change": change, "gap": far(before)}
        arrays |= self._scores("before", wanted, before) | self._scores("own", wanted, after)
        for site, edits in maps.items():
            runs = jax.vmap(lambda edit, at=site: edited(shifted(at, edit @ change)))(edits)
            patched = edited(patch(site, donors[site]))
            stepped = edited(shifted(site, jnp.mean(donors[site] - trace[site], axis=0)))
            arrays |= {f"{site}/far": jax.vmap(far)(runs)}
            arrays |= {f"{site}/patched": far(patched), f"{site}/stepped": far(stepped)}
            arrays |= {f"{site}/values": trace[site][0]} | self._scores(site, wanted, runs[0])
        return arrays

    def _answer(self, outputs: Float[Array, "sample output"]) -> Float[Array, "sample output"]:
        """What is compared: numbers as they are, classes as probabilities."""
        return jax.nn.softmax(outputs) if self.family.targets == "classes" else outputs

    def _scores(self, name: str, batch: Batch, outputs: Float[Array, "sample output"]) -> dict[str, Array]:
        return {f"{name}/score {part}": jnp.asarray(value) for part, value in self.family.score(batch, outputs).items()}


def shifted(site: str, shift: Float[Array, " d"]) -> Edit:
    """An edit that adds a vector at one site."""
    return lambda name, values: values + shift if name == site else values


def patch(site: str, donor: Float[Array, "sample d"]) -> Edit:
    """An edit that replaces one site by the activations of another pass."""
    return lambda name, values: donor[: len(values)] if name == site else values


REPORTED = ("efficacy", "ceiling", "ceiling_shift", "floor_random", "floor_control", "accuracy", "specificity")
"""The numbers of the summary: of the deepest layer, and with `_best` of the best layer."""


class Swap(Measurement):
    """The swap test: edits activations so that a probe reads another constituent, and runs the rest of the network.

    At a site with activations h of covariance S, W is a ridge probe of the task vector z. A pair of tasks z and z' has
    the same inputs and coefficients and differs in one constituent. The edit h' = h + S W (W' S W)^-1 (z' - z) is the
    smallest change, measured by S, after which the probe reads z' - z more than before. (W is a filter, not the
    direction in which the constituents are encoded.) The edit is linear and does not respect a ReLU: units may become
    negative, which the network never saw in training. Whether it copes with that is part of the test.

    `efficacy`: 1 - |f(h') - f(z', x)|^2 / |f(h) - f(z', x)|^2 by the network's *own* outputs, summed over all pairs.
    `ceiling`: the same, with the whole layer taken from the pass of z'. Below 1 where information bypasses the site.
    `ceiling_shift`: the same, with the mean difference of both passes over the pair's inputs added. This is the best that an
    edit without access to the input can do. Where it is low, a constituent acts through products with the input.
    `floor_random`, `floor_control`: the same, along random directions (mean) and along those of the control task's probe,
    with edits of the same Mahalanobis length. About 0 or below.
    `accuracy`: the headline score of f(h') by the *teacher's* targets for z'. That of f(h) is `accuracy_before`, that
    of f(z', x) is `accuracy_own`.
    `specificity`: how little the other constituents change, as read by a probe that was fitted on other combinations:
    1 - |change|^2 / |spread|^2. `moved` is the share of z' - z that this probe sees.
    `decodable`: R2 of the edit's probe. The edit overshoots by about 1 / R2, so the efficacy can be far below 0 where R2 is
    low: compare both.
    `trivial`: the layer reads the constituents from a linear code, so it does not count.
    """

    kind: Literal["swap"] = "swap"
    region: EditRegion = "held_out"
    """The combinations of both tasks of a pair: held-out or trained. Probes are fitted on neither."""
    combinations: PositiveInt = 512
    """The largest number of held-out combinations of each side."""
    draws: PositiveInt = 8
    """The number of tasks of each combination to fit on."""
    pairs: PositiveInt = 512
    """The largest number of pairs."""
    samples: PositiveInt = 8
    """The number of inputs of each pair."""
    floors: PositiveInt = 4
    """The number of random maps whose efficacy is averaged."""

    summary_names: ClassVar[tuple[str, ...]] = (*REPORTED, *(f"{name}_best" for name in REPORTED))

    def measure(self, setting: Setting, network: Network) -> Measured:
        splits = probe_splits(setting, network, self.combinations, self.draws)
        fitted = {site: self._maps(setting, splits, site) for site in splits.sites}
        maps = {site: edits for site, (edits, _) in fitted.items()}
        pairs = self._test_pairs(setting, splits)
        test = self._run(setting, network, maps, pairs, "swap test")
        choice = self._run(setting, network, maps, self._choice_pairs(setting, splits, pairs), "swap choice")
        headline = setting.config.family.headline
        records = [
            {
                "site": site,
                "trivial": splits.trivial(site),
                "decodable": fitted[site][1],
                **efficacies(test, site),
                "accuracy": float(headline(statistics(test, site))),
                "accuracy_before": float(headline(statistics(test, "before"))),
                "accuracy_own": float(headline(statistics(test, "own"))),
                **specificity(splits, site, maps[site][0], test),
                "validation_efficacy": efficacies(choice, site)["efficacy"],
                "n": len(test["gap"]),
            }
            for site in splits.sites
        ]
        # The best layer is chosen on validation combinations, among those that are not trivial.
        candidates = [record for record in records if not record["trivial"]] or records
        best = max(candidates, key=lambda record: record["validation_efficacy"])
        summary = {name: records[-1][name] for name in REPORTED}
        summary |= {f"{name}_best": best[name] for name in REPORTED}
        return Measured.from_records(summary, [record | {"best": record is best} for record in records])

    def _maps(
        self, setting: Setting, splits: ProbeSplits, site: str
    ) -> tuple[Float[np.ndarray, "edit d width"], float]:
        """The edits of a site, and R2 of their probe on combinations that it was not fitted on."""
        seed = setting.config.seeds.support
        targets = control_targets(splits.fit_rows, splits.fit["vector"], seed)
        probe = fit_probe(splits.fit, splits.validation, site, targets)
        maps = shift_maps(splits.fit[site], probe.weights, probe.extra_weights, self.floors, seed)
        return maps, mean_r2(splits.test["vector"], probe.predict(splits.test[site]))

    def _test_pairs(self, setting: Setting, splits: ProbeSplits) -> Pairs:
        if self.region == "trained":
            rows = setting.regions.require("trained", self.combinations)
            return self._pairs(setting, rows, setting.support.contains, self.pairs)
        return self._pairs(setting, splits.test_rows, unseen(setting, splits.seen), self.pairs)

    def _choice_pairs(self, setting: Setting, splits: ProbeSplits, test: Pairs) -> Pairs:
        rows, ways = test[:, :-2], test[:, -2:]
        scored = RowSet(np.concatenate([rows, replaced_rows(rows, ways)]))
        return self._pairs(setting, splits.validation_rows, unseen(setting, scored), min(self.pairs, CALL))

    def _pairs(self, setting: Setting, rows: Int[np.ndarray, "n slots"], allowed: Allowed, number: int) -> Pairs:
        """Pairs of tasks as rows for `SwapTask`, the same number of each combination where possible."""
        each = -(-number // len(rows))
        owner, ways = replacements(setting.config.space, rows, each, setting.config.seeds.support, allowed)
        if not len(owner):
            raise BadInput(
                f"The swap test found no two combinations that differ in one constituent ({self.region}).",
                fix="hold out more combinations (region=held_out) or train on more (region=trained)",
            )
        return np.concatenate([rows[owner], ways], axis=1).astype(np.int32)[:number]

    def _run(
        self, setting: Setting, network: Network, maps: dict[str, np.ndarray], pairs: Pairs, region: str
    ) -> dict[str, np.ndarray]:
        compute = SwapTask(setting.config.space, setting.config.family, self.samples)
        dynamic = network, {site: jnp.asarray(edits, jnp.float32) for site, edits in maps.items()}
        return over_tasks(compute, setting, dynamic, pairs, Stream.PROBE, region, CALL)


def unseen(setting: Setting, used: RowSet) -> Allowed:
    """Tells which combinations were neither trained on nor used."""
    return lambda rows: ~setting.support.contains(rows) & ~used.contains(rows)


def shift_maps(
    features: Float[np.ndarray, "n d"], weights: ProbeWeights, control: ProbeWeights, floors: int, seed: int
) -> Float[np.ndarray, "edit d width"]:
    """Linear maps from a change of z to a change of h: by the probe, by the control task's probe, then random ones.

    With R the root of S and G = W' S W, all of them are R Q G^(-1/2), where Q has orthonormal columns: those of the
    whitened probe (this is S W G^-1), of the whitened control probe, or random ones. So all edits have the same length.
    """
    rng = np.random.default_rng([seed, 2])
    covariance = np.atleast_2d(np.cov(np.asarray(features, np.float64), rowvar=False))
    size = len(covariance)
    covariance += SHRINKAGE * np.trace(covariance) / size * np.eye(size)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    _, lengths, axes = np.linalg.svd(root @ weights, full_matrices=False)
    # z does not move along directions that the probe does not read (the values of a factor sum to one).
    inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 1e-6 * lengths.max())
    scale = axes.T * inverse @ axes
    bases = [root @ weights, root @ control, *(rng.normal(size=weights.shape) for _ in range(floors))]
    # Left times right is the nearest matrix with orthonormal columns.
    decomposed = (np.linalg.svd(base, full_matrices=False) for base in bases)
    return np.stack([root @ (left @ right) @ scale for left, _, right in decomposed])


def efficacies(run: dict[str, np.ndarray], site: str) -> dict[str, float]:
    """Efficacy, ceilings and floors at one site, from sums over all pairs."""
    gap = run["gap"].sum(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        edited = 1 - run[f"{site}/far"].sum(0, dtype=np.float64) / gap
        ceiling, shift = (1 - run[f"{site}/{name}"].sum(dtype=np.float64) / gap for name in ("patched", "stepped"))
    numbers = (edited[0], ceiling, shift, edited[2:].mean(), edited[1])
    return dict(zip(REPORTED[:5], map(float, numbers), strict=True))


def statistics(run: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The family's scores of each pair under one name."""
    prefix = f"{name}/score "
    return {key.removeprefix(prefix): values for key, values in run.items() if key.startswith(prefix)}


def specificity(splits: ProbeSplits, site: str, edit: ProbeWeights, run: dict[str, np.ndarray]) -> dict[str, float]:
    """How a probe that was not used for the edit sees it: other constituents stay, swapped ones move."""
    referee = fit_probe(splits.referee, splits.validation, site)
    change = np.asarray(run["change"], np.float64)
    seen = change @ edit.T @ referee.weights
    before = referee.predict(run[f"{site}/values"])
    kept = change == 0
    spread = ((before - before.mean(0)) ** 2)[kept].sum()
    return {
        "specificity": float(1 - (seen[kept] ** 2).sum() / spread) if spread > 0 else float("nan"),
        "moved": float((seen * change).sum() / (change**2).sum()),
    }
