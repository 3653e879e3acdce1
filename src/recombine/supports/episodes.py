"""Trains on the queries of some episodes and tests others: new episodes, or other queries of the same ones."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
from jaxtyping import Int
from pydantic import PositiveInt

from recombine.errors import BadInput, did_you_mean
from recombine.spaces import ProductSpace, Space
from recombine.supports import Listed, SupportKind
from recombine.supports.listed.kinds import check_memory

FACTORS = ("context", "block", "episode", "query")


class Episodes(SupportKind):
    """Trains on queries of the first `number` episodes. The test has queries of the last `tested` episodes.

    With `within`, training has other queries of the tested episodes themselves: of the first `number` of them, and only these
    are tested. That is the network without episodes. A test of new episodes and a test within the same ones have episodes in common.

    Example:
        ```python
        Episodes(number=1000, queries=("tested",), test_contexts=("blocked", "rotated"), test_queries=("tested",))
        Episodes(number=1, within=True, contexts=("alone",), queries=("shown",), test_queries=("tested",))
        ```
    """

    kind: Literal["episodes"] = "episodes"
    defined_on = (ProductSpace,)
    number: PositiveInt = 1000
    """The number of training episodes."""
    within: bool = False
    """Train on the tested episodes themselves, on other queries."""
    contexts: tuple[str, ...] = ()
    """What training prompts show; empty for the first context of the space."""
    queries: tuple[str, ...] = ()
    """The kinds of training queries: the first words of their names. Empty for all."""
    tested: PositiveInt = 16
    """The number of episodes that are kept for the test."""
    test_contexts: tuple[str, ...] = ()
    """What the prompts of the test show; empty for the training contexts."""
    test_queries: tuple[str, ...] = ()
    """The kinds of tested queries; empty for all."""

    def obstacle(self, space: Space) -> BadInput | None:
        if not isinstance(space, ProductSpace) or tuple(name for name, _ in space.factors) != FACTORS:
            return BadInput(
                f"episodes needs a space with the factors {', '.join(FACTORS)}, got {space.title}.",
                fix="family=grids or family=grammars, which bring their space",
            )
        return None

    def check(self, space: Space) -> None:
        super().check(space)
        assert isinstance(space, ProductSpace)
        contexts, kinds = self._known(space)
        for name, given, known in (
            ("contexts", self.contexts, contexts),
            ("test_contexts", self.test_contexts, contexts),
            ("queries", self.queries, kinds),
            ("test_queries", self.test_queries, kinds),
        ):
            for value in given:
                if value not in known:
                    raise BadInput(
                        f"{name} has {value!r}, which the space does not have.", fix=did_you_mean(value, known)
                    )
        _, blocks, episodes, _ = space.levels
        most = self.tested if self.within else blocks * episodes - self.tested
        if not 1 <= self.number <= most:
            fix = f"number={most}" if most > 0 else f"tested={blocks * episodes - 1}, or fewer"
            raise BadInput(
                f"number={self.number} training episodes and tested={self.tested} do not fit: the space has {blocks * episodes}.",
                fix=fix,
            )
        if self.within and set(self._queries(space, self.queries)) & set(self._queries(space, self.test_queries)):
            raise BadInput(
                "Within the same episodes, training and test must have different queries.",
                fix=f"set queries and test_queries to different kinds of {', '.join(kinds)}",
            )
        check_memory(self.length(space), "a smaller number")

    def _known(self, space: ProductSpace) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The contexts of the space and the kinds of its queries."""
        contexts, queries = dict(space.factors)["context"], dict(space.factors)["query"]
        return contexts, tuple(dict.fromkeys(query.split(" ")[0] for query in queries))

    def _queries(self, space: ProductSpace, kinds: tuple[str, ...]) -> list[int]:
        """The numbers of the queries of these kinds."""
        queries = dict(space.factors)["query"]
        return [place for place, query in enumerate(queries) if not kinds or query.split(" ")[0] in kinds]

    def _contexts(self, space: ProductSpace, given: tuple[str, ...]) -> list[int]:
        """The numbers of the contexts."""
        contexts = dict(space.factors)["context"]
        return [contexts.index(name) for name in given or self.contexts or contexts[:1]]

    def _numbers(self, space: ProductSpace) -> tuple[range, range]:
        """The numbers of the training episodes and those of the tested ones."""
        total = space.levels[1] * space.levels[2]
        first = total - self.tested
        if self.within:
            return range(first, first + self.number), range(first, first + self.number)
        return range(self.number), range(first, total)

    def length(self, space: Space) -> int:
        assert isinstance(space, ProductSpace)
        return self.number * len(self._contexts(space, self.contexts)) * len(self._queries(space, self.queries))

    def draw(self, space: Space, seed: int) -> Listed:
        self.check(space)
        assert isinstance(space, ProductSpace)
        trained, tested = self._numbers(space)
        rows = _rows(space, self._contexts(space, self.contexts), trained, self._queries(space, self.queries))
        held_out = self._contexts(space, self.test_contexts), tested, self._queries(space, self.test_queries)
        return Listed(space, rows, reserved=_rows(space, *held_out))


def _rows(space: ProductSpace, contexts: list[int], numbers: range, queries: list[int]) -> Int[np.ndarray, "n slots"]:
    """The rows of all these contexts, episodes and queries."""
    values = np.array(list(itertools.product(contexts, numbers, queries)))
    context, number, query = values.T
    digits = np.stack([context, number // space.levels[2], number % space.levels[2], query], axis=1)
    return (digits + np.array(space.offsets)).astype(np.int32)
