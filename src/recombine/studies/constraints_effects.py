"""How the study `constraints` gets its numbers: one for each claim and replicate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.studies.base import Tables
from recombine.studies.constraints_claims import (
    DECODER,
    ENCODER,
    LARGE,
    PACKING,
    PLAIN,
    REWARD,
    SMALL,
    STEPS,
)
from recombine.studies.reduce import at

if TYPE_CHECKING:
    from recombine.studies.constraints import Constraints

Values = Float[np.ndarray, " replicate"]
"""One number for each replicate."""


class Arms:
    """The numbers of the study's arms: those of the plain decoder of the usual size unless labels say else."""

    def __init__(self, study: Constraints, tables: Tables) -> None:
        self.study, self.tables = study, tables
        self.most: dict[str, Any] = {"width": study.widths[-1]}

    def got(self, name: str, problem: str = SMALL, **labels: Any) -> Values:
        """A number of one arm."""
        wanted = {"model": DECODER, "width": self.study.usual, "arm": PLAIN} | labels
        return at(self.tables.runs, name, self.study.seeds, problem=problem, **wanted)

    def formed(self, problem: str, arm: str = PLAIN) -> Values:
        """The share of answers that are numbers throughout, lowest over the sizes and architectures of an arm."""
        own = [one for one in self.study.grid if (one["problem"], one["arm"]) == (problem, arm)]
        none = np.full(len(self.study.seeds), np.nan)
        return 1 - np.max([self.got("malformed_network", **labels) for labels in own] or [none], axis=0)

    def fit(self, problem: str, **labels: Any) -> Values:
        """The error on trained instances, as a share of that of the mean answer on the same."""
        return self.got("error_in", problem, **labels) / self.got("error_mean_in", problem, **labels)

    def over(self, problem: str, **labels: Any) -> Values:
        """By how much bounds hold more often than what depends on the question."""
        return self.got("bounds_network", problem, **labels) - self.got("hard_network", problem, **labels)

    def beyond(self, other: str, problem: str = SMALL, **labels: Any) -> Values:
        """By how much a network satisfies more than another share, where its answers are numbers throughout."""
        return self.got("total_network_formed", problem, **labels) - self.got(other, problem, **labels)

    def lift(self, arm: str, problem: str = SMALL) -> Values:
        """What an arm adds to the rate of what depends on the question, each over its answers that are numbers throughout."""
        return self.got("hard_network_formed", problem, arm=arm) - self.got("hard_network_formed", problem)

    def spread(self, model: str) -> Values:
        """By how much the share of constraints that hold differs over sizes."""
        totals = [self.got("total_network_formed", model=model, width=one) for one in self.study.widths]
        return np.ptp(totals, axis=0)


def effects(study: Constraints, tables: Tables) -> dict[str, Values]:
    """The effects by the name of their claim."""
    arms = Arms(study, tables)
    return _of_preconditions(arms) | _of_kinds(arms) | _of_help(arms)


def _of_preconditions(arms: Arms) -> dict[str, Values]:
    return {
        "well-formed-9": arms.formed(SMALL),
        "well-formed-14": arms.formed(LARGE),
        "well-formed-knapsack": arms.formed(PACKING),
        "well-formed-9-steps": arms.formed(SMALL, STEPS),
        "well-formed-9-reward": arms.formed(SMALL, REWARD),
        "well-formed-knapsack-reward": arms.formed(PACKING, REWARD),
        "fits-9": arms.fit(SMALL, **arms.most),
        "fits-9-encoder-decoder": arms.fit(SMALL, model=ENCODER, **arms.most),
        "fits-9-usual": arms.fit(SMALL),
        "fits-9-steps": arms.fit(SMALL, arm=STEPS),
        "fits-9-reward": arms.fit(SMALL, arm=REWARD),
        "fits-14": arms.fit(LARGE),
        "fits-knapsack": arms.fit(PACKING),
        "fits-knapsack-reward": arms.fit(PACKING, arm=REWARD),
    }


def _of_kinds(arms: Arms) -> dict[str, Values]:
    """Which constraints hold, for which networks, and how many."""
    most, widths = arms.most, arms.study.widths
    plain = [{"model": model, "width": width} for model in (DECODER, ENCODER) for width in widths]
    return {
        "bounds-not-balance": np.min([arms.over(SMALL, **labels) for labels in plain], axis=0),
        "bounds-not-balance-14": arms.over(LARGE),
        "bounds-not-weight": arms.over(PACKING),
        "size-changes-little-decoder": arms.spread(DECODER),
        "size-changes-little-encoder-decoder": arms.spread(ENCODER),
        "architecture-changes-little": arms.got("total_network_formed", model=ENCODER, **most)
        - arms.got("total_network_formed", **most),
        "error-falls": arms.got("error_network", width=widths[0]) - arms.got("error_network", **most),
        "balance-stays-low": arms.got("hard_network_formed", **most),
        "plateau-is-the-mean-9": arms.beyond("total_mean_formed", **most),
        "plateau-is-the-mean-14": arms.beyond("total_mean_formed", LARGE),
        "plateau-is-the-mean-knapsack": arms.beyond("total_mean_formed", PACKING),
        "plateau-is-the-box-9": arms.beyond("share_box", **most),
        "plateau-is-the-box-14": arms.beyond("share_box", LARGE),
    }


def _of_help(arms: Arms) -> dict[str, Values]:
    """What steps, a reward and a repair add."""
    repaired = arms.got("total_network_repaired_formed", **arms.most)
    return {
        "steps-do-not-lift": arms.lift(STEPS),
        "reward-does-not-lift": arms.lift(REWARD),
        "reward-works-where-it-can": arms.lift(REWARD, PACKING),
        "newton-repairs-9": repaired,
        "newton-repairs-14": arms.got("total_network_repaired_formed", LARGE),
        "newton-needs-no-network": repaired - arms.got("total_mean_repaired_formed", **arms.most),
    }
