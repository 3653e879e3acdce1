"""What measurements that interfere with a network share: activations to fit on, probes, edited networks."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from recombine.errors import BadInput
from recombine.models.base import Edit, Network, Trace, unedited
from recombine.probes.decodability import STRENGTHS, TraceTask
from recombine.probes.ridge import RidgePath, mean_r2
from recombine.probes.tasks import over_tasks
from recombine.supports.regions import Side
from recombine.supports.rows import RowSet
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

Activations = dict[str, np.ndarray]
"""`vector`, `encoding` and each site, with a leading task axis."""

InterferedRegion = Literal["held_out", "trained"]
"""Which combinations are interfered with. Probes are fitted on held-out ones in either case."""

SIDES: tuple[Side, Side] = ("test", "validation")
FEWEST = 8
"""Held-out combinations without which nothing can be fitted on some and tried on others."""


class Edited(Network):
    """A network that goes on with something else than what it computed. For use inside compiled code only."""

    network: Network
    edit: Edit = eqx.field(static=True)

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        return self.network.trace(code, inputs, lambda site, values: edit(site, self.edit(site, values)))


class Probe(NamedTuple):
    """A ridge map from a site to the task vector, with the strength that was best on validation combinations."""

    ridge: RidgePath
    strength: float
    width: int

    @property
    def weights(self) -> Float[np.ndarray, "d width"]:
        return self.ridge.weights(self.strength)[:, : self.width]

    @property
    def beside(self) -> Float[np.ndarray, "d more"]:
        """The weights of the targets that were fitted beside the task vector."""
        return self.ridge.weights(self.strength)[:, self.width :]

    def predict(self, features: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n width"]:
        return self.ridge.predict(features, self.strength)[:, : self.width]


@dataclasses.dataclass(frozen=True)
class Probed:
    """Activations on held-out combinations in four sets that share no combination.

    Half of the test side is for fitting, a quarter for the referee (a second probe that judges what was done by
    means of the first) and a quarter is left to interfere with. What is chosen is chosen on the validation side.
    """

    fit: Activations
    fit_rows: Int[np.ndarray, "fitted slots"]
    """The combinations of `fit`, each of which has equally many tasks there, one after the other."""
    referee: Activations
    rest: Activations
    rest_rows: Int[np.ndarray, "left slots"]
    validation: Activations
    validation_rows: Int[np.ndarray, "validation slots"]
    seen: RowSet
    """Combinations that something was fitted, chosen or stopped on."""

    @property
    def sites(self) -> list[str]:
        """The network's sites, in the order of the computation."""
        return [name for name in self.fit if name not in ("vector", "encoding")]

    def trivial(self, site: str) -> bool:
        """Whether a layer knows the constituents because it was told: the first one, and the code is linear in them.

        What comes before the first layer (what a reader made of the code) is as trivial.
        """
        names = self.sites
        first = next((number for number, name in enumerate(names) if name != "reading"), 0)
        if names.index(site) > first:
            return False
        found = fit_probe(self.fit, self.validation, "encoding")
        return mean_r2(self.validation["vector"], found.predict(self.validation["encoding"])) > 0.99


def fit_probe(
    fit: Activations,
    validation: Activations,
    site: str,
    beside: Float[np.ndarray, "n more"] | None = None,
) -> Probe:
    """A ridge map fitted on some combinations, its strength chosen on others. It may have more targets beside."""
    width = fit["vector"].shape[1]
    targets = fit["vector"] if beside is None else np.concatenate([fit["vector"], beside], axis=1)
    ridge = RidgePath(fit[site], targets)

    def quality(strength: float) -> float:
        return mean_r2(validation["vector"], ridge.predict(validation[site], strength)[:, :width])

    return Probe(ridge, max(STRENGTHS, key=quality), width)


def activations(
    setting: Setting, network: Network, rows: Int[np.ndarray, "n slots"], draws: int, region: str
) -> Activations:
    """The activations of one example of each of `draws` tasks of each combination."""
    return over_tasks(TraceTask(), setting, network, np.repeat(rows, draws, axis=0), Stream.PROBE, region)


def sides(
    setting: Setting, combinations: int, fewest: int, what: str
) -> tuple[Int[np.ndarray, "n slots"], Int[np.ndarray, "m slots"]]:
    """Held-out combinations to fit and score on (test side) and to choose on (validation side), at most so many of each.

    `what` needs `fewest` of the first.
    """
    test, validation = (setting.regions.require("held_out", combinations, side) for side in SIDES)
    if len(test) < fewest:
        raise BadInput(
            f"Of the held-out combinations (test side) {len(test)} were found; {what} needs {fewest}.",
            fix="train on fewer combinations, or hold out more",
        )
    return test, validation


def probed(setting: Setting, network: Network, combinations: int, draws: int) -> Probed:
    """The activations that a measurement fits on."""
    what = "fitting on some and interfering with others"
    test, validation = sides(setting, combinations, FEWEST, what)
    place = np.arange(len(test)) % 4
    parts = {"fit": test[place % 2 == 0], "referee": test[place == 1], "rest": test[place == 3]}
    found = {
        name: activations(setting, network, rows, draws, f"probed {name}")
        for name, rows in (parts | {"validation": validation}).items()
    }
    seen = RowSet(np.concatenate([parts["fit"], parts["referee"], validation, setting.validation_rows()]))
    return Probed(
        **found, fit_rows=parts["fit"], rest_rows=parts["rest"], validation_rows=validation, seen=seen
    )
