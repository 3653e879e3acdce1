"""Does a network that could compute an answer get it right because the answer, or the task, is probable?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import PositiveInt, model_validator

from recombine.families.ciphers import ALPHABET, LENGTH, Ciphers
from recombine.models.decoder import Decoder
from recombine.probes.base import Measurement
from recombine.probes.cipher_answers import CipherAnswers
from recombine.recipes.fast import Fast
from recombine.studies.base import Effect, Study, Tables
from recombine.studies.embers_claims import (
    CLAIMS,
    EVEN_SHIFTS,
    EVEN_TEXTS,
    ROTATED,
    SKEWED,
    answers,
    effects_of,
)
from recombine.supports.cipher_stream import CipherStream, cipher_space
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

FEWEST_LETTERS = 5
"""With fewer, every shift undoes the common one or is the common one."""


class Embers(Study):
    """Decoders of letters, trained on one stream: texts in a language of their own, and texts decoded and encoded by shifts.

    Every shift is in the stream and has one right answer. One shift is far more common than the others, and some
    texts are far more probable than others of the same letters. Which shift is common goes round over the replicates.
    """

    kind: Literal["embers"] = "embers"
    question: ClassVar[str] = (
        "Is a network right because it computes the answer, or because answer and task are probable?"
    )
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": {
                "family": {"kind": "ciphers", "alphabet": 5, "length": 4},
                "space": cipher_space(5, 4).model_dump(mode="json"),
                "support": {
                    "kind": "cipher-stream",
                    "words": 2,
                    "lexicon": 8,
                    "skew": 8,
                    "number": 400,
                    "reserve": 8,
                },
                "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
                "recipe": {"kind": "fast", "tasks": 16, "samples": 1, "steps": 8},
                "every": 8,
                "validation_tasks": 8,
            },
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "base": {
                "family": {"kind": "ciphers", "alphabet": 26, "length": 15},
                "space": cipher_space(26, 15).model_dump(mode="json"),
                "support": {
                    "kind": "cipher-stream",
                    "lexicon": 500,
                    "number": 500_000,
                    "reserve": 128,
                },
                "model": {"kind": "decoder", "width": 256, "layers": 6},
                "recipe": {"kind": "fast", "tasks": 256, "samples": 1, "steps": 4000},
                "every": 500,
                "validation_tasks": 128,
            },
            "combinations": 20_000,
            "replicates": 12,
        },
    }
    cells: ClassVar[tuple[str, ...]] = ("arm",)
    shown: ClassVar[tuple[str, ...]] = (
        "decode_common",
        "decode_rare",
        "encode_common",
        "encode_rare",
        "decode_rare_in",
        "nats_for_order",
    )

    base: RunConfig = RunConfig(
        family=Ciphers(),
        space=cipher_space(ALPHABET, LENGTH),
        support=CipherStream(),
        model=Decoder(width=96),
        recipe=Fast(tasks=96, samples=1, steps=400),
        every=100,
        validation_tasks=64,
    )
    """What all runs share, the recipe included; which shift is common, and how much, is set by the sweep."""
    combinations: PositiveInt = 4096
    """The most lines of held-out texts that are answered."""
    replicates: PositiveInt = 8
    """Independent replicates: language, texts, stream, initialisation and order of the data."""

    @model_validator(mode="after")
    def _lines(self) -> Self:
        family, support = self.base.family, self.base.support
        if not (isinstance(family, Ciphers) and isinstance(support, CipherStream)):
            raise ValueError(f"base is {family.kind} on {support.kind}: it must be ciphers on cipher-stream")
        if family.alphabet < FEWEST_LETTERS or support.skew == 1 or support.even_texts:
            raise ValueError(
                f"base has {family.alphabet} letters, skew={support.skew:g} and even_texts={support.even_texts}: it needs at least "
                f"{FEWEST_LETTERS} letters, and a skew; what is even is set by the sweep"
            )
        return self

    @property
    def alphabet(self) -> int:
        """How many letters there are."""
        assert isinstance(self.base.family, Ciphers)
        return self.base.family.alphabet

    def shifts(self, seed: int) -> tuple[int, int]:
        """The shift that is common in a replicate, and the one that is in its rotated arm.

        The second does not undo the first: decoding by the one would be encoding by the other, and so no rare task.
        """
        number = self.alphabet - 1
        common = 1 + seed % number
        others = (1 + (seed + step) % number for step in range(number // 2, 2 * number))
        return common, next(one for one in others if one not in (common, self.alphabet - common))

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        made = []
        for seed in self.seeds:
            common, other = self.shifts(seed)
            arms: dict[str, dict[str, Any]] = {
                SKEWED: {"common": common},
                ROTATED: {"common": other},
                EVEN_SHIFTS: {"common": common, "skew": 1.0},
                EVEN_TEXTS: {"common": common, "even_texts": True},
            }
            for arm, changes in arms.items():
                support = self.base.support.model_copy(update=changes)
                made.append((self.run(self.base, seed, support=support), {"arm": arm, "replicate": seed}))
        return made

    def measurements(self) -> list[Measurement]:
        return [CipherAnswers(combinations=self.combinations)]

    def answers(self, tables: Tables) -> pd.DataFrame:
        """One row an answer."""
        return answers(tables.others["cipher-answers"])

    def effects(self, tables: Tables) -> list[Effect]:
        shifts = {seed: self.shifts(seed) for seed in self.seeds}
        values = effects_of(self.answers(tables), self.seeds, shifts)
        return [Effect(claim, values[claim.name]) for claim in CLAIMS]

    def figures(self, tables: Tables) -> list[Figure]:
        from recombine.studies.embers_figures import figures

        return figures(self, tables)
