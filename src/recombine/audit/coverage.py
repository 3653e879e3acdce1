"""What training covers of a table: values never seen, pairs that never met, groups that never meet."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.sparse import csgraph

from recombine.audit.atoms import Atoms, atoms_of
from recombine.audit.cells import NOTHING, Cells, Chosen
from recombine.audit.findings import SupportFinding
from recombine.audit.possible import asked_pairs, numbers_in_space, possible_pairs
from recombine.audit.wording import counted, decimal, listed, percent, short

SHOWN = 20
"""How many unmet pairs the finding lists; `unmet_pairs` has all."""

STRENGTHS = (1, 2, 3)


PartScores = Float[np.ndarray, " constituent"]
PartCounts = Int[np.ndarray, " constituent"]


@dataclasses.dataclass(frozen=True)
class Unmet:
    """Evaluated pairs that never met in training, worst score first."""

    pairs: Int[np.ndarray, "pair 2"]
    """The two atoms of each pair."""
    score: Float[np.ndarray, " pair"]
    """The mean score of the evaluated combinations that hold the pair."""
    combinations: Int[np.ndarray, " pair"]


def support_finding(cells: Cells) -> SupportFinding | None:
    """What training covers of the evaluated combinations; None if the training combinations are unknown."""
    if cells.trained is None:
        return None
    atoms, labels = atoms_of(cells), cells.labels
    unmet = unmet_pairs(cells, atoms)
    met, total = met_pairs(cells, atoms)
    difference, left_out = set_difference(atoms, cells.trained, cells.evaluated)
    finding = SupportFinding(
        size=int(cells.trained.sum()),
        unseen=tuple(labels[part] for part in unseen_parts(cells)),
        unmet=tuple((atoms.labels[a], atoms.labels[b]) for a, b in unmet.pairs[:SHOWN].tolist()),
        unmet_count=len(unmet.pairs),
        groups=tuple(tuple(labels[part] for part in group) for group in training_groups(cells)),
        pair_coverage=met / total if total else 1.0,
        difference=difference,
        sentences=(),
        possible_pairs=total,
        single=_single(cells, atoms),
        asked=tuple((atoms.labels[a], atoms.labels[b]) for a, b in asked_pairs(cells)[:SHOWN].tolist()),
        asked_count=len(asked_pairs(cells)),
    )
    return dataclasses.replace(finding, sentences=_sentences(cells, atoms, finding, unmet, left_out))


def _single(cells: Cells, atoms: Atoms) -> tuple[str, ...]:
    """The evaluated values with a single trained combination, worst mean of the first score first."""
    assert cells.trained is not None
    held = atoms.rows[cells.trained]
    uses = np.bincount(held[held != NOTHING], minlength=atoms.number)
    asked = atoms.rows[cells.evaluated]
    index, slot = np.nonzero(asked != NOTHING)
    count = np.bincount(asked[index, slot], minlength=atoms.number)
    score = np.nan_to_num(cells.upright(0)[cells.evaluated])[index]
    mean = np.bincount(asked[index, slot], weights=score, minlength=atoms.number) / np.maximum(count, 1)
    single = np.flatnonzero((uses == 1) & (count > 0))
    return tuple(atoms.labels[atom] for atom in single[np.argsort(mean[single], kind="stable")].tolist())


def met_pairs(cells: Cells, atoms: Atoms) -> tuple[int, int]:
    """The number of possible pairs that met in training, and the number of all possible pairs.

    A pair that must be asked about does not count as possible.
    """
    assert cells.trained is not None
    members = atoms.members(atoms.interactions(cells.trained, 2))
    possible = possible_pairs(cells)
    if possible is None:
        return len(members), pairs_in_all(cells) - len(asked_pairs(cells))
    numbers = numbers_in_space(cells)[[cells.slots.index(name) for name in dict.fromkeys(cells.slots)]]
    number = numbers[atoms.slot, atoms.constituent]
    return int(possible[number[members[:, 0]], number[members[:, 1]]].sum()), int(np.triu(possible, 1).sum())


def unseen_parts(cells: Cells) -> Int[np.ndarray, " n"]:
    """Constituents that were evaluated but never trained on in any slot; worst mean of the first score first."""
    assert cells.trained is not None
    seen, asked = _parts_in(cells, cells.trained), _parts_in(cells, cells.evaluated)
    unseen = np.nonzero(asked & ~seen)[0]
    scores = part_scores(cells, 0, cells.evaluated)[0][unseen]
    return unseen[np.lexsort((unseen, cells.scale(0).sign * scores))]


def part_scores(cells: Cells, score: int, chosen: Chosen) -> tuple[PartScores, PartCounts]:
    """For each constituent: the mean score of the chosen combinations that hold it, and their number."""
    parts, values = part_values(cells, score, chosen)
    count = np.bincount(parts, minlength=cells.width)
    with np.errstate(invalid="ignore"):
        return np.bincount(parts, weights=values, minlength=cells.width) / count, count


def part_values(cells: Cells, score: int, chosen: Chosen) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The constituents of the chosen combinations with the combinations' scores. One in two roles counts once."""
    parts = np.sort(cells.constituents[chosen], axis=1)
    fresh = parts != NOTHING
    fresh[:, 1:] &= parts[:, 1:] != parts[:, :-1]
    return parts[fresh], np.broadcast_to(cells.mean[chosen, score][:, None], parts.shape)[fresh]


def unmet_pairs(cells: Cells, atoms: Atoms | None = None, score: int = 0) -> Unmet:
    """All evaluated pairs of constituents (with their slots) that never met in training."""
    assert cells.trained is not None
    atoms = atoms_of(cells) if atoms is None else atoms
    met = atoms.interactions(cells.trained, 2)
    lacking = np.setdiff1d(atoms.interactions(cells.evaluated, 2), met, assume_unique=True)
    mean, count = atoms.scored(cells.evaluated, lacking, cells.mean[:, score])
    order = np.lexsort((lacking, cells.scale(score).sign * mean))  # NaN comes last.
    return Unmet(atoms.members(lacking)[order], mean[order], count[order])


def training_groups(cells: Cells) -> list[list[int]]:
    """Groups of trained constituents that never share a combination with another group, largest first."""
    assert cells.trained is not None
    label = connected(cells.constituents[cells.trained], cells.width)
    seen = np.nonzero(_parts_in(cells, cells.trained))[0]
    groups = [seen[label[seen] == number].tolist() for number in np.unique(label[seen])]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def connected(rows: Int[np.ndarray, "row slot"], width: int) -> Int[np.ndarray, " part"]:
    """The connected component of each of `width` parts: parts of different ones share no row, even indirectly."""
    number, slot = np.nonzero(rows != NOTHING)
    graph = sparse.coo_array(
        (np.ones(len(number)), (number, len(rows) + rows[number, slot])), shape=(len(rows) + width,) * 2
    )
    label = csgraph.connected_components(graph.tocsr(), directed=False)[1][len(rows) :]
    return np.unique(label, return_inverse=True)[1]


def set_difference(atoms: Atoms, trained: Chosen, evaluated: Chosen) -> tuple[dict[int, float], tuple[int, ...]]:
    """The share of t-way interactions in the evaluated combinations that training lacks (Lanus et al. 2021).

    Only interactions that occur are listed, never those of the whole space. Also returns the strengths that were left out
    because they have too many.
    """
    shares: dict[int, float] = {}
    left_out = []
    for strength in STRENGTHS:
        if not atoms.feasible(strength):
            left_out += [strength] if atoms.rows.shape[1] >= strength else []
            continue
        target = atoms.interactions(evaluated, strength)
        if len(target):
            lacking = np.setdiff1d(target, atoms.interactions(trained, strength), assume_unique=True)
            shares[strength] = len(lacking) / len(target)
    return shares, tuple(left_out)


def pairs_in_all(cells: Cells) -> int:
    """The number of pairs of values that can meet: of different slots, or within one set.

    A value can meet itself in another role only if some combination of the table has it.
    """
    values = {place: factor for factor in cells.factors for place in factor.slots}
    places = list(dict.fromkeys(cells.slots))
    doubles = holds_doubles(cells)
    total = 0
    for index, first in enumerate(places):
        size = len(values[first].values)
        slots = [slot for slot, place in enumerate(cells.slots) if place == first]
        if values[first].kind == "set" and (cells.constituents[:, slots] != NOTHING).sum(1).max(initial=0) > 1:
            total += math.comb(size, 2)
        for second in places[index + 1 :]:
            same = values[first] is values[second] and not doubles
            total += size * (size - 1) if same else size * len(values[second].values)
    return total


def holds_doubles(cells: Cells) -> bool:
    """Whether some combination has the same value in two roles."""
    parts = np.sort(cells.constituents, axis=1)
    return bool(((parts[:, 1:] == parts[:, :-1]) & (parts[:, 1:] != NOTHING)).any())


def _parts_in(cells: Cells, chosen: Chosen) -> Bool[np.ndarray, " constituent"]:
    occurs = np.zeros(cells.width, dtype=bool)
    held = cells.constituents[chosen]
    occurs[held[held != NOTHING]] = True
    return occurs


def _sentences(
    cells: Cells, atoms: Atoms, finding: SupportFinding, unmet: Unmet, left_out: tuple[int, ...]
) -> tuple[str, ...]:
    """The finding in sentences."""
    assert cells.trained is not None
    held_out = int((cells.evaluated & ~cells.trained).sum())
    both = int((cells.evaluated & cells.trained).sum())
    sentences = [
        f"Trained on {counted(finding.size, 'combination')}; "
        f"evaluated on {both:,} of them and on {counted(held_out, 'held-out one')}."
    ]
    unseen = f"{_values(len(finding.unseen))} never trained on: {listed(finding.unseen)}."
    sentences.append(unseen if finding.unseen else "Every evaluated value was trained on.")
    new = atoms.occurring(cells.evaluated) & ~atoms.occurring(cells.trained)
    moved = np.nonzero(new & _parts_in(cells, cells.trained)[atoms.constituent])[0]
    if names := [atoms.labels[atom] for atom in moved.tolist()]:
        sentences.append(f"{_values(len(names))} trained on, but never in this role: {listed(names)}.")
    if finding.single:
        verb = "occurs" if len(finding.single) == 1 else "occur"
        sentences.append(
            f"{counted(len(finding.single), 'evaluated value')} {verb} in a single trained combination: "
            f"{listed(finding.single)}."
        )
    sentences += _pair_sentences(cells, atoms, finding, unmet)
    if finding.asked_count:
        some = [f"{short(one)} with {short(two)}" for one, two in finding.asked[:3]]
        never = "pair never occurs" if finding.asked_count == 1 else "pairs never occur"
        more = f" and {finding.asked_count - len(some):,} more" if finding.asked_count > len(some) else ""
        sentences.append(
            f"{finding.asked_count:,} {never} in training or evaluation, although both values are common: "
            f"{', '.join(some)}{more}. Unless --space says otherwise, they count as impossible."
        )
    if len(finding.groups) > 1:
        described = " | ".join(listed(group, 3) for group in finding.groups[:3])
        more = f" | and {len(finding.groups) - 3:,} more groups" if len(finding.groups) > 3 else ""
        sentences.append(f"The training values form {len(finding.groups):,} groups that never meet: {described}{more}.")
    kinds = {1: "values", 2: "pairs", 3: "triples"}
    if lacks := ", ".join(f"{percent(share)} of {kinds[t]}" for t, share in finding.difference.items()):
        sentences.append(f"Training lacks {lacks} in the evaluated combinations.")
    if left_out:
        sentences.append(f"{', '.join(kinds[t] for t in left_out).capitalize()} are too many to count.")
    return tuple(sentences)


def _pair_sentences(cells: Cells, atoms: Atoms, finding: SupportFinding, unmet: Unmet) -> list[str]:
    total = finding.possible_pairs
    if not total:
        return []
    kind = "possible pairs" if cells.possible is not None or finding.asked_count else "pairs"
    share = f"{percent(finding.pair_coverage)} of all {total:,} {kind} met in training"
    if not finding.unmet_count:
        return [f"All evaluated pairs met in training ({share})."]
    worst = [
        f"{short(atoms.labels[a])} with {short(atoms.labels[b])} ({decimal(score)})"
        for (a, b), score in zip(unmet.pairs[:3].tolist(), unmet.score[:3].tolist(), strict=True)
    ]
    pairs = counted(finding.unmet_count, "evaluated pair")
    extreme = "Highest scores" if cells.scale(0).lower_is_better else "Lowest scores"
    first = extreme if finding.unmet_count > len(worst) else "Scores"
    return [f"{pairs} never met in training ({share}). {first}: {', '.join(worst)}."]


def _values(number: int) -> str:
    return f"{counted(number, 'value')} {'was' if number == 1 else 'were'}"
