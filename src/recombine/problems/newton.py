"""The Newton correction: an answer's controls are kept, and all else follows from the power flow equations.

Controls are what an operator sets: the active power of every generator but that of the reference bus, and the voltage
magnitudes at generators. Newton's method starts flat (magnitude 1, the reference angle) wherever there is no control,
so the outcome depends on the controls alone. Afterwards power balances at every bus; bounds may be violated, by the
generator of the reference bus for one, which takes up what is left.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from recombine.problems.base import Repaired
from recombine.problems.constraints import injected
from recombine.problems.network import Network, State

MOST_STEPS = 20
ENOUGH = 1e-10
"""In per unit: so far from balance the equations count as solved."""


def corrected(
    network: Network, loads: Float[np.ndarray, "n two_load"], answers: Float[np.ndarray, "n answer"]
) -> Repaired:
    """Answers with their controls kept and the equations solved, as far as they can be."""
    given = network.state(answers)
    generators, reference = network.generator_buses, network.reference
    controlled = generators != reference
    magnitude = np.ones_like(given.magnitude)
    magnitude[:, generators] = given.magnitude[:, generators]
    angle = np.full_like(given.angle, network.reference_angle)
    wanted = -network.demand(loads)
    wanted[:, generators[controlled]] += given.p[:, controlled]
    usable = np.asarray(np.isfinite(wanted).all(axis=1) & (magnitude > 0).all(axis=1))
    voltage, solved = _solved(network, (magnitude * np.exp(1j * angle))[usable], wanted[usable])

    made = injected(network, voltage) + network.demand(loads)[usable]
    found = State(
        p=np.where(controlled, given.p[usable], np.real(made)[:, generators]),
        q=np.imag(made)[:, generators],
        magnitude=np.abs(voltage),
        angle=np.angle(voltage * np.exp(-1j * network.reference_angle)) + network.reference_angle,
    )
    done = usable.copy()
    done[usable] = solved
    # The arithmetic of complex numbers must not touch what is a control.
    found.magnitude[:, generators] = given.magnitude[usable][:, generators]
    repaired = answers.copy()
    repaired[done] = network.answers(found)[solved]
    return Repaired(repaired, done)


def _solved(
    network: Network, voltage: Complex[np.ndarray, "n bus"], wanted: Complex[np.ndarray, "n bus"]
) -> tuple[Complex[np.ndarray, "n bus"], Bool[np.ndarray, " n"]]:
    """Voltages at which the wanted power is injected, and for which rows they were found."""
    buses = np.arange(network.buses)
    free = np.setdiff1d(buses, network.reference)
    unheld = np.setdiff1d(buses, network.generator_buses)
    magnitude, angle = np.abs(voltage), np.angle(voltage)
    solved = np.zeros(len(voltage), dtype=bool)
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS + 1):
            voltage = magnitude * np.exp(1j * angle)
            left = injected(network, voltage) - wanted
            off = np.concatenate([np.real(left)[:, free], np.imag(left)[:, unheld]], axis=1)
            solved = np.abs(off).max(axis=1) <= ENOUGH
            going = ~solved & np.isfinite(voltage).all(axis=1) & np.isfinite(off).all(axis=1)
            if not going.any():
                break
            step = _step(_jacobian(network, voltage[going], free, unheld), off[going])
            angle[np.ix_(going, free)] -= step[:, : len(free)]
            magnitude[np.ix_(going, unheld)] -= step[:, len(free) :]
    return voltage, np.asarray(solved & (magnitude > 0).all(axis=1))


def _step(jacobian: Float[np.ndarray, "n k k"], off: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    try:
        return np.linalg.solve(jacobian, off[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        # One of them is singular: the least step, for all.
        return np.einsum("nij,nj->ni", np.linalg.pinv(jacobian), off)


def _jacobian(
    network: Network,
    voltage: Complex[np.ndarray, "n bus"],
    free: Int[np.ndarray, " free"],
    unheld: Int[np.ndarray, " unheld"],
) -> Float[np.ndarray, "n k k"]:
    """How active power at free buses, and reactive at those whose magnitude is not held, change with both unknowns."""
    here = np.eye(network.buses)
    current = voltage @ network.admittance.T
    unit = voltage / np.abs(voltage)
    by_angle = (
        1j * voltage[:, :, None] * (here * current[:, :, None] - network.admittance * voltage[:, None]).conj()
    )
    by_magnitude = (
        voltage[:, :, None] * (network.admittance * unit[:, None]).conj()
        + here * (current.conj() * unit)[:, :, None]
    )
    changes = [
        [by_angle.real[:, free][:, :, free], by_magnitude.real[:, free][:, :, unheld]],
        [by_angle.imag[:, unheld][:, :, free], by_magnitude.imag[:, unheld][:, :, unheld]],
    ]
    return np.block(changes)
