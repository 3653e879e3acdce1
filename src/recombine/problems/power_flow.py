"""Optimal power flow: cheapest generation for given loads, in the standard networks of 9 and of 14 buses.

A question is the loads (active ones in MW, then reactive ones in MVAr); an answer is what every generator makes and the
voltage of every bus. The best answer is that of pypower's optimal power flow, or of the same method for many at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field as Setting

from recombine.problems.base import Problem, Repaired, Texts, Violations
from recombine.problems.checking import ConstraintType, Values
from recombine.problems.constraints import types_of, violations_of
from recombine.problems.digits import Field, Numbers
from recombine.problems.interior_point import best_answers
from recombine.problems.network import Case, Network, case_of, network_of, pypower
from recombine.problems.newton import corrected

PRECISION = 1e-9
"""At which pypower's solver ends: feasibility, gradient and complementarity, each relative as it defines them."""


class PowerFlow(Problem):
    """Loads are drawn around those of the case, each active and each reactive one by itself, and rounded as written.

    With intermediate steps an answer says: the total of the active and of the reactive loads, the active power of each
    generator, the losses (what is generated less what is taken), the angle of each bus, its magnitude, and last the
    reactive power of each generator. So sums come before what must add up to them, and the answer's own numbers are all
    there.
    """

    kind: Literal["power-flow"] = "power-flow"
    case: Case = "case9"
    """The network."""
    spread: float = Setting(default=0.2, gt=0, lt=1)
    """How far a load may be from that of the case, as a share of it, uniformly."""
    solver: Literal["pypower", "batched"] = "pypower"
    """What finds the best answers: pypower one after the other, or the same method for many at once, which
    is much faster. They agree beyond the digits of a text."""

    @property
    def tolerances(self) -> tuple[float, ...]:
        return (0.001, 0.003, 0.01, 0.03, 0.1) if self.text == "digits" else (0.01, 0.03, 0.1, 0.3)

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

    def optima(self, questions: Float[np.ndarray, "n question"]) -> Float[np.ndarray, "n answer"]:
        if self.solver == "batched":
            answers, found = best_answers(self.network, questions)
            return np.where(found[:, None], answers, np.nan)
        return np.stack([solved(self.case, question)[0] for question in questions])

    def violations(
        self, questions: Float[Values, "n question"], answers: Float[Values, "n answer"], xp: ModuleType = np
    ) -> Violations:
        return violations_of(self.network, questions, answers, xp)

    def costs(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, " n"]:
        made = answers[:, self.network.parts["Pg"]]
        square, linear, fixed = self.network.prices.T
        return (square * made**2 + linear * made + fixed).sum(axis=1)

    def repair(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Repaired:
        return corrected(self.network, questions, answers)

    def layout(self) -> Texts:
        # In pairs: to 1 MW, 0.0001 and 0.01 degrees, which together are less than 0.01 per unit in every balance. What is
        # beyond a bound can be said of every number that has one, but for active power below 0: it has no sign, so that the
        # lower bounds of generators hold by themselves where they are 0 (all of them with 14 buses, none with 9).
        network, short = self.network, self.text == "pairs"
        power = functools.partial(Field, whole=3, decimals=0 if short else 2, signed=True)
        positive = functools.partial(power, signed=not short)
        small = functools.partial(power, whole=2 if short else 3)

        def at(name: str, buses: Int[np.ndarray, " some"], field: Callable[[str], Field]) -> list[Field]:
            return [field(f"{name} at bus {bus + 1}") for bus in buses]

        made, buses = network.generator_buses, range(1, network.buses + 1)
        active, reactive = at("Pg", made, positive), at("Qg", made, power)
        magnitudes = [Field(f"Vm of bus {bus}", whole=1, decimals=4 if short else 5) for bus in buses]
        angles = [
            Field(f"Va of bus {bus}", whole=2, decimals=2 if short else 3, signed=True) for bus in buses
        ]
        loads = [*at("load P", network.load_buses, positive), *at("load Q", network.load_buses, small)]
        totals = [positive("total P of loads"), power("total Q of loads")]
        answer = [*active, *reactive, *magnitudes, *angles]
        steps = [*totals, *active, power("losses"), *angles, *magnitudes, *reactive]
        numbers = functools.partial(Numbers, group=2 if short else 1, separated=not short)
        return Texts(
            question=numbers(loads),
            answer=numbers(answer),
            steps=numbers(steps),
            columns=tuple(map(steps.index, answer)),
        )

    def steps(
        self, questions: Float[np.ndarray, "n question"], answers: Float[np.ndarray, "n answer"]
    ) -> Float[np.ndarray, "n number"]:
        totals = np.stack(np.split(questions, 2, axis=1)).sum(axis=2).T
        made, reactive, magnitude, angle = (answers[:, part] for part in self.network.parts.values())
        losses = made.sum(axis=1, keepdims=True) - totals[:, :1]
        return np.concatenate([totals, made, losses, angle, magnitude, reactive], axis=1)


@functools.cache
def _given(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case, and the options of pypower."""
    options = pypower("ppoption").ppoption(
        VERBOSE=0, OUT_ALL=0, PDIPM_FEASTOL=PRECISION, PDIPM_GRADTOL=PRECISION, PDIPM_COMPTOL=PRECISION
    )
    return case_of(case), options


def solved(case: Case, loads: Float[np.ndarray, " two_load"]) -> tuple[Float[np.ndarray, " answer"], float]:
    """The best answer to loads and its cost, by pypower; NaN where its solver does not converge."""
    given, options = _given(case)
    at_bus, at_generator = pypower("idx_bus"), pypower("idx_gen")
    asked = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in given.items()}
    rows, columns = network_of(case).load_buses[:, None], [at_bus.PD, at_bus.QD]
    asked["bus"][rows, columns] = loads.reshape(2, -1).T
    found = pypower("opf").opf(asked, options)
    if not found["success"]:
        network = network_of(case)
        return np.full(2 * (network.generators + network.buses), np.nan), float("nan")
    made = found["gen"][:, [at_generator.PG, at_generator.QG]].T.ravel()
    voltages = found["bus"][:, [at_bus.VM, at_bus.VA]].T.ravel()
    return np.concatenate([made, voltages]), float(found["f"])
