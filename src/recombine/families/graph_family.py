"""What families share whose answers are the steps of computation graphs, and the result."""

from __future__ import annotations

import abc

import numpy as np
from jaxtyping import Bool, Int

from recombine.families.sequences import SequenceFamily
from recombine.graphs.graph import Graph
from recombine.graphs.scratchpad import Scratchpad


class GraphFamily(SequenceFamily, abc.ABC):
    """An answer begins with the scratchpad of its problem's graph, if steps are said, and ends with the result.

    What is said here of rows is for measurements: they find the graph of a problem, and read the values that an answer states.
    """

    steps: bool = True
    """Whether the steps of the solution are said; else the result alone."""

    @abc.abstractmethod
    def sizes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """How large the problems are."""

    def larger(
        self, sizes: Int[np.ndarray, " row"], trained: Int[np.ndarray, " size"]
    ) -> Bool[np.ndarray, " row"]:
        """Which sizes lie beyond those that are trained."""
        return ~np.isin(sizes, trained)

    @abc.abstractmethod
    def size_name(self, size: int) -> str:
        """A size in a word."""

    @abc.abstractmethod
    def lengths(self, size: int) -> tuple[int, int]:
        """The most tokens that prompts and answers of a size have, END included."""

    @abc.abstractmethod
    def results(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """How many tokens before an answer's END are the result."""

    def shapes(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, " row"]:
        """A number for each row: those with the same one have graphs that differ in their inputs alone."""
        return self.sizes(rows)

    @abc.abstractmethod
    def graph(self, row: Int[np.ndarray, " slots"]) -> Graph:
        """The graph of a problem."""

    @abc.abstractmethod
    def inputs(self, rows: Int[np.ndarray, "row slots"]) -> Int[np.ndarray, "row input"]:
        """The inputs of the graphs of rows that share a shape."""

    @abc.abstractmethod
    def scratchpad(self, graph: Graph) -> Scratchpad:
        """How the steps of a graph are said."""

    def stated(
        self, rows: Int[np.ndarray, "row slots"], said: Int[np.ndarray, "row token"]
    ) -> tuple[Graph, Int[np.ndarray, "row input"], Int[np.ndarray, "row node"]]:
        """The shape of rows that share one, their inputs, and what answers with steps state of each node."""
        graph, inputs, words = self.graph(rows[0]), self.inputs(rows), self.vocabulary
        pad = self.scratchpad(graph)
        stated = np.array([pad.read(words.spelled(tokens)) for tokens in said])
        stated[:, list(graph.inputs)] = inputs
        return graph, inputs, stated
