"""The commands of SCAN, against a grammar that writes sentences, an interpreter of sentences, and brute force."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.component import resolve
from recombine.errors import BadInput
from recombine.spaces.scan import ScanSpace, language
from recombine.spaces.scan.language import (
    ACTIONS,
    PHRASES,
    WORDS,
    action_counts,
    action_numbers,
    actions,
    command,
    numbers,
    parse,
    parts_of,
    rows_of,
    word_numbers,
)
from recombine.testing import check_space

GRAMMAR = {
    "C": ["S and S", "S after S", "S"],
    "S": ["V twice", "V thrice", "V"],
    "V": ["U", "U left", "U right", "D", "turn left", "turn right"],
    "D": [f"{who} {how} {where}" for who in ("U", "turn") for how in ("opposite", "around") for where in ("left", "right")],
    "U": ["walk", "look", "run", "jump"],
}  # fmt: skip


def sentences(form: str) -> Iterator[str]:
    """Every sentence that the grammar makes of a form: its first open symbol is replaced in all ways."""
    words = form.split()
    for place, word in enumerate(words):
        if word in GRAMMAR:
            for rule in GRAMMAR[word]:
                yield from sentences(" ".join([*words[:place], rule, *words[place + 1 :]]))
            return
    yield form


def meaning(text: str) -> str:
    """What a command says to do, by taking it apart from its end."""
    for word, order in ((" and ", (0, 1)), (" after ", (1, 0))):
        if word in text:
            sides = [meaning(side) for side in text.split(word)]
            return " ".join(sides[one] for one in order)
    for word, times in ((" twice", 2), (" thrice", 3)):
        if text.endswith(word):
            return " ".join([meaning(text.removesuffix(word))] * times)
    for where in ("left", "right"):
        turn = f"I_TURN_{where.upper()}"
        for how, template in ((" around", "{t} {a} " * 4), (" opposite", "{t} {t} {a}"), ("", "{t} {a}")):
            if text.endswith(f"{how} {where}"):
                act = meaning(text.removesuffix(f"{how} {where}"))
                return " ".join(template.format(t=turn, a=act).split())
    return {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP", "turn": ""}[text]


@functools.cache
def every() -> np.ndarray:
    return ScanSpace().enumerate()


@functools.cache
def members() -> set[tuple[int, ...]]:
    return {tuple(row) for row in every().tolist()}


def test_numbers_of_the_space():
    space = ScanSpace()
    forms = {tuple(word for word in phrase if word not in ("twice", "thrice")) for phrase in PHRASES}
    assert (len(forms), len(PHRASES)) == (34, 102)
    assert space.size == 102 + 2 * 102**2 == 20910
    assert (space.width, space.slots) == (24, 9)
    assert every().shape == (20910, 9)


@functools.cache
def texts() -> list[str]:
    """All commands, by the table of their words."""
    return spelt(WORDS, word_numbers(every()))


def spelt(names: tuple[str, ...], table: np.ndarray) -> list[str]:
    return [" ".join(names[one] for one in line if one < len(names)) for line in table.tolist()]


def test_commands_are_those_of_the_grammar():
    written = list(sentences("C"))
    assert len(written) == len(set(written)) == 20910
    assert set(texts()) == set(written)


def test_actions_are_those_of_an_interpreter_of_sentences():
    assert spelt(ACTIONS, action_numbers(every())) == [meaning(text) for text in texts()]


def test_one_command_at_a_time():
    done = spelt(ACTIONS, action_numbers(every()))
    for index in range(0, 20910, 31):
        row = every()[index]
        assert " ".join(command(row)) == texts()[index]
        assert " ".join(actions(row)) == done[index]
        assert (parse(texts()[index]) == row).all()


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("walk", "I_WALK"),
        ("look left", "I_TURN_LEFT I_LOOK"),
        ("run opposite right", "I_TURN_RIGHT I_TURN_RIGHT I_RUN"),
        ("jump around left", "I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP"),
        ("turn right", "I_TURN_RIGHT"),
        ("turn opposite left", "I_TURN_LEFT I_TURN_LEFT"),
        ("turn around right", "I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT"),
        ("jump twice", "I_JUMP I_JUMP"),
        ("turn left thrice", "I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT"),
        ("look opposite left twice", "I_TURN_LEFT I_TURN_LEFT I_LOOK I_TURN_LEFT I_TURN_LEFT I_LOOK"),
        ("walk and jump", "I_WALK I_JUMP"),
        ("walk after jump", "I_JUMP I_WALK"),
        ("walk twice after jump left", "I_TURN_LEFT I_JUMP I_WALK I_WALK"),
        ("walk right and walk right", "I_TURN_RIGHT I_WALK I_TURN_RIGHT I_WALK"),
    ],
)
def test_every_construction(text: str, done: str):
    row = parse(text)
    assert actions(row) == tuple(done.split())
    assert command(row) == tuple(text.split())
    assert (parse(text.split()) == row).all()
    assert action_counts(row) == len(done.split())


def test_the_longest_command():
    counts = action_counts(every())
    assert (counts.min(), counts.max()) == (1, 48)
    assert counts.max() == len(actions(parse("walk around left thrice after run around right thrice")))
    assert language.MOST_ACTIONS == 48 and language.MOST_WORDS == 9
    assert 23 not in counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a phrase of SCAN, in the command ''"),
        ("fly left", "'fly left' is not a phrase"),
        ("turn", "'turn' is not a phrase"),
        ("turn twice", "'turn twice' is not a phrase"),
        ("walk around", "'walk around' is not a phrase"),
        ("walk around twice", "'walk around twice' is not a phrase"),
        ("walk left right", "'walk left right' is not a phrase"),
        ("walk twice twice", "'walk twice twice' is not a phrase"),
        ("walk and", "'' is not a phrase of SCAN, in the command 'walk and'"),
        ("and walk", "'' is not a phrase of SCAN, in the command 'and walk'"),
        ("walk and run after jump", "'run after jump' is not a phrase"),
        ("walk twice and run twice and", "'run twice and' is not a phrase"),
    ],
)  # fmt: skip
def test_word_lists_that_are_not_commands_are_refused(text: str, message: str):
    with pytest.raises(BadInput, match=message):
        parse(text)


def test_tables_are_the_same_where_compiled():
    said, done = word_numbers(every()), action_numbers(every())
    assert said.shape == (20910, 9) and done.shape == (20910, 48)
    some = jnp.asarray(every()[::7])
    for function, wanted in ((word_numbers, said), (action_numbers, done), (numbers, numbers(every()))):
        np.testing.assert_array_equal(jax.jit(jax.vmap(function))(some), wanted[::7])
    np.testing.assert_array_equal(jax.jit(action_counts)(some), action_counts(every())[::7])


def test_numbers_and_rows_are_inverse():
    all_numbers = np.arange(20910)
    np.testing.assert_array_equal(numbers(rows_of(all_numbers)), all_numbers)
    conjunction, first, last = parts_of(numbers(parse("jump twice after look")))
    assert conjunction == 2
    assert PHRASES[int(first)] == ("jump", "twice") and PHRASES[int(last)] == ("look",)


def test_enumeration_is_in_order():
    rows = every()
    assert rows.dtype == np.int32
    assert len(members()) == 20910
    keys = [((row < 24).sum(), tuple(row)) for row in rows]
    assert keys == sorted(keys)
    assert ScanSpace().contains(rows).all()


def test_rows_show_which_words_occur_together():
    space = ScanSpace()
    alone = {space.label(part) for part in space.constituents(parse("jump"))}
    assert alone == {"first=jump", "last=jump"}
    names = [space.label(part) for part in space.constituents(parse("walk around right and jump twice"))]
    assert names == ["and", "first=walk", "first=around", "first=right", "last=jump", "last=twice"]
    assert space.name(parse("walk around right and jump twice")) == "walk around right and jump twice"
    with pytest.raises(IndexError):
        space.label(24)


@pytest.mark.parametrize("parts", [[], [0], [0, 2], [2], [2, 14], [0, 1, 2, 13], [6, 17], [2, 7, 13, 18]])
def test_row_refuses_constituents_that_are_not_a_command(parts: list[int]):
    with pytest.raises(BadInput, match="is not a combination"):
        ScanSpace().row(parts)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 20909), st.lists(st.tuples(st.integers(0, 8), st.integers(-1, 26)), max_size=3), st.booleans())
def test_membership_of_rows_that_are_nearly_commands(index: int, changes: list, in_order: bool):
    row = every()[index].copy()
    for place, part in changes:
        row[place] = part
    if in_order:
        row.sort()
    assert ScanSpace().contains(row[None]).tolist() == [tuple(row.tolist()) in members()]


def test_sampling_is_uniform_over_commands(drawn: Callable, fairness: Callable):
    rows = drawn(ScanSpace(), 6 * 20910)
    assert rows.dtype == np.int32
    assert fairness(rows, every()) > 1e-3


def test_second_moment_against_brute_force():
    space = ScanSpace()
    vectors = np.array([[part in row for part in range(24)] for row in every().tolist()], float)
    np.testing.assert_allclose(space.second_moment(), vectors.T @ vectors / len(vectors), rtol=1e-12)
    space.second_moment()[:] = 0
    assert space.second_moment().any()


@pytest.mark.parametrize("strength", [1, 2, 3, 8, 9])
def test_interactions_against_brute_force(strength: int):
    space = ScanSpace()
    lists = [[part for part in row if part < 24] for row in every().tolist()]
    sets = {parts for one in lists for parts in itertools.combinations(one, strength)}
    listed = space.list_interactions(strength)
    assert listed.shape == (space.interactions(strength), strength)
    assert {tuple(row) for row in listed.tolist()} == sets
    assert len(sets) == len(listed)


def test_interactions_are_sampled_uniformly(fairness: Callable):
    space = ScanSpace()
    rows = space.sample_interactions(np.random.default_rng(0), 2, 5000)
    assert fairness(rows, space.list_interactions(2)) > 1e-3
    for strength in (0, 10):
        assert space.interactions(strength) == 0
        with pytest.raises(BadInput, match=r"choose 1\.\.9"):
            space.sample_interactions(np.random.default_rng(0), strength, 5)


def test_it_is_a_component():
    assert resolve("spaces", "scan") == ScanSpace()
    check_space(ScanSpace())
