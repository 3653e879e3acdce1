"""Grids: what the prompt shows determines the tested cells, and in rotated grids it does not."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from recombine.errors import BadInput
from recombine.families import Grids
from recombine.language.vocabulary import END, PAD, SPECIAL
from recombine.spaces import ProductSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig

RUN = RunConfig.model_validate({"family": "grids"})
SPACE, FAMILY = RUN.space, RUN.family


@pytest.fixture(scope="module")
def written() -> Any:
    """Prompts and answers in words of all queries of some grids: `written(context, turned)` maps a grid and a query to both."""

    @functools.cache
    def make(context: str, turned: bool = False) -> dict[tuple[int, str], tuple[list[str], list[str]]]:
        teacher = FAMILY.replace(turned=turned).draw(SPACE, jax.random.key(1))
        keys = [(number, query) for number in range(6) for query in FAMILY.queries]
        rows = jnp.asarray(np.stack([SPACE.row((context, "1", str(number), query)) for number, query in keys]))
        tasks = jax.vmap(lambda row: teacher.task(row, jax.random.key(0)))(rows)
        prompts, answers = jax.jit(jax.vmap(lambda task: (teacher.prompt(task), teacher.answer(task))))(tasks)
        words = FAMILY.vocabulary.words
        found = {}
        for key, prompt, answer in zip(keys, np.asarray(prompts), np.asarray(answers), strict=True):
            real = prompt != PAD
            assert (np.diff(real.astype(int)) <= 0).all() and answer[-1] == END
            found[key] = (
                [words[token - SPECIAL] for token in prompt[real]],
                [words[token - SPECIAL] for token in answer[:-1]],
            )
        return found

    return make


def examples(prompt: list[str]) -> list[tuple[str, ...]]:
    """The study examples of a prompt: colour, animal, column and row of each."""
    return [tuple(prompt[start : start + 4]) for start in range(0, len(prompt) - 3, 4)]


def test_it_conforms() -> None:
    check_family(FAMILY, SPACE)


@pytest.mark.parametrize("context", ["blocked", "interleaved"])
def test_the_shown_cells_determine_the_others(written: Any, context: str) -> None:
    for (_, query), (prompt, answer) in written(context).items():
        shown = examples(prompt)
        assert len(shown) == len(set(shown)) == 9
        colour, animal = prompt[-3:-1]
        column = {example[2] for example in shown if example[0] == colour}
        row = {example[3] for example in shown if example[1] == animal}
        assert [column, row] == [{answer[0]}, {answer[1]}]
        assert any(example[:2] == (colour, animal) for example in shown) == query.startswith("shown")


def test_blocked_shows_one_line_after_the_other(written: Any) -> None:
    mixed = 0
    for name in ("blocked", "interleaved"):
        for prompt, _ in written(name).values():
            shown = examples(prompt)
            changes = [
                sum(a == b for a, b in zip(one[:2], other[:2], strict=True)) for one, other in itertools.pairwise(shown)
            ]
            # Neighbours in a line share a colour or an animal; only where one line ends and the other begins they may not.
            if name == "blocked":
                assert changes.count(0) <= 1
            mixed += name == "interleaved" and changes.count(0) > 1
    assert mixed > 20
    sets = [
        {key: set(examples(prompt)) for key, (prompt, _) in written(name).items()}
        for name in ("blocked", "interleaved")
    ]
    assert sets[0] == sets[1], "the same cells are shown"


def test_rotated_grids_are_not_read_off(written: Any) -> None:
    places: dict[int, list[tuple[str, ...]]] = {}
    for (number, query), (prompt, answer) in written("rotated").items():
        places.setdefault(number, []).append(tuple(answer))
        if query.startswith("tested"):
            colour, animal = prompt[-3:-1]
            shown = examples(prompt)
            once = [[e for e in shown if e[place] == word] for place, word in ((0, colour), (1, animal))]
            assert [len(found) for found in once] == [1, 1]
            assert answer[0] != once[0][0][2] and answer[1] != once[1][0][3]
    assert all(len(set(cells)) == 25 for cells in places.values()), "each cell has a place of its own"


def test_a_prompt_alone_shows_the_query_only(written: Any) -> None:
    alone, blocked = written("alone"), written("blocked")
    assert all(len(prompt) == 3 and prompt == blocked[key][0][-3:] for key, (prompt, _) in alone.items())
    assert all(answer == blocked[key][1] for key, (_, answer) in alone.items())


def test_turned_grids_let_the_animal_decide_the_column(written: Any) -> None:
    by_animal = set()
    for (number, _), (prompt, _) in written("blocked", turned=True).items():
        shown = examples(prompt)
        if len({(e[0], e[2]) for e in shown}) > 5:
            by_animal.add(number)
            assert len({(e[1], e[2]) for e in shown}) == 5
    assert 0 < len(by_animal) < 6


def test_bad_input() -> None:
    with pytest.raises(ValidationError, match="must be odd: choose 3 or 5"):
        Grids(side=4)
    with pytest.raises(BadInput, match="needs the space of its episodes"):
        FAMILY.check(ProductSpace(factors={"a": 2, "b": 2}))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="with the contexts blocked, interleaved, rotated, alone and 9 queries"):
        Grids(side=3).check(SPACE)
    with pytest.raises(ValidationError, match="names=4 are too few"):
        Grids(names=4)
    small = RunConfig.model_validate({"family": {"kind": "grids", "side": 3}})
    assert small.space.levels[-1] == 9, "the space follows from the family"  # type: ignore[attr-defined]
