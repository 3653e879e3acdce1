"""Programs of calls: drawn from a library, and split so that functions, pairs or depths are held out."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recombine.calling.calls import Call, all_calls, nested_pairs
from recombine.calling.functions import Library
from recombine.calling.json_schema import JsonSchema
from recombine.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

Form = Literal["nested", "chained", "parallel"]
FORMS: tuple[Form, ...] = ("nested", "chained", "parallel")
TRIES = 2000
"""After this many draws in a row without a new program, drawing is given up."""


@dataclasses.dataclass(frozen=True)
class Program:
    """Calls that answer one request.

    A nested and a chained program are the same trees. They differ in how request and answer are written: a call in the
    argument of another, or one call after another with references to results. Parallel calls do not depend on each other.
    """

    form: Form
    calls: tuple[Call, ...]

    @property
    def depth(self) -> int:
        """The number of calls on the longest path."""
        return max(call.depth for call in self.calls)

    @property
    def functions(self) -> frozenset[str]:
        """The functions that are called."""
        return frozenset(call.name for call in all_calls(self.calls))

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The outer and inner functions of nested calls."""
        return frozenset((nested.outer, nested.inner) for nested in nested_pairs(self.calls))


@dataclasses.dataclass(frozen=True)
class ProgramSplit:
    """Training programs, and test programs by what is new in them."""

    train: tuple[Program, ...]
    tests: Mapping[str, tuple[Program, ...]]
    """`seen`: training nests all of its pairs. `function`: it nests a function that training calls only alone, or not at all. `pair`: it nests
    a pair that training never nests, of functions that training nests with others. `depth`: it is deeper, and training nests
    all of its pairs."""
    functions: frozenset[str]
    """The functions that training calls only alone, or not at all."""
    pairs: frozenset[tuple[str, str]]
    """The pairs that training never nests."""


def draw_program(
    library: Library,
    rng: np.random.Generator,
    *,
    form: Form = "nested",
    depth: int = 2,
    parallel: int = 2,
    alone: Collection[str] = (),
    apart: Collection[tuple[str, str]] = (),
) -> Program | None:
    """Draw a program.

    Args:
        library: The functions.
        rng: The source of chance.
        form: Nested, chained or parallel.
        depth: The depth of nested and chained programs.
        parallel: The number of calls of a parallel program.
        alone: Functions that may not take part in nested calls.
        apart: Outer and inner functions that may not be nested.

    Returns:
        The program. None if this draw led to a function in which nothing allowed fits.
    """
    names = list(library)
    if form == "parallel":
        calls = [_drawn(library, names[int(rng.integers(len(names)))], 1, rng, alone, apart) for _ in range(parallel)]
    else:
        first = [name for name in names if depth == 1 or name not in alone]
        calls = [_drawn(library, first[int(rng.integers(len(first)))], depth, rng, alone, apart)] if first else [None]
    made = tuple(call for call in calls if call is not None)
    return Program(form, made) if len(made) == len(calls) else None


def _drawn(
    library: Library,
    name: str,
    depth: int,
    rng: np.random.Generator,
    alone: Collection[str],
    apart: Collection[tuple[str, str]],
) -> Call | None:
    function = library[name]
    arguments: dict[str, Any] = {}
    if depth > 1:
        options = [
            (parameter, inner)
            for inner in library
            if inner not in alone and (name, inner) not in apart
            for parameter in fitting_parameters(library, name, inner)
        ]
        if not options:
            return None
        parameter, inner_name = options[int(rng.integers(len(options)))]
        inner = _drawn(library, inner_name, depth - 1, rng, alone, apart)
        if inner is None:
            return None
        arguments[parameter] = inner
    for each in function.parameters:
        if each.name not in arguments:
            arguments[each.name] = JsonSchema(each.schema).draw(rng, f"{name}.{each.name}")
    # Arguments stand in the order of the schema.
    return Call(name, {each.name: arguments[each.name] for each in function.parameters})


def split_programs(
    library: Library,
    *,
    train: int,
    test: int,
    functions: int | Collection[str] = 2,
    pairs: int = 8,
    depth: int = 2,
    deeper: int = 3,
    seed: int = 0,
    absent: bool = False,
) -> ProgramSplit:
    """Draw training programs, and test programs in which a function, a pair or the depth is new.

    Args:
        library: The functions.
        train: Training programs. The first of them call every function alone.
        test: Programs of each test.
        functions: How many functions training calls only alone, or their names.
        pairs: How many pairs of the other functions training never nests.
        depth: The deepest training program.
        deeper: The depth of the test `depth`.
        seed: The seed.
        absent: Whether training does not call these functions alone either.

    Returns:
        The split. No test program is a training program.
    """
    if not 1 <= depth < deeper:
        raise BadInput(f"The test must be deeper than training, got {deeper} and {depth}.", fix="deeper=3, depth=2")
    rng, names = np.random.default_rng(seed), list(library)
    number = functions if isinstance(functions, int) else len(functions)
    if not 0 <= number < len(names):
        raise BadInput(f"{number} of {len(names)} functions cannot be held out.", fix="hold out fewer functions")
    order = rng.permutation(len(names))
    alone = frozenset((names[index] for index in order[:number]) if isinstance(functions, int) else functions)
    if unknown := sorted(alone - set(names)):
        raise BadInput(f"The library has no function {unknown[0]!r}.", fix="hold out functions of the library")
    together = [name for name in names if name not in alone]
    fitting = [(one, other) for one in together for other in together if fitting_parameters(library, one, other)]
    if not 0 <= pairs < len(fitting):
        raise BadInput(f"{pairs} pairs are to be held out, but {len(fitting)} can nest.", fix="hold out fewer pairs")
    apart = frozenset(fitting[index] for index in rng.permutation(len(fitting))[:pairs])
    known = Library(library[name] for name in together) if absent else library
    allowed: dict[str, Any] = {"alone": alone, "apart": apart}
    # A tree has no held-out function in any case; `known` keeps them out of single and parallel calls.
    drawing = _Drawing(known, rng)
    # Every known function occurs alone.
    training = [program for name in known for program in drawing.single(name)][:train]
    training += drawing.programs(train - len(training), range(1, depth + 1), FORMS, **allowed)
    drawing.library = library
    met = {pair for program in training for pair in program.pairs}
    nested = {name for pair in met for name in pair}
    two, deep = range(2, depth + 1) or range(depth, depth + 1), range(deeper, deeper + 1)
    trees: tuple[Form, ...] = ("nested", "chained")
    tests = {"seen": drawing.programs(test, two, trees, lambda program: program.pairs <= met, **allowed)}
    if alone:
        tests["function"] = drawing.programs(
            test, two, trees, lambda program: any(name in alone for pair in program.pairs for name in pair), apart=apart
        )
    if pairs:
        tests["pair"] = drawing.programs(
            test, two, trees, lambda program: bool(program.pairs & apart) and _parts(program) <= nested, alone=alone
        )
    tests["depth"] = drawing.programs(test, deep, trees, lambda program: program.pairs <= met, **allowed)
    return ProgramSplit(tuple(training), {name: tuple(some) for name, some in tests.items()}, alone, apart)


def fitting_parameters(library: Library, outer: str, inner: str) -> list[str]:
    """The parameters of a function whose type is that of another function's result."""
    kind = JsonSchema(library[inner].returns or {}).kind
    return [each.name for each in library[outer].parameters if JsonSchema(each.schema).kind == kind]


def _parts(program: Program) -> set[str]:
    return {name for pair in program.pairs for name in pair}


class _Drawing:
    """Draws programs, each once."""

    def __init__(self, library: Library, rng: np.random.Generator) -> None:
        self.library, self._rng = library, rng
        self._known: set[str] = set()

    def single(self, name: str) -> list[Program]:
        """A program that calls one function."""
        call = _drawn(self.library, name, 1, self._rng, (), ())
        assert call is not None
        self._known.add(str(call))
        return [Program("nested", (call,))]

    def programs(
        self,
        number: int,
        depths: Sequence[int],
        forms: Sequence[Form],
        wanted: Callable[[Program], bool] = lambda program: True,
        **limits: Any,
    ) -> list[Program]:
        made: list[Program] = []
        failures = 0
        while len(made) < number:
            depth = int(depths[int(self._rng.integers(len(depths)))])
            form = forms[int(self._rng.integers(len(forms)))]
            program = draw_program(self.library, self._rng, form=form, depth=depth, **limits)
            if program is not None and (key := _key(program)) not in self._known and wanted(program):
                self._known.add(key)
                made.append(program)
                failures = 0
                continue
            failures += 1
            if failures > TRIES:
                raise BadInput(
                    f"Only {len(made)} of {number} programs were found.", fix="ask for fewer, or use more functions"
                )
        return made


def _key(program: Program) -> str:
    """What is called, however it is written: a chained test program is none of the nested training programs."""
    return "; ".join(map(str, program.calls))


def program_table(
    train: Sequence[Program], tests: Mapping[str, Sequence[Program]], right: Mapping[str, Sequence[float]] | None = None
) -> pd.DataFrame:
    """The certificate of training programs: for each nested pair of a test program, whether training nested it.

    Args:
        train: The training programs.
        tests: Test programs by name.
        right: Whether the answer to each test program is right.

    Returns:
        Columns test, program, outer, inner, depth, trained (how often training nests the pair) and, if known, right. It is a
        table for `rc.audit(frame, factors=["outer", "inner"], scores="right")`.
    """
    import pandas as pd

    counts = collections.Counter(pair for program in train for pair in program.pairs)
    rows = [
        {"test": test, "program": number, "outer": outer, "inner": inner, "depth": program.depth}
        | {"trained": counts[outer, inner]}
        | ({} if right is None else {"right": right[test][number]})
        for test, programs in tests.items()
        for number, program in enumerate(programs)
        for outer, inner in sorted(program.pairs)
    ]
    return pd.DataFrame(rows)
