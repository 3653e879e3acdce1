"""Grammars: answers against an interpreter that reads nothing but the study examples of the prompt."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.families.episodes.grammars import COLOURS, PATTERNS, WORDS, commands, every_command, interpret
from recombine.language.vocabulary import END, PAD, SPECIAL
from recombine.testing import check_family
from recombine.training.config import RunConfig

RUN = RunConfig.model_validate({"family": "grammars"})
SPACE, FAMILY = RUN.space, RUN.family
GRAMMARS = 12


def words(context: str) -> list[tuple[int, str, list[str], list[str]]]:
    """Grammar, kind of query, prompt and answer in words, of all queries of some grammars."""
    teacher = FAMILY.draw(SPACE, jax.random.key(2))
    keys = [(number, query) for number in range(GRAMMARS) for query in FAMILY.queries]
    rows = jnp.asarray(np.stack([SPACE.row((context, "2", str(number), query)) for number, query in keys]))
    tasks = jax.vmap(lambda row: teacher.task(row, jax.random.key(0)))(rows)
    prompts, answers = jax.jit(jax.vmap(lambda task: (teacher.prompt(task), teacher.answer(task))))(tasks)
    spelled = []
    for (number, query), prompt, answer in zip(keys, np.asarray(prompts), np.asarray(answers), strict=True):
        real = prompt != PAD
        assert (np.diff(real.astype(int)) <= 0).all() and END in answer
        text = [FAMILY.vocabulary.words[token - SPECIAL] for token in prompt[real]]
        spelled.append((number, query.split()[0], text, list(FAMILY.vocabulary.spelled(answer))))
    return spelled


@pytest.fixture(scope="module")
def shown() -> list[tuple[int, str, list[str], list[str]]]:
    return words("shown")


def parts(prompt: list[str]) -> tuple[list[tuple[list[str], list[str]]], list[str]]:
    """The study examples of a prompt, each a command and its colours, and the query."""
    *study, query = " ".join(prompt).removesuffix(" ?").split(" | ")
    assert prompt[-1] == "?"
    examples = [example.split() for example in study]
    return [([w for w in e if w in WORDS], [w for w in e if w in COLOURS]) for e in examples], query.split()


def understood(prompt: list[str]) -> str:
    """The answer to the query, by rules that are inferred from the study examples. Text is rewritten, nothing is shared with the family."""
    examples, query = parts(prompt)
    colour = {command[0]: result[0] for command, result in examples if len(command) == 1}
    again = next(command[1] for command, _ in examples if len(command) == 2)
    times = {len(result) for command, result in examples if len(command) == 2}
    assert len(times) == 1
    patterns, joining = set(), ""
    for command, result in examples:
        if len(command) == 3:
            left, joining, right = command
            patterns.add("".join({colour[left]: "L", colour[right]: "R"}[c] for c in result))
    assert len(patterns) == 1
    text = " ".join(query)
    for word, meaning in colour.items():
        text = text.replace(f"{word} {again}", " ".join([meaning] * next(iter(times)))).replace(word, meaning)
    left, *others = text.split(f" {joining} ")
    for right in others:
        left = " ".join({"L": left, "R": right}[sign] for sign in next(iter(patterns)))
    return left


def test_it_conforms() -> None:
    check_family(FAMILY, SPACE)


def test_the_study_examples_determine_every_answer(shown: list) -> None:
    for _, kind, prompt, answer in shown:
        assert understood(prompt) == " ".join(answer), (kind, prompt)


def test_every_command_of_the_oracle_by_hand() -> None:
    assert interpret((0, 4, 5, 1), 3, "yxy") == [1, 0, 0, 0, 1]
    assert interpret((0, 5, 1, 5, 2), 2, "yx") == [2, 1, 0]
    assert interpret((3, 5, 2, 4), 2, "xxy") == [3, 3, 2, 2]


def test_kinds_of_queries(shown: list) -> None:
    longest_shown = {}
    for number, kind, prompt, _ in shown:
        examples, query = parts(prompt)
        assert len(examples) == 8
        longest_shown[number] = max(len(command) for command, _ in examples)
        assert (query in [command for command, _ in examples]) == (kind == "study")
        if kind == "new":
            assert len(query) <= longest_shown[number]
        if kind == "longer":
            assert len(query) == longest_shown[number] + 1
        if kind == "longest":
            assert len(query) > longest_shown[number] + 1
    assert len(set(every_command())) == len(every_command()) == 80
    assert sum(map(len, commands().values())) == 80


def test_grammars_differ(shown: list) -> None:
    rules = {number: tuple(map(str, sorted(parts(prompt)[0]))) for number, kind, prompt, _ in shown if kind == "study"}
    assert len(set(rules.values())) == GRAMMARS
    assert len(set(PATTERNS)) == 7


def test_other_contexts(shown: list) -> None:
    """The control shows examples of grammars that no episode has; the query and its answer stay."""
    every = {str(sorted(parts(prompt)[0])) for _, _, prompt, _ in shown}
    for context in ("other", "alone"):
        for (_, _, prompt, answer), (_, _, plain, right) in zip(words(context), shown, strict=True):
            examples, query = parts(prompt)
            assert query == parts(plain)[1] and answer == right
            assert str(sorted(examples)) not in every and len(examples) == (8 if context == "other" else 0)
