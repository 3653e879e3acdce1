"""Are networks that are modular also factored and decodable, and which of the three tells what they can recombine?"""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.design import Arm, Claims, Figures, Study, Tables, average, claim, control, precondition, statistic
from recombine.design.replicates import rank_correlations
from recombine.models import MLP, Masked
from recombine.probes import Decodability, Knockout, Measurement, Scores, Subnetwork
from recombine.recipes import Fast, Paper
from recombine.spaces import SubsetSpace
from recombine.studies.shapes import SMOKE_SPACE, ascending
from recombine.supports import Given, Random
from recombine.training.config import RunConfig, Seeds

TELLS = {
    "modular": "subnetworks needed for one module alone (specificity of ablation, log2)",
    "factored": "units that serve one module (purity of knockouts)",
    "decodable": "modules that a linear probe reads (intrinsic R2)",
}
"""What is inside a network, by the columns of `networks`."""
CELL = ("number", "width", "steps")
"""The settings of a network. Networks with the same number of combinations in a replicate share their support."""


class Inside(Study):
    """Are networks that are modular also factored and decodable, and which of the three tells what they can recombine?

    Networks learn a hyperteacher from few or many combinations, with two widths and two lengths of training. Of each network
    it is measured whether modules have subnetworks that are needed for them alone, whether hidden units serve one module, and
    whether a linear probe reads the modules. The three are compared with each other, and with held-out R2, among networks
    that were trained on equally many combinations: coverage is known before training and is not what they should tell.
    """

    kind: Literal["inside"] = "inside"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": SMOKE_SPACE,
                "model": {"kind": "mlp", "depth": 2},
                "recipe": {"kind": "fast", "tasks": 32},
            },
            **{"numbers": (20, 40), "reserve": 60, "widths": (16,), "steps": (10, 30)},
            **{"chosen": (0,), "mask_steps": 10, "replicates": 2},
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 6000},
        "paper": {
            "base": {"space": {"kind": "subset", "modules": 16, "max_active": 3}, "model": {"kind": "mlp", "depth": 4}},
            **{"numbers": (80, 160, 320), "reserve": 200, "widths": (128, 512), "steps": (500, 2000)},
            **{"chosen": (0, 1, 2, 3), "mask_steps": 2000},
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "intrinsic", "purity")

    base: RunConfig = RunConfig(space=SubsetSpace(modules=12, max_active=3), model=MLP(depth=3), recipe=Fast(tasks=64))
    """What all networks share."""
    numbers: tuple[PositiveInt, ...] = (40, 150)
    """Numbers of training combinations, fewest first."""
    reserve: NonNegativeInt = 140
    """Combinations of the common test."""
    widths: tuple[PositiveInt, ...] = (32, 128)
    """Widths of the networks, narrowest first."""
    steps: tuple[PositiveInt, ...] = (200, 600)
    """Lengths of training, shortest first."""
    chosen: tuple[NonNegativeInt, ...] = (0, 1)
    """The modules that get a mask."""
    mask_steps: PositiveInt = 500
    """Steps in which a mask is trained."""
    weight: float = 0.3
    """The weight of the size of a mask beside the loss: larger ones keep fewer weights. With 1, no mask solves a module."""
    replicates: PositiveInt = 12
    """Independent replicates: teacher, support, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "numbers")
        ascending(self, "widths", "steps", least=1)
        if len(self.widths) * len(self.steps) < 2:
            raise ValueError("networks with the same support must differ: give two widths or two lengths of training")

    def arms(self) -> dict[str, Arm]:
        def network(cell: Any) -> RunConfig:
            support = Random(number=cell.taught, reserve=self.reserve, require_connected=False)
            made = self.base.replace(support=support, seeds=Seeds.replicate(cell.seed))
            return made.replace(**{"model.width": cell.units, "recipe.steps": cell.length})

        def untrained(cell: Any) -> tuple[RunConfig, ...]:
            return (network(cell).replace(steps=0),)

        recipe = Paper(learning_rate=0.01, steps=self.mask_steps, tasks=64, weight_decay=0.0)
        masks = Arm(
            self.base.replace(recipe=recipe, model=Masked(model=self.base.model, weight=self.weight)),
            taught=self.numbers,
            units={width: {"model.model.width": width} for width in self.widths},
            length=self.steps,
            module=self.chosen,
            support=lambda cell: Given(combinations=((cell.module,),)),
            parents=lambda cell: (network(cell),),
        )
        support = Random(reserve=self.reserve, require_connected=False)
        networks = Arm(self.base, support=support, number=self.numbers, width=self.widths, steps=self.steps)
        largest = {self.widths[-1]: {"model.model.width": self.widths[-1]}}
        random = masks.replace(taught=self.numbers[-1:], units=largest, length=self.steps[-1:], parents=untrained)
        return {"networks": networks, "masks": masks, "random": random}

    def measurements(self) -> list[Measurement]:
        few = (
            self.reserve // 2
        )  # The test side of the held-out combinations. Masks are measured as well, so this is kept small.
        return [Scores(combinations=128, map=False), Decodability(combinations=few), Knockout(), Subnetwork()]

    def together(self, networks: Tables, masks: Tables) -> pd.DataFrame:
        """One row per network: its settings, its scores, and the three columns of `TELLS`."""
        keys = ["replicate", *CELL]
        frame = networks.runs.reindex(columns=[*keys, "r2_in", "r2_held_out", "intrinsic", "purity"])
        own = masks.runs.drop(columns=list(CELL), errors="ignore")
        named = own.rename(columns={"taught": "number", "units": "width", "length": "steps"})
        modular = specificity(named, keys).rename("modular").reset_index()
        frame = frame.rename(columns={"intrinsic": "decodable", "purity": "factored"})
        return frame.merge(modular, on=keys, how="left")

    def relation(
        self,
        networks: Tables,
        masks: Tables,
        x: str,
        y: str,
        within: tuple[str, ...] = ("number",),
        covariates: tuple[str, ...] = (),
    ) -> Any:
        """The rank correlation of two columns of `together` within groups, as one number per replicate."""
        frame = self.together(networks, masks)
        rows = len(self.numbers) * len(self.widths) * len(self.steps)
        return rank_correlations(frame, x, y, within, self.seeds, rows, covariates)

    def claims(self, networks: Arm, masks: Arm, random: Arm) -> Claims:
        def corr(x: str, y: str = "r2_held_out", **choice: Any) -> Any:
            return statistic(self.relation, networks, masks, x=x, y=y, **choice)

        text = "The networks that are largest and trained longest fit their training tasks (lowest r2_in over numbers)."
        best = {"width": self.widths[-1], "steps": self.steps[-1]}
        yield precondition("fits", networks["r2_in"].at(**best).lowest().above(0.8), text)
        text = "Networks with the same support differ in what they recombine (held-out R2, highest minus lowest, most combinations)."
        held = networks["r2_held_out"].at(number=self.numbers[-1])
        yield precondition("networks-differ", (held.highest() - held.lowest()).above(0.1), text)
        text = (
            "Masks find subnetworks that solve a module by itself (R2, networks that are largest and trained longest)."
        )
        solved = masks["r2_in"].at(taught=self.numbers[-1], units=best["width"], length=best["steps"]).mean()
        yield precondition("masks-are-learned", solved.above(0.5), text)
        needs = ("fits", "networks-differ", "masks-are-learned")
        text = (
            "Trained networks have subnetworks that are needed for their module more than for others (specificity of ablation, log2 of a "
            "ratio of errors, mean over networks)."
        )
        yield claim("ablation-is-specific", statistic(self.by_replicate, masks).greater(0.05), text, needs=needs)
        pairs = list(itertools.combinations(TELLS, 2))
        mean = average(*(corr(*pair) for pair in pairs))
        text = (
            "Modular, factored and decodable networks are the same ones: among networks trained on equally many combinations, the three "
            "go together (mean of the three rank correlations)."
        )
        yield claim("they-coincide", mean.greater(0.2), text, primary=True, needs=needs)
        for one, other in pairs:
            text = f"Networks that are more {one} are more {other} (rank correlation within a number of combinations)."
            yield claim(f"{one}-and-{other}", corr(one, other).greater(0.1), text, needs=needs)
        for name, words in TELLS.items():
            text = f"What is inside tells held-out R2 beyond coverage: {words} (rank correlation within a number of combinations)."
            yield claim(f"{name}-tells", corr(name).greater(0.1), text, needs=needs)
            text = f"The same among networks with the same settings, at equal r2_in: {words}."
            alike = corr(name, within=CELL, covariates=("r2_in",))
            yield claim(f"{name}-tells-at-equal-fit", alike.greater(0.1), text, needs=needs)
        for one, other in pairs:
            text = f"How {other} a network is tells held-out R2 better than how {one} it is (difference of the two rank correlations)."
            yield claim(f"{other}-tells-more-than-{one}", (corr(other) - corr(one)).greater(0.1), text, needs=needs)
        text = "Masks on random weights are needed for no module alone (specificity of ablation, log2 of a ratio of errors)."
        yield control("control-random-weights", statistic(self.by_replicate, random).below(0.1), text)
        text = "Training makes units serve fewer modules than random weights do (purity, trained minus untrained, most combinations)."
        gain = (networks["purity"] - networks["purity_untrained"]).at(number=self.numbers[-1], **best)
        yield claim("training-factors", gain.greater(0.02), text, needs="fits")

    def by_replicate(self, masks: Tables) -> pd.Series:
        """The specificity of ablation, mean over the networks of a replicate."""
        return specificity(masks.runs, ["replicate"])

    def figures(self, networks: Arm, masks: Arm) -> Figures:
        from recombine.figures.study import scatter

        frame = self.together(networks.tables, masks.tables)
        settings = [f"width {row.width}, {row.steps} steps, replicate {row.replicate}" for row in frame.itertuples()]
        for name, words in TELLS.items():
            yield scatter(
                frame.assign(name=settings),
                x=name,
                y="r2_held_out",
                group="number",
                point_name="name",
                name=f"{name}_and_held_out",
                title=f"Do {name} networks recombine better?",
                caption="One point per network. Only the relation within a colour goes beyond coverage, which is known before training.",
                labels={number: f"{number} combinations" for number in self.numbers},
                ordered=True,
                fit="common",
                x_title=words,
                y_title="held-out R²",
            )
        yield scatter(
            frame.assign(name=settings),
            x="modular",
            y="decodable",
            group="number",
            point_name="name",
            name="modular_and_decodable",
            title="Are modular networks decodable?",
            caption="One point per network.",
            labels={number: f"{number} combinations" for number in self.numbers},
            ordered=True,
            fit="common",
            x_title=TELLS["modular"],
            y_title=TELLS["decodable"],
        )


def specificity(runs: pd.DataFrame, keys: list[str]) -> pd.Series:
    """How much more a network loses the tasks of a module than the other tasks, without the module's subnetwork (log2).

    The error (1 - R2) of the ablated network on trained combinations with the module, relative to that of the whole network
    there, divided by the same ratio on combinations without the module; its log2, and the mean over masks. A ratio of
    errors still tells networks apart where R2 is below zero, which it is for many ablated ones.

    Args:
        runs: One row per mask, with the columns of the measurement `subnetwork`.
        keys: The columns that name a group of masks.
    """
    parts = [f"{part}_{side}_in" for part in ("whole", "ablated") for side in ("own", "other")]
    frame = runs.reindex(columns=[*keys, *parts])
    errors = (1 - frame[parts].astype(float)).clip(lower=1e-3).map(np.log2)
    whole, ablated = (errors[f"{part}_own_in"] - errors[f"{part}_other_in"] for part in ("whole", "ablated"))
    return (ablated - whole).groupby([frame[key] for key in keys]).mean()
