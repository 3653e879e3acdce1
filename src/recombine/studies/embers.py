"""Is a network right because it computes the answer, or because answer and task are probable?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from recombine.audit.embers.regression import INPUT, OUTPUT, logprob_weights
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, control, precondition, statistic
from recombine.families import Ciphers
from recombine.language.drawn import MADE_UP, PROBABLE, REORDERED
from recombine.models import Decoder
from recombine.probes import CipherAnswers
from recombine.studies.shapes import sequence_run
from recombine.supports import CipherStream
from recombine.supports.cipher_stream import DECODE, ENCODE, TEXT, cipher_space
from recombine.training.config import RunConfig

ARMS = {
    "skewed": "the first shift is common",
    "rotated": "the second shift is common",
    "even_shifts": "all shifts are equally frequent",
    "even_texts": "all texts are equally probable",
}
FEWEST_LETTERS = 5  # With fewer, every shift undoes the common one or is the common one.
MARGIN = 0.05  # Five points of accuracy, as in `recombine audit-llm embers`.
BIN = 5.0  # Nats of log-probability that one point of a figure covers.
WAYS = {DECODE: "decoding: the plain text is the answer", ENCODE: "encoding: the plain text is given"}
TEXTS = {
    PROBABLE: "probable text",
    REORDERED: "its words in their least probable order",
    MADE_UP: "its letters in any order",
}
HELD_OUT = {"region": "held_out", "cipher": True}
COLUMNS = "run", "arm", "replicate", "region", "way", "shift", "common", "level", "text"
NUMBERS = ("input_logprob", "output_logprob", "right", "own_logprob")
FITS = ("fits-common", "rare-is-learned")
LANGUAGE = (*FITS, "knows-the-language")


def cipher_run(texts: Any, stream: Any, model: Any, **sizes: int) -> dict[str, Any]:
    """The settings of a run: letters and length of texts, settings of stream and decoder, and sizes of training."""
    family, support = Ciphers(**texts), CipherStream(**stream)
    space = cipher_space(family.alphabet, family.length)
    return sequence_run(family, **sizes, space=space, support=support, model=Decoder(**model))


class Embers(Study):
    """Is a network right because it computes the answer, or because answer and task are probable?

    Decoders of letters are trained on one stream: texts in a made-up language, and texts that are decoded and encoded by
    shifts. Every shift is in the stream and has one right answer. One shift is far more common than the others, and some
    texts are far more probable than others of the same letters. Replicates take turns in which shift is common.
    """

    kind: Literal["embers"] = "embers"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": cipher_run(
                {"alphabet": 5, "length": 4},
                {"words": 2, "lexicon": 8, "skew": 8, "number": 400, "reserve": 8},
                {"width": 16, "layers": 1, "heads": 2},
                **{"tasks": 16, "steps": 8, "eval_every": 8, "validation_tasks": 8},
            ),
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 4000},
        "workstation": {
            "base": cipher_run(
                {"alphabet": 26},
                {"lexicon": 100, "number": 100_000},
                {"width": 96},
                **{"tasks": 96, "steps": 3000, "eval_every": 250, "validation_tasks": 64},
            ),
            "replicates": 6,
            "first_seed": 4500,
        },
        "paper": {
            "base": cipher_run(
                {"alphabet": 26, "length": 15},
                {"lexicon": 500, "number": 500_000, "reserve": 128},
                {"width": 256, "layers": 6},
                **{"tasks": 256, "steps": 4000, "eval_every": 500, "validation_tasks": 128},
            ),
            "combinations": 20_000,
            "replicates": 12,
        },
    }
    shown = "decode_common", "decode_rare", "encode_common", "encode_rare", "decode_rare_in", "nats_for_order"

    base: RunConfig = RunConfig.model_validate(
        cipher_run({}, {}, {"width": 96}, tasks=96, steps=1200, eval_every=100, validation_tasks=64)
    )
    """What all runs share; the arms set which shift is common, and by how much."""
    combinations: PositiveInt = 4096
    """The largest number of lines of held-out texts that are answered."""
    replicates: PositiveInt = 16
    """Independent replicates: language, texts, stream, initialisation and order of the data."""

    def check(self) -> None:
        family, support = self.base.family, self.base.support
        if not (isinstance(family, Ciphers) and isinstance(support, CipherStream)):
            raise ValueError(f"base is {family.kind} on {support.kind}: it must be ciphers on cipher-stream")
        if family.alphabet < FEWEST_LETTERS or support.skew == 1 or support.even_texts:
            got = f"{family.alphabet} letters, skew={support.skew:g}, even_texts={support.even_texts}"
            raise ValueError(f"base needs {FEWEST_LETTERS} letters, a skew and uneven texts, got {got}")

    @property
    def alphabet(self) -> int:
        """The number of letters."""
        return self.base.family.alphabet  # type: ignore[attr-defined]

    def shifts(self, seed: int) -> tuple[int, int]:
        """The shift that is common in a replicate, and the one that is common in its rotated arm.

        The second does not undo the first: decoding by one would then be encoding by the other, and no rare task.
        """
        number = self.alphabet - 1
        common = 1 + seed % number
        others = (1 + (seed + step) % number for step in range(number // 2, 2 * number))
        return common, next(shift for shift in others if shift not in (common, self.alphabet - common))

    def arms(self) -> dict[str, Arm]:
        skewed = Arm(self.base, common=lambda cell: self.shifts(cell.seed)[0])
        return {
            "skewed": skewed,
            "rotated": skewed.replace(common=lambda cell: self.shifts(cell.seed)[1]),
            "even_shifts": skewed.replace(skew=1.0),
            "even_texts": skewed.replace(even_texts=True),
        }

    def measurements(self) -> list[Any]:
        return [CipherAnswers(combinations=self.combinations)]

    def claims(self, skewed: Arm, rotated: Arm, even_shifts: Arm, even_texts: Arm) -> Claims:
        def right(arm: Arm, **chosen: Any) -> Column:
            return statistic(self.mean, arm, **HELD_OUT, **chosen)

        def gap(arm: Arm, way: str, low: str = MADE_UP) -> Column:
            return right(arm, way=way, level=PROBABLE) - right(arm, way=way, level=low)

        def lead(arm: Arm) -> Column:
            return right(arm, common=True) - right(arm, common=False)

        def nats(level: str) -> Column:
            return statistic(self.mean, skewed, column="own_logprob", way=TEXT, level=level)

        weights = skewed.table(self.weights)
        trained = statistic(self.mean, skewed, region="trained", common=True)
        text = "Lines of the stream with the common shift are answered right (exact match, decoded and encoded)."
        yield precondition("fits-common", trained.above(0.9), text)
        text = "So are lines with the rare shifts: without this, a gap on held-out texts would only say that training was too short."
        rare = statistic(self.mean, skewed, region="trained", cipher=True, common=False)
        yield precondition("rare-is-learned", rare.above(0.95), text)
        text = (
            "The network has learned which words follow which: as a text alone, it gives held-out texts a higher probability than "
            "the same words in their least probable order (nats)."
        )
        yield precondition("knows-the-language", (nats(PROBABLE) - nats(REORDERED)).greater(1.0), text)
        decoded = gap(skewed, DECODE)
        text = "Decoding to probable texts is right more often than to made-up texts of the same letters (exact match, mean over all shifts)."
        yield claim("probable-output", decoded.greater(MARGIN), text, primary=True, needs=LANGUAGE, version=2)
        text = "The same against texts of the same words in their least probable order."
        yield claim("probable-order", gap(skewed, DECODE, REORDERED).greater(MARGIN), text, needs=LANGUAGE, version=2)
        text = "Held-out texts are answered right more often by the common shift than by rare ones (exact match, decoded and encoded)."
        yield claim("common-task", lead(skewed).greater(MARGIN), text, needs=FITS, version=2)
        text = (
            "The probability of the plain text matters more in decoding, where it is the answer, than in encoding (difference of "
            "the two gaps in exact match between probable and made-up texts)."
        )
        yield claim("decoding-gap", (decoded - gap(skewed, ENCODE)).greater(MARGIN), text, needs=LANGUAGE, version=2)
        text = (
            "The answer's log-probability has a positive weight in the mixed logistic regression (log-odds per 10 nats), with way, "
            "shift and the input's log-probability held constant."
        )
        yield claim("output-weight", weights[OUTPUT].greater(0.0), text, needs=LANGUAGE, version=2)
        text = "That weight is larger than the weight of the input's log-probability."
        yield claim(
            "output-over-input", (weights[OUTPUT] - weights[INPUT]).greater(0.0), text, needs=LANGUAGE, version=2
        )
        text = "Where all shifts are equally frequent, held-out texts are answered right (exact match)."
        yield precondition("even-shifts-are-learned", right(even_shifts).above(0.5), text)
        text = "Where all shifts are equally frequent, the one that is common elsewhere is answered as well as the others (exact match)."
        same = lead(even_shifts).equivalent(MARGIN)
        yield control("even-shifts-have-no-gap", same, text, needs="even-shifts-are-learned")
        gains = right(skewed, first=True) - right(rotated, first=True)
        gains += right(rotated, second=True) - right(skewed, second=True)
        text = (
            "The gap follows the frequency and not the shift: a shift gains where it is made the common one (exact match of the two "
            "shifts, each where it is common minus where the other one is)."
        )
        yield control("gap-moves", (gains / 2).greater(MARGIN), text, needs=FITS, version=2)
        text = "Where all texts of the stream are equally probable, held-out texts are decoded (exact match)."
        yield precondition("even-texts-are-learned", right(even_texts, way=DECODE).above(0.1), text)
        text = (
            "Where all texts of the stream are equally probable, the texts that are probable elsewhere are decoded as well as "
            "made-up texts of the same letters (exact match)."
        )
        same = gap(even_texts, DECODE).equivalent(MARGIN)
        yield control("even-texts-have-no-gap", same, text, needs="even-texts-are-learned")

    def answers(self, tables: Tables, **chosen: Any) -> pd.DataFrame:
        """One row per answer with the chosen values; `first` and `second` mark the replicate's two shifts."""
        frame = tables["cipher-answers"].reindex(columns=[*COLUMNS, *NUMBERS])
        frame = frame.astype({"common": bool} | dict.fromkeys(NUMBERS, float))
        frame = frame.assign(cipher=frame["way"] != TEXT)
        for index, name in enumerate(("first", "second")):
            shifts = frame["replicate"].map({seed: self.shifts(seed)[index] for seed in self.seeds})
            frame = frame.assign(**{name: frame["shift"] == shifts})
        for name, value in chosen.items():
            frame = frame[frame[name] == value]
        return frame

    def mean(self, tables: Tables, column: str = "right", **chosen: Any) -> pd.Series:
        """The mean of a column in each replicate, over the answers with the chosen values."""
        return self.answers(tables, **chosen).groupby("replicate")[column].mean()

    def weights(self, tables: Tables) -> pd.DataFrame:
        """The weights of the log-probabilities in each run, where answers on one text share a level."""
        names = {"way": "task", "right": "correct", "text": "group"}
        frame = self.answers(tables, **HELD_OUT).rename(columns=names)
        frame = frame.assign(variant=np.where(frame["common"], "common", "rare"))
        frame = frame.assign(input_length=0.0, output_length=0.0)  # All texts are equally long.
        keys = ["run", "arm", "replicate"]
        rows = [(*run, *logprob_weights(part).values()) for run, part in frame.groupby(keys, sort=False)]
        return pd.DataFrame(rows, columns=[*keys, OUTPUT, INPUT])

    def figures(self, skewed: Arm, rotated: Arm, even_shifts: Arm, even_texts: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        skew, number = self.base.support.skew, self.alphabet - 1  # type: ignore[attr-defined]
        own, other, even = (self.answers(arm.tables, **HELD_OUT) for arm in (skewed, rotated, even_shifts))
        score: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
        curve = score | {"y": "right", "y_title": "exact match, held out", "facet": "way", "facet_labels": WAYS}
        plain = np.where(own["way"] == DECODE, own["output_logprob"], own["input_logprob"]).astype(float)
        frame = own.assign(probability=(np.floor(plain / BIN) + 0.5) * BIN)
        yield lines(
            frame.groupby(["replicate", "probability", "way", "common"], as_index=False)[["right"]].mean(),
            x="probability",
            series="common",
            labels={True: "the common shift", False: "rare shifts"},
            title="Does it matter how probable the text is?",
            caption=f"Held-out texts of equal length and letters, by their probability in the stream's language ({BIN:g} nats a point).",
            log=False,
            x_title="log-probability of the plain text (nats)",
            **curve,
        )
        frame = pd.concat([own.assign(skew=float(skew)), even.assign(skew=1.0)])
        share = frame["skew"].where(frame["common"], 1.0) / (frame["skew"] + number - 1)
        frame = frame.assign(frequency=[float(f"{value:.2g}") for value in share])  # The axis writes all digits.
        yield lines(
            frame.groupby(["replicate", "frequency", "way", "level"], as_index=False)[["right"]].mean(),
            x="frequency",
            series="level",
            labels=TEXTS,
            title="Does it matter how common the task is?",
            caption="Held-out texts of the same letters, by the frequency of their shift: rare, equal for all (a separate arm), or common.",
            x_title="share of the shift among the cipher lines",
            **curve,
        )
        frame, keys = pd.concat([own, other, even]), ["arm", "replicate"]
        shifts = {name: frame[frame[name]].groupby(keys)["right"].mean() for name in ("first", "second")}
        yield dots(
            pd.DataFrame(shifts).rename_axis(keys).reset_index(),
            category="arm",
            measures={"first": "the first shift", "second": "the second shift"},
            labels={name: ARMS[name] for name in ("skewed", "rotated", "even_shifts")},
            name="rotation",
            title="Does the gap follow the frequency?",
            caption="Two shifts of each replicate, decoded and encoded: the common one of its first stream and that of its second.",
            x_title="exact match, held out",
            **score,
        )
        frames = [self.weights(arm.tables) for arm in (skewed, rotated, even_shifts, even_texts)]
        often = [frame for frame in frames if frame[[OUTPUT, INPUT]].count().min() * 2 > self.replicates]
        yield dots(
            pd.concat(often) if often else frames[0][:0],
            category="arm",
            measures=(OUTPUT, INPUT),
            labels=ARMS,
            name="weights",
            title="The answer's probability, or the question's?",
            caption="Weights of log-probabilities in a mixed logistic regression of right answers per run, with way and shift held constant "
            "and a level per text. Arms that could be fitted in half of the replicates or fewer are left out.",
            x_title="weight (log-odds per 10 nats)",
        )
