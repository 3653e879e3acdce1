"""Optimal power flow of many loads at once, by the primal-dual interior point method that pypower uses for one.

Voltages are in Cartesian coordinates. There all powers and squared magnitudes are quadratic forms with constant second
derivatives, so that the equations of many loads are solved as one stack of small dense systems. The optimum does not
depend on the coordinates; tests compare it with pypower's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from recombine.problems.checking import Answers
from recombine.problems.power_flow.network import Network, State

BATCH = 128
"""Loads that are solved together."""
MAX_STEPS = 80
TOLERANCE = 1e-9
"""The largest residual of constraints, gradient and complementarity of a solution."""
SCALE = 1e-4
"""The factor of costs that keeps multipliers at a moderate size."""
REACH = 0.99995
"""The largest share of the way to its bound that a slack moves in a step."""
CENTRING = 0.1
"""The share of the mean complementarity that a step aims at."""

Points = Float[np.ndarray, "n x"]
Equations = Float[np.ndarray, "n equation"]
Limits = Float[np.ndarray, "n limit"]
Converged = Bool[np.ndarray, " n"]


class Forms(NamedTuple):
    """A network as quadratic forms in the Cartesian coordinates of its voltages (real parts, then imaginary ones)."""

    balance: Float[np.ndarray, "equation w w"]
    """Active, then reactive power from each bus into the network."""
    square: Float[np.ndarray, "bus w w"]
    """Squared magnitudes."""
    flow: Float[np.ndarray, "2 end w w"]
    """Active and reactive power into each end of each line that has a limit."""
    incidence: Float[np.ndarray, "equation generated"]
    """The incidence of each generator's active and reactive power in the balance."""


def forms_of(network: Network) -> Forms:
    """The quadratic forms of a network."""
    buses, generators = network.buses, network.generators
    here = np.eye(buses)
    balance = np.stack([_power(here[bus], network.admittance[bus]) for bus in range(buses)])
    square = np.stack([_form(np.outer(bus, bus)) for bus in here])
    flow = [
        _power(here[ends[end]], current[end] @ here[ends])
        for end in (0, 1)
        for ends, current in zip(network.line_ends, network.line_admittance, strict=True)
    ]
    incidence = np.zeros((2 * buses, 2 * generators))
    incidence[network.generator_buses, np.arange(generators)] = 1
    incidence[buses + network.generator_buses, generators + np.arange(generators)] = 1
    return Forms(
        balance=np.concatenate([balance[:, 0], balance[:, 1]]),
        square=square,
        flow=np.moveaxis(np.reshape(flow, (-1, 2, 2 * buses, 2 * buses)), 1, 0),
        incidence=incidence,
    )


def _power(voltage: np.ndarray, current: np.ndarray) -> Float[np.ndarray, "2 w w"]:
    """The forms of the real and imaginary part of a voltage times a conjugate current, both linear in all voltages."""
    product = np.outer(voltage, current.conj())
    return np.stack([_form(product), _form(-1j * product)])


def _form(product: np.ndarray) -> Float[np.ndarray, "w w"]:
    """The real part of v' C v* as a symmetric form in real and imaginary parts of v."""
    real, imaginary = np.real(product), np.imag(product)
    form = np.block([[real, imaginary], [-imaginary, real]])
    return (form + form.T) / 2


def best_answers(network: Network, loads: Float[np.ndarray, "n two_load"]) -> tuple[Answers, Bool[np.ndarray, " n"]]:
    """The best answers to loads, and for which the method converged."""
    problem = _Problem(network)
    parts = [problem.solve(loads[row : row + BATCH]) for row in range(0, len(loads), BATCH)]
    answers, converged = (np.concatenate(column) for column in zip(*parts, strict=True))
    return answers, converged


class _Problem:
    """x is the generators' power (p, then q) and the voltages (e, then f); f of the reference bus is fixed at 0."""

    def __init__(self, network: Network) -> None:
        self.network, self.forms = network, forms_of(network)
        self.powers, self.width = 2 * network.generators, 2 * network.generators + 2 * network.buses
        self.free = np.setdiff1d(np.arange(self.width), self.powers + network.buses + network.reference)
        bounds = np.concatenate([network.p_bounds, network.q_bounds], axis=1)
        self.least, self.most = np.concatenate([bounds, network.magnitude_bounds**2], axis=1)
        square, linear, _ = network.prices.T
        self.square, self.linear = SCALE * network.base**2 * square, SCALE * network.base * linear

    def start(self, number: int) -> Float[np.ndarray, "n x"]:
        """The starting point: the middle of all bounds, with flat voltages."""
        flat = np.sqrt(self.least[self.powers :] / 2 + self.most[self.powers :] / 2)
        middle = (self.least + self.most)[: self.powers] / 2
        return np.tile(np.concatenate([middle, flat, 0 * flat]), (number, 1))

    def equations(self, x: Points, demand: Equations) -> tuple[Equations, Float[np.ndarray, "n equation x"]]:
        """The mismatch of power balance, and its derivatives."""
        slope = _slopes(self.forms.balance, x[:, self.powers :])
        off = _values(slope, x[:, self.powers :]) + demand - x[:, : self.powers] @ self.forms.incidence.T
        minus = np.broadcast_to(-self.forms.incidence, (len(x), *self.forms.incidence.shape))
        return off, np.concatenate([minus, slope], axis=2)

    def limits(self, x: Points) -> tuple[Limits, Float[np.ndarray, "n limit x"]]:
        """The inequalities (upper bounds, lower bounds, lines), which must not exceed 0, and their derivatives."""
        voltage = x[:, self.powers :]
        slope = _slopes(self.forms.square, voltage)
        bounded = np.concatenate([x[:, : self.powers], _values(slope, voltage)], axis=1)
        by = np.zeros((len(x), bounded.shape[1], self.width))
        by[:, : self.powers, : self.powers] = np.eye(self.powers)
        by[:, self.powers :, self.powers :] = slope
        flows = [_slopes(form, voltage) for form in self.forms.flow]
        values = [_values(each, voltage) for each in flows]
        line = sum(value**2 for value in values) - np.tile(self.network.limits, 2) ** 2
        by_line = np.zeros((len(x), line.shape[1], self.width))
        by_line[:, :, self.powers :] = sum(
            2 * value[:, :, None] * each for value, each in zip(values, flows, strict=True)
        )
        off = np.concatenate([bounded - self.most, self.least - bounded, line], axis=1)
        return off, np.concatenate([by, -by, by_line], axis=1)

    def curvature(self, x: Points, equal: Equations, unequal: Limits) -> Float[np.ndarray, "n x x"]:
        """Second derivatives of costs and constraints, weighted by their multipliers."""
        voltage = x[:, self.powers :]
        upper, lower = unequal[:, self.powers : len(self.most)], unequal[:, len(self.most) + self.powers :]
        lower, line = lower[:, : self.network.buses], unequal[:, 2 * len(self.most) :]
        hessian = np.zeros((len(x), self.width, self.width))
        generators = np.arange(self.network.generators)
        hessian[:, generators, generators] = 2 * self.square
        inner = 2 * np.tensordot(equal, self.forms.balance, 1)
        inner += 2 * np.tensordot(upper - lower, self.forms.square, 1)
        for form in self.forms.flow:
            slope = _slopes(form, voltage)
            inner += 2 * np.einsum("nl,nli,nlj->nij", line, slope, slope, optimize=True)
            inner += 4 * np.tensordot(line * _values(slope, voltage), form, 1)
        hessian[:, self.powers :, self.powers :] = inner
        return hessian

    def gradient(self, x: Float[np.ndarray, "n x"]) -> Float[np.ndarray, "n x"]:
        """The gradient of the costs."""
        gradient = np.zeros_like(x)
        p = x[:, : self.network.generators]
        gradient[:, : self.network.generators] = 2 * self.square * p + self.linear
        return gradient

    def solve(self, loads: Float[np.ndarray, "n two_load"]) -> tuple[Answers, Converged]:
        """The best answers to one batch of loads, and for which the method converged."""
        demand = self.network.demand(loads)
        x, converged = self._descend(np.concatenate([np.real(demand), np.imag(demand)], axis=1))
        real, imaginary = np.split(x[:, self.powers :], 2, axis=1)
        p, q = np.split(x[:, : self.powers], 2, axis=1)
        voltage = real + 1j * imaginary
        state = State(p, q, np.abs(voltage), np.angle(voltage) + self.network.reference_angle)
        return self.network.answers(state), converged

    def _descend(self, demand: Equations) -> tuple[Points, Converged]:
        """Newton's method on the optimality conditions, with a barrier that decreases towards the optimum."""
        number, free = len(demand), self.free
        x = self.start(number)
        off, by_off = self.equations(x, demand)
        above, by_above = self.limits(x)
        equal = np.zeros_like(off)
        slack = np.maximum(-above, 1.0)
        unequal = 1 / slack
        slope = self.gradient(x) + _pull(by_off, equal) + _pull(by_above, unequal)
        barrier = np.ones((number, 1))
        done = np.zeros(number, dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(MAX_STEPS):
                weight = unequal / slack
                system = self.curvature(x, equal, unequal)
                system += np.einsum("nli,nl,nlj->nij", by_above, weight, by_above, optimize=True)
                side = slope + _pull(by_above, barrier / slack + weight * above)
                step, turn = _newton(system[:, free][:, :, free], by_off[:, :, free], side[:, free], off, ~done)
                move = np.zeros_like(x)
                move[:, free] = step
                give = -above - slack - np.einsum("nli,ni->nl", by_above, move)
                push = -unequal + (barrier - unequal * give) / slack
                far, hard = _reach(slack, give), _reach(unequal, push)
                going = ~done[:, None]
                x = np.where(going, x + far * move, x)
                slack = np.where(going, slack + far * give, slack)
                equal = np.where(going, equal + hard * turn, equal)
                unequal = np.where(going, unequal + hard * push, unequal)
                complement = (slack * unequal).sum(axis=1, keepdims=True)
                barrier = CENTRING * complement / slack.shape[1]
                off, by_off = self.equations(x, demand)
                above, by_above = self.limits(x)
                slope = self.gradient(x) + _pull(by_off, equal) + _pull(by_above, unequal)
                worst = np.maximum(np.abs(off).max(axis=1), above.max(axis=1))
                worst = np.maximum(worst, np.abs(slope[:, free]).max(axis=1))
                done |= np.maximum(worst, complement[:, 0]) < TOLERANCE
                if np.all(done | ~np.isfinite(x).all(axis=1)):
                    break
        return x, done


def _slopes(forms: Float[np.ndarray, "form w w"], at: Float[np.ndarray, "n w"]) -> Float[np.ndarray, "n form w"]:
    return 2 * np.tensordot(at, forms, axes=(1, 2))


def _values(slopes: Float[np.ndarray, "n form w"], at: Float[np.ndarray, "n w"]) -> Float[np.ndarray, "n form"]:
    """The values of quadratic forms: half of the gradient times the point."""
    return np.einsum("nfw,nw->nf", slopes, at) / 2


def _pull(by: Float[np.ndarray, "n c x"], multipliers: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n x"]:
    return np.einsum("ncx,nc->nx", by, multipliers)


def _reach(values: Float[np.ndarray, "n c"], change: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n 1"]:
    """The largest step, at most 1, along which all values stay above 0."""
    ends = np.where(change < 0, -values / change, np.inf)
    return np.minimum(REACH * ends.min(axis=1, keepdims=True), 1)


def _newton(
    system: Float[np.ndarray, "n x x"],
    by: Float[np.ndarray, "n c x"],
    side: Float[np.ndarray, "n x"],
    off: Float[np.ndarray, "n c"],
    which: Bool[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, "n x"], Float[np.ndarray, "n c"]]:
    """The step of the variables and of the equations' multipliers, for the chosen rows."""
    number, size = side.shape
    nothing = np.zeros((number, by.shape[1], by.shape[1]))
    whole = np.block([[system, by.transpose(0, 2, 1)], [by, nothing]])
    usable = which & np.isfinite(whole).all(axis=(1, 2))
    step = np.full((number, whole.shape[1]), np.nan)
    right = -np.concatenate([side, off], axis=1)[usable]
    try:
        step[usable] = np.linalg.solve(whole[usable], right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        step[usable] = np.einsum("nij,nj->ni", np.linalg.pinv(whole[usable]), right)
    return step[:, :size], step[:, size:]
