"""A power network: what of a standard case decides which answers are feasible, in per unit, buses numbered from 0.

A limit of a line of 0 or of 9900 MVA is the archive's way to say that there is none: such lines have no constraint, and
`unlimited` counts them.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int, Shaped

from recombine.errors import BadInput
from recombine.problems.checking import Values

Case = Literal["case9", "case14"]
NO_LIMIT = 9900.0


class State(NamedTuple):
    """An answer in per unit and radians."""

    p: Float[Values, "n generator"]
    q: Float[Values, "n generator"]
    magnitude: Float[Values, "n bus"]
    angle: Float[Values, "n bus"]

    def voltage(self, xp: ModuleType = np) -> Complex[Values, "n bus"]:
        """Of each bus, as a complex number."""
        return self.magnitude * xp.exp(1j * self.angle)


@dataclass(frozen=True, eq=False)
class Network:
    """The arrays of a case. An answer is the vector (Pg in MW, Qg in MVAr, Vm in per unit, Va in degrees)."""

    base: float
    """The power that is 1 in per unit, in MVA."""
    nominal: Float[np.ndarray, "2 load"]
    """Active and reactive power of each load in MW and MVAr, as the case has them."""
    load_buses: Int[np.ndarray, " load"]
    """Where the loads are: buses that have an active or a reactive one."""
    generator_buses: Int[np.ndarray, " generator"]
    reference: int
    """The bus whose angle is given; its generator takes up what is left."""
    reference_angle: float
    p_bounds: Float[np.ndarray, "2 generator"]
    """Least and most."""
    q_bounds: Float[np.ndarray, "2 generator"]
    magnitude_bounds: Float[np.ndarray, "2 bus"]
    admittance: Complex[np.ndarray, "bus bus"]
    """Currents into the network at the buses, from voltages."""
    line_ends: Int[np.ndarray, "line 2"]
    """The buses of the lines that have a limit."""
    line_admittance: Complex[np.ndarray, "line 2 2"]
    """Currents into each of these lines at its ends, from the voltages there."""
    limits: Float[np.ndarray, " line"]
    """The most apparent power at either end."""
    unlimited: int
    """Lines without a limit."""
    prices: Float[np.ndarray, "generator 3"]
    """Cost of active power in MW: of its square, of itself, and always."""

    @property
    def buses(self) -> int:
        """How many there are."""
        return len(self.admittance)

    @property
    def generators(self) -> int:
        """How many there are, at different buses."""
        return len(self.generator_buses)

    @property
    def parts(self) -> dict[str, slice]:
        """Where in an answer its parts stand."""
        ends = np.cumsum([0, self.generators, self.generators, self.buses, self.buses])
        names = ("Pg", "Qg", "Vm", "Va")
        return {name: slice(int(ends[index]), int(ends[index + 1])) for index, name in enumerate(names)}

    def state(self, answers: Float[Values, "n answer"], xp: ModuleType = np) -> State:
        """Answers in per unit and radians."""
        p, q, magnitude, angle = (answers[:, part] for part in self.parts.values())
        return State(p / self.base, q / self.base, magnitude, xp.radians(angle))

    def answers(self, state: State) -> Float[np.ndarray, "n answer"]:
        """The other way round."""
        columns = (state.p * self.base, state.q * self.base, state.magnitude, np.degrees(state.angle))
        return np.concatenate(columns, axis=1)

    def demand(self, loads: Float[Values, "n two_load"], xp: ModuleType = np) -> Complex[Values, "n bus"]:
        """What loads (first all active, then all reactive) take at each bus, in per unit."""
        active, reactive = xp.split(loads / self.base, 2, axis=1)
        return self.at_buses(active + 1j * reactive, self.load_buses, xp)

    def at_buses(
        self, values: Shaped[Values, "n some"], buses: Int[np.ndarray, " some"], xp: ModuleType = np
    ) -> Shaped[Values, "n bus"]:
        """Values of some buses at their places among all, zero elsewhere."""
        place = np.zeros(self.buses, dtype=int)
        place[buses] = np.arange(len(buses))
        return xp.where(np.isin(np.arange(self.buses), buses), values[:, place], 0)


def pypower(module: str) -> ModuleType:
    """A module of pypower, or an error that says how to get it."""
    try:
        return importlib.import_module(f"pypower.{module}")
    except ImportError as error:
        raise BadInput(
            f"Power flow problems need the package pypower ({error}).",
            fix="pip install 'recombine[constraints]'",
        ) from None


def case_of(case: Case) -> dict[str, Any]:
    """A standard case as pypower has it, with floating numbers: some of its tables have whole ones, and would cut others."""
    found = getattr(pypower(case), case)()
    return {
        name: value.astype(float) if isinstance(value, np.ndarray) else value for name, value in found.items()
    }


@functools.cache
def network_of(case: Case) -> Network:
    """The network of a standard case."""
    return as_network(case_of(case))


def as_network(case: dict[str, Any]) -> Network:
    """The network of a case in pypower's form, all parts of which are in service."""
    at_bus, at_line, at_generator, at_cost = map(pypower, ("idx_bus", "idx_brch", "idx_gen", "idx_cost"))
    base, bus, line, generator, cost = (case[name] for name in ("baseMVA", "bus", "branch", "gen", "gencost"))
    number = {int(name): index for index, name in enumerate(bus[:, at_bus.BUS_I])}
    generator_buses = np.array([number[int(name)] for name in generator[:, at_generator.GEN_BUS]])
    references = np.flatnonzero(bus[:, at_bus.BUS_TYPE] == at_bus.REF)
    simple = (
        len(set(generator_buses)) == len(generator_buses)
        and len(references) == 1
        and references[0] in generator_buses
        and np.all(line[:, at_line.BR_STATUS] == 1)
        and np.all(generator[:, at_generator.GEN_STATUS] == 1)
        and np.all(cost[:, at_cost.MODEL] == at_cost.POLYNOMIAL)
        and np.all(cost[:, at_cost.NCOST] == 3)
    )
    if not simple:
        raise BadInput(
            "A network needs one reference bus with a generator, at most one generator a bus, all parts in service, "
            "and quadratic costs.",
            fix="use case9 or case14",
        )
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
        unlimited=int((~limited).sum()),
        prices=cost[:, at_cost.COST : at_cost.COST + 3].copy(),
    )


def _line_admittance(
    line: Float[np.ndarray, "line column"], at: ModuleType
) -> Complex[np.ndarray, "line 2 2"]:
    """Each line by itself: a series impedance, half its charging at each end, and a transformer at the first."""
    series = 1 / (line[:, at.BR_R] + 1j * line[:, at.BR_X])
    end = series + 0.5j * line[:, at.BR_B]
    ratio = np.where(line[:, at.TAP] == 0, 1.0, line[:, at.TAP])
    tap = ratio * np.exp(1j * np.radians(line[:, at.SHIFT]))
    rows = [[end / ratio**2, -series / tap.conj()], [-series / tap, end]]
    return np.moveaxis(np.array(rows), 2, 0)
