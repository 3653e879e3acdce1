"""The constraints of a power network: bounds, line limits, and power balance at every bus.

Violations are in per unit of the case's base (100 MVA, so 0.01 is 1 MW), or in radians for the reference angle. The bounds
of a number are one constraint, and so is the limit of a line (the worse of its ends). Balance at buses with and without a
load is counted separately: without a load it is the same for every instance, so that a fixed answer can satisfy it.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from jaxtyping import Complex, Float

from recombine.problems.checking import AnswerValues, ConstraintType, Values
from recombine.problems.power_flow.network import Network


def types_of(network: Network) -> tuple[ConstraintType, ...]:
    """The types of constraints of a network; types without a constraint are left out."""
    loads = len(network.load_buses)
    others = network.buses - loads
    every = (
        ConstraintType("p-bounds", network.generators, True),
        ConstraintType("q-bounds", network.generators, True),
        ConstraintType("voltage-bounds", network.buses, True),
        ConstraintType("reference", 1, True),
        ConstraintType("line-limits", len(network.limits), True),
        ConstraintType("p-balance-unloaded", others, True),
        ConstraintType("q-balance-unloaded", others, True),
        ConstraintType("p-balance-loaded", loads, False),
        ConstraintType("q-balance-loaded", loads, False),
    )
    return tuple(kind for kind in every if kind.number)


def violations_of(
    network: Network, loads: Float[Values, "n two_load"], answers: AnswerValues, xp: ModuleType = np
) -> dict[str, Float[Values, "n _"]]:
    """The violation of each constraint; infinite where a number that it needs is missing."""
    state = network.state(answers, xp)
    with np.errstate(invalid="ignore", over="ignore"):
        left = mismatch(network, loads, answers, xp)
        flows = line_flows(network, state.voltage(xp), xp)
        loaded = np.isin(np.arange(network.buses), network.load_buses)
        violations = {
            "p-bounds": _outside(state.p, network.p_bounds, xp),
            "q-bounds": _outside(state.q, network.q_bounds, xp),
            "voltage-bounds": _outside(state.magnitude, network.magnitude_bounds, xp),
            "reference": xp.abs(state.angle[:, [network.reference]] - network.reference_angle),
            "line-limits": xp.maximum(xp.abs(flows).max(axis=2) - network.limits, 0),
            "p-balance-unloaded": xp.abs(xp.real(left)[:, ~loaded]),
            "q-balance-unloaded": xp.abs(xp.imag(left)[:, ~loaded]),
            "p-balance-loaded": xp.abs(xp.real(left)[:, loaded]),
            "q-balance-loaded": xp.abs(xp.imag(left)[:, loaded]),
        }
    return {kind.name: xp.nan_to_num(violations[kind.name], nan=xp.inf, posinf=xp.inf) for kind in types_of(network)}


def mismatch(
    network: Network, loads: Float[Values, "n two_load"], answers: AnswerValues, xp: ModuleType = np
) -> Complex[Values, "n bus"]:
    """Power generated at each bus, less its load and what flows into the network; NaN where unknown."""
    state = network.state(answers, xp)
    voltage = state.voltage(xp)
    generated = network.at_buses(state.p + 1j * state.q, network.generator_buses, xp)
    left = generated - network.demand(loads, xp) - injected(network, voltage, xp)
    # An unknown voltage matters only at its bus and the neighbours.
    unknown = ~xp.isfinite(voltage)
    needs = network.admittance != 0
    return xp.where(unknown.astype(int) @ needs.T > 0, complex(np.nan, np.nan), left)


def injected(network: Network, voltage: Complex[Values, "n bus"], xp: ModuleType = np) -> Complex[Values, "n bus"]:
    """The power that flows from each bus into the network. Unknown voltages count as 0."""
    known = xp.where(xp.isfinite(voltage), voltage, 0)
    return known * (known @ network.admittance.T).conj()


def line_flows(network: Network, voltage: Complex[Values, "n bus"], xp: ModuleType = np) -> Complex[Values, "n line 2"]:
    """The power that flows into each line with a limit at both of its ends."""
    ends = voltage[:, network.line_ends]
    return ends * xp.einsum("lij,nlj->nli", network.line_admittance, ends).conj()


def _outside(
    values: Float[Values, "n value"], bounds: Float[np.ndarray, "2 value"], xp: ModuleType
) -> Float[Values, "n value"]:
    return xp.maximum(xp.maximum(bounds[0] - values, values - bounds[1]), 0)
