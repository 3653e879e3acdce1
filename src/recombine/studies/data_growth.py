"""How does the number of training combinations that a network needs grow with the space of combinations?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float
from pydantic import Field, PositiveInt

from recombine.design import Arm, Claims, Figures, Study, Tables, claim, precondition, statistic
from recombine.design.replicates import growth_exponents, needed_sizes
from recombine.models import MLP
from recombine.recipes import Fast
from recombine.spaces import SubsetSpace
from recombine.studies.shapes import PAPER_RUN
from recombine.supports import Random
from recombine.training.config import RunConfig

DOUBLING = tuple(12 * 2**power for power in range(14))


class DataGrowth(Study):
    """Does the number of training combinations that a held-out R2 needs grow more slowly than the space?

    The literature says that it does not grow exponentially with the number of constituents. In spaces of several sizes the
    number of combinations doubles until the threshold is reached; the slope of one logarithm on the other decides.
    """

    kind: Literal["data-growth"] = "data-growth"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "spaces": ((8, 2), (8, 3)),
            "base": {"model": {"kind": "mlp", "width": 32, "depth": 2}, "recipe": {"kind": "fast", "steps": 50}},
            "threshold": 0.2,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "spaces": ((8, 2), (8, 3), (16, 2), (16, 3), (16, 4), (24, 3), (24, 4), (32, 3)),
            "base": PAPER_RUN,
            "threshold": 0.95,
            "replicates": 3,
        },
    }

    spaces: tuple[tuple[PositiveInt, PositiveInt], ...] = ((12, 2), (8, 3), (12, 3), (16, 3))
    """Modules and most active modules of each space."""
    base: RunConfig = RunConfig(model=MLP(width=128, depth=3), recipe=Fast(steps=500))
    """What all runs share. Networks of 2 x 128 with 200 steps did not fit the larger spaces, which looked like a need of
    data. After that look the precondition was added, and fresh seeds decide."""
    threshold: float = Field(default=0.8, gt=0, lt=1)
    """The held-out R2 whose number of combinations is sought."""
    first_seed: int = 2000
    """Other seeds than those of the first look."""

    def numbers(self, space: SubsetSpace) -> list[int]:
        """Numbers of combinations that double, up to three quarters of the space."""
        return [number for number in DOUBLING if space.width <= number <= 0.75 * space.size][-4:]

    def arms(self) -> dict[str, Arm]:
        spaces = [SubsetSpace(modules=modules, max_active=active) for modules, active in self.spaces]
        cases = [
            {"space": space, "support": Random(reserve=space.size - self.numbers(space)[-1]), "number": number}
            for space in spaces
            for number in self.numbers(space)
        ]
        return {"main": Arm(self.base, cases=cases)}

    def claims(self, main: Arm) -> Claims:
        yield precondition(
            "fits-in-every-space",
            (main["r2_in"].last("number").lowest() - self.threshold).above(0.05),
            "In every space the network fits the most training combinations well enough to reach that R2 (lowest r2_in less "
            "the threshold).",
        )
        yield claim(
            "sub-exponential",
            statistic(self.slope, main).below(1.0),
            "The number of combinations needed for a held-out R2 grows more slowly than the space: slope of its logarithm on "
            "that of the number of combinations that exist.",
            needs="fits-in-every-space",
            version=2,
        )

    def slope(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """The slope over all replicates, as one pseudo-value per replicate."""
        return growth_exponents(self.needed(tables), "size", self.seeds, rows=len(self.spaces))

    def needed(self, tables: Tables) -> pd.DataFrame:
        """For each space and replicate: how many combinations the threshold needs, or beyond which number it lies."""
        spaces = {space.title: space for space in (SubsetSpace(modules=m, max_active=k) for m, k in self.spaces)}
        parts = [
            needed_sizes(
                tables.runs[tables.runs["space"] == title].reindex(
                    columns=["replicate", "space", "number", "r2_held_out"]
                ),
                ["replicate", "space"],
                size="number",
                score="r2_held_out",
                threshold=self.threshold,
                points=len(self.numbers(space)),
            ).assign(size=space.size)
            for title, space in spaces.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def figures(self, main: Arm) -> Figures:
        from recombine.figures.study import lines

        needed = self.needed(main.tables)
        yield lines(
            needed,
            x="size",
            y="needed",
            name="needed_by_space",
            title="How does the data needed grow with the space?",
            caption="How many training combinations a held-out R² needs, against the size of the space; both axes are "
            f"logarithmic. {int((needed['censored'] != 'no').sum())} of {len(needed)} lie beyond the numbers tried and are "
            "drawn at the largest (or smallest) number; the slope treats them as censored.",
            log_y=True,
            x_title="combinations in the space",
            y_title=f"training combinations needed for R² {self.threshold:g}",
        )
