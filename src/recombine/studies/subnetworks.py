"""Does a trained network have a subnetwork for each part of its task, and is it needed for that part alone?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, control, lowest, precondition
from recombine.families.odd_one_out import MIXED, RULES
from recombine.models import MLP, Masked
from recombine.probes import Subnetwork
from recombine.recipes import Fast, Paper
from recombine.spaces import SubsetSpace
from recombine.studies.shapes import ascending
from recombine.supports import Given, Random
from recombine.training.config import RunConfig, Seeds

CHANCE = 0.25
SCRATCH, PRETRAINED, UNTRAINED = "trained", "pretrained", "random weights"
SIDES = {"own": "its own rule", "other": "the other rule"}
PARTS = {"whole": "whole network", "subnetwork": "subnetwork alone", "ablated": "network without it"}


def odd_run(items: str, steps: int, **model: Any) -> dict[str, Any]:
    """The settings of a run on odd-one-out: the kind of items, the steps, and settings of the network."""
    return {
        "family": {"kind": "odd-one-out", "items": items},
        "model": {"kind": "comparison", "items": items, **model},
        "recipe": {"kind": "fast", "steps": steps, "tasks": 64, "samples": 1},
        "eval_every": 100,
        "validation_tasks": 128,
    }


def fill_run(steps: int, **model: Any) -> dict[str, Any]:
    """The settings of the masked-language pretraining."""
    recipe = {"kind": "fast", "steps": steps, "tasks": 128, "samples": 1}
    return {"family": "fill-in", "model": {"kind": "word-filler", **model}, "recipe": recipe, "eval_every": 100}


class Subnetworks(Study):
    """Does a trained network have a subnetwork for each part of its task, and is it needed for that part alone?

    Networks find the odd one of four items, which breaks one of two rules. Masks on their fixed weights are trained to solve one
    rule alone. A subnetwork that solves its rule proves little: masks find one in random weights as well. What counts is the
    network without it, which should fail its own rule and keep the other one. The same is asked of the modules of a hyperteacher.
    """

    kind: Literal["subnetworks"] = "subnetworks"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "sentences": odd_run("sentences", 20, width=16, layers=1, heads=2),
            "pretraining": fill_run(10, width=16, layers=1, heads=2),
            "pictures": odd_run("pictures", 10, width=16),
            "modules": {
                "space": {"kind": "subset", "modules": 8, "max_active": 2},
                "model": {"kind": "mlp", "width": 16, "depth": 2},
                "recipe": {"kind": "fast", "steps": 30},
            },
            **{"numbers": (10, 20), "reserve": 8, "chosen": (0,), "mask_steps": 10, "replicates": 2},
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000},
        "paper": {
            "sentences": odd_run("sentences", 5000, width=256, layers=6),
            "pretraining": fill_run(20_000, width=256, layers=6),
            "pictures": odd_run("pictures", 5000, width=256),
            "modules": {
                "space": {"kind": "subset", "modules": 16, "max_active": 3},
                "model": {"kind": "mlp", "width": 1024, "depth": 4},
                "recipe": "paper",
            },
            **{"numbers": (80, 320), "reserve": 200, "mask_steps": 10_000, "replicates": 12},
        },
    }
    shown = (*(f"{part}_{side}_in" for part in PARTS for side in SIDES), "kept")

    sentences: RunConfig = RunConfig.model_validate(odd_run("sentences", 300))
    """The networks that compare sentences."""
    pretraining: RunConfig = RunConfig.model_validate(fill_run(600))
    """What some of them are trained on before: filling in missing words."""
    pictures: RunConfig = RunConfig.model_validate(odd_run("pictures", 600))
    """The networks that compare pictures."""
    modules: RunConfig = RunConfig(
        space=SubsetSpace(modules=12, max_active=3), model=MLP(width=128, depth=3), recipe=Fast(steps=500)
    )
    """The networks that learn a hyperteacher."""
    numbers: tuple[PositiveInt, ...] = (40, 160)
    """Numbers of training combinations there, fewest first."""
    reserve: NonNegativeInt = 100
    """Combinations of the common test there."""
    chosen: tuple[NonNegativeInt, ...] = (0, 1)
    """The modules that get a mask."""
    mask_steps: PositiveInt = 600
    """Steps in which a mask is trained."""
    weight: float = 1.0
    """The weight of the size of a mask beside the loss: larger ones keep fewer weights."""
    replicates: PositiveInt = 8
    """Independent replicates: items, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "numbers")

    def masks(self, base: RunConfig, **settings: Any) -> Arm:
        """An arm of masks on the weights of a run. Its own support is what a mask is trained on."""
        recipe = Paper(
            learning_rate=0.01, steps=self.mask_steps, tasks=64, samples=base.recipe.samples, weight_decay=0.0
        )
        model = Masked(model=base.model, weight=self.weight)
        masked = base.replace(
            recipe=recipe, support=Given(combinations=((0,),)) if base is self.modules else base.support
        )
        return Arm(masked.replace(model=model), **settings)

    def arms(self) -> dict[str, Arm]:
        def rule(cell: Any) -> Given:
            return Given(combinations=((cell.rule, MIXED),))

        def pretrained(cell: Any) -> RunConfig:
            return self.pretraining.replace(seeds=Seeds.replicate(cell.seed))

        def parent(base: RunConfig) -> Any:
            def of(cell: Any) -> tuple[RunConfig, ...]:
                own = base.replace(seeds=Seeds.replicate(cell.seed))
                if cell.weights == UNTRAINED:
                    return (own.replace(steps=0),)
                return (own.replace(parents=(pretrained(cell),)) if cell.weights == PRETRAINED else own,)

            return of

        def taught(cell: Any) -> tuple[RunConfig, ...]:
            support = Random(number=cell.taught, reserve=self.reserve, require_connected=False)
            own = self.modules.replace(support=support, seeds=Seeds.replicate(cell.seed))
            return (own.replace(steps=0) if cell.weights == UNTRAINED else own,)

        odd: dict[str, Any] = {"rule": RULES, "support": rule}
        return {
            "sentences": self.masks(
                self.sentences, **odd, weights=(SCRATCH, PRETRAINED, UNTRAINED), parents=parent(self.sentences)
            ),
            "pictures": self.masks(self.pictures, **odd, weights=(SCRATCH, UNTRAINED), parents=parent(self.pictures)),
            "modules": self.masks(
                self.modules,
                weights=(SCRATCH, UNTRAINED),
                taught=self.numbers,
                module=self.chosen,
                support=lambda cell: Given(combinations=((cell.module,),)),
                parents=taught,
            ),
        }

    def measurements(self) -> list[Any]:
        return [Subnetwork(bits=1 << 14)]  # Whole masks, so that they can be drawn.

    def claims(self, sentences: Arm, pictures: Arm, modules: Arm) -> Claims:
        def more(arm: Arm, part: str, weights: str, floor: float = CHANCE, region: str = "in", **cell: Any) -> Column:
            """The score of a part on its own tasks minus that on the others, both at least chance; mean over the masks."""
            own, other = (
                arm[f"{part}_{side}_{region}"].clip(lower=floor).at(weights=weights, **cell) for side in SIDES
            )
            return (own - other).mean()

        words = {"sentences": sentences, "pictures": pictures}
        for name, arm in words.items():
            learned = [
                arm[f"whole_{side}_in"].at(weights=kind).lowest() for side in SIDES for kind in arm.axes["weights"][:-1]
            ]
            text = f"The whole network finds the odd one by either rule ({name}; lowest accuracy)."
            yield precondition(f"{name}-are-learned", lowest(*learned).above(0.9), text)
            found = arm["subnetwork_own_in"].at(weights=SCRATCH).lowest()
            text = f"The subnetwork that a mask finds solves the rule that the mask was trained on ({name}; lowest accuracy)."
            yield precondition(f"{name}-masks-are-learned", found.above(0.8), text)
        for name, arm in words.items():
            needs = (f"{name}-are-learned", f"{name}-masks-are-learned")
            trained, random = (more(arm, "ablated", kind) for kind in (SCRATCH, UNTRAINED))
            text = (
                f"Without the subnetwork of a rule, a trained network loses that rule more than the other one ({name}; accuracy on its "
                "own rule minus the other, both at least chance)."
            )
            yield claim(f"{name}-ablation-is-specific", trained.less(0.05), text, needs=needs)
            text = f"This needs trained weights: the difference is lower than for masks on random weights ({name}; difference of the two)."
            primary = name == "sentences"
            yield claim(
                f"{name}-not-in-random-weights", (trained - random).less(0.2), text, primary=primary, needs=needs
            )
            text = (
                f"The subnetwork by itself proves nothing: masks on random weights, too, find one that solves its own rule better than the "
                f"other ({name}; accuracy of the subnetwork, own rule minus the other)."
            )
            yield control(f"{name}-masks-fit-random-weights", more(arm, "subnetwork", UNTRAINED).greater(0.1), text)
        text = (
            "Pretraining makes subnetworks more specific: without the subnetwork of a rule, that rule is lost more, against the other one, "
            "than in networks trained from scratch (difference of the two)."
        )
        gain = more(sentences, "ablated", PRETRAINED) - more(sentences, "ablated", SCRATCH)
        needs = ("sentences-are-learned", "sentences-masks-are-learned")
        yield claim("pretraining-makes-modular", gain.less(0.05), text, needs=needs)
        many, few = self.numbers[-1], self.numbers[0]
        held: dict[str, Any] = {"floor": 0.0, "region": "held_out"}
        whole = modules["whole_own_held_out"].at(weights=SCRATCH, taught=many).lowest()
        text = "A network trained on many combinations of a hyperteacher solves held-out ones (lowest R2)."
        yield precondition("modules-are-recombined", whole.above(0.7), text)
        specific = more(modules, "ablated", SCRATCH, taught=many, **held)
        text = (
            "Without the subnetwork of a module, the network loses held-out combinations with that module more than the others (R2 of "
            "those with it minus the others, both at least zero)."
        )
        yield claim("modules-ablation-is-specific", specific.less(0.05), text, needs="modules-are-recombined")
        text = "It is more specific in networks that recombine better: those trained on many combinations instead of few (difference of the two)."
        rise = specific - more(modules, "ablated", SCRATCH, taught=few, **held)
        yield claim("modules-specific-where-recombined", rise.less(0.05), text, needs="modules-are-recombined")

    def overlaps(self, tables: Tables) -> pd.DataFrame:
        """How much two masks of one network overlap: weights that both keep, as a share of those that either keeps, and by chance."""
        frame = tables["subnetwork"]
        if "sample" not in frame:
            return pd.DataFrame(columns=["arm", "weights", "replicate", "overlap", "chance"])
        rows = []
        for (arm, weights, replicate), own in frame.groupby(["arm", "weights", "replicate"], sort=False):
            masks = [
                np.frombuffer("".join(part["sample"]).encode(), "u1") == ord("1") for _, part in own.groupby("rule")
            ]
            if len(masks) == 2 and len(masks[0]) == len(masks[1]):
                either, shares = (masks[0] | masks[1]).mean(), [mask.mean() for mask in masks]
                chance = shares[0] * shares[1] / max(sum(shares) - shares[0] * shares[1], 1e-9)
                overlap = (masks[0] & masks[1]).mean() / max(either, 1e-9)
                rows.append(
                    {"arm": arm, "weights": weights, "replicate": replicate, "overlap": overlap, "chance": chance}
                )
        return pd.DataFrame(rows, columns=["arm", "weights", "replicate", "overlap", "chance"])

    def figures(self, sentences: Arm, pictures: Arm, modules: Arm) -> Figures:
        from recombine.figures.feature_maps import masks_on_network
        from recombine.figures.study import dots

        score: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0, "x_title": "accuracy"}
        for name, arm in (("sentences", sentences), ("pictures", pictures)):
            rows = [
                arm.frame.reindex(columns=["weights", "replicate", *(f"{part}_{side}_in" for side in SIDES)])
                .rename(columns={f"{part}_{side}_in": side for side in SIDES})
                .assign(part=words + ": " + arm.frame["weights"].astype(str))
                for part, words in PARTS.items()
            ]
            frame = pd.concat(rows).groupby(["part", "replicate"], sort=False, as_index=False)[[*SIDES]].mean()
            yield dots(
                frame,
                category="part",
                measures=SIDES,
                name=f"parts_{name}",
                title=f"What does a subnetwork do? ({name})",
                caption="A mask is trained to find the odd one by one rule. The subnetwork solves that rule alone, in trained and in random "
                "weights. Only the network without it tells whether the two rules are apart. Chance is .25.",
                **score,
            )
        frame = pd.concat([self.overlaps(arm.tables) for arm in (sentences, pictures)], ignore_index=True)
        yield dots(
            frame.assign(network=frame["arm"].astype(str) + ": " + frame["weights"].astype(str)),
            category="network",
            measures={"overlap": "overlap of the two masks", "chance": "by chance, at their sizes"},
            name="overlap",
            title="Do the masks of two rules keep the same weights?",
            caption="Weights that both masks keep, as a share of those that either keeps.",
            x_title="overlap",
            floor=0.0,
            ceiling=1.0,
        )
        table = sentences.tables["subnetwork"]
        if "shape" in table:
            drawn = table[table["weights"] == SCRATCH]
            names = (f"{RULES[0]} rule", f"{RULES[1]} rule")
            masks = masks_on_network(drawn.assign(mask=drawn["rule"].astype(str) + " rule"), names)
            if masks is not None:
                yield masks
        if "sample" in table:
            shares = [bits.count("1") / max(len(bits), 1) for bits in map(str, table["sample"])]
            kept = table.assign(share=shares, mask=table["rule"].astype(str) + " rule")
            yield dots(
                kept.pivot_table(
                    index=["matrix", "replicate"], columns="mask", values="share", sort=False
                ).reset_index(),
                category="matrix",
                measures={f"{rule} rule": f"mask of the {rule} rule" for rule in RULES},
                name="kept",
                title="Where in the network is each rule?",
                caption="The share of weights of each matrix that the masks keep, mean over networks that compare sentences.",
                x_title="share of weights kept",
                floor=0.0,
            )
        best = modules.frame[modules.frame["weights"] == SCRATCH]
        yield dots(
            best.assign(taught=best["taught"].astype(str) + " combinations"),
            category="taught",
            measures={
                "whole_own_held_out": "whole network",
                "ablated_own_held_out": "without a module's subnetwork: tasks with the module",
                "ablated_other_held_out": "without it: the other tasks",
            },
            name="modules",
            title="Is there a subnetwork for each module?",
            caption="Held-out combinations of a hyperteacher. A mask is trained on one module by itself, then its subnetwork is taken out.",
            x_title="R²",
            floor=-1.0,
            ceiling=1.0,
        )
