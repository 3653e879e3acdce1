"""Answers of a network to shift ciphers: correct or not, by shift, direction, and probability of the text."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.ciphers import Ciphers
from recombine.language.drawn import LEVELS
from recombine.language.vocabulary import PAD
from recombine.models.base import Network
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.spaces.product import ProductSpace
from recombine.supports.cipher_stream import DECODE, ENCODE, TEXT, StreamSupport, texts_of
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

BATCH = 256
"""Lines in one compiled call."""


@dataclasses.dataclass(frozen=True)
class LineTask:
    """One line: whether the generated answer is right, and the network's log-probability of the right answer."""

    objective: NextToken

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        target = batches.targets[0, 0]
        counts = target != PAD
        right = (self.objective.evaluate(network, codes, batches, key)[0, 0] == target) | ~counts
        # All positions, even if training used shorter sequences.
        whole = self.objective.model_copy(update={"prompt_length": 0, "answer_length": 0, "length_groups": 0})
        expected = whole.predict(network, codes, batches, key).reshape(*target.shape, -1)
        logprobs = jnp.take_along_axis(jax.nn.log_softmax(expected), target.astype(jnp.int32)[:, None], axis=1)
        return {
            "right": right.all(),
            "letters": jnp.sum(right & counts) / jnp.sum(counts),
            "own_logprob": jnp.sum(logprobs[:, 0] * counts),
        }


class CipherAnswers(Measurement):
    """Answers to lines of held-out texts and to trained lines. For the family `ciphers` on a `cipher-stream`.

    `input_logprob` and `output_logprob` are log-probabilities of the input and of the right answer in the stream's language.
    """

    kind: Literal["cipher-answers"] = "cipher-answers"
    combinations: PositiveInt = 4096
    """The largest number of lines of held-out texts."""
    trained: PositiveInt = 256
    """The largest number of trained lines with the common shift, and with other shifts, in each direction."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *(
            f"{way}_{shift}{region}"
            for way in (DECODE, ENCODE)
            for shift in ("common", "rare")
            for region in ("", "_in")
        ),
        "nats_for_order",
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support = setting.config, setting.support
        if not (isinstance(config.family, Ciphers) and isinstance(support, StreamSupport)):
            raise BadInput(
                f"cipher-answers needs lines of ciphers; this run has {config.family.kind!r} on "
                f"{config.support.kind!r}.",
                fix="family=ciphers with support=cipher-stream",
            )
        assert isinstance(config.space, ProductSpace)
        assert isinstance(config.objective, NextToken)
        regions = {
            "held_out": setting.regions.require("held_out", self.combinations, "test"),
            "trained": trained_lines(config.space, support, self.trained),
        }
        tables = []
        for region, rows in regions.items():
            answered = over_tasks(
                LineTask(config.objective), setting, network, rows, Stream.TEST, f"{self.kind} {region}", BATCH
            )
            scores = {name: values.astype(float).tolist() for name, values in answered.items()}
            tables.append({"region": [region] * len(rows), **described(config.space, support, rows), **scores})
        columns = {name: [value for table in tables for value in table[name]] for name in tables[0]}
        return Measured(_summary(columns), columns)


def trained_lines(space: ProductSpace, support: StreamSupport, most: int) -> Int[np.ndarray, "n slots"]:
    """The first `most` trained lines with the common shift, and with other shifts, in each direction."""
    kinds, _ = texts_of(space, support.rows)
    way, shift = ways_and_shifts(space, kinds)
    chosen = [
        np.flatnonzero((way == direction) & ((shift == support.common) == common))[:most]
        for direction in (DECODE, ENCODE)
        for common in (True, False)
    ]
    return support.rows[np.concatenate(chosen)]


def ways_and_shifts(space: ProductSpace, kinds: Int[np.ndarray, " n"]) -> tuple[np.ndarray, Int[np.ndarray, " n"]]:
    """The direction of lines of these kinds (text, decode, encode), and their shift; 0 for texts."""
    shifts = space.levels[1] - 1
    way = np.where(kinds == 0, TEXT, np.where(kinds <= shifts, DECODE, ENCODE))
    return way, np.where(kinds == 0, 0, (kinds - 1) % shifts + 1)


def described(space: ProductSpace, support: StreamSupport, rows: Int[np.ndarray, "n slots"]) -> dict[str, list[Any]]:
    """The columns of the table that do not depend on the network."""
    kinds, plain = texts_of(space, rows)
    way, shift = ways_and_shifts(space, kinds)
    moved = (plain + shift[:, None]) % space.levels[1]
    of_plain, of_moved = (support.language.log_probability(texts) for texts in (plain, moved))
    input_logprob = np.select([way == DECODE, way == ENCODE], [of_moved, of_plain], np.nan)
    output_logprob = np.where(way == ENCODE, of_moved, of_plain)
    known = {
        text.tobytes(): (level, number)
        for level, texts in zip(LEVELS, support.graded.astype(np.int64), strict=True)
        for number, text in enumerate(texts)
    }
    names = [known.get(text.tobytes(), ("", -1)) for text in np.ascontiguousarray(plain)]
    return {
        "way": way.tolist(),
        "shift": shift.tolist(),
        "common": (shift == support.common).tolist(),
        "level": [level for level, _ in names],
        "text": [f"{level} {number}" if level else "" for level, number in names],
        "input_logprob": input_logprob.tolist(),
        "output_logprob": output_logprob.tolist(),
    }


def _summary(columns: dict[str, list[Any]]) -> dict[str, float]:
    """Exact match by direction and shift, on held-out texts and trained lines; the network's preference among texts."""
    region, way, level = (np.array(columns[name]) for name in ("region", "way", "level"))
    common, right = np.array(columns["common"]), np.array(columns["right"])
    summary: dict[str, float] = {}
    for where, suffix in (("held_out", ""), ("trained", "_in")):
        for direction in (DECODE, ENCODE):
            for name, chosen in (("common", common), ("rare", ~common)):
                lines = (region == where) & (way == direction) & chosen
                summary[f"{direction}_{name}{suffix}"] = _mean(right[lines])
    own, texts = np.array(columns["own_logprob"]), way == TEXT
    likely, unlikely = (_mean(own[texts & (level == name)]) for name in LEVELS[:2])
    return summary | {"nats_for_order": likely - unlikely}


def _mean(values: Float[np.ndarray, " n"]) -> float:
    return float(values.mean()) if len(values) else float("nan")
