"""Predictors of failure for each held-out combination: from the support before training, and from a probe after it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import Network
from recombine.probes.activations import Activations, activations, fit_probe
from recombine.probes.base import Measured, Measurement
from recombine.supports.regions import distance
from recombine.training.prepare import Setting

MAX_TRAINED = 50_000
"""Distances are to the nearest of at most this many trained combinations."""


class Readout(Measurement):
    """One row per held-out combination (test side), with what may predict whether the network fails on it.

    `error`: the error of a ridge probe of the deepest layer on this combination: the mean squared error of its task
    vectors, as a share of their variance over all combinations. The probe was fitted on other held-out combinations.
    All other columns follow from the support, so they are known before training (`before_training`).
    """

    kind: Literal["readout"] = "readout"
    combinations: PositiveInt = 512
    """The largest number of held-out combinations of each side."""
    draws: PositiveInt = 4
    """The number of tasks of each combination."""

    summary_names: ClassVar[tuple[str, ...]] = ("readout_r2",)

    def measure(self, setting: Setting, network: Network) -> Measured:
        rows = setting.regions.require("held_out", self.combinations, "test")
        validation_rows = setting.regions.require("held_out", self.combinations, "validation")
        if len(rows) < 2:
            raise BadInput(
                "There is one held-out combination on the test side; a probe is fitted on some and tested on others.",
                fix="train on fewer combinations, or hold out more",
            )
        test = activations(setting, network, rows, self.draws, "readout test")
        validation = activations(setting, network, validation_rows, self.draws, "readout validation")
        error = read_errors(test, validation, list(test)[-1], len(rows))
        columns: dict[str, list[Any]] = {
            "combination": [setting.config.space.name(row) for row in rows],
            "error": error.tolist(),
        }
        columns |= {name: values.tolist() for name, values in before_training(setting, rows).items()}
        return Measured({"readout_r2": float(1 - error.mean())}, columns)


def read_errors(
    test: Activations, validation: Activations, site: str, number: int
) -> Float[np.ndarray, " combination"]:
    """The error on each combination of a probe that was fitted on the other half of the combinations.

    It is the mean squared error as a share of the variance over all combinations. The `number` combinations of `test`
    are in random order, each with the same number of tasks in consecutive rows.
    """
    draws = len(test["vector"]) // number
    half = np.repeat(np.arange(number) % 2, draws)
    wrong = np.empty(test["vector"].shape)
    for side in (0, 1):
        scored = half == side
        probe = fit_probe({name: values[~scored] for name, values in test.items()}, validation, site)
        wrong[scored] = test["vector"][scored] - probe.predict(test[site][scored])
    spread = np.mean(np.sum((test["vector"] - test["vector"].mean(0)) ** 2, axis=1, dtype=np.float64))
    return (wrong**2).sum(1).reshape(number, draws).mean(1) / max(float(spread), 1e-30)


def before_training(setting: Setting, rows: Int[np.ndarray, "n slots"]) -> dict[str, np.ndarray]:
    """Properties of each combination that follow from the support. The last four describe the support itself.

    `parts`: the number of constituents. `unseen`: those that training never shows. `rarest_part`: the number of training
    combinations with the rarest of them. `pairs_met`: the share of its pairs that occur in training (1 where there is no
    pair). `pairs_unmet`: the number of other pairs. `rarest_pair`: the number of training combinations with the rarest pair
    (with a single constituent: with that one). `distance`: the number of constituents to change to reach a trained
    combination. `size`: the number of training combinations. `pairs_covered`, `triples_covered`: the share of all pairs and
    triples of the space that occur. `smallest_eigenvalue`: that of E[z z'].
    """
    support, moment = setting.support, setting.regions.moment
    width = len(moment)
    # One more row and column for the pad, which counts as having met everything.
    often = np.pad(moment * float(support.size), ((0, 1), (0, 1)), constant_values=np.inf)
    rows = np.minimum(rows, width)
    first, second = np.triu_indices(rows.shape[1], k=1)
    alone, together = often[rows, rows], often[rows[:, first], rows[:, second]]
    parts = (rows < width).sum(axis=1)
    pairs = parts * (parts - 1) // 2
    unmet = (together <= 0).sum(axis=1)
    certificate = support.certificate((2, 3))
    covered = {coverage.strength: coverage.share for coverage in certificate.coverage}
    trained = setting.regions.require("trained", MAX_TRAINED)
    of_support = {
        "size": float(support.size),
        "pairs_covered": covered.get(2, 1.0),
        "triples_covered": covered.get(3, 1.0),
        "smallest_eigenvalue": max(certificate.spectrum[-1], 0.0),
    }
    return {
        "parts": parts,
        "unseen": (alone <= 0).sum(axis=1),
        "rarest_part": alone.min(axis=1),
        "pairs_met": 1 - unmet / np.maximum(pairs, 1),
        "pairs_unmet": unmet,
        "rarest_pair": np.concatenate([alone, together], axis=1).min(axis=1),
        "distance": distance(rows, trained, width),
    } | {name: np.full(len(rows), value) for name, value in of_support.items()}
