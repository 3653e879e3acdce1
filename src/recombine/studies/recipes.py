"""Do the recipes `fast` and `paper` give the same answers?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, Tables, claim, statistic
from recombine.models import MLP
from recombine.recipes import Fast, Paper, Recipe
from recombine.studies.paired_supports import NAMES, Kinds, kinds_in_pairs, lost
from recombine.studies.shapes import fits
from recombine.supports import Random
from recombine.training.config import RunConfig

COMPARED = {
    "disconnected-hurts": ("halves", "random-as-halves"),
    "missing-part-hurts": ("missing-part", "random"),
    "unpopular-hurts": ("unpopular", "random-as-unpopular"),
    "popular-does-not-hurt": ("popular", "random"),
    "balance-does-not-matter": ("balanced", "random"),
}
"""The claims of `supports` that are asked again: a kind of support and the one that it is compared with."""


class Recipes(Study):
    """Do a recipe that takes minutes and the published recipe answer the same questions in the same way?

    The supports of `data-scaling` and `supports` on the hyperteacher, trained with both recipes.
    """

    kind: Literal["recipes"] = "recipes"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 3},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
            },
            "fast": {"kind": "fast", "steps": 60},
            "paper": {"kind": "paper", "steps": 200, "learning_rate": 1e-3},
            "paper_every": 25,
            "number": 40,
            "few": 15,
            "reserve": 40,
            "popular": 3,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"model": {"kind": "mlp", "width": 1024, "depth": 4}, "eval_every": 100},
            "paper": "paper",
            "replicates": 3,
        },
    }

    base: RunConfig = RunConfig(model=MLP(width=128, depth=3))
    """What all runs share."""
    fast: field("recipes", Recipe) = Fast()  # type: ignore[valid-type]
    """The recipe that takes minutes."""
    paper: field("recipes", Recipe) = Paper(steps=4500)  # type: ignore[valid-type]
    """The published recipe. At this size 4,500 steps reach the loss that `fast` has after about 220 of its 500."""
    paper_every: PositiveInt = 100
    """Steps of `paper` between two evaluations."""
    number: PositiveInt = 320
    """Combinations of the random, balanced and popular supports."""
    few: PositiveInt = 40
    """Combinations of the small random support."""
    reserve: NonNegativeInt = 376
    """Combinations that random supports hold out."""
    popular: PositiveInt = 4
    """The number of popular constituents."""

    def check(self) -> None:
        if self.few >= self.number:
            raise ValueError(f"few={self.few} must be less than number={self.number}")
        if self.fast.kind == self.paper.kind:
            raise ValueError("the two recipes must differ in kind")

    def arms(self) -> dict[str, Arm]:
        kinds: Kinds = {
            **kinds_in_pairs(self.base.space, self.number, self.reserve, self.popular),
            "random-few": Random(number=self.few, reserve=self.reserve),
        }
        fast = Arm(self.base, recipe=self.fast, support=kinds)
        return {"fast": fast, "paper": fast.replace(recipe=self.paper, eval_every=self.paper_every)}

    def claims(self, fast: Arm, paper: Arm) -> Claims:
        yield claim(
            "equivalent-at-matched-loss",
            statistic(difference_at_matched_loss, fast, paper, support="random").equivalent(0.02),
            "At equal training loss the two recipes have the same held-out R2 (fast minus paper, many random combinations).",
            primary=True,
        )
        yield claim(
            "equivalent-at-matched-loss-with-few",
            statistic(difference_at_matched_loss, fast, paper, support="random-few").equivalent(0.02),
            "The same holds with few training combinations, where recombining is hard.",
        )
        # What `data-scaling` and `supports` claim of the hyperteacher, with their directions and margins.
        for recipe, arm in (("fast", fast), ("paper", paper)):
            yield fits(
                arm["score_in"].lowest(),
                f"With {recipe} the network fits its training tasks (lowest r2_in over all supports).",
                name=f"{recipe}-fits",
            )
            held_out = arm["score_held_out"]
            yield claim(
                f"{recipe}-rises",
                (held_out.at(support="random") - held_out.at(support="random-few")).greater(0.05),
                f"With {recipe} held-out R2 is higher with many training combinations than with few.",
                needs=f"{recipe}-fits",
            )
            for name, (support, against) in COMPARED.items():
                loss = lost(arm, support, against)
                yield claim(
                    f"{recipe}-{name}",
                    loss.greater(0.05) if name.endswith("-hurts") else loss.equivalent(0.02),
                    f"With {recipe}: R2 lost with the support {support} against {against}, on combinations that both hold out.",
                    needs=f"{recipe}-fits",
                )

    def figures(self, fast: Arm, paper: Arm) -> Figures:
        from recombine.figures.study import dots, scatter

        curves = pd.concat([fast.tables.curves, paper.tables.curves], ignore_index=True)
        curves = curves.reindex(columns=["support", "arm", "loss", "score_held_out", "run"])
        curves = curves[curves["support"] == "random"]
        yield scatter(
            curves.assign(loss=np.log10(curves["loss"].astype(float))),
            x="loss",
            y="score_held_out",
            group="arm",
            name="on_the_way",
            title="Is it the loss or the recipe?",
            caption="One point per evaluation of a run during training: the training loss since the last evaluation, and R² on "
            "held-out combinations. Training goes from right to left. Where the two clouds coincide, equal loss means equal "
            "recombination.",
            labels={"fast": "fast", "paper": "paper"},
            point_name="run",
            x_title="training loss (power of ten)",
            y_title="held-out R²",
        )
        runs = pd.concat([fast.frame, paper.frame], ignore_index=True)
        runs = runs.reindex(columns=["replicate", "support", "arm", "score_held_out"])
        wide = runs.pivot_table(index=["replicate", "support"], columns="arm", values="score_held_out", sort=False)
        yield dots(
            wide.reindex(columns=["fast", "paper"]).reset_index(),
            category="support",
            measures=("fast", "paper"),
            name="by_support",
            title="Do the same supports hurt?",
            caption="Each kind of training support with both recipes. `paper` stops before it has come as far as `fast`, so it lies "
            "lower. What counts is whether the same supports lie below the others.",
            labels={kind: name for kind, name in NAMES.items() if kind in fast.axes["support"]},
            floor=-0.5,
            ceiling=1.0,
            x_title="held-out R²",
        )


def difference_at_matched_loss(fast: Tables, paper: Tables, support: str) -> pd.Series:
    """Held-out score of `fast` minus that of `paper` at the lowest loss that both reached, for each replicate.

    A curve has a loss (the mean since the last evaluation) and a score at each evaluation. Between evaluations both are
    taken as linear in the logarithm of the loss, so that the denser curve gains nothing by its density. The choice of
    the loss does not look at the score.
    """
    differences = {}
    curves = [tables.curves for tables in (fast, paper)]
    if any("loss" not in frame for frame in curves):
        return pd.Series(dtype=float)
    curves = [frame[frame["support"] == support].sort_values("step") for frame in curves]
    for replicate in set(curves[0]["replicate"]) & set(curves[1]["replicate"]):
        losses, scores = [], []
        for frame in curves:
            own = frame[frame["replicate"] == replicate]
            losses.append(np.log(own["loss"].cummin().to_numpy(dtype=float)))
            scores.append(own["score_held_out"].to_numpy(dtype=float))
        common = max(loss.min() for loss in losses)
        first, second = (np.interp(-common, -loss, score) for loss, score in zip(losses, scores, strict=True))
        differences[replicate] = float(first - second)
    return pd.Series(differences, dtype=float)
