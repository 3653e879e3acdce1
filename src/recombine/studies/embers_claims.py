"""The claims of the study `embers`, and what they are computed from: answers, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.audit.embers_regression import INPUT, OUTPUT, fit_embers
from recombine.language.drawn import MADE_UP, PROBABLE, REORDERED
from recombine.studies.base import claims_of
from recombine.supports.cipher_stream import DECODE, ENCODE, TEXT

if TYPE_CHECKING:
    import pandas as pd

SKEWED, ROTATED, EVEN_SHIFTS, EVEN_TEXTS = "skewed", "rotated", "even shifts", "even texts"
ARMS = {
    SKEWED: "one shift is common",
    ROTATED: "another shift is common",
    EVEN_SHIFTS: "all shifts are as frequent",
    EVEN_TEXTS: "all texts are as probable",
}
"""The arms in words."""

WEIGHTS = {"output_weight": OUTPUT, "input_weight": INPUT}
"""The weights that are claimed of, by their names in tables."""

_claim = claims_of("embers")

MARGIN = 0.05
"""Five points of accuracy, as in `recombine audit-llm embers`."""

FITS = ("fits-common", "rare-is-decoded", "rare-is-encoded")
LANGUAGE = (*FITS, "knows-the-language")

CLAIMS = (
    _claim(
        "fits-common",
        "Lines of the stream with the common shift are answered right (exact match, decoded and encoded).",
        "above",
        0.9,
        role="precondition",
    ),
    *(
        _claim(
            f"rare-is-{way}d",
            f"The rare shifts are learned, too: held-out texts are {way}d by them (exact match; a guess is right in one of a "
            "thousand cases or less).",
            "above",
            0.1,
            role="precondition",
        )
        for way in (DECODE, ENCODE)
    ),
    _claim(
        "knows-the-language",
        "The network has learned which words follow which: as a text alone it gives held-out texts a higher probability than the same "
        "words in their least probable order (nats).",
        "greater",
        1.0,
        role="precondition",
    ),
    _claim(
        "probable-output",
        "Decoding to probable texts is right more often than decoding to made-up ones of the same letters (exact match, mean over "
        "all shifts).",
        "greater",
        MARGIN,
        primary=True,
        needs=LANGUAGE,
    ),
    _claim(
        "probable-order",
        "The same against texts of the same words in their least probable order.",
        "greater",
        MARGIN,
        needs=LANGUAGE,
    ),
    _claim(
        "common-task",
        "Held-out texts are answered right more often by the common shift than by the rare ones (exact match, decoded and "
        "encoded).",
        "greater",
        MARGIN,
        needs=FITS,
    ),
    _claim(
        "decoding-gap",
        "The probability of the plain text matters more in decoding, where it is the answer, than in encoding (difference of the two "
        "gaps in exact match between probable and made-up texts).",
        "greater",
        MARGIN,
        needs=LANGUAGE,
    ),
    _claim(
        "output-weight",
        "The answer's log-probability has a positive weight in the mixed logistic regression (log-odds for 10 nats), way, shift and "
        "the input's log-probability held still.",
        "greater",
        0.0,
        needs=LANGUAGE,
    ),
    _claim(
        "output-over-input",
        "That weight is larger than the weight of the input's log-probability.",
        "greater",
        0.0,
        needs=LANGUAGE,
    ),
    _claim(
        "even-shifts-are-learned",
        "Where all shifts are as frequent, held-out texts are answered right (exact match).",
        "above",
        0.5,
        role="precondition",
    ),
    _claim(
        "even-shifts-have-no-gap",
        "Where all shifts are as frequent, the shift that is the common one elsewhere is answered as well as the others (exact "
        "match).",
        "equivalent",
        MARGIN,
        role="control",
        needs=("even-shifts-are-learned",),
    ),
    _claim(
        "gap-moves",
        "The gap goes with the frequency and not with the shift: a shift gains where it is made the common one (exact match of the two "
        "shifts, each where it is common less where the other one is).",
        "greater",
        MARGIN,
        role="control",
        needs=FITS,
    ),
    _claim(
        "even-texts-are-learned",
        "Where all texts of the stream are as probable, held-out texts are decoded (exact match).",
        "above",
        0.1,
        role="precondition",
    ),
    _claim(
        "even-texts-have-no-gap",
        "Where all texts of the stream are as probable, the texts that are probable elsewhere are decoded as well as made-up ones of "
        "the same letters (exact match).",
        "equivalent",
        MARGIN,
        role="control",
        needs=("even-texts-are-learned",),
    ),
)
"""Stated before any run that decides, and versioned with this file."""


def answers(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `cipher-answers` with all columns that are asked for, also where there are none."""
    columns = ("arm", "replicate", "region", "way", "shift", "common", "level", "text")
    numbers = ("input_logprob", "output_logprob", "right", "own_logprob")
    frame = frame.reindex(columns=[*columns, *numbers])
    return frame.assign(
        common=frame["common"].astype(bool), **{one: frame[one].astype(float) for one in numbers}
    )


def share(
    frame: pd.DataFrame, seeds: Sequence[int], name: str = "right", **chosen: Any
) -> Float[np.ndarray, " replicate"]:
    """The mean of a column over the rows with these values, by replicate: exact match, unless told otherwise."""
    for column, value in chosen.items():
        frame = frame[frame[column] == value]
    return frame.groupby("replicate")[name].mean().reindex(list(seeds)).to_numpy(dtype=float)


def effects_of(
    frame: pd.DataFrame, seeds: Sequence[int], shifts: dict[int, tuple[int, int]]
) -> dict[str, Float[np.ndarray, " replicate"]]:
    """The effect of each claim in each replicate, from answers. `shifts`: by replicate, which one is common in the first arm,
    and which in the rotated one."""
    held_out = frame[(frame["region"] == "held_out") & (frame["way"] != TEXT)]
    by_arm = {arm: held_out[held_out["arm"] == arm] for arm in ARMS}
    own = by_arm[SKEWED]
    trained = frame[(frame["region"] == "trained") & (frame["arm"] == SKEWED)]
    texts = frame[(frame["way"] == TEXT) & (frame["arm"] == SKEWED)]

    def gap(part: pd.DataFrame, way: str, low: str = MADE_UP) -> Float[np.ndarray, " replicate"]:
        return share(part, seeds, way=way, level=PROBABLE) - share(part, seeds, way=way, level=low)

    def lead(part: pd.DataFrame) -> Float[np.ndarray, " replicate"]:
        return share(part, seeds, common=True) - share(part, seeds, common=False)

    order = [share(texts, seeds, "own_logprob", level=level) for level in (PROBABLE, REORDERED)]
    weights = weights_of(own, seeds)
    return {
        "fits-common": share(trained, seeds, common=True),
        "rare-is-decoded": share(own, seeds, way=DECODE, common=False),
        "rare-is-encoded": share(own, seeds, way=ENCODE, common=False),
        "knows-the-language": order[0] - order[1],
        "probable-output": gap(own, DECODE),
        "probable-order": gap(own, DECODE, REORDERED),
        "common-task": lead(own),
        "decoding-gap": gap(own, DECODE) - gap(own, ENCODE),
        "output-weight": weights["output_weight"],
        "output-over-input": weights["output_weight"] - weights["input_weight"],
        "even-shifts-are-learned": share(by_arm[EVEN_SHIFTS], seeds),
        "even-shifts-have-no-gap": lead(by_arm[EVEN_SHIFTS]),
        "gap-moves": _moved(by_arm, seeds, shifts),
        "even-texts-are-learned": share(by_arm[EVEN_TEXTS], seeds, way=DECODE),
        "even-texts-have-no-gap": gap(by_arm[EVEN_TEXTS], DECODE),
    }


def _moved(
    by_arm: dict[str, pd.DataFrame], seeds: Sequence[int], shifts: dict[int, tuple[int, int]]
) -> Float[np.ndarray, " replicate"]:
    """What a shift gains where it is common: mean over the two shifts of a replicate."""
    sums = np.zeros(len(seeds))
    for place, (arm, other) in enumerate(((SKEWED, ROTATED), (ROTATED, SKEWED))):
        for one, sign in ((arm, 1), (other, -1)):
            part = by_arm[one]
            asked = part["replicate"].map({seed: pair[place] for seed, pair in shifts.items()})
            sums += sign * share(part[part["shift"] == asked], seeds) / 2
    return sums


def weights_of(held_out: pd.DataFrame, seeds: Sequence[int]) -> dict[str, Float[np.ndarray, " replicate"]]:
    """The weights of log-probabilities by replicate, each from a mixed logistic regression of its own, in which answers on one
    text share a level. Not a number where nothing could be fitted."""
    found = {name: np.full(len(seeds), np.nan) for name in WEIGHTS}
    for place, seed in enumerate(seeds):
        part = held_out[held_out["replicate"] == seed]
        if part.empty:
            continue
        given = part.assign(
            task=part["way"],
            variant=np.where(part["common"], "common", "rare"),
            correct=part["right"],
            group=part["text"],
            # All texts are equally long.
            input_length=0.0,
            output_length=0.0,
        )
        fit, _ = fit_embers(given)
        for name, column in WEIGHTS.items():
            if fit is not None and column in fit.names:
                found[name][place] = fit.interval(column).estimate
    return found
