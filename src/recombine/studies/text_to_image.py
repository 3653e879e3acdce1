"""Which combinations does a text-to-image model fail to draw, and do its blocks show it while it draws?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from recombine import stats
from recombine.design import Arm, Claims, Figures, Study, claim, control, precondition
from recombine.design.column import Column, average, highest, statistic
from recombine.objectives import FlowMatching
from recombine.probes import Concepts, Gallery, Measurement, Readout, Scores
from recombine.spaces import ProductSpace
from recombine.stats.generated_images import RIVALS
from recombine.studies.shapes import ascending, sequence_run
from recombine.supports import Corner, Gaps, Planned, Random
from recombine.training.config import RunConfig

COLOURS = ("red", "green", "blue", "yellow", "purple", "cyan", "orange", "white")
ONE_THING = {
    **{"shape": ("disc", "square", "triangle", "cross"), "colour": COLOURS, "size": ("small", "large")},
    "place": ("top left", "top right", "bottom left", "bottom right"),
}
THING = {"shape": ("disc", "cross"), "colour": COLOURS[:4]}
TWO_THINGS = {f"{side} {factor}": levels for side in ("left", "right") for factor, levels in THING.items()}
ARMS = {
    "complete": "every pair of parts met",
    "missing": "some pairs never met",
    "corner": "around one combination",
    "two_things": "two things",
}
"""The training combinations of the arms that every profile has. All but the last are of one thing."""
SIZES = {
    **{"width": "{} channels", "steps": "{} steps", "number": "{} combinations"},
    **{"pairs": "{} pairs never met", "reach": "around one combination, reach {}"},
}
"""What the arms `by_...` vary, in words."""
OVER_RUNS = ("text_r2", "concepts_untrained_r2", "success_in")
"""Columns that are partialled out of a relation over runs."""
NEEDS = ("judge-is-right", "fits-complete", "fits-missing", "fits-corner")
"""What every claim about scenes of one thing needs."""


class TextToImage(Study):
    """Which combinations does a text-to-image model fail to draw, and do its blocks show it while it draws?

    Small flow-matching U-Nets draw scenes from captions. Their training combinations cover all pairs of parts, or leave some
    out. A checker that was never trained judges the images: it compares them with the shapes of the renderer. Decodability of
    the parts is measured on held-out combinations only, while the network draws them.
    """

    kind: Literal["text-to-image"] = "text-to-image"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run("scenes", tasks=8, steps=12, eval_every=12, validation_tasks=2)
            | {"objective": {"kind": "flow-matching", "steps": 2, "guidance": 1.0}}
            | {"encoding": {"kind": "captions", "width": 16}},
            **{"widths": (8,), "steps": (12,), "replicates": 2, "score_draws": 1, "concept_draws": 2},
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": sequence_run("scenes", tasks=128, steps=20_000, eval_every=1000, validation_tasks=2)
            | {"family": {"kind": "scenes", "pixels": 32}, "model": {"kind": "unet", "levels": 3, "blocks": 2}},
            **{"widths": (64,), "steps": (20_000,)},
        },
        "full": {
            **{"widths": (16, 32, 64), "steps": (300, 600, 1200, 2400), "numbers": (48, 72, 108)},
            **{"more_pairs": (6,), "reaches": (1,), "by_lot": True, "replicates": 8, "first_seed": 3000},
        },
    }
    shown = (
        *("success_in", "success_held_out", "readable_held_out", "swapped_held_out", "mirrored_held_out"),
        *("concepts_r2", "text_r2"),
    )

    base: RunConfig = RunConfig.model_validate(
        sequence_run(
            "scenes", tasks=32, steps=1200, eval_every=400, validation_tasks=2, objective=FlowMatching(steps=12)
        )
    )
    """What all runs share; the arms set space, support, width and steps."""
    widths: tuple[PositiveInt, ...] = (32,)
    """Channels of the finest resolution. The middle one is usual: others are tried with complete support only."""
    steps: tuple[PositiveInt, ...] = (1200,)
    """Training steps; the same. Scenes with two things get twice the number."""
    numbers: tuple[PositiveInt, ...] = (72,)
    """Training combinations of one thing; the same."""
    pairs: NonNegativeInt = 4
    """Pairs of parts that never meet where conjunctions are missing."""
    more_pairs: tuple[PositiveInt, ...] = ()
    """Other numbers of such pairs, fewest first."""
    reaches: tuple[PositiveInt, ...] = ()
    """Other reaches of the corner than 2, smallest first."""
    by_lot: bool = False
    """Whether there is an arm with the usual number of combinations, drawn at random."""
    reserve: PositiveInt = 128
    """Combinations of one thing in the common test."""
    beside_number: PositiveInt = 32
    """Training combinations of two things."""
    beside_reserve: PositiveInt = 24
    """Combinations of two things in their common test."""
    score_draws: PositiveInt = 6
    """Judged images of each combination, each from another caption."""
    concept_draws: PositiveInt = 3
    """Images of each held-out combination whose activations are read."""
    first_seed: NonNegativeInt = 5000
    """Fresh seeds: earlier forms of some claims were decided on those from 1000 and 2000 on."""

    def check(self) -> None:
        ascending(self, "widths", "steps", "numbers", least=1)
        ascending(self, "more_pairs", "reaches", least=0)

    @property
    def usual(self) -> dict[str, int]:
        """The width, steps and number of combinations that every arm has: the middle ones."""
        levels = {"width": self.widths, "steps": self.steps, "number": self.numbers}
        return {name: values[len(values) // 2] for name, values in levels.items()}

    def arms(self) -> dict[str, Arm | None]:
        width, steps, number = self.usual.values()
        one, two = (ProductSpace.model_validate({"factors": some}) for some in (ONE_THING, TWO_THINGS))
        test: dict[str, Any] = {"reserve": self.reserve}
        base = Arm(self.base, space=one).replace(**{"model.width": width, "recipe.steps": steps})
        complete = base.replace(support=Planned(number=number, **test))
        missing = base.replace(support=Gaps(number=number, parts=0, pairs=self.pairs, **test))
        corner = base.replace(support=Corner(reach=2, **test))
        beside = Planned(number=self.beside_number, reserve=self.beside_reserve)
        return {
            "complete": complete,
            "missing": missing,
            "corner": corner,
            "two_things": base.replace(space=two, support=beside, **{"recipe.steps": 2 * steps}),
            "by_width": complete.replace(**{"model.width": self.widths}) if len(self.widths) > 1 else None,
            "by_steps": complete.replace(**{"recipe.steps": self.steps}) if len(self.steps) > 1 else None,
            "by_number": complete.replace(number=self.numbers) if len(self.numbers) > 1 else None,
            "by_pairs": missing.replace(pairs=self.more_pairs) if self.more_pairs else None,
            "by_reach": corner.replace(reach=self.reaches) if self.reaches else None,
            "random": base.replace(support=Random(number=number, **test)) if self.by_lot else None,
        }

    def measurements(self) -> list[Measurement]:
        scores = Scores(draws=self.score_draws, samples=1, map=False)  # The gallery has the map.
        return [scores, Concepts(draws=self.concept_draws), Readout(), Gallery()]

    def claims(self, complete: Arm, missing: Arm, corner: Arm, two_things: Arm, **more: Arm) -> Claims:
        one = (complete, missing, corner)
        # Copies are close to training, so they could feign these relations. They cannot feign that held-out images fail.
        copies = (*NEEDS, "nothing-is-copied")
        reads = (*copies, "readable-inside")

        def mean(column: str) -> Column:
            return average(*(arm[column] for arm in one))

        def related(by: str, *covariates: str) -> Column:
            return statistic(stats.decodability_relation, *one, by=by, covariates=covariates)

        errors = [arm[name] for arm in (*one, two_things) for name in ("checker_error", "checker_error_noised")]
        text = (
            "The checker reads rendered images back, clean and with noise of .2 (share of errors, worst of the arms)."
        )
        yield precondition("judge-is-right", highest(*errors).below(0.02), text)
        for (name, words), arm in zip(ARMS.items(), (*one, two_things), strict=True):
            text = f"The network draws trained combinations as the caption says ({words}; success)."
            success = arm["success_in"].above(0.3 if arm is two_things else 0.7)
            yield precondition(f"fits-{name.replace('_', '-')}", success, text)
        text = (
            "Right images of held-out combinations are not closer to images of trained ones than rendered images of the same "
            "combinations are (share below the nearest twentieth of these)."
        )
        yield precondition("nothing-is-copied", mean("copied_right").below(0.1), text)
        text = "The parts of held-out combinations can be read off the network: R2 at the chosen block and moment."
        yield precondition("readable-inside", mean("concepts_r2").above(0.05), text)
        text = (
            "Within runs, the network draws right those held-out combinations whose parts can be read off its blocks while "
            "it draws (rank correlation over combinations, mean over the arms)."
        )
        yield claim("decodability-relates", related("decodability").greater(0.1), text, primary=True, needs=reads)
        text = (
            "Over models and concepts, as in the literature: what is decoded better is drawn right more often (rank correlation "
            "over pairs of a run and a factor, held-out combinations)."
        )
        published = statistic(stats.rank_over_models_and_concepts, *one)
        yield claim("over-models-and-concepts", published.greater(0.1), text, primary=True, needs=reads)
        text = (
            "Within runs, with the rivals partialled out: frequency of the rarest part, pairs that met, distance from training, "
            "success of the parts in trained combinations, decodability from the text encoder and from an untrained network, "
            "rarity among the combinations that probes are fitted on (partial rank correlation)."
        )
        yield claim("beyond-rivals", related("decodability", *RIVALS).greater(0.05), text, needs=reads)
        text = "The same, rivals partialled out, after a third of the way, when little of the image is there."
        yield claim("early", related("early", *RIVALS).greater(0.05), text, needs=reads)
        text = (
            "Decodability also shows which factor of a combination is wrong (rank correlation over combinations and factors, "
            "means of combinations and of factors removed)."
        )
        yield claim("tells-the-factor", statistic(stats.factor_relation, *one).greater(0.1), text, needs=reads)
        text = (
            "Runs whose blocks tell more of the parts draw more held-out combinations right (rank correlation over runs with "
            "training combinations of the same kind)."
        )
        yield claim("over-runs", statistic(stats.rank_over_runs, *one).greater(0.1), text, needs=reads)
        text = (
            "The same with decodability from the text encoder and from the untrained network, and success on trained "
            "combinations, partialled out."
        )
        beyond = statistic(stats.rank_over_runs, *one, covariates=OVER_RUNS)
        yield claim("over-runs-beyond-rivals", beyond.greater(0.1), text, needs=reads)
        text = (
            "Training makes the parts more selectively decodable: R2 minus that of random codes of combinations, trained minus "
            "untrained network."
        )
        gain = mean("concepts_selectivity") - mean("concepts_untrained_selectivity")
        yield claim("selective", gain.greater(0.05), text, needs=NEEDS)
        text = (
            "With complete support, fewer held-out combinations than trained ones are drawn right, although all their pairs "
            "met (success, trained minus held out)."
        )
        short = complete["success_in"] - complete["success_all_pairs_met"]
        yield claim("falls-short", short.greater(0.05), text, needs=NEEDS)
        text = (
            "Held-out combinations with a pair of parts that never met lose more success against complete support than the "
            "others of the same runs (on the same combinations)."
        )
        loss = statistic(stats.loss_of_unmet_pairs, complete, missing)
        yield claim("missing-conjunctions", loss.greater(0.05), text, needs=copies)
        text = (
            "A network trained on what differs from one combination in at most two factors draws combinations one step away "
            "right more often than those two steps away, although every pair of parts met (success; parts are rarer there, too)."
        )
        yield claim("distance", statistic(stats.near_minus_far, corner).greater(0.05), text, needs=copies)
        text = "Within held-out combinations, joint success is the product of the parts' successes (difference, readable images)."
        joint = statistic(stats.joint_success, *one)
        yield claim("parts-fail-independently", joint.equivalent(0.02), text, needs=NEEDS)
        text = (
            "Where both shapes are right and both colours wrong, the two things have each other's colours more often than if "
            "wrong colours were random (share of these held-out images, minus chance)."
        )
        exchanged = statistic(stats.exchanged_colours, two_things) - (len(THING["colour"]) - 1) ** -2
        yield claim("colours-are-exchanged", exchanged.greater(0.1), text, needs=(NEEDS[0], "fits-two-things"))
        text = "Decodability from an untrained network has no relation to what the trained one draws right (rank correlation)."
        yield control("control-untrained", related("untrained").equivalent(0.1), text, needs=NEEDS)
        success = {name: arm["success_held_out"] for name, arm in more.items()}
        if "by_width" in more:
            text = "Wider networks draw more held-out combinations right (complete support, widest minus narrowest)."
            yield claim("wider-composes", success["by_width"].rise().greater(0.05), text, needs=NEEDS)
        if "by_number" in more:
            text = "Training on more combinations makes more held-out ones right (complete support, most minus fewest)."
            yield claim("more-combinations-compose", success["by_number"].rise().greater(0.05), text, needs=NEEDS)
        if "by_steps" in more:
            text = (
                "After the fewest training steps, the shape of held-out combinations is right less often than the colour, "
                "which changes more of the image."
            )
            colour, shape = (more["by_steps"][f"right_{factor}_held_out"].first() for factor in ("colour", "shape"))
            yield claim("shape-is-last", (colour - shape).greater(0.05), text, needs=NEEDS)
        if "by_pairs" in more:
            text = "More pairs that never met make fewer held-out combinations right (usual number of gaps minus the most)."
            cost = missing["success_held_out"] - success["by_pairs"].last()
            yield claim("more-gaps-cost-more", cost.greater(0.05), text, needs=NEEDS)
        if "by_reach" in more:
            text = (
                "Training on a smaller corner makes fewer held-out combinations right (usual reach minus the smallest)."
            )
            cost = corner["success_held_out"] - success["by_reach"].first()
            yield claim("a-smaller-corner-composes-less", cost.greater(0.05), text, needs=NEEDS)
        if "random" in more:
            text = "Random combinations serve less than as many in which every pair meets (success on held-out ones)."
            gain = complete["success_held_out"] - success["random"]
            yield claim("covering-pairs-helps", gain.greater(0.02), text, needs=NEEDS)

    def figures(self, **arms: Arm) -> Figures:
        from recombine.figures import generated_images as drawn

        tables = {name: arms[name].tables for name in ARMS}
        *one, _ = tables.values()
        rates = stats.success_rates(*one)
        if not len(rates):
            return  # Nothing was measured.
        images = {name: own["gallery"] for name, own in tables.items() if len(own["gallery"])}
        images = {name: own[own["replicate"] == self.seeds[0]] for name, own in images.items()}
        for name, own in images.items():
            factors = TWO_THINGS if name == "two_things" else ONE_THING
            yield drawn.gallery(own, factors, name=f"images_{name}", arm=ARMS[name])
        yield drawn.success_by_arm(pd.concat([own.runs for own in tables.values()]), ARMS)
        yield drawn.success_by_coverage(stats.combination_table(*tables.values()), ARMS, self.replicates)
        yield drawn.decodability_by_block(tables["complete"]["concepts"], ARMS["complete"])
        yield drawn.success_by_decodability(stats.combination_table(*one), ARMS)
        yield drawn.success_by_factor(rates, list(ONE_THING), ARMS)
        yield drawn.nearest_images({ARMS[name]: images[name] for name in ("complete", "missing") if name in images})
        if "by_steps" in arms:
            yield drawn.learning_order(arms["by_steps"].frame, ("colour", "place", "size", "shape"))
        cells = {"the usual size": arms["complete"].frame}
        for axis, words in SIZES.items():
            if arm := arms.get(f"by_{axis}"):
                levels = (level for level in arm.axes[axis] if level != self.usual.get(axis))
                cells |= {words.format(level): arm.frame[arm.frame[axis] == level] for level in levels}
        cells |= {"drawn at random": arms["random"].frame} if "random" in arms else {}
        if len(cells) > 1:
            usual = ", ".join(SIZES[axis].format(level) for axis, level in self.usual.items())
            yield drawn.success_by_cell(cells, usual)
