"""A call of a function: a name and arguments, where an argument may be another call."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function.

    Example:
        ```python
        inner = Call("find_city", {"country": "Peru"})
        str(Call("weather", {"city": inner, "days": 3}))  # weather(city=find_city(country="Peru"), days=3)
        ```
    """

    name: str
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The value of each given parameter: JSON values, or calls."""

    @property
    def depth(self) -> int:
        """The number of calls on the longest path inwards: 1 if no argument is a call."""
        return 1 + max((inner.depth for _, inner in self.inner()), default=0)

    def inner(self) -> Iterator[tuple[str, Call]]:
        """The calls among the arguments, with their parameters."""
        for parameter, value in self.arguments.items():
            if isinstance(value, Call):
                yield parameter, value

    def in_order(self) -> Iterator[Call]:
        """All calls in the order in which they can be carried out: inner ones first, this one last."""
        for _, inner in self.inner():
            yield from inner.in_order()
        yield self

    def record(self) -> dict[str, Any]:
        """The call as JSON data; inner calls have the same form."""
        return {
            "name": self.name,
            "arguments": {
                name: value.record() if isinstance(value, Call) else value for name, value in self.arguments.items()
            },
        }

    def __str__(self) -> str:
        given = (
            f"{name}={value if isinstance(value, Call) else json.dumps(value, ensure_ascii=False, default=repr)}"
            for name, value in self.arguments.items()
        )
        return f"{self.name}({', '.join(given)})"


class Nested(NamedTuple):
    """A call inside another."""

    outer: str
    parameter: str
    inner: str


def nested_pairs(calls: Sequence[Call]) -> list[Nested]:
    """The pairs of functions that are nested in calls.

    Args:
        calls: The calls of a program.

    Returns:
        One entry per inner call: the outer function, its parameter, and the inner function.
    """
    return [
        Nested(call.name, parameter, inner.name)
        for outermost in calls
        for call in outermost.in_order()
        for parameter, inner in call.inner()
    ]


def all_calls(calls: Sequence[Call]) -> list[Call]:
    """All calls of a program with the inner ones, in the order in which they can be carried out."""
    return [call for outermost in calls for call in outermost.in_order()]
