"""Episodes: which episodes, contexts and queries are trained, and which are tested."""

from __future__ import annotations

import pytest

from recombine.errors import BadInput
from recombine.families.episodes import episode_space
from recombine.overrides import validate
from recombine.spaces import ProductSpace
from recombine.supports import Episodes
from recombine.testing import check_support

SPACE = ProductSpace.model_validate(episode_space(("shown", "alone"), ("study a", "study b", "new c"), side=4))
MANY = Episodes(
    number=6, contexts=("shown",), queries=("study",), tested=3, test_contexts=("shown", "alone"), test_queries=("new",)
)
ONE = Episodes(number=1, within=True, contexts=("alone",), queries=("study",), tested=3, test_queries=("new",))


def named(rows: object) -> set[tuple[str, int, str]]:
    """Context, number of the episode and query of rows."""
    found = set()
    for row in rows:  # type: ignore[attr-defined]
        parts = [SPACE.label(int(part)).split("=")[1] for part in row]
        found.add((parts[0], 4 * int(parts[1]) + int(parts[2]), parts[3]))
    return found


@pytest.mark.parametrize("kind", [MANY, ONE], ids=["many", "one"])
def test_it_conforms(kind: Episodes) -> None:
    check_support(kind, SPACE)


def test_many_episodes_are_tested_on_others() -> None:
    support = MANY.draw(SPACE, seed=0)
    assert named(support.rows) == {("shown", number, query) for number in range(6) for query in ("study a", "study b")}
    wanted = {(context, number, "new c") for context in ("shown", "alone") for number in (13, 14, 15)}
    assert named(support.reserved) == wanted


def test_within_one_episode_other_queries_are_tested() -> None:
    support = ONE.draw(SPACE, seed=0)
    assert named(support.rows) == {("alone", 13, "study a"), ("alone", 13, "study b")}
    assert named(support.reserved) == {("alone", 13, "new c")}


def test_bad_input() -> None:
    for changes, message in (
        ({"number": 14}, "number=14 training episodes and tested=3 do not fit: the space has 16"),
        ({"contexts": ("showed",)}, "contexts has 'showed'"),
        ({"test_queries": ("newer",)}, "test_queries has 'newer'"),
        ({"within": True, "number": 1, "test_queries": ("study",)}, "training and test must have different queries"),
        ({"within": True, "number": 4}, "do not fit"),
    ):
        with pytest.raises(BadInput, match=message):
            MANY.replace(**changes).check(SPACE)
    with pytest.raises(BadInput, match="needs a space with the factors context, block, episode, query"):
        validate(Episodes, {}).check(ProductSpace.model_validate({"factors": {"a": 3, "b": 3}}))
