"""Scores of held-out pairs by the category that the table gives them."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.pairs import Pairs
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.scores import ScoreTask
from recombine.probes.tasks import at_once, over_tasks
from recombine.spaces.pairs import PairSpace
from recombine.training import RunConfig, Setting
from recombine.training.streams import Stream


class Categories(Measurement):
    """Exact match of held-out pairs (test side) by category, as `whole_CATEGORY`, and the mean over categories."""

    kind: Literal["categories"] = "categories"
    combinations: PositiveInt = 512
    """The most pairs of each category."""

    def summary_columns(self, config: RunConfig) -> frozenset[str]:
        if not isinstance(config.family, Pairs) or config.family.pairs.categories is None:
            return frozenset()
        return frozenset({"whole_by_category", *map(column, set(config.family.pairs.categories))})

    def measure(self, setting: Setting, network: Network) -> Measured:
        family, space = setting.config.family, setting.config.space
        if not isinstance(family, Pairs) or family.pairs.categories is None:
            raise BadInput("This run has no categories.", fix="family=pairs with a table and category=COLUMN")
        assert isinstance(space, PairSpace)
        every = np.array(family.pairs.categories, dtype=object)
        held_out = setting.regions.require("held_out", space.size, "test")
        named = every[np.asarray(space.numbers(held_out))]
        chosen = [np.flatnonzero(named == name)[: self.combinations] for name in sorted(set(named))]
        rows = held_out[np.concatenate(chosen)]
        names = named[np.concatenate(chosen)]
        compute = ScoreTask(family, setting.config.objective, 1)
        scores = over_tasks(compute, setting, network, rows, Stream.TEST, "categories", at_once(setting))
        right = np.asarray(scores["whole"], float)
        means = {column(name): float(right[names == name].mean()) for name in sorted(set(names))}
        table = {"pair": [space.name(row) for row in rows], "category": names.tolist(), "whole": right.tolist()}
        return Measured({"whole_by_category": float(np.mean([*means.values()])), **means}, table)


def column(category: str) -> str:
    """The name of a category's column."""
    return "whole_" + (re.sub(r"\W+", "_", category.strip()).strip("_") or "none")
