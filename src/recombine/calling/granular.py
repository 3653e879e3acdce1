"""Seven granular tasks and the umbrella task of function calling, made of the same programs."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from recombine.calling.calls import Call
from recombine.calling.execution import execute
from recombine.calling.functions import Library
from recombine.calling.programs import Program
from recombine.errors import BadInput

UMBRELLA = "umbrella"
TASKS = (
    "nested calls", "chaining", "parallel calls", "next best function", "name detection", "parameter detection",
    "response generation",
)  # fmt: skip
"""The granular tasks."""
OF_FORM = {"nested": "nested calls", "chained": "chaining", "parallel": "parallel calls"}
PIECES = re.compile(r"\w+|[^\w\s]")
RESULT = "r{}"
"""The name of a result that a later call takes."""
NO_MORE = "done"
"""The next function where all calls are made."""


@dataclasses.dataclass(frozen=True)
class Example:
    """A request and its answer as words."""

    task: str
    prompt: tuple[str, ...]
    answer: tuple[str, ...]
    program: int
    """The number of the program that it is made of."""

    @property
    def tokens(self) -> int:
        """Words of prompt and answer."""
        return len(self.prompt) + len(self.answer)


def umbrella_examples(programs: Sequence[Program], library: Library) -> list[Example]:
    """One example of each program: the request, answered by all calls.

    Args:
        programs: The programs.
        library: Their functions, whose descriptions are the words of requests.
    """
    return [
        Example(UMBRELLA, (UMBRELLA, *request(program, library)), answer_words(program), number)
        for number, program in enumerate(programs)
    ]


def granular_examples(programs: Sequence[Program], library: Library) -> list[Example]:
    """The granular examples of each program: its calls, each next function, the names, each call's arguments, the response.

    Args:
        programs: The programs.
        library: Their functions, with code: a response has the result.
    """
    return [
        Example(task, (*task.split(), ":", *prompt), answer, number)
        for number, program in enumerate(programs)
        for task, prompt, answer in _parts(program, library)
    ]


def _parts(program: Program, library: Library) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    asked = request(program, library)
    yield OF_FORM[program.form], asked, answer_words(program)
    steps = [step for call in program.calls for step in call.in_order()]
    written = _steps(program.calls)
    for number in range(len(steps) + 1):
        following = steps[number].name if number < len(steps) else NO_MORE
        yield "next best function", (*asked, "|", *_joined(written[:number])), (following,)
    yield "name detection", asked, tuple(step.name for step in steps)
    for number, step in enumerate(steps):
        text = written[number]
        # The words between the outer parentheses.
        yield "parameter detection", (*asked, "|", step.name), tuple(text[text.index("(") + 1 : -1])
    results = [word for result in execute(program.calls, library) for word in (_value(result), ",")][:-1]
    yield "response generation", (*asked, "|", *results), ("the", "result", "is", *results)


def request(program: Program, library: Library) -> tuple[str, ...]:
    """The request in words, from the descriptions of the functions.

    Args:
        program: The program.
        library: Its functions.
    """
    if program.form == "parallel":
        phrases = [_phrase(call, library, lambda inner: _phrase_of(inner, library)) for call in program.calls]
        return tuple(word for number, phrase in enumerate(phrases) for word in (*(["and"] if number else []), *phrase))
    if program.form == "nested":
        return tuple(word for call in program.calls for word in _phrase_of(call, library))
    steps = [step for call in program.calls for step in call.in_order()]
    numbers = {id(step): number for number, step in enumerate(steps, 1)}
    words: list[str] = []
    for number, step in enumerate(steps):
        words += ["then"] if number else []
        words += _phrase(step, library, lambda inner: ["result", str(numbers[id(inner)])])
    return tuple(words)


def _phrase_of(call: Call, library: Library) -> list[str]:
    return _phrase(call, library, lambda inner: ["(", *_phrase_of(inner, library), ")"])


def _phrase(call: Call, library: Library, inner: Callable[[Call], list[str]]) -> list[str]:
    """The description of a function with its arguments in the place of the parameters."""
    words: list[str] = []
    for piece in re.split(r"(\{\w+\})", library[call.name].description):
        if piece.startswith("{"):
            value = call.arguments[piece[1:-1]]
            words += inner(value) if isinstance(value, Call) else [_value(value)]
        else:
            words += piece.split()
    return words


def answer_words(program: Program) -> tuple[str, ...]:
    """The calls of a program as words. Joined by spaces they are Python, which `read_calls` reads.

    Args:
        program: The program.
    """
    if program.form == "chained":
        return _joined(_steps(program.calls))
    return _joined([_call_words(call, lambda inner: _call_words(inner, None)) for call in program.calls])


def _steps(calls: Sequence[Call]) -> list[list[str]]:
    """Each call with the names of results for its inner calls: r1 = f ( x = 3 ), r2 = g ( y = r1 )."""
    steps = [step for call in calls for step in call.in_order()]
    names = {id(step): RESULT.format(number) for number, step in enumerate(steps, 1)}
    return [[names[id(step)], "=", *_call_words(step, lambda inner: [names[id(inner)]])] for step in steps]


def _joined(calls: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(word for number, call in enumerate(calls) for word in (*([";"] if number else []), *call))


def _call_words(call: Call, inner: Callable[[Call], list[str]] | None) -> list[str]:
    words = [call.name, "("]
    for number, (name, value) in enumerate(call.arguments.items()):
        words += [","] if number else []
        words += [name, "="]
        if isinstance(value, Call):
            words += inner(value) if inner is not None else _call_words(value, None)
        else:
            words.append(_value(value))
    return [*words, ")"]


def _value(value: Any) -> str:
    return json.dumps(value)


def with_tokens(examples: Sequence[Example], tokens: int, rng: np.random.Generator) -> list[Example]:
    """As many examples, in random order and again from the start, as have a number of tokens.

    Args:
        examples: The examples.
        tokens: The tokens of prompts and answers together.
        rng: The source of chance.

    Returns:
        Examples with at most this number of tokens, and less than one example fewer.
    """
    if not examples or tokens < 1:
        raise BadInput("There are no examples, or no tokens to fill.", fix="give examples and a positive number")
    made: list[Example] = []
    left = tokens
    while True:
        for index in rng.permutation(len(examples)):
            example = examples[int(index)]
            if example.tokens > left:
                return made
            made.append(example)
            left -= example.tokens


def vocabulary(examples: Iterable[Example]) -> tuple[str, ...]:
    """All words of examples, sorted."""
    return tuple(sorted({word for example in examples for word in (*example.prompt, *example.answer)}))
