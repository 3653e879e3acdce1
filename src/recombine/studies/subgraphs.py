"""Does a network that writes its steps down compute, or does it match subgraphs that it has seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator

from recombine.component import field
from recombine.families.maximum_sum import MaximumSum
from recombine.models.base import Model
from recombine.models.decoder import Decoder
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measurement
from recombine.probes.graph_steps import GraphSteps, sayable
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.lists import ListSpace
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.reduce import at
from recombine.supports.short_lists import ShortLists
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

STEPS, QUESTION, PLAIN = "steps", "question only", "steps, plain places"
ARMS = (STEPS, QUESTION, PLAIN)
"""All steps are written down; only the answer is; all steps, with tokens at places one after another, of which the later
ones are never trained."""

_claim = claims_of("subgraphs")

NEEDS = ("fits-steps",)

CLAIMS = (
    _claim(
        "fits-steps",
        "With steps, lists of trained lengths that were held out are answered wholly right (exact match).",
        "above",
        0.95,
        role="precondition",
    ),
    _claim(
        "fits-question",
        "Without steps, lists of trained lengths that were held out are answered wholly right (exact match).",
        "above",
        0.9,
        role="precondition",
    ),
    _claim(
        "fits-plain",
        "With steps and plain places, lists of trained lengths that were held out are answered wholly right (exact match).",
        "above",
        0.95,
        role="precondition",
    ),
    _claim(
        "longer-lists-fail",
        "With all steps written down, longer lists than those trained on are answered right far less often (exact match, "
        "trained lengths less longer ones).",
        "greater",
        0.4,
        primary=True,
        needs=NEEDS,
    ),
    _claim(
        "longer-lists-fail-without-steps",
        "The same where only the answer is said.",
        "greater",
        0.4,
        needs=("fits-question",),
    ),
    _claim(
        "places-are-not-all",
        "Places that were never trained are not the reason: longer lists fail as well where tokens stand at random places in "
        "training (exact match, random places less plain ones).",
        "below",
        0.2,
        needs=("fits-steps", "fits-plain"),
    ),
    _claim(
        "depth-hurts",
        "In longer lists the share of steps that are right with all that they follow from falls with depth (shallower half "
        "less deeper half; by its definition it cannot rise, so that only how much it falls is asked).",
        "greater",
        0.1,
        needs=NEEDS,
    ),
    _claim(
        "errors-propagate",
        "In longer lists more steps are wrong because of wrong ones before them than by themselves (share of steps, "
        "propagation less local).",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "seen-subgraphs-are-right",
        "In longer lists, steps that are right with all that they follow from have subgraphs that were more frequent in training "
        "than those of other steps of the same kind, depth and length (log2 of 1 + frequency).",
        "greater",
        0.1,
        needs=NEEDS,
    ),
)
"""Stated before any run that decides, and versioned with this file."""


class Subgraphs(Study):
    """Decoders that find the largest sum of entries of a list, no two of them neighbours, trained on short lists.

    The steps of the solution are a graph, so every token that a network writes is a node that can be right, restored, wrong
    because of its parents, or wrong by itself.
    """

    kind: Literal["subgraphs"] = "subgraphs"
    question: ClassVar[str] = (
        "Does a network that writes its steps down compute, or does it match subgraphs that it has seen?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": {"kind": "maximum-sum", "lists": {"kind": "lists", "longest": 4}},
                "space": {"kind": "lists", "longest": 4},
                "support": {"kind": "short-lists", "longest": 3, "number": 100, "reserve": 24},
                "recipe": {"kind": "fast", "tasks": 16, "samples": 1, "steps": 8},
                "every": 8,
                "validation_tasks": 8,
            },
            "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
            "spread": 24,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "maximum-sum", "lists": {"kind": "lists", "longest": 10}},
                "space": {"kind": "lists", "longest": 10},
                "support": {"kind": "short-lists", "longest": 5, "number": 200_000},
                "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 20_000},
                "every": 1000,
                "validation_tasks": 128,
            },
            "model": {"kind": "decoder", "width": 256, "layers": 6},
            "spread": 128,
            "replicates": 12,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("arm",)
    shown: ClassVar[tuple[str, ...]] = (
        "accuracy_in",
        "accuracy_held_out",
        "share_correct_in",
        "share_correct_beyond",
        "share_propagation_beyond",
        "share_local_beyond",
        "bound_beyond",
    )

    base: RunConfig = RunConfig(
        family=MaximumSum(),
        space=ListSpace(),
        support=ShortLists(),
        model=Decoder(),
        recipe=Fast(tasks=128, samples=1, steps=1000),
        every=250,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; whether steps are written and where tokens stand is set by the sweep."""
    model: field("models", Model) = Decoder()  # type: ignore[valid-type]
    spread: PositiveInt = 64
    """Below this number lie the random places at which tokens stand."""
    replicates: PositiveInt = 8
    """Independent replicates: lists, initialisation and order of the data."""

    @model_validator(mode="after")
    def _lists(self) -> Self:
        family, support = self.base.family, self.base.support
        if not (isinstance(family, MaximumSum) and family.steps and isinstance(support, ShortLists)):
            raise ValueError(
                f"base is {family.kind} on {support.kind}: it must be maximum-sum with its steps, on short-lists"
            )
        return self

    @property
    def longest(self) -> int:
        """The length of the longest lists that are trained on."""
        support = self.base.support
        assert isinstance(support, ShortLists)
        return support.longest

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        family = self.base.family
        arms = {
            STEPS: (family, NextToken(spread=self.spread)),
            QUESTION: (family.model_copy(update={"steps": False}), NextToken(spread=self.spread)),
            PLAIN: (family, NextToken()),
        }
        return [
            (
                self.run(self.base, seed, family=own, objective=objective, model=self.model),
                {"arm": arm, "replicate": seed},
            )
            for arm, (own, objective) in arms.items()
            for seed in self.seeds
        ]

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=2048, draws=1, samples=1), GraphSteps()]

    def by_length(self, tables: Tables) -> pd.DataFrame:
        """Held-out lists: arm, replicate, length, and whether the answer is wholly right.

        Without lists whose sums are larger than any in training, as their words would be new.
        """
        frame = tables.combinations.reindex(columns=["arm", "replicate", "region", "combination", "whole"])
        frame = frame[frame["region"] == "held_out"]
        names = frame["combination"].astype(str)
        kept = names.map({name: self._sayable(name) for name in names.unique()}).astype(bool)
        return frame.assign(length=names.str.count(" ") + 1, right=frame["whole"].astype(float))[kept]

    def _sayable(self, name: str) -> bool:
        space = self.base.space
        assert isinstance(space, ListSpace)
        row = space.of(np.array([name.split()], dtype=int))
        return bool(sayable(space, row, self.longest)[0])

    def accuracy(self, tables: Tables, arm: str, beyond: bool) -> Float[np.ndarray, " replicate"]:
        """Exact match on held-out lists of trained lengths, or on longer ones: mean over lengths."""
        frame = self.by_length(tables)
        own = frame[(frame["arm"] == arm) & ((frame["length"] > self.longest) == beyond)]
        means = own.groupby(["replicate", "length"])["right"].mean().groupby("replicate").mean()
        return means.reindex(list(self.seeds)).to_numpy(dtype=float)

    def by_depth(self, tables: Tables, arm: str = STEPS) -> pd.DataFrame:
        """Steps of longer lists: replicate, depth, and the share of each label."""
        frame = tables.others["graph-steps"].reindex(
            columns=["arm", "replicate", "length", "depth", "label", "nodes"]
        )
        own = frame[(frame["arm"] == arm) & (frame["length"] > self.longest)]
        wide = own.pivot_table(index=["replicate", "depth"], columns="label", values="nodes", aggfunc="sum")
        return wide.div(wide.sum(axis=1), axis=0).reset_index()

    def _depth_effect(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        frame = self.by_depth(tables).reindex(columns=["replicate", "depth", "correct"])
        if frame.empty:
            return np.full(len(self.seeds), np.nan)
        middle = frame["depth"].max() / 2
        halves = [
            frame[chosen].groupby("replicate")["correct"].mean()
            for chosen in (frame["depth"] <= middle, frame["depth"] > middle)
        ]
        return (halves[0] - halves[1]).reindex(list(self.seeds)).to_numpy(dtype=float)

    def effects(self, tables: Tables) -> list[Effect]:
        def run(name: str) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, arm=STEPS)

        inside = {arm: self.accuracy(tables, arm, beyond=False) for arm in ARMS}
        beyond = {arm: self.accuracy(tables, arm, beyond=True) for arm in ARMS}
        values = {
            "fits-steps": inside[STEPS],
            "fits-question": inside[QUESTION],
            "fits-plain": inside[PLAIN],
            "longer-lists-fail": inside[STEPS] - beyond[STEPS],
            "longer-lists-fail-without-steps": inside[QUESTION] - beyond[QUESTION],
            "places-are-not-all": beyond[STEPS] - beyond[PLAIN],
            "depth-hurts": self._depth_effect(tables),
            "errors-propagate": run("share_propagation_beyond") - run("share_local_beyond"),
            "seen-subgraphs-are-right": run("frequency_of_right_beyond"),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.subgraphs_figures import figures

        return figures(self, tables)
