"""Computation graphs of multi-step problems: multiplication, logic puzzles, maximum sums.

A `Graph` lists the steps from a problem's inputs to its answer; `evaluate` computes them and `Scratchpad` writes them as
text. `node_labels` says which steps of an answer are right and where errors start; `accuracy_bound` and `count_subgraphs`
relate accuracy to depth and to the subgraphs in the training data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.graphs.bound import (
        StepRates as StepRates,
        accuracy_bound as accuracy_bound,
        predicted_accuracy as predicted_accuracy,
        rates_by_step as rates_by_step,
    )
    from recombine.graphs.dynamic_programming import (
        maximum_sum_graph as maximum_sum_graph,
        maximum_sum_scratchpad as maximum_sum_scratchpad,
    )
    from recombine.graphs.einstein import draw_puzzle as draw_puzzle, puzzle_scratchpad as puzzle_scratchpad
    from recombine.graphs.einstein.clues import Clue as Clue, Puzzle as Puzzle, Thing as Thing, solutions as solutions
    from recombine.graphs.einstein.elimination import Elimination as Elimination, eliminate as eliminate
    from recombine.graphs.frequency import (
        Frequency as Frequency,
        MatchedFrequency as MatchedFrequency,
        count_subgraphs as count_subgraphs,
        matched_frequency as matched_frequency,
    )
    from recombine.graphs.graph import Graph as Graph, Node as Node, Operation as Operation, evaluate as evaluate
    from recombine.graphs.information_gain import relative_information_gain as relative_information_gain
    from recombine.graphs.keys import subgraph_keys as subgraph_keys
    from recombine.graphs.labels import LABELS as LABELS, node_labels as node_labels
    from recombine.graphs.multiplication import (
        digit_gains as digit_gains,
        multiplication_graph as multiplication_graph,
        multiplication_scratchpad as multiplication_scratchpad,
    )
    from recombine.graphs.scratchpad import Scratchpad as Scratchpad, digits as digits
