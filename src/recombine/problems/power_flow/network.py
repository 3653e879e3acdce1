"""The arrays of a power network from a standard case, in per unit, with buses numbered from 0.

In the archive a line limit of 0 or of 9900 MVA stands for no limit. Such lines have no constraint.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int, Shaped

from recombine.errors import MissingPackage
from recombine.problems.checking import Answers, AnswerValues, Values

Case = Literal["case9", "case14"]
NO_LIMIT = 9900.0


class State(NamedTuple):
    """An answer in per unit and radians."""

    p: Float[Values, "n generator"]
    q: Float[Values, "n generator"]
    magnitude: Float[Values, "n bus"]
    angle: Float[Values, "n bus"]

    def voltage(self, xp: ModuleType = np) -> Complex[Values, "n bus"]:
        """The complex voltage of each bus."""
        return self.magnitude * xp.exp(1j * self.angle)


@dataclass(frozen=True, eq=False)
class Network:
    """The arrays of a case. An answer is the vector (Pg in MW, Qg in MVAr, Vm in per unit, Va in degrees)."""

    base: float
    """The power that is 1 in per unit, in MVA."""
    nominal: Float[np.ndarray, "2 load"]
    """The active and reactive power of each load in the case, in MW and MVAr."""
    load_buses: Int[np.ndarray, " load"]
    """The buses with an active or a reactive load."""
    generator_buses: Int[np.ndarray, " generator"]
    reference: int
    """The bus whose angle is fixed; its generator takes up the difference."""
    reference_angle: float
    p_bounds: Float[np.ndarray, "2 generator"]
    """The lower and upper bounds."""
    q_bounds: Float[np.ndarray, "2 generator"]
    magnitude_bounds: Float[np.ndarray, "2 bus"]
    admittance: Complex[np.ndarray, "bus bus"]
    """The matrix from voltages to currents into the network."""
    line_ends: Int[np.ndarray, "line 2"]
    """The buses of the lines that have a limit."""
    line_admittance: Complex[np.ndarray, "line 2 2"]
    """The matrix from the voltages at the ends of each of these lines to the currents into it."""
    limits: Float[np.ndarray, " line"]
    """The largest apparent power at either end."""
    prices: Float[np.ndarray, "generator 3"]
    """The quadratic, linear and constant cost of active power in MW."""

    @property
    def buses(self) -> int:
        """The number of buses."""
        return len(self.admittance)

    @property
    def generators(self) -> int:
        """The number of generators, all at different buses."""
        return len(self.generator_buses)

    @property
    def parts(self) -> dict[str, slice]:
        """The positions of each quantity in an answer."""
        ends = np.cumsum([0, self.generators, self.generators, self.buses, self.buses])
        names = ("Pg", "Qg", "Vm", "Va")
        return {name: slice(int(ends[index]), int(ends[index + 1])) for index, name in enumerate(names)}

    def state(self, answers: AnswerValues, xp: ModuleType = np) -> State:
        """Convert answers to per unit and radians."""
        p, q, magnitude, angle = (answers[:, part] for part in self.parts.values())
        return State(p / self.base, q / self.base, magnitude, xp.radians(angle))

    def answers(self, state: State) -> Answers:
        """Convert states to answers."""
        columns = (state.p * self.base, state.q * self.base, state.magnitude, np.degrees(state.angle))
        return np.concatenate(columns, axis=1)

    def demand(self, loads: Float[Values, "n two_load"], xp: ModuleType = np) -> Complex[Values, "n bus"]:
        """The power that loads (first all active, then all reactive) take at each bus, in per unit."""
        active, reactive = xp.split(loads / self.base, 2, axis=1)
        return self.at_buses(active + 1j * reactive, self.load_buses, xp)

    def at_buses(
        self, values: Shaped[Values, "n some"], buses: Int[np.ndarray, " some"], xp: ModuleType = np
    ) -> Shaped[Values, "n bus"]:
        """Spread the values of some buses over all buses, with 0 elsewhere."""
        index = np.zeros(self.buses, dtype=int)
        index[buses] = np.arange(len(buses))
        return xp.where(np.isin(np.arange(self.buses), buses), values[:, index], 0)


def pypower(module: str) -> ModuleType:
    """Import a module of pypower, or raise an error that says how to install it."""
    try:
        return importlib.import_module(f"pypower.{module}")
    except ImportError as error:
        raise MissingPackage(
            f"Power flow problems need the package pypower ({error}).", fix="pip install 'recombine[constraints]'"
        ) from None


def case_of(case: Case) -> dict[str, Any]:
    """Load a standard case of pypower. Integer tables become floats, because they would truncate other values."""
    tables = getattr(pypower(case), case)()
    return {name: value.astype(float) if isinstance(value, np.ndarray) else value for name, value in tables.items()}


@functools.cache
def network_of(case: Case) -> Network:
    """The network of a standard case."""
    return as_network(case_of(case))


def as_network(case: dict[str, Any]) -> Network:
    """Convert a case in pypower's format.

    It has one reference bus with a generator, at most one generator per bus, all parts in service, and quadratic costs.
    """
    at_bus, at_line, at_generator, at_cost = map(pypower, ("idx_bus", "idx_brch", "idx_gen", "idx_cost"))
    base, bus, line, generator, cost = (case[name] for name in ("baseMVA", "bus", "branch", "gen", "gencost"))
    number = {int(name): index for index, name in enumerate(bus[:, at_bus.BUS_I])}
    generator_buses = np.array([number[int(name)] for name in generator[:, at_generator.GEN_BUS]])
    references = np.flatnonzero(bus[:, at_bus.BUS_TYPE] == at_bus.REF)
    ends = np.array([[number[int(name)] for name in row] for row in line[:, [at_line.F_BUS, at_line.T_BUS]]])
    within = _line_admittance(line, at_line)
    limits = line[:, at_line.RATE_A]
    limited = (limits > 0) & (limits < NO_LIMIT)
    admittance = np.diag((bus[:, at_bus.GS] + 1j * bus[:, at_bus.BS]) / base)
    for pair, block in zip(ends, within, strict=True):
        admittance[np.ix_(pair, pair)] += block
    demand = bus[:, [at_bus.PD, at_bus.QD]].T
    loaded = np.flatnonzero((demand != 0).any(axis=0))
    return Network(
        base=float(base),
        nominal=demand[:, loaded],
        load_buses=loaded,
        generator_buses=generator_buses,
        reference=int(references[0]),
        reference_angle=float(np.radians(bus[references[0], at_bus.VA])),
        p_bounds=generator[:, [at_generator.PMIN, at_generator.PMAX]].T / base,
        q_bounds=generator[:, [at_generator.QMIN, at_generator.QMAX]].T / base,
        magnitude_bounds=bus[:, [at_bus.VMIN, at_bus.VMAX]].T.copy(),
        admittance=admittance,
        line_ends=ends[limited],
        line_admittance=within[limited],
        limits=limits[limited] / base,
        prices=cost[:, at_cost.COST : at_cost.COST + 3].copy(),
    )


def _line_admittance(line: Float[np.ndarray, "line column"], at: ModuleType) -> Complex[np.ndarray, "line 2 2"]:
    """The admittance of each line: a series impedance, half its charging at each end, a transformer at the first end."""
    series = 1 / (line[:, at.BR_R] + 1j * line[:, at.BR_X])
    end = series + 0.5j * line[:, at.BR_B]
    ratio = np.where(line[:, at.TAP] == 0, 1.0, line[:, at.TAP])
    tap = ratio * np.exp(1j * np.radians(line[:, at.SHIFT]))
    rows = [[end / ratio**2, -series / tap.conj()], [-series / tap, end]]
    return np.moveaxis(np.array(rows), 2, 0)
