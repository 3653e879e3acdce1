"""Activations, linear probes and edited networks, shared by measurements that intervene on a network."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.errors import BadInput
from recombine.models.base import Code, Edit, Inputs, Network, Traced, unedited
from recombine.probes.ridge import STRENGTHS, RidgePath, mean_r2
from recombine.probes.tasks import over_tasks
from recombine.spaces.rows import RowSet
from recombine.supports.regions import Side
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

Activations = dict[str, np.ndarray]
"""The task vector (`vector`), the code (`encoding`) and each site, with a leading task axis."""

EditRegion = Literal["held_out", "trained"]
"""The combinations on which activations are edited. Probes are fitted on held-out ones in either case."""

SIDES: tuple[Side, Side] = ("test", "validation")
MIN_COMBINATIONS = 8
"""The smallest number of held-out combinations that can be split into parts to fit and to test on."""


@dataclasses.dataclass(frozen=True)
class TraceTask:
    """The activations of one example of one task, and the task vector."""

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        task, code, batch = draw_examples(teacher, encoder, row, key, samples=1)
        _, trace = network.trace(code, batch.inputs)
        return {"vector": task.vector, "encoding": code} | {site: values[0] for site, values in trace.items()}


class EditedNetwork(Network):
    """A network whose sites are edited in every pass. For use inside compiled code only."""

    network: Network
    edit: Edit = eqx.field(static=True)

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        return self.network.trace(code, inputs, lambda site, values: edit(site, self.edit(site, values)))


class Probe(NamedTuple):
    """A ridge regression of the task vector on a site, with the strength that is best on validation combinations."""

    ridge: RidgePath
    strength: float
    width: int

    @property
    def weights(self) -> Float[np.ndarray, "d width"]:
        return self.ridge.weights(self.strength)[:, : self.width]

    @property
    def extra_weights(self) -> Float[np.ndarray, "d more"]:
        """The weights of the extra targets."""
        return self.ridge.weights(self.strength)[:, self.width :]

    def predict(self, features: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n width"]:
        return self.ridge.predict(features, self.strength)[:, : self.width]


@dataclasses.dataclass(frozen=True)
class ProbeSplits:
    """Activations on four disjoint sets of held-out combinations.

    Half of the test side is for fitting, a quarter for the referee (a second probe that judges edits made with the first)
    and a quarter for the intervention itself. Strengths and layers are chosen on the validation side.
    """

    fit: Activations
    fit_rows: Int[np.ndarray, "fitted slots"]
    """The combinations of `fit`. Each has the same number of tasks there, in consecutive rows."""
    referee: Activations
    test: Activations
    test_rows: Int[np.ndarray, "tested slots"]
    validation: Activations
    validation_rows: Int[np.ndarray, "validation slots"]
    seen: RowSet
    """Combinations that were used to fit, to choose or to stop training."""

    @property
    def sites(self) -> list[str]:
        """The network's sites, in the order of the computation."""
        return [name for name in self.fit if name not in ("vector", "encoding")]

    def trivial(self, site: str) -> bool:
        """Whether a layer reads the constituents from a code that is linear in them: the first layer, or the reader."""
        names = self.sites
        first = next((number for number, name in enumerate(names) if name != "reading"), 0)
        if names.index(site) > first:
            return False
        probe = fit_probe(self.fit, self.validation, "encoding")
        return mean_r2(self.validation["vector"], probe.predict(self.validation["encoding"])) > 0.99


def fit_probe(
    fit: Activations, validation: Activations, site: str, extra_targets: Float[np.ndarray, "n more"] | None = None
) -> Probe:
    """Fit a ridge probe of the task vector, and of any extra targets, at the strength that is best on `validation`."""
    width = fit["vector"].shape[1]
    targets = fit["vector"] if extra_targets is None else np.concatenate([fit["vector"], extra_targets], axis=1)
    ridge = RidgePath(fit[site], targets)

    def quality(strength: float) -> float:
        return mean_r2(validation["vector"], ridge.predict(validation[site], strength)[:, :width])

    return Probe(ridge, max(STRENGTHS, key=quality), width)


def activations(
    setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], draws: int, region: str
) -> Activations:
    """Trace one example of each of `draws` tasks of each combination."""
    return over_tasks(TraceTask(), setting, network, np.repeat(rows, draws, axis=0), Stream.PROBE, region)


def held_out_sides(
    setting: Setting, combinations: int, fewest: int, what: str
) -> tuple[Int[np.ndarray, "n slots"], Int[np.ndarray, "m slots"]]:
    """Held-out combinations to fit and score on (test side), and to choose on (validation side).

    Raises BadInput where `what` needs more than there are: at least `fewest` on the test side.
    """
    test, validation = (setting.regions.require("held_out", combinations, side) for side in SIDES)
    if len(test) < fewest:
        raise BadInput(
            f"There are {len(test)} held-out combinations on the test side; {what} needs {fewest}.",
            fix="train on fewer combinations, or hold out more",
        )
    return test, validation


def probe_splits(setting: Setting, network: Network, combinations: int, draws: int) -> ProbeSplits:
    """The activations of `draws` tasks of each of at most `combinations` held-out combinations of each side."""
    test, validation = held_out_sides(
        setting, combinations, MIN_COMBINATIONS, "fitting on some and intervening on others"
    )
    quarter = np.arange(len(test)) % 4
    rows = {"fit": test[quarter % 2 == 0], "referee": test[quarter == 1], "rest": test[quarter == 3]}
    traced = {
        name: activations(setting, network, some, draws, f"probed {name}")
        for name, some in (rows | {"validation": validation}).items()
    }
    return ProbeSplits(
        fit=traced["fit"],
        fit_rows=rows["fit"],
        referee=traced["referee"],
        test=traced["rest"],
        test_rows=rows["rest"],
        validation=traced["validation"],
        validation_rows=validation,
        seen=RowSet(np.concatenate([rows["fit"], rows["referee"], validation, setting.validation_rows()])),
    )
