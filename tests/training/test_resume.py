"""A run that is killed goes on from its checkpoint and ends as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from recombine.errors import StoreError
from recombine.recipes.paper import Paper
from recombine.training.checkpoint import load_tree, save_tree
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting
from recombine.training.progress import Progress
from recombine.training.trainer import Trainer

Tiny = Callable[..., RunConfig]
Same = Callable[[Any, Any], bool]


class Killed(BaseException):
    """As Ctrl-C would be."""


class Bomb(Progress):
    """Goes off at the report after so many."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.steps: list[int] = []

    def stepped(self, steps: int, config: RunConfig, evaluation: dict[str, float]) -> None:
        self.steps.append(steps)
        if self.left == 0:
            raise Killed
        self.left -= 1


@pytest.fixture(autouse=True)
def _save_after_every_chunk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recombine.training.trainer.CHECKPOINT_SECONDS", -1.0)


@pytest.fixture
def resumed(trainer: Trainer) -> Callable[..., Trainer]:
    """A trainer as a new process would have it, but for what was compiled."""

    def make(folder: Path | None, progress: Progress | None = None) -> Trainer:
        made = Trainer(folder, progress)
        made.compiler = trainer.compiler
        return made

    return make


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_run_ends_as_an_undisturbed_one(
    after: int, tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer], same_run: Same
):
    config = tiny()
    (whole,) = resumed(None).train([config], stack_size=1)
    with pytest.raises(Killed):
        list(resumed(tmp_path, Bomb(after)).train([config], stack_size=1))
    assert files(tmp_path) == [f"{config.run_id}.safetensors"]
    quiet = Bomb(after=100)
    (outcome,) = resumed(tmp_path, quiet).train([config], stack_size=1)
    assert same_run(outcome, whole)
    assert quiet.steps == [10 * after, *[10] * (3 - after)], "what was done is reported, and not done again"


def test_a_stack_goes_on_though_some_of_it_had_ended(
    tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer], same_run: Same
):
    """The run of 12 steps had ended and is made again from step 10; the others go on from step 20."""
    lengths = (30, 12, 30)
    configs = [
        tiny(seeds=Seeds.replicate(number), recipe=Paper(learning_rate=0.01, steps=steps, tasks=8, samples=4))
        for number, steps in enumerate(lengths)
    ]
    whole = list(resumed(None).train(configs, stack_size=3))
    with pytest.raises(Killed):
        list(resumed(tmp_path, Bomb(6)).train(configs, stack_size=3))
    by_run = {outcome.config.run_id: outcome for outcome in resumed(tmp_path).train(configs, stack_size=3)}
    assert len(by_run) == 3
    for outcome in whole:
        assert same_run(by_run[outcome.config.run_id], outcome)


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "foreign"])
def test_a_damaged_checkpoint_costs_time_and_not_the_run(
    damage: str, tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer], same_run: Same
):
    config = tiny()
    (whole,) = resumed(None).train([config], stack_size=1)
    with pytest.raises(Killed):
        list(resumed(tmp_path, Bomb(1)).train([config], stack_size=1))
    (path,) = tmp_path.iterdir()
    sound = path.read_bytes()
    if damage == "foreign":
        save_tree(path, {"weights": jnp.zeros(3)})
    else:
        path.write_bytes({"empty": b"", "cut": sound[: len(sound) // 2], "noise": b"\xff" * 99}[damage])
    quiet = Bomb(after=100)
    (outcome,) = resumed(tmp_path, quiet).train([config], stack_size=1)
    assert same_run(outcome, whole)
    assert quiet.steps == [10, 10, 10]


def test_forgetting(tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer]):
    config = tiny()
    trainer = resumed(tmp_path)
    list(trainer.train([config], stack_size=1))
    assert len(files(tmp_path)) == 1
    trainer.forget(config)
    trainer.forget(config)
    assert files(tmp_path) == []
    resumed(None).forget(config)


def test_without_a_folder_nothing_is_written(tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer]):
    list(resumed(None).train([tiny()], stack_size=1))
    assert files(tmp_path) == []


def test_checkpoints_come_by_time(
    tiny: Tiny, tmp_path: Path, resumed: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("recombine.training.trainer.CHECKPOINT_SECONDS", 3600.0)
    list(resumed(tmp_path / "never").train([tiny()], stack_size=1))
    assert not (tmp_path / "never").exists()


def test_round_trip(tiny: Tiny, tmp_path: Path, same_bits: Same):
    state = Setting(tiny()).state()
    note = {"curves": [{"step": 3, "loss": float("nan")}], "seconds": 1.5}
    save_tree(tmp_path / "state.safetensors", state, note)
    assert files(tmp_path) == ["state.safetensors"], "no part of it is left behind"
    other = Setting(tiny(seeds=Seeds.replicate(1))).state()
    found, again = load_tree(tmp_path / "state.safetensors", other)
    assert same_bits(found, state)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    assert again["seconds"] == 1.5
    assert again["curves"][0]["step"] == 3


def test_replacing_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A process that dies while it writes leaves the file before it."""
    path = tmp_path / "state.safetensors"
    save_tree(path, {"a": jnp.zeros(2)})

    def die(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("recombine.training.checkpoint.os.fsync", die)
    with pytest.raises(OSError, match="no space"):
        save_tree(path, {"a": jnp.ones(2)})
    assert files(tmp_path) == ["state.safetensors"]
    assert not load_tree(path, {"a": jnp.ones(2)})[0]["a"].any()


@pytest.mark.parametrize(
    "like",
    [
        {"a": jnp.zeros(3)},
        {"a": jnp.zeros((2, 1))},
        {"a": jnp.zeros(2, jnp.int32)},
        {"b": jnp.zeros(2)},
        {"a": jnp.zeros(2), "b": jnp.zeros(2)},
        {},
    ],
)
def test_other_shapes_types_and_places_are_refused(like: dict[str, Any], tmp_path: Path):
    save_tree(tmp_path / "it", {"a": jnp.zeros(2)})
    with pytest.raises(StoreError, match="it"):
        load_tree(tmp_path / "it", like)


def test_a_missing_file_is_a_store_error(tmp_path: Path):
    with pytest.raises(StoreError, match="cannot be read"):
        load_tree(tmp_path / "nothing", {"a": jnp.zeros(2)})
