"""Does a larger network recombine better, with the training combinations held fixed?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, claim
from recombine.encodings import Encoding
from recombine.families import Family, Lookup
from recombine.models import MLP
from recombine.probes import Decodability, Scores, Swap
from recombine.studies.encodings import FEW_SHOT, NAMING, SMOKE_FEW_SHOT, Longer, with_steps
from recombine.studies.shapes import SMOKE_SPACE, ascending, control_fails, fits, other_family, skill
from recombine.supports import Random
from recombine.training.config import RunConfig

SHARED = Random(number=320, reserve=376)
"""The support of the largest runs of `data-scaling`, so that both studies share them."""

MEASURES = {
    "r2_held_out": "held-out R²",
    "intrinsic": "decodability in the deepest layer (R²)",
    "efficacy_best": "efficacy of swapping a constituent",
}


class ModelScaling(Study):
    """With the training combinations fixed, do wider and deeper networks recombine better, however the task is given?

    Width and depth at a fixed support, for every encoding; decodability and the swap test beside the score.
    """

    kind: Literal["model-scaling"] = "model-scaling"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "space": SMOKE_SPACE,
                "support": {"kind": "random", "number": 80, "reserve": 60},
                "recipe": {"kind": "fast", "steps": 50},
            },
            "widths": (16, 32),
            "depths": (1, 2),
            "longer": (),
            "control_number": 20,
            "few_shot": SMOKE_FEW_SHOT,
            "few_shot_widths": (16, 32),
            "few_shot_depth": 2,
            "replicates": 2,
        },
        "demo": {"replicates": 6},
        "laptop": {"first_seed": 4000},
        "paper": {
            "longer": (),
            "base": {"support": {"kind": "random", "held_out": 0.25}, "recipe": "paper", "eval_every": 100},
            "widths": (128, 256, 512, 1024, 2048),
            "depths": (2, 4),
            "few_shot": {"encoding": "few-shot", "recipe": "paper", "eval_every": 100},
            "few_shot_widths": (512, 1024, 2048),
            "few_shot_depth": 4,
        },
    }
    shown: ClassVar[tuple[str, ...]] = ("r2_in", "r2_held_out", "intrinsic", "selectivity", "efficacy_best")

    base: RunConfig = RunConfig(support=SHARED)
    """What all runs share; the arms set encoding and model."""
    encodings: tuple[field("encodings", Encoding), ...] = NAMING  # type: ignore[valid-type]
    """The encodings that name the task; the first is the plain one that the general claims are about."""
    widths: tuple[PositiveInt, ...] = (32, 128)
    """Widths, at the largest depth."""
    depths: tuple[PositiveInt, ...] = (1, 3)
    """Depths, at the largest width."""
    longer: Longer = (("tokens", 1000), ("interval-shuffle", 2000))
    """Encodings that take longer to learn, with their steps."""
    few_shot: RunConfig = FEW_SHOT
    """The run in which the task is shown by examples."""
    few_shot_widths: tuple[PositiveInt, ...] = (64, 128, 256)
    """Widths where the task is shown by examples."""
    few_shot_depth: PositiveInt = 3
    """Depth where the task is shown by examples."""
    control: field("families", Family) = Lookup()  # type: ignore[valid-type]
    """The family on which width must not help."""
    control_number: PositiveInt = 40
    """Training combinations of the control: few enough to be memorised."""

    def check(self) -> None:
        other_family(self)
        ascending(self, "widths", "depths", "few_shot_widths")

    def arms(self) -> dict[str, Arm]:
        wide, deep = self.widths[-1], self.depths[-1]
        shapes = [{"width": width, "depth": deep} for width in self.widths[:-1]]
        shapes += [{"width": wide, "depth": depth} for depth in self.depths]
        few = self.base.support.model_copy(update={"number": self.control_number, "held_out": None})
        return {
            "main": Arm(self.base, model=MLP(), encoding=with_steps(self.encodings, self.longer), cases=shapes),
            "few_shot": Arm(self.few_shot, model=MLP(depth=self.few_shot_depth), width=self.few_shot_widths),
            "lookup": Arm(self.base, family=self.control, support=few, model=MLP(depth=deep), width=self.widths),
        }

    def measurements(self) -> list[Any]:
        return [Scores(), Decodability(), Swap()]

    def claims(self, main: Arm, few_shot: Arm, lookup: Arm) -> Claims:
        wide, deep = self.widths[-1], self.depths[-1]
        kinds = main.axes["encoding"]
        plain = kinds[0]
        needs = f"fits-{plain}"

        def with_width(column: Column, kind: str = plain) -> Column:
            """How much a column rises from the narrowest to the widest network."""
            return column.at(encoding=kind, depth=deep).rise("width")

        for kind in kinds:
            yield fits(
                main["r2_in"].at(encoding=kind, width=wide, depth=deep),
                f"The widest network fits its training tasks under `{kind}` (r2_in).",
                name=f"fits-{kind}",
            )
        held_out = skill(main["r2_held_out"])
        yield claim(
            "width-helps",
            with_width(held_out).greater(),
            f"Held-out R2 rises with width where the network sees the task vector itself (`{plain}`; widest minus narrowest).",
            primary=True,
            needs=(needs, "control-gains-nothing"),
            version=3,
        )
        for kind in kinds[1:]:
            yield claim(
                f"width-helps-{kind}",
                with_width(held_out, kind).greater(),
                f"Held-out R2 rises with width under `{kind}`.",
                needs=f"fits-{kind}",
                version=3,
            )
        yield claim(
            "width-helps-few-shot",
            skill(few_shot["r2_held_out"]).rise("width").greater(),
            "Held-out R2 rises with width where the task is only shown by examples (reduced teacher).",
            version=2,
        )
        yield claim(
            "depth-helps",
            held_out.at(encoding=plain, width=wide).rise("depth").greater(),
            f"Held-out R2 rises with depth at the largest width (`{plain}`; deepest minus shallowest).",
            needs=needs,
            version=3,
        )
        yield claim(
            "gap-closes",
            (-with_width(main["r2_in"].on_scales() - held_out)).greater(),
            f"Width closes the gap between trained and held-out combinations (`{plain}`; trained minus held out, narrowest minus "
            "widest).",
            needs=needs,
            version=3,
        )
        yield claim(
            "decodability-rises",
            with_width(main["intrinsic"]).greater(0.05),
            f"Intrinsic decodability in the deepest layer rises with width (`{plain}`).",
            needs=needs,
            version=2,
        )
        # A constituent that a probe reads badly is moved too far: efficacies far below zero differ in nothing that matters.
        yield claim(
            "swap-efficacy-rises",
            with_width(main["efficacy_best"].clip(lower=0)).greater(0.05),
            "The efficacy of swapping a constituent by its decoded direction rises with width, at the site chosen on validation "
            f"pairs (`{plain}`; an edit that does harm counts as zero).",
            needs=needs,
            version=2,
        )
        yield from control_fails(
            lookup["r2_in"].last(),
            lookup["correlation_held_out"].last(),
            "The widest network can learn the control (r2_in).",
            "Width does not help on independent random functions: predictions of the widest network for held-out combinations "
            "do not correlate with the truth (correlation).",
            gain=skill(lookup["r2_held_out"]).rise(),
        )

    def figures(self, main: Arm, few_shot: Arm) -> Figures:
        from recombine.figures.study import lines

        runs = main.frame
        deep = pd.concat([runs[runs["depth"] == self.depths[-1]], few_shot.frame.assign(encoding="few-shot")])
        for x, larger, words, frame in (
            ("width", "wider", "width", deep),
            ("depth", "deeper", "number of hidden layers", runs[runs["width"] == self.widths[-1]]),
        ):
            frame = frame.reindex(columns=["replicate", "encoding", x, *MEASURES])
            yield lines(
                frame.melt(["replicate", "encoding", x], list(MEASURES), "measure", "value"),
                x=x,
                y="value",
                series="encoding",
                facet="measure",
                name=f"by_{x}",
                title=f"Do {larger} networks recombine better?",
                caption=f"Networks trained on the same combinations, by their {words}. Left: R² on combinations that were never "
                "trained. Middle: how well a linear map reads the constituents from the deepest layer. Right: how far swapping "
                "one constituent by its decoded direction moves the output to that of the other task (1: all the way), at the "
                "layer chosen on validation pairs. Few-shot has a reduced teacher and its own widths.",
                labels=[*main.axes["encoding"], "few-shot"],
                facet_labels=MEASURES,
                log=x == "width",
                floor=-0.25,
                ceiling=1.0,
                x_title=words,
                y_title="",
            )
