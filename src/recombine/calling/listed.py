"""Examples whose prompts list a few functions under made-up names: which name stands for what is told by the prompt alone."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from recombine.calling.functions import Function, Library
from recombine.calling.granular import (
    NO_MORE,
    OF_FORM,
    RESULT,
    TASKS,
    UMBRELLA,
    Example,
    granular_examples,
    umbrella_examples,
)
from recombine.calling.programs import Program
from recombine.calling.synthetic import DIGITS, LETTERS, RESERVED, SYLLABLES, every_function
from recombine.errors import BadInput

SEPARATOR = "|"
NEXT = "next best function"
WITHOUT_LIST = ("response generation",)
"""Tasks that need no functions: their prompts list none."""
WHOLE = frozenset({UMBRELLA, *OF_FORM.values()})
"""Tasks whose answer is the whole program."""
REFERENCES = 4
"""Results of a chain that can be named."""


@dataclasses.dataclass(frozen=True)
class ListedExample:
    """An example with a list of functions in its prompt. Names are placeholders, which stand for other names each time."""

    task: str
    prompt: tuple[str, ...]
    answer: tuple[str, ...]
    program: int
    """The number of the program that it is made of."""
    functions: tuple[str, ...]
    """The listed functions. The first has the first placeholder."""

    @property
    def tokens(self) -> int:
        """Words of prompt and answer."""
        return len(self.prompt) + len(self.answer)


@functools.cache
def placeholders(number: int) -> tuple[str, ...]:
    """Made-up names, the same for every library."""
    rng = np.random.default_rng(0)
    names = dict.fromkeys(
        "".join(SYLLABLES[index] for index in pair) for pair in rng.integers(len(SYLLABLES), size=(4 * number, 2))
    )
    return tuple(name for name in names if name not in RESERVED)[:number]


@functools.cache
def listed_words(names: int) -> tuple[str, ...]:
    """All words of listed examples: names first, then descriptions, values, signs and tasks.

    Args:
        names: The number of made-up names.
    """
    described = {word for function in every_function() for word in description_words(function)}
    values = {*map(str, DIGITS), *(f'"{letter}"' for letter in LETTERS)}
    written = {RESULT.format(number) for number in range(1, 1 + REFERENCES)}
    signs = {*"()=,;", SEPARATOR, "then", "and", "result", "the", "is", NO_MORE}
    rest = sorted((described | values | written | signs) - set(placeholders(names)))
    return (*placeholders(names), *rest, *TASKS, UMBRELLA)


def description_words(function: Function) -> tuple[str, ...]:
    """The description of a function with the names of its parameters: digit x plus 3."""
    return tuple(re.sub(r"[{}]", "", function.description).split())


def listed_examples(
    programs: Sequence[Program],
    library: Library,
    *,
    granular: bool,
    candidates: int,
    known: Collection[str],
    rng: np.random.Generator,
) -> list[ListedExample]:
    """The examples of programs, each with a list of functions: those that the program calls, and others, in random order.

    Args:
        programs: The programs.
        library: Their functions.
        granular: Whether all granular examples are made, or one umbrella example of each program.
        candidates: The number of functions that a prompt lists.
        known: The functions that may be listed beside those of the program.
        rng: The source of chance.

    Returns:
        The examples. A prompt is the task, the list (each name with its description), and the request.
    """
    make = granular_examples if granular else umbrella_examples
    return [_listed(example, programs, library, candidates, known, rng) for example in make(programs, library)]


def whole_example(
    program: Program,
    library: Library,
    *,
    granular: bool,
    candidates: int,
    known: Collection[str],
    rng: np.random.Generator,
) -> ListedExample:
    """The example whose answer is the whole program: of the umbrella task, or of the granular task of its form."""
    make = granular_examples if granular else umbrella_examples
    return _listed(make([program], library)[0], [program], library, candidates, known, rng)


def _listed(
    example: Example,
    programs: Sequence[Program],
    library: Library,
    candidates: int,
    known: Collection[str],
    rng: np.random.Generator,
) -> ListedExample:
    called = sorted(programs[example.program].functions)
    others = sorted(set(known) - set(called))
    if not len(called) <= candidates <= len(called) + len(others):
        raise BadInput(
            f"{candidates} functions cannot be listed for a program that calls {len(called)}, with {len(others)} others.",
            fix="list more functions than a program calls, and no more than the library has",
        )
    beside = rng.permutation(len(others))[: candidates - len(called)]
    shown = [*called, *(others[index] for index in beside)]
    shown = tuple(shown[index] for index in rng.permutation(candidates))
    names = dict(zip(shown, placeholders(candidates), strict=True))
    # The words of the task are one word here.
    words = example.prompt[1:] if example.task == UMBRELLA else example.prompt[len(example.task.split()) + 1 :]
    if example.task == NEXT:
        # The names of the calls that were made are enough, and prompts stay short.
        end = len(words) - words[::-1].index(SEPARATOR)
        words = (*words[:end], *(word for word in words[end:] if word in names))
    listing = () if example.task in WITHOUT_LIST else _listing(shown, names, library)
    prompt = (example.task, *listing, SEPARATOR, *(names.get(word, word) for word in words))
    answer = tuple(names.get(word, word) for word in example.answer)
    return ListedExample(example.task, prompt, answer, example.program, shown)


def _listing(shown: Sequence[str], names: Mapping[str, str], library: Library) -> tuple[str, ...]:
    return tuple(word for name in shown for word in (names[name], *description_words(library[name])))
