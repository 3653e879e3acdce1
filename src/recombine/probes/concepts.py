"""How well each factor can be read off each block while images are drawn, at several moments, with its controls."""

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
from recombine.probes.activations import FEWEST, SIDES, sides
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
EARLY = MOMENTS[0][0]
"""The first of them: little of the image is there yet."""
READING = "reading"
"""What the text encoder made of the caption: the same at every moment."""

SHARE = 3
"""Of every site as many principal components are read as there are combinations to fit on, divided by this: with as many
channels as combinations a code that is random by combination would be known by heart, and sites of any width compare."""


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
    """How badly each combination is read: the mean squared error as a share of that of who knows nothing, which always says
    the mean of what was fitted on. As a share of one common spread, combinations with frequent values would seem to be
    read better whatever is known."""
    blind: dict[str, Float[np.ndarray, " combination"]]
    """That error of who knows nothing: small where the value is frequent among the combinations fitted on."""


class Concepts(Measurement):
    """R2 of ridge maps from a block, pooled over positions, to each factor of the combination that was asked for.

    The intrinsic form: fitted on half of the held-out combinations (test side), scored on the other half, both ways
    round, from equally many principal components of every site. Which site and moment count is chosen on validation
    combinations: among all (`use` is `chosen`) and among those of the first moment (`early`). The text encoder (`text`) and an
    untrained network are read in the same way. Rows with a combination say how well such a site tells that combination: one less the error as a share of that of
    who knows nothing (`blind`).
    """

    kind: Literal["concepts"] = "concepts"
    version: ClassVar[int] = 3
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
        rows = dict(zip(SIDES, sides(setting, self.combinations, FEWEST, "a probe"), strict=True))
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
            uses = {READING: "text", chosen_site(found, EARLY): "early", best: "chosen"}
            suffix = "" if kind == "trained" else "_untrained"
            for site, read in found.items():
                records += _records(kind, site, read, uses.get(site, ""))
            # One site may be both: the best of all, and the best of the first moment.
            for site, use in ((best, "chosen"), (chosen_site(found, EARLY), "early"), (READING, "text")):
                if site not in found:
                    continue
                read, short = found[site], {"chosen": "concepts", "early": "early", "text": "text"}[use]
                records += _of_combinations(kind, site, read, names, use)
                summary[f"{short}{suffix}_r2"] = float(np.mean([*read.r2.values()]))
                gaps = [read.r2[factor] - read.control[factor] for factor in read.r2]
                summary[f"{short}{suffix}_selectivity"] = float(np.mean(gaps))
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


def chosen_site(found: dict[str, Read], moment: str | None = None) -> str:
    """The block and moment (or the block at a moment) that validation combinations are read best from.

    The text encoder is no block.
    """
    blocks = [site for site in found if site != READING and (moment is None or site.endswith(f"@ {moment}"))]
    return max(blocks, key=lambda site: np.mean([*found[site].validation.values()]))


class _Fold(NamedTuple):
    """A probe fitted on half of the test combinations: what it says of others."""

    validation: Float[np.ndarray, "task width"]
    score: Float[np.ndarray, "task width"]
    control: Float[np.ndarray, "task width"]
    """Of the random codes, on other tasks of the combinations that it was fitted on."""
    known: Float[np.ndarray, "task width"]
    """What they are."""
    mean: Float[np.ndarray, " width"]
    """Of what it was fitted on."""


def _fold(fit: Seen, score: Seen, validation: Seen, site: str) -> _Fold:
    width = fit.values["vector"].shape[1]
    draws = len(fit.values["vector"]) // len(fit.rows)
    # Every other task is kept: the control is asked about other tasks of the same combinations.
    kept = np.arange(len(fit.values["vector"])) % draws % 2 == 1
    targets = np.concatenate([fit.values["vector"], fit.values["control"]], axis=1)
    project = components(fit.values[site][~kept], max(1, len(fit.rows) // SHARE))
    ridge = RidgePath(project(fit.values[site][~kept]), targets[~kept])
    asked = project(validation.values[site])

    def quality(strength: float) -> float:
        return mean_r2(validation.values["vector"], ridge.predict(asked, strength)[:, :width])

    best = max(STRENGTHS, key=quality)
    again = kept if kept.any() else ~kept
    return _Fold(
        ridge.predict(asked, best)[:, :width],
        ridge.predict(project(score.values[site]), best)[:, :width],
        ridge.predict(project(fit.values[site][again]), best)[:, width:],
        fit.values["control"][again],
        fit.values["vector"].mean(0),
    )


def components(
    features: Float[np.ndarray, "n d"], number: int
) -> Callable[[Float[np.ndarray, "m d"]], Float[np.ndarray, "m k"]]:
    """The projection on the first principal components of some features."""
    features = np.asarray(features, np.float64)
    mean = features.mean(0)
    axes = np.linalg.svd(features - mean, full_matrices=False)[2][:number]
    return lambda others: (np.asarray(others, np.float64) - mean) @ axes.T


def _read(test: Seen, validation: Seen, site: str, columns: dict[str, slice]) -> Read:
    even = np.arange(len(test.rows)) % 2 == 0
    found = Read({}, {}, {}, *({factor: np.empty(len(test.rows)) for factor in columns} for _ in range(2)))
    folds = []
    for half in (even, ~even):
        fit, score = test.take(half), test.take(~half)
        folds.append((score.values["vector"], _fold(fit, score, validation, site)))
        wanted, fold = folds[-1]
        wrong, unknown = (wanted - fold.score) ** 2, (wanted - fold.mean) ** 2
        draws = len(wanted) // len(score.rows)
        for factor, where in columns.items():
            errors, blind = (each[:, where].sum(1).reshape(-1, draws).mean(1) for each in (wrong, unknown))
            found.errors[factor][~half] = errors / np.maximum(blind, 1e-30)
            found.blind[factor][~half] = blind
    asked = validation.values["vector"]
    for factor, where in columns.items():
        pairs = {
            "validation": [(asked, fold.validation) for _, fold in folds],
            "r2": [(wanted, fold.score) for wanted, fold in folds],
            "control": [(fold.known, fold.control) for _, fold in folds],
        }
        for name, both in pairs.items():
            r2 = np.mean([mean_r2(truth[:, where], guess[:, where]) for truth, guess in both])
            getattr(found, name)[factor] = float(r2)
    return found


def _records(kind: str, site: str, read: Read, use: str) -> list[dict[str, Any]]:
    block, _, moment = site.partition(" @ ")
    return [
        {
            "network": kind,
            "site": block,
            "moment": moment,
            "use": use,
            "factor": factor,
            "combination": "",
            "r2": read.r2[factor],
            "control": read.control[factor],
            "selectivity": read.r2[factor] - read.control[factor],
            "blind": None,
        }
        for factor in read.r2
    ]


def _of_combinations(kind: str, site: str, read: Read, names: list[str], use: str) -> list[dict[str, Any]]:
    block, _, moment = site.partition(" @ ")
    return [
        {
            "network": kind,
            "site": block,
            "moment": moment,
            "use": use,
            "factor": factor,
            "combination": name,
            "r2": float(1 - error),
            "control": None,
            "selectivity": None,
            "blind": float(blind),
        }
        for factor, errors in read.errors.items()
        for name, error, blind in zip(names, errors, read.blind[factor], strict=True)
    ]


def _plain(factor: str) -> str:
    return factor.replace(" ", "_")
