"""Families whose answers are the steps of a computation graph, followed by the result."""

from __future__ import annotations

import abc

import numpy as np
from jaxtyping import Bool, Int

from recombine.families.sequences import SequenceFamily
from recombine.graphs import Graph, Scratchpad


class GraphFamily(SequenceFamily, abc.ABC):
    """An answer begins with the scratchpad of the problem's graph, if `steps` is set, and ends with the result.

    The methods on rows are for measurements, which need the graph of a problem and the values that an answer states.
    """

    steps: bool = True
    """Whether answers contain the steps of the solution, or the result only."""

    @abc.abstractmethod
    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """The sizes of problems."""

    def larger(self, sizes: Int[np.ndarray, " row"], trained: Int[np.ndarray, " size"]) -> Bool[np.ndarray, " row"]:
        """Which sizes are larger than those in training."""
        return ~np.isin(sizes, trained)

    def size_name(self, size: int) -> str:
        """A size as text."""
        return str(size)

    @abc.abstractmethod
    def lengths(self, size: int) -> tuple[int, int]:
        """Tokens of the longest prompt and the longest answer (with END) of a size."""

    @abc.abstractmethod
    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """Number of tokens before END that are the result."""

    def shapes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """A number for each row. Rows with the same number have graphs that differ in their inputs only."""
        return self.sizes(rows)

    @abc.abstractmethod
    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        """The graph of a problem."""

    @abc.abstractmethod
    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        """The graph inputs of rows that share a shape."""

    @abc.abstractmethod
    def scratchpad(self, graph: Graph) -> Scratchpad:
        """How the steps of a graph are written as tokens."""

    def stated(
        self, rows: Int[np.ndarray, "row slots"], answers: Int[np.ndarray, "row token"]
    ) -> tuple[Graph, Int[np.ndarray, "row input"], Int[np.ndarray, "row node"]]:
        """The graph of problems that share a shape, their inputs, and the values of nodes that each answer states."""
        graph, inputs, words = self.graph(rows[0]), self.inputs(rows), self.vocabulary
        pad = self.scratchpad(graph)
        stated = np.array([pad.read(words.spelled(tokens)) for tokens in answers])
        stated[:, list(graph.inputs)] = inputs
        return graph, inputs, stated
