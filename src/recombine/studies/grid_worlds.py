"""Does more training data make a network recombine in grid worlds as well?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt, PositiveInt

from recombine.design import Arm, Claims, Figures, Study, claim, control
from recombine.design.pictures import episodes
from recombine.families import LookupGoals, LookupPreferences
from recombine.studies.shapes import GOALS, PAPER_GOALS, PAPER_PREFERENCES, PREFERENCES, SMOKE_PREFERENCES, fits
from recombine.supports import Random
from recombine.training.config import RunConfig

WORLDS = {"preferences": ("preference grid world", 0.9), "goals": ("goal grid world, told in English", 0.9)}
"""Each world in words, and the accuracy above which its training tasks count as learned."""

TITLES = {"preferences": "in a grid world", "goals": "in a maze, with the goal told in English"}


class GridWorlds(Study):
    """Does a network act right in unseen combinations of preferences, or of goals, once it is trained on enough others?

    The question of `data-scaling`, asked of policies that imitate a teacher in two grid worlds. In the controls every
    combination has independent preferences or goals.
    """

    kind: Literal["grid-worlds"] = "grid-worlds"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {"preferences": SMOKE_PREFERENCES, "preference_numbers": (8, 24), "goals": None, "replicates": 2},
        "demo": {"replicates": 3},
        "laptop": {},
        "paper": {
            "preferences": PAPER_PREFERENCES,
            "preference_numbers": (40, 80, 160, 320, 522),
            "goals": PAPER_GOALS,
            "goal_numbers": (25, 50, 125, 250, 375),
        },
    }

    preferences: RunConfig | None = PREFERENCES
    """The grid world of preferences; None leaves it out."""
    preference_numbers: tuple[PositiveInt, ...] = (10, 28)
    """Numbers of training combinations there."""
    goals: RunConfig | None = GOALS
    """The grid world of goals; None leaves it out."""
    goal_numbers: tuple[PositiveInt, ...] = (40, 375)
    """Numbers of training combinations there."""
    first_seed: NonNegativeInt = 4000
    """Fresh seeds: with those from 1000 on, training was short and some claims were not decided."""
    goal_replicates: PositiveInt = 8
    """Replicates of the grid world of goals, where a run takes longer."""

    def arms(self) -> dict[str, Arm | None]:
        arms: dict[str, Arm | None] = {}
        for world, base, levels, lookup in (
            ("preferences", self.preferences, self.preference_numbers, LookupPreferences),
            ("goals", self.goals, self.goal_numbers, LookupGoals),
        ):
            if base is None:
                continue
            numbers = tuple(sorted(levels))
            # One common test for all numbers: what the largest support leaves.
            main = Arm(base, support=Random(reserve=base.space.size - numbers[-1]), number=numbers)
            if world == "goals":
                main = main.replace(seeds=self.seeds_for(min(self.goal_replicates, self.replicates)))
            family = lookup.model_validate(base.family.model_dump(exclude={"kind"}))
            arms[world] = main
            arms[f"lookup_{world}"] = main.replace(family=family, number=(numbers[0], numbers[-1]))
        return arms

    def claims(self, **arms: Arm) -> Claims:
        for world, (title, solved) in WORLDS.items():
            if world not in arms:
                continue
            main, lookup = arms[world], arms[f"lookup_{world}"]
            yield fits(
                main["accuracy_in"].last(),
                f"On the {title} the network learns its training tasks (accuracy of whole trajectories with the most "
                "combinations).",
                solved,
                name=f"fits-on-{world}",
            )
            yield claim(
                f"rises-on-{world}",
                main["accuracy_held_out"].rise().greater(0.05),
                f"On the {title}, too, held-out accuracy rises with the number of training combinations (whole "
                "trajectories, most minus fewest).",
                needs=f"fits-on-{world}",
            )
            yield control(
                f"control-fails-on-{world}",
                lookup["accuracy_held_out"].rise().below(0.05),
                f"It does not rise where each combination has independent {world} (most minus fewest).",
            )

    def figures(self, **arms: Arm) -> Figures:
        from recombine.figures.study import lines

        for world in (world for world in WORLDS if world in arms):
            yield lines(
                arms[world],
                arms[f"lookup_{world}"],
                x="number",
                y={"accuracy_in": "trained", "accuracy_held_out": "held out"},
                name=world,
                title=f"Does more data help {TITLES[world]}?",
                caption="The share of episodes in which the network takes the teacher's action at every step. In the control "
                f"every combination has independent {world}, so nothing can be recombined.",
                ceiling=1.0,
                x_title="number of training combinations",
                y_title="accuracy of whole trajectories",
            )
            yield from episodes(arms[world].base)
