"""Long multiplication of two numbers as a graph of digit products, sums, remainders and carries."""

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

MOST_DIGITS = 18
"""The most digits of a product: a value is an integer of 64 bits."""
MOST_ROWS = 10_000_000
"""The most pairs of numbers that a table of digits has."""


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
    """The steps of `left` times `right`, as digits (zeros in front count) or numbers; the last node, `answer`, is the product.

    A row for each digit of `right`, units first, then the columns of all rows, units first. In a name the first number
    in brackets is the row's, the second the place in it; a column has one number.
    """
    left, right = _spelt(left), _spelt(right)
    places = len(left) + len(right)
    if places > MOST_DIGITS:
        raise BadInput(
            f"The product of {len(left)} and {len(right)} digits can have {places}, but a node holds {MOST_DIGITS}."
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
    found: list[str] = []
    for place, parts in enumerate(columns):
        found.append(_column(nodes, place, parts, columns[place + 1] if place + 1 < places else None))
    nodes.append(Node("answer", JOIN, tuple(reversed(found))))
    return Graph(tuple(nodes))


def _spelt(number: str | int) -> str:
    """The digits of a factor."""
    text = number if isinstance(number, str) else str(number) if isinstance(number, (int, np.integer)) else ""
    if not (text.isascii() and text.isdigit()):
        raise BadInput(
            f"A factor is a string of decimal digits, or a whole number from 0 on, got {number!r}.",
            fix="for instance '23' or 23",
        )
    return text


def _row(nodes: list[Node], row: int, length: int) -> list[str]:
    """Add the steps of one digit of the right factor; the names of the row's digits, units first."""
    found = []
    for place in range(length):
        at = f"[{row},{place}]"
        nodes.append(Node(f"product{at}", TIMES, (f"x[{place}]", f"y[{row}]")))
        total = f"product{at}"
        if place:
            total = f"total{at}"
            nodes.append(Node(total, SUM, (f"product{at}", f"carry[{row},{place - 1}]")))
        nodes.append(Node(f"digit{at}", REMAINDER, (total,)))
        nodes.append(Node(f"carry{at}", CARRY, (total,)))
        found.append(f"digit{at}")
    return [*found, f"carry[{row},{length - 1}]"]


def _column(nodes: list[Node], place: int, parts: list[str], following: list[str] | None) -> str:
    """Add the steps of one column, its carry to the column that follows; the name of the answer's digit."""
    if len(parts) == 1:
        return parts[0]
    nodes.append(Node(f"column[{place}]", SUM, tuple(parts)))
    if following is None:  # The first digit of a product: there is nothing to carry.
        return f"column[{place}]"
    nodes.append(Node(f"digit[{place}]", REMAINDER, (f"column[{place}]",)))
    nodes.append(Node(f"carry[{place}]", CARRY, (f"column[{place}]",)))
    following.append(f"carry[{place}]")
    return f"digit[{place}]"


def multiplication_scratchpad(graph: Graph) -> Scratchpad:
    """A token for each step; the answer digit by digit."""
    places = len(graph.parents[graph.numbers["answer"]])
    return Scratchpad(
        graph,
        tuple(digits(places) if graph.nodes[step].operation == JOIN else NUMBER for step in graph.steps),
    )


class DigitTable(NamedTuple):
    """Digits of all pairs of numbers and of their products, first digit first."""

    left: Int[np.ndarray, "pair place"]
    right: Int[np.ndarray, "pair place2"]
    product: Int[np.ndarray, "pair place3"]
    """Padded with zeros to as many places as both factors have together."""


def check_table(left: int, right: int) -> None:
    """Raise BadInput if there is no table of products of so many digits, or too large a one."""
    if min(left, right) < 1 or 9**2 * 10 ** (left + right - 2) > MOST_ROWS:
        raise BadInput(
            f"A table of all products of {left} by {right} digits was asked for.",
            fix=f"both numbers need a digit, and a table has at most {MOST_ROWS} rows",
        )


def digit_table(left: int, right: int) -> DigitTable:
    """Every pair of a number of `left` digits and one of `right` digits, none of which begins with a zero."""
    check_table(left, right)
    first, second = (np.arange(10 ** (length - 1), 10**length) for length in (left, right))
    x, y = (grid.ravel() for grid in np.meshgrid(first, second, indexing="ij"))

    def spelt(numbers: Int[np.ndarray, " pair"], places: int) -> Int[np.ndarray, "pair place"]:
        # Bytes, column after column: as whole numbers of 64 bits the largest tables would take a gigabyte.
        columns = [(numbers // 10**place % 10).astype(np.int8) for place in range(places - 1, -1, -1)]
        return np.stack(columns, axis=1)

    return DigitTable(spelt(x, left), spelt(y, right), spelt(x * y, left + right))


class DigitGains(NamedTuple):
    """What can be said of each digit of a product without computing it, first digit first."""

    gain: Float[np.ndarray, " place"]
    """The largest relative information gain that a digit of one factor and a digit of the other have together."""
    common: Float[np.ndarray, " place"]
    """The share of its most frequent value: so often it is right to say that one always."""


@functools.cache
def digit_gains(left: int, right: int) -> DigitGains:
    """Over all pairs of numbers of so many digits, exactly."""
    table = digit_table(left, right)
    gains, common = [], []
    for digit in table.product.T:
        pairs = (np.stack([one, other], axis=1) for one in table.left.T for other in table.right.T)
        gains.append(max(relative_information_gain(pair, digit) for pair in pairs))
        common.append(np.bincount(digit).max() / len(digit))
    return DigitGains(np.array(gains), np.array(common))
