"""Shapes that studies share: sizes of profiles, bases of runs, preconditions and controls."""

from __future__ import annotations

from typing import Any

import numpy as np

from recombine.design.arm import Arm
from recombine.design.claims import Claims, StudyClaim, control, precondition
from recombine.design.column import Column
from recombine.design.study import Study
from recombine.errors import BadInput
from recombine.training.config import RunConfig

SMOKE_SPACE: dict[str, Any] = {"kind": "subset", "modules": 10, "max_active": 3}
"""A space that is small enough for a smoke profile."""

PAPER_RUN: dict[str, Any] = {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "recipe": "paper", "eval_every": 100}
"""The network and recipe of the paper *Scaling can lead to compositional generalization*."""

PREFERENCES = RunConfig.model_validate(
    {
        "space": {"kind": "subset", "modules": 6, "max_active": 3},
        "support": {"kind": "random", "number": 28},
        "family": {"kind": "preferences", "features": 6, "objects": 2, "coefficients": "k-hot"},
        "model": {"kind": "mlp", "width": 256, "depth": 2},
        "recipe": {"kind": "fast", "steps": 2000},
        "eval_every": 250,
    }
)
"""The grid world of preferences at laptop size, small enough that more than .9 of the trained trajectories are right (.95 on a
tuning seed). With 8 constituents and drawn coefficients it takes 16,000 steps."""

SMOKE_PREFERENCES: dict[str, Any] = {
    "family": {"kind": "preferences", "features": 6},
    "space": {"kind": "subset", "modules": 6, "max_active": 3},
    "model": {"kind": "mlp", "width": 32, "depth": 1},
    "recipe": {"kind": "fast", "steps": 50, "tasks": 32},
}
"""The same in seconds."""

PAPER_PREFERENCES: dict[str, Any] = {
    "space": {"kind": "subset", "modules": 16, "max_active": 3},
    "support": {"kind": "random", "held_out": 0.25},
    "family": {"kind": "preferences", "features": 16},
    "model": {"kind": "mlp", "width": 1024, "depth": 2},
    "recipe": {"kind": "paper", "learning_rate": 1e-4, "weight_decay": 1e-3, "steps": 3_000_000},
    "eval_every": 1000,
}
"""The same at the size of the paper."""

GOALS = RunConfig.model_validate(
    {
        "family": "goals",
        "model": {"kind": "mlp", "width": 256, "depth": 2},
        "recipe": {"kind": "fast", "steps": 2400, "samples": 16},
        "eval_every": 300,
    }
)
"""The grid world of goals, told in English, at laptop size. After 300 steps .37 of the trained trajectories are right, after 2,400
steps .96 (a tuning seed)."""

PAPER_GOALS: dict[str, Any] = {
    "family": {"kind": "goals", "grid": 11},
    "model": {"kind": "mlp", "width": 1024, "depth": 2},
    "recipe": {"kind": "paper", "learning_rate": 1e-3, "weight_decay": 3e-2, "steps": 1_000_000},
    "eval_every": 1000,
}
"""The same at the size of the paper."""


def sequence_run(
    family: Any, *, tasks: int, steps: int, eval_every: int, validation_tasks: int, **settings: Any
) -> dict[str, Any]:
    """The settings of a run of a sequence model, which reads and writes one sample per task.

    Args:
        family: The family, or its kind; parts that are not given go with it.
        tasks: Tasks per step.
        steps: Steps of training.
        eval_every: Steps between two evaluations.
        validation_tasks: Tasks of each validation stream.
        **settings: Other parts of the run.
    """
    recipe = {"kind": "fast", "tasks": tasks, "samples": 1, "steps": steps}
    sizes = {"eval_every": eval_every, "validation_tasks": validation_tasks}
    return {"family": family, "recipe": recipe, **sizes, **settings}


def ascending(study: Study, *fields: str, least: int = 2) -> None:
    """Raise ValueError unless each field holds at least `least` different sizes, smallest first."""
    for name in fields:
        levels = getattr(study, name)
        if len(levels) < least or sorted(set(levels)) != list(levels):
            raise ValueError(f"{name} must be at least {least} different sizes, smallest first, got {levels}")


def other_family(study: Any) -> None:
    """Refuse a study whose control has the family of its main runs: nothing would be left to compare."""
    if study.control.kind == study.base.family.kind:
        fields = type(study).model_fields
        usual = {"base.family": fields["base"].default.family.kind, "control": fields["control"].default.kind}
        fix = " ".join(f"{name}={kind}" for name, kind in usual.items())
        raise BadInput(
            f"The control of {study.kind} must be of another family than its main runs, but both are {study.control.kind!r}.",
            fix=f"use two families; the usual ones are {fix}",
        )


def fits(column: Column, text: str, threshold: float = 0.8, name: str = "fits") -> StudyClaim:
    """The precondition that networks fit their training tasks."""
    return precondition(name, column.above(threshold), text)


def skill(column: Column) -> Column:
    """R2 on every scale, with values below zero counted as zero.

    Below zero, R2 says how confident a network guesses. A rise there is no gain: on independent functions held-out R2 rises
    from -2.6 to -1.7. So claims and their controls count from zero.
    """
    return column.clip(lower=0).on_scales()


def control_fails(
    learned: Column, correlation: Column, learned_text: str, text: str, *, gain: Column | None = None, **more: Any
) -> Claims:
    """The control that must fail: independent random functions are learned, and nothing carries over to held-out ones.

    Args:
        learned: The score on trained combinations of the control.
        correlation: The correlation with the truth on held-out combinations of the control.
        learned_text: The statement of the precondition `control-is-learned`.
        text: The statement of the control `control-stays-at-zero`.
        gain: The effect of the main claim, computed from the runs of the control.
        **more: What `control` takes besides, for instance `version`.
    """
    yield precondition("control-is-learned", learned.above(0.3), learned_text)
    yield control("control-stays-at-zero", correlation.equivalent(0.05), text, needs="control-is-learned", **more)
    if gain is not None:
        same = "On independent random functions, the effect of the main claim, computed in the same way, is none."
        yield control("control-gains-nothing", gain.equivalent(), same, needs="control-is-learned")


def left_out(study: Study) -> Column:
    """The effect of a claim whose runs a profile leaves out: the claim is not asked."""
    seeds = tuple(study.seeds)
    return Column(seeds, ({},), lambda data: np.full((len(seeds), 1), np.nan), "left_out", left_out=True)


def if_run(study: Study, arm: Arm | None, column: str, **labels: Any) -> Column:
    """A column of an arm in the cells with these labels; `left_out` where a profile leaves them out.

    Args:
        study: The study.
        arm: The arm; None where the profile leaves it out.
        column: The column, as in `arm[column]`.
        **labels: The level of one or more axes, as in `Column.at`.
    """
    if arm is None or any(level not in arm.axes.get(axis, ()) for axis, level in labels.items()):
        return left_out(study)
    return arm[column].at(**labels)
