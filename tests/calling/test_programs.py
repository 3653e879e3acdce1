"""The synthetic library, programs of it, what is held out, and the granular tasks made of one set of programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.audit import audit_table
from recombine.calling import (
    Call,
    Program,
    all_calls,
    draw_program,
    execute,
    granular_examples,
    nested_pairs,
    program_table,
    read_calls,
    score_program,
    split_programs,
    synthetic_library,
    umbrella_examples,
    with_tokens,
)
from recombine.calling.granular import TASKS, answer_words, request, vocabulary
from recombine.errors import BadInput

LIBRARY = synthetic_library(16, seed=3)
SPLIT = split_programs(LIBRARY, train=240, test=30, seed=1)


def test_every_function_runs_within_its_types():
    everything = synthetic_library(34, seed=0)
    assert len({function.description for function in everything.values()}) == 34
    domains = {"integer": range(10), "string": "abcdefgh"}
    for function in everything.values():
        values = [domains[each.schema["type"]] for each in function.parameters]
        for given in itertools.product(*values):
            call = Call(function.name, dict(zip([each.name for each in function.parameters], given, strict=True)))
            (result,) = execute([call], everything)
            assert result in domains[function.returns["type"]]
    assert synthetic_library(16, seed=3) == LIBRARY != synthetic_library(16, seed=4)
    with pytest.raises(BadInput, match="functions, got 3"):
        synthetic_library(3)


def test_descriptions_say_what_functions_do():
    everything = synthetic_library(34, seed=0)
    named = {function.description: function.name for function in everything.values()}
    nested = Call(named["sum of {x} and {y}"], {"x": Call(named["place of {s} plus 1"], {"s": "c"}), "y": 9})
    program = Program("nested", (nested,))
    assert " ".join(request(program, everything)) == 'sum of ( place of "c" plus 1 ) and 9'
    assert execute([nested], everything) == [(2 + 1 + 9) % 10]
    chained = Program("chained", (nested,))
    assert " ".join(request(chained, everything)) == 'place of "c" plus 1 then sum of result 1 and 9'


def test_what_is_held_out_is_new_and_nothing_else_is():
    met = {pair for program in SPLIT.train for pair in program.pairs}
    nested = {name for pair in met for name in pair}
    assert len(SPLIT.train) == 240 and {len(tests) for tests in SPLIT.tests.values()} == {30}
    assert {call.name for program in SPLIT.train for call in all_calls(program.calls)} == set(LIBRARY)
    assert {program.form for program in SPLIT.train} == {"nested", "chained", "parallel"}
    assert not met & SPLIT.pairs and not nested & SPLIT.functions and max(one.depth for one in SPLIT.train) == 2
    trained = {"; ".join(map(str, program.calls)) for program in SPLIT.train}
    for tests in SPLIT.tests.values():
        assert not trained & {"; ".join(map(str, program.calls)) for program in tests}
    for program in SPLIT.tests["seen"]:
        assert program.depth == 2 and program.pairs <= met
    for program in SPLIT.tests["function"]:
        assert {name for pair in program.pairs for name in pair} & SPLIT.functions and program.depth == 2
    for program in SPLIT.tests["pair"]:
        assert program.pairs <= SPLIT.pairs and {name for pair in program.pairs for name in pair} <= nested
    for program in SPLIT.tests["depth"]:
        assert program.depth == 3 and program.pairs <= met


def test_all_tasks_are_made_of_the_same_programs():
    granular, umbrella = granular_examples(SPLIT.train, LIBRARY), umbrella_examples(SPLIT.train, LIBRARY)
    assert {example.task for example in granular} == set(TASKS)
    assert {example.program for example in granular} == {example.program for example in umbrella} == set(range(240))
    for number, program in enumerate(SPLIT.train):
        mine = [example for example in granular if example.program == number]
        calls = all_calls(program.calls)
        count = len(calls)
        assert len(mine) == 1 + (count + 1) + 1 + count + 1
        by_task = {task: [example.answer for example in mine if example.task == task] for task in TASKS}
        assert by_task["name detection"] == [tuple(call.name for call in calls)]
        assert [answer[0] for answer in by_task["next best function"]] == [*(call.name for call in calls), "done"]
        results = execute(program.calls, LIBRARY)
        said = " ".join(by_task["response generation"][0])
        assert said == "the result is " + " , ".join(
            f'"{one}"' if isinstance(one, str) else str(one) for one in results
        )
        # Without nesting, arguments are written as a call has them.
        if program.form == "parallel":
            assert [" ".join(answer) for answer in by_task["parameter detection"]] == [
                " , ".join(f"{key} = {LITERAL(value)}" for key, value in call.arguments.items()) for call in calls
            ]


def LITERAL(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_written_answers_are_read_back_and_scored():
    programs = [program for tests in SPLIT.tests.values() for program in tests] + list(SPLIT.train)
    for program in programs:
        calls = read_calls(" ".join(answer_words(program)), LIBRARY).calls
        scores = score_program(program.calls, calls, LIBRARY)
        assert calls == program.calls and (scores.whole, scores.names, scores.executed) == (1, 1, 1)
    # The words of tests are those of training, but for the number of a third result.
    words = vocabulary(granular_examples(SPLIT.train, LIBRARY))
    tests = vocabulary([one for some in SPLIT.tests.values() for one in umbrella_examples(some, LIBRARY)])
    assert set(tests) - set(words) <= {"umbrella", "r3", "result"}


def test_equal_tokens():
    granular, umbrella = granular_examples(SPLIT.train, LIBRARY), umbrella_examples(SPLIT.train, LIBRARY)
    for examples in (granular, umbrella):
        chosen = with_tokens(examples, 20_000, np.random.default_rng(0))
        tokens = sum(example.tokens for example in chosen)
        assert 20_000 - max(example.tokens for example in examples) < tokens <= 20_000
    with pytest.raises(BadInput, match="no tokens"):
        with_tokens(umbrella, 0, np.random.default_rng(0))


def test_the_certificate_is_a_table_for_the_audit():
    right = {
        name: [float(not program.pairs & SPLIT.pairs) for program in programs] for name, programs in SPLIT.tests.items()
    }
    table = program_table(SPLIT.train, SPLIT.tests, right)
    assert len(table) == sum(len(program.pairs) for tests in SPLIT.tests.values() for program in tests)
    trained = table.groupby("test")["trained"]
    assert trained.min()["seen"] > 0 and trained.min()["depth"] > 0
    assert trained.max()["pair"] == trained.max()["function"] == 0
    train = table[table["trained"] > 0][["outer", "inner"]].drop_duplicates()
    audit = audit_table(table, factors=["outer", "inner"], scores="right", train=train, quick=True)
    strata = {stratum.name: stratum.combinations for stratum in audit.scores[0].gap.strata}
    assert sum(strata.values()) == len(table.groupby(["outer", "inner"]))


def test_forms_and_bad_splits():
    rng = np.random.default_rng(0)
    parallel = draw_program(LIBRARY, rng, form="parallel", parallel=3)
    assert parallel is not None and len(parallel.calls) == 3 and not nested_pairs(parallel.calls)
    for wrong, said in (
        ({"deeper": 2}, "deeper"),
        ({"functions": 16}, "cannot be held out"),
        ({"pairs": 999}, "can nest"),
        ({"train": 16, "depth": 1, "functions": 0, "pairs": 0, "test": 5000}, "were found"),
    ):
        with pytest.raises(BadInput, match=said):
            split_programs(LIBRARY, **({"train": 40, "test": 4} | wrong))
