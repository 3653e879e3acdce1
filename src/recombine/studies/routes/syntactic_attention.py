"""Does one architectural bias, attention by syntax and content by the word alone, close the gaps of SCAN that scale did not?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.models import SyntacticAttention as Network
from recombine.probes import Compute, ScanCommands, Scores
from recombine.studies.shapes import ascending, if_run, sequence_run
from recombine.supports import ScanSplit
from recombine.training.config import RunConfig

SPLITS = {
    "simple": "held out at random",
    "add-jump": "'jump' seen only alone",
    "around-right": "'around right' never seen",
}
"""What is held out, in words."""
GAPS = ("add-jump", "around-right")
STREAMS = {True: "syntax and meaning apart", False: "ablation: meaning in context"}


def scan_run(tasks: int, steps: int, eval_every: int, validation_tasks: int, groups: int = 8) -> dict[str, Any]:
    """The settings of a run on SCAN. Adam: Muon would change directions in which words need not differ as much as all others."""
    settings = sequence_run("scan", tasks=tasks, steps=steps, eval_every=eval_every, validation_tasks=validation_tasks)
    recipe = {
        "kind": "paper",
        "learning_rate": 0.003,
        "weight_decay": 0.0,
        "falling": True,
        "tasks": tasks,
        "samples": 1,
        "steps": steps,
    }
    return {**settings, "recipe": recipe, "objective": {"kind": "next-token", "length_groups": groups}}


class SyntacticAttentionStudy(Study):
    """Does one architectural bias, attention by syntax and content by the word alone, close the gaps of SCAN that scale did not?

    The network attends by the syntax of words, which follows from their neighbours, and finds their meaning, which does not
    depend on other words. In the ablation meanings are read in their order by a further recurrent network; all else is the same, and it has
    more weights. Both are trained on the published splits for as many steps. On add-jump both also have several widths.
    """

    kind: Literal["syntactic-attention"] = "syntactic-attention"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": scan_run(tasks=8, steps=6, eval_every=6, validation_tasks=4, groups=0),
            "widths": (8, 16),
            "splits": ("simple", "add-jump"),
            "combinations": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 7400},
        "workstation": {"replicates": 24, "first_seed": 7500},
        "paper": {
            "base": scan_run(tasks=256, steps=20_000, eval_every=1000, validation_tasks=128),
            "widths": (64, 128, 256),
            "combinations": 4096,
            "replicates": 12,
        },
    }
    shown = "accuracy_in", "accuracy_held_out", "step_accuracy_held_out", "weights"

    base: RunConfig = RunConfig.model_validate(scan_run(tasks=64, steps=800, eval_every=400, validation_tasks=32))
    """What all runs share; the arms set support and network."""
    model: Network = Network()
    """The network; the arms set its width, and whether it is the ablation."""
    widths: tuple[PositiveInt, ...] = (32, 64)
    """Widths of both networks on add-jump, narrowest first. All other runs have the widest."""
    splits: tuple[Literal["simple", "add-jump", "around-right"], ...] = ("simple", "add-jump", "around-right")
    """What is held out. The claims of a split that is left out are not asked."""
    combinations: PositiveInt = 256
    """Commands of each region that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: initialisation and order of the data, and the split `simple`."""

    def check(self) -> None:
        ascending(self, "widths")
        if not {"simple", "add-jump"} <= set(self.splits):
            raise ValueError(f"splits must have 'simple' and 'add-jump', got {self.splits}")

    def arms(self) -> dict[str, Arm]:
        main = Arm(
            self.base,
            model=self.model,
            support=ScanSplit(),
            split=self.splits,
            separate=(True, False),
            width=self.widths[-1],
        )
        return {"main": main, "scale": main.replace(split="add-jump", width=self.widths)}

    def measurements(self) -> list[Any]:
        return [Scores(combinations=self.combinations, draws=1, samples=1), ScanCommands(), Compute()]

    def claims(self, main: Arm, scale: Arm) -> Claims:
        def score(split: str, separate: bool, column: str = "accuracy_held_out") -> Column:
            return if_run(self, main, column, split=split, separate=separate)

        for split, words in SPLITS.items():
            for separate, name in ((True, "bias"), (False, "ablation")):
                subject = "The network with the bias" if separate else "The ablation"
                text = f"{subject} answers the commands that it is trained on ({words}; exact match)."
                yield precondition(f"fits-{split}-{name}", score(split, separate, "accuracy_in").above(0.9), text)
        text = "With the bias, too, commands that were held out at random are answered (exact match)."
        yield precondition("in-distribution", score("simple", True).above(0.9), text)
        text = (
            "The ablation answers commands that were held out at random (exact match): what it lacks is not training."
        )
        yield control("ablation-learns", score("simple", False).above(0.9), text, needs="fits-simple-ablation")
        for separate, name in ((True, "bias"), (False, "ablation")):
            text = f"The command 'jump' is answered right ({STREAMS[separate]}; share of replicates)."
            yield precondition(f"jump-is-known-{name}", score("add-jump", separate, "right_jump").above(0.9), text)
        for split, words in SPLITS.items():
            if split not in GAPS:
                continue
            jump = ("jump-is-known-bias", "jump-is-known-ablation") if split == "add-jump" else ()
            needs = (f"fits-{split}-bias", f"fits-{split}-ablation", *jump)
            text = f"The bias helps: more held-out commands are answered than by the ablation ({words}; exact match, bias minus ablation)."
            gain = score(split, True) - score(split, False)
            yield claim(f"bias-helps-{split}", gain.greater(0.1), text, primary=split == "add-jump", needs=needs)
            text = f"The bias closes the gap: held-out commands are answered nearly as often as those held out at random ({words}; exact match, random minus held out)."
            gap = score("simple", True) - score(split, True)
            yield claim(
                f"bias-closes-{split}", gap.below(0.1), text, needs=(f"fits-{split}-bias", "in-distribution", *jump[:1])
            )
        text = "A wider ablation does not close the gap of add-jump: exact match rises by less than this (widest minus narrowest)."
        rise = scale["accuracy_held_out"].at(separate=False).rise("width")
        needs = ("fits-add-jump-ablation", "jump-is-known-ablation")
        yield claim("width-does-not-close-add-jump", rise.below(0.1), text, needs=needs)

    def figures(self, main: Arm, scale: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        wide = main.frame.pivot_table(index=["replicate", "split"], columns="separate", values="accuracy_held_out")
        yield dots(
            wide.rename(columns={True: "apart", False: "together"}).reset_index(),
            category="split",
            measures={"apart": STREAMS[True], "together": STREAMS[False]},
            labels=SPLITS,
            title="Does one architectural bias close the gaps of SCAN?",
            caption="The share of held-out commands whose answer is entirely right, by what was held out.",
            x_title="exact match, held out",
            floor=0.0,
            ceiling=1.0,
        )
        frame = scale.frame.replace({"separate": STREAMS})
        shown: dict[str, Any] = {"series": "separate", "labels": list(STREAMS.values()), "log": True}
        shown |= {"y": "accuracy_held_out", "y_title": "exact match, add-jump", "floor": 0.0, "ceiling": 1.0}
        yield lines(
            frame,
            x="width",
            x_title="width",
            title="Does a wider network close the gap without the bias?",
            caption="Commands with 'jump', which training shows only alone, by the width of both networks.",
            **shown,
        )
        yield lines(
            frame.assign(compute=frame["training_flops"] / 1e9),
            x="compute",
            x_title="billions of operations of training",
            title="What does a unit of compute buy?",
            caption="The same against the operations of all training steps, as the compiler counts them.",
            **shown,
        )
