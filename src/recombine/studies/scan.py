"""Does more scale close the gaps of SCAN, and does the certificate of a split tell which gap stays open?"""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Figures, Study, StudyClaim, Tables, claim, control, precondition
from recombine.design.column import Column, statistic
from recombine.families import LookupScan
from recombine.models import EncoderDecoder, Model
from recombine.probes import ScanCertificateMeasurement, ScanCommands, Scores
from recombine.spaces.scan import language
from recombine.studies.shapes import ascending, if_run, left_out, sequence_run
from recombine.supports import CompoundDivergence, Random, ScanSplit, SupportKind
from recombine.supports.regions import STRATA
from recombine.training.config import RunConfig

LIMITS: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
OBJECTIVE = {"kind": "next-token", "length_groups": 8}
RANDOM_POSITIONS = "length-random-places"
SPLITS = {
    "simple": "held out at random",
    "around-right": "'around right' never seen",
    "divergent": "compounds as different as possible",
    "alike": "compounds as similar as possible",
    "add-jump": "'jump' seen only alone",
    "length": "longer answers",
    RANDOM_POSITIONS: "longer answers, random positions",
    "few": "few commands seen",
}
"""What is held out, in words."""
BASELINE = dict.fromkeys(SPLITS, "simple") | {"divergent": "alike"}
"""What a split is compared with. `divergent` leaves half of the commands out: a random split would have more data."""
NEEDS: dict[str, Any] = {s: ("in-distribution", f"fits-{b}", f"fits-{s}") for s, b in BASELINE.items()}
NEEDS["add-jump"] += ("jump-is-known",)
SCALED = ("add-jump", "length")
"""The splits that are run at every size of network and share of data."""
SCALES = {
    "width": ("Wider networks", "widest minus narrowest", "width"),
    "layers": ("Deeper networks", "deepest minus shallowest", "layers"),
    "share": ("More training commands", "all minus fewest", "share of the training commands"),
}
"""What grows: the subject of a claim, the difference, the name of the axis."""
LENGTHS = np.array([0, 4, 8, 12, 16, 22, 28, 36, 48])
"""Numbers of actions at which answers are grouped."""


class Scan(Study):
    """Does more scale close the gaps of SCAN, and does the certificate of a split tell which gap stays open?

    Transformers read a command and write its actions, on the published splits and on `divergent`, a split of this study.
    Whether failure follows divergence over all splits is shown and not claimed: the published splits are few and the same in
    every replicate. `divergent-fails` asks it within one design.
    """

    kind: Literal["scan"] = "scan"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run("scan", tasks=8, steps=6, eval_every=6, validation_tasks=4),
            "model": {"kind": "encoder-decoder", "heads": 2},
            "divergent": {"kind": "compound-divergence", "train": 600, "test": 200},
            **{"widths": (8, 16), "depths": (1,), "shares": (0.1, 1.0), "combinations": 16, "replicates": 2},
            **{"splits": ("simple", "add-jump"), "scales": ("width", "share")},
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": sequence_run(
                "scan", tasks=256, steps=10_000, eval_every=500, validation_tasks=128, objective=OBJECTIVE
            ),
            **{"widths": (32, 128, 512), "depths": (1, 2, 6), "shares": (0.04, 0.2, 1.0)},
            "combinations": 4096,
            "replicates": 12,
        },
    }
    shown = "accuracy_in", "accuracy_held_out", "step_accuracy_held_out", "compound_divergence", "pairs_unmet"

    base: RunConfig = RunConfig.model_validate(
        sequence_run("scan", tasks=64, steps=400, eval_every=400, validation_tasks=32, objective=OBJECTIVE)
    )
    """What all runs share; the arms set support and network."""
    model: field("models", Model) = EncoderDecoder()  # type: ignore[valid-type]
    """The network; the arms set its width and layers."""
    widths: tuple[PositiveInt, ...] = (16, 64)
    """Widths of the residual stream, narrowest first. All splits have the widest."""
    depths: tuple[PositiveInt, ...] = (1, 2)
    """Numbers of layers, fewest first. All splits have the most."""
    shares: tuple[float, ...] = (0.05, 1.0)
    """Shares of the training commands, smallest first. All splits have the largest."""
    splits: tuple[str, ...] = tuple(SPLITS)
    """What is held out. The claims of a split that is left out are not asked."""
    scales: tuple[Literal["width", "layers", "share"], ...] = ("width", "layers", "share")
    """What grows. The claims of a scale that is left out are not asked."""
    divergent: CompoundDivergence = CompoundDivergence()
    """The same words equally often, in compounds that differ as much as possible; in `alike`, as little as possible."""
    few: field("supports", SupportKind) = Random(number=256, reserve=256)  # type: ignore[valid-type]
    """What the control is trained on: few enough commands to memorise. The true language is trained on as many, too."""
    positions: PositiveInt = 2 * (language.MOST_WORDS + language.MOST_ACTIONS + 1)
    """With random positions, the number of positions to draw from."""
    steps_factor: PositiveInt = 2
    """With random positions, the factor by which training has more steps: there is more to learn."""
    combinations: PositiveInt = 256
    """Commands of each region that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: initialisation, order of the data, and the splits that are drawn."""

    def check(self) -> None:
        ascending(self, "widths", "shares")
        ascending(self, "depths", least=2 if "layers" in self.scales else 1)
        if unknown := sorted(set(self.splits) - set(SPLITS)):
            raise ValueError(f"splits must be some of {', '.join(map(repr, SPLITS))}, got {unknown}")
        if self.shares[-1] != 1:
            raise ValueError(f"the largest of shares must be 1, as `simple` needs all, got {self.shares}")

    def changes(self, split: str) -> dict[str, Any]:
        """What a split sets in a run."""
        supports = {"few": self.few, "divergent": self.divergent, "alike": self.divergent.replace(target=0.0)}
        if split in supports:
            return {"support": supports[split]}
        if split != RANDOM_POSITIONS:
            return {"support": ScanSplit.model_validate({"split": split})}
        recipe = self.base.recipe
        return {
            "support": ScanSplit(split="length"),
            "objective": self.base.objective.replace(random_positions=self.positions),
            "recipe": recipe.replace(steps=self.steps_factor * recipe.steps),
        }

    def arms(self) -> dict[str, Arm | None]:
        def some(*names: str) -> dict[str, dict[str, Any]]:
            return {split: self.changes(split) for split in names if split in self.splits}

        base = self.base.replace(model=self.model)
        main = Arm(base, split=some(*SPLITS), width=self.widths[-1], layers=self.depths[-1])
        levels = {"width": self.widths, "layers": self.depths, "share": self.shares}
        simple, few, scaled = some("simple"), some("few"), some(*SCALED)
        return {
            "main": main,
            **{name: main.replace(split=scaled, **{name: levels[name]}) for name in self.scales if scaled},
            "small": main.replace(split=simple, width=self.widths[0], share=self.shares[0]) if simple else None,
            "lookup": main.replace(split=few, family=LookupScan()) if few else None,
        }

    def measurements(self) -> list[Any]:
        scores = Scores(combinations=self.combinations, draws=1, samples=1)
        return [scores, ScanCertificateMeasurement(), ScanCommands()]

    def claims(self, main: Arm, small: Arm | None = None, lookup: Arm | None = None, **scaled: Arm) -> Claims:
        def score(split: str, column: str = "accuracy_held_out", arm: Arm | None = main) -> Column:
            return if_run(self, arm, column, split=split)

        def fails(split: str, margin: float, text: str, primary: bool = False) -> StudyClaim:
            lost = score(BASELINE[split]) - score(split)
            return claim(f"{split}-fails", lost.greater(margin), text, primary=primary, needs=NEEDS[split])

        for split, words in SPLITS.items():
            text = f"The network answers the commands that it is trained on ({words}; exact match)."
            yield precondition(f"fits-{split}", score(split, "accuracy_in").above(0.9), text)
        text = "The network answers commands that were held out at random (exact match)."
        yield precondition("in-distribution", score("simple").above(0.9), text)
        text = "Where 'jump' is seen only alone, the command 'jump' is answered right (share of replicates)."
        yield precondition("jump-is-known", score("add-jump", "right_jump").above(0.9), text)
        text = (
            "A new verb is not used in known phrases: fewer commands with 'jump' are answered right than commands held out at "
            "random (exact match, at the largest size)."
        )
        yield fails("add-jump", 0.5, text, primary=True)
        for split, margin in (("length", 0.5), ("around-right", 0.2)):
            text = "Fewer commands are answered right than where they are held out at random"
            yield fails(split, margin, f"{text} ({SPLITS[split]}; exact match).")
        yield claim(
            "length-fails-at-trained-places",
            (score(RANDOM_POSITIONS, "accuracy_in") - score(RANDOM_POSITIONS)).greater(0.5),
            "Untrained positions are not the reason: longer answers fail as well where tokens have random positions in training "
            "(exact match, trained commands minus longer ones, of the same network).",
            needs=f"fits-{RANDOM_POSITIONS}",
        )
        text = (
            "Fewer commands are answered right where the compounds of training and test differ as much as possible than where they "
            "differ as little as possible (exact match, as many commands in both)."
        )
        yield fails("divergent", 0.05, text)
        yield control(
            "more-helps-where-it-can",
            (score("simple") - score("simple", arm=small)).greater(0.1),
            "A wider network with more training commands answers more of the commands held out at random (exact match, widest with "
            "all minus narrowest with fewest).",
            needs="in-distribution",
        )
        for (name, (subject, difference, _)), split in itertools.product(SCALES.items(), SCALED):
            run = name in scaled and split in self.splits
            rise = scaled[name]["accuracy_held_out"].at(split=split).rise(name) if run else left_out(self)
            yield claim(
                f"{name}-does-not-close-{split}",
                rise.below(0.1),
                f"{subject} do not close the gap of {split}: exact match rises by less than this ({difference}).",
                needs=(*NEEDS[split], *(() if name == "layers" else ("more-helps-where-it-can",))),
            )
        yield claim(
            "unmet-pairs-tell",
            statistic(unmet_pairs, main).greater(0.05),
            "Where compounds differ, held-out commands in which two words never met in training are answered right less often than "
            "others of the same test at equal length (exact match, within the number of actions).",
            needs=NEEDS["divergent"],
        )
        text = (
            "The network can learn the control, where commands have others' actions (exact match on trained commands)."
        )
        yield precondition("control-is-learned", score("few", "accuracy_in", lookup).above(0.9), text)
        text = "Where commands have others' actions, held-out ones are not answered right (exact match)."
        yield control("control-fails", score("few", arm=lookup).below(0.05), text, needs="control-is-learned")
        yield claim(
            "few-commands-tell-more",
            (score("few") - score("few", arm=lookup)).greater(0.05),
            "From as few commands as the control, the true language tells more about held-out ones (exact match, SCAN minus control).",
            needs=("control-is-learned", "fits-few"),
        )

    def figures(self, main: Arm, **arms: Arm) -> Figures:
        from recombine.figures.study import dots, lines, scatter

        score: dict[str, Any] = {"y": "accuracy_held_out", "y_title": "exact match, held out"}
        yield dots(
            main,
            category="split",
            measures={"accuracy_in": "trained commands", "accuracy_held_out": "held-out commands"},
            labels=SPLITS,
            title="Which commands does the network fail on?",
            caption="The share of commands whose answer is entirely right, trained and held out, by what was held out.",
            x_title="exact match",
            **LIMITS,
        )
        answers = commands(main.tables).groupby(["replicate", "split", "length"])["accuracy_held_out"].mean()
        sources: dict[str, Any] = {name: (arms[name], words) for name, (_, _, words) in SCALES.items() if name in arms}
        sources["length"] = answers.reset_index(), "number of actions in the right answer"
        ends = " Numbers are in groups. Where longer answers were held out, training ends at 22 actions."
        for name, (source, words) in sources.items():
            caption = f"The share of held-out commands whose answer is entirely right, by {words}."
            yield lines(
                source,
                **{"x": name, "x_title": words, "log": name != "length", "series": "split", "labels": SPLITS},
                title="Do long answers fail?" if name == "length" else f"Does more help? By {words}",
                caption=caption + (ends if name == "length" else " Everything else is at its largest."),
                **score,
                **LIMITS,
            )
        yield scatter(
            main,
            x="compound_divergence",
            group="split",
            labels=SPLITS,
            name="by_certificate",
            title="Is the failure known beforehand?",
            caption="Held-out accuracy against the compound divergence of the split, which is known before training: how differently "
            "training and test combine the same words (0: alike, 1: nothing in common).",
            x_title="compound divergence, known before training",
            **score,
        )


def commands(tables: Tables) -> pd.DataFrame:
    """Held-out commands, with the number of actions in the right answer, alone and in groups (`length`)."""
    columns = ["split", "region", "stratum", "replicate", "combination", "whole"]
    frame = tables.combinations.reindex(columns=columns)
    frame = frame[frame["region"] == "held_out"]
    lengths = {name: len(language.actions(language.parse(name))) for name in frame["combination"].unique()}
    actions, middles = frame["combination"].map(lengths).astype(float), (LENGTHS[:-1] + 1 + LENGTHS[1:]) / 2
    groups = np.clip(np.searchsorted(LENGTHS, actions), 1, len(middles)) - 1
    return frame.assign(actions=actions, length=middles[groups], accuracy_held_out=frame["whole"].astype(float))


def unmet_pairs(tables: Tables) -> pd.Series:
    """Accuracy on commands all of whose words met in training minus that on the others, within numbers of actions.

    Commands with a new pair are longer, and would fail for their length. Least squares with an intercept per number of actions.
    """
    frame = commands(tables)
    frame = frame[(frame["split"] == "divergent") & frame["stratum"].isin(STRATA[:2])]
    frame = frame.assign(met=(frame["stratum"] == STRATA[0]).astype(float))
    met = frame["met"] - frame.groupby(["replicate", "actions"])["met"].transform("mean")
    sums = frame.assign(cross=met * frame["accuracy_held_out"], square=met**2).groupby("replicate")
    return sums["cross"].sum() / sums["square"].sum()
