"""What the training data covers of each held-out input, and whether the network answered it right."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Teacher
from recombine.families.hops import Hops, HopsTeacher
from recombine.families.vocabulary import SPECIAL
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.graph_steps import Answer
from recombine.probes.tasks import over_tasks
from recombine.supports.coverage_graph import CoverageGraph
from recombine.supports.hops import Chain, HopSupport, steps
from recombine.training.compiling import compiled
from recombine.training.prepare import Setting
from recombine.training.streams import Stream

FRAGMENTS: dict[Chain, tuple[tuple[int, ...], ...]] = {
    "two-hop": ((0, 1),),
    "non-tree": ((0, 1),),
    "three-hop": ((0, 1), (0, 1, 2)),
}
"""Which positions could stand for one value in between. Nothing else about a chain enters the cutoffs."""


class Cutoffs(Measurement):
    """Held-out inputs, one a row: `cutoff` by the training examples alone, and whether the answer is `right`.

    Beside it stand what only the rule tells: whether all facts of the input were seen in training (`known`), and whether
    the commonest training answer to its last token would be right (`guess`). For `hops`.
    """

    kind: Literal["cutoffs"] = "cutoffs"
    combinations: PositiveInt = 2048
    """The most held-out inputs that are answered."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        family, support = setting.config.family, setting.support
        if not (isinstance(family, Hops) and isinstance(support, HopSupport)):
            raise BadInput(
                f"Cutoffs are those of chains of functions; {family.kind!r} on {setting.config.support.kind!r} has none.",
                fix="family=hops and support=hops",
            )
        asked = setting.regions.require("held_out", self.combinations, "test")
        trained, inputs = (_inputs(rows, family.tokens) for rows in (support.rows, asked))
        outcomes, truth = (_outcomes(setting.teacher, rows) for rows in (support.rows, asked))
        cutoffs = CoverageGraph(trained, outcomes, FRAGMENTS[family.chain]).cutoffs(inputs)
        compute = Answer(setting.config.objective)
        said = over_tasks(compute, setting, network, asked, Stream.TEST, self.kind)["said"]
        # What lies in between may be said before it; the answer itself stands before END.
        right = np.round(said[:, -2]).astype(np.int64) - SPECIAL == truth
        columns: dict[str, np.ndarray] = {
            "cutoff": cutoffs,
            "right": right.astype(float),
            "known": known_facts(family.chain, trained, inputs, support.inner),
            "guess": (commonest(trained[:, -1], outcomes, family.tokens)[inputs[:, -1]] == truth).astype(
                float
            ),
        }
        names = [" ".join(map(str, one)) for one in inputs.tolist()]
        summary = {"answered": float(right.mean()), "covered": float((cutoffs > 0).mean())}
        return Measured(summary, {"input": names} | {name: part.tolist() for name, part in columns.items()})


def _inputs(rows: Int[np.ndarray, "n position"], tokens: int) -> Int[np.ndarray, "n position"]:
    return rows.astype(np.int64) - tokens * np.arange(rows.shape[1])


def _outcomes(teacher: Teacher, rows: Int[np.ndarray, "n position"]) -> Int[np.ndarray, " n"]:
    assert isinstance(teacher, HopsTeacher)
    return np.asarray(_answered(teacher, jnp.asarray(rows))).astype(np.int64) - SPECIAL


@compiled
def _answered(teacher: Any, rows: Any) -> Any:
    key = jax.random.key(0)  # A task of these has nothing that is drawn.
    return jax.vmap(lambda row: teacher.answer(teacher.task(row, key))[-2])(rows)


def known_facts(
    chain: Chain,
    trained: Int[np.ndarray, "n position"],
    inputs: Int[np.ndarray, "m position"],
    inner: Int[np.ndarray, "function token token"],
) -> Bool[np.ndarray, " m"]:
    """Whether training has an example for each fact of an input: the arguments of each function on its way."""
    size = inner.shape[1]
    found = np.ones(len(inputs), dtype=bool)
    for fact, asked in zip(steps(chain, trained, inner), steps(chain, inputs, inner), strict=True):
        shape = (size,) * len(fact)
        found &= np.isin(np.ravel_multi_index(asked, shape), np.ravel_multi_index(fact, shape))
    return found


def commonest(
    last: Int[np.ndarray, " n"], outcomes: Int[np.ndarray, " n"], tokens: int
) -> Int[np.ndarray, " token"]:
    """The answer that training has most often where inputs end with each token."""
    counts = np.zeros((tokens, tokens), dtype=np.int64)
    np.add.at(counts, (last, outcomes), 1)
    return counts.argmax(axis=1)
