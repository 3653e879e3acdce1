"""Networks that answer optimisation problems satisfy some constraints and not others: is their plateau the easy ones?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from recombine.families.problem import Problem as ProblemFamily
from recombine.models.base import Model
from recombine.models.decoder import Decoder
from recombine.models.encoder_decoder import EncoderDecoder
from recombine.objectives.constraint_reward import ConstraintReward
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measurement
from recombine.probes.constraint_rates import ConstraintRates
from recombine.problems.base import Problem
from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow
from recombine.recipes.fast import Fast
from recombine.spaces.instances import InstanceSpace
from recombine.studies.base import Effect, Study, Tables, ascend
from recombine.studies.constraints_claims import (
    CLAIMS,
    DECODER,
    LARGE,
    PACKING,
    PLAIN,
    REWARD,
    SMALL,
    STEPS,
)
from recombine.studies.constraints_effects import effects
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    from recombine.figures.base import Figure


class Constraints(Study):
    """Sequence models that say, in digits, the optimal power flow of small networks, and a knapsack's best load.

    Sizes and architectures are varied on the network of 9 buses; intermediate steps, a reward for constraints that hold, and
    the other problems are run at one size. Every rate stands beside that of the mean answer.
    """

    kind: Literal["constraints"] = "constraints"
    question: ClassVar[str] = (
        "Networks that answer optimisation problems satisfy some constraints and not others: is their plateau the easy ones?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "problem",
                "space": {"kind": "instances", "number": 48},
                "support": {"kind": "random", "held_out": 0.5, "require_connected": False},
                "recipe": {"kind": "fast", "tasks": 4, "samples": 1, "steps": 4},
                "every": 4,
                "validation_tasks": 4,
            },
            "widths": (8, 16),
            "heads": 2,
            "layers": 1,
            "models": ("decoder",),
            "asked": (SMALL, PACKING),
            "arms": (PLAIN,),
            "draws": 2,
            "rewarded": 2,
            "instances": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": "problem",
                "space": {"kind": "instances", "number": 12_000},
                "support": {"kind": "random", "held_out": 0.1, "require_connected": False},
                "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 20_000},
                "every": 1000,
                "validation_tasks": 64,
            },
            "widths": (64, 128, 256),
            "layers": 4,
            "rewarded": 32,
            "instances": 1024,
            "replicates": 12,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("problem", "model", "width", "arm")
    shown: ClassVar[tuple[str, ...]] = (
        "total_network",
        "bounds_network",
        "hard_network",
        "every_network",
        "gap_network",
        "error_in",
        "error_mean_in",
        "error_network",
        "malformed_network",
        "total_network_formed",
        "total_mean_formed",
        "total_mean",
        "hard_mean",
        "error_mean",
        "total_nearest",
        "hard_nearest",
        "total_network_repaired",
        "every_network_repaired",
        "total_mean_repaired",
    )

    base: RunConfig = RunConfig(
        family=ProblemFamily(),
        space=InstanceSpace(number=1024),
        support=Random(held_out=0.25, require_connected=False),
        model=Decoder(),
        recipe=Fast(rate=0.05, tasks=32, samples=1, steps=400),
        every=200,
        validation_tasks=16,
    )
    """What all runs share, the recipe included; problem, network and what is shown of an answer are set by the sweep."""
    widths: tuple[PositiveInt, ...] = (16, 32, 48)
    """Widths of the residual stream, narrowest first. The middle one is that of the arms which have one size."""
    models: tuple[Literal["decoder", "encoder-decoder"], ...] = ("decoder", "encoder-decoder")
    """The architectures that are run at every size, the decoder among them. What is left out here, or of `asked` and `arms`, takes
    time to compile; its claims are then not decided."""
    asked: tuple[Literal["9 buses", "14 buses", "knapsack"], ...] = ("9 buses", "14 buses", "knapsack")
    """The problems."""
    arms: tuple[Literal["answer only", "with steps", "with reward"], ...] = (
        "answer only",
        "with steps",
        "with reward",
    )
    """What training shows and rewards."""
    layers: PositiveInt = 2
    heads: PositiveInt = 4
    items: int = 5
    """Items of the knapsack, of which there are two each; six fit in."""
    weight: NonNegativeFloat = 0.8
    """Of the reward, beside cross-entropy."""
    rewarded: PositiveInt = 8
    """Tasks of a batch to which answers are drawn for the reward."""
    draws: int = Field(default=4, ge=2)
    """Answers that are drawn to each."""
    instances: PositiveInt = 256
    """Instances of each side that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: instances, which of them are held out, initialisation and order of the data."""

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        ascend(self, "widths")
        if not isinstance(self.base.family, ProblemFamily):
            raise ValueError(
                f"base is {self.base.family.kind}: the constraints are those of the family 'problem'"
            )
        for labels in self.grid:
            self._changes(
                labels
            )  # So that what a part refuses is refused here, and not in the middle of a run.
        return self

    @property
    def usual(self) -> int:
        """The width of the arms that have one."""
        return self.widths[len(self.widths) // 2]

    @property
    def problems(self) -> dict[str, Problem]:
        """The problems by their names."""
        return {
            SMALL: PowerFlow(case="case9", solver="batched", text="pairs"),
            LARGE: PowerFlow(case="case14", solver="batched", text="pairs"),
            PACKING: Knapsack(items=self.items, count=self.items + 1, solver="listing", text="pairs"),
        }

    @property
    def grid(self) -> list[dict[str, Any]]:
        """The labels of all arms."""
        made = [(SMALL, model, width, PLAIN) for model in self.models for width in self.widths]
        made += [(SMALL, DECODER, self.usual, arm) for arm in self.arms if arm != PLAIN]
        made += [(LARGE, DECODER, self.usual, PLAIN)]
        made += [(PACKING, DECODER, self.usual, arm) for arm in self.arms]
        return [dict(zip(self.cells, labels, strict=True)) for labels in made if labels[0] in self.asked]

    def _changes(self, labels: dict[str, Any]) -> dict[str, Any]:
        problem, steps = self.problems[labels["problem"]], labels["arm"] == STEPS
        size = {"width": labels["width"], "layers": self.layers, "heads": self.heads}
        model: Model = Decoder(**size) if labels["model"] == DECODER else EncoderDecoder(**size)
        reward = ConstraintReward(problem=problem, weight=self.weight, tasks=self.rewarded, draws=self.draws)
        return {
            "family": ProblemFamily(problem=problem, steps=steps),
            "model": model,
            "objective": reward if labels["arm"] == REWARD else NextToken(),
        }

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        return [
            (self.run(self.base, seed, **self._changes(labels)), labels | {"replicate": seed})
            for labels in self.grid
            for seed in self.seeds
        ]

    def measurements(self) -> list[Measurement]:
        return [ConstraintRates(instances=self.instances)]

    def effects(self, tables: Tables) -> list[Effect]:
        values = effects(self, tables)
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.constraints_figures import figures

        return figures(self, tables)
