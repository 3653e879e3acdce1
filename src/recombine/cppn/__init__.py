"""Compositional pattern-producing networks: genomes, an open-ended search for them, and scores of what is inside a network.

A `Genome` maps places of a picture to colours. `novelty_search` finds genomes without a target, `read_genome` reads those that
people evolved on Picbreeder, and `dense` turns a genome into a dense network of the same function. `sweep_asymmetry`,
`parity_purity` and `distinct_maps` say how a network that draws a picture holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.cppn.changes import CHANGES as CHANGES, changed as changed
    from recombine.cppn.dense_network import Dense as Dense, dense as dense
    from recombine.cppn.genome import ACTIVATIONS as ACTIVATIONS, INPUTS as INPUTS, Genome as Genome
    from recombine.cppn.picbreeder import read_genome as read_genome
    from recombine.cppn.picture import channels as channels, colours as colours, places as places
    from recombine.cppn.scores import (
        distinct_maps as distinct_maps,
        odd_share as odd_share,
        parity_purity as parity_purity,
        sweep_asymmetry as sweep_asymmetry,
    )
    from recombine.cppn.search import Search as Search, novelty_search as novelty_search
