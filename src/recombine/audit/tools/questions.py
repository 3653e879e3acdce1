"""Questions about calls: chains of functions, each in an argument of the one before, planned to cover all pairs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from recombine.calling import Call, Function, Library
from recombine.calling.json_schema import JsonSchema
from recombine.calling.matching import same_value
from recombine.errors import BadInput
from recombine.plan import Plan, make_plan
from recombine.spaces import ProductSpace

Wording = Literal["names", "descriptions"]
Notation = Literal["native", "text"]
NONE = "none"
DEEPEST = 6
"""The deepest chains that can be asked for."""
TRIES = 50
ORDINALS = ("outermost", "second", "third", "fourth", "fifth", "sixth")

NATIVE = (
    "Do this by calling functions. Where an argument is the result of another call, make that call first and give its result "
    "as it came. Give the arguments that are named and no others, make no other calls, and do not ask back.\n\n"
)
TEXT = (
    "These functions can be called, with their parameters as JSON Schema:\n\n{functions}\n\n"
    "Write down the call that does the following. Answer with one JSON object and nothing else: "
    '{{"name": FUNCTION, "arguments": {{PARAMETER: VALUE}}}}. Where an argument is the result of another call, its VALUE is '
    "that call, in the same form. Give the arguments that are named and no others.\n\n"
)


@dataclasses.dataclass(frozen=True)
class ToolQuestion:
    """A question with the call that answers it."""

    functions: tuple[str, ...]
    """The functions from the outside to the inside."""
    parameters: tuple[str, ...]
    """For each function but the innermost: the parameter that takes the result of the next."""
    call: Call
    """The right call."""
    results: tuple[Any, ...]
    """For each function but the outermost: a made-up result, which occurs nowhere else in the question."""
    prompt: str

    @functools.cached_property
    def name(self) -> str:
        """A hash of the question."""
        text = json.dumps([self.prompt, self.results], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def depth(self) -> int:
        """The number of functions."""
        return len(self.functions)

    @functools.cached_property
    def chain(self) -> tuple[Call, ...]:
        """The right calls from the outside to the inside."""
        calls = [self.call]
        for parameter in self.parameters:
            calls.append(calls[-1].arguments[parameter])
        return tuple(calls)


@dataclasses.dataclass(frozen=True)
class ToolPlan:
    """The questions, and what they cover."""

    questions: tuple[ToolQuestion, ...]
    pairs: int
    """Pairs of functions that can nest and are asked."""
    nestable: int
    """Pairs of functions that can nest."""
    possible: int
    """Chains of functions that could be asked."""
    notes: tuple[str, ...]


def nestable_parameters(outer: Function, inner: Function) -> list[str]:
    """The parameters of a function that can take the result of another."""
    return [each.name for each in outer.parameters if JsonSchema(each.schema).accepts_results_of(inner.returns)]


def make_questions(
    library: Library,
    *,
    depth: int = 3,
    values: int = 2,
    questions: int | None = None,
    wording: Wording = "names",
    notation: Notation = "native",
    seed: int = 0,
) -> ToolPlan:
    """Plan questions that cover every function alone, and every pair of functions at neighbouring levels of nesting.

    Args:
        library: The functions.
        depth: The number of functions in the deepest chains.
        values: How many questions, with other values, are asked of each chain.
        questions: Most questions. By default as many as cover all pairs.
        wording: Whether questions give the names of functions, or their descriptions.
        notation: Whether calls are made natively (`tool_calls`), or written down in one text.
        seed: The seed of the plan and of the values.

    Returns:
        The questions. What one asks does not depend on how many there are.
    """
    if not 1 <= depth <= DEEPEST:
        raise BadInput(f"The depth must be 1 to {DEEPEST}, got {depth}.", fix="3 is usual")
    if values < 1:
        raise BadInput(f"At least one question must be asked of each chain, got {values}.", fix="give 1 or more")
    if questions is not None and questions < values:
        raise BadInput(f"{questions} questions are fewer than the {values} of one chain.", fix="give more questions")
    names = list(library)
    fits = {(one, other): nestable_parameters(library[one], library[other]) for one in names for other in names}
    nestable = {pair for pair, parameters in fits.items() if parameters}
    notes = [] if nestable or depth == 1 else ["No function can take the result of another, so nothing is nested."]
    if unknown := [name for name in names if library[name].returns is None]:
        number = f"{len(unknown)} of {len(names)} functions have no schema of their result (`returns`)"
        notes += [f"{number}: it is taken to fit every parameter without a list of values."] if nestable else []
    if wording == "descriptions":
        notes += _ambiguous(library)
    depth = depth if nestable else 1
    plan = _planned(names, nestable, depth, None if questions is None else questions // values, seed)
    chains = [tuple(names[int(level)] for level in row if level != NONE) for row in plan.names]
    made = [
        make_question(library, chain, wording, notation, seed=seed, copy=copy)
        for chain in chains
        for copy in range(values)
    ]
    asked = {pair for chain in chains for pair in itertools.pairwise(chain)}
    if short := len(nestable) - len(asked):
        # The plan's own note counts interactions of its levels.
        notes.append(f"{short} of {len(nestable)} pairs that can nest are not asked. More questions cover them.")
    return ToolPlan(tuple(made), len(asked), len(nestable), _possible(names, nestable, depth), tuple(notes))


def _ambiguous(library: Library) -> list[str]:
    """Notes about functions that their descriptions do not tell apart."""
    descriptions = [function.description.strip() for function in library.values()]
    notes = []
    if missing := sum(not text for text in descriptions):
        notes.append(f"{missing} of {len(descriptions)} functions have no description: questions give their names.")
    shared = [name for name, text in zip(library, descriptions, strict=True) if text and descriptions.count(text) > 1]
    if shared:
        notes.append(
            f"These functions have a description in common, so a right answer is partly luck: {', '.join(shared)}."
        )
    return notes


def _planned(names: Sequence[str], nestable: set[tuple[str, str]], depth: int, budget: int | None, seed: int) -> Plan:
    """Rows of the numbers of functions, from the outside to the inside."""
    numbers = [str(number) for number in range(len(names))]
    levels = [f"level{level}" for level in range(1, depth + 1)]
    factors = tuple((level, tuple(numbers) if level == levels[0] else (*numbers, NONE)) for level in levels)
    forbid = [f"{inner}={NONE} and {further}!={NONE}" for inner, further in itertools.pairwise(levels[1:])]
    for outer, inner in itertools.pairwise(levels):
        for number, name in zip(numbers, names, strict=True):
            refused = [other for other, its in zip(numbers, names, strict=True) if (name, its) not in nestable]
            if refused:
                forbid.append(f"{outer}={number} and {inner} in {{{', '.join(refused)}}}")
    space = ProductSpace(factors=factors)
    return make_plan(space, strength=min(2, depth), budget=budget, forbid=forbid, seed=seed)


def _possible(names: Sequence[str], nestable: set[tuple[str, str]], depth: int) -> int:
    """The number of chains of up to `depth` functions."""
    ending = dict.fromkeys(names, 1)
    total = len(names)
    for _ in range(depth - 1):
        ending = {name: sum(ending[inner] for inner in names if (name, inner) in nestable) for name in names}
        total += sum(ending.values())
    return total


def make_question(
    library: Library, functions: Sequence[str], wording: Wording, notation: Notation, *, seed: int = 0, copy: int = 0
) -> ToolQuestion:
    """Make the question of one chain of functions.

    Args:
        library: The functions.
        functions: The chain, from the outside to the inside.
        wording: Names or descriptions.
        notation: Native or text.
        seed: The seed of the values.
        copy: Questions of one chain with other values have other numbers.
    """
    digest = hashlib.sha256(json.dumps([seed, copy, *functions]).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    parameters = []
    for outer, inner in itertools.pairwise(functions):
        options = nestable_parameters(library[outer], library[inner])
        if not options:
            raise BadInput(f"{outer} has no parameter for the result of {inner}.")
        parameters.append(options[int(rng.integers(len(options)))])
    given = [
        _arguments(library[name], taken, rng)
        for name, taken in itertools.zip_longest(functions, parameters, fillvalue=None)
        if name is not None
    ]
    used = [value for arguments in given for value in arguments.values()]
    results = []
    for (outer, inner), parameter in zip(itertools.pairwise(functions), parameters, strict=True):
        results.append(_new_value(library[outer], parameter, inner, rng, used))
        used.append(results[-1])
    call = Call(functions[-1], given[-1])
    for name, parameter, arguments in zip(functions[-2::-1], parameters[::-1], given[-2::-1], strict=True):
        # Arguments stand in the order of the schema.
        merged = {**arguments, parameter: call}
        call = Call(name, {each.name: merged[each.name] for each in library[name].parameters if each.name in merged})
    return ToolQuestion(
        tuple(functions), tuple(parameters), call, tuple(results), _prompt(call, library, wording, notation)
    )


def _arguments(function: Function, taken: str | None, rng: np.random.Generator) -> dict[str, Any]:
    """Values of all required parameters, and of about half of the others."""
    values = {}
    for each in function.parameters:
        if each.name == taken or (not each.required and rng.random() < 0.5):
            continue
        try:
            values[each.name] = JsonSchema(each.schema).draw(rng, f"{function.name}.{each.name}")
        except BadInput:
            if each.required:
                raise
    return values


def _new_value(outer: Function, parameter: str, inner: str, rng: np.random.Generator, used: Sequence[Any]) -> Any:
    """A result that occurs nowhere else, so that passing it on shows that the calls are connected."""
    schema = JsonSchema(outer[parameter].schema)
    for _ in range(TRIES):
        value = schema.draw(rng, f"the result of {inner} in {outer.name}.{parameter}")
        if not any(same_value(value, other) for other in used):
            return value
    raise BadInput(
        f"{outer.name}.{parameter} has too few values for the result of another function.",
        fix="list its values under `enum`, so that nothing is nested there",
    )


def _prompt(call: Call, library: Library, wording: Wording, notation: Notation) -> str:
    task = "\n".join(_described(call, library, wording, 0))
    if notation == "native":
        return NATIVE + task
    functions = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in library.tools())
    return TEXT.format(functions=functions) + task


def _described(call: Call, library: Library, wording: Wording, indent: int) -> list[str]:
    description = library[call.name].description.strip().rstrip(".")
    if wording == "descriptions" and description:
        start, inner_start = f"Do the following: {description}", "the result of the following: "
        own = description
    else:
        start, inner_start, own = f"Call `{call.name}`", "the result of calling ", f"`{call.name}`"
    lines = [
        (start if not indent else f"{inner_start}{own}")
        + (" with these arguments:" if call.arguments else " without arguments")
    ]
    for name, value in call.arguments.items():
        space = "  " * indent
        if isinstance(value, Call):
            first, *rest = _described(value, library, wording, indent + 1)
            lines += [f"{space}- {name}: {first}", *rest]
        else:
            lines.append(f"{space}- {name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


def worked_example(question: ToolQuestion, library: Library, notation: Notation) -> dict[str, Any]:
    """A question with its right answer, in the chat format in which models are fine-tuned.

    Args:
        question: The question.
        library: The functions.
        notation: Native (`tool_calls` and their results) or text.
    """
    messages: list[Mapping[str, Any]] = [{"role": "user", "content": question.prompt}]
    if notation == "text":
        answer = json.dumps(question.call.record(), ensure_ascii=False)
        return {"messages": [*messages, {"role": "assistant", "content": answer}]}
    for level in range(question.depth - 1, -1, -1):
        arguments = dict(question.chain[level].arguments)
        if level < question.depth - 1:
            arguments[question.parameters[level]] = question.results[level]
        function = {"name": question.functions[level], "arguments": json.dumps(arguments, ensure_ascii=False)}
        call = {"id": f"call_{question.depth - level}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if level:
            messages.append(result_message(call["id"], question.results[level - 1]))
    return {"messages": messages, "tools": library.tools()}


def result_message(call_id: str, result: Any) -> dict[str, Any]:
    """The message that gives a model the result of its call."""
    content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": call_id, "content": content}
