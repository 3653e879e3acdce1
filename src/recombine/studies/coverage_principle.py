"""Does what a network infers end where the data stops covering it, whatever its size?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from pydantic import Field, PositiveInt, model_validator

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.hops import Hops
from recombine.families.lookup_hops import LookupHops
from recombine.models.base import Model
from recombine.models.decoder import Decoder
from recombine.probes.base import Measurement
from recombine.probes.cutoffs import Cutoffs
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.spaces.product import ProductSpace
from recombine.stats.threshold import Censored, CensoredSlope, censored_slope, reached
from recombine.studies.base import Effect, Study, Tables, ascend
from recombine.studies.coverage_principle_claims import (
    ARMS,
    CLAIMS,
    LARGE,
    LOOKUP,
    OTHER,
    THOUGHT,
    THREE,
    TWO,
)
from recombine.studies.reduce import at, jackknife
from recombine.supports.hops import INNER, Chain
from recombine.supports.hops import Hops as HopFacts
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

Share = Annotated[float, Field(gt=0, lt=1)]

COLUMNS = ("arm", "tokens", "number", "replicate", "cutoff", "right", "known", "guess")


class CoveragePrinciple(Study):
    """Decoders that answer chains of random functions, of whose single facts none is ever shown.

    The training examples alone say which other inputs are covered, by how much evidence. Does accuracy follow it?
    """

    kind: Literal["coverage-principle"] = "coverage-principle"
    question: ClassVar[str] = (
        "Does what a network infers end where the data stops covering it, whatever its size?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": "hops",
                "recipe": {"kind": "fast", "tasks": 16, "samples": 1, "steps": 8},
                "every": 8,
                "validation_tasks": 4,
            },
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
                "recipe": {"kind": "paper", "tasks": 1024, "samples": 1, "steps": 50_000, "decay": 0.1},
                "every": 1000,
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
    cells: ClassVar[tuple[str, ...]] = ("arm", "tokens", "number")
    shown: ClassVar[tuple[str, ...]] = ("accuracy_in", "answered", "covered")

    base: RunConfig = RunConfig(
        family=Hops(),
        recipe=Fast(tasks=128, samples=1, steps=1200, rate=0.05, decay=0.7),
        every=300,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; chain, tokens and number of examples are set by the sweep."""
    model: field("models", Model) = Decoder(width=32, layers=3, heads=2)  # type: ignore[valid-type]
    """The network."""
    large: field("models", Model) = Decoder(width=144, layers=3, heads=2)  # type: ignore[valid-type]
    """The network with twenty times the weights."""
    tokens: tuple[PositiveInt, ...] = (9, 12, 16)
    """How many tokens there are, fewest first. The arms are compared at the most."""
    shares: tuple[Share, ...] = (0.12, 0.19, 0.29)
    """Training examples as shares of all inputs of two hops, fewest first. The arms are compared at the largest, and those
    that few examples are to tell apart at `few`."""
    few: Share = 0.19
    """The share, one of `shares`, that counts as few examples."""
    threshold: float = Field(default=0.5, gt=0, lt=1)
    """The accuracy, on held-out inputs all of whose facts occur in training, whose number of examples is sought."""
    held_out: Share = 0.2
    """Inputs that are held out, as a share of all inputs of two hops: half of them with facts that are for training, half
    with one that is not."""
    replicates: PositiveInt = 8
    """Independent replicates: functions, seen facts, examples, initialisation and order of the data."""

    @model_validator(mode="after")
    def _levels(self) -> Self:
        ascend(self, "tokens", least=3)
        ascend(self, "shares")
        if self.few not in self.shares:
            raise ValueError(f"few={self.few} must be one of shares={self.shares}")
        if type(self.base.family) is not Hops or not isinstance(self.base.support, HopFacts):
            raise ValueError(
                f"base is {self.base.family.kind} on {self.base.support.kind}: it must be hops on hops"
            )
        return self

    @property
    def most(self) -> int:
        """The number of tokens at which the arms are compared."""
        return self.tokens[-1]

    def number(self, share: float, tokens: int | None = None) -> int:
        """The training examples that a share of all inputs of two hops makes."""
        return round(share * (tokens or self.most) ** 3)

    @property
    def cells_run(self) -> list[tuple[str, int, int]]:
        """Arm, tokens and number of examples of each cell."""
        few, many = self.number(self.few), self.number(self.shares[-1])
        found = [(TWO, tokens, self.number(share, tokens)) for tokens in self.tokens for share in self.shares]
        found += [(arm, self.most, few) for arm in (THOUGHT, LARGE, LOOKUP)]
        found += [(arm, self.most, many) for arm in (THREE, OTHER)]
        return found

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        found = []
        for arm, tokens, number in self.cells_run:
            chain: Chain = arm if arm in (THREE, OTHER) else TWO  # type: ignore[assignment]
            kind = LookupHops if arm == LOOKUP else Hops
            places = INNER[chain] + 2
            changes = {
                "family": kind(tokens=tokens, chain=chain, thought=arm == THOUGHT),
                "space": ProductSpace.model_validate(
                    {"factors": {f"x{place + 1}": tokens for place in range(places)}}
                ),
                "support": self.base.support.model_copy(
                    update={
                        "chain": chain,
                        "number": number,
                        "reserve": self.number(self.held_out, tokens),
                    }
                ),
                "model": self.large if arm == LARGE else self.model,
            }
            labels = {"arm": arm, "tokens": tokens, "number": number}
            found += [
                (self.run(self.base, seed, **changes), labels | {"replicate": seed}) for seed in self.seeds
            ]
        return found

    def measurements(self) -> list[Measurement]:
        return [Scores(combinations=512, draws=1, samples=1, map=False), Cutoffs()]

    def answers(self, tables: Tables) -> pd.DataFrame:
        """Held-out inputs of all runs, each with its cutoff and its level: uncovered, low or high.

        A covered input is high if its cutoff is above the median of its run's covered ones: no answer enters that.
        """
        frame = tables.others["cutoffs"].reindex(columns=list(COLUMNS))
        covered = frame[frame["cutoff"] > 0]
        middle = covered.groupby(["arm", "tokens", "number", "replicate"])["cutoff"].median().rename("middle")
        joined = frame.merge(middle.reset_index(), on=["arm", "tokens", "number", "replicate"], how="left")
        words = np.where(joined["cutoff"] > joined["middle"], "high", "low")
        return joined.assign(level=np.where(joined["cutoff"] > 0, words, "uncovered"))

    def needed(self, tables: Tables) -> pd.DataFrame:
        """For two hops, each number of tokens and replicate: the examples that the threshold needs, or beyond which they lie."""
        import pandas as pd

        frame = self.answers(tables)
        frame = frame[(frame["arm"] == TWO) & frame["known"].astype(bool)]
        scores = frame.groupby(["replicate", "tokens", "number"])["right"].mean()
        rows = []
        for replicate in self.seeds:
            for tokens in self.tokens:
                numbers = [self.number(share, tokens) for share in self.shares]
                curve = np.array([scores.get((replicate, tokens, number), math.nan) for number in numbers])
                if np.isfinite(curve).all():
                    found = reached(numbers, curve, self.threshold)
                    rows.append((replicate, tokens, found.size, found.censored))
        return pd.DataFrame(rows, columns=["replicate", "tokens", "needed", "censored"])

    def effects(self, tables: Tables) -> list[Effect]:
        answers = self.answers(tables)
        few, many = self.number(self.few), self.number(self.shares[-1])

        def mean(
            arm: str, number: int, column: str = "right", level: str | None = None, known: bool = False
        ) -> Float[np.ndarray, " replicate"]:
            own = answers[
                (answers["arm"] == arm) & (answers["tokens"] == self.most) & (answers["number"] == number)
            ]
            own = own if level is None else own[own["level"] == level]
            own = own[own["known"].astype(bool)] if known else own
            return own.groupby("replicate")[column].mean().reindex(list(self.seeds)).to_numpy(dtype=float)

        fits = {
            arm: np.min(
                [
                    at(tables.runs, "accuracy_in", self.seeds, arm=arm, tokens=tokens, number=number)
                    for one, tokens, number in self.cells_run
                    if one == arm
                ],
                axis=0,
            )
            for arm in ARMS
        }
        high, low, uncovered = (mean(TWO, many, level=level) for level in ("high", "low", "uncovered"))
        chance = 2 / self.most
        values = {
            **{f"fits-{arm}": values for arm, values in fits.items()},
            "composes": high,
            "coverage-tells": high - uncovered,
            "more-evidence-is-better": high - low,
            "some-evidence-is-better": low - uncovered,
            "evidence-not-facts": mean(TWO, many, level="high", known=True)
            - mean(TWO, many, level="low", known=True),
            "uncovered-stay-at-chance": uncovered - chance,
            "uncovered-are-guessed": uncovered - mean(TWO, many, "guess", level="uncovered"),
            "three-hops-need-more": mean(TWO, many, known=True) - mean(THREE, many, known=True),
            "non-tree-fails": mean(TWO, many, known=True) - mean(OTHER, many, known=True),
            "thought-helps": mean(THOUGHT, few, known=True) - mean(TWO, few, known=True),
            "size-does-not-help": mean(LARGE, few, known=True) - mean(TWO, few, known=True),
            "needs-more-than-facts": jackknife(
                self.needed(tables), exponent, self.seeds, rows=len(self.tokens)
            ),
            "control-fails": mean(LOOKUP, few) - chance,
        }
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.coverage_principle_figures import figures

        return figures(self, tables)


def growth(frame: pd.DataFrame) -> CensoredSlope | None:
    """The line of the logarithm of the examples needed on that of the tokens; none where too few were reached."""
    censored: list[Censored] = frame["censored"].tolist()
    logs = [math.log(value) for value in frame["tokens"]], [math.log(value) for value in frame["needed"]]
    try:
        return censored_slope(*logs, censored)
    except BadInput:
        return None


def exponent(frame: pd.DataFrame) -> float:
    """The slope of that line."""
    line = growth(frame)
    return math.nan if line is None else line.slope.estimate
