"""Pairs of input and output texts from a table with a split: COGS, PCFG SET, CFQ, SCAN from disk, or your own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
from jaxtyping import Array, Int
from pydantic import model_validator

from recombine.component import ChangedFields
from recombine.errors import BadInput
from recombine.families.base import Task
from recombine.families.sequences import SequenceFamily, SequenceTeacher
from recombine.language.pair_table import Pairs as Table, PairSource, Units, file_hash
from recombine.language.vocabulary import END, Vocabulary, padded
from recombine.spaces.base import Space
from recombine.spaces.pairs import PairSpace


class PairsTeacher(SequenceTeacher):
    """The pairs as tokens. Nothing is random: all replicates have the same tasks."""

    questions: Int[Array, "pair word"]
    answers: Int[Array, "pair token"]
    base: int
    width: int

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        return Task.unweighted(row, self.width)

    def _number(self, row: Int[Array, " slots"]) -> Int[Array, ""]:
        return row[0] * self.base + row[1] - self.base

    def prompt(self, task: Task) -> Int[Array, " word"]:
        return self.questions[self._number(task.combination)]

    def answer(self, task: Task) -> Int[Array, " token"]:
        return self.answers[self._number(task.combination)]


class Pairs(SequenceFamily):
    """Input and output texts of a table, one pair per row, with a column that says what is trained on.

    The hash of the file is part of the configuration, so a run means one content; a changed file is refused. Without
    a table the family has 32 pairs of its own, as an example.
    """

    kind: Literal["pairs"] = "pairs"
    defaults: ClassVar[Mapping[str, Any]] = {**SequenceFamily.defaults, "space": "pairs", "support": "table-split"}
    table: str = ""
    """The file: TSV, CSV or JSON Lines, with a row for each pair."""
    sha256: str = ""
    """The hash of the file. It is computed where it is not given."""
    input: str = "input"
    """The column of inputs."""
    output: str = "output"
    """The column of outputs."""
    split: str = "split"
    """The column that says to which split a pair belongs."""
    category: str = ""
    """The column of categories, by which scores are reported; none by default."""
    parse: str = ""
    """The column of parses of the inputs, such as `(S (NP (D a) (N cat)) (VP ran))`: compounds follow it. By default
    compounds are neighbouring words."""
    units: Units = "words"
    """What texts consist of: words between spaces, or characters."""

    @model_validator(mode="before")
    @classmethod
    def _hashed(cls, given: Any) -> Any:
        """Fill in the hash of the file where none is given, or where the file is another than before."""
        if isinstance(given, dict) and given.get("table"):
            path = str(Path(str(given["table"])))
            known = given.get("sha256")
            if isinstance(given, ChangedFields) and getattr(given.component, "table", path) != path:
                known = None  # The hash is that of the file before the change.
            return {**given, "table": path, "sha256": known or file_hash(path)}
        return given

    def meaning(self) -> dict[str, Any]:
        """The configuration without the path of the file: its hash says what is in it."""
        return {name: value for name, value in super().meaning().items() if name != "table"}

    @property
    def source(self) -> PairSource:
        """The file and its columns."""
        return PairSource(**{name: getattr(self, name) for name in PairSource.__dataclass_fields__})

    @property
    def pairs(self) -> Table:
        """The pairs."""
        return self.source.pairs()

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The space is always that of the family's table."""
        space = given.get("space", self.kind)
        own = space == self.kind or getattr(space, "kind", None) == self.kind
        own = own or (isinstance(space, Mapping) and space.get("kind") == self.kind)
        return {**given, "space": self.own_space()} if own else given

    def own_space(self) -> PairSpace:
        """The space of the table's pairs."""
        return PairSpace(source=tuple(dataclasses.asdict(self.source).items()))

    def check(self, space: Space) -> None:
        if not isinstance(space, PairSpace) or space.of != self.source:
            raise BadInput(
                f"The family 'pairs' needs the space of its table, got {space.title}.",
                fix="space=pairs, or leave it out",
            )

    @functools.cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(tuple(sorted({*self.pairs.input_words, *self.pairs.output_words})))

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def longest_prompt(self) -> int:
        return max(map(len, self.pairs.inputs))

    @property
    def longest_answer(self) -> int:
        return 1 + max(map(len, self.pairs.outputs))

    def draw(self, space: Space, key: Array) -> PairsTeacher:
        self.check(space)
        assert isinstance(space, PairSpace)
        words, pairs = self.vocabulary, self.pairs
        answers = [(*words.numbers(output), END) for output in pairs.outputs]
        return PairsTeacher(
            jnp.asarray(padded([words.numbers(text) for text in pairs.inputs], self.longest_prompt)),
            jnp.asarray(padded(answers, self.longest_answer)),
            base=space.base,
            width=space.width,
        )
