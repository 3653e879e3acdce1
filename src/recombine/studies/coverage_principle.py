"""Does what a network infers end where the data stops covering it, whatever its size?"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float
from pydantic import Field, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, control, precondition, statistic
from recombine.design.replicates import growth_exponents, needed_sizes
from recombine.families import Hops, LookupHops
from recombine.models import Decoder, Model
from recombine.probes import Cutoffs, Scores
from recombine.studies.shapes import ascending, sequence_run
from recombine.supports import Hops as HopFacts
from recombine.supports.hops import INNER, Chain
from recombine.training.config import RunConfig

Share = Annotated[float, Field(gt=0, lt=1)]
ARMS = {
    "two_hop": "two hops",
    "three_hop": "three hops",
    "non_tree": "two hops, not a tree",
    "thought": "two hops, with the step in between",
    "large": "two hops, 20 times the weights",
    "lookup": "control: every answer drawn alone",
}
"""The arms in words."""
COLUMNS = "run", "arm", "tokens", "number", "replicate", "cutoff", "right", "known", "guess"
KNOWN = "held-out inputs all of whose facts occur in training"
NEEDS = ("fits-two-hop", "composes")
PAPER_RECIPE = {"kind": "paper", "tasks": 1024, "samples": 1, "steps": 50_000, "weight_decay": 0.1}
LARGEST = 12
"""The figure shows cutoffs from here on together: few inputs have them."""


class CoveragePrinciple(Study):
    """Does what a network infers end where the data stops covering it, whatever its size?

    Decoders answer chains of random functions and never see a single fact alone. The training examples alone determine which
    other inputs are covered, and by how much evidence (the cutoff). Does accuracy follow it?
    """

    kind: Literal["coverage-principle"] = "coverage-principle"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run("hops", tasks=16, steps=8, eval_every=8, validation_tasks=4),
            "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
            "large": {"kind": "decoder", "width": 32, "layers": 2, "heads": 2},
            "tokens": (5, 6, 7),
            "shares": (0.1, 0.2),
            "few": 0.1,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "hops", "tokens": 20},
                "recipe": PAPER_RECIPE,
                "eval_every": 1000,
                "validation_tasks": 256,
            },
            "model": {"kind": "decoder", "width": 768, "layers": 8, "heads": 12},
            "large": {"kind": "decoder", "width": 2048, "layers": 24, "heads": 16},
            "tokens": (20, 28, 40),
            "shares": (0.05, 0.1, 0.15, 0.2, 0.3, 0.35),
            "few": 0.15,
            "held_out": 0.04,
        },
    }
    shown = "accuracy_in", "answered", "covered"

    base: RunConfig = RunConfig.model_validate(
        sequence_run("hops", tasks=128, steps=1200, eval_every=300, validation_tasks=64)
    ).replace(learning_rate=0.05, weight_decay=0.7)
    """What all runs share; the arms set chain, tokens and number of examples."""
    model: field("models", Model) = Decoder(width=32, layers=3, heads=2)  # type: ignore[valid-type]
    """The network."""
    large: field("models", Model) = Decoder(width=144, layers=3, heads=2)  # type: ignore[valid-type]
    """The network with twenty times the weights."""
    tokens: tuple[PositiveInt, ...] = (9, 12, 16)
    """Numbers of tokens, fewest first. The arms are compared at the most."""
    shares: tuple[Share, ...] = (0.12, 0.19, 0.29)
    """Training examples as shares of all inputs of two hops, fewest first. Arms are compared at the largest or at `few`."""
    few: Share = 0.19
    """The share, one of `shares`, that counts as few examples."""
    threshold: float = Field(default=0.5, gt=0, lt=1)
    """The accuracy, on held-out inputs all of whose facts occur in training, whose number of examples is sought."""
    held_out: Share = 0.2
    """Held-out inputs as a share of all inputs of two hops: half with training facts only, half with another fact."""
    replicates: PositiveInt = 8
    """Independent replicates: functions, seen facts, examples, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "tokens", least=3)
        ascending(self, "shares")
        if self.few not in self.shares:
            raise ValueError(f"few={self.few} must be one of shares={self.shares}")
        family, support = self.base.family, self.base.support
        if type(family) is not Hops or not isinstance(support, HopFacts):
            raise ValueError(f"base is {family.kind} on {support.kind}: it must be hops on hops")

    @property
    def most(self) -> int:
        """The number of tokens at which the arms are compared."""
        return self.tokens[-1]

    def number(self, share: float, tokens: int | None = None) -> int:
        """The number of training examples, from a share of all inputs of two hops."""
        return round(share * (tokens or self.most) ** 3)

    def arms(self) -> dict[str, Arm]:
        def arm(*shares: float, tokens: Any = (self.most,), chain: Chain = "two-hop", **changes: Any) -> Arm:
            settings: dict[str, Any] = {"model": self.model, "family.chain": chain, "support.chain": chain}
            slots = [f"x{slot + 1}" for slot in range(INNER[chain] + 2)]
            return Arm(
                self.base,
                cases=[{"tokens": n, "number": self.number(share, n)} for n in tokens for share in shares],
                space=lambda cell: {"kind": "product", "factors": dict.fromkeys(slots, cell.tokens)},
                reserve=lambda cell: self.number(self.held_out, cell.tokens),
                **settings | changes,
            )

        many = self.shares[-1]
        return {
            "two_hop": arm(*self.shares, tokens=self.tokens),
            "three_hop": arm(many, chain="three-hop"),
            "non_tree": arm(many, chain="non-tree"),
            "thought": arm(self.few, chain_of_thought=True),
            "large": arm(self.few, model=self.large),
            "lookup": arm(self.few, family=LookupHops()),
        }

    def measurements(self) -> list[Any]:
        return [Scores(combinations=512, draws=1, samples=1, map=False), Cutoffs()]

    def claims(self, two_hop: Arm, lookup: Arm, **arms: Arm) -> Claims:
        few, many, chance = self.number(self.few), self.number(self.shares[-1]), 2 / self.most

        def right(arm: Arm, number: int, column: str = "right", **chosen: Any) -> Column:
            return statistic(self.mean, arm, column=column, tokens=self.most, number=number, **chosen)

        def gain(arm: str, number: int) -> Column:
            return right(arms[arm], number, known=True) - right(two_hop, number, known=True)

        for name, arm in {"two_hop": two_hop, **arms, "lookup": lookup}.items():
            text = f"The network answers the inputs that it is trained on ({ARMS[name]}; accuracy, lowest over sizes)."
            fits = arm["accuracy_in"].lowest().above(0.95)
            yield precondition(f"fits-{name.replace('_', '-')}", fits, text)
        high, low, uncovered = (right(two_hop, many, level=level) for level in ("high", "low", "uncovered"))
        text = "With the most examples, held-out inputs that the data covers well (cutoff above the median) are answered right."
        yield precondition("composes", high.above(0.5), text)
        text = (
            "Held-out inputs that the data covers well are answered right far more often than those that it does not cover "
            "(accuracy; the training examples alone determine what is covered)."
        )
        yield claim("coverage-tells", (high - uncovered).greater(0.2), text, primary=True, needs=NEEDS)
        text = "Of covered inputs, those with a cutoff above the median are answered right more often than the others."
        yield claim("more-evidence-is-better", (high - low).greater(0.05), text, needs=NEEDS)
        text = "Covered inputs with a cutoff up to the median are right more often than uncovered ones."
        yield claim("some-evidence-is-better", (low - uncovered).greater(0.05), text, needs=NEEDS)
        text = (
            "More evidence is better also among inputs all of whose facts occur in training: the cutoff does not merely stand "
            "for facts that were never seen (cutoff above the median minus the others)."
        )
        among = [right(two_hop, many, level=level, known=True) for level in ("high", "low")]
        yield claim("evidence-not-facts", (among[0] - among[1]).greater(0.05), text, needs=NEEDS)
        text = "Uncovered inputs are right at most twice as often as by chance (accuracy minus 2 / n)."
        yield claim("uncovered-stay-at-chance", (uncovered - chance).below(0.0), text, needs=NEEDS)
        text = "Uncovered inputs are right no more often than the most frequent training answer to their last token (network minus that)."
        guessed = right(two_hop, many, "guess", level="uncovered")
        yield claim("uncovered-are-guessed", (uncovered - guessed).below(0.05), text, needs=NEEDS)
        text = f"With as many examples, three hops are answered right less often than two ({KNOWN})."
        three_hop, non_tree = (-gain(name, many) for name in ("three_hop", "non_tree"))
        yield claim("three-hops-need-more", three_hop.greater(0.1), text, needs=(*NEEDS, "fits-three-hop"))
        text = f"With as many examples, chains that need an input twice are answered right less often than trees ({KNOWN})."
        yield claim("non-tree-fails", non_tree.greater(0.1), text, needs=(*NEEDS, "fits-non-tree"))
        text = f"With few examples, a network that writes the step in between is right more often than one that does not ({KNOWN})."
        yield claim("thought-helps", gain("thought", few).greater(0.1), text, needs=(*NEEDS, "fits-thought"))
        text = f"Twenty times the weights do not make up for examples: with few, accuracy rises by less than this ({KNOWN})."
        yield claim("size-does-not-help", gain("large", few).below(0.1), text, needs=(*NEEDS, "fits-large"))
        text = (
            "The examples needed grow faster with the number of tokens n than the facts, which grow as n^2 (exponent)."
        )
        yield claim("needs-more-than-facts", statistic(self.growth, two_hop).above(2.0), text, needs=NEEDS)
        text = "Where each answer is drawn alone, held-out inputs are right at most twice as often as by chance (accuracy minus 2 / n)."
        yield control("control-fails", (right(lookup, few) - chance).below(0.0), text, needs="fits-lookup")

    def answers(self, tables: Tables, **chosen: Any) -> pd.DataFrame:
        """Held-out inputs with the chosen values, each with its cutoff and its level: uncovered, low or high.

        A covered input is high if its cutoff is above the median of its run's covered ones: no answer enters that.
        """
        frame = tables["cutoffs"].reindex(columns=list(COLUMNS))
        middle = frame["cutoff"].where(frame["cutoff"] > 0).groupby(frame["run"]).transform("median")
        level = np.where(frame["cutoff"] > middle, "high", "low")
        level = np.where(frame["cutoff"] > 0, level, "uncovered")
        frame = frame.assign(level=level, known=frame["known"].astype(bool))
        for name, value in chosen.items():
            frame = frame[frame[name] == value]
        return frame

    def mean(self, tables: Tables, column: str = "right", **chosen: Any) -> pd.Series:
        """The mean of a column in each replicate, over held-out inputs with the chosen values."""
        return self.answers(tables, **chosen).groupby("replicate")[column].mean()

    def needed(self, tables: Tables) -> pd.DataFrame:
        """For each number of tokens and replicate: the examples that the threshold needs, or the end of the curve."""
        by = ["replicate", "tokens"]
        scores = self.answers(tables, known=True).groupby([*by, "number"], as_index=False)[["right"]].mean()
        curve = {"size": "number", "score": "right", "points": len(self.shares)}
        return needed_sizes(scores, by, threshold=self.threshold, **curve)

    def growth(self, tables: Tables) -> Float[np.ndarray, " replicate"]:
        """The exponent over all replicates, as one pseudo-value per replicate."""
        return growth_exponents(self.needed(tables), "tokens", self.seeds, rows=len(self.tokens))

    def figures(self, two_hop: Arm, **arms: Arm) -> Figures:
        from recombine.figures.axes import Reference
        from recombine.figures.study import dots, growth, lines

        few, many = self.number(self.few), self.number(self.shares[-1])
        accuracy: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
        curve = accuracy | {"y": "right", "y_title": "accuracy, held out", "ordered": True}
        chance = [Reference(1 / self.most, "chance")]
        answers = self.answers(two_hop.tables, tokens=self.most)
        answers = answers.assign(cutoff=answers["cutoff"].clip(upper=LARGEST))
        means = answers.groupby(["replicate", "number", "cutoff"], as_index=False)[["right"]].mean()
        often = means.groupby(["number", "cutoff"])["replicate"].transform("nunique") * 2 > self.replicates
        yield lines(
            means[often],
            x="cutoff",
            series="number",
            labels={number: f"{number:,} examples" for number in map(self.number, self.shares)},
            title="Is the network right where the data covers the input?",
            caption="The accuracy on held-out inputs of two hops, by the evidence that the training examples alone have for them. "
            f"Cutoffs of {LARGEST} and more are shown together; cutoffs in half of the replicates or fewer are left out.",
            log=False,
            references=chance,
            x_title="cutoff, known before training (0: uncovered)",
            **curve,
        )
        keys, every = ["arm", "number", "replicate"], (two_hop, *arms.values())
        frame = pd.concat([arm.frame for arm in every]).reindex(columns=[*keys, "tokens", "accuracy_in"])
        answers = pd.concat([self.answers(arm.tables, tokens=self.most) for arm in every])
        parts = {"known": answers[answers["known"]], "uncovered": answers[answers["level"] == "uncovered"]}
        frame = frame[(frame["tokens"] == self.most) & frame["number"].isin([few, many])].set_index(keys)
        frame = frame.join([part.groupby(keys)["right"].mean().rename(name) for name, part in parts.items()])
        frame, sizes = frame.reset_index(), sorted({few, many})
        yield dots(
            frame.assign(cell=frame["arm"].astype(str) + " " + frame["number"].astype(str)),
            category="cell",
            measures={"accuracy_in": "trained", "known": "held out, facts seen", "uncovered": "held out, uncovered"},
            labels={f"{arm} {size}": f"{words} ({size:,})" for arm, words in ARMS.items() for size in sizes},
            name="by_arm",
            title="What does the network infer?",
            caption=f"Accuracy by chain, network and number of examples (in brackets), with {self.most} tokens. Facts are the arguments "
            "of each function on an input's way; none was ever shown alone.",
            references=chance,
            x_title="accuracy",
            **accuracy,
        )
        answers = self.answers(two_hop.tables, known=True)
        yield lines(
            answers.groupby(["replicate", "tokens", "number"], as_index=False)[["right"]].mean(),
            x="number",
            series="tokens",
            labels={tokens: f"{tokens} tokens" for tokens in self.tokens},
            title="How many examples does it take?",
            caption=f"The accuracy on {KNOWN}, of two hops. The line marks the accuracy whose number of examples is sought.",
            references=[Reference(self.threshold, "sought")],
            x_title="training examples",
            **curve,
        )
        yield growth(
            self.needed(two_hop.tables),
            x="tokens",
            label=ARMS["two_hop"],
            title="How does the need for data grow?",
            caption=f"The number of training examples for {self.threshold:.0%} accuracy on {KNOWN}.",
            x_title="tokens n",
            y_title="examples needed",
        )
