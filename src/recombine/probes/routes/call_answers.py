"""How right the calls of a network are: whole programs, names, arguments, order, invented names and results, by what is new."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from pydantic import PositiveInt

from recombine.calling import Call, CallScores, Function, Library, Program, program_table, read_calls, score_program
from recombine.calling.listed import WHOLE, ListedExample, description_words
from recombine.errors import BadInput
from recombine.families.sequences.function_calls import SPLITS, FunctionCalls, FunctionCallsTeacher, Written
from recombine.language.vocabulary import SPECIAL
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import at_once, over_tasks
from recombine.training import RunConfig, Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

TRAINED, RENAMED = "trained", "renamed"
WHERE = (TRAINED, *SPLITS, RENAMED)
"""The programs of training, the tests, and the test `seen` with other names in its prompts than in its right answers."""
METRICS = {
    "whole": "ast",
    "names": "name_f1",
    "arguments": "argument_f1",
    "order": "order",
    "hallucinated": "hallucinated",
    "executed": "executed",
}
"""The columns of the fields of `CallScores`."""


@dataclasses.dataclass(frozen=True)
class CallTask:
    """The answer to one prompt, and the prompt. A second number in the row says whether its names are exchanged."""

    objective: Objective
    names: int
    candidates: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row[:1], key, 1)
        given = jnp.where(row[1] > 0, exchanged(code, self.names, self.candidates), code)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (given, batch))
        return {"prompt": code, "answer": self.objective.evaluate(network, codes, batches, key)[0, 0]}


def exchanged(code: Array, names: int, candidates: int) -> Array:
    """A prompt in which each listed function has the name of the next one.

    Args:
        code: The tokens. Their first names are those of the list.
        names: The number of names, the first words of the vocabulary.
        candidates: The number of listed functions.
    """
    is_name = (code >= SPECIAL) & (code < SPECIAL + names)
    number = jnp.cumsum(is_name) - 1
    listed = is_name & (number < candidates)
    place = jnp.where(listed, number, candidates)
    shown = jnp.zeros(candidates, code.dtype).at[place].set(code, mode="drop")
    return jnp.where(listed, jnp.roll(shown, -1)[jnp.where(listed, number, 0)], code)


class CallAnswers(Measurement):
    """The calls that a network answers requests with, scored as programs. For the family `function-calls`.

    Programs are scored where training has them (`trained`) and by what is new in them: nothing (`seen`), a function, a pair of
    functions, the depth. The summary has the mean of each metric: AST match (`ast`), F1 of function names and of arguments, the
    longest common subsequence of names (`order`), the share of called names that the prompt does not list (`hallucinated`), and
    whether the executed result is right. `ast_renamed` is a control: the prompts of `seen` with their names exchanged, scored
    against the answers before the exchange.

    The table has one row per nested pair of functions of each program, with how often training nests the pair. It is a table
    for `recombine audit`: factors `outer` and `inner`, training where `coverage` is `nested`.
    """

    kind: Literal["call-answers"] = "call-answers"
    trained: PositiveInt = 200
    """Training programs that are scored: one for each pair that training nests, and others up to this number."""

    def summary_columns(self, config: RunConfig) -> frozenset[str]:
        scores = {f"{metric}_{where}" for metric in METRICS.values() for where in WHERE if where != RENAMED}
        return frozenset(scores | {f"ast_{RENAMED}", "pairs_nested", "training_tokens", "answer_tokens"})

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, teacher = setting.config, setting.teacher
        family = config.family
        if not isinstance(family, FunctionCalls) or not isinstance(teacher, FunctionCallsTeacher):
            raise BadInput(
                f"call-answers measures calls of functions; this run has the family {family.kind!r}.",
                fix="family=function-calls",
            )
        written = family.written(np.asarray(teacher.bits))
        asked = list(_asked(family, written, self.trained))
        rows = np.array([[each.instance, each.where == RENAMED] for each in asked], np.int32)
        compute = CallTask(config.objective, family.names, family.candidates)
        found = over_tasks(compute, setting, network, rows, Stream.TEST, self.kind, at_once(setting))
        prompts, answers = (np.rint(found[name]).astype(np.int32) for name in ("prompt", "answer"))
        scores = [
            score_answer(family, written.library, each.example, each.program, prompt, answer)
            for each, prompt, answer in zip(asked, prompts, answers, strict=True)
        ]
        return Measured(_summary(config, written, asked, scores), _table(written, asked, scores))


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A program that is asked for."""

    where: str
    instance: int
    example: ListedExample
    program: Program


def _asked(family: FunctionCalls, written: Written, most: int) -> Sequence[_Asked]:
    programs, pairs = written.split.train, set[tuple[str, str]]()
    known: dict[int, _Asked] = {}
    others: dict[int, _Asked] = {}
    for instance, example in enumerate(written.train):
        if example.task in WHOLE and example.program not in known:
            program = programs[example.program]
            into = others if program.pairs <= pairs else known
            into.setdefault(example.program, _Asked(TRAINED, instance, example, program))
            pairs |= program.pairs
    trained = [*known.values(), *list(others.values())[: max(0, most - len(known))]]
    tests = [
        _Asked(where, family.training_instances + number, example, program)
        for number, (example, (where, program)) in enumerate(zip(written.tests, written.test_programs, strict=True))
    ]
    again = [dataclasses.replace(each, where=RENAMED) for each in tests if each.where == "seen"]
    return [*trained, *tests, *again]


def score_answer(
    family: FunctionCalls,
    library: Library,
    example: ListedExample,
    program: Program,
    prompt: Int[np.ndarray, " word"],
    answer: Int[np.ndarray, " token"],
) -> CallScores:
    """Score the tokens of an answer as a program.

    Args:
        family: The family, whose vocabulary the tokens are of.
        library: The functions of the replicate.
        example: The example with placeholders for names.
        program: The right program, of the library's functions.
        prompt: The tokens of the prompt, with the names that were drawn.
        answer: The tokens of the answer.

    Returns:
        The scores. A name that the prompt does not list is hallucinated. An answer that cannot be read has no calls.
    """
    words = family.vocabulary
    of = family.listed_names(prompt, example)
    listed = Library(dataclasses.replace(library[function], name=name) for name, function in of.items())
    names = {function: name for name, function in of.items()}
    expected = [_renamed(call, names) for call in program.calls]
    return score_program(expected, read_calls(" ".join(words.spelled(answer)), listed).calls, listed)


def _renamed(call: Call, names: Mapping[str, str]) -> Call:
    arguments = {
        name: _renamed(value, names) if isinstance(value, Call) else value for name, value in call.arguments.items()
    }
    return Call(names[call.name], arguments)


def _summary(
    config: RunConfig, written: Written, asked: Sequence[_Asked], scores: Sequence[CallScores]
) -> dict[str, float]:
    summary: dict[str, float] = {}
    for where in WHERE:
        mean = CallScores.mean(score for each, score in zip(asked, scores, strict=True) if each.where == where)
        summary |= {f"{metric}_{where}": float(getattr(mean, field)) for field, metric in METRICS.items()}
    seen = config.recipe.steps * config.recipe.tasks
    own = {
        "pairs_nested": float(len({pair for program in written.split.train for pair in program.pairs})),
        "training_tokens": seen * float(np.mean([example.tokens for example in written.train])),
        "answer_tokens": seen * float(np.mean([len(example.answer) for example in written.train])),
    }
    # Other metrics of the control mean nothing.
    return {name: value for name, value in summary.items() if name == f"ast_{RENAMED}" or RENAMED not in name} | own


def _table(written: Written, asked: Sequence[_Asked], scores: Sequence[CallScores]) -> dict[str, list[Any]]:
    """One row per program and nested pair, with the descriptions of the functions: names mean nothing."""
    pairs = program_table(written.split.train, {"all": [each.program for each in asked]})
    library = written.library
    columns: dict[str, list[Any]] = {
        "split": [asked[number].where for number in pairs["program"]],
        "program": pairs["program"].tolist(),
        "form": [asked[number].program.form for number in pairs["program"]],
        "depth": pairs["depth"].tolist(),
        "outer": [_described(library[name]) for name in pairs["outer"]],
        "inner": [_described(library[name]) for name in pairs["inner"]],
        "trained": pairs["trained"].tolist(),
        "coverage": ["nested" if count else "never nested" for count in pairs["trained"]],
    }
    for field, metric in METRICS.items():
        columns[metric] = [float(getattr(scores[number], field)) for number in pairs["program"]]
    kept = [number for number, where in enumerate(columns["split"]) if where != RENAMED]
    return {name: [values[number] for number in kept] for name, values in columns.items()}


def _described(function: Function) -> str:
    return " ".join(description_words(function))
