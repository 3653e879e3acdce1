"""Linear decodability of each factor from each block while a network generates images, with controls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.objectives.flow_matching import FlowMatching
from recombine.probes.activations import MIN_COMBINATIONS, SIDES, fit_probe, held_out_sides
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import control_targets
from recombine.probes.ridge import mean_r2
from recombine.probes.tasks import at_once, over_tasks
from recombine.spaces.product import ProductSpace
from recombine.training import RunConfig, Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

MOMENTS: tuple[tuple[str, float], ...] = (("0.3", 0.3), ("0.5", 0.5), ("0.7", 0.7), ("1.0", 1.0))
"""The shares of the way from noise to image at which activations are recorded."""
MEAN = "mean"
"""The mean over these moments."""
EARLY = MOMENTS[0][0]
"""The first of these moments, when little of the image is there."""
READING = "reading"
"""The output of the text encoder, the same at every moment."""

SHARE = 3
"""A probe reads the first n / SHARE principal components of a site, n being the number of combinations to fit on. Sites of
any width are then comparable, and a probe cannot memorise a code that is random by combination."""


@dataclasses.dataclass(frozen=True)
class WatchTask:
    """The task vector, and each site at each moment while one image is generated. Sites are named `site @ moment`."""

    objective: FlowMatching

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        task, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, sites = self.objective.watched(network, code, batch.inputs[:, :-1])
        traced = {"vector": task.vector}
        for site, values in sites.items():
            steps = {name: values[min(round(share * len(values)), len(values) - 1), 0] for name, share in MOMENTS}
            if site == READING:
                traced[READING] = values[0, 0]
                continue
            traced |= {f"{site} @ {name}": step for name, step in steps.items()}
            traced[f"{site} @ {MEAN}"] = jax.numpy.mean(jax.numpy.stack([*steps.values()]), axis=0)
        return traced


class Traced(NamedTuple):
    """Combinations and the activations of their tasks: the same number of each, in consecutive rows."""

    rows: Int[np.ndarray, "n slots"]
    values: dict[str, np.ndarray]

    def take(self, chosen: np.ndarray) -> Traced:
        """The chosen combinations."""
        tasks = np.repeat(chosen, len(self.values["vector"]) // len(self.rows))
        return Traced(self.rows[chosen], {name: values[tasks] for name, values in self.values.items()})


class SiteProbes(NamedTuple):
    """The results of two probes of a site, fitted on one half of the test combinations and scored on the other."""

    validation: dict[str, float]
    """R2 of each factor on validation combinations, for choosing the site."""
    r2: dict[str, float]
    """R2 of each factor on the half that was not fitted on."""
    control: dict[str, float]
    """R2 of a code that is random by combination, on other tasks of the fitted combinations."""
    errors: dict[str, Float[np.ndarray, " combination"]]
    """The mean squared error on each combination, as a share of that of the mean of the fitted tasks (`blind`). As a share
    of one common variance, combinations with frequent values would always seem to be decoded better."""
    blind: dict[str, Float[np.ndarray, " combination"]]
    """The error of predicting the mean of the fitted tasks: small where the value is frequent among them."""


class Concepts(Measurement):
    """R2 of ridge regressions from a block, pooled over positions, to each factor of the requested combination.

    The intrinsic form: fitted on half of the held-out combinations (test side) and scored on the other half, in both
    directions, from the same number of principal components of every site. The site and moment are chosen on validation
    combinations: among all (`use` is `chosen`) and among those of the first moment (`early`). The text encoder (`text`) and
    an untrained network are probed in the same way. Rows with a combination give R2 on that combination: 1 less the error
    as a share of that of the mean (`blind`).
    """

    kind: Literal["concepts"] = "concepts"
    version: ClassVar[int] = 3
    combinations: PositiveInt = 256
    """The largest number of held-out combinations of each side."""
    draws: PositiveInt = 4
    """The number of tasks (captions and initial noise) of each combination; half of them are for the control."""

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        factors = config.space.factors if isinstance(config.space, ProductSpace) else ()
        sites = [
            f"{site}{network}_{number}"
            for site in ("concepts", "early", "text")
            for network in ("", "_untrained")
            for number in ("r2", "selectivity")
        ]
        parts = [f"r2_{name.replace(' ', '_')}{network}" for name, _ in factors for network in ("", "_untrained")]
        return frozenset([*sites, *parts])

    def measure(self, setting: Setting, network: Network) -> Measured:
        space, objective = setting.config.space, setting.config.objective
        if not isinstance(objective, FlowMatching) or not isinstance(space, ProductSpace):
            raise BadInput(
                f"concepts measures networks that generate images; this one is trained by {objective.kind!r}.",
                fix="family=scenes with objective=flow-matching, or the measurement decodability",
            )
        rows = dict(zip(SIDES, held_out_sides(setting, self.combinations, MIN_COMBINATIONS, "a probe"), strict=True))
        columns = {
            name: slice(offset, offset + level)
            for (name, _), offset, level in zip(space.factors, space.offsets, space.levels, strict=True)
        }
        names = [space.name(row) for row in rows["test"]]
        records: list[dict[str, Any]] = []
        summary: dict[str, float] = {}
        for kind, model in (("trained", network), ("untrained", setting.network())):
            test, validation = (self._traced(setting, model, objective, rows[side], side) for side in SIDES)
            probes = probe_sites(test, validation, columns, setting.config.seeds.support)
            best, early = chosen_site(probes), chosen_site(probes, EARLY)
            uses = {READING: "text", early: "early", best: "chosen"}
            suffix = "" if kind == "trained" else "_untrained"
            for site, probe in probes.items():
                for factor, r2 in probe.r2.items():
                    of_factor = {"control": probe.control[factor], "selectivity": r2 - probe.control[factor]}
                    records.append(_record(kind, site, uses.get(site, ""), factor, r2=r2, **of_factor))
            # One site may be both the best of all and the best of the first moment.
            for site, use in ((best, "chosen"), (early, "early"), (READING, "text")):
                if site not in probes:
                    continue
                probe, short = probes[site], "concepts" if use == "chosen" else use
                records += [
                    _record(kind, site, use, factor, combination=name, r2=float(1 - error), blind=float(blind))
                    for factor, errors in probe.errors.items()
                    for name, error, blind in zip(names, errors, probe.blind[factor], strict=True)
                ]
                gaps = [probe.r2[factor] - probe.control[factor] for factor in probe.r2]
                means = {"r2": np.mean([*probe.r2.values()]), "selectivity": np.mean(gaps)}
                summary |= {f"{short}{suffix}_{name}": float(mean) for name, mean in means.items()}
            summary |= {f"r2_{factor.replace(' ', '_')}{suffix}": value for factor, value in probes[best].r2.items()}
        return Measured.from_records(summary, records)

    def _traced(
        self, setting: Setting, network: Network, objective: FlowMatching, rows: Int[np.ndarray, "n slots"], side: str
    ) -> Traced:
        tasks, watch = np.repeat(rows, self.draws, axis=0), WatchTask(objective)
        traced = over_tasks(watch, setting, network, tasks, Stream.PROBE, f"concepts {side}", at_once(setting))
        return Traced(rows, traced)


def probe_sites(test: Traced, validation: Traced, columns: dict[str, slice], seed: int) -> dict[str, SiteProbes]:
    """Fit probes of every site and moment; `columns` are the coordinates of each factor in the task vector."""
    controls = [control_targets(test.rows, test.values["vector"][:, where], seed) for where in columns.values()]
    with_control = Traced(test.rows, test.values | {"control": np.concatenate(controls, axis=1)})
    return {site: _probe(with_control, validation, site, columns) for site in test.values if site != "vector"}


def chosen_site(probes: dict[str, SiteProbes], moment: str | None = None) -> str:
    """The site with the best R2 on validation combinations, at a given moment or at any. The text encoder is left out."""
    blocks = [site for site in probes if site != READING and (moment is None or site.endswith(f"@ {moment}"))]
    return max(blocks, key=lambda site: np.mean([*probes[site].validation.values()]))


class _Fold(NamedTuple):
    """The predictions of a probe that was fitted on half of the test combinations."""

    validation: Float[np.ndarray, "task width"]
    score: Float[np.ndarray, "task width"]
    control: Float[np.ndarray, "task width"]
    """Predicted random codes, on other tasks of the fitted combinations."""
    control_targets: Float[np.ndarray, "task width"]
    """The true random codes of these tasks."""
    mean: Float[np.ndarray, " width"]
    """The mean of the fitted tasks."""


def _fold(fit: Traced, score: Traced, validation: Traced, site: str) -> _Fold:
    vectors, features = fit.values["vector"], fit.values[site]
    draws = len(vectors) // len(fit.rows)
    # Every other task is kept for the control, which is scored on other tasks of the same combinations.
    kept = np.arange(len(vectors)) % draws % 2 == 1
    project = components(features[~kept], max(1, len(fit.rows) // SHARE))
    chosen_on = {"vector": validation.values["vector"], site: project(validation.values[site])}
    fitted_on = {"vector": vectors[~kept], site: project(features[~kept])}
    probe = fit_probe(fitted_on, chosen_on, site, fit.values["control"][~kept])
    control = kept if kept.any() else ~kept
    return _Fold(
        probe.predict(chosen_on[site]),
        probe.predict(project(score.values[site])),
        probe.ridge.predict(project(features[control]), probe.strength)[:, probe.width :],
        fit.values["control"][control],
        vectors.mean(0),
    )


def components(
    features: Float[np.ndarray, "n d"], number: int
) -> Callable[[Float[np.ndarray, "m d"]], Float[np.ndarray, "m k"]]:
    """Fit principal components; gives the projection of other features on them."""
    features = np.asarray(features, np.float64)
    mean = features.mean(0)
    axes = np.linalg.svd(features - mean, full_matrices=False)[2][:number]
    return lambda others: (np.asarray(others, np.float64) - mean) @ axes.T


def _probe(test: Traced, validation: Traced, site: str, columns: dict[str, slice]) -> SiteProbes:
    even = np.arange(len(test.rows)) % 2 == 0
    probes = SiteProbes({}, {}, {}, *({factor: np.empty(len(test.rows)) for factor in columns} for _ in range(2)))
    folds = []
    for half in (even, ~even):
        fit, score = test.take(half), test.take(~half)
        folds.append((score.values["vector"], _fold(fit, score, validation, site)))
        targets, fold = folds[-1]
        by_probe, by_mean = (targets - fold.score) ** 2, (targets - fold.mean) ** 2
        draws = len(targets) // len(score.rows)
        for factor, where in columns.items():
            errors, blind = (each[:, where].sum(1).reshape(-1, draws).mean(1) for each in (by_probe, by_mean))
            probes.errors[factor][~half] = errors / np.maximum(blind, 1e-30)
            probes.blind[factor][~half] = blind
    targets = validation.values["vector"]
    for factor, where in columns.items():
        pairs = {
            "validation": [(targets, fold.validation) for _, fold in folds],
            "r2": [(truth, fold.score) for truth, fold in folds],
            "control": [(fold.control_targets, fold.control) for _, fold in folds],
        }
        for name, both in pairs.items():
            r2 = np.mean([mean_r2(truth[:, where], guess[:, where]) for truth, guess in both])
            getattr(probes, name)[factor] = float(r2)
    return probes


def _record(kind: str, site: str, use: str, factor: str, **values: Any) -> dict[str, Any]:
    block, _, moment = site.partition(" @ ")
    record = {"network": kind, "site": block, "moment": moment, "use": use, "factor": factor, "combination": ""}
    return record | dict.fromkeys(("r2", "control", "selectivity", "blind")) | values
