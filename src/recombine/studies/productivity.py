"""Does a network go on to combine more parts than it was ever shown together?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt, model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup import Lookup
from recombine.models.base import Model
from recombine.models.hypernetwork import Hypernetwork
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.spaces.subset import SubsetSpace
from recombine.studies.base import Effect, Study, Tables, ascend, claims_of
from recombine.studies.reduce import at, pooled
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure


_claim = claims_of("productivity")


CLAIMS = (
    _claim(
        "fits",
        "The widest network fits its training tasks (r2_in).",
        "above",
        0.8,
        role="precondition",
    ),
    _claim(
        "recombines",
        "It solves held-out combinations of the largest trained number of parts (R2).",
        "above",
        0.5,
        role="precondition",
    ),
    _claim(
        "loses",
        "R2 falls with one part more than any training task had (held-out combinations of K parts minus those of K + 1).",
        "greater",
        0.05,
        primary=True,
        needs=("fits", "recombines"),
    ),
    _claim(
        "loses-more",
        "It falls again with the next part (K + 1 minus K + 2).",
        "greater",
        0.05,
        needs=("fits", "recombines"),
    ),
    _claim(
        "still-informed",
        "With K + 1 parts the network does better than the mean of each task (R2).",
        "above",
        0.0,
        needs=("fits",),
    ),
    _claim(
        "width-closes-the-gap",
        "The fall from K to K + 1 is smaller in the widest network than in the narrowest.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "structure-closes-the-gap",
        "The fall is smaller in the hypernetwork, whose form is the teacher's, than in the widest plain network.",
        "greater",
        0.05,
        needs=("fits",),
    ),
    _claim(
        "control-is-learned",
        "The network can learn the control (r2_in).",
        "above",
        0.3,
        role="precondition",
    ),
    _claim(
        "control-stays-at-zero",
        "On independent random functions predictions for K + 1 parts have nothing to do with the truth (correlation).",
        "equivalent",
        0.05,
        role="control",
        needs=("control-is-learned",),
    ),
)
"""Stated before any run, and versioned with this file."""


class Productivity(Study):
    """Trained on combinations of up to K parts, tested on K, K + 1 and K + 2, at several widths."""

    kind: Literal["productivity"] = "productivity"
    question: ClassVar[str] = (
        "Can a network that was trained with up to K active parts handle K + 1 and K + 2 at once?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {"recipe": {"kind": "fast", "steps": 100}},
            "modules": 8,
            "trained": 2,
            "number": 25,
            "control_number": 12,
            "widths": (16, 64),
            "depth": 2,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {"recipe": "paper", "every": 100},
            "modules": 16,
            "number": 522,
            "widths": (128, 512, 1024),
            "depth": 4,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "model", "width")

    base: RunConfig = RunConfig()
    """What all runs share; space, support and model are set by the sweep."""
    modules: PositiveInt = 12
    trained: PositiveInt = 3
    """K: the most parts of a training combination."""
    more: PositiveInt = 2
    """So many parts more are tested."""
    number: PositiveInt = 220
    """Training combinations."""
    control_number: PositiveInt = 40
    """Training combinations of the control: few enough to be memorised."""
    widths: tuple[PositiveInt, ...] = (32, 64, 128)
    depth: PositiveInt = 3
    structured: field("models", Model) | None = Hypernetwork()  # type: ignore[valid-type]
    """A model with the teacher's form, beside the plain ones."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which the same must fail."""

    @model_validator(mode="after")
    def _two_widths(self) -> Self:
        ascend(self, "widths")
        return self

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        space = SubsetSpace(modules=self.modules, max_active=self.trained + self.more)
        plain: list[tuple[Model, Family, int]] = [
            (MLP(width=width, depth=self.depth), self.base.family, self.number) for width in self.widths
        ]
        others = [(plain[-1][0], self.control, self.control_number)]
        if self.structured is not None:
            others.append((self.structured, self.base.family, self.number))
        found = []
        for model, family, number in plain + others:
            support = Random(number=number, most_active=self.trained)
            labels = {
                "family": family.kind,
                "model": model.kind,
                "width": model.width if isinstance(model, MLP) else 0,
            }
            for seed in self.seeds:
                config = self.run(self.base, seed, space=space, support=support, model=model, family=family)
                found.append((config, labels | {"replicate": seed}))
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=1024, draws=2)]

    def by_parts(self, tables: Tables) -> pd.DataFrame:
        """R2 and correlation of held-out combinations by their number of parts, a row a run."""
        frame = tables.combinations
        if frame.empty:
            return frame
        held_out = frame[frame["region"].isin(["held_out", "validation"])]
        return pooled(held_out, ["run", "replicate", "family", "model", "width", "parts"])

    def effects(self, tables: Tables) -> list[Effect]:
        by_parts = self.by_parts(tables)
        most = self.trained

        def score(parts: int, name: str = "r2", **labels: Any) -> Float[np.ndarray, " replicate"]:
            if by_parts.empty:
                return np.full(len(self.seeds), np.nan)
            return at(by_parts, name, self.seeds, parts=parts, **labels)

        main, control = self.base.family.kind, self.control.kind
        wide: dict[str, Any] = {"family": main, "model": "mlp", "width": self.widths[-1]}
        narrow: dict[str, Any] = wide | {"width": self.widths[0]}
        fall = score(most, **wide) - score(most + 1, **wide)
        values = {
            "fits": at(tables.runs, "r2_in", self.seeds, **wide),
            "recombines": score(most, **wide),
            "loses": fall,
            "loses-more": score(most + 1, **wide) - score(most + 2, **wide),
            "still-informed": score(most + 1, **wide),
            "width-closes-the-gap": score(most, **narrow) - score(most + 1, **narrow) - fall,
            "control-is-learned": at(tables.runs, "r2_in", self.seeds, family=control),
            "control-stays-at-zero": score(most + 1, "correlation", family=control),
        }
        if self.structured is not None:
            other = {"family": main, "model": self.structured.kind, "width": 0}
            values["structure-closes-the-gap"] = fall - (score(most, **other) - score(most + 1, **other))
        return [Effect(claim, values[claim.name]) for claim in CLAIMS if claim.name in values]

    def overview(self, tables: Tables) -> pd.DataFrame:
        """Means over replicates by number of parts."""
        by_parts = self.by_parts(tables)
        if by_parts.empty:
            return by_parts
        ordered = by_parts.sort_values("parts", kind="stable")
        grouped = ordered.groupby(["family", "model", "width", "parts"])
        frame = grouped[["r2", "correlation"]].mean()
        frame.insert(0, "n", grouped["r2"].count())
        return frame.reset_index()

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.productivity_figures import figures

        return figures(self, tables)
