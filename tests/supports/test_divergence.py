"""Atoms, compounds and their divergence, against counting words of sentences and values worked out by hand."""

from __future__ import annotations

import collections
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.spaces.scan import ScanSpace
from recombine.spaces.scan.language import CONJUNCTIONS, PHRASES, command, parse
from recombine.supports.compound_divergence.divergence import (
    ATOMS,
    TOGETHER,
    atom_counts,
    atom_divergence,
    compound_counts,
    compound_divergence,
    divergence,
    usage,
)

COMPOUNDS = (
    *(" ".join(words) for words in TOGETHER),
    *(
        f"{' '.join(phrase)} {conjunction} ..." if role == "first" else f"... {conjunction} {' '.join(phrase)}"
        for conjunction in CONJUNCTIONS
        for role in ("first", "last")
        for phrase in PHRASES
    ),
)
"""The names of compounds, in the order of their counts."""


def rows(*texts: str) -> np.ndarray:
    return np.array([parse(text) for text in texts])


@functools.cache
def every() -> np.ndarray:
    return ScanSpace().enumerate()


def counted(names: tuple[str, ...], counts: np.ndarray) -> dict[str, float]:
    return {name: count for name, count in zip(names, counts.tolist(), strict=True) if count}


def compounds_of(words: tuple[str, ...]) -> collections.Counter[str]:
    """The compounds of one command, from its words."""
    found: collections.Counter[str] = collections.Counter()
    cut = next((place for place, word in enumerate(words) if word in ("and", "after")), None)
    phrases = [words] if cut is None else [words[:cut], words[cut + 1 :]]
    for phrase in phrases:
        for number in (2, 3):
            found.update(" ".join(some) for some in itertools.combinations(phrase, number))
    if cut is not None:
        found[f"{' '.join(phrases[0])} {words[cut]} ..."] += 1
        found[f"... {words[cut]} {' '.join(phrases[1])}"] += 1
    return found


def test_one_command_by_hand():
    used = usage(rows("jump around left and walk"))
    assert counted(ATOMS, atom_counts(used)) == dict.fromkeys(["and", "walk", "jump", "around", "left"], 1)
    assert counted(COMPOUNDS, compound_counts(used)) == dict.fromkeys(
        ["jump around", "jump left", "around left", "jump around left", "jump around left and ...", "... and walk"],
        1,
    )  # fmt: skip
    assert counted(COMPOUNDS, compound_counts(usage(rows("jump")))) == {}
    assert counted(ATOMS, atom_counts(usage(rows("jump", "jump twice")))) == {"jump": 2, "twice": 1}


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 20909), min_size=1, max_size=12), st.data())
def test_counts_against_sentences(chosen: list[int], data: st.DataObject):
    some = st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen))
    weights = data.draw(st.just([1] * len(chosen)) | some)
    atoms: collections.Counter[str] = collections.Counter()
    compounds: collections.Counter[str] = collections.Counter()
    for number, weight in zip(chosen, weights, strict=True):
        words = command(every()[number])
        for word in words:
            atoms[word] += weight
        for name, often in compounds_of(words).items():
            compounds[name] += often * weight
    used = usage(every()[chosen], np.array(weights, float))
    assert counted(ATOMS, atom_counts(used)) == atoms
    assert counted(COMPOUNDS, compound_counts(used)) == compounds


def test_every_compound_occurs_and_has_its_own_name():
    assert len(set(COMPOUNDS)) == len(COMPOUNDS)
    assert (compound_counts(usage(every())) > 0).all()


def test_equal_and_disjoint():
    p = np.array([1.0, 3, 0, 6])
    for alpha in (0.1, 0.5, 0.9):
        assert divergence(p, 7 * p, alpha) == pytest.approx(0, abs=1e-12)
        assert divergence(p, np.array([0, 0, 2.0, 0]), alpha) == 1


def test_by_hand():
    p, q = np.array([1.0, 1, 0]), np.array([1.0, 2, 1])
    # Shares 1/2, 1/2, 0 and 1/4, 1/2, 1/4.
    assert divergence(p, q, 0.5) == pytest.approx(1 - (math.sqrt(1 / 8) + 1 / 2))
    assert divergence(p, q, 0.1) == pytest.approx(1 - (0.5**0.1 * 0.25**0.9 + 0.5))


def test_lists_by_hand():
    train, test = usage(rows("walk left", "run twice")), usage(rows("walk twice"))
    # Words: walk, left, run, twice against walk, twice; compounds: none in both.
    assert atom_divergence(train, test) == pytest.approx(1 - 2 * math.sqrt(1 / 4 * 1 / 2))
    assert compound_divergence(train, test) == 1
    assert compound_divergence(train, usage(rows("walk"))) == 0
    assert compound_divergence(usage(rows("walk")), test) == 1


FREQUENCIES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=200)
@given(FREQUENCIES, st.floats(0.01, 0.99))
def test_range_and_symmetry(pairs: list[tuple[int, int]], alpha: float):
    p, q = np.array(pairs, float).T
    if not p.any() or not q.any():
        with pytest.raises(BadInput, match="not all 0"):
            divergence(p, q, alpha)
        return
    found = divergence(p, q, alpha)
    assert 0 <= found <= 1
    assert found == pytest.approx(divergence(q, p, 1 - alpha), abs=1e-9)
    assert divergence(p, q, 0.5) == pytest.approx(divergence(q, p, 0.5), abs=1e-9)
    assert (found > 1e-6) <= (not np.allclose(p / p.sum(), q / q.sum()))
    assert (found == 1) == (not (p * q).any())


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_bad_alpha(alpha: float):
    with pytest.raises(BadInput, match="not between 0 and 1"):
        divergence(np.ones(2), np.ones(2), alpha)


@pytest.mark.parametrize("wrong", [[-1.0, 2], [np.nan, 1], [0.0, 0]])
def test_bad_frequencies(wrong: list[float]):
    with pytest.raises(BadInput, match="at least 0"):
        divergence(np.ones(2), np.array(wrong), 0.5)
