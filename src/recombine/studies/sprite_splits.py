"""Does a network that sees images recombine their factors, and does it go beyond their range?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import model_validator

from recombine.component import field
from recombine.families.base import Family
from recombine.families.lookup_sprites import LookupSprites
from recombine.families.scene_rendering import SHAPES
from recombine.families.sprites import FACTORS, Sprites
from recombine.models.base import Model
from recombine.models.convnet import Convnet
from recombine.models.mlp import MLP
from recombine.probes.base import Measurement
from recombine.probes.refit import Refit
from recombine.probes.scores import MAP_LIMIT, Scores
from recombine.recipes.fast import Fast
from recombine.spaces.product import ProductSpace
from recombine.studies.base import Effect, Study, Tables, claims_of
from recombine.studies.reduce import at
from recombine.supports.base import SupportKind
from recombine.supports.missing_block import MissingBlock
from recombine.supports.random import Random
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

NETWORKS = {"convnet": "convolution net", "mlp": "MLP"}
"""The names of the study's fields, and those in sentences."""

HARD = ("element", "reach", "extrapolation")
"""The splits in which whole blocks of combinations are held out, smallest block first, by the names of the study's fields."""

SAID = {
    "random": "held out at random",
    "element": "recombination to element",
    "reach": "recombination to range",
    "extrapolation": "extrapolation",
}
"""The splits in words."""

BEYOND = "column"
"""The factor of which a range is left out."""

_claim = claims_of("sprite-splits")


def _of(network: str) -> dict[str, Any]:
    return {"needs": (f"{network}-fits", f"{network}-in-distribution")}


BOTH = {"needs": tuple(need for network in NETWORKS for need in _of(network)["needs"])}

CLAIMS = (
    *(
        _claim(
            f"{network}-fits",
            f"The {said} fits what it is trained on in every split (r2_in, the lowest).",
            "above",
            0.9,
            role="precondition",
        )
        for network, said in NETWORKS.items()
    ),
    *(
        _claim(
            f"{network}-in-distribution",
            f"The {said} reads combinations that were held out at random (R2).",
            "above",
            0.8,
            role="precondition",
        )
        for network, said in NETWORKS.items()
    ),
    _claim(
        "extrapolation-fails",
        "No network finds columns beyond the trained range: R2 of the column is lower there than for the same images with "
        "combinations held out at random (the smaller loss of the two networks).",
        "greater",
        0.2,
        primary=True,
        **BOTH,
    ),
    *(
        claim
        for network, said in NETWORKS.items()
        for claim in (
            _claim(
                f"{network}-element-is-easy",
                f"Recombination to element costs the {said} nothing: R2 on the block left out is no lower than for the same "
                "images with combinations held out at random.",
                "below",
                0.05,
                **_of(network),
            ),
            _claim(
                f"{network}-range-is-harder",
                f"Recombination to range is harder for the {said} than recombination to element (loss of R2 on the same "
                "combinations).",
                "greater",
                0.05,
                **_of(network),
            ),
            _claim(
                f"{network}-extrapolation-is-hardest",
                f"Extrapolation is harder for the {said} than recombination to range (loss of R2 on the same combinations).",
                "greater",
                0.05,
                **_of(network),
            ),
            _claim(
                f"{network}-range-loses-the-shape",
                f"What the {said} gets wrong in recombination to range is the shape: R2 of the shape falls by more than that "
                "of the other factors (mean).",
                "greater",
                0.2,
                **_of(network),
            ),
            _claim(
                f"{network}-extrapolation-spares-the-rest",
                f"In extrapolation the {said} loses the factor beyond its range alone: R2 of the others (mean) falls by less "
                "than this.",
                "below",
                0.1,
                **_of(network),
            ),
            _claim(
                f"{network}-knows-more-than-it-says",
                f"In extrapolation a new linear readout of the deepest layer of the {said}, fitted on other combinations beyond "
                "the range, gets more images wholly right than the network (share of images with every factor right).",
                "greater",
                0.05,
                **_of(network),
            ),
            _claim(
                f"{network}-learned-what-it-does-not-say",
                f"The same readout of the {said} gets more images wholly right than one of the untrained network.",
                "greater",
                0.05,
                **_of(network),
            ),
        )
    ),
    *(
        _claim(
            f"convolution-helps-{split}",
            f"R2 of the convolution net is higher than that of the MLP ({SAID[split]}).",
            "greater",
            0.05,
            **BOTH,
        )
        for split in HARD
    ),
    *(
        claim
        for network, said in NETWORKS.items()
        for claim in (
            _claim(
                f"control-is-learned-by-{network}",
                f"The {said} can learn the control: r2_in where what is said of each combination was drawn on its own.",
                "above",
                0.3,
                role="precondition",
            ),
            _claim(
                f"control-fails-{network}",
                f"Where what is said of each combination was drawn on its own, the {said} knows nothing of others (R2).",
                "below",
                0.05,
                role="control",
                needs=(f"control-is-learned-by-{network}",),
            ),
        )
    ),
)
"""Stated before any run that decides, and versioned with this file."""

SPACE: dict[str, Any] = {"shape": SHAPES[:4], "size": 4, "column": 8, "row": 8}


def _block(**counts: int) -> MissingBlock:
    """One shape, where it is named, and ranges of the other factors."""
    shapes = {"shape": counts.pop("shape")} if "shape" in counts else {}
    return MissingBlock(values=shapes, ranges=counts)  # type: ignore[arg-type]


class SpriteSplits(Study):
    """A convolution net and an MLP name shape, size, column and row of what an image shows, on the classic splits.

    Held out are: combinations at random; one shape in one corner at some sizes (to element); one shape in half of the
    columns (to range); half of the columns (extrapolation). Within a replicate the blocks lie within each other, so that
    splits can be compared on the same combinations.
    """

    kind: Literal["sprite-splits"] = "sprite-splits"
    question: ClassVar[str] = (
        "Does a network that sees images recombine their factors, and does it go beyond their range?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "sprites",
                "space": {"kind": "product", "factors": SPACE | {"size": 2, "column": 4, "row": 4}},
                "recipe": {"kind": "fast", "tasks": 32, "samples": 1, "steps": 40},
                "every": 40,
                "validation_tasks": 16,
            },
            "convnet": {"kind": "convnet", "width": 2, "levels": 2, "hidden": 16},
            "mlp": {"kind": "mlp", "width": 32, "depth": 1},
            "element": {
                "kind": "missing-block",
                "values": {"shape": 1},
                "ranges": {"size": 1, "column": 2, "row": 2},
            },
            "reach": {"kind": "missing-block", "values": {"shape": 1}, "ranges": {"column": 2}},
            "extrapolation": {"kind": "missing-block", "ranges": {"column": 2}},
            "control_support": {"kind": "random", "number": 32, "reserve": 32},
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "sprites", "pixels": 32},
                "space": {
                    "kind": "product",
                    "factors": {"shape": SHAPES, "size": 4, "column": 12, "row": 12},
                },
                "recipe": {"kind": "fast", "tasks": 128, "samples": 1, "steps": 4000},
                "every": 200,
            },
            "control": {"kind": "lookup-sprites", "pixels": 32},
            "convnet": {"kind": "convnet", "width": 32, "levels": 4, "hidden": 256},
            "mlp": {"kind": "mlp", "width": 1024, "depth": 4},
            "element": {
                "kind": "missing-block",
                "values": {"shape": 1},
                "ranges": {"size": 2, "column": 3, "row": 3},
            },
            "reach": {"kind": "missing-block", "values": {"shape": 1}, "ranges": {"column": 6}},
            "extrapolation": {"kind": "missing-block", "ranges": {"column": 6}},
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("family", "network", "split")
    shown: ClassVar[tuple[str, ...]] = (
        "r2_in",
        "r2_held_out",
        *(f"r2_{factor}_held_out" for factor in FACTORS),
        "success_held_out",
        "refit_success",
        "refit_success_untrained",
    )

    base: RunConfig = RunConfig(
        family=Sprites(),
        space=ProductSpace(factors=SPACE),  # type: ignore[arg-type]
        recipe=Fast(tasks=64, samples=1, steps=400),
        every=100,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; model, family and support are set by the sweep."""
    convnet: field("models", Model) = Convnet()  # type: ignore[valid-type]
    mlp: field("models", Model) = MLP(width=256, depth=2)  # type: ignore[valid-type]
    random: field("supports", SupportKind) = Random(held_out=0.125)  # type: ignore[valid-type]
    """The split in distribution, on which the others are measured."""
    element: field("supports", SupportKind) = _block(shape=1, size=2, column=2, row=2)  # type: ignore[valid-type]
    """Recombination to element."""
    reach: field("supports", SupportKind) = _block(shape=1, column=4)  # type: ignore[valid-type]
    """Recombination to range."""
    extrapolation: field("supports", SupportKind) = _block(column=4)  # type: ignore[valid-type]
    control: field("families", Family) = LookupSprites()  # type: ignore[valid-type]
    """The family on which every network must fail."""
    control_support: field("supports", SupportKind) = Random(number=128, reserve=128)  # type: ignore[valid-type]
    """What the control is trained on: few enough combinations to be memorised."""

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        size = self.base.space.size
        if size > MAP_LIMIT:
            raise ValueError(
                f"base.space has {size} combinations; at most {MAP_LIMIT} can all be scored, as the comparison needs"
            )
        if self.control.kind == self.base.family.kind:
            raise ValueError(
                f"control={self.control.kind}: the control must be another family than base.family"
            )
        return self

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        cells = [(self.base.family, split, getattr(self, split)) for split in SAID]
        found = []
        for family, split, support in [*cells, (self.control, "random", self.control_support)]:
            for network in NETWORKS:
                changes = {"family": family, "model": getattr(self, network), "support": support}
                labels = {"family": family.kind, "network": network, "split": split}
                found += [
                    (self.run(self.base, seed, **changes), labels | {"replicate": seed})
                    for seed in self.seeds
                ]
        return found

    def measurements(self) -> list[Measurement]:
        # All combinations of the space, so that the random split can be asked about any block.
        return [Scores(combinations=MAP_LIMIT, draws=1, samples=4), Refit(combinations=128, draws=2)]

    def score(
        self, tables: Tables, name: str, network: str, split: str, on: str
    ) -> Float[np.ndarray, " replicate"]:
        """A metric of a network trained on one split, on the combinations that another split holds out (test side)."""
        columns = ["replicate", "combination", "region", "family", "network", "split", "images"]
        frame = tables.combinations
        if frame.empty or not {*columns} <= set(frame.columns):
            return np.full(len(self.seeds), np.nan)
        own = frame[(frame["family"] == self.base.family.kind) & (frame["network"] == network)]
        block = own[(own["split"] == on) & (own["region"] == "held_out")][["replicate", "combination"]]
        chosen = own[own["split"] == split].merge(block, on=["replicate", "combination"])
        # A replicate in which some of them were not scored would be compared on others.
        whole = chosen.groupby("replicate").size().eq(block.groupby("replicate").size())
        pooled = self.base.family.pooled(chosen, ["replicate"]).set_index("replicate")[name]
        return pooled.where(whole).reindex(list(self.seeds)).to_numpy(dtype=float)

    def loss(
        self, tables: Tables, name: str, network: str, split: str, on: str | None = None
    ) -> Float[np.ndarray, " replicate"]:
        """How much lower a metric is than with combinations held out at random, on the same combinations."""
        on = on or split
        return self.score(tables, name, network, "random", on) - self.score(tables, name, network, split, on)

    def effects(self, tables: Tables) -> list[Effect]:
        main = self.base.family.kind

        def run(name: str, network: str, split: str, family: str = main) -> Float[np.ndarray, " replicate"]:
            return at(tables.runs, name, self.seeds, family=family, network=network, split=split)

        def others(network: str, split: str, without: str) -> Float[np.ndarray, " replicate"]:
            rest = [factor for factor in FACTORS if factor != without]
            return np.mean([self.loss(tables, f"r2_{factor}", network, split) for factor in rest], axis=0)

        values: dict[str, Float[np.ndarray, " replicate"]] = {}
        for network in NETWORKS:
            common = {split: self.loss(tables, "r2", network, split, "element") for split in HARD}
            values |= {
                f"{network}-fits": np.min([run("r2_in", network, split) for split in SAID], axis=0),
                f"{network}-in-distribution": run("r2_held_out", network, "random"),
                f"{network}-element-is-easy": common["element"],
                f"{network}-range-is-harder": common["reach"] - common["element"],
                f"{network}-extrapolation-is-hardest": common["extrapolation"] - common["reach"],
                f"{network}-range-loses-the-shape": self.loss(tables, "r2_shape", network, "reach")
                - others(network, "reach", "shape"),
                f"{network}-extrapolation-spares-the-rest": others(network, "extrapolation", BEYOND),
                f"{network}-knows-more-than-it-says": run("refit_success", network, "extrapolation")
                - run("success_held_out", network, "extrapolation"),
                f"{network}-learned-what-it-does-not-say": run("refit_success", network, "extrapolation")
                - run("refit_success_untrained", network, "extrapolation"),
                f"control-is-learned-by-{network}": run("r2_in", network, "random", self.control.kind),
                f"control-fails-{network}": run("r2_held_out", network, "random", self.control.kind),
            }
        beyond = [self.loss(tables, f"r2_{BEYOND}", network, "extrapolation") for network in NETWORKS]
        values["extrapolation-fails"] = np.min(beyond, axis=0)
        for split in HARD:
            values[f"convolution-helps-{split}"] = run("r2_held_out", "convnet", split) - run(
                "r2_held_out", "mlp", split
            )
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.sprite_splits_figures import figures

        return figures(self, tables)

    def main_runs(self, tables: Tables) -> pd.DataFrame:
        """The runs without the control's."""
        return tables.runs[tables.runs["family"] == self.base.family.kind]
