"""Optimal power flow: the cheapest generation for given loads, in the standard networks of 9 and 14 buses.

A question is the loads (active ones in MW, then reactive ones in MVAr). An answer is the power of every generator and the
voltage of every bus. `interior_point` finds the best answers, by the method of pypower. `network` has the arrays of a case,
`constraints` what an answer must satisfy, `newton` the repair.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field as Setting

from recombine.problems.base import Problem, Repaired, Texts, Violations
from recombine.problems.checking import Answers, AnswerValues, ConstraintType, Questions, QuestionValues
from recombine.problems.digits import Field, Numbers
from recombine.problems.power_flow.constraints import types_of, violations_of
from recombine.problems.power_flow.interior_point import best_answers
from recombine.problems.power_flow.network import Case, Network, network_of
from recombine.problems.power_flow.newton import corrected


class PowerFlow(Problem):
    """Each active and each reactive load is drawn independently around that of the case, and rounded as its text.

    With intermediate steps an answer gives: the total active and reactive load, the active power of each generator, the
    losses (generation less load), the angle of each bus, its magnitude, and the reactive power of each generator. So sums
    come before the numbers that must add up to them.
    """

    kind: Literal["power-flow"] = "power-flow"
    case: Case = "case9"
    """The network."""
    spread: float = Setting(default=0.2, gt=0, lt=1)
    """The largest relative deviation of a load from that of the case; deviations are uniform."""
    solver: Literal["batched"] = "batched"
    """The solver of best answers: pypower's method, for many loads at once."""

    @property
    def tolerances(self) -> tuple[float, ...]:
        return (0.01, 0.03, 0.1, 0.3)

    @property
    def network(self) -> Network:
        """The network's arrays."""
        return network_of(self.case)

    @property
    def types(self) -> tuple[ConstraintType, ...]:
        return types_of(self.network)

    def question(self, rng: np.random.Generator) -> Float[np.ndarray, " two_load"]:
        nominal = self.network.nominal.ravel()
        share = rng.uniform(-self.spread, self.spread, len(nominal))
        return self.texts.question.rounded((nominal * (1 + share))[None])[0]

    def optima(self, questions: Questions) -> Answers:
        answers, converged = best_answers(self.network, questions)
        return np.where(converged[:, None], answers, np.nan)

    def violations(self, questions: QuestionValues, answers: AnswerValues, xp: ModuleType = np) -> Violations:
        return violations_of(self.network, questions, answers, xp)

    def costs(self, questions: Questions, answers: Answers) -> Float[np.ndarray, " n"]:
        power = answers[:, self.network.parts["Pg"]]
        square, linear, fixed = self.network.prices.T
        return (square * power**2 + linear * power + fixed).sum(axis=1)

    def repair(self, questions: Questions, answers: Answers) -> Repaired:
        return corrected(self.network, questions, answers)

    def layout(self) -> Texts:
        # To 1 MW, 0.0001 and 0.01 degrees, which together are less than 0.01 per unit in every balance. Every number can be
        # written beyond its bounds, except negative active power: it has no sign, so that lower bounds of 0 always hold
        # (those of all generators with 14 buses, of none with 9).
        network = self.network
        power = functools.partial(Field, whole=3, decimals=0, signed=True)
        positive = functools.partial(power, signed=False)
        small = functools.partial(power, whole=2)

        def at(name: str, buses: Int[np.ndarray, " some"], field: Callable[[str], Field]) -> list[Field]:
            return [field(f"{name} at bus {bus + 1}") for bus in buses]

        generators, buses = network.generator_buses, range(1, network.buses + 1)
        active, reactive = at("Pg", generators, positive), at("Qg", generators, power)
        magnitudes = [Field(f"Vm of bus {bus}", whole=1, decimals=4) for bus in buses]
        angles = [Field(f"Va of bus {bus}", whole=2, decimals=2, signed=True) for bus in buses]
        loads = [*at("load P", network.load_buses, positive), *at("load Q", network.load_buses, small)]
        totals = [positive("total P of loads"), power("total Q of loads")]
        answer = [*active, *reactive, *magnitudes, *angles]
        steps = [*totals, *active, power("losses"), *angles, *magnitudes, *reactive]
        return Texts(Numbers(loads), Numbers(answer), Numbers(steps), columns=tuple(map(steps.index, answer)))

    def steps(self, questions: Questions, answers: Answers) -> Float[np.ndarray, "n number"]:
        totals = np.stack(np.split(questions, 2, axis=1)).sum(axis=2).T
        power, reactive, magnitude, angle = (answers[:, part] for part in self.network.parts.values())
        losses = power.sum(axis=1, keepdims=True) - totals[:, :1]
        return np.concatenate([totals, power, losses, angle, magnitude, reactive], axis=1)
