"""Kinds of training support that studies compare in pairs, on the combinations that both of a pair hold out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from recombine.design import Arm, Column, Tables, statistic
from recombine.families import Family
from recombine.spaces import Space, SubsetSpace
from recombine.supports import Balanced, Disconnected, MissingPart, Popular, Random, SupportKind, Unpopular

if TYPE_CHECKING:
    from recombine.figures.base import Figure

NAMES = {
    "random": "random",
    "random-few": "random, few",
    "balanced": "balanced",
    "popular": "popular constituents",
    "by-size": "few (linear in constituents)",
    "random-as-unpopular": "random, as many as unpopular",
    "unpopular": "unpopular constituents",
    "random-as-halves": "random, as many as halves",
    "halves": "two halves",
    "published": "one constituent by itself",
    "missing-part": "one constituent missing",
    "gaps": "gaps",
    "control": "control",
}
"""The kinds of support in words, in the order of the figures."""

WHERE = {
    "score_in": "trained combinations",
    "score_all_pairs_met": "held out: all pairs met",
    "score_some_pairs_unmet": "held out: a pair never met",
    "score_part_unseen": "held out: a constituent never seen",
}

Kinds = dict[str, SupportKind | Callable[[Any], SupportKind]]
"""Supports by name; a function of a cell where the support depends on the replicate."""


def kinds_in_pairs(space: Space, number: int, reserve: int, popular: int) -> Kinds:
    """The kinds of support that are compared in pairs, each with a random support of as many combinations.

    Args:
        space: The space of combinations.
        number: The combinations of the random, balanced and popular supports.
        reserve: The combinations that random supports hold out. Other kinds hold out everything that they do not train on.
        popular: The number of popular constituents.
    """
    halves, unpopular = Disconnected(), Unpopular()
    return {
        "random": Random(number=number, reserve=reserve),
        "balanced": Balanced(number=number),
        "popular": Popular(parts=popular, number=number),
        "missing-part": lambda cell: without_the_constituent_apart(space, cell.seed),
        "random-as-halves": Random(number=size_of(halves, space), reserve=reserve),
        "halves": halves,
        "random-as-unpopular": Random(number=size_of(unpopular, space), reserve=reserve),
        "unpopular": unpopular,
    }


def without_the_constituent_apart(space: Space, seed: int) -> SupportKind:
    """The support without the constituent that the published rule sets apart in this replicate, so that the two compare."""
    apart = Disconnected(groups="published").draw(space, seed).first[1]
    return MissingPart(part=int(apart[0])) if isinstance(space, SubsetSpace) else MissingPart()


def size_of(kind: SupportKind, space: Space) -> int:
    """The number of combinations that a kind of support trains on."""
    size = kind.promises(space).size
    assert size is not None
    return size


def on_common_combinations(own: pd.DataFrame, other: pd.DataFrame, family: Family) -> pd.Series:
    """The headline score of some runs on the combinations that they and other runs were scored on, for each replicate.

    Kinds of support leave out different combinations, and some combinations are harder than others. So only those count
    that both hold out. A replicate is left out where a run failed or where no combination is held out by both.

    Args:
        own: The held-out combinations of one run per replicate.
        other: The same of the runs that they are compared with.
        family: The family of the runs, which pools the scores of combinations.
    """
    keys = ["replicate", "combination"]
    return family.pooled(own.merge(other[keys], on=keys), ["replicate"]).set_index("replicate")[family.metric]


def score_beside(tables: Tables, family: Family, of: str, beside: str) -> pd.Series:
    """The score with one support on the combinations that it and another one hold out, for each replicate."""
    frame = tables.combinations
    if "region" not in frame:
        return pd.Series(dtype=float)
    held_out = frame[frame["region"] == "held_out"]
    own, other = (held_out[held_out["support"] == kind] for kind in (of, beside))
    return on_common_combinations(own, other, family)


def lost(arm: Arm, support: str, against: str, count: Callable[[Column], Column] = lambda score: score) -> Column:
    """What is lost with one support against another, on the combinations that both hold out.

    Args:
        arm: An arm with an axis `support`.
        support: The label of the support that may lose.
        against: The label of the support that it is compared with.
        count: How the scores are counted, for instance `skill`.
    """
    rival, own = (
        statistic(score_beside, arm, family=arm.base.family, of=of, beside=beside)
        for of, beside in ((against, support), (support, against))
    )
    return count(rival) - count(own)


def certificates_in_words(runs: pd.DataFrame) -> dict[str, str]:
    """The certificate of each kind of support in words, from the means over replicates."""
    columns = ["size", "complete", "connected", "groups", "pairs_met", "usage_min"]
    means = runs.reindex(columns=["support", *columns]).groupby("support", sort=False).mean()
    words = {}
    for kind, row in means.iterrows():
        if not np.isfinite(row["size"]):
            continue
        whole = "complete" if row["complete"] == 1 else "incomplete"
        linked = "connected" if row["connected"] == 1 else f"{row['groups']:.0f} groups"
        words[str(kind)] = (
            f"{row['size']:.0f}: {whole}, {linked}, {row['pairs_met']:.0%} of pairs, rarest {row['usage_min']:.1%}"
        )
    return words


def scores_by_support(runs: pd.DataFrame, kinds: Iterable[str], **options: Any) -> Figure:
    """Scores of each kind of support by stratum, with its certificate beside it.

    Args:
        runs: The table of runs, in which the control has the support `control`.
        kinds: The kinds of support that were run.
        **options: What `figures.study.dots` takes besides.
    """
    from recombine.figures.study import dots

    return dots(
        runs,
        category="support",
        measures=WHERE,
        labels={kind: name for kind, name in NAMES.items() if kind in (*kinds, "control")},
        notes=certificates_in_words(runs),
        ceiling=1.0,
        caption="One row per kind of training support. Its certificate stands at the right and is known before training: the "
        "number of combinations, whether every constituent occurs (complete) and all of them are linked (connected), the "
        "share of pairs of constituents that met, and the share of training tasks with the rarest constituent. Colours "
        "separate trained combinations and, among held-out ones, what training showed of their constituents. A row has "
        "only the sorts that its support leaves out. In the control every combination is an independent task, so nothing "
        "can be recombined.",
        **options,
    )


def score_on(tables: Tables, *, of: str, split: str, on: str, family: Family, metric: str) -> pd.Series:
    """A metric of a network trained on one split, on the combinations that another split holds out (test side).

    Args:
        tables: The tables of an arm with the labels `network` and `split`.
        of: The network.
        split: The split that it was trained on.
        on: The split whose held-out combinations are scored.
        family: The family, which pools the combinations.
        metric: The family's metric.

    Returns:
        One value per replicate; NaN where some of the combinations were not scored.
    """
    frame = tables.combinations
    if frame.empty or "region" not in frame:
        return pd.Series(dtype=float)
    own = frame[frame["network"] == of]
    block = own[(own["split"] == on) & (own["region"] == "held_out")][["replicate", "combination"]]
    chosen = own[own["split"] == split].merge(block, on=["replicate", "combination"])
    complete = chosen.groupby("replicate").size().eq(block.groupby("replicate").size())
    return family.pooled(chosen, ["replicate"]).set_index("replicate")[metric].where(complete)
