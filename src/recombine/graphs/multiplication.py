"""Long multiplication as a graph of digit products, sums, remainders and carries."""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput
from recombine.graphs.graph import Graph, Node, Operation, Values
from recombine.graphs.information_gain import relative_information_gain
from recombine.graphs.scratchpad import NUMBER, Scratchpad, digits

MAX_DIGITS = 18
"""The largest number of digits of a product, which must fit a 64-bit integer."""
MAX_ROWS = 10_000_000
"""The largest number of pairs in a digit table."""


def _sum(*parts: Values) -> Values:
    return functools.reduce(operator.add, parts)


def _joined(*parts: Values) -> Values:
    return functools.reduce(lambda number, part: 10 * number + part, parts)


TIMES = Operation("digit product", operator.mul, 2, 2, commutative=True)
SUM = Operation("sum", _sum, 2, None, commutative=True)
REMAINDER = Operation("mod 10", lambda value: value % 10, 1, 1)
CARRY = Operation("carry", lambda value: value // 10, 1, 1)
JOIN = Operation("concatenate", _joined, 1, None)


def multiplication_graph(left: str | int, right: str | int) -> Graph:
    """Build the graph of `left` times `right`. Its last node, `answer`, is the product.

    The graph has one row per digit of `right`, units first, then the columns of all rows, units first. The brackets in a
    name contain the row and the position in it, or the column.

    Args:
        left: The first factor, as a number or as digits (leading zeros count).
        right: The second factor.

    Returns:
        The graph.
    """
    left, right = _digits_of(left), _digits_of(right)
    places = len(left) + len(right)
    if places > MAX_DIGITS:
        raise BadInput(
            f"The product of {len(left)} and {len(right)} digits can have {places}, but a node holds {MAX_DIGITS}."
        )
    x, y = ([int(digit) for digit in reversed(number)] for number in (left, right))
    nodes = [
        *(Node(f"x[{place}]", value=digit) for place, digit in enumerate(x)),
        *(Node(f"y[{place}]", value=digit) for place, digit in enumerate(y)),
    ]
    columns: list[list[str]] = [[] for _ in range(places)]
    for row in range(len(y)):
        for at, name in enumerate(_row(nodes, row, len(x))):
            columns[row + at].append(name)
    product: list[str] = []
    for place, parts in enumerate(columns):
        product.append(_column(nodes, place, parts, columns[place + 1] if place + 1 < places else None))
    nodes.append(Node("answer", JOIN, tuple(reversed(product))))
    return Graph(tuple(nodes))


def _digits_of(number: str | int) -> str:
    """The digits of a factor."""
    text = number if isinstance(number, str) else str(number) if isinstance(number, (int, np.integer)) else ""
    if not (text.isascii() and text.isdigit()):
        raise BadInput(
            f"A factor is a string of decimal digits or a whole number, 0 or more; got {number!r}.",
            fix="for instance '23' or 23",
        )
    return text


def _row(nodes: list[Node], row: int, length: int) -> list[str]:
    """Add the steps of one digit of the right factor; return the names of the row's digits, units first."""
    digit_names = []
    for place in range(length):
        at = f"[{row},{place}]"
        nodes.append(Node(f"product{at}", TIMES, (f"x[{place}]", f"y[{row}]")))
        total = f"product{at}"
        if place:
            total = f"total{at}"
            nodes.append(Node(total, SUM, (f"product{at}", f"carry[{row},{place - 1}]")))
        nodes.append(Node(f"digit{at}", REMAINDER, (total,)))
        nodes.append(Node(f"carry{at}", CARRY, (total,)))
        digit_names.append(f"digit{at}")
    return [*digit_names, f"carry[{row},{length - 1}]"]


def _column(nodes: list[Node], place: int, parts: list[str], following: list[str] | None) -> str:
    """Add the steps of one column, with its carry to the next; return the name of the product's digit."""
    if len(parts) == 1:
        return parts[0]
    nodes.append(Node(f"column[{place}]", SUM, tuple(parts)))
    if following is None:  # The leading digit of a product has no carry.
        return f"column[{place}]"
    nodes.append(Node(f"digit[{place}]", REMAINDER, (f"column[{place}]",)))
    nodes.append(Node(f"carry[{place}]", CARRY, (f"column[{place}]",)))
    following.append(f"carry[{place}]")
    return f"digit[{place}]"


def multiplication_scratchpad(graph: Graph) -> Scratchpad:
    """One token per step, and one per digit of the answer."""
    places = len(graph.parents[graph.index["answer"]])
    return Scratchpad(
        graph, tuple(digits(places) if graph.nodes[step].operation == JOIN else NUMBER for step in graph.steps)
    )


class DigitTable(NamedTuple):
    """The digits of all pairs of numbers and of their products, leading digit first."""

    left: Int[np.ndarray, "pair place"]
    right: Int[np.ndarray, "pair place2"]
    product: Int[np.ndarray, "pair place3"]
    """Padded with zeros to the number of digits of both factors together."""


def check_table(left: int, right: int) -> None:
    """Raise BadInput if a table of products of `left` by `right` digits is impossible or too large."""
    if min(left, right) < 1 or 9**2 * 10 ** (left + right - 2) > MAX_ROWS:
        raise BadInput(
            f"There is no table of all products of {left} by {right} digits.",
            fix=f"both numbers need a digit, and a table has at most {MAX_ROWS} rows",
        )


def digit_table(left: int, right: int) -> DigitTable:
    """All pairs of a number with `left` digits and one with `right` digits, without leading zeros."""
    check_table(left, right)
    first, second = (np.arange(10 ** (length - 1), 10**length) for length in (left, right))
    x, y = (grid.ravel() for grid in np.meshgrid(first, second, indexing="ij"))

    def digits_of(numbers: Int[np.ndarray, " pair"], places: int) -> Int[np.ndarray, "pair place"]:
        # Bytes, one column at a time: 64-bit integers would take a gigabyte for the largest tables.
        columns = [(numbers // 10**place % 10).astype(np.int8) for place in range(places - 1, -1, -1)]
        return np.stack(columns, axis=1)

    return DigitTable(digits_of(x, left), digits_of(y, right), digits_of(x * y, left + right))


class DigitGains(NamedTuple):
    """How predictable each digit of a product is without computing it, leading digit first."""

    gain: Float[np.ndarray, " place"]
    """The largest relative information gain of one digit of each factor, taken together."""
    common: Float[np.ndarray, " place"]
    """The share of its most frequent value, which is the accuracy of always giving that value."""


@functools.cache
def digit_gains(left: int, right: int) -> DigitGains:
    """Compute the predictability of digits exactly, over all pairs of numbers with `left` and `right` digits."""
    table = digit_table(left, right)
    gains, common = [], []
    for digit in table.product.T:
        pairs = (np.stack([x, y], axis=1) for x in table.left.T for y in table.right.T)
        gains.append(max(relative_information_gain(pair, digit) for pair in pairs))
        common.append(np.bincount(digit).max() / len(digit))
    return DigitGains(np.array(gains), np.array(common))
