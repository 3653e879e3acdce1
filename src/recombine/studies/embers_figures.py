"""The figures of the study `embers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.lines import draw_lines, lines_info
from recombine.language.drawn import MADE_UP, PROBABLE, REORDERED
from recombine.studies.base import Tables
from recombine.studies.embers_claims import ARMS, EVEN_SHIFTS, ROTATED, SKEWED, WEIGHTS, weights_of
from recombine.supports.cipher_stream import DECODE, ENCODE, TEXT, CipherStream

if TYPE_CHECKING:
    from recombine.studies.embers import Embers

BIN = 5.0
"""Nats of log-probability that are put together."""
WAYS = {DECODE: "decoding: the plain text is the answer", ENCODE: "encoding: the plain text is given"}
TEXTS = {
    PROBABLE: "probable text",
    REORDERED: "its words in their least probable order",
    MADE_UP: "its letters in any order",
}
"""The levels in words."""


def figures(study: Embers, tables: Tables) -> list[Figure]:
    """Accuracy by the probability of the text, by the frequency of the shift, where the gap goes, and weights."""
    frame = study.answers(tables)
    held_out = frame[(frame["region"] == "held_out") & (frame["way"] != TEXT)]
    return [
        _by_probability(held_out),
        _by_frequency(study, held_out),
        _rotation(study, held_out),
        _weights(study, held_out),
    ]


def _by_probability(held_out: pd.DataFrame) -> Figure:
    own = held_out[held_out["arm"] == SKEWED]
    plain = np.where(own["way"] == DECODE, own["output_logprob"], own["input_logprob"]).astype(float)
    frame = own.assign(
        bin=(np.floor(plain / BIN) + 0.5) * BIN, frequency=np.where(own["common"], "common", "rare")
    )
    info = lines_info(
        _mean(frame, ["bin", "way", "frequency"]),
        x="bin",
        y="right",
        series="frequency",
        facet="way",
        log=False,
        labels={"common": "the common shift", "rare": "rare shifts"},
        facet_labels=WAYS,
        floor=0.0,
        ceiling=1.0,
        x_title="log-probability of the plain text (nats)",
        y_title="exact match, held out",
        caption_lead=(
            "Held-out texts of equal length and the same letters, by how probable they are in the stream's own language "
            f"(points stand for {BIN:g} nats)."
        ),
    )
    return Figure(
        "by_probability", "Does it matter how probable the text is?", info.caption, draw_lines(info)
    )


def _by_frequency(study: Embers, held_out: pd.DataFrame) -> Figure:
    support = study.base.support
    assert isinstance(support, CipherStream)
    number = study.alphabet - 1
    arm = held_out[held_out["arm"].isin([SKEWED, EVEN_SHIFTS])]
    weight = np.where(arm["common"], support.skew, 1.0) / (support.skew + number - 1)
    share = np.where(arm["arm"] == EVEN_SHIFTS, 1 / number, weight)
    # Rounded, as the axis writes all places of what stands on it.
    frame = arm.assign(share=[float(f"{one:.2g}") for one in share])
    info = lines_info(
        _mean(frame, ["share", "way", "level"]),
        x="share",
        y="right",
        series="level",
        facet="way",
        labels=TEXTS,
        facet_labels=WAYS,
        floor=0.0,
        ceiling=1.0,
        x_title="share of the shift among the cipher lines",
        y_title="exact match, held out",
        caption_lead=(
            "Held-out texts, by how often their shift is in the stream: rare, as often as all others (an arm of its own), or common. "
            "All have the same letters."
        ),
    )
    return Figure("by_frequency", "Does it matter how common the task is?", info.caption, draw_lines(info))


def _rotation(study: Embers, held_out: pd.DataFrame) -> Figure:
    arms = (SKEWED, ROTATED, EVEN_SHIFTS)
    parts = []
    for place, name in enumerate(("first", "second")):
        asked = held_out["replicate"].map({seed: study.shifts(seed)[place] for seed in study.seeds})
        chosen = held_out[(held_out["shift"] == asked) & held_out["arm"].isin(arms)]
        parts.append(chosen.groupby(["arm", "replicate"])["right"].mean().rename(name))
    frame = pd.concat(parts, axis=1).reset_index()
    info = dots_info(
        frame,
        category="arm",
        measures={"first": "the first shift", "second": "the second shift"},
        labels={
            SKEWED: "the first is common",
            ROTATED: "the second is common",
            EVEN_SHIFTS: "all are as frequent",
        },
        floor=0.0,
        ceiling=1.0,
        x_title="exact match, held out",
        caption_lead=(
            "Two shifts of each replicate, decoded and encoded: the one that is common in its first stream, and the one that is "
            "in its second. They are other ones in each replicate."
        ),
    )
    return Figure("rotation", "Does the gap go with the frequency?", info.caption, draw_dots(info))


def _weights(study: Embers, held_out: pd.DataFrame) -> Figure:
    seeds = list(study.seeds)
    parts = [
        pd.DataFrame({"arm": arm, "replicate": seeds, **weights_of(held_out[held_out["arm"] == arm], seeds)})
        for arm in ARMS
    ]
    table = pd.concat(parts, ignore_index=True)
    # Where nearly everything is right in most replicates, the few weights that can be fitted say little.
    fitted = table.groupby("arm")[list(WEIGHTS)].transform("count").min(axis=1)
    info = dots_info(
        table[fitted * 2 > len(seeds)],
        category="arm",
        measures=WEIGHTS,
        labels=ARMS,
        x_title="weight (log-odds for 10 nats)",
        caption_lead=(
            "Weights of log-probabilities in a mixed logistic regression of right answers, one for each run, with way and shift held "
            "still and a level for each text. Left out is what could be fitted in half of the replicates or fewer."
        ),
    )
    return Figure("weights", "The answer's probability, or the question's?", info.caption, draw_dots(info))


def _mean(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Exact match in each replicate and cell."""
    return frame.groupby(["replicate", *by], observed=True)[["right"]].mean().reset_index()
