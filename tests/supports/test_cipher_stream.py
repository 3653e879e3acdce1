"""Streams of lines: how often each kind comes, and that held-out texts never do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.cipher_stream import CipherStream, cipher_space, line_names, rows_of, texts_of
from recombine.testing import check_support

SPACE = cipher_space(6, 6)
SMALL = {"words": 2, "lexicon": 12, "number": 3000, "reserve": 6}


def stream(seed: int = 0, **given: Any) -> Any:
    return CipherStream.model_validate({**SMALL, **given}).draw(SPACE, seed)


@pytest.mark.parametrize("given", [{}, {"skew": 1.0}, {"even_texts": True}, {"common": 4}])
def test_conformance(given: dict[str, Any]) -> None:
    check_support(CipherStream.model_validate({**SMALL, "number": 600, "skew": 9.0, **given}), SPACE)


def test_kinds_of_lines() -> None:
    names = line_names(6)
    assert names[:3] == ("text", "decode 1", "decode 2") and names[-1] == "encode 5" and len(names) == 11


def test_rows_and_texts_are_inverse() -> None:
    support = stream()
    kinds, texts = texts_of(SPACE, support.rows)
    np.testing.assert_array_equal(rows_of(SPACE, kinds, texts), support.rows)


@pytest.mark.parametrize("skew", [1.0, 60.0])
def test_shares_are_those_of_the_configuration(skew: float) -> None:
    support = stream(common=2, skew=skew, text=0.4)
    kinds, _ = texts_of(SPACE, support.rows)
    counts = np.bincount(kinds, weights=support.weights, minlength=11)
    total = counts.sum()
    others = 0.6 / 2 / (skew + 4)
    expected = np.full(11, others)
    expected[[0, 2, 7]] = 0.4, skew * others, skew * others
    assert np.all(np.abs(counts / total - expected) < 5 * np.sqrt(expected / total))
    assert (counts > 0).all(), "every shift is trained"


def test_no_line_contains_a_held_out_text() -> None:
    support = stream()
    trained = {text.tobytes() for text in texts_of(SPACE, support.rows)[1]}
    held_out = {text.tobytes() for text in support.graded.reshape(-1, 6).astype(np.int64)}
    assert len(held_out) == 18 and not trained & held_out
    kinds, texts = texts_of(SPACE, support.reserved)
    assert {text.tobytes() for text in texts} == held_out
    assert (np.bincount(kinds) == 18).all(), "each held-out text is asked for in every way"


@pytest.mark.parametrize("given", [{"skew": 1.0}, {"common": 5}, {"even_texts": True}, {"number": 2000}])
def test_language_and_test_do_not_depend_on_the_stream(given: dict[str, Any]) -> None:
    one, other = stream(3), stream(3, **given)
    np.testing.assert_array_equal(one.reserved, other.reserved)
    np.testing.assert_array_equal(one.language.follow, other.language.follow)


def test_replicates_have_different_languages_and_common_shifts() -> None:
    supports = [stream(seed) for seed in range(8)]
    assert len({support.common for support in supports}) > 2
    assert len({support.language.listed.tobytes() for support in supports}) == 8


def test_texts_are_skewed_unless_they_are_even() -> None:
    for even, least in ((False, 0.75), (True, 0.0)):
        support = stream(even_texts=even)
        words = texts_of(SPACE, support.rows)[1].reshape(-1, 2, 3)[:, 0] @ 6 ** np.arange(3)[::-1]
        known = np.isin(words, support.language.listed @ 6 ** np.arange(3)[::-1])
        share = np.average(known, weights=support.weights)
        assert share > least and (not even or share < 0.15)


@pytest.mark.parametrize(
    ("given", "match"),
    [({"words": 4}, "words must divide 6"), ({"common": 6}, "choose 1 to 5"), ({"number": 100_000}, "or longer texts")],
)
def test_bad_input(given: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        CipherStream.model_validate({**SMALL, **given}).check(SPACE)


@pytest.mark.parametrize(
    "space", [SubsetSpace(modules=4, max_active=2), ProductSpace.model_validate({"factors": {"a": 4, "b": 5}})]
)
def test_other_spaces_are_refused(space: Any) -> None:
    with pytest.raises(BadInput, match="needs the space of cipher lines"):
        CipherStream().check(space)


def test_a_stream_that_lacks_a_shift_is_refused() -> None:
    with pytest.raises(BadInput, match="would never be trained"):
        stream(number=100)


def test_a_stream_without_enough_different_lines() -> None:
    kind = CipherStream.model_validate(
        {**SMALL, "lexicon": 2, "law": 9.0, "made_up": 0.001, "number": 12_000, "reserve": 1}
    )
    with pytest.raises(BadInput, match=r"different ones|less probable"):
        kind.draw(SPACE, 0)
