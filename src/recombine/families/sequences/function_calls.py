"""Calls of functions that the prompt lists: requests answered by nested, chained or parallel calls, or by parts of them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32
from pydantic import Field, PositiveInt, model_validator

from recombine.calling import Library, Program, ProgramSplit, split_programs, synthetic_library
from recombine.calling.granular import TASKS
from recombine.calling.listed import (
    WHOLE,
    ListedExample,
    description_words,
    listed_examples,
    listed_words,
    placeholders,
    whole_example,
)
from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.puzzles.sudoku import random_orders
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.vocabulary import END, SPECIAL, Vocabulary, padded
from recombine.spaces import InstanceSpace, Space

SPLITS = ("seen", "function", "pair", "depth")
"""The tests: nothing is new, or a function, a pair of functions, the depth."""
PARALLEL = 2
"""Calls of a parallel program."""
LONGEST_DESCRIPTION = 6
"""Words of the longest description: letter s moved by digit x."""
ATTEMPTS = 50
"""Libraries that are drawn until one has functions that can be held out."""
CACHED = 64
"""Written replicates in the cache: the runs of a replicate share theirs."""
DRAWS = 2**23
"""Different drawings of names: as many as there are coefficients between 0 and 1."""

PROGRAMS, OF_EACH = 400, 60
"""Training programs, and programs of each test, by default."""
TRAINING, TESTS = PROGRAMS * len(TASKS), OF_EACH * len(SPLITS)
"""Instances of training and of tests by default."""


def leading(training: int, tests: int) -> dict[str, Any]:
    """The settings of the support that trains on the first instances and holds out the others."""
    return {"kind": "leading-instances", "share": training / (training + tests), "block": 1, "reserve": 0}


@dataclasses.dataclass(frozen=True)
class Written:
    """What is drawn for a replicate: functions, programs, and the examples made of them."""

    library: Library
    split: ProgramSplit
    train: tuple[ListedExample, ...]
    """The training examples, one per instance, repeated where there are fewer."""
    tests: tuple[ListedExample, ...]
    """One example per test program, by `SPLITS`."""

    @property
    def test_programs(self) -> list[tuple[str, Program]]:
        """The split and the program of each test example."""
        return [(name, program) for name in SPLITS for program in self.split.tests[name]]


class FunctionCallsTeacher(SequenceTeacher):
    """The examples of one replicate. Which names its prompt gives to the listed functions is drawn for each task."""

    questions: Int[Array, "instance word"]
    answers: Int[Array, "instance token"]
    bits: UInt32[Array, " four"]
    """The seed of the replicate, from which measurements draw the library again."""
    names: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        # The coefficient carries the drawing of names, which prompt and answer share.
        drawing = jax.random.uniform(key, row.shape)
        return Task(row, drawing, jnp.zeros(len(self.questions)).at[row].set(drawing, mode="drop"))

    def _named(self, tokens: Int[Array, " token"], task: Task) -> Int[Array, " token"]:
        """Tokens with drawn names in place of placeholders."""
        key = jax.random.fold_in(jax.random.key(0), (task.coefficients[0] * DRAWS).astype(jnp.int32))
        order = random_orders(key, (self.names,))
        number = tokens - SPECIAL
        is_name = (number >= 0) & (number < self.names)
        return jnp.where(is_name, SPECIAL + order[jnp.where(is_name, number, 0)], tokens).astype(tokens.dtype)

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return self._named(self.questions[task.combination[0]], task)

    def answer(self, task: Task) -> Int[Array, " token"]:
        return self._named(self.answers[task.combination[0]], task)


class FunctionCalls(SequenceFamily):
    """Requests that are answered by calls of functions, which the prompt lists with names and descriptions.

    A replicate has its own library of executable functions over digits and letters, its own programs, and its own held-out
    functions and pairs. The names in a prompt are made up and drawn for every task, so that a description alone says which
    function a name stands for: a function that was never trained can be called.

    Training instances come first: `rows` for each program. They are all granular examples of the programs, or the umbrella
    example of each, repeated. Then come the test programs of each split: nothing new, a new function, a new pair, a new depth.
    Support `leading-instances` trains on the first and holds out the others.
    """

    kind: Literal["function-calls"] = "function-calls"
    defaults: ClassVar[Mapping[str, Any]] = {
        **SequenceFamily.defaults,
        "space": {"kind": "instances", "number": TRAINING + TESTS},
        "support": leading(TRAINING, TESTS),
        "model": "decoder",
    }
    tasks: Literal["granular", "umbrella"] = "granular"
    """The seven granular tasks, or the umbrella task: all calls at once."""
    programs: int = Field(default=PROGRAMS, ge=20)
    """Training programs."""
    rows: PositiveInt = len(TASKS)
    """Training instances for each program. Too few examples are repeated. Of too many some are left out at random, but none whose
    answer is a whole program."""
    tests: PositiveInt = OF_EACH
    """Programs of each test."""
    functions: int = Field(default=20, ge=8)
    """Functions of the library."""
    held_out_functions: PositiveInt = 3
    """Functions that training neither calls nor lists. Each word of their descriptions occurs in others."""
    held_out_pairs: PositiveInt = 24
    """Pairs of the other functions that training never nests."""
    depth: int = Field(default=2, ge=1, le=3)
    """The deepest training programs. The test has programs that are one call deeper."""
    candidates: PositiveInt = 3
    """Functions that a prompt lists."""
    names: int = Field(default=24, ge=2, le=400)
    """Made-up names from which those of a prompt are drawn."""

    @model_validator(mode="after")
    def _fits(self) -> FunctionCalls:
        if not self.depth + 1 <= self.candidates <= min(self.names, self.functions - self.held_out_functions):
            raise ValueError(
                f"candidates={self.candidates} must be at least {self.depth + 1} (the calls of the deepest test program), and at most "
                f"names={self.names} and the functions of training ({self.functions - self.held_out_functions})"
            )
        return self

    @property
    def training_instances(self) -> int:
        """Instances of training."""
        return self.rows * self.programs

    @property
    def instances(self) -> int:
        """Instances of training and tests."""
        return self.training_instances + len(SPLITS) * self.tests

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The number of instances follows from that of programs, unless the space is given."""
        own = {
            "space": {"kind": "instances", "number": self.instances},
            "support": leading(self.training_instances, self.instances - self.training_instances),
        }
        usual = type(self).defaults
        return {**given, **{name: own[name] for name in own if given.get(name) in (None, usual[name])}}

    def check(self, space: Space) -> None:
        if not isinstance(space, InstanceSpace) or space.number != self.instances:
            raise BadInput(
                f"The family {self.kind!r} needs a space of {self.instances} instances, got {space.title}.",
                fix="leave out space and support: they follow from the family",
            )

    @functools.cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(listed_words(self.names))

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def longest_prompt(self) -> int:
        return self.lengths(self.depth + 1)[0]

    @property
    def longest_answer(self) -> int:
        return self.lengths(self.depth + 1)[1]

    def lengths(self, depth: int) -> tuple[int, int]:
        """Tokens of the longest prompt and of the longest answer (with END) of programs up to a depth.

        Args:
            depth: The depth. In training, programs are at most `depth` of the family deep.
        """
        calls = max(depth, PARALLEL)
        # A call is at most `r1 = f ( x = 3 , y = 4 ) ;`. In a request it has a description and two brackets.
        answer = 13 * calls - 1
        listing = self.candidates * (LONGEST_DESCRIPTION + 1)
        # Behind the request, granular prompts have the names of calls that were made, or results with commas.
        partial = 2 * calls if self.tasks == "granular" else 0
        return 2 + listing + calls * (LONGEST_DESCRIPTION + 2) + partial, answer + 1

    def prepare(self, space: Space, key: Array) -> None:
        """Draw and write the programs; `draw` takes them from the cache."""
        self.written(jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> FunctionCallsTeacher:
        self.check(space)
        shapes = [
            jax.ShapeDtypeStruct((space.size, length), np.dtype("int32"))
            for length in (self.longest_prompt, self.longest_answer)
        ]
        bits = jax.random.bits(key, (4,), "uint32")
        questions, answers = jax.pure_callback(self._tokens, shapes, bits)
        return FunctionCallsTeacher(questions, answers, bits, self.names)

    def written(self, bits: UInt32[Array | np.ndarray, " four"]) -> Written:
        """The library, the programs and the examples of a replicate.

        Args:
            bits: The seed, as a drawn teacher has it.
        """
        seed = np.asarray(bits, np.uint32).tobytes()
        return _written(self, seed)  # pyright: ignore[reportArgumentType]  # Frozen models can be hashed.

    def tokens(self, examples: tuple[ListedExample, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Prompts and answers as rows of tokens, with placeholders for names."""
        words = self.vocabulary
        prompts = padded([words.numbers(each.prompt) for each in examples], self.longest_prompt)
        return prompts, padded([(*words.numbers(each.answer), END) for each in examples], self.longest_answer)

    def _tokens(self, bits: UInt32[Array | np.ndarray, " four"]) -> tuple[np.ndarray, np.ndarray]:
        written = self.written(bits)
        return self.tokens((*written.train, *written.tests))

    def listed_names(self, prompt: Int[np.ndarray, " word"], example: ListedExample) -> dict[str, str]:
        """The function of the library that each name of a prompt stands for.

        Args:
            prompt: The tokens of the prompt, with drawn names.
            example: The example, with placeholders.
        """
        function = dict(zip(placeholders(self.candidates), example.functions, strict=True))
        shown = zip(example.prompt, self.vocabulary.spelled(prompt), strict=True)
        return {name: function[place] for place, name in shown if place in function}

    def mean_tokens(self) -> float:
        """Words of prompt and answer of a training instance, in the mean: those of one drawing, the same for every replicate."""
        sizes = [each.tokens for each in self.written(np.zeros(4, np.uint32)).train]
        return math.fsum(sizes) / len(sizes)


@functools.lru_cache(maxsize=CACHED)
def _written(family: FunctionCalls, seed: bytes) -> Written:
    rng = np.random.default_rng([int.from_bytes(seed, "little"), 83])
    library, held_out = _divided(family, rng)
    split = split_programs(
        library,
        train=family.programs,
        test=family.tests,
        functions=held_out,
        pairs=family.held_out_pairs,
        depth=family.depth,
        deeper=family.depth + 1,
        seed=int(rng.integers(2**31)),
        absent=True,
    )
    # A single call has nothing to chain: it is written without a name for its result.
    train = tuple(
        Program("nested", each.calls) if each.depth == 1 and each.form == "chained" else each for each in split.train
    )
    split = dataclasses.replace(split, train=train)
    shown: dict[str, Any] = {"granular": family.tasks == "granular", "candidates": family.candidates}
    shown |= {"known": set(library) - set(held_out), "rng": rng}
    made = listed_examples(split.train, library, **shown)
    number = family.training_instances
    order = np.concatenate([_order(made, rng) for _ in range(-(-number // len(made)))])[:number]
    tests = [program for name in SPLITS for program in split.tests[name]]
    return Written(
        library,
        split,
        tuple(made[index] for index in order),
        tuple(whole_example(program, library, **shown) for program in tests),
    )


def _order(made: Sequence[ListedExample], rng: np.random.Generator) -> Int[np.ndarray, " example"]:
    """The examples in random order, those of whole programs first."""
    order = rng.permutation(len(made))
    whole = np.array([made[index].task in WHOLE for index in order])
    return np.concatenate([order[whole], order[~whole]])


def _divided(family: FunctionCalls, rng: np.random.Generator) -> tuple[Library, tuple[str, ...]]:
    """A library, and functions of it whose words all occur in the descriptions of the others. Libraries with too few are drawn again."""
    for _ in range(ATTEMPTS):
        library = synthetic_library(family.functions, seed=int(rng.integers(2**31)))
        names, chosen = list(library), []
        for index in rng.permutation(len(names)):
            held_out = [*chosen, names[int(index)]]
            others = [description_words(library[name]) for name in names if name not in held_out]
            words = {word for description in others for word in description}
            if len(held_out) <= family.held_out_functions and all(
                words.issuperset(description_words(library[name])) for name in held_out
            ):
                chosen = held_out
        if len(chosen) == family.held_out_functions:
            return library, tuple(chosen)
    raise BadInput(
        f"In {ATTEMPTS} libraries, {family.held_out_functions} of {family.functions} functions could not be held out without a word "
        "that training never has.",
        fix="hold out fewer, or use a larger library",
    )
