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
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at
from recombine.studies.text_to_image_relation import (
    by_combination,
    by_factor,
    independence,
    over_runs,
    related,
)
from recombine.supports.base import SupportKind
from recombine.supports.corner import Corner
from recombine.supports.gaps import Gaps
from recombine.supports.planned import Planned
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure

COMPLETE, MISSING, CORNER, BESIDE = "complete", "missing", "corner", "two things"
ARMS = (COMPLETE, MISSING, CORNER, BESIDE)
"""What is trained on: every pair of parts met; some pairs never; what differs from one combination in two factors at
most; scenes with two things."""

ONE_THING = {
    "shape": ("disc", "square", "triangle", "cross"),
    "colour": ("red", "green", "blue", "yellow", "purple", "cyan", "orange", "white"),
    "size": ("small", "large"),
    "place": ("top left", "top right", "bottom left", "bottom right"),
}
TWO_THINGS = {
    "left shape": ("disc", "cross"),
    "left colour": ("red", "green", "blue", "yellow", "purple", "white"),
    "right shape": ("disc", "cross"),
    "right colour": ("red", "green", "blue", "yellow", "purple", "white"),
}

_claim = claims_of("text-to-image")

NEEDS = ("judge-is-right", "fits")

CLAIMS = (
    _claim(
        "judge-is-right",
        "The checker reads rendered images back (share that it does not, mean over runs).",
        "below",
        0.02,
        role="precondition",
    ),
    _claim(
        "fits",
        "With complete support the network draws trained combinations as they were asked for (success).",
        "above",
        0.7,
        role="precondition",
    ),
    _claim(
        "decodability-relates",
        "Within runs, held-out combinations whose parts can be read off the network's blocks while it draws are those that "
        "it draws right (rank correlation over combinations, mean over what is trained on).",
        "greater",
        0.1,
        primary=True,
        needs=NEEDS,
    ),
    _claim(
        "beyond-rivals",
        "The same with the rivals taken out: frequency of the rarest part, pairs that met, decodability from the text encoder "
        "and from an untrained network (partial rank correlation).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "tells-the-factor",
        "It also tells which factor of a combination goes wrong (rank correlation over combinations within a factor).",
        "greater",
        0.1,
        needs=NEEDS,
    ),
    _claim(
        "over-runs",
        "Runs whose blocks tell more of the parts draw more held-out combinations right (rank correlation over runs that are "
        "trained on the same).",
        "greater",
        0.1,
        needs=NEEDS,
    ),
    _claim(
        "selective",
        "Training makes the parts more selectively decodable: R2 less that of random codes, trained less untrained.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "falls-short",
        "With complete support fewer held-out than trained combinations are drawn right (success, trained less held out).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "missing-conjunctions",
        "Combinations with a pair of parts that never met are drawn right less often than others of the same runs.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "distance",
        "Trained on what differs from one combination in two factors at most, a network draws combinations one step away "
        "right more often than those two steps away, though every pair of parts met (success).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "parts-fail-independently",
        "Within held-out combinations joint success is the product of the parts' successes (difference, mean over "
        "combinations).",
        "equivalent",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "colours-are-exchanged",
        "In scenes with two things more images of held-out than of trained combinations have the right shapes and each "
        "other's colours.",
        "greater",
        0.02,
        needs=NEEDS,
    ),
    _claim(
        "nothing-is-copied",
        "Images of held-out combinations lie closer to a training image than real images do no more often than chance has it "
        "(share below the nearest twentieth of real ones).",
        "below",
        0.1,
        needs=NEEDS,
    ),
    _claim(
        "control-exchanged",
        "Where success is exchanged among the combinations of a run it has no relation to decodability (rank correlation).",
        "equivalent",
        0.1,
        role="control",
        needs=NEEDS,
    ),
)
"""Stated before any run, and versioned with this file."""

SCALING = (
    _claim(
        "wider-composes",
        "Wider networks draw more held-out combinations right (complete support, widest less narrowest).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "more-combinations-compose",
        "So do networks trained on more combinations (most less fewest).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "shape-is-last",
        "Concepts are learned in the order of how much of the image they change: early in training fewer held-out images have "
        "the right shape than the right colour (at the fewest steps).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
)
"""Of what is asked only where something is scaled."""


class TextToImage(Study):
    """Small flow-matching U-Nets that draw scenes from captions, trained on what covers the combinations and what does not.

    Success is judged by a checker that was never trained: it puts the renderer's own shapes beside the image. How well the
    parts are told by the blocks is measured on held-out combinations alone, while the network draws them.
    """

    kind: Literal["text-to-image"] = "text-to-image"
    question: ClassVar[str] = (
        "Which combinations does a text-to-image model fail to draw, and can that be read off its blocks beforehand?"
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
            "score_samples": 1,
            "concept_draws": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "full": {
            "widths": (16, 24, 32, 64),
            "steps": (400, 800, 1600, 3200),
            "numbers": (48, 72, 108),
            "replicates": 8,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("arm", "number", "width", "steps")
    shown: ClassVar[tuple[str, ...]] = (
        "success_in",
        "success_held_out",
        "success_some_pairs_unmet",
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
    steps: tuple[PositiveInt, ...] = (1600,)
    """Steps of training; the same."""
    numbers: tuple[PositiveInt, ...] = (72,)
    """Combinations of one thing that are trained on; the same."""
    pairs: NonNegativeInt = 4
    """Pairs of parts that never meet where conjunctions are missing."""
    reserve: PositiveInt = 128
    """Combinations of one thing in the common test."""
    beside_reserve: PositiveInt = 64
    """Combinations of two things in theirs."""
    score_draws: PositiveInt = 2
    """Captions of each combination that images are drawn from."""
    score_samples: PositiveInt = 2
    """Images of each caption."""
    concept_draws: PositiveInt = 4
    """Images of each held-out combination that are looked into."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "widths", "steps", "numbers", least=1)
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
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        usual = self.usual
        cells = [(arm, usual) for arm in ARMS]
        for name, values in (("width", self.widths), ("steps", self.steps), ("number", self.numbers)):
            cells += [(COMPLETE, usual | {name: value}) for value in values if value != usual[name]]
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
            Scores(draws=self.score_draws, samples=self.score_samples),
            Concepts(draws=self.concept_draws),
            Readout(),
            Gallery(),
        ]

    def effects(self, tables: Tables) -> list[Effect]:
        seeds, usual = list(self.seeds), self.usual

        def score(name: str, arm: str, **size: int) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, seeds, arm=arm, **{**usual, **size})

        cases = by_combination(tables, usual)
        values = {
            "judge-is-right": np.mean([score("checker_error", arm) for arm in ARMS], axis=0),
            "fits": score("success_in", COMPLETE),
            "decodability-relates": related(cases, seeds),
            "beyond-rivals": related(cases, seeds, rivals=True),
            "tells-the-factor": related(by_factor(tables, usual), seeds, group=["arm", "factor"]),
            "over-runs": over_runs(tables, usual, seeds),
            "selective": np.mean(
                [
                    score("concepts_selectivity", arm) - score("concepts_untrained_selectivity", arm)
                    for arm in ARMS
                ],
                axis=0,
            ),
            "falls-short": score("success_in", COMPLETE) - score("success_held_out", COMPLETE),
            "missing-conjunctions": score("success_all_pairs_met", MISSING)
            - score("success_some_pairs_unmet", MISSING),
            "distance": self._by_distance(tables),
            "parts-fail-independently": independence(tables, usual, seeds),
            "colours-are-exchanged": score("swapped_held_out", BESIDE) - score("swapped_in", BESIDE),
            "nothing-is-copied": np.mean([score("copied_held_out", arm) for arm in ARMS], axis=0),
            "control-exchanged": related(cases, seeds, exchanged=True),
            "wider-composes": score("success_held_out", COMPLETE, width=self.widths[-1])
            - score("success_held_out", COMPLETE, width=self.widths[0]),
            "more-combinations-compose": score("success_held_out", COMPLETE, number=self.numbers[-1])
            - score("success_held_out", COMPLETE, number=self.numbers[0]),
            "shape-is-last": score("right_colour_held_out", COMPLETE, steps=self.steps[0])
            - score("right_shape_held_out", COMPLETE, steps=self.steps[0]),
        }
        scaled = len(self.widths) > 1 and len(self.steps) > 1 and len(self.numbers) > 1
        return [Effect(claim, values[claim.name]) for claim in (*CLAIMS, *(SCALING if scaled else ()))]

    def _by_distance(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """Success one step from what is trained on less that farther away, by replicate."""
        frame = by_combination(tables, self.usual)
        frame = frame[frame["arm"] == CORNER]
        near = frame[frame["distance"] <= 1].groupby("replicate")["success"].mean()
        far = frame[frame["distance"] > 1].groupby("replicate")["success"].mean()
        return (near - far).reindex(list(self.seeds)).to_numpy(dtype=float)

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.text_to_image_figures import figures

        return figures(self, tables)
