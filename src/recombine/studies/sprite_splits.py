"""Does a network that sees images recombine their factors, and does it go beyond their range?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, claim, control, precondition
from recombine.design.column import Column, average, lowest, statistic
from recombine.families import Family, LookupSprites, Sprites
from recombine.families.scenes.rendering import SHAPES
from recombine.families.sprites import FACTORS
from recombine.models import MLP, Convnet, Model
from recombine.probes import Measurement, Refit, Scores
from recombine.probes.scores import MAP_LIMIT
from recombine.recipes import Fast
from recombine.spaces import ProductSpace
from recombine.studies.paired_supports import score_on
from recombine.studies.shapes import fits, other_family
from recombine.supports import MissingBlock, Random, SupportKind
from recombine.training.config import RunConfig

NETWORKS = {"convnet": "convolution net", "mlp": "MLP"}
"""The networks, by the names of the study's fields."""

SPLITS = {
    "random": "held out at random",
    "element": "recombination to element",
    "reach": "recombination to range",
    "extrapolation": "extrapolation",
}
"""The splits, by the names of the study's fields. After the first, whole blocks are held out, smallest block first."""

SPACE: dict[str, Any] = {"shape": SHAPES[:4], "size": 4, "column": 8, "row": 8}

READOUTS = {
    "success_held_out": "the network",
    "refit_success": "new readout",
    "refit_success_untrained": "new readout, untrained",
}
"""What reads the deepest layer, by the columns of runs."""


def _block(**counts: int) -> MissingBlock:
    """One shape, where it is named, and ranges of the other factors."""
    shapes = {"shape": counts.pop("shape")} if "shape" in counts else {}
    return MissingBlock(values=shapes, ranges=counts)  # type: ignore[arg-type]


class SpriteSplits(Study):
    """Does a network that sees images recombine their factors, and does it go beyond their range?

    A convolution net and an MLP name the shape, size, column and row in an image, on the classic splits. Held out are:
    combinations at random; one shape in one corner at some sizes (to element); one shape in half of the columns (to
    range); half of the columns (extrapolation). Within a replicate the blocks are nested, so splits can be compared on the
    same combinations.
    """

    kind: Literal["sprite-splits"] = "sprite-splits"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "sprites",
                "space": {"kind": "product", "factors": SPACE | {"size": 2, "column": 4, "row": 4}},
                "recipe": {"kind": "fast", "tasks": 32, "samples": 1, "steps": 40},
                "eval_every": 40,
                "validation_tasks": 16,
            },
            "convnet": {"kind": "convnet", "width": 2, "levels": 2, "hidden": 16},
            "mlp": {"kind": "mlp", "width": 32, "depth": 1},
            "element": _block(shape=1, size=1, column=2, row=2),
            "reach": _block(shape=1, column=2),
            "extrapolation": _block(column=2),
            "control_support": {"kind": "random", "number": 32, "reserve": 32},
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "sprites", "pixels": 32},
                "space": {"kind": "product", "factors": {"shape": SHAPES, "size": 4, "column": 12, "row": 12}},
                "recipe": {"kind": "fast", "tasks": 128, "samples": 1, "steps": 4000},
                "eval_every": 200,
            },
            "control": {"kind": "lookup-sprites", "pixels": 32},
            "convnet": {"kind": "convnet", "width": 32, "levels": 4, "hidden": 256},
            "mlp": {"kind": "mlp", "width": 1024, "depth": 4},
            "element": _block(shape=1, size=2, column=3, row=3),
            "reach": _block(shape=1, column=6),
            "extrapolation": _block(column=6),
        },
    }
    shown: ClassVar[tuple[str, ...]] = (
        "r2_in",
        "r2_held_out",
        *(f"r2_{factor}_held_out" for factor in FACTORS),
        *READOUTS,
    )

    base: RunConfig = RunConfig(
        family=Sprites(),
        space=ProductSpace(factors=SPACE),  # type: ignore[arg-type]
        recipe=Fast(tasks=64, samples=1, steps=400),
        eval_every=100,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; the arms set model, family and support."""
    convnet: field("models", Model) = Convnet()  # type: ignore[valid-type]
    mlp: field("models", Model) = MLP(width=256, depth=2)  # type: ignore[valid-type]
    random: field("supports", SupportKind) = Random(held_out=0.125)  # type: ignore[valid-type]
    """The split in distribution, to which the others are compared."""
    element: field("supports", SupportKind) = _block(shape=1, size=2, column=2, row=2)  # type: ignore[valid-type]
    """Recombination to element."""
    reach: field("supports", SupportKind) = _block(shape=1, column=4)  # type: ignore[valid-type]
    """Recombination to range."""
    extrapolation: field("supports", SupportKind) = _block(column=4)  # type: ignore[valid-type]
    control: field("families", Family) = LookupSprites()  # type: ignore[valid-type]
    """The family on which every network must fail."""
    control_support: field("supports", SupportKind) = Random(number=128, reserve=128)  # type: ignore[valid-type]
    """The training combinations of the control: few enough to be memorised."""

    def check(self) -> None:
        size = self.base.space.size
        if size > MAP_LIMIT:
            raise ValueError(
                f"base.space has {size} combinations; at most {MAP_LIMIT} can all be scored, as the comparison needs"
            )
        other_family(self)

    def arms(self) -> dict[str, Arm]:
        networks = {network: {"model": getattr(self, network)} for network in NETWORKS}
        splits = {split: {"support": getattr(self, split)} for split in SPLITS}
        main = Arm(self.base, split=splits, network=networks)
        lookup = main.replace(family=self.control, split=None, support=self.control_support)
        return {"main": main, "lookup": lookup}

    def measurements(self) -> list[Measurement]:
        # All combinations of the space, so that the random split can be scored on any block.
        return [Scores(combinations=MAP_LIMIT, draws=1, samples=4), Refit(combinations=128, draws=2)]

    def claims(self, main: Arm, lookup: Arm) -> Claims:
        hard = [split for split in SPLITS if split != "random"]
        needs = {network: (f"{network}-fits", f"{network}-in-distribution") for network in NETWORKS}
        both = [need for network in NETWORKS for need in needs[network]]

        def loss(metric: str, network: str, split: str, on: str | None = None) -> Column:
            """How much lower a metric is than with combinations held out at random, on the same combinations."""
            where = {"of": network, "on": on or split, "family": self.base.family, "metric": metric}
            return statistic(score_on, main, split="random", **where) - statistic(score_on, main, split=split, **where)

        def others(network: str, split: str, without: str) -> Column:
            return average(*(loss(f"r2_{factor}", network, split) for factor in FACTORS if factor != without))

        for network, words in NETWORKS.items():
            text = f"The {words} fits what it is trained on in every split (lowest r2_in)."
            yield fits(main["r2_in"].at(network=network).lowest(), text, 0.9, name=f"{network}-fits")
            in_distribution = main["r2_held_out"].at(network=network, split="random")
            text = f"The {words} reads combinations that were held out at random (R2)."
            yield precondition(f"{network}-in-distribution", in_distribution.above(0.8), text)
        yield claim(
            "extrapolation-fails",
            lowest(*(loss("r2_column", network, "extrapolation") for network in NETWORKS)).greater(0.2),
            "No network finds columns beyond the trained range: R2 of the column is lower there than for the same images "
            "with combinations held out at random (the smaller loss of the two networks).",
            primary=True,
            needs=both,
        )
        for network, words in NETWORKS.items():
            on_element = {split: loss("r2", network, split, "element") for split in hard}
            beyond = {name: main[name].at(network=network, split="extrapolation") for name in READOUTS}
            for name, test, text in (
                (
                    "element-is-easy",
                    on_element["element"].below(0.05),
                    f"Recombination to element costs the {words} nothing: R2 on the block left out is no lower than for the "
                    "same images with combinations held out at random.",
                ),
                (
                    "range-is-harder",
                    (on_element["reach"] - on_element["element"]).greater(0.05),
                    f"Recombination to range is harder for the {words} than recombination to element (loss of R2 on the same "
                    "combinations).",
                ),
                (
                    "extrapolation-is-hardest",
                    (on_element["extrapolation"] - on_element["reach"]).greater(0.05),
                    f"Extrapolation is harder for the {words} than recombination to range (loss of R2 on the same "
                    "combinations).",
                ),
                (
                    "range-loses-the-shape",
                    (loss("r2_shape", network, "reach") - others(network, "reach", "shape")).greater(0.2),
                    f"What the {words} gets wrong in recombination to range is the shape: R2 of the shape falls by more than "
                    "that of the other factors (mean).",
                ),
                (
                    "extrapolation-spares-the-rest",
                    others(network, "extrapolation", "column").below(0.1),
                    f"In extrapolation the {words} loses only the factor beyond its range: R2 of the others (mean) falls by "
                    "less than this.",
                ),
                (
                    "knows-more-than-it-says",
                    (beyond["refit_success"] - beyond["success_held_out"]).greater(0.05),
                    f"In extrapolation a new linear readout of the deepest layer of the {words}, fitted on other combinations "
                    "beyond the range, gets more images completely right than the network (share of images with every factor "
                    "right).",
                ),
                (
                    "learned-what-it-does-not-say",
                    (beyond["refit_success"] - beyond["refit_success_untrained"]).greater(0.05),
                    f"The same readout of the {words} gets more images completely right than one of the untrained network.",
                ),
            ):
                yield claim(f"{network}-{name}", test, text, needs=needs[network])
        for split in hard:
            held_out = main["r2_held_out"].at(split=split)
            yield claim(
                f"convolution-helps-{split}",
                (held_out.at(network="convnet") - held_out.at(network="mlp")).greater(0.05),
                f"R2 of the convolution net is higher than that of the MLP ({SPLITS[split]}).",
                needs=both,
            )
        for network, words in NETWORKS.items():
            learned, fails = lookup["r2_in"].at(network=network), lookup["r2_held_out"].at(network=network)
            text = f"The {words} can learn the control: r2_in where the labels of each combination were drawn independently."
            yield precondition(f"control-is-learned-by-{network}", learned.above(0.3), text)
            text = f"Where the labels of each combination were drawn independently, the {words} knows nothing of others (R2)."
            needed = f"control-is-learned-by-{network}"
            yield control(f"control-fails-{network}", fails.below(0.05), text, needs=needed)

    def figures(self, main: Arm) -> Figures:
        from recombine.figures.study import dots, matrix

        factors = {f"r2_{factor}_held_out": factor for factor in FACTORS}
        runs = main.frame.reindex(columns=["replicate", "network", "split", "r2_held_out", *factors, *READOUTS])
        wide = runs.pivot_table(index=["split", "replicate"], columns="network", values="r2_held_out")
        yield dots(
            wide.reindex(columns=list(NETWORKS)).reset_index(),
            category="split",
            measures=NETWORKS,
            labels=SPLITS,
            name="score_by_split",
            title="Which splits can be recombined?",
            caption="R² (mean over shape, size, column and row) on images of combinations that were never trained, by what was "
            "held out: combinations at random, one shape in one corner, one shape in half of the columns, half of the columns "
            "for all shapes. 1 is perfect; predicting the mean of all combinations gives 0 on average.",
            ceiling=1.0,
            x_title="held-out R²",
        )
        yield matrix(
            runs.melt(["replicate", "network", "split"], list(factors), "factor", "r2"),
            row="split",
            column="factor",
            value="r2",
            facet="network",
            labels={"row": SPLITS, "column": factors, "facet": NETWORKS},
            name="score_by_factor",
            title="Which factor is lost?",
            caption="R² of each factor on held-out combinations, relative to the variance over the whole space, so splits "
            "are comparable. Recombination to range leaves one shape out of half of the columns; extrapolation leaves half of "
            "the columns out.",
            domain=(0.0, 1.0),
            value_title="R²",
        )
        yield dots(
            runs[runs["split"] == "extrapolation"],
            category="network",
            measures=READOUTS,
            labels=NETWORKS,
            name="beyond_the_range",
            title="Does it know what it cannot say?",
            caption="Extrapolation: the share of images that are completely right in columns that were never trained. The network "
            "itself; a new linear readout of its deepest layer, fitted on other combinations with these columns; the same for "
            "the network before training.",
            floor=0.0,
            ceiling=1.0,
            x_title="share of images with every factor right",
        )
