"""Problems, and a few of their instances, made once a session."""

from __future__ import annotations

import pytest

from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow

PROBLEMS = {
    "case9": PowerFlow(),
    "case14": PowerFlow(case="case14"),
    "knapsack": Knapsack(),
    "small knapsack": Knapsack(items=5, count=6),
}


@pytest.fixture(scope="session", params=list(PROBLEMS))
def problem(request):
    return PROBLEMS[request.param]


@pytest.fixture(scope="session", params=["case9", "case14"])
def power(request):
    return PROBLEMS[request.param]


@pytest.fixture(scope="session")
def drawn():
    """A few instances of a problem."""
    made = {}

    def draw(problem, number=12):
        key = (problem, number)
        if key not in made:
            made[key] = problem.instances(number, seed=0)
        return made[key]

    return draw
