"""The figures of the study `supports`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.studies.base import Tables

if TYPE_CHECKING:
    from recombine.studies.supports import Supports

NAMES = {
    "random": "random",
    "balanced": "balanced",
    "popular": "popular parts",
    "by-size": "few (linear in parts)",
    "random-as-unpopular": "random, as many as unpopular",
    "unpopular": "unpopular parts",
    "random-as-halves": "random, as many as halves",
    "halves": "two halves",
    "published": "one part by itself",
    "missing-part": "one part missing",
    "gaps": "gaps",
    "control": "control",
}

WHERE = {
    "score_in": "trained combinations",
    "score_all_pairs_met": "held out: all pairs met",
    "score_some_pairs_unmet": "held out: a pair never met",
    "score_part_unseen": "held out: a part never seen",
}

READ = (
    "One row a kind of training support, with its certificate at the right, which is known before training: how many "
    "combinations, whether every part occurs (complete) and all hang together (connected), the share of pairs of parts that "
    "met, and the share of training tasks that hold the rarest part. Colours: combinations that were trained, and held-out "
    "ones by what training showed of their parts. A row has only those sorts that its support leaves out."
)


def in_words(runs: pd.DataFrame) -> dict[str, str]:
    """The certificate of each kind of support in words, from the means over replicates."""
    columns = ["size", "complete", "connected", "groups", "pairs_met", "usage_min"]
    means = runs.reindex(columns=["support", *columns]).groupby("support", sort=False).mean()
    found = {}
    for kind, row in means.iterrows():
        if not np.isfinite(row["size"]):
            continue
        whole = "complete" if row["complete"] == 1 else "a part missing"
        linked = "connected" if row["connected"] == 1 else f"{row['groups']:.0f} groups"
        found[str(kind)] = (
            f"{row['size']:.0f}: {whole}, {linked}, {row['pairs_met']:.0%} of pairs, rarest {row['usage_min']:.1%}"
        )
    return found


def _figure(
    tables: Tables, family: str, control: str, kinds: list[str], score: str, name: str, title: str
) -> Figure:
    runs = tables.runs.reindex(columns=tables.runs.columns.union([*WHERE, "replicate", "family", "support"]))
    runs = runs[runs["family"].isin([family, control])]
    info = dots_info(
        runs,
        "support",
        WHERE,
        labels={kind: name for kind, name in NAMES.items() if kind in (*kinds, "control")},
        notes=in_words(runs),
        floor=-0.5 if score == "R²" else 0.0,
        ceiling=1.0,
        x_title=score,
        caption_lead=f"{READ} In the control every combination is a task of its own: nothing can be recombined.",
    )
    return Figure(name, title, info.caption, draw_dots(info))


def figures(study: Supports, tables: Tables) -> list[Figure]:
    """Scores by kind of support, in each arm."""
    first = study.first_seed
    return [
        _figure(
            tables,
            study.base.family.kind,
            study.control.kind,
            list(study.kinds(first)),
            "R²",
            "scores_by_support",
            "Which training supports does a network recombine from?",
        ),
        _figure(
            tables,
            study.preferences.family.kind,
            study.independent_preferences.kind,
            list(study.preference_kinds(first)),
            "accuracy of whole episodes",
            "scores_by_support_preferences",
            "Is it the same on preferences?",
        ),
    ]
