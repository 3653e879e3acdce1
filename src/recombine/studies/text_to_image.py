"""Where does a text-to-image model fail to compose, and do its blocks say so?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt, model_validator

from recombine.families.scenes import Scenes
from recombine.probes.base import Measurement
from recombine.probes.concepts import Concepts
from recombine.probes.gallery import Gallery
from recombine.probes.readout import Readout
from recombine.probes.scores import Scores
from recombine.spaces.product import ProductSpace
from recombine.studies.base import Effect, Study, Tables, ascend
from recombine.studies.reduce import at
from recombine.studies.text_to_image_claims import (
    ARMS,
    BESIDE,
    CLAIMS,
    COMPLETE,
    CORNER,
    FITS,
    MISSING,
    ONE,
    RANDOM,
    SCALING,
)
from recombine.studies.text_to_image_relation import (
    OVER_RUNS,
    RIVALS,
    Sizes,
    by_combination,
    by_factor,
    exchanges,
    independence,
    lost,
    over_runs,
    related,
)
from recombine.supports.base import SupportKind
from recombine.supports.corner import Corner
from recombine.supports.gaps import Gaps
from recombine.supports.planned import Planned
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

ONE_THING = {
    "shape": ("disc", "square", "triangle", "cross"),
    "colour": ("red", "green", "blue", "yellow", "purple", "cyan", "orange", "white"),
    "size": ("small", "large"),
    "place": ("top left", "top right", "bottom left", "bottom right"),
}
TWO_THINGS = {
    "left shape": ("disc", "cross"),
    "left colour": ("red", "green", "blue", "yellow"),
    "right shape": ("disc", "cross"),
    "right colour": ("red", "green", "blue", "yellow"),
}


class TextToImage(Study):
    """Small flow-matching U-Nets that draw scenes from captions, trained on what covers the combinations and what does not.

    Success is judged by a checker that was never trained: it puts the renderer's own shapes beside the image. How well the
    parts are told by the blocks is measured on held-out combinations alone, while the network draws them.
    """

    kind: Literal["text-to-image"] = "text-to-image"
    question: ClassVar[str] = (
        "Which combinations does a text-to-image model fail to draw, and do its blocks say so while it draws?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "scenes",
                "recipe": {"kind": "fast", "steps": 12, "tasks": 8, "samples": 1},
                "every": 12,
                "validation_tasks": 2,
                "objective": {"kind": "flow-matching", "steps": 2, "guidance": 1.0},
                "encoding": {"kind": "captions", "width": 16},
            },
            "widths": (8,),
            "steps": (12,),
            "replicates": 2,
            "score_draws": 1,
            "concept_draws": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "scenes", "pixels": 32},
                "recipe": {"kind": "fast", "tasks": 128, "samples": 1},
                "model": {"kind": "unet", "levels": 3, "blocks": 2},
                "every": 1000,
                "validation_tasks": 2,
            },
            "widths": (64,),
            "steps": (20_000,),
        },
        "full": {
            "widths": (16, 32, 64),
            "steps": (300, 600, 1200, 2400),
            "numbers": (48, 72, 108),
            "more_pairs": (6,),
            "reaches": (1,),
            "by_lot": True,
            "replicates": 8,
            "first_seed": 3000,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("arm", "number", "width", "steps")
    single: ClassVar[frozenset[str]] = frozenset({"scores"})
    shown: ClassVar[tuple[str, ...]] = (
        "success_in",
        "success_held_out",
        "readable_held_out",
        "swapped_held_out",
        "mirrored_held_out",
        "concepts_r2",
        "text_r2",
    )

    base: RunConfig = RunConfig.model_validate(
        {
            "family": Scenes(),
            "recipe": {"kind": "fast", "tasks": 32, "samples": 1},
            "objective": {"kind": "flow-matching", "steps": 12},
            "every": 400,
            "validation_tasks": 2,
        }
    )
    """What all runs share; space, support, width and steps are set by the sweep."""
    widths: tuple[PositiveInt, ...] = (32,)
    """Channels of the finest resolution. The middle one is `usual`: all but it are tried with complete support alone."""
    steps: tuple[PositiveInt, ...] = (1200,)
    """Steps of training; the same. Scenes with two things get twice as many."""
    numbers: tuple[PositiveInt, ...] = (72,)
    """Combinations of one thing that are trained on; the same."""
    pairs: NonNegativeInt = 4
    """Pairs of parts that never meet where conjunctions are missing."""
    more_pairs: tuple[PositiveInt, ...] = ()
    """Other numbers of such pairs, fewest first."""
    reaches: tuple[PositiveInt, ...] = ()
    """Other reaches of the corner than 2, smallest first."""
    by_lot: bool = False
    """Whether as many combinations as usual, drawn by lot, are trained on as well."""
    reserve: PositiveInt = 128
    """Combinations of one thing in the common test."""
    beside_number: PositiveInt = 32
    """Combinations of two things that are trained on."""
    beside_reserve: PositiveInt = 24
    """Combinations of two things in their common test."""
    score_draws: PositiveInt = 6
    """Images of each combination that are judged, each from a caption of its own."""
    concept_draws: PositiveInt = 3
    """Images of each held-out combination that are looked into."""

    first_seed: int = 2000
    """Fresh ones: with those from 1000 on a claim about scenes with one thing hung on how well two things were learned, and
    successes were counted and not shares."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "steps", "numbers", least=1)
        ascend(self, "more_pairs", "reaches", least=0)
        return self

    @property
    def usual(self) -> dict[str, int]:
        """The size that every arm has."""
        return {
            "width": self.widths[len(self.widths) // 2],
            "steps": self.steps[len(self.steps) // 2],
            "number": self.numbers[len(self.numbers) // 2],
        }

    def arms(self, number: int) -> dict[str, tuple[ProductSpace, SupportKind]]:
        """The space and the support of each arm."""
        one, two = (
            ProductSpace.model_validate({"factors": ONE_THING}),
            ProductSpace.model_validate({"factors": TWO_THINGS}),
        )
        return {
            COMPLETE: (one, Planned(number=number, reserve=self.reserve)),
            MISSING: (one, Gaps(number=number, parts=0, pairs=self.pairs, reserve=self.reserve)),
            CORNER: (one, Corner(reach=2, reserve=self.reserve)),
            BESIDE: (two, Planned(number=number, reserve=self.beside_reserve)),
            **{
                f"{MISSING} {pairs}": (one, Gaps(number=number, parts=0, pairs=pairs, reserve=self.reserve))
                for pairs in self.more_pairs
            },
            **{
                f"{CORNER} {reach}": (one, Corner(reach=reach, reserve=self.reserve))
                for reach in self.reaches
            },
            **({RANDOM: (one, Random(number=number, reserve=self.reserve))} if self.by_lot else {}),
        }

    def described(self, arm: str) -> str:
        """An arm that not every profile has, in words."""
        name, _, level = arm.rpartition(" ")
        if name == MISSING:
            return f"{level} pairs never met"
        return f"around one combination, reach {level}" if name == CORNER else "drawn by lot"

    def size(self, arm: str) -> dict[str, int]:
        """The labels of an arm's runs at the usual size."""
        usual = self.usual
        if arm == BESIDE:
            return usual | {"steps": 2 * usual["steps"], "number": self.beside_number}
        space, support = self.arms(usual["number"])[arm]
        return usual | {"number": support.length(space) or 0}

    @property
    def sizes(self) -> Sizes:
        """The labels of the runs that every profile has."""
        return {arm: self.size(arm) for arm in ARMS}

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        usual = self.usual
        cells = [(arm, dict(size)) for arm, size in self.sizes.items()]
        for name, values in (("width", self.widths), ("steps", self.steps), ("number", self.numbers)):
            cells += [(COMPLETE, usual | {name: value}) for value in values if value != usual[name]]
        cells += [(arm, self.size(arm)) for arm in self.arms(usual["number"]) if arm not in ARMS]
        found = []
        for arm, size in cells:
            space, support = self.arms(size["number"])[arm]
            changes = {
                "space": space,
                "support": support,
                "model": self.base.model.model_copy(update={"width": size["width"]}),
                "recipe": self.base.recipe.model_copy(update={"steps": size["steps"]}),
            }
            found += [
                (self.run(self.base, seed, **changes), {"arm": arm, **size, "replicate": seed})
                for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        return [
            Scores(draws=self.score_draws, samples=1, map=False),  # The gallery has the map.
            Concepts(draws=self.concept_draws),
            Readout(),
            Gallery(),
        ]

    def effects(self, tables: Tables) -> list[Effect]:
        seeds, sizes = list(self.seeds), self.sizes

        def score(name: str, arm: str, **size: int) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, seeds, arm=arm, **{**self.size(arm), **size})

        def less(arm: str, other: str) -> Float[np.ndarray, " replicate"]:
            return score("success_held_out", arm) - score("success_held_out", other)

        def over_arms(name: str) -> Float[np.ndarray, " replicate"]:
            return np.mean([score(name, arm) for arm in ONE], axis=0)

        one = {arm: sizes[arm] for arm in ONE}
        cases = by_combination(tables, one)
        chance = (len(TWO_THINGS["left colour"]) - 1) ** -2
        values = {
            "judge-is-right": np.max(
                [score(name, arm) for arm in ARMS for name in ("checker_error", "checker_error_noised")],
                axis=0,
            ),
            **{claim: score("success_in", arm) for arm, claim in FITS.items()},
            "readable-inside": over_arms("concepts_r2"),
            "decodability-relates": related(cases, seeds, ONE),
            "beyond-rivals": related(cases, seeds, ONE, rivals=RIVALS),
            "early": related(cases, seeds, ONE, by="early", rivals=RIVALS),
            "tells-the-factor": related(by_factor(tables, one), seeds, ONE),
            "over-runs": over_runs(tables, one, seeds),
            "over-runs-beyond-rivals": over_runs(tables, one, seeds, OVER_RUNS),
            "selective": over_arms("concepts_selectivity") - over_arms("concepts_untrained_selectivity"),
            "falls-short": score("success_in", COMPLETE) - score("success_all_pairs_met", COMPLETE),
            "missing-conjunctions": lost(tables, sizes, (COMPLETE, MISSING), seeds),
            "distance": self._by_distance(cases),
            "parts-fail-independently": independence(tables, one, seeds),
            "colours-are-exchanged": exchanges(tables, sizes, BESIDE, seeds) - chance,
            "nothing-is-copied": over_arms("copied_right"),
            "control-untrained": related(cases, seeds, ONE, by="untrained"),
            "wider-composes": score("success_held_out", COMPLETE, width=self.widths[-1])
            - score("success_held_out", COMPLETE, width=self.widths[0]),
            "more-combinations-compose": score("success_held_out", COMPLETE, number=self.numbers[-1])
            - score("success_held_out", COMPLETE, number=self.numbers[0]),
            "shape-is-last": score("right_colour_held_out", COMPLETE, steps=self.steps[0])
            - score("right_shape_held_out", COMPLETE, steps=self.steps[0]),
        }
        asked = {axis for axis in ("widths", "steps", "numbers") if len(getattr(self, axis)) > 1}
        if self.more_pairs:
            values["more-gaps-cost-more"] = less(MISSING, f"{MISSING} {self.more_pairs[-1]}")
        if self.reaches:
            values["a-smaller-corner-composes-less"] = less(CORNER, f"{CORNER} {self.reaches[0]}")
        if self.by_lot:
            values["covering-pairs-helps"] = less(COMPLETE, RANDOM)
        asked |= {axis for axis in ("more_pairs", "reaches", "by_lot") if getattr(self, axis)}
        scaled = [claim for axis, claim in SCALING.items() if axis in asked]
        return [Effect(claim, values[claim.name]) for claim in (*CLAIMS, *scaled)]

    def _by_distance(self, cases: pd.DataFrame) -> Float[np.ndarray, " replicate"]:
        """Success one step from what is trained on less that farther away, by replicate."""
        own = cases[cases["arm"] == CORNER]
        near = own[own["distance"] <= 1].groupby("replicate")["success"].mean()
        far = own[own["distance"] > 1].groupby("replicate")["success"].mean()
        return (near - far).reindex(list(self.seeds)).to_numpy(dtype=float)

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.text_to_image_figures import figures

        return figures(self, tables)
