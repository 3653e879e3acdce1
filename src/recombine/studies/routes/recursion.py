"""Does a small network that is applied to its own latent state solve puzzles that a larger one cannot solve in one pass?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.design.column import highest, lowest
from recombine.errors import BadInput
from recombine.models import Recursive
from recombine.objectives import DeepSupervision
from recombine.probes import Compute, OuterSteps, Scores, WrongIdentifier
from recombine.studies.shapes import fits, left_out
from recombine.training.config import RunConfig

LEAST = 0.005
"""Smaller errors count as this one: an accuracy over some 200 grids cannot tell them apart."""
VARIANTS = {
    "recursive": "recursive",
    "one_step": "one-step gradient",
    "shallow": "T = n = 1",
    "answer_only": "no latent state",
    "hierarchy": "two networks",
    "one_pass": "one pass, same size",
    "scaled": "one pass, same compute",
}
"""The arms of the main task, in words."""
SAME_SIZE = ("recursive", "one_step", "shallow", "answer_only", "hierarchy", "one_pass")
"""Arms with equally many weights."""
MAZES = {f"mazes_{name}": VARIANTS[name] for name in ("recursive", "one_pass", "scaled")}
"""The arms of the second task."""


def puzzle_run(
    family: dict[str, Any], *, cells: int, number: int, model: dict[str, Any], recipe: dict[str, Any], **settings: Any
) -> dict[str, Any]:
    """The settings of a run of a recursive model on a family of grids.

    Args:
        family: The family.
        cells: Cells of a grid.
        number: Instances, for training and test together.
        model: Settings of the recursive model.
        recipe: Settings of the recipe.
        **settings: Other parts of the run.
    """
    return {
        "family": family,
        "space": {"kind": "instances", "number": number},
        "model": {"kind": "recursive", "cells": cells, **model},
        "recipe": {"kind": "fast", "samples": cells, **recipe},
        **settings,
    }


NETWORK: dict[str, Any] = {
    "width": 32,
    "heads": 2,
    "updates": 2,
    "cycles": 2,
    "steps": 6,
    "mlp_ratio": 2,
    "mixing": "mlp",
}
"""The recursive network at laptop size."""
SUPERVISION: dict[str, Any] = {"kind": "deep-supervision", "most": 6, "stable_max": False}
"""Its training. Stable-max, as in the released code, is for networks whose softmax collapses; small ones learn less with it."""
SUDOKU_RUN = puzzle_run(
    {"kind": "sudoku", "clues": 16, "per_solution": 40},
    cells=36,
    number=1280,
    support={"kind": "leading-instances", "share": 0.75, "block": 40, "reserve": 1},
    model=NETWORK,
    objective=SUPERVISION,
    recipe={"tasks": 32, "steps": 1000, "learning_rate": 0.02},
    eval_every=500,
    validation_tasks=64,
)
MAZE_RUN = puzzle_run(
    {"kind": "mazes", "size": 5, "least": 5},
    cells=25,
    number=1280,
    model={**NETWORK, "steps": 3},
    objective={**SUPERVISION, "most": 3},
    recipe={"tasks": 32, "steps": 2000, "learning_rate": 0.02},
    eval_every=1000,
    validation_tasks=64,
)
PUZZLES = puzzle_run(
    {"kind": "arc", "puzzles": 8, "pairs": 160, "side": 3, "colours": 3, "augmentations": 1},
    cells=9,
    number=1600,
    model={**NETWORK, "steps": 2, "identifiers": True},
    objective={**SUPERVISION, "most": 2},
    recipe={"tasks": 32, "steps": 900, "learning_rate": 0.02},
    eval_every=300,
    validation_tasks=32,
)


PAPER: dict[str, Any] = {
    "model": {"width": 512, "heads": 8, "updates": 6, "cycles": 3, "steps": 16, "mixing": "mlp"},
    "objective": {"kind": "deep-supervision", "most": 16},
    "recipe": {"kind": "paper", "tasks": 768, "steps": 60_000, "learning_rate": 1e-4, "weight_decay": 1.0},
    "eval_every": 2000,
    "validation_tasks": 512,
}
"""Network, objective and recipe at the size of the paper, without its warm-up."""


class Recursion(Study):
    """Does a small network that is applied to its own latent state solve puzzles that a larger one cannot solve in one pass?

    Tiny recursive models (Jolicoeur-Martineau 2025) solve puzzles that much larger networks do not solve in one pass. Six networks
    with equally many weights and training steps differ in how they are applied: recursively, with a gradient through the last
    update only, with fewer updates (T = n = 1), without a latent state, as a hierarchy of two networks, and in one pass. A seventh
    answers in one pass with as many operations of training as the recursive one, spent on more layers. The main task is Sudoku
    (6 x 6, and 9 x 9 in `paper`), with held-out solutions that are new up to symmetry; mazes are a second one.
    Puzzles that differ only in a hidden rule need an identifier of the puzzle; there the study asks what a wrong identifier does.
    """

    kind: Literal["recursion"] = "recursion"
    shown = "accuracy_in", "accuracy_held_out", "accuracy_first", "accuracy_beyond", "weights", "training_flops"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": puzzle_run(
                {"kind": "mazes", "size": 4, "least": 3},
                cells=16,
                number=40,
                model={"width": 8, "heads": 2, "updates": 1, "cycles": 1, "steps": 2, "mixing": "mlp"},
                objective={"kind": "deep-supervision", "most": 2, "stable_max": False},
                recipe={"tasks": 8, "steps": 8},
                eval_every=8,
                validation_tasks=4,
            ),
            "variants": ("recursive", "hierarchy", "one_pass", "scaled"),
            "mazes": None,
            "puzzles": None,
            "combinations": 16,
            "scaled_layers": 4,
            "replicates": 2,
        },
        "demo": {
            "replicates": 4,
            "mazes": None,
            "variants": ("recursive", "shallow", "hierarchy", "one_pass", "scaled"),
        },
        "laptop": {"first_seed": 7000},
        "workstation": {
            "first_seed": 7100,
            "base": SUDOKU_RUN
            | {
                "family": {"kind": "sudoku", "clues": 12, "per_solution": 40},
                "model": {**SUDOKU_RUN["model"], "width": 48},
                "recipe": {**SUDOKU_RUN["recipe"], "steps": 3000},
            },
            "mazes": MAZE_RUN
            | {
                "family": {"kind": "mazes", "size": 6, "least": 6},
                "model": {**MAZE_RUN["model"], "cells": 36, "width": 48},
                "recipe": {**MAZE_RUN["recipe"], "samples": 36, "steps": 4000},
            },
        },
        "paper": {
            "base": puzzle_run(
                {"kind": "sudoku", "box": (3, 3), "clues": 24, "per_solution": 1},
                cells=81,
                number=2000,
                support={"kind": "leading-instances", "share": 0.5, "block": 1, "reserve": 1},
                **PAPER,
            ),
            "mazes": puzzle_run(
                {"kind": "mazes", "size": 20, "least": 20},
                cells=400,
                number=2000,
                support={"kind": "leading-instances", "share": 0.5, "block": 1, "reserve": 1},
                **PAPER,
            ),
            "rate": 1e-4,
            "rate_one_pass": 1e-4,
            "rate_scaled": 1e-4,
            "scaled_layers": 23,
        },
    }

    base: RunConfig = RunConfig.model_validate(SUDOKU_RUN)
    """The recursive network on the main task."""
    mazes: RunConfig | None = RunConfig.model_validate(MAZE_RUN)
    """The recursive network on mazes, the second task; None to leave them out."""
    puzzles: RunConfig | None = RunConfig.model_validate(PUZZLES)
    """The recursive network on puzzles with identifiers; None to leave them out."""
    variants: tuple[str, ...] = tuple(VARIANTS)
    """The arms of the main task. Every compiled program takes seconds, so the smallest profile leaves some out."""
    rate: PositiveFloat = 0.02
    """The learning rate of all recursive arms. On mazes with seed 0, .04 was worse."""
    rate_one_pass: PositiveFloat = 0.02
    """The learning rate of the network of the same size that answers in one pass."""
    rate_scaled: PositiveFloat = 0.01
    """The learning rate of the network with more layers that answers in one pass. On mazes with seed 0, .005 was worse after 1,500 steps
    (.89 instead of .95 of held-out ones), and with .02 nothing was learned."""
    scaled_layers: PositiveInt = 8
    """Layers of the network that answers in one pass with as many operations as the recursive one."""
    times: int = Field(default=4, ge=2)
    """How many times the trained number of outer steps is taken at test time."""
    combinations: PositiveInt = 512
    """The largest number of puzzles that are scored in each region."""
    replicates: PositiveInt = 8
    """Independent replicates: puzzles, split, initialisation and order of the data."""

    def check(self) -> None:
        unknown = [name for name in self.variants if name not in VARIANTS]
        if unknown or "recursive" not in self.variants:
            raise BadInput(
                f"variants must be some of {', '.join(VARIANTS)}, with 'recursive', got {', '.join(self.variants)}.",
                fix=f"variants={','.join(VARIANTS)}",
            )
        for name in ("base", "mazes", "puzzles"):
            run = getattr(self, name)
            if run is None:
                continue
            if not isinstance(run.model, Recursive) or not isinstance(run.objective, DeepSupervision):
                raise BadInput(
                    f"{name} must be a recursive model that is trained with deep supervision, not {run.model.kind!r} with "
                    f"{run.objective.kind!r}.",
                    fix=f"{name}.model=recursive {name}.objective=deep-supervision",
                )
            if run.model.states != 2 or run.model.networks != 1 or run.model.layers % 2:
                raise BadInput(
                    f"{name}.model must have one network of an even number of layers and two states: the arms change these.",
                    fix=f"{name}.model.states=2 {name}.model.networks=1 {name}.model.layers=2",
                )
        if self.puzzles is not None and self.puzzles.family.kind != "arc":
            raise BadInput(
                f"puzzles must be of the family 'arc', whose puzzles have identifiers, not {self.puzzles.family.kind!r}.",
                fix="puzzles.family=arc",
            )

    def variant(self, run: RunConfig, name: str) -> RunConfig:
        """A run with the network of an arm. Everything else is that of the recursive one.

        Args:
            run: The run with the recursive network.
            name: One of `VARIANTS`.
        """
        model, objective, recipe = run.model, run.objective, run.recipe
        assert isinstance(model, Recursive)
        assert isinstance(objective, DeepSupervision)
        one_pass = {"states": 1, "updates": 0, "cycles": 1, "steps": 1}
        changes: dict[str, Any] = {
            "recursive": {},
            "one_step": {"gradient": "update"},
            "shallow": {"updates": 1, "cycles": 1},
            "answer_only": {"states": 1},
            "hierarchy": {"networks": 2},
            "one_pass": one_pass,
            "scaled": {**one_pass, "layers": self.scaled_layers},
        }[name]
        rates = {"one_pass": self.rate_one_pass, "scaled": self.rate_scaled}
        return run.replace(
            model=model.replace(**changes),
            objective=objective.replace(most=1) if name in rates else objective,
            recipe=recipe.replace(learning_rate=rates.get(name, self.rate)),
        )

    def arms(self) -> dict[str, Arm | None]:
        arms: dict[str, Arm | None] = {name: Arm(self.variant(self.base, name)) for name in self.variants}
        if self.mazes is not None:
            arms |= {name: Arm(self.variant(self.mazes, name.removeprefix("mazes_"))) for name in MAZES}
        if self.puzzles is not None:
            arms["puzzles"] = Arm(self.puzzles)
            arms["control_one_rule"] = Arm(self.puzzles.replace(one_rule=True))
        return arms

    def measurements(self) -> list[Any]:
        return [
            # Grids of the tasks differ in size.
            Scores(combinations=self.combinations, draws=1, samples=None, map=False),
            OuterSteps(times=self.times, combinations=self.combinations),
            WrongIdentifier(combinations=self.combinations),
            Compute(),
        ]

    def claims(self, recursive: Arm, **others: Arm) -> Claims:
        arms = {"recursive": recursive, **others}
        steps = self.base.objective.most if isinstance(self.base.objective, DeepSupervision) else 1

        def column(name: str, column: str) -> Column:
            return arms[name][column] if name in arms else left_out(self)

        def score(name: str, column_name: str = "accuracy_held_out") -> Column:
            """The share of held-out puzzles that are right in every cell, on several scales."""
            return column(name, column_name).on_scales(LEAST, "accuracy")

        def spread(names: tuple[str, ...], column_name: str) -> Column:
            """Half the distance of most and fewest, relative to their middle."""
            columns = [column(name, column_name) for name in names if name in arms]
            most, fewest = highest(*columns), lowest(*columns)
            return (most - fewest) / (most + fewest)

        text = "The recursive network solves the puzzles that it is trained on (share of grids that are right in every cell)."
        yield fits(column("recursive", "accuracy_in"), text)
        text = "Six arms have equally many weights (half the distance of most and fewest, relative to their middle)."
        yield precondition("equal-weights", spread(SAME_SIZE, "weights").below(0.02), text)
        text = "The scaled network costs as many operations of training as the recursive one (half their distance, relative to their middle)."
        yield precondition("equal-compute", spread(("recursive", "scaled"), "training_flops").below(0.05), text)

        gain = score("recursive") - score("one_pass")
        by_scale = score("scaled") - score("one_pass")
        by_hierarchy = score("hierarchy") - score("recursive")
        text = (
            "Recursion on a latent state, not scale or hierarchy, drives the gain: recursive minus one pass is larger than scaled minus "
            "one pass, and larger than two networks minus one (held-out puzzles)."
        )
        everything = ("fits", "equal-weights", "equal-compute")
        effect = (gain - highest(by_scale, by_hierarchy)).greater()
        yield claim("recursion-drives-the-gain", effect, text, primary=True, needs=everything)
        text = "Recursion helps at equal weights and steps: recursive minus one pass (held-out puzzles)."
        yield claim("recursion-beats-one-pass", gain.greater(), text, needs=("fits", "equal-weights"))
        text = "Recursion helps at equal compute: recursive minus a network with more layers that answers in one pass."
        scale = score("recursive") - score("scaled")
        yield claim("recursion-beats-scale", scale.greater(), text, needs=("fits", "equal-compute"))
        text = "A hierarchy of two networks does not help beyond recursion (two networks minus one, upper limit; accuracy on held-out puzzles)."
        plain = column("hierarchy", "accuracy_held_out") - column("recursive", "accuracy_held_out")
        yield claim("hierarchy-adds-nothing", plain.below(0.05), text, needs=("fits", "equal-weights"))
        for name, other, words in (
            ("latent-state-helps", "answer_only", "the same number of updates of the answer alone"),
            ("full-gradient-beats-one-step", "one_step", "a gradient through the last update only"),
            ("updates-help", "shallow", "one update and one cycle (T = n = 1)"),
        ):
            text = f"The recursive network is better than with {words} (held-out puzzles, equal weights and steps)."
            difference = score("recursive") - score(other)
            yield claim(name, difference.greater(), text, needs=("fits", "equal-weights"))

        first, last, beyond = (score("recursive", f"accuracy_{when}") for when in ("first", "last", "beyond"))
        text = f"One checkpoint solves more puzzles after {steps} outer steps than after one."
        yield claim("outer-steps-help", (last - first).greater(), text, needs="fits")
        text = "Most of the accuracy comes with the first outer step: its share of the accuracy after all steps."
        share = column("recursive", "accuracy_first") / column("recursive", "accuracy_last")
        yield claim("first-step-does-most", share.above(0.5), text, needs="fits")
        text = f"Steps beyond training help: accuracy after {self.times} times as many steps as trained, minus that after {steps}."
        yield claim("steps-beyond-training-help", (beyond - last).greater(), text, needs="fits")
        halted = column("recursive", "accuracy_halted") - column("recursive", "accuracy_last")
        text = "Answers that are read when the halting head stops are as often right as after all steps (difference of accuracies)."
        yield precondition("halting-loses-nothing", halted.above(-0.05), text, needs="fits")
        text = f"Halting saves steps without losing accuracy (mean number of steps relative to {steps})."
        saved = column("recursive", "steps_halted") / steps
        yield claim("halting-saves-steps", saved.below(0.75), text, needs=("fits", "halting-loses-nothing"))

        text = "The recursive network solves the mazes that it is trained on (share of paths that are right in every cell)."
        yield fits(column("mazes_recursive", "accuracy_in"), text, name="fits-mazes")
        for name, other, words in (
            ("recursion-beats-one-pass-mazes", "one_pass", "equal weights and steps: recursive minus one pass"),
            ("recursion-beats-scale-mazes", "scaled", "equal compute: recursive minus more layers in one pass"),
        ):
            text = f"In mazes, too, recursion helps at {words} (held-out mazes)."
            difference = score("mazes_recursive") - score(f"mazes_{other}")
            yield claim(name, difference.greater(), text, needs="fits-mazes")

        own, other = (column("puzzles", f"identifier_{name}") for name in ("own", "other"))
        text = "With their identifiers, held-out grids of the puzzles are right."
        yield precondition("identifiers-suffice", own.above(0.5), text)
        text = "A wrong puzzle identifier destroys the accuracy (what is left of it, as a share)."
        yield claim("wrong-identifier-destroys", (other / own).below(0.1), text, needs="identifiers-suffice")
        own, other = (column("control_one_rule", f"identifier_{name}") for name in ("own", "other"))
        text = "Where all puzzles have one rule, held-out grids are right."
        yield precondition("one-rule-is-learned", own.above(0.5), text)
        text = "Where all puzzles have one rule, a wrong identifier changes nothing (own minus wrong)."
        yield control("one-rule-needs-no-identifier", (own - other).equivalent(0.05), text, needs="one-rule-is-learned")

    def figures(self, **arms: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        limits: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
        solved = "solved puzzles, held out"
        names = {name: words for name, words in VARIANTS.items() if name in arms}
        named = pd.concat([arms[name].frame.assign(network=words) for name, words in names.items()])
        yield dots(
            named,
            category="network",
            measures={"accuracy_in": "trained puzzles", "accuracy_held_out": "held-out puzzles"},
            labels=list(names.values()),
            name="by_network",
            title="Is it recursion, scale or hierarchy?",
            caption="The share of puzzles that are right in every cell. All but the last have equally many weights; the last has as many "
            "operations of training as the first.",
            x_title="solved puzzles",
            **limits,
        )
        stepwise = {name: words for name, words in names.items() if name not in ("one_pass", "scaled")}
        by_step = [arms[name].tables["outer-steps"].assign(network=words) for name, words in stepwise.items()]
        trained = self.base.objective.most if isinstance(self.base.objective, DeepSupervision) else 1
        yield lines(
            pd.concat(by_step),
            x="step",
            y="accuracy",
            series="network",
            labels=list(stepwise.values()),
            name="by_outer_step",
            title="How much do more outer steps help one checkpoint?",
            caption=f"Held-out puzzles after each outer step. Networks are trained with at most {trained}.",
            x_title="outer steps",
            y_title=solved,
            log=True,
            **limits,
        )
        # As many series as there are colours: without a latent state a step costs as much as with one.
        compared = {name: words for name, words in names.items() if name != "answer_only"}
        billions = named["training_flops"].astype(float) / 1e9
        yield lines(
            named.assign(billions=billions)[named["network"].isin(compared.values())],
            x="billions",
            y="accuracy_held_out",
            series="network",
            labels=list(compared.values()),
            name="by_compute",
            title="What does a unit of compute buy?",
            caption="Held-out puzzles against the operations of all training steps, as the compiler counts them.",
            x_title="billion operations of training",
            y_title=solved,
            log=True,
            **limits,
        )
        if "mazes_recursive" in arms:
            mazes = pd.concat([arms[name].frame.assign(network=words) for name, words in MAZES.items()])
            yield dots(
                mazes,
                category="network",
                measures={"accuracy_in": "trained mazes", "accuracy_held_out": "held-out mazes"},
                labels=list(MAZES.values()),
                name="mazes",
                title="Does recursion help in mazes?",
                caption="The share of mazes whose shortest path is right in every cell.",
                x_title="solved mazes",
                **limits,
            )
        if "puzzles" in arms:
            rules = {"puzzles": "one rule per puzzle", "control_one_rule": "control: one rule for all"}
            told = pd.concat([arms[name].frame.assign(rule=words) for name, words in rules.items()])
            shown = {
                "identifier_own": "own identifier",
                "identifier_other": "that of another puzzle",
                "identifier_none": "none",
            }
            yield dots(
                told,
                category="rule",
                measures=shown,
                labels=list(rules.values()),
                name="identifiers",
                title="What does a wrong puzzle identifier do?",
                caption="Held-out grids of made puzzles in ARC's format. A grid alone does not say which rule applies.",
                x_title="solved grids",
                **limits,
            )
