"""How well each factor can be read off each block while images are drawn, at several moments, with its controls."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.objectives.flow_matching import FlowMatching
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import STRENGTHS, control_targets
from recombine.probes.ridge import RidgePath, mean_r2
from recombine.probes.tasks import at_once, over_tasks
from recombine.spaces.product import ProductSpace
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

MOMENTS: tuple[tuple[str, float], ...] = (("0.3", 0.3), ("0.5", 0.5), ("0.7", 0.7), ("1.0", 1.0))
"""Shares of the way from noise to image at which a network is looked into."""
MEAN = "mean"
"""The mean over these moments."""
READING = "reading"
"""What the text encoder made of the caption: the same at every moment."""

FEWEST = 8
"""Held-out combinations without which nothing can be fitted on some and scored on others."""


@dataclasses.dataclass(frozen=True)
class WatchTask:
    """The task vector, and each site at each moment while one image is drawn. Sites are named `site @ moment`."""

    objective: FlowMatching

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        task, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, sites = self.objective.watched(network, code, batch.inputs[:, :-1])
        found = {"vector": task.vector}
        for site, values in sites.items():
            steps = {
                name: values[min(round(share * len(values)), len(values) - 1), 0] for name, share in MOMENTS
            }
            if site == READING:
                found[READING] = values[0, 0]
                continue
            found |= {f"{site} @ {name}": one for name, one in steps.items()}
            found[f"{site} @ {MEAN}"] = jax.numpy.mean(jax.numpy.stack([*steps.values()]), axis=0)
        return found


class Seen(NamedTuple):
    """Some combinations and what was seen of their tasks: equally many of each, one after the other."""

    rows: Int[np.ndarray, "n slots"]
    values: dict[str, np.ndarray]

    def take(self, chosen: np.ndarray) -> Seen:
        tasks = np.repeat(chosen, len(self.values["vector"]) // len(self.rows))
        return Seen(self.rows[chosen], {name: values[tasks] for name, values in self.values.items()})


class Read(NamedTuple):
    """A site read by probes fitted on the halves of the test combinations, each scored on the other half."""

    validation: dict[str, float]
    """R2 of each factor on validation combinations, on which the site may be chosen."""
    r2: dict[str, float]
    """On the half that was not fitted on."""
    control: dict[str, float]
    """R2 of a code that is random by combination, on other tasks of the combinations fitted on."""
    errors: dict[str, Float[np.ndarray, " combination"]]
    """How badly each combination is read: the mean squared error as a share of the spread."""


class Concepts(Measurement):
    """R2 of ridge maps from a block, pooled over positions, to each factor of the combination that was asked for.

    The intrinsic form: fitted on half of the held-out combinations (test side), scored on the other half, both ways
    round. Which site and moment count is chosen on validation combinations (`chosen`); the text encoder and an untrained
    network are read in the same way. Rows with a combination say how well the chosen site tells that combination.
    """

    kind: Literal["concepts"] = "concepts"
    combinations: PositiveInt = 256
    """The most held-out combinations of each side."""
    draws: PositiveInt = 4
    """Tasks (captions, and noise to begin with) of each combination, of which half are kept for the control."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        space, objective = setting.config.space, setting.config.objective
        if not isinstance(objective, FlowMatching) or not isinstance(space, ProductSpace):
            raise BadInput(
                f"concepts looks into networks that draw images; this one is trained by {objective.kind!r}.",
                fix="family=scenes with objective=flow-matching, or the measurement decodability",
            )
        rows = {
            side: setting.regions.require("held_out", self.combinations, side)
            for side in ("test", "validation")
        }
        if len(rows["test"]) < FEWEST:
            raise BadInput(
                f"Of the held-out combinations (test side) {len(rows['test'])} were found; at least {FEWEST} are needed.",
                fix="train on fewer combinations, or hold out more",
            )
        columns = {
            name: slice(offset, offset + level)
            for (name, _), offset, level in zip(space.factors, space.offsets, space.levels, strict=True)
        }
        names = [space.name(row) for row in rows["test"]]
        records: list[dict[str, Any]] = []
        summary: dict[str, float] = {}
        for kind, which in (("trained", network), ("untrained", setting.network())):
            seen = {side: self._seen(setting, which, objective, some, side) for side, some in rows.items()}
            found = read_sites(seen["test"], seen["validation"], columns, setting.config.seeds.support)
            best = chosen_site(found)
            suffix = "" if kind == "trained" else "_untrained"
            for site, read in found.items():
                records += _records(kind, site, read, site == best)
                if site in (best, READING):
                    records += _of_combinations(kind, site, read, names, site == best)
                    short = f"{'text' if site == READING else 'concepts'}{suffix}"
                    summary[f"{short}_r2"] = float(np.mean([*read.r2.values()]))
                    gaps = [read.r2[factor] - read.control[factor] for factor in read.r2]
                    summary[f"{short}_selectivity"] = float(np.mean(gaps))
            summary |= {f"r2_{_plain(factor)}{suffix}": value for factor, value in found[best].r2.items()}
        return Measured(summary, {name: [record[name] for record in records] for name in records[0]})

    def _seen(
        self,
        setting: Setting,
        network: Network,
        objective: FlowMatching,
        rows: Int[np.ndarray, "n slots"],
        side: str,
    ) -> Seen:
        tasks = np.repeat(rows, self.draws, axis=0)
        watch = WatchTask(objective)
        region = f"concepts {side}"
        return Seen(rows, over_tasks(watch, setting, network, tasks, Stream.PROBE, region, at_once(setting)))


def read_sites(test: Seen, validation: Seen, columns: dict[str, slice], seed: int) -> dict[str, Read]:
    """Every site and moment, read."""
    controls = {
        factor: control_targets(test.rows, test.values["vector"][:, where], seed)
        for factor, where in columns.items()
    }
    seen = Seen(test.rows, test.values | {"control": np.concatenate([*controls.values()], axis=1)})
    return {
        site: _read(seen, validation, site, columns)
        for site in test.values
        if site not in ("vector", "control")
    }


def chosen_site(found: dict[str, Read]) -> str:
    """The block and moment that validation combinations are read best from; the text encoder is none."""
    blocks = [site for site in found if site != READING]
    return max(blocks, key=lambda site: np.mean([*found[site].validation.values()]))


def _read(test: Seen, validation: Seen, site: str, columns: dict[str, slice]) -> Read:
    number = len(test.rows)
    even = np.arange(number) % 2 == 0
    folds = []
    for half in (even, ~even):
        fit, score = test.take(half), test.take(~half)
        draw = np.arange(len(fit.values["vector"])) % (len(fit.values["vector"]) // len(fit.rows))
        # Every other task is kept: the control is asked about other tasks of the same combinations.
        kept = draw % 2 == 1 if draw.max() else np.zeros(len(draw), bool)
        targets = np.concatenate([fit.values["vector"], fit.values["control"]], axis=1)
        ridge = RidgePath(fit.values[site][~kept], targets[~kept])
        width = fit.values["vector"].shape[1]
        strength = max(
            STRENGTHS,
            key=lambda one, ridge=ridge, width=width: mean_r2(
                validation.values["vector"], ridge.predict(validation.values[site], one)[:, :width]
            ),
        )
        guess = ridge.predict(score.values[site], strength)[:, :width]
        choice = ridge.predict(validation.values[site], strength)[:, :width]
        again = ridge.predict(fit.values[site][kept if kept.any() else ~kept], strength)[:, width:]
        known = fit.values["control"][kept if kept.any() else ~kept]
        spread = ((score.values["vector"] - score.values["vector"].mean(0)) ** 2).mean(0)
        wrong = (score.values["vector"] - guess) ** 2
        draws = len(wrong) // len(score.rows)
        folds.append(
            {
                "validation": {
                    factor: mean_r2(validation.values["vector"][:, where], choice[:, where])
                    for factor, where in columns.items()
                },
                "r2": {
                    factor: mean_r2(score.values["vector"][:, where], guess[:, where])
                    for factor, where in columns.items()
                },
                "control": {
                    factor: mean_r2(known[:, where], again[:, where]) for factor, where in columns.items()
                },
                "errors": {
                    factor: wrong[:, where].sum(1).reshape(-1, draws).mean(1)
                    / max(float(spread[where].sum()), 1e-30)
                    for factor, where in columns.items()
                },
            }
        )

    def mean(name: str) -> dict[str, float]:
        return {factor: float(np.mean([fold[name][factor] for fold in folds])) for factor in columns}

    errors = {factor: np.empty(number) for factor in columns}
    for fold, half in zip(folds, (even, ~even), strict=True):
        for factor in columns:
            errors[factor][~half] = fold["errors"][factor]
    return Read(mean("validation"), mean("r2"), mean("control"), errors)


def _records(kind: str, site: str, read: Read, best: bool) -> list[dict[str, Any]]:
    block, _, moment = site.partition(" @ ")
    return [
        {
            "network": kind,
            "site": block,
            "moment": moment,
            "chosen": best,
            "factor": factor,
            "combination": "",
            "r2": read.r2[factor],
            "control": read.control[factor],
            "selectivity": read.r2[factor] - read.control[factor],
        }
        for factor in read.r2
    ]


def _of_combinations(kind: str, site: str, read: Read, names: list[str], best: bool) -> list[dict[str, Any]]:
    block, _, moment = site.partition(" @ ")
    return [
        {
            "network": kind,
            "site": block,
            "moment": moment,
            "chosen": best,
            "factor": factor,
            "combination": name,
            "r2": float(1 - error),
            "control": None,
            "selectivity": None,
        }
        for factor, errors in read.errors.items()
        for name, error in zip(names, errors, strict=True)
    ]


def _plain(factor: str) -> str:
    return factor.replace(" ", "_")
