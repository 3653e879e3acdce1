"""Examples whose prompts list functions: what they list, what stays unknown in training, and that they can be answered."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.calling import Library, all_calls, read_calls, split_programs, synthetic_library
from recombine.calling.granular import TASKS
from recombine.calling.listed import (
    SEPARATOR,
    description_words,
    listed_examples,
    listed_words,
    placeholders,
    whole_example,
)
from recombine.calling.synthetic import RESERVED
from recombine.errors import BadInput

LIBRARY = synthetic_library(14, seed=5)
HELD_OUT = tuple(LIBRARY)[:2]
KNOWN = set(LIBRARY) - set(HELD_OUT)
SPLIT = split_programs(LIBRARY, train=60, test=10, functions=HELD_OUT, pairs=8, seed=1, absent=True)
SHOWN = {"granular": True, "candidates": 4, "known": KNOWN}


def test_held_out_functions_are_absent_from_training() -> None:
    called = {call.name for program in SPLIT.train for call in all_calls(program.calls)}
    assert called == KNOWN and SPLIT.functions == set(HELD_OUT)
    for program in SPLIT.tests["function"]:
        assert program.functions & SPLIT.functions
    examples = listed_examples(SPLIT.train, LIBRARY, **SHOWN, rng=np.random.default_rng(0))
    assert not {name for example in examples for name in example.functions} & SPLIT.functions
    with pytest.raises(BadInput, match="no function 'nobody'"):
        split_programs(LIBRARY, train=60, test=10, functions=("nobody",))


def test_prompts_list_the_functions_that_are_called() -> None:
    examples = listed_examples(SPLIT.train, LIBRARY, **SHOWN, rng=np.random.default_rng(0))
    known = set(listed_words(8))
    assert {example.task for example in examples} == set(TASKS)
    for example in examples:
        assert set(example.prompt) | set(example.answer) <= known and not set(example.prompt) & set(LIBRARY)
        assert SPLIT.train[example.program].functions <= set(example.functions) and len(set(example.functions)) == 4
        before = example.prompt[1 : example.prompt.index(SEPARATOR)]
        listing = [
            word
            for name, function in zip(placeholders(4), example.functions, strict=True)
            for word in (name, *description_words(LIBRARY[function]))
        ]
        assert list(before) == ([] if example.task == "response generation" else listing)
        if example.task == "next best function":
            made = example.prompt[len(example.prompt) - example.prompt[::-1].index(SEPARATOR) :]
            calls = all_calls(SPLIT.train[example.program].calls)
            names = dict(zip(example.functions, placeholders(4), strict=True))
            expected = [*(names[call.name] for call in calls), "done"]
            assert [*made, *example.answer] == expected[: len(made) + 1]
    with pytest.raises(BadInput, match="cannot be listed"):
        listed_examples(SPLIT.train, LIBRARY, granular=False, candidates=1, known=KNOWN, rng=np.random.default_rng(0))


def test_a_whole_example_is_answered_by_the_program() -> None:
    rng = np.random.default_rng(3)
    for tests in SPLIT.tests.values():
        for program in tests:
            for granular in (True, False):
                example = whole_example(program, LIBRARY, granular=granular, candidates=4, known=KNOWN, rng=rng)
                names = dict(zip(placeholders(4), example.functions, strict=True))
                words = " ".join(names.get(word, word) for word in example.answer)
                assert read_calls(words, Library(LIBRARY.values())).calls == program.calls


def test_names_are_no_words() -> None:
    assert not set(placeholders(300)) & RESERVED and len(set(placeholders(300))) == 300
    words = listed_words(24)
    assert words[:24] == placeholders(24) and len(set(words)) == len(words)
