"""Accuracy on each single string task and on unseen composites, of a base or an expert; what experts share is here, too."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.chained.string_tasks import NOTHING, StringTasks
from recombine.models.base import Network
from recombine.models.expert import ExpertNetwork, trained_parameters
from recombine.models.sequence import SequenceNetwork
from recombine.objectives import NextToken
from recombine.probes.base import Measured, Measurement
from recombine.probes.scores import ScoreTask
from recombine.probes.tasks import over_tasks
from recombine.training import RunConfig, Setting
from recombine.training.streams import Stream

Row = Int[np.ndarray, " slot"]


def is_refused(config: RunConfig) -> str:
    """Why a run has no string tasks; empty if it has."""
    return "" if isinstance(config.family, StringTasks) else f"The family {config.family.kind!r} has no string tasks."


def oldest(config: RunConfig) -> RunConfig:
    """The run with which the line of a run began: the base of its experts."""
    line = config.ancestors().values()
    return next(iter(line), config)


def single(config: RunConfig, task: str) -> Row:
    """The combination of a task alone."""
    return config.space.row((task, NOTHING))


def unseen_composites(config: RunConfig) -> Int[np.ndarray, "composite slot"]:
    """The pairs of different tasks that the base of a run was not trained on."""
    base = oldest(config)
    family = base.family
    assert isinstance(family, StringTasks)
    rows = np.stack([base.space.row((a, b)) for a in family.tasks for b in family.tasks if a != b])
    rows = rows[~Setting(base).support.contains(rows)]
    if not len(rows):
        raise BadInput("The base was trained on every composite.", fix="leave some pairs of tasks out of its support")
    return rows


def named(config: RunConfig, row: Row) -> tuple[str, ...]:
    """The tasks that a prompt names, without `nothing`."""
    words = (config.space.label(part).split("=")[1] for part in row.tolist())
    return tuple(word for word in words if word != NOTHING)


def accuracy(setting: Setting, network: Network, row: Row, draws: int) -> float:
    """Exact match on fresh strings of one combination. All runs of a replicate have the same strings."""
    # The same program for all objectives: answers are generated in the same way.
    compute = ScoreTask(setting.config.family, NextToken(), 1)
    rows = np.repeat(row[None], draws, axis=0)
    region = "+".join(named(setting.config, row))
    return float(over_tasks(compute, setting, network, rows, Stream.TEST, region, draws)["whole"].mean())


class ExpertScores(Measurement):
    """Exact match on each task alone (`right_sort`, ...), and the mean on pairs of tasks that the base never saw (`composites`).

    An expert also has `own`, on what it was trained on, `own_base`, the same of its base, and `parameters`, the number of trained
    parameters.
    """

    kind: Literal["expert-scores"] = "expert-scores"
    draws: PositiveInt = 256
    """Strings of each task."""
    composite_draws: PositiveInt = 64
    """Strings of each composite."""

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        tasks = config.family.tasks if isinstance(config.family, StringTasks) else ()
        return frozenset(("own", "own_base", "parameters", "composites", *(f"right_{task}" for task in tasks)))

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if refused := is_refused(config):
            return Measured({}, {}, refused=refused)
        assert isinstance(config.family, StringTasks)
        assert isinstance(network, SequenceNetwork)
        # Merged once: the program is then that of the base.
        is_expert = isinstance(network, ExpertNetwork)
        whole = network.merged() if is_expert else network
        score = functools.partial(accuracy, setting)
        rows = {task: single(config, task) for task in config.family.tasks}
        summary = {f"right_{task}": score(whole, row, self.draws) for task, row in rows.items()}
        composites = unseen_composites(config)
        found = [score(whole, row, self.composite_draws) for row in composites]
        summary["composites"] = float(np.mean(found))
        if is_expert and len(network.experts) == 1:
            trained = setting.regions.require("trained", 64)
            base = network.base()
            for name, part in (("own", whole), ("own_base", base)):
                summary[name] = float(np.mean([score(part, row, self.draws) for row in trained]))
            summary["parameters"] = float(trained_parameters(network))
        names = [config.space.name(row) for row in (*rows.values(), *composites)]
        scores = [*(summary[f"right_{task}"] for task in rows), *found]
        return Measured(summary, {"combination": names, "accuracy": scores})
