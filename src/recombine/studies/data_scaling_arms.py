"""Two further arms of the study `data-scaling`: a grid world, and how the data needed grows with the space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput
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
"""The grid world of the laptop profile."""

CLAIMS = (
    Claim(
        "fits-on-preferences",
        "data-scaling",
        "On the preference grid world the network solves its training tasks (accuracy of whole trajectories with the most "
        "combinations).",
        "above",
        0.5,
        role="precondition",
    ),
    Claim(
        "rises-on-preferences",
        "data-scaling",
        "There, too, held-out accuracy rises with the number of training combinations (whole trajectories, most minus "
        "fewest).",
        "greater",
        0.05,
        needs=("fits-on-preferences",),
    ),
    Claim(
        "control-fails-on-preferences",
        "data-scaling",
        "It does not where each combination has preferences of its own (most minus fewest).",
        "below",
        0.05,
        role="control",
    ),
    Claim(
        "sub-exponential",
        "data-scaling",
        "The number of combinations needed for a held-out R2 grows more slowly than the space: slope of its logarithm on "
        "that of the number of combinations that there are.",
        "below",
        1.0,
    ),
)


def preference_runs(study: DataScaling) -> list[tuple[RunConfig, dict[str, Any]]]:
    """The grid world and its control at each number of combinations, with one common test."""
    base = study.preferences
    if base is None:
        return []
    numbers = sorted(study.preference_numbers)
    reserve = base.space.size - numbers[-1]
    control = LookupPreferences.model_validate(base.family.model_dump(exclude={"kind"}))
    found = []
    for family, sizes in ((base.family, numbers), (control, [numbers[0], numbers[-1]])):
        for number in sizes:
            for seed in study.grid_seeds:
                changes = {"family": family, "support": Random(number=number, reserve=reserve)}
                labels = {"arm": "preferences", "replicate": seed, "number": number, "family": family.kind}
                found.append((study.run(base, seed, **changes), labels | {"space": base.space.title}))
    return found


def space_runs(study: DataScaling) -> list[tuple[RunConfig, dict[str, Any]]]:
    """Spaces of several sizes, each with numbers of combinations that double."""
    found = []
    for space, numbers in study.growth.items():
        for number in numbers:
            for seed in study.seeds:
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
    if study.preferences is not None:
        runs = tables.runs[tables.runs["arm"] == "preferences"]
        numbers = sorted(study.preference_numbers)

        def score(name: str, number: int, family: str) -> Float[np.ndarray, " replicate"]:
            return at(runs, name, study.grid_seeds, number=number, family=family)

        def rise(family: str) -> Float[np.ndarray, " replicate"]:
            return score("accuracy_held_out", numbers[-1], family) - score(
                "accuracy_held_out", numbers[0], family
            )

        main = study.preferences.family.kind
        values["fits-on-preferences"] = score("accuracy_in", numbers[-1], main)
        values["rises-on-preferences"] = rise(main)
        values["control-fails-on-preferences"] = rise("lookup-preferences")
    if study.growth:
        values["sub-exponential"] = jackknife(
            needed(tables, study.threshold), growth_slope, list(study.seeds), rows=len(study.growth)
        )
    return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]
