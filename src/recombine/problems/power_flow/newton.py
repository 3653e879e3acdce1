"""Repair by Newton's method: the controls of an answer are kept, and all else follows from the power flow equations.

Controls are what an operator sets: the active power of every generator except that of the reference bus, and the voltage
magnitudes at generators. Newton's method starts flat (magnitude 1, the reference angle) where there is no control, so the
result depends only on the controls. Afterwards power balances at every bus. Bounds may be violated, e.g. by the generator
of the reference bus, which takes up the difference.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from recombine.problems.base import Repaired
from recombine.problems.checking import Answers
from recombine.problems.power_flow.constraints import injected
from recombine.problems.power_flow.network import Network, State

Voltages = Complex[np.ndarray, "n bus"]
Buses = Int[np.ndarray, " _"]

MAX_STEPS = 20
TOLERANCE = 1e-10
"""The largest mismatch, in per unit, at which the equations count as solved."""


def corrected(network: Network, loads: Float[np.ndarray, "n two_load"], answers: Answers) -> Repaired:
    """Solve the power flow equations for the controls of each answer, where they have a solution."""
    given = network.state(answers)
    generators, reference = network.generator_buses, network.reference
    controlled = generators != reference
    magnitude = np.ones_like(given.magnitude)
    magnitude[:, generators] = given.magnitude[:, generators]
    angle = np.full_like(given.angle, network.reference_angle)
    injection = -network.demand(loads)
    injection[:, generators[controlled]] += given.p[:, controlled]
    usable = np.asarray(np.isfinite(injection).all(axis=1) & (magnitude > 0).all(axis=1))
    voltage, solved = _solved(network, (magnitude * np.exp(1j * angle))[usable], injection[usable])

    generated = injected(network, voltage) + network.demand(loads)[usable]
    state = State(
        p=np.where(controlled, given.p[usable], np.real(generated)[:, generators]),
        q=np.imag(generated)[:, generators],
        magnitude=np.abs(voltage),
        angle=np.angle(voltage * np.exp(-1j * network.reference_angle)) + network.reference_angle,
    )
    done = usable.copy()
    done[usable] = solved
    # Rounding in complex arithmetic must not change a control.
    state.magnitude[:, generators] = given.magnitude[usable][:, generators]
    repaired = answers.copy()
    repaired[done] = network.answers(state)[solved]
    return Repaired(repaired, done)


def _solved(network: Network, voltage: Voltages, injection: Voltages) -> tuple[Voltages, Bool[np.ndarray, " n"]]:
    """The voltages at which the given power is injected, and for which rows they were found."""
    buses = np.arange(network.buses)
    free = np.setdiff1d(buses, network.reference)
    unheld = np.setdiff1d(buses, network.generator_buses)
    magnitude, angle = np.abs(voltage), np.angle(voltage)
    solved = np.zeros(len(voltage), dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(MAX_STEPS + 1):
            voltage = magnitude * np.exp(1j * angle)
            left = injected(network, voltage) - injection
            off = np.concatenate([np.real(left)[:, free], np.imag(left)[:, unheld]], axis=1)
            solved = np.abs(off).max(axis=1) <= TOLERANCE
            active = ~solved & np.isfinite(voltage).all(axis=1) & np.isfinite(off).all(axis=1)
            if not active.any():
                break
            step = _step(_jacobian(network, voltage[active], free, unheld), off[active])
            angle[np.ix_(active, free)] -= step[:, : len(free)]
            magnitude[np.ix_(active, unheld)] -= step[:, len(free) :]
    return voltage, np.asarray(solved & (magnitude > 0).all(axis=1))


def _step(jacobian: Float[np.ndarray, "n k k"], off: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    try:
        return np.linalg.solve(jacobian, off[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # Some system is singular: take the smallest step for all.
        return np.einsum("nij,nj->ni", np.linalg.pinv(jacobian), off)


def _jacobian(network: Network, voltage: Voltages, free: Buses, unheld: Buses) -> Float[np.ndarray, "n k k"]:
    """The derivatives of active power at free buses, and of reactive power where the magnitude is not held."""
    here = np.eye(network.buses)
    current = voltage @ network.admittance.T
    unit = voltage / np.abs(voltage)
    by_angle = 1j * voltage[:, :, None] * (here * current[:, :, None] - network.admittance * voltage[:, None]).conj()
    by_magnitude = (
        voltage[:, :, None] * (network.admittance * unit[:, None]).conj() + here * (current.conj() * unit)[:, :, None]
    )
    changes = [
        [by_angle.real[:, free][:, :, free], by_magnitude.real[:, free][:, :, unheld]],
        [by_angle.imag[:, unheld][:, :, free], by_magnitude.imag[:, unheld][:, :, unheld]],
    ]
    return np.block(changes)
