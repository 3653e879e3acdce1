"""The questions that a probe answers from activations, and the folds of combinations."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.wording import counted

MOST_VALUES = 100
"""The most values of a slot that a probe distinguishes: those that occur in most combinations."""
FEWEST = 10
"""The fewest combinations that can be divided into folds."""


@dataclasses.dataclass(frozen=True)
class Question:
    """Which value stands in a slot; for a set: which values are in it."""

    place: str
    cells: Int[np.ndarray, " asked"]
    """The combinations that the question applies to."""
    member: Bool[np.ndarray, "asked value"]
    """The correct answers."""
    exclusive: bool
    """Whether exactly one value is correct. If not, each value is a question by itself: present or absent?"""

    @property
    def chance(self) -> float:
        """The accuracy of guessing, balanced over values."""
        return 1 / self.member.shape[1] if self.exclusive else 0.5

    def answers(self, log_odds: Float[np.ndarray, "n value"], member: Bool[np.ndarray, "n value"]) -> Answers:
        """How right and how confident a probe is about the true value, or about each value."""
        if self.exclusive:
            true = np.argmax(member, axis=1)
            own = log_odds[np.arange(len(log_odds)), true]
            least = np.where(np.isnan(log_odds), -np.inf, log_odds)
            first = least.max(axis=1)
            # Among ties for the first place, one would have to guess.
            right = (own == first) / (least == first[:, None]).sum(axis=1)
            # Computed from the other values' probability: 1 - p would round to 0 where a probe is confident.
            others = special.logsumexp(np.where(member, -np.inf, least), axis=1)
            with np.errstate(invalid="ignore"):
                sure = -np.logaddexp(0, others - own)
            return Answers(*(np.where(np.isnan(own), np.nan, values)[:, None] for values in (right, sure)))
        signed = np.where(member, log_odds, -log_odds)
        right = (np.sign(signed) + 1) / 2
        return Answers(right, -np.logaddexp(0, -signed))

    def by_row(self, cell: Int[np.ndarray, " row"], number: int) -> Bool[np.ndarray, "row value"]:
        """The correct answers by row, whose combinations are `cell` of `number`; False where the question does not apply."""
        member = np.zeros((number, self.member.shape[1]), bool)
        member[self.cells] = self.member
        return member[cell]

    def picked(self, fold: Int[np.ndarray, " cell"], by_fold: list[Answers]) -> Answers:
        """For the combinations of each fold, the answers of that fold."""
        own, index = fold[self.cells], np.arange(len(self.cells))
        right, sure = (np.stack([getattr(each, name) for each in by_fold]) for name in ("right", "sure"))
        return Answers(right[own, index], sure[own, index])

    def balanced(self, values: Float[np.ndarray, "asked _"], of: Bool[np.ndarray, " asked"] | None = None) -> float:
        """The mean over values (of a set: present and absent) of the mean over combinations (`of`: some of them)."""
        sums, counts = self._groups(values, of)
        return float(np.mean(sums[counts > 0] / counts[counts > 0])) if counts.any() else np.nan

    def trials(self, values: Float[np.ndarray, "asked _"]) -> float:
        """A lower bound of the independent trials behind the balanced mean, if a combination is one trial."""
        counts = self._groups(values)[1]
        counts = counts[counts > 0]
        # All values of a set are asked about the same combinations, so they count as one question.
        return float((len(counts) if self.exclusive else 2) / np.mean(1 / counts)) if len(counts) else 0.0

    def by_combination(self, values: Float[np.ndarray, "asked _"]) -> Float[np.ndarray, " asked"]:
        """One number per combination; for a set, present and absent values weigh the same."""
        if self.exclusive:
            return values[:, 0]
        halves = []
        for which in (self.member & ~np.isnan(values), ~self.member & ~np.isnan(values)):
            number, total = which.sum(1), np.where(which, values, 0).sum(1)
            halves.append(np.where(number > 0, total / np.maximum(number, 1), np.nan))
        present, absent = halves
        return np.where(np.isnan(present), absent, np.where(np.isnan(absent), present, (present + absent) / 2))

    def _groups(
        self, values: Float[np.ndarray, "asked _"], of: Bool[np.ndarray, " asked"] | None = None
    ) -> tuple[Float[np.ndarray, " group"], Int[np.ndarray, " group"]]:
        """The sum and the number of known entries of each value; for a set, of present and of absent ones."""
        known = ~np.isnan(values) & (True if of is None else of[:, None])
        wanted = (self.member,) if self.exclusive else (self.member, ~self.member)
        counts = np.concatenate([(member & known).sum(0) for member in wanted])
        sums = np.concatenate([(np.where(known, values, 0) * member).sum(0) for member in wanted])
        return sums, counts


@dataclasses.dataclass(frozen=True)
class Answers:
    """A probe's answers: one column, or one per value of a set. NaN where it was not asked."""

    right: Float[np.ndarray, "n _"]
    """1 where the probe is right; means over rows."""
    sure: Float[np.ndarray, "n _"]
    """The log-probability of the truth; means over rows."""


def questions(cells: Cells, active: Bool[np.ndarray, " cell"]) -> tuple[list[Question], list[str]]:
    """One question per slot that can be decoded from the active combinations, and notes about what cannot be asked."""
    asked, notes = [], []
    for place in dict.fromkeys(cells.slots):
        slots = [index for index, name in enumerate(cells.slots) if name == place]
        kind = next(factor.kind for factor in cells.factors if place in factor.slots)
        parts = cells.constituents[:, slots]
        number = np.bincount(parts[active][parts[active] != NOTHING], minlength=cells.width)
        absent = active.sum() - number if kind == "set" else number
        usable = np.flatnonzero((number >= 2) & (absent >= 2))
        if left_out := int((number > 0).sum()) - len(usable):
            notes.append(
                f"Left out of decodability, because a probe needs some combinations to fit on and others to score on: "
                f"{counted(left_out, 'value')} of {place} in a single combination"
                + (" or in all but one at most." if kind == "set" else ".")
            )
        if len(usable) > MOST_VALUES:
            notes.append(
                f"{place} has {len(usable)} values; decodability covers the {MOST_VALUES} that occur in most combinations."
            )
            usable = np.sort(usable[np.argsort(-number[usable], kind="stable")[:MOST_VALUES]])
        if len(usable) < (1 if kind == "set" else 2):
            notes.append(f"{place} cannot be decoded: too few of its values occur in two or more combinations.")
            continue
        member = (parts[:, :, None] == usable).any(axis=1)
        chosen = np.flatnonzero(active & (member.any(1) if kind != "set" else True))
        if len(chosen) < FEWEST:
            notes.append(f"{place} can be decoded in {counted(len(chosen), 'combination')}; {FEWEST} are needed.")
            continue
        asked.append(Question(place, chosen, member[chosen], kind != "set"))
    return asked, notes


def spread_over_folds(
    parts: Int[np.ndarray, "n slot"], places: tuple[str, ...], folds: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """A fold for each combination. Each value is spread over the folds as evenly as possible.

    Combinations with rare values are placed first. Each goes to the fold with the fewest of its values, then to the
    smallest fold. Ties are broken at random. `places` names the slots.
    """
    place = np.unique(np.array(places), return_inverse=True)[1]
    # One number per value and slot; -1 for an empty slot.
    wide = int(parts.max(initial=0)) + 1
    value = np.where(parts == NOTHING, -1, parts + wide * place)
    number = np.bincount(value[value >= 0], minlength=wide * (int(place.max(initial=0)) + 1))
    rarity = np.where(value >= 0, number[value], len(parts) + 1).min(axis=1)
    order = np.lexsort((rng.permutation(len(parts)), rarity))
    inside, size = np.zeros((folds, len(number))), np.zeros(folds)
    folds_of = np.empty(len(parts), np.int64)
    for cell in order:
        held = value[cell][value[cell] >= 0]
        crowd = (inside[:, held] / number[held]).sum(axis=1)
        fold = int(np.lexsort((rng.random(folds), size, np.round(crowd, 12)))[0])
        inside[fold, held] += 1
        size[fold] += 1
        folds_of[cell] = fold
    return folds_of
