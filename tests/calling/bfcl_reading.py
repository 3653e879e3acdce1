"""The answers of the Berkeley Function Calling Leaderboard, as calls of this package."""

from __future__ import annotations

from typing import Any

from recombine.calling import Call, OneOf, make_library, same_program


def expected_call(possible: dict[str, Any]) -> Call:
    """A possible answer: lists of right values, where an empty text means that the argument may be left out."""
    ((name, arguments),) = possible.items()

    def values(given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return OneOf(tuple(inner(value) for value in given if value != ""), optional="" in given)

    def inner(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: values(each) for key, each in value.items()}
        return [inner(each) for each in value] if isinstance(value, list) else value

    return Call(name, {key: values(each) for key, each in arguments.items()})


def our_verdicts(record: dict[str, Any]) -> list[bool]:
    """Whether each answer of a record is right by this package."""
    library = make_library(record["functions"])
    expected = [expected_call(each) for each in record["possible"]]
    return [
        same_program(
            expected,
            [Call(name, values) for call in answer["calls"] for name, values in call.items()],
            library,
            texts="loose",
        )
        for answer in record["answers"]
    ]
