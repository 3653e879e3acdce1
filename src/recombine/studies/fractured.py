"""Do networks that evolved without a target hold a picture in another way than networks trained to draw it?"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.cppn.changes import CHANGES
from recombine.cppn.picbreeder import read_genome
from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.errors import BadInput
from recombine.families import Picture
from recombine.probes import Measurement, Representation
from recombine.studies.shapes import ascending
from recombine.training.config import RunConfig, Seeds

AGREE = 1e-3
"""Outputs agree when their mean squared difference is at most this."""
NAMES = {"evolved": "evolved", "trained": "SGD", "sparse": "SGD with L1", "relu": "SGD with ReLU"}
ADAPTED = {"evolved_adapts": "evolved", "trained_adapts": "SGD", "fresh": "random weights"}


def drawing(side: int, eval_every: int, **search: int) -> dict[str, Any]:
    """The settings of a run on a picture: every step sees every pixel."""
    return {
        "family": {"kind": "picture", "side": side, "search": search},
        "recipe": {"kind": "paper", "tasks": 1, "samples": side**2, "weight_decay": 0.0, "learning_rate": 3e-3},
        "eval_every": eval_every,
        "validation_tasks": 4,
    }


class Fractured(Study):
    """Do evolved and trained networks that draw the same picture hold it in the same way, and adapt at the same cost?

    A novelty search, which has no target, evolves a network that draws a picture. Networks of the same layers and activations
    are trained by gradient descent until they draw the same picture. Then the two are compared inside: does the picture stay
    symmetric when weights change, are neurons even or odd, how many different feature maps are there? Last, both adapt to the
    picture with one part changed: what is left after few steps, or when few weights move?
    """

    kind: Literal["fractured"] = "fractured"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": drawing(16, 150, population=16, generations=12, depth=4, width=10, hidden=2),
            "steps": 300,
            "adapt_steps": (20, 60),
            "draws": 32,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 5000, "replicates": 24},
        "paper": {"base": drawing(64, 1000, generations=600, depth=16, width=24, hidden=18), "steps": 100_000},
    }
    shown: ClassVar[tuple[str, ...]] = ("mse", "sweep_asymmetry", "parity_purity", "distinct_maps", "neurons", "left")

    base: RunConfig = RunConfig.model_validate(drawing(32, 500))
    """What all runs share. A step sees every pixel."""
    evolved: Path | None = None
    """A network that people evolved on Picbreeder (a zip archive or XML); None for those of our own search. It is read once, and
    runs hold the genome itself."""
    steps: PositiveInt = 4000
    """Steps of training on the picture as it was found."""
    adapt_steps: tuple[PositiveInt, ...] = (30, 300)
    """Steps of training on the changed picture, fewest first."""
    adapt_rates: tuple[PositiveFloat, ...] = (3e-4, 3e-3)
    """Learning rates on the changed picture, smallest first. The best one counts for each network, change and number of steps:
    evolved weights are larger, and a rate that suits trained ones may be too large for them."""
    sparsity: PositiveFloat = 1e-4
    """The weight of the sum of absolute weights in the L1 arm."""
    draws: PositiveInt = 128
    """Changed rows of weights of each network, for the sweep asymmetry."""
    replicates: PositiveInt = Field(default=8)

    def check(self) -> None:
        ascending(self, "adapt_steps", "adapt_rates", least=1)
        if not isinstance(self.base.family, Picture):
            raise BadInput(
                f"fractured is about pictures; the family is {self.base.family.kind!r}.", fix="base.family=picture"
            )

    def measurements(self) -> list[Measurement]:
        return [Representation(draws=self.draws)]

    def picture_run(self) -> RunConfig:
        """The base, with the genome of the file if there is one."""
        if self.evolved is None:
            return self.base
        return self.base.replace(family=self.base.family.replace(genome=read_genome(self.evolved)))

    def arms(self) -> dict[str, Arm]:
        base = self.picture_run()
        first = {
            "evolved": base.replace(steps=0, **{"model.weights": "evolved"}),
            "trained": base.replace(steps=self.steps),
            "sparse": base.replace(steps=self.steps, sparsity=self.sparsity),
            "relu": base.replace(steps=self.steps, relu=True),
        }
        adapt = Arm(
            base,
            change={change: {"support": {"kind": "given", "combinations": ((change,),)}} for change in CHANGES},
            steps=self.adapt_steps,
            learning_rate=self.adapt_rates,
        )
        adapts = {
            f"{name}_adapts": adapt.replace(parents=lambda cell, config=first[name]: (replicate(config, cell.seed),))
            for name in ("evolved", "trained")
        }
        return {name: Arm(config) for name, config in first.items()} | adapts | {"fresh": adapt}

    def claims(
        self, evolved: Arm, trained: Arm, sparse: Arm, relu: Arm, evolved_adapts: Arm, trained_adapts: Arm, fresh: Arm
    ) -> Claims:
        yield precondition(
            "dense-is-exact", evolved["mse"].below(1e-6), "The dense network draws the picture of its genome (MSE)."
        )
        yield precondition(
            "picture-is-symmetric",
            evolved["picture_asymmetry"].below(0.2),
            "The picture is nearly symmetric about one axis (odd share of its variance).",
        )
        for arm, words in (
            (trained, "trained network"),
            (sparse, "network trained with an L1 penalty"),
            (relu, "ReLU network"),
        ):
            yield precondition(
                f"{arm.name}-agrees",
                arm["mse"].below(AGREE),
                f"The {words} draws the same picture (MSE of its outputs).",
            )
        asymmetry, purity, maps = "sweep_asymmetry", "parity_purity", "distinct_maps"
        same = ("dense-is-exact", "picture-is-symmetric")
        yield claim(
            "sweeps-break-symmetry",
            (trained[asymmetry] - evolved[asymmetry]).greater(0.05),
            "When a row of weights changes, more of the change of the picture is asymmetric in the trained network than in the "
            "evolved one (difference of sweep asymmetry).",
            primary=True,
            needs=(*same, "trained-agrees"),
        )
        yield claim(
            "neurons-are-purer",
            (evolved[purity] - trained[purity]).greater(0.05),
            "Distinct neurons of the evolved network are more purely even or odd than those of the trained one (difference of "
            "parity purity).",
            needs=(*same, "trained-agrees"),
        )
        yield claim(
            "fewer-maps",
            (trained[maps] / evolved[maps]).log2().greater(1.0),
            "The trained network has more than twice as many distinct feature maps (log2 of the ratio).",
            needs=("dense-is-exact", "trained-agrees"),
        )
        yield claim(
            "sparsity-is-not-enough",
            (sparse[asymmetry] - evolved[asymmetry]).greater(0.05),
            "With an L1 penalty the sweeps of the trained network are still more asymmetric (difference of sweep asymmetry).",
            needs=(*same, "sparse-agrees"),
        )
        yield claim(
            "sparse-neurons-are-mixed",
            (evolved[purity] - sparse[purity]).greater(0.05),
            "With an L1 penalty the neurons of the trained network are still less pure (difference of parity purity).",
            needs=(*same, "sparse-agrees"),
        )
        yield claim(
            "relu-breaks-symmetry",
            (relu[asymmetry] - evolved[asymmetry]).greater(0.05),
            "With ReLUs the sweeps of the trained network are more asymmetric, too (difference of sweep asymmetry).",
            needs=(*same, "relu-agrees"),
        )
        few, many = self.adapt_steps[0], self.adapt_steps[-1]
        evolved_left, trained_left, fresh_left = (
            arm["left"].log2().lowest("learning_rate") for arm in (evolved_adapts, trained_adapts, fresh)
        )
        gap = trained_left - evolved_left
        yield claim(
            "adapts-better",
            gap.at(steps=few).mean().greater(0.5),
            f"After {few} steps on the changed picture the trained network has more of the change left to learn than the evolved "
            "one (log2 of the ratio, mean over the changes).",
            needs=("dense-is-exact", "trained-agrees"),
        )
        for change in CHANGES:
            yield claim(
                f"adapts-better-{change}",
                gap.at(steps=many, change=change).greater(0.5),
                f"So it has after {many} steps in this change of one part: {change}.",
                needs=("dense-is-exact", "trained-agrees"),
            )
        yield claim(
            "few-weights-do-more",
            mean_of(*(few_left(trained, change) - few_left(evolved, change) for change in CHANGES)).greater(0.5),
            "When the few weights that help most move, to first order, more of the change is left in the trained network than "
            "in the evolved one (log2 of the ratio, mean over the changes).",
            needs=("dense-is-exact", "trained-agrees"),
        )
        yield claim(
            "few-weights-change-both",
            (few_left(trained, "both-recoloured") - few_left(evolved, "both-recoloured")).greater(0.5),
            "So it is where a part and its mirror image are recoloured together.",
            needs=("dense-is-exact", "picture-is-symmetric", "trained-agrees"),
        )
        yield control(
            "few-steps-are-few",
            (fresh_left - trained_left).at(steps=few).mean().greater(1.0),
            f"In {few} steps, random weights do not learn the changed picture: more than twice as much error is left as in the "
            "network that already draws the picture (log2 of the ratio).",
            needs="trained-agrees",
        )

    def figures(
        self, evolved: Arm, trained: Arm, sparse: Arm, relu: Arm, evolved_adapts: Arm, trained_adapts: Arm, fresh: Arm
    ) -> Figures:
        from recombine.figures.feature_maps import feature_maps, film_strips
        from recombine.figures.study import dots, lines, with_columns

        arms = (evolved, trained, sparse, relu)
        shown = {NAMES[arm.name]: table for arm in arms if len(table := first_run(arm))}
        if shown:
            yield feature_maps(shown)
            yield film_strips({name: table for name, table in shown.items() if name in ("evolved", "SGD")})
        scores = pd.concat([arm.frame for arm in arms], ignore_index=True)
        for column, title, words in (
            ("sweep_asymmetry", "Does the picture stay symmetric when weights change?", "odd share of the change"),
            ("parity_purity", "Are neurons even or odd?", "parity purity of distinct neurons"),
            ("distinct_maps", "How many different feature maps are there?", "distinct feature maps"),
        ):
            yield dots(
                scores,
                category="arm",
                measures={column: words},
                labels=NAMES,
                name=column,
                title=title,
                caption="All networks of a replicate draw the same picture with layers of the same shape.",
                x_title=words,
            )
        adapted = pd.concat([arm.frame for arm in (evolved_adapts, trained_adapts, fresh)], ignore_index=True)
        cells = ["arm", "replicate", "change", "steps"]
        adapted = with_columns(adapted, *cells, "left").groupby(cells, sort=False)["left"].min().reset_index()
        yield lines(
            adapted,
            x="steps",
            y="left",
            series="arm",
            labels=ADAPTED,
            controls=["fresh"],
            facet="change",
            name="adaptation",
            title="What does a changed part cost?",
            caption="The error on the picture with one part changed, relative to the error of the unchanged picture on it, after "
            "steps of training from the networks that draw the unchanged picture, or from random weights. "
            "The best learning rate counts.",
            log_y=True,
            x_title="steps on the changed picture",
            y_title="share of the change that is left",
        )


def replicate(config: RunConfig, seed: int) -> RunConfig:
    """The run of a replicate."""
    return config.model_copy(update={"seeds": Seeds.replicate(seed)})


def few_left(arm: Arm, change: str) -> Column:
    """The share of a change that is left, to first order, after few weights have moved (log2)."""
    return arm[f"few_weights_{change}"].log2()


def mean_of(*columns: Column) -> Column:
    """The mean of columns with one cell each."""
    return sum(columns[1:], columns[0]) / len(columns)


def first_run(arm: Arm) -> pd.DataFrame:
    """The table `representation` of the first replicate of an arm with one cell."""
    table = arm.tables["representation"]
    return table[table["replicate"] == table["replicate"].min()] if len(table) else table
