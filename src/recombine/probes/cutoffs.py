"""Coverage cutoffs of held-out inputs by the training data, and whether the network answers them correctly."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.base import Teacher
from recombine.families.chained.hops import Hops, HopsTeacher
from recombine.language.vocabulary import SPECIAL
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import AnswerTask, over_tasks
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
"""The positions that an intermediate value may summarise. The cutoffs use nothing else about a chain."""


Inputs = Int[np.ndarray, "_ position"]


class Cutoffs(Measurement):
    """One row per held-out input: its `cutoff`, from the training examples alone, and whether the answer is `right`.

    Two more columns need the rule of the task: whether all facts of the input occur in training (`known`), and whether the
    most frequent training answer to its last token is right (`guess`). For the family `hops`.
    """

    kind: Literal["cutoffs"] = "cutoffs"
    combinations: PositiveInt = 2048
    """The largest number of held-out inputs."""

    summary_names: ClassVar[tuple[str, ...]] = ("answered", "covered")

    def measure(self, setting: Setting, network: Network) -> Measured:
        family, support = setting.config.family, setting.support
        if not (isinstance(family, Hops) and isinstance(support, HopSupport)):
            raise BadInput(
                f"cutoffs needs chains of functions; this run has {family.kind!r} on {setting.config.support.kind!r}.",
                fix="family=hops and support=hops",
            )
        held_out = setting.regions.require("held_out", self.combinations, "test")
        trained, inputs = (_inputs(rows, family.tokens) for rows in (support.rows, held_out))
        outcomes, truth = (_outcomes(setting.teacher, rows) for rows in (support.rows, held_out))
        cutoffs = CoverageGraph(trained, outcomes, FRAGMENTS[family.chain]).cutoffs(inputs)
        compute = AnswerTask(setting.config.objective)
        answers = over_tasks(compute, setting, network, held_out, Stream.TEST, self.kind)["answer"]
        # Intermediate values may come first; the answer itself is the token before END.
        right = np.round(answers[:, -2]).astype(np.int64) - SPECIAL == truth
        columns: dict[str, np.ndarray] = {
            "cutoff": cutoffs,
            "right": right.astype(float),
            "known": known_facts(family.chain, trained, inputs, support.inner),
            "guess": (most_frequent(trained[:, -1], outcomes, family.tokens)[inputs[:, -1]] == truth).astype(float),
        }
        names = [" ".join(map(str, tokens)) for tokens in inputs.tolist()]
        summary = {"answered": float(right.mean()), "covered": float((cutoffs > 0).mean())}
        return Measured(summary, {"input": names} | {name: column.tolist() for name, column in columns.items()})


def _inputs(rows: Inputs, tokens: int) -> Inputs:
    return rows.astype(np.int64) - tokens * np.arange(rows.shape[1])


def _outcomes(teacher: Teacher, rows: Inputs) -> Int[np.ndarray, " n"]:
    assert isinstance(teacher, HopsTeacher)
    return np.asarray(_answered(teacher, jnp.asarray(rows))).astype(np.int64) - SPECIAL


@compiled
def _answered(teacher: Any, rows: Any) -> Any:
    key = jax.random.key(0)  # Tasks of this family have no random part.
    return jax.vmap(lambda row: teacher.answer(teacher.task(row, key))[-2])(rows)


def known_facts(chain: Chain, trained: Inputs, inputs: Inputs, inner: np.ndarray) -> Bool[np.ndarray, " m"]:
    """Whether training has an example of each fact of an input. A fact is a function with its arguments.

    `inner` has the tables of the inner functions.
    """
    size = inner.shape[1]
    known = np.ones(len(inputs), dtype=bool)
    for trained_fact, fact in zip(steps(chain, trained, inner), steps(chain, inputs, inner), strict=True):
        shape = (size,) * len(fact)
        known &= np.isin(np.ravel_multi_index(fact, shape), np.ravel_multi_index(trained_fact, shape))
    return known


def most_frequent(
    last: Int[np.ndarray, " n"], outcomes: Int[np.ndarray, " n"], tokens: int
) -> Int[np.ndarray, " token"]:
    """The most frequent training answer to inputs that end with each token."""
    counts = np.bincount(tokens * last + outcomes, minlength=tokens**2)
    return counts.reshape(tokens, tokens).argmax(axis=1)
