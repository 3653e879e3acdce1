"""Does a network keep together which features belong to which object, and does scale replace slots?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.families.silhouettes import FILLED
from recombine.models import SlotAttention, SlotAutoencoder
from recombine.probes import Conjunctions, Measurement, Scores, Segregation
from recombine.recipes import Fast
from recombine.spaces import ProductSpace
from recombine.studies.shapes import ascending, fits, if_run
from recombine.supports import FewObjects
from recombine.training.config import RunConfig

NETWORKS = {"slots": "slots", "pooled": "pooled vector"}
METHODS = {
    "ari": "the network",
    "ari_untrained": "the network, untrained",
    "ari_kmeans": "k-means on coordinates",
    "ari_components": "connected components",
}
"""What divides a scene, by the columns of runs."""
DIVIDERS = {
    **{"single": "reconstruction clustering", "crowded": "the same, trained on several"},
    **{"filled": "the same, filled shapes of several sizes", "slot_images": "slots"},
}
"""The arms that divide scenes."""
PLACES = {
    "in": "trained conjunctions",
    "new_conjunction": "conjunctions never shown",
    "more_objects": "more objects",
    "both_new": "both",
}
"""Where errors of binding are counted, by the ends of columns."""


class Binding(Study):
    """Does a network keep together which features belong to which object, and does scale replace slots?

    Segregation: a denoising autoencoder of single silhouettes (reconstruction clustering) and a slot autoencoder divide scenes
    of several, with the outlines and places of the published comparison. Separation: a network with slots and one with a pooled vector of equal total width answer whether there is a red
    square, in pairs of scenes with the same bag of features and swapped bindings. Composition: both were trained with one to
    three objects, and never saw some conjunctions of shape and colour. The pooled network is also tried at other widths and
    with less data.
    """

    kind: Literal["binding"] = "binding"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "questions": {
                "family": {"kind": "objects", "pixels": 12},
                "recipe": {"kind": "fast", "tasks": 8, "samples": 2, "steps": 20, "learning_rate": 0.006},
                "eval_every": 20,
                "validation_tasks": 4,
            },
            "images": {
                "family": {"kind": "silhouettes", "pixels": 16},
                "recipe": {"kind": "fast", "tasks": 8, "samples": 2, "steps": 20},
                "model": {"kind": "mlp", "width": 32, "depth": 2},
                "eval_every": 20,
                "validation_tasks": 4,
            },
            "slot_autoencoder": {"kind": "slot-autoencoder", "slots": 4, "width": 8, "channels": 8, "hidden": 8},
            **{"slots": 3, "slot_width": 8, "widths": (8, 24), "steps": (10, 20), "slot_steps": 20},
            **{"scenes": 16, "pairs": 2, "replicates": 2, "dividers": ("single", "crowded")},
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 6000},
        "paper": {
            **{"slots": 8, "slot_width": 32, "widths": (16, 64, 256, 1024), "steps": (2000, 8000, 32_000)},
            **{"slot_steps": 20_000, "scenes": 512, "replicates": 12},
        },
    }
    shown: ClassVar[tuple[str, ...]] = (
        *METHODS,
        *(f"{measure}_{where}" for measure in ("illusory", "missed", "confused") for where in PLACES),
        "feature_in",
    )

    questions: RunConfig = RunConfig.model_validate(
        {
            "family": "objects",
            "recipe": Fast(tasks=64, samples=2, steps=3000, learning_rate=0.006),
            "eval_every": 250,
            "validation_tasks": 16,
        }
    )
    """What all runs that answer questions share; the arms set slots, widths and steps."""
    images: RunConfig = RunConfig.model_validate(
        {
            "family": "silhouettes",
            "model": {"kind": "mlp", "width": 256, "depth": 2},
            "recipe": Fast(tasks=64, samples=2, steps=6000, learning_rate=0.03),
            "eval_every": 500,
            "validation_tasks": 16,
        }
    )
    """What all runs that restore images share, with the denoising autoencoder."""
    dividers: tuple[Literal["single", "crowded", "filled", "slot_images"], ...] = tuple(DIVIDERS)  # type: ignore[assignment]
    """What divides scenes. Claims about what is left out here are not asked."""
    slot_autoencoder: SlotAutoencoder = SlotAutoencoder()
    slot_steps: PositiveInt = 2500
    """Training steps of the slot autoencoder."""
    slots: PositiveInt = 6
    """Slots of the network that answers questions."""
    slot_width: PositiveInt = 16
    """Numbers of each slot. The pooled vector has as many as all slots together."""
    widths: tuple[PositiveInt, ...] = (16, 96, 384)
    """Widths of the pooled vector, narrowest first."""
    steps: tuple[PositiveInt, ...] = (750, 3000)
    """Training steps of the pooled network, fewest first. Each step has new scenes, so this is also the amount of data."""
    conjunctions: PositiveInt = 2
    """Conjunctions of shape and colour that no training scene shows."""
    most: PositiveInt = 3
    """The most objects of a training scene."""
    scenes: PositiveInt = 128
    """Scenes of silhouettes that are divided."""
    pairs: PositiveInt = 16
    """Pairs of scenes with swapped bindings, for each combination."""
    replicates: PositiveInt = 8

    def check(self) -> None:
        ascending(self, "widths", "steps")

    def arms(self) -> dict[str, Arm]:
        total, support = self.slots * self.slot_width, FewObjects(most=self.most, conjunctions=self.conjunctions)
        base = self.questions.model_copy(update={"model": SlotAttention(), "support": support})
        several, pooled = {"slots": self.slots, "width": self.slot_width}, {"slots": 1, "width": total}
        networks = {
            name: {f"model.{setting}": value for setting, value in sizes.items()}
            for name, sizes in zip(NETWORKS, (several, pooled), strict=True)
        }
        answers = Arm(base, network=networks).replace(**{"recipe.steps": self.steps[-1]})
        alone = answers.replace(network=None, **{"model.slots": 1})
        single = Arm(self.images, support=FewObjects(most=1))
        dividers = {
            "single": single,
            "crowded": single.replace(support=FewObjects(fewest=self.most, most=self.most)),
            "filled": single.replace(space=ProductSpace(factors=FILLED), **{"family.style": "filled"}),  # type: ignore[arg-type]
            "slot_images": single.replace(
                support=FewObjects(most=self.most),
                model=self.slot_autoencoder,
                objective="regression",
                **{"family.flips": 0.0, "recipe.steps": self.slot_steps, "recipe.learning_rate": 0.006},
            ),
        }
        return {
            "answers": answers,
            "by_width": alone.replace(**{"model.width": self.widths}),
            "by_data": alone.replace(**{"model.width": total, "recipe.steps": self.steps}),
            **{name: arm for name, arm in dividers.items() if name in self.dividers},
        }

    def measurements(self) -> list[Measurement]:
        divided = Segregation(objects=self.most, scenes=self.scenes)
        return [Scores(draws=1, samples=16, map=False), divided, Conjunctions(draws=self.pairs)]

    def claims(self, answers: Arm, by_width: Arm, by_data: Arm, **dividers: Arm) -> Claims:
        def of(network: str, measure: str) -> Column:
            return answers[measure].at(network=network)

        def gap(where: str) -> Column:
            """How much more often the pooled network has illusory conjunctions than slots of equal total width."""
            return of("pooled", f"illusory_{where}") - of("slots", f"illusory_{where}")

        def kept(network: str, where: str) -> Column:
            """How much of its share of pairs told apart a network keeps, on scales."""
            here, trained = (1 - of(network, f"confused_{each}") for each in (where, "in"))
            return here.on_scales(score="share") - trained.on_scales(score="share")

        def divided(arm: str, column: str = "ari") -> Column:
            return if_run(self, dividers.get(arm), column)

        features = [f"{network}-see-features" for network in NETWORKS]
        for arm, name, words in (
            ("single", "denoiser-fits", "The denoising autoencoder restores single outlines"),
            ("filled", "denoiser-fits-filled", "The denoising autoencoder of filled shapes restores single ones"),
            ("slot_images", "slot-autoencoder-fits", "The slot autoencoder restores its scenes"),
        ):
            yield fits(divided(arm, "r2_in"), f"{words} (R2).", 0.8, name)
        for (network, words), name in zip(NETWORKS.items(), features, strict=True):
            text = f"The network with {words} answers questions about a single feature (share of right answers)."
            yield precondition(name, of(network, "feature_in").above(0.95), text)
        yield claim(
            "reconstruction-segregates",
            (divided("single") - divided("single", "ari_kmeans")).greater(0.05),
            "Reconstruction clustering with an autoencoder of single outlines divides scenes of the published comparison better "
            "than k-means on the coordinates of white pixels (foreground adjusted Rand index).",
            primary=True,
            needs="denoiser-fits",
        )
        yield claim(
            "reconstruction-segregates-filled",
            (divided("filled") - divided("filled", "ari_kmeans")).greater(0.05),
            "The same with filled shapes of several sizes, which k-means divides about as well as the outlines.",
            needs="denoiser-fits-filled",
        )
        yield claim(
            "single-objects-teach-it",
            (divided("single") - divided("crowded")).greater(0.05),
            "It divides scenes better than with an autoencoder that was trained on scenes of several outlines.",
            needs="denoiser-fits",
        )
        yield claim(
            "slots-segregate",
            (divided("slot_images") - divided("slot_images", "ari_kmeans")).greater(0.05),
            "The masks of a slot autoencoder divide scenes better than k-means on coordinates (foreground adjusted Rand index).",
            needs="slot-autoencoder-fits",
        )
        for where in ("in", "new_conjunction", "more_objects"):
            name, words = where.replace("_", "-"), PLACES[where]
            yield claim(
                f"slots-bind-{name}",
                gap(where).greater(0.05),
                "Slots have fewer illusory conjunctions than a pooled vector of equal total width: yes where the shape and "
                f"the colour belong to different objects ({words}; pooled minus slots).",
                needs=features,
            )
            if where == "in":
                continue
            yield claim(
                f"slots-lose-less-{name}",
                (kept("slots", where) - kept("pooled", where)).greater(),
                "From trained scenes to these, slots lose less than the pooled vector of the share of pairs in which the right "
                f"scene gets the stronger yes ({words}).",
                needs=features,
            )
        for where in ("in", "new_conjunction"):
            name, measure = where.replace("_", "-"), f"illusory_{where}"
            rate, end = by_width[measure], f"({PLACES[where]})"
            text = (
                f"The pooled network has fewer illusory conjunctions at its largest width than at its smallest {end}."
            )
            yield claim(f"width-helps-{name}", (-rate.rise()).greater(0.05), text, needs=features[1])
            text = f"The pooled network has fewer illusory conjunctions after the most data than after the least {end}."
            yield claim(f"data-helps-{name}", (-by_data[measure].rise()).greater(0.05), text, needs=features[1])
            text = f"The widest pooled network, after the most data, has hardly more illusory conjunctions than slots {end}."
            reached = (rate.last() - of("slots", measure)).below(0.05)
            yield claim(f"scale-reaches-slots-{name}", reached, text, needs=features)
        for name, arm, words in (
            ("denoiser", "single", "Reconstruction clustering with an untrained autoencoder"),
            ("slots", "slot_images", "An untrained slot autoencoder"),
        ):
            text = f"{words} does not divide scenes (foreground adjusted Rand index)."
            yield control(f"control-untrained-{name}", divided(arm, "ari_untrained").below(0.05), text)
        text = "Untrained networks do not tell swapped scenes apart: share of pairs in which the wrong one gets the stronger yes, minus .5."
        chance = (answers["untrained_confused_in"].mean() - 0.5).equivalent(0.05)
        yield control("control-untrained-does-not-bind", chance, text)

    def figures(self, answers: Arm, by_width: Arm, by_data: Arm, **dividers: Arm) -> Figures:
        from recombine.figures.objects import divisions, swapped_pairs
        from recombine.figures.study import SCORE, dots, lines

        def first(arm: Arm, table: str, **labels: Any) -> pd.DataFrame:
            """The rows of the first replicate."""
            frame = arm.tables[table]
            for label, value in {"replicate": self.first_seed, **labels}.items():
                frame = frame[frame[label] == value] if label in frame else frame
            return frame

        scenes = {name: first(arm, "segregation") for name, arm in dividers.items()}
        if len(own := scenes.get("single", pd.DataFrame())):
            rows = {"objects": (own, "parts_owner"), "reconstruction": (own, "parts_trained")}
            rows |= {"k-means": (own, "parts_kmeans"), "components": (own, "parts_components")}
            rows |= {"untrained": (own, "parts_untrained")}
            if len(by_slots := scenes.get("slot_images", pd.DataFrame())):
                rows["slots"] = by_slots, "parts_trained"
            yield divisions(rows)
        yield dots(
            *(arm.frame.assign(arm=arm.name) for arm in dividers.values()),
            category="arm",
            measures=METHODS,
            labels=DIVIDERS,
            name="segregation",
            title="Who finds the objects?",
            caption=f"How well methods divide scenes of {self.most} white shapes, by the foreground adjusted Rand index: 1 is "
            "perfect, 0 is chance. Rows with the same kind of scenes have about the same k-means and components.",
            ceiling=1.0,
            x_title="foreground adjusted Rand index",
        )
        tables = {words: first(answers, "conjunctions", network=name) for name, words in NETWORKS.items()}
        if all(len(frame) for frame in tables.values()):
            for where in ("in", "new_conjunction"):
                yield swapped_pairs(tables, where, PLACES[where])
        yield dots(
            answers,
            category="network",
            measures={f"illusory_{where}": words for where, words in PLACES.items()},
            labels=NETWORKS,
            name="illusory",
            title="Who sees red squares that are not there?",
            caption="Illusory conjunctions: the share of scenes with the shape and the colour asked for, but on different objects, in "
            "which the network says yes. The pooled vector has as many numbers as all slots together.",
            x_title="illusory-conjunction rate",
            **SCORE,
        )
        rates = {f"illusory_{where}": PLACES[where] for where in ("in", "new_conjunction")}
        scales = {"width": (by_width, "numbers in the pooled vector"), "steps": (by_data, "training steps")}
        for x, (arm, words) in scales.items():
            yield lines(
                arm,
                x=x,
                y=rates,
                name=f"illusory_by_{x}",
                title="Does scale overcome it?",
                caption="The illusory-conjunction rate of the pooled network. Each training step has new scenes.",
                x_title=words,
                y_title="illusory-conjunction rate",
                **SCORE,
            )
