"""Further arms of the study `data-scaling`: two grid worlds, and how the data needed grows with the space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.lookup_goals import LookupGoals
from recombine.families.lookup_preferences import LookupPreferences
from recombine.models.mlp import MLP
from recombine.recipes.fast import Fast
from recombine.spaces.subset import SubsetSpace
from recombine.stats.threshold import Censored, censored_slope, reached
from recombine.stats.verdicts import Claim
from recombine.studies.base import Effect, Tables
from recombine.studies.reduce import at, jackknife
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.studies.data_scaling import DataScaling

PREFERENCES = RunConfig.model_validate(
    {
        "space": SubsetSpace(modules=8, max_active=3),
        "support": Random(number=60),
        "family": {"kind": "preferences", "features": 8, "objects": 2},
        "model": MLP(width=256, depth=2),
        "recipe": Fast(steps=1000),
        "every": 50,
    }
)
"""The grid world of preferences of the laptop profile."""

GOALS = RunConfig.model_validate(
    {
        "family": "goals",
        "model": MLP(width=256, depth=2),
        "recipe": Fast(steps=300, samples=16),
        "every": 50,
    }
)
"""The grid world of goals, told in English, of the laptop profile."""


def _claims(world: str, title: str, solved: float) -> tuple[Claim, ...]:
    """What is claimed of a grid world. `solved` is the accuracy above which its training tasks count as learned."""
    return (
        Claim(
            f"fits-on-{world}",
            "data-scaling",
            f"On the {title} the network learns its training tasks (accuracy of whole trajectories with the most "
            "combinations).",
            "above",
            solved,
            role="precondition",
        ),
        Claim(
            f"rises-on-{world}",
            "data-scaling",
            f"On the {title}, too, held-out accuracy rises with the number of training combinations (whole trajectories, "
            "most minus fewest).",
            "greater",
            0.05,
            needs=(f"fits-on-{world}",),
        ),
        Claim(
            f"control-fails-on-{world}",
            "data-scaling",
            f"It does not where each combination has {world} of its own (most minus fewest).",
            "below",
            0.05,
            role="control",
        ),
    )


CLAIMS = (
    *_claims("preferences", "preference grid world", 0.5),
    *_claims("goals", "goal grid world, told in English", 0.3),
    Claim(
        "fits-in-every-space",
        "data-scaling",
        "In every space the network fits the most training combinations well enough to reach that R2 (lowest r2_in less the "
        "threshold).",
        "above",
        0.05,
        role="precondition",
    ),
    Claim(
        "sub-exponential",
        "data-scaling",
        "The number of combinations needed for a held-out R2 grows more slowly than the space: slope of its logarithm on "
        "that of the number of combinations that there are.",
        "below",
        1.0,
        needs=("fits-in-every-space",),
        version=2,
    ),
)


class World(NamedTuple):
    """A grid world on which the study's question is asked again."""

    name: str
    base: RunConfig
    numbers: list[int]
    """Numbers of training combinations, fewest first."""
    control: Family
    """The same world without any law between combinations."""


def worlds(study: DataScaling) -> list[World]:
    """The grid worlds that the study has."""
    given = (
        ("preferences", study.preferences, study.preference_numbers, LookupPreferences),
        ("goals", study.goals, study.goal_numbers, LookupGoals),
    )
    return [
        World(name, base, sorted(numbers), control.model_validate(base.family.model_dump(exclude={"kind"})))
        for name, base, numbers, control in given
        if base is not None
    ]


def world_runs(study: DataScaling) -> list[tuple[RunConfig, dict[str, Any]]]:
    """Each grid world and its control at each number of combinations, with one common test."""
    found = []
    for name, base, numbers, control in worlds(study):
        reserve = base.space.size - numbers[-1]
        for family, sizes in ((base.family, numbers), (control, [numbers[0], numbers[-1]])):
            for number in sizes:
                for seed in study.grid_seeds:
                    changes = {"family": family, "support": Random(number=number, reserve=reserve)}
                    labels = {"arm": name, "replicate": seed, "number": number, "family": family.kind}
                    found.append((study.run(base, seed, **changes), labels | {"space": base.space.title}))
    return found


def space_runs(study: DataScaling) -> list[tuple[RunConfig, dict[str, Any]]]:
    """Spaces of several sizes, each with numbers of combinations that double."""
    found = []
    for space, numbers in study.growth.items():
        for number in numbers:
            for seed in study.growth_seeds:
                support = Random(number=number, reserve=space.size - numbers[-1])
                config = study.run(study.growth_base, seed, space=space, support=support)
                labels = {"arm": "spaces", "replicate": seed, "number": number, "family": config.family.kind}
                found.append((config, labels | {"space": space.title, "size": space.size}))
    return found


def needed(tables: Tables, threshold: float) -> pd.DataFrame:
    """For each space and replicate: how many combinations the threshold needs, or beyond which number it lies."""
    import pandas as pd

    runs = tables.runs[tables.runs["arm"] == "spaces"]
    rows = []
    for (replicate, space, size), group in runs.groupby(["replicate", "space", "size"], sort=False):
        curve = group.sort_values("number")
        scores = curve.reindex(columns=["r2_held_out"])["r2_held_out"].to_numpy(dtype=float)
        if np.isfinite(scores).all():
            found = reached(curve["number"].to_numpy(dtype=float), scores, threshold)
            rows.append((replicate, space, size, found.size, found.censored))
    return pd.DataFrame(rows, columns=["replicate", "space", "size", "needed", "censored"])


def growth_slope(frame: pd.DataFrame) -> float:
    """Slope of the logarithm of the number needed on that of the size of the space; censored numbers count as such."""
    censored: Sequence[Censored] = frame["censored"].tolist()
    logs = [math.log(value) for value in frame["size"]], [math.log(value) for value in frame["needed"]]
    try:
        return censored_slope(*logs, censored).slope.estimate
    except BadInput:
        return math.nan  # Too few numbers were reached to speak of a slope.


def effects(study: DataScaling, tables: Tables) -> list[Effect]:
    """The claims of the arms that the study has."""
    values: dict[str, Float[np.ndarray, " replicate"]] = {}
    for world, base, numbers, control in worlds(study):
        runs = tables.runs[tables.runs["arm"] == world]
        held_out, trained = (
            {
                (family.kind, number): at(runs, name, study.grid_seeds, number=number, family=family.kind)
                for family in (base.family, control)
                for number in (numbers[0], numbers[-1])
            }
            for name in ("accuracy_held_out", "accuracy_in")
        )
        values[f"fits-on-{world}"] = trained[base.family.kind, numbers[-1]]
        for claim, family in (("rises-on", base.family), ("control-fails-on", control)):
            values[f"{claim}-{world}"] = (
                held_out[family.kind, numbers[-1]] - held_out[family.kind, numbers[0]]
            )
    if study.growth:
        runs = tables.runs[tables.runs["arm"] == "spaces"]
        largest = [
            at(runs, "r2_in", study.growth_seeds, space=space.title, number=numbers[-1])
            for space, numbers in study.growth.items()
        ]
        values["fits-in-every-space"] = np.min(largest, axis=0) - study.threshold
        values["sub-exponential"] = jackknife(
            needed(tables, study.threshold), growth_slope, study.growth_seeds, rows=len(study.growth)
        )
    return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]
