"""What a network answers where letters are shifted: right or not, by shift, way, and how probable texts are in the stream."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.ciphers import Ciphers
from recombine.families.vocabulary import PAD
from recombine.language.drawn import LEVELS
from recombine.models.base import Network
from recombine.objectives.next_token import NextToken
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.spaces.product import ProductSpace
from recombine.supports.cipher_stream import DECODE, ENCODE, TEXT, StreamSupport, texts_of
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

COLUMNS = (
    "region",
    "way",
    "shift",
    "common",
    "level",
    "text",
    "input_logprob",
    "output_logprob",
    "right",
    "letters",
    "own_logprob",
)

BATCH = 256
"""Lines that are answered at a time."""


@dataclasses.dataclass(frozen=True)
class Answered:
    """One line: whether the network's own answer is right, and the log-probability that it gives the right one. Hashable, so
    that runs with equal parts share one compiled program."""

    objective: NextToken

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        codes, batches = jax.tree.map(lambda leaf: leaf[None], (code, batch))
        wanted = batches.targets[0, 0]
        counts = wanted != PAD
        right = (self.objective.evaluate(network, codes, batches, key)[0, 0] == wanted) | ~counts
        # All places, whatever training was cut to.
        whole = self.objective.model_copy(update={"prompts": 0, "answers": 0, "groups": 0})
        expected = whole.predict(network, codes, batches, key).reshape(*wanted.shape, -1)
        told = jnp.take_along_axis(jax.nn.log_softmax(expected), wanted.astype(jnp.int32)[:, None], axis=1)
        return {
            "right": right.all(),
            "letters": jnp.sum(right & counts) / jnp.sum(counts),
            "own_logprob": jnp.sum(told[:, 0] * counts),
        }


class CipherAnswers(Measurement):
    """Lines of held-out texts, of every kind, and lines that were trained on. For `ciphers` on a `cipher-stream`.

    Log-probabilities are those of the stream's own language: of what is given, and of what is to be said.
    """

    kind: Literal["cipher-answers"] = "cipher-answers"
    combinations: PositiveInt = 4096
    """The most lines of held-out texts."""
    trained: PositiveInt = 256
    """The most lines that were trained on: so many with the common shift and so many with others, of each way."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config, support = setting.config, setting.support
        if not (isinstance(config.family, Ciphers) and isinstance(support, StreamSupport)):
            raise BadInput(
                f"Only lines of ciphers are decoded and encoded; this run has {config.family.kind!r} on "
                f"{config.support.kind!r}.",
                fix="family=ciphers with support=cipher-stream",
            )
        assert isinstance(config.space, ProductSpace)
        assert isinstance(config.objective, NextToken)
        parts = {
            "held_out": setting.regions.require("held_out", self.combinations, "test"),
            "trained": trained_lines(config.space, support, self.trained),
        }
        tables = []
        for region, rows in parts.items():
            found = over_tasks(
                Answered(config.objective),
                setting,
                network,
                rows,
                Stream.TEST,
                f"{self.kind} {region}",
                BATCH,
            )
            own = {name: values.astype(float).tolist() for name, values in found.items()}
            tables.append({"region": [region] * len(rows), **described(config.space, support, rows), **own})
        columns = {name: [one for table in tables for one in table[name]] for name in COLUMNS}
        return Measured(_summary(columns), columns)


def trained_lines(space: ProductSpace, support: StreamSupport, most: int) -> Int[np.ndarray, "n slots"]:
    """Of each way, lines of the stream with the common shift and with others: the first so many of each."""
    kinds, _ = texts_of(space, support.rows)
    way, shift = ways_and_shifts(space, kinds)
    chosen = [
        np.flatnonzero((way == one) & ((shift == support.common) == common))[:most]
        for one in (DECODE, ENCODE)
        for common in (True, False)
    ]
    return support.rows[np.concatenate(chosen)]


def ways_and_shifts(
    space: ProductSpace, kinds: Int[np.ndarray, " n"]
) -> tuple[np.ndarray, Int[np.ndarray, " n"]]:
    """What is done in lines of these kinds, and by which shift: 0 in texts."""
    shifts = space.levels[1] - 1
    way = np.where(kinds == 0, TEXT, np.where(kinds <= shifts, DECODE, ENCODE))
    return way, np.where(kinds == 0, 0, (kinds - 1) % shifts + 1)


def described(
    space: ProductSpace, support: StreamSupport, rows: Int[np.ndarray, "n slots"]
) -> dict[str, list[Any]]:
    """All that is known of lines before they are answered."""
    kinds, plain = texts_of(space, rows)
    way, shift = ways_and_shifts(space, kinds)
    moved = (plain + shift[:, None]) % space.levels[1]
    told = {name: support.language.log_probability(one) for name, one in (("plain", plain), ("moved", moved))}
    given = np.select([way == DECODE, way == ENCODE], [told["moved"], told["plain"]], np.nan)
    said = np.where(way == ENCODE, told["moved"], told["plain"])
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
        "input_logprob": given.tolist(),
        "output_logprob": said.tolist(),
    }


def _summary(columns: dict[str, list[Any]]) -> dict[str, float]:
    """Exact match by way and shift, of held-out texts and of trained lines; the network's preference among texts."""
    region, way, level = (np.array(columns[name]) for name in ("region", "way", "level"))
    common, right = np.array(columns["common"]), np.array(columns["right"])
    found: dict[str, float] = {}
    for where, suffix in (("held_out", ""), ("trained", "_in")):
        for one in (DECODE, ENCODE):
            for name, chosen in (("common", common), ("rare", ~common)):
                found[f"{one}_{name}{suffix}"] = _mean(right[(region == where) & (way == one) & chosen])
    own, texts = np.array(columns["own_logprob"]), way == TEXT
    found["nats_for_order"] = _mean(own[texts & (level == LEVELS[0])]) - _mean(
        own[texts & (level == LEVELS[1])]
    )
    return found


def _mean(values: Float[np.ndarray, " n"]) -> float:
    return float(values.mean()) if len(values) else float("nan")
