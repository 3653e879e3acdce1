"""What a probe is asked of the activations, and which combinations are fitted on and which are scored."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.wording import counted

MOST_VALUES = 100
"""A probe is asked of at most so many values of a place: those of most combinations."""
FEWEST = 10
"""Combinations without which nothing is fitted on some and scored on others."""


@dataclasses.dataclass(frozen=True)
class Question:
    """Which value stands in a place; or, of a set, which values are in it."""

    place: str
    cells: Int[np.ndarray, " asked"]
    """The combinations that it is asked of."""
    member: Bool[np.ndarray, "asked value"]
    """The answers."""
    exclusive: bool
    """Whether there is one value at a time. If not, each value is a question of its own: there or not?"""

    @property
    def chance(self) -> float:
        """The accuracy, balanced over values, of somebody who does not look."""
        return 1 / self.member.shape[1] if self.exclusive else 0.5

    def answers(self, log_odds: Float[np.ndarray, "n value"], member: Bool[np.ndarray, "n value"]) -> Answers:
        """How right and how sure a probe was: of the true value, or of each value."""
        if self.exclusive:
            true = np.argmax(member, axis=1)
            own = log_odds[np.arange(len(log_odds)), true]
            least = np.where(np.isnan(log_odds), -np.inf, log_odds)
            first = least.max(axis=1)
            # Of several that are first one would have to be guessed.
            right = (own == first) / (least == first[:, None]).sum(axis=1)
            # From the others' probability: 1 less that of the truth would be nothing wherever a probe is sure.
            others = special.logsumexp(np.where(member, -np.inf, least), axis=1)
            with np.errstate(invalid="ignore"):
                sure = -np.logaddexp(0, others - own)
            return Answers(*(np.where(np.isnan(own), np.nan, one)[:, None] for one in (right, sure)))
        signed = np.where(member, log_odds, -log_odds)
        right = (np.sign(signed) + 1) / 2
        return Answers(right, -np.logaddexp(0, -signed))

    def balanced(self, values: Float[np.ndarray, "asked _"], of: Bool[np.ndarray, " asked"]) -> float:
        """The mean over values of the mean over some of the combinations; of a set, over there and not there."""
        sums, counts = self._groups(values, of)
        return float(np.mean(sums[counts > 0] / counts[counts > 0])) if counts.any() else np.nan

    def trials(self, values: Float[np.ndarray, "asked _"]) -> float:
        """How many independent trials the balanced mean is worth, at least, if a combination is one."""
        _, counts = self._groups(values, np.ones(len(values), bool))
        counts = counts[counts > 0]
        # All values of a set are asked of the same combinations: they count as one question, there or not.
        return float((len(counts) if self.exclusive else 2) / np.mean(1 / counts)) if len(counts) else 0.0

    def by_combination(self, values: Float[np.ndarray, "asked _"]) -> Float[np.ndarray, " asked"]:
        """One number a combination; of a set, what is there counts as much as what is not."""
        if self.exclusive:
            return values[:, 0]
        known = ~np.isnan(values)
        halves = []
        for which in (self.member & known, ~self.member & known):
            number = which.sum(1)
            total = np.where(which, values, 0).sum(1)
            halves.append(np.where(number > 0, total / np.maximum(number, 1), np.nan))
        one, other = halves
        return np.where(np.isnan(one), other, np.where(np.isnan(other), one, (one + other) / 2))

    def _groups(
        self, values: Float[np.ndarray, "asked _"], of: Bool[np.ndarray, " asked"]
    ) -> tuple[Float[np.ndarray, " group"], Int[np.ndarray, " group"]]:
        """The sum and the number of what is known of each value; of a set, of there and of not there."""
        known = ~np.isnan(values) & of[:, None]
        wanted = (self.member,) if self.exclusive else (self.member, ~self.member)
        counts = np.concatenate([(member & known).sum(0) for member in wanted])
        sums = np.concatenate([(np.where(known, values, 0) * member).sum(0) for member in wanted])
        return sums, counts


@dataclasses.dataclass(frozen=True)
class Answers:
    """What a probe said: one column, or of a set one for each value. Not a number where it was not asked."""

    right: Float[np.ndarray, "n _"]
    """1 where it was right; a mean of these."""
    sure: Float[np.ndarray, "n _"]
    """The logarithm of the probability that it gave to the truth; a mean of these."""


def questions(cells: Cells, active: Bool[np.ndarray, " cell"]) -> tuple[list[Question], list[str]]:
    """What can be asked of the combinations with activations, and sentences about what cannot."""
    asked, notes = [], []
    for place in dict.fromkeys(cells.place):
        slots = [index for index, name in enumerate(cells.place) if name == place]
        kind = next(factor.kind for factor in cells.factors if place in factor.places)
        parts = cells.parts[:, slots]
        number = np.bincount(parts[active][parts[active] != NOTHING], minlength=cells.width)
        absent = active.sum() - number if kind == "set" else number
        usable = np.flatnonzero((number >= 2) & (absent >= 2))
        left = int((number > 0).sum()) - len(usable)
        if left:
            notes.append(
                f"Left out of decodability, as nobody can fit on some combinations and score on others: "
                f"{counted(left, 'value')} of {place} in a single combination"
                + (" or missing from one at most." if kind == "set" else ".")
            )
        if len(usable) > MOST_VALUES:
            notes.append(
                f"{place} has {len(usable)} values; its decodability is that of the {MOST_VALUES} of most combinations."
            )
            usable = np.sort(usable[np.argsort(-number[usable], kind="stable")[:MOST_VALUES]])
        if len(usable) < (1 if kind == "set" else 2):
            notes.append(f"{place} has too few values in two combinations or more to be decoded.")
            continue
        member = (parts[:, :, None] == usable).any(axis=1)
        chosen = np.flatnonzero(active & (member.any(1) if kind != "set" else True))
        if len(chosen) < FEWEST:
            notes.append(
                f"{place} has values that can be decoded in {counted(len(chosen), 'combination')}; {FEWEST} are needed."
            )
            continue
        asked.append(Question(place, chosen, member[chosen], kind != "set"))
    return asked, notes


def spread_over_folds(
    parts: Int[np.ndarray, "n slot"], places: tuple[str, ...], folds: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """A fold for each combination, so that every value is in as many folds, as evenly, as can be.

    Combinations with rare values are placed first; each goes where its values are least, then where least is.
    """
    place = np.unique(np.array(places), return_inverse=True)[1]
    # One number for each value in each place; an empty slot is none.
    wide = int(parts.max(initial=0)) + 1
    value = np.where(parts == NOTHING, -1, parts + wide * place)
    number = np.bincount(value[value >= 0], minlength=wide * (int(place.max(initial=0)) + 1))
    rarity = np.where(value >= 0, number[value], len(parts) + 1).min(axis=1)
    order = np.lexsort((rng.permutation(len(parts)), rarity))
    inside, size = np.zeros((folds, len(number))), np.zeros(folds)
    found = np.empty(len(parts), np.int64)
    for cell in order:
        held = value[cell][value[cell] >= 0]
        crowd = (inside[:, held] / number[held]).sum(axis=1)
        fold = int(np.lexsort((rng.random(folds), size, np.round(crowd, 12)))[0])
        inside[fold, held] += 1
        size[fold] += 1
        found[cell] = fold
    return found
