"""Does a network that writes its steps down compute, or does it match subgraphs that it has seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator

from recombine.component import field
from recombine.families.einstein import Einstein
from recombine.families.graph_family import GraphFamily
from recombine.families.maximum_sum import MaximumSum
from recombine.families.multiplication import Multiplication
from recombine.graphs.multiplication import digit_gains
from recombine.models.base import Model
from recombine.models.decoder import Decoder
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measurement
from recombine.probes.graph_steps import COLUMNS, GraphSteps
from recombine.recipes.fast import Fast
from recombine.spaces.instances import InstanceSpace
from recombine.spaces.lists import ListSpace
from recombine.spaces.number_pairs import NumberPairs
from recombine.studies.base import Effect, Study, Tables
from recombine.studies.reduce import at
from recombine.studies.subgraphs_claims import (
    ARMS,
    CLAIMS,
    FAILS,
    FITS,
    LISTS,
    PLAIN,
    PRODUCTS,
    PUZZLES,
    QUESTION,
    STEPS,
    fails,
    fits,
)
from recombine.supports.leading_instances import LeadingInstances
from recombine.supports.short_lists import ShortLists
from recombine.supports.small_factors import SmallFactors
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

FAMILIES: dict[str, type[GraphFamily]] = {
    LISTS: MaximumSum,
    PRODUCTS: Multiplication,
    PUZZLES: Einstein,
}


def _tiny(**parts: Any) -> dict[str, Any]:
    """A problem of the smoke profile."""
    recipe = {"kind": "fast", "tasks": 16, "samples": 1, "steps": 8}
    return {"recipe": recipe, "every": 8, "validation_tasks": 8, **parts}


SMOKE = {
    "lists": _tiny(
        family={"kind": "maximum-sum", "lists": {"kind": "lists", "longest": 5}},
        space={"kind": "lists", "longest": 5},
        support={"kind": "short-lists", "longest": 3, "number": 100, "reserve": 24},
    ),
    "products": _tiny(
        family={"kind": "multiplication", "pairs": {"kind": "number-pairs", "left": 2, "right": 2}},
        space={"kind": "number-pairs", "left": 2, "right": 2},
        support={"kind": "small-factors", "left": 1, "right": 2, "number": 60, "reserve": 24},
    ),
    "puzzles": _tiny(
        family={"kind": "einstein", "instances": {"kind": "instances", "number": 80}},
        space={"kind": "instances", "number": 80},
    ),
    "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
    "arms": (STEPS,),
    "replicates": 2,
}
PAPER = {
    "lists": {
        "family": {"kind": "maximum-sum", "lists": {"kind": "lists", "longest": 10}},
        "space": {"kind": "lists", "longest": 10},
        "support": {"kind": "short-lists", "longest": 5, "number": 200_000, "tilt": 1},
        "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 20_000},
        "every": 1000,
        "validation_tasks": 128,
    },
    "products": {
        "family": {"kind": "multiplication", "pairs": {"kind": "number-pairs", "left": 4, "right": 3}},
        "space": {"kind": "number-pairs", "left": 4, "right": 3},
        "support": {"kind": "small-factors", "left": 3, "right": 2, "number": 60_000},
        "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 20_000},
        "every": 1000,
        "validation_tasks": 128,
    },
    "puzzles": {
        "family": {"kind": "einstein", "names": 16, "instances": {"kind": "instances", "number": 19_200}},
        "space": {"kind": "instances", "number": 19_200},
        "support": {"kind": "leading-instances", "block": 16},
        "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 20_000},
        "every": 1000,
        "validation_tasks": 128,
    },
    "model": {"kind": "decoder", "width": 256, "layers": 6},
    "replicates": 12,
}
"""The fields of these two profiles; `laptop` has the defaults."""


class Subgraphs(Study):
    """Decoders that solve problems whose solution is a graph of steps, trained on small ones and tested on larger ones.

    Lists of which the largest sum of entries is sought, no two of them neighbours; products of two numbers; Einstein's puzzles. Every
    token that a network writes is a node that can be right, restored, wrong because of its parents, or wrong by itself.
    """

    kind: Literal["subgraphs"] = "subgraphs"
    question: ClassVar[str] = (
        "Does a network that writes its steps down compute, or does it match subgraphs that it has seen?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": SMOKE,
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": PAPER,
    }
    cells: ClassVar[tuple[str, ...]] = ("problem", "arm")
    shown: ClassVar[tuple[str, ...]] = (
        "exact_in",
        "exact_beyond",
        "result_beyond",
        "flawed_beyond",
        "short_beyond",
        "share_correct_beyond",
        "share_propagation_beyond",
        "share_local_beyond",
        "step_error_beyond",
        "step_recovery_beyond",
        "bound_beyond",
    )

    lists: RunConfig = RunConfig(
        family=MaximumSum(),
        space=ListSpace(),
        support=ShortLists(longest=4, tilt=1),
        model=Decoder(),
        recipe=Fast(tasks=64, samples=1, steps=1000),
        every=500,
        validation_tasks=64,
    )
    """Maximum sums. Whether steps are written and where tokens stand is set by the sweep."""
    products: RunConfig = RunConfig(
        family=Multiplication(),
        space=NumberPairs(),
        support=SmallFactors(),
        model=Decoder(),
        recipe=Fast(tasks=32, samples=1, steps=4500),
        every=1500,
        validation_tasks=64,
    )
    """Multiplication."""
    puzzles: RunConfig = RunConfig(
        family=Einstein(houses=2, attributes=3, names=45, instances=InstanceSpace(number=19_800)),
        space=InstanceSpace(number=19_800),
        support=LeadingInstances(block=45),
        model=Decoder(),
        recipe=Fast(tasks=64, samples=1, steps=2500),
        every=500,
        validation_tasks=64,
    )
    """Einstein's puzzle. With fewer names networks memorise the puzzles; with three houses they need far longer."""
    model: field("models", Model) = Decoder(width=64)  # type: ignore[valid-type]
    arms: tuple[Literal["steps", "question only", "steps, plain places"], ...] = (STEPS, QUESTION, PLAIN)
    """What is written down, and where. What is left out here saves the time to compile it; its claims are then not decided."""
    first_seed: int = 2000
    """Seeds from 1000 decided before steps were judged in answers of the right length alone."""
    spread: PositiveInt = 2
    """Random places at which tokens stand are so many times as many as the longest prompt and answer have tokens."""
    replicates: PositiveInt = 8
    """Independent replicates: what is trained on, initialisation and order of the data."""

    @model_validator(mode="after")
    def _graphs(self) -> Self:
        for problem, config in self.problems.items():
            wanted = FAMILIES[problem].model_fields["kind"].default
            if not (isinstance(config.family, FAMILIES[problem]) and config.family.steps):
                raise ValueError(f"{problem} is {config.family.kind}: it must be {wanted}, with its steps")
        return self

    @property
    def problems(self) -> dict[str, RunConfig]:
        """The problems by name."""
        return {LISTS: self.lists, PRODUCTS: self.products, PUZZLES: self.puzzles}

    def family(self, problem: str) -> GraphFamily:
        """The family of a problem, with steps."""
        family = self.problems[problem].family
        assert isinstance(family, GraphFamily)
        return family

    def _parts(self, problem: str, arm: str) -> dict[str, Any]:
        """What an arm of a problem has of its own."""
        family = self.family(problem).model_copy(update={"steps": arm != QUESTION})
        spread = 0 if arm == PLAIN else self.spread * (family.longest_prompt + family.longest)
        support = self.problems[problem].support
        # The largest that is trained on: beyond its length training would pay for pads.
        prompts = answers = 0
        if isinstance(support, ShortLists):
            prompts, answers = family.lengths(support.longest)
        elif isinstance(support, SmallFactors):
            prompts, answers = family.lengths(10 * support.left + support.right)
        return {
            "family": family,
            "objective": NextToken(spread=spread, prompts=prompts, answers=answers),
            "model": self.model,
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        return [
            (self.run(config, seed, **parts), {"problem": problem, "arm": arm, "replicate": seed})
            for problem, config in self.problems.items()
            for arm in ARMS[problem]
            if arm in self.arms
            for parts in [self._parts(problem, arm)]
            for seed in self.seeds
        ]

    def measurements(self) -> list[Measurement]:
        return [GraphSteps()]

    def part(
        self, tables: Tables, part: str, problem: str | None = None, arm: str | None = None
    ) -> pd.DataFrame:
        """A part of the table of `graph-steps`: `answers`, `result` or `steps`, of one problem and arm or of all."""
        frame = tables.others["graph-steps"].reindex(columns=["problem", "arm", "replicate", *COLUMNS])
        for name, value in (("part", part), ("problem", problem), ("arm", arm)):
            frame = frame if value is None else frame[frame[name] == value]
        return frame

    def _slips(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """Slips of the deeper half of steps less those of the shallower half.

        Within operations, numbers of parents and lengths: a step with more parents has more to get wrong, and lies deeper.
        """
        frame = self.part(tables, "steps", LISTS, STEPS)
        frame = frame[frame["beyond"].astype(bool)]
        alike = ["replicate", "size", "step", "parents"]
        cells = frame.groupby(alike)["place"]
        deep = frame["place"] > (cells.transform("min") + cells.transform("max")) / 2
        sums = frame.assign(deep=deep).groupby([*alike, "deep"])[["slips", "sound"]].sum()
        rates = (sums["slips"] / sums["sound"].where(sums["sound"] > 0)).unstack("deep")
        rates = rates.reindex(columns=[False, True])
        rise = (rates[True] - rates[False]).groupby("replicate").mean()
        return rise.reindex(list(self.seeds)).to_numpy(dtype=float)

    def by_digit(self, tables: Tables, arm: str) -> pd.DataFrame:
        """Digits of products: replicate, size, beyond, place, right, and what digits of the factors tell of them."""
        frame = self.part(tables, "result", PRODUCTS, arm)
        gain, skill = [], []
        for size, place, share in zip(
            frame["size"].astype(int),
            frame["place"].astype(int),
            frame["right"] / frame["number"],
            strict=True,
        ):
            told = digit_gains(*divmod(size, 10))
            gain.append(told.gain[place - 1])
            skill.append((share - told.common[place - 1]) / (1 - told.common[place - 1]))
        return frame.assign(accuracy=frame["right"] / frame["number"], gain=gain, skill=skill)

    def _told(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """Skill at digits that are told most less skill at those told least, in larger products; mean over sizes."""
        frame = self.by_digit(tables, QUESTION)
        frame = frame[frame["beyond"].astype(bool) & (frame["size"] % 10 > 1) & (frame["size"] // 10 > 1)]
        cells = frame.groupby(["replicate", "size"])["gain"]
        rank, half = cells.rank(method="first"), cells.transform("size") // 2
        most, least = rank > cells.transform("size") - half, rank <= half
        means = [frame[one].groupby(["replicate", "size"])["skill"].mean() for one in (most, least)]
        return (
            (means[0] - means[1]).groupby("replicate").mean().reindex(list(self.seeds)).to_numpy(dtype=float)
        )

    def _skill(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        frame = self.by_digit(tables, QUESTION)
        own = frame[~frame["beyond"].astype(bool)].groupby("replicate")["skill"].mean()
        return own.reindex(list(self.seeds)).to_numpy(dtype=float)

    def effects(self, tables: Tables) -> list[Effect]:
        def run(name: str, problem: str = LISTS, arm: str = STEPS) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, problem=problem, arm=arm)

        values = {fits(*cell): run("exact_in", *cell) for cell in FITS}
        values |= {fails(*cell): run("exact_in", *cell) - run("exact_beyond", *cell) for cell in FAILS}
        for problem, end in ((LISTS, ""), (PRODUCTS, "-products")):
            shares = [run(f"share_{label}_beyond", problem) for label in ("propagation", "local")]
            values[f"errors-propagate{end}"] = shares[0] - shares[1]
            values[f"seen-subgraphs-are-right{end}"] = run("frequency_of_right_beyond", problem)
        values |= {
            "answers-are-too-short": run("short_beyond"),
            "places-are-not-all": run("exact_beyond") - run("exact_beyond", LISTS, PLAIN),
            "slips-rise-with-depth": self._slips(tables),
            "rates-carry-over": run("off_prediction_beyond"),
            "told-digits-are-right": self._told(tables),
            "results-are-learned": self._skill(tables),
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.subgraphs_figures import figures

        return figures(self, tables)
