"""data-growth: how the number of combinations needed grows with the space."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from recombine.spaces import SubsetSpace
from recombine.studies.data_growth import DataGrowth


@pytest.fixture(scope="module")
def laptop() -> DataGrowth:
    return DataGrowth.profile("laptop")


@pytest.fixture(scope="module")
def tables(made):
    def make(study, exponent=0.5, noise=0.0, factor=3.0, fits=0.95):
        """Spaces that need factor x size ** exponent combinations for the threshold."""
        draw = np.random.default_rng(0)
        sizes = {(s := SubsetSpace(modules=m, max_active=k)).title: s.size for m, k in study.spaces}

        def score(labels):
            wanted = factor * sizes[labels["space"]] ** exponent * math.exp(noise * draw.standard_normal())
            return {"r2_held_out": study.threshold + 0.1 * math.log(labels["number"] / wanted), "r2_in": fits}

        return made(study, score)

    return make


def test_the_slope_is_found_with_censored_numbers(laptop, tables, effects, words):
    frames = tables(laptop, exponent=0.5, noise=0.05)
    assert len(laptop.needed(frames)) == 12 * len(laptop.spaces)
    assert np.mean(effects(laptop, frames)["sub-exponential"]) == pytest.approx(0.5, abs=0.1)
    assert words(laptop, frames)["sub-exponential"] == "supported"


def test_networks_that_do_not_fit_decide_nothing_about_data(laptop, tables, words):
    """A network that cannot reach the threshold on its training tasks lacks something other than data."""
    verdicts = words(laptop, tables(laptop, exponent=0.5, noise=0.05, fits=0.82))
    assert verdicts["fits-in-every-space"] == "contradicted"
    assert verdicts["sub-exponential"] == "inconclusive"


def test_proportional_growth_is_not_called_slower(laptop, tables, words):
    verdicts = words(laptop, tables(laptop, exponent=1.0, noise=0.05, factor=0.25))
    assert verdicts["sub-exponential"] != "supported"


def test_numbers_double_up_to_three_quarters_of_the_space(laptop):
    for modules, active in laptop.spaces:
        space = SubsetSpace(modules=modules, max_active=active)
        numbers = laptop.numbers(space)
        assert all(later == 2 * earlier for earlier, later in itertools.pairwise(numbers))
        assert numbers[-1] <= 0.75 * space.size
