"""What the tests of CPPNs share: random genomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from recombine.cppn import Genome


@pytest.fixture(scope="session")
def grown() -> Callable[..., Genome]:
    """A random genome that mutations made: `grown(seed, mutations)`."""
    from recombine.cppn.search import Search, first_genome, mutated

    def make(seed: int, mutations: int = 30) -> Genome:
        rng, settings = np.random.default_rng(seed), Search(new_link=0.5, new_node=0.5)
        genome = first_genome(rng)
        for _ in range(mutations):
            genome = mutated(genome, settings, rng)
        return genome

    return make
