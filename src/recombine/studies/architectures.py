"""Which architecture needs fewer combinations for the same held-out score?"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, Tables, claim, control, precondition, statistic
from recombine.families import Family, Lookup
from recombine.models import MLP, Hypernetwork, Model, Transformer
from recombine.stats.threshold import Reached, reached
from recombine.studies.shapes import ascending, fits, other_family
from recombine.supports import Random
from recombine.training.config import RunConfig

NETWORKS = {"mlp": "MLP", "transformer": "transformer", "hypernetwork": "hypernetwork"}
"""The networks by the fields that hold them, with their names in sentences. The first is the plain one."""


class Architectures(Study):
    """Does a transformer, or a network with the form of the teacher, need fewer combinations than a plain network?

    Held-out R2 of a plain network, a transformer and a hypernetwork against the number of training combinations. Within a
    replicate all have the same teacher, combinations, held-out test, recipe and number of steps. They differ in size: the
    question is what data they need, not which is best at a given cost.
    """

    kind: Literal["architectures"] = "architectures"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "recipe": {"kind": "fast", "steps": 60},
            },
            "mlp": {"kind": "mlp", "width": 32, "depth": 2},
            "transformer": {"kind": "transformer", "width": 16, "layers": 1, "heads": 2},
            "hypernetwork": {"kind": "hypernetwork", "hidden": 16},
            "numbers": (12, 20),
            "reserve": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"recipe": "paper", "eval_every": 100},
            "mlp": {"kind": "mlp", "width": 1024, "depth": 4},
            "transformer": {"kind": "transformer", "width": 256, "layers": 4, "heads": 4, "context": 16},
            "hypernetwork": {"kind": "hypernetwork", "hidden": 128},
            "numbers": (40, 80, 160, 320, 522),
            "reserve": 174,
            "threshold": 0.95,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "correlation_held_out")

    base: RunConfig = RunConfig()
    """What all runs share, the recipe included; the arms set model, family and support."""
    mlp: field("models", Model) = MLP(width=128, depth=3)  # type: ignore[valid-type]
    """The plain network that the others are compared with."""
    transformer: field("models", Model) = Transformer(width=64, layers=2, heads=4)  # type: ignore[valid-type]
    """The transformer."""
    hypernetwork: field("models", Model) = Hypernetwork()  # type: ignore[valid-type]
    """The network with the form of the teacher."""
    numbers: tuple[PositiveInt, ...] = (40, 80, 160)
    """Numbers of training combinations, fewest first."""
    reserve: NonNegativeInt = 376
    """Combinations of the common test."""
    threshold: float = Field(default=0.8, lt=1)
    """The held-out R2 that must be reached."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which every architecture must fail."""

    def check(self) -> None:
        ascending(self, "numbers")
        other_family(self)

    def arms(self) -> dict[str, Arm]:
        main = Arm(
            self.base,
            network={name: {"model": getattr(self, name)} for name in NETWORKS},
            support=Random(reserve=self.reserve),
            number=self.numbers,
        )
        return {"main": main, "lookup": main.replace(family=self.control, number=self.numbers[:1])}

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        others = [name for name in NETWORKS if name != "mlp"]
        for name, words in NETWORKS.items():
            yield fits(
                main["r2_in"].at(network=name).last("number"),
                f"The {words} fits its training tasks with the most combinations (r2_in).",
                name=f"{name}-fits",
            )
        for name in others:
            yield claim(
                f"{name}-needs-fewer",
                statistic(self.doublings_saved, main, network=name).greater(0.25),
                f"The {name} reaches the threshold of held-out R2 with fewer combinations than the MLP (doublings of their "
                "number; where one of the numbers lies beyond those tried, the smallest possible difference).",
                primary=name == "transformer",
                needs=("mlp-fits", f"{name}-fits"),
            )
        fewest = main["r2_held_out"].first("number")
        for name in others:
            yield claim(
                f"{name}-better-with-fewest",
                (fewest.at(network=name) - fewest.at(network="mlp")).greater(0.05),
                f"With the fewest combinations, held-out R2 of the {name} is higher than that of the MLP.",
                needs=("mlp-fits", f"{name}-fits"),
            )
        for name, words in NETWORKS.items():
            yield precondition(
                f"control-is-learned-by-{name}",
                lookup["r2_in"].at(network=name).above(0.3),
                f"The {words} can learn the control: r2_in with the fewest combinations.",
            )
        for name, words in NETWORKS.items():
            yield control(
                f"control-stays-at-zero-{name}",
                lookup["correlation_held_out"].at(network=name).equivalent(0.05),
                "On independent random functions, learned for the fewest combinations, predictions of the "
                f"{words} for held-out ones do not correlate with the truth (correlation within tasks).",
                needs=f"control-is-learned-by-{name}",
            )

    def needed(self, tables: Tables) -> dict[tuple[int, str], Reached]:
        """The number of combinations at which each network reaches the threshold, by replicate and network.

        A network is left out in a replicate where one of its runs failed.
        """
        runs = tables.runs.reindex(columns=["replicate", "network", "number", "r2_held_out"])
        curves = runs.pivot(index=["replicate", "network"], columns="number", values="r2_held_out")
        curves = curves.reindex(columns=list(self.numbers)).astype(float)
        whole = curves[np.isfinite(curves).all(axis=1)]
        scores = zip(whole.index, whole.to_numpy(), strict=True)
        return {key: reached(self.numbers, curve, self.threshold) for key, curve in scores}

    def doublings_saved(self, tables: Tables, network: str) -> pd.Series:
        """How many doublings of the combinations a network saves against the plain one, for each replicate."""
        needed = self.needed(tables)
        saved = {seed: doublings(needed.get((seed, "mlp")), needed.get((seed, network))) for seed in self.seeds}
        return pd.Series(saved, dtype=float)

    def figures(self, main: Arm) -> Figures:
        from recombine.figures.axes import Reference
        from recombine.figures.study import dots, lines

        regions = {"r2_held_out": "held-out combinations", "r2_in": "trained combinations"}
        labels = ["replicate", "network", "number"]
        runs = main.frame.reindex(columns=[*labels, *regions])
        yield lines(
            runs.melt(labels, list(regions), "where", "r2"),
            x="number",
            y="r2",
            series="network",
            facet="where",
            name="score_by_architecture",
            title="Which network needs fewer combinations?",
            caption="R² on combinations that were never trained (left; one common test for all) and on trained ones (right), "
            "against the number of training combinations. An architecture needs the number at which its curve on the left "
            f"reaches the dashed line, {self.threshold:g}. All have the same recipe and number of steps. Within a replicate they "
            "have the same teacher and combinations.",
            labels=NETWORKS,
            facet_labels=regions,
            floor=-0.25,
            ceiling=1.0,
            references=[Reference(self.threshold, "", "r2_held_out")],
            x_title="training combinations",
            y_title="R²",
        )
        needed = self.needed(main.tables)
        beyond = sum(number.censored != "no" for number in needed.values())
        rows = [(*key, number.size) for key, number in needed.items()]
        yield dots(
            pd.DataFrame(rows, columns=labels),
            category="network",
            measures={"number": "training combinations"},
            name="combinations_needed",
            title="How many combinations does each need?",
            caption=f"How many training combinations each network needs for a held-out R² of {self.threshold:g}, interpolated between "
            f"the numbers that were tried ({self.numbers[0]} to {self.numbers[-1]}). Left is better."
            + (f" {beyond} of {len(rows)} lie beyond these numbers and are shown at their end." if beyond else ""),
            labels=NETWORKS,
            floor=0.0,
            x_title=f"training combinations for a held-out R² of {self.threshold:g}",
        )


def doublings(plain: Reached | None, other: Reached | None) -> float:
    """How many times the plain network needs twice the combinations of the other; negative if it needs fewer.

    Where a number was not found within the numbers tried, the end beyond which it lies stands for it. The true difference
    is then at least as large, in either direction. Where both lie beyond the same end, nothing is known: NaN.
    """
    if plain is None or other is None or (plain.censored != "no" and plain.censored == other.censored):
        return math.nan
    return math.log2(plain.size / other.size)
