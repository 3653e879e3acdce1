"""With as many weights, does a deep and thin network compose what a wide and shallow one cannot?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.errors import BadInput
from recombine.families import Chains, LookupChains, Nested
from recombine.models import MLP, Decoder
from recombine.probes import Compute, Scores
from recombine.recipes import Fast
from recombine.spaces import ListSpace
from recombine.studies.routes.steps import MOST, by_steps, scored
from recombine.studies.shapes import SMOKE_SPACE, sequence_run, skill
from recombine.supports import Random, ShortLists
from recombine.training.config import RunConfig

Shape = tuple[PositiveInt, PositiveInt, PositiveFloat, PositiveInt]
"""Layers, width, learning rate, and the steps with which training costs as many operations as that of the widest network."""

LEAST = 0.005
"""Smaller errors count as this one: an accuracy over some 200 answers cannot tell them apart."""
TASKS = {
    "chains": "chains of functions",
    "nested": "nested expressions",
    "last": "control: one step, same prompts",
    "memory": "control: random answers",
}
"""The arms that have several shapes, in words."""


class DepthOrWidth(Study):
    """With as many weights, does a deep and thin network compose what a wide and shallow one cannot?

    Decoders from wide and shallow to deep and thin have equally many weights without embeddings (within 2 %) and answer chains of
    one to five random functions, and nested expressions. The controls have the same prompts and no steps that need each other:
    only the last function counts, or each answer is random. All else is held fixed but the learning rate, which was tuned for
    each shape on other seeds. The comparison is repeated at equal operations of training, with four times the training for the
    wide network, with weights shared between neighbouring layers, and for MLPs on a hyperteacher.
    """

    kind: Literal["depth-or-width"] = "depth-or-width"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run("chains", tasks=16, steps=8, eval_every=8, validation_tasks=4),
            "shapes": ((1, 16, 0.025, 8), (2, 12, 0.025, 8), (3, 8, 0.025, 8)),
            "deep": 2,
            "mlp": {
                "space": SMOKE_SPACE,
                "support": {"kind": "random", "number": 60},
                "recipe": {"kind": "fast", "steps": 20},
            },
            "mlp_shapes": ((1, 40, 0.025), (2, 16, 0.025)),
            "steps_last": 8,
            "steps_nested": 8,
            "combinations": 64,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 6100},
        "paper": {
            "base": sequence_run("chains", tasks=256, steps=20_000, eval_every=1000, validation_tasks=512),
            "values": 5,
            "shapes": (
                (2, 192, 0.0125, 20_000),
                (8, 96, 0.025, 14_509),
                (18, 64, 0.025, 13_634),
                (32, 48, 0.025, 13_221),
            ),
            "steps_last": 5000,
            "steps_nested": 80_000,
            "replicates": 12,
        },
    }
    shown = "accuracy_in", "accuracy_held_out", "weights", "training_flops"

    base: RunConfig = RunConfig.model_validate(
        sequence_run("chains", tasks=64, steps=1500, eval_every=300, validation_tasks=128)
    )
    """What the decoders share; the arms set task and shape."""
    values: int = Field(default=4, ge=4)
    """The values of chains and expressions; there are as many functions."""
    shapes: tuple[Shape, ...] = (
        (2, 32, 0.0125, 1500),
        (5, 20, 0.025, 1136),
        (8, 16, 0.025, 1016),
        (14, 12, 0.025, 940),
    )
    """Layers, width, learning rate and steps at equal compute of each decoder, from wide and shallow to deep and thin.

    Each rate had the highest held-out accuracy on chains with seed 0 among .00625, .0125 and .025 (two layers) or .0125 and
    .025 (the others); .05 and .1 were worse for two to eight layers in an earlier round with more training chains.
    """
    deep: PositiveInt = 8
    """The layers of the deep network that most claims compare with the widest one; neither the first nor the last shape."""
    heads: PositiveInt = 2
    """Attention heads of every layer."""
    longer: PositiveInt = 4
    """How many times as many steps the widest network gets in the arm `longer`."""
    steps_last: PositiveInt = 500
    """Steps on the control in which only the last function counts: it is learned sooner."""
    steps_nested: PositiveInt = 6000
    """Steps on nested expressions: with 3,000, the deep network has .80 of its training expressions right (seed 0)."""
    number: PositiveInt = 1000
    """Training chains of each length; fewer where there are fewer."""
    reserve: PositiveInt = 400
    """Held-out chains of each length; fewer where there are fewer."""
    mlp: RunConfig = RunConfig(support=Random(number=160, reserve=200), recipe=Fast(steps=1000))
    """The runs on a hyperteacher."""
    mlp_shapes: tuple[tuple[PositiveInt, PositiveInt, PositiveFloat], ...] = (
        (1, 816, 0.025),
        (2, 176, 0.025),
        (3, 129, 0.025),
        (5, 94, 0.025),
        (9, 67, 0.025),
    )
    """Hidden layers, units and learning rate of each MLP, with equally many weights. For one, three and nine layers .025 had the highest
    held-out R2 after 500 steps with seed 0 among .0125, .025 and .05; the others have the same rate."""
    combinations: PositiveInt = 1024
    """The largest number of chains that are scored in each region."""
    replicates: PositiveInt = 8
    """Independent replicates: functions, training chains, initialisation and order of the data."""

    def check(self) -> None:
        for name in ("shapes", "mlp_shapes"):
            layers = [shape[0] for shape in getattr(self, name)]
            if sorted(set(layers)) != layers or len(layers) < (3 if name == "shapes" else 2):
                raise ValueError(f"{name} must be shapes with rising numbers of layers, got {layers}")
        inner = [layers for layers, *_ in self.shapes[1:-1]]
        if self.deep not in inner:
            raise BadInput(
                f"deep={self.deep} must be the layers of a shape between the widest and the thinnest.",
                fix=f"deep={inner[len(inner) // 2]}, or another of {', '.join(map(str, inner))}",
            )

    @property
    def wide(self) -> int:
        """The layers of the widest network."""
        return self.shapes[0][0]

    @property
    def thin(self) -> int:
        """The layers of the thinnest network."""
        return self.shapes[-1][0]

    def arms(self) -> dict[str, Arm]:
        chains = ListSpace(low=0, high=self.values - 1, longest=MOST + 2)
        below = self.values // 2
        expressions = ListSpace(low=-below, high=self.values - below - 1, longest=MOST + 2)

        def arm(family: Any, *layers: int, lists: ListSpace = chains, equal_compute: bool = False, **more: Any) -> Arm:
            return Arm(
                self.base,
                cases=[
                    {
                        "layers": own[0],
                        "width": own[1],
                        "learning_rate": own[2],
                        **({"steps": own[3]} if equal_compute else {}),
                    }
                    for own in self.shapes
                    if own[0] in layers
                ],
                **{"family": family.replace(lists=lists), "space": lists, "model": Decoder(heads=self.heads)} | more,
                support=ShortLists(longest=MOST + 1, number=self.number, reserve=self.reserve),
            )

        every = [own[0] for own in self.shapes]
        some = [layers for layers in every if layers <= self.deep]
        steps = self.base.recipe.steps
        return {
            "chains": arm(Chains(), *every),
            "nested": arm(Nested(), self.wide, self.deep, lists=expressions, steps=self.steps_nested),
            "last": arm(Chains(rule="last"), *some, steps=self.steps_last),
            "memory": arm(LookupChains(), *some),
            "equal_compute": arm(Chains(), *some, equal_compute=True),
            "longer": arm(Chains(), self.wide, steps=self.longer * steps),
            "shared": arm(Chains(), self.wide, self.deep, repeats=2),
            "hyperteacher": Arm(
                self.mlp,
                model=MLP(),
                cases=[
                    {"depth": depth, "width": width, "learning_rate": rate} for depth, width, rate in self.mlp_shapes
                ],
            ),
        }

    def measurements(self) -> list[Any]:
        # One prompt of a sequence, and enough examples of the hyperteacher for an R2.
        return [Scores(combinations=self.combinations, draws=1, samples=None, map=False), Compute()]

    def claims(self, chains: Arm, hyperteacher: Arm, **arms: Arm) -> Claims:
        composed = {"chains": chains, "nested": arms["nested"]}
        tables = {name: arm.table(by_steps) for name, arm in {**arms, "chains": chains}.items() if name != "memory"}

        def score(name: str, layers: int, column: str = "composed") -> Column:
            """The accuracy on held-out chains of four and five steps, or another column, on several scales."""
            return tables[name][column].at(layers=layers).on_scales(LEAST, "accuracy")

        def gain(name: str, layers: int = self.deep) -> Column:
            """The accuracy of a deeper network minus that of the widest."""
            return score(name, layers) - score(name, self.wide)

        def spread(column: Column) -> Column:
            """Half the distance of the highest and the lowest cell, relative to their middle."""
            return (column.highest() - column.lowest()) / (column.highest() + column.lowest())

        for name, arm in {**composed, "hyperteacher": hyperteacher}.items():
            text = f"All shapes have equally many weights without embeddings ({TASKS.get(name, name)}; half the distance of most and fewest, relative to their middle)."
            yield precondition(f"equal-weights-{name}", spread(arm["weights"]).below(0.02), text)
        for name, arm in composed.items():
            text = f"The deep network answers the chains that it is trained on ({TASKS[name]}; accuracy)."
            yield precondition(f"fits-{name}", arm["accuracy_in"].at(layers=self.deep).above(0.9), text)
        text = "Every shape learns the control with one step: chains of which only the last function counts (accuracy, lowest over shapes)."
        yield precondition("last-is-learned", arms["last"]["accuracy_in"].lowest().above(0.9), text)
        text = (
            "Depth helps where steps need each other, and not where they do not: accuracy on held-out chains of four and five functions, "
            "deep minus wide, minus the same difference where only the last function counts."
        )
        needs = ("equal-weights-chains", "fits-chains", "last-is-learned")
        yield claim(
            "depth-helps-composition", (gain("chains") - gain("last")).greater(), text, primary=True, needs=needs
        )
        text = "So it does for nested expressions (accuracy at four and five levels, deep minus wide, minus the same difference of the control)."
        needs = ("equal-weights-nested", "fits-nested", "last-is-learned")
        yield claim("depth-helps-nesting", (gain("nested") - gain("last")).greater(), text, needs=needs)
        text = "Depth does not help where only the last function counts (accuracy on held-out chains, deep minus wide)."
        plain = tables["last"]["composed"]
        one_step = plain.at(layers=self.deep) - plain.at(layers=self.wide)
        yield control("one-step-needs-no-depth", one_step.equivalent(0.05), text, needs="last-is-learned")
        memory = arms["memory"]["accuracy_in"]
        text = "Depth does not help to remember: as many random answers are remembered (accuracy on trained chains, deep minus wide, upper limit)."
        yield claim(
            "depth-does-not-help-memory", (memory.at(layers=self.deep) - memory.at(layers=self.wide)).below(0.05), text
        )
        text = "Where each answer is random, held-out chains are answered by chance (accuracy minus 1 / n, highest over shapes)."
        guessed = arms["memory"]["accuracy_held_out"].highest() - 1 / self.values
        yield control("random-answers-stay-at-chance", guessed.below(0.1), text)
        text = "The gain grows with the number of steps: deep minus wide at five functions minus that at two (held-out accuracy)."
        grows = [score("chains", self.deep, f"steps_{n}") - score("chains", self.wide, f"steps_{n}") for n in (MOST, 2)]
        yield claim(
            "more-steps-need-more-depth",
            (grows[0] - grows[1]).greater(),
            text,
            needs=("equal-weights-chains", "fits-chains"),
        )
        text = "Too thin hurts: the thinnest network answers fewer held-out chains than the deep one (deep minus thinnest)."
        too_thin = score("chains", self.deep) - score("chains", self.thin)
        yield claim("too-thin-hurts", too_thin.greater(), text, needs=("equal-weights-chains", "fits-chains"))
        text = "The thinnest network is still better than the widest (thinnest minus widest)."
        yield claim("thin-beats-wide", gain("chains", self.thin).greater(), text, needs="equal-weights-chains")
        cost = arms["equal_compute"]["training_flops"]
        text = "At equal compute, all shapes need equally many operations of training (half the distance of most and fewest, relative to their middle)."
        yield precondition("equal-compute", spread(cost).below(0.02), text)
        text = "At equal compute, too, the deep network is better than the wide one (held-out chains of four and five functions)."
        yield claim(
            "depth-helps-at-equal-compute",
            gain("equal_compute").greater(),
            text,
            needs=("equal-compute", "fits-chains"),
        )
        text = f"Training is not what the wide network lacks: the deep one is better than the wide one with {self.longer} times the steps."
        longer = score("chains", self.deep) - score("longer", self.wide)
        yield claim(
            "longer-training-does-not-replace-depth",
            longer.greater(),
            text,
            needs=("equal-weights-chains", "fits-chains"),
        )
        for name, layers in (("wide", self.wide), ("deep", self.deep)):
            text = f"Applying each layer twice in a row, with no more weights, helps the {name} network (shared minus plain; it costs twice the operations)."
            again = score("shared", layers) - score("chains", layers)
            yield claim(f"sharing-helps-{name}", again.greater(), text, needs="equal-weights-chains")
        text = "A step beyond training: the deep network answers more chains of six functions than the wide one."
        beyond = score("chains", self.deep, f"steps_{MOST + 1}") - score("chains", self.wide, f"steps_{MOST + 1}")
        yield claim("depth-helps-beyond-training", beyond.greater(), text, needs="fits-chains")
        held_out, depths = skill(hyperteacher["r2_held_out"]), [own[0] for own in self.mlp_shapes]
        text = "On a hyperteacher every MLP fits its training tasks (R2, lowest over shapes)."
        yield precondition("fits-hyperteacher", hyperteacher["r2_in"].lowest().above(0.8), text)
        needs = ("equal-weights-hyperteacher", "fits-hyperteacher")
        middle = held_out.at(depth=depths[len(depths) // 2])
        text = "On a hyperteacher, too, an MLP of middle depth has a higher held-out R2 than the widest one."
        yield claim("depth-helps-hyperteacher", (middle - held_out.at(depth=depths[0])).greater(), text, needs=needs)
        text = "On a hyperteacher, too thin hurts: held-out R2 of an MLP of middle depth minus that of the thinnest."
        yield claim(
            "too-thin-hurts-hyperteacher", (middle - held_out.at(depth=depths[-1])).greater(), text, needs=needs
        )

    def figures(self, chains: Arm, hyperteacher: Arm, **arms: Arm) -> Figures:
        from recombine.figures.axes import Reference
        from recombine.figures.study import lines

        limits: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0, "y_title": "accuracy, held out"}
        chance = [Reference(1 / self.values, "chance")]
        depth: dict[str, Any] = {"x": "layers", "x_title": "layers, at equally many weights", "log": True}
        widths = ", ".join(f"{layers} x {width}" for layers, width, *_ in self.shapes)
        frames = [
            scored(arm).assign(task=words)
            for name, words in TASKS.items()
            for arm in [{"chains": chains, **arms}[name]]
        ]
        yield lines(
            pd.concat(frames),
            y="composed",
            series="task",
            labels=list(TASKS.values()),
            controls=[words for words in TASKS.values() if words.startswith("control")],
            title="Does depth help where stages are composed?",
            caption=f"Held-out chains of four and five steps, by the shape of the decoder (layers x width: {widths}). In the dashed controls "
            "steps do not need each other.",
            references=chance,
            **depth,
            **limits,
        )
        names = {f"steps_{n}": f"{n} step{'s' if n > 1 else ''}" for n in range(1, MOST + 2)}
        yield lines(
            scored(chains).melt(["replicate", "layers"], list(names), "steps", "accuracy").replace({"steps": names}),
            y="accuracy",
            series="steps",
            labels=list(names.values()),
            name="by_steps",
            title="How many steps do how many layers compose?",
            caption=f"Held-out chains of functions. Chains of up to {MOST} functions are trained, those of {MOST + 1} are not.",
            references=chance,
            **depth,
            **limits,
        )
        routes = {
            "chains": "depth, equal steps",
            "equal_compute": "depth, equal compute",
            "longer": f"wide, {self.longer} times the steps",
            "shared": "each layer twice",
        }
        yield lines(
            pd.concat([scored({"chains": chains, **arms}[name]).assign(route=words) for name, words in routes.items()]),
            x="training_flops",
            x_title="operations of training",
            log=True,
            y="composed",
            series="route",
            labels=list(routes.values()),
            title="What does a unit of compute buy?",
            caption="Held-out chains of four and five functions against the operations of all training steps, as the compiler counts them.",
            references=chance,
            **limits,
        )
        yield lines(
            hyperteacher,
            x="depth",
            y={"r2_in": "trained", "r2_held_out": "held out"},
            title="Does depth help on a hyperteacher?",
            caption="MLPs with equally many weights, by the number of hidden layers.",
            x_title="hidden layers, at equally many weights",
            y_title="R²",
            floor=0.0,
            ceiling=1.0,
        )
