"""The estimated time: what is left, times what it took on this machine."""

from __future__ import annotations

import pytest

from recombine.engines import time_estimate
from recombine.engines.local import LocalEngine
from recombine.engines.time_estimate import GUESSES, estimate
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.training import timings as module
from recombine.training.estimate import Estimate
from recombine.training.flops import step_flops
from recombine.training.program import Program
from recombine.training.progress import _Clock
from recombine.training.timings import Timings, names_of, program_key

SCORES = Scores()


@pytest.fixture
def known(tmp_path, monkeypatch):
    """The times of a machine that did nothing yet."""
    times = Timings(tmp_path / "cache")
    monkeypatch.setattr(time_estimate, "_corrections", {})
    monkeypatch.setattr(time_estimate, "timings", lambda: times)
    monkeypatch.setattr("recombine.training.trainer.timings", lambda: times)
    monkeypatch.setattr("recombine.engines.local.timings", lambda: times)
    monkeypatch.setattr(time_estimate, "machine_flops", lambda: 1e9)
    return times


def note(known, what, config, seconds, **more):
    known.note(names_of(what, program_key(Program.of(config), config), config, **more), seconds)


def test_compiling_training_and_measuring_each_count(known, small):
    runs = [small(12, seed=seed) for seed in range(3)] + [small(12, model=MLP(width=16, depth=1))]
    first = estimate(None, runs, [SCORES])
    assert first.compiling == 2 * GUESSES["start cold"] and (first.new_programs, first.kept_programs) == (2, 0)
    assert first.measuring == 2 * GUESSES["measure cold"] + 2 * GUESSES["measure again"]
    assert first.guessed_programs == 2 and "no run of this kind of model was timed" in first.basis
    note(known, "start cold", runs[0], 40.0)
    note(known, "start warm", runs[0], 5.0)
    note(known, "start again", runs[0], 1.0)
    known.note([names_of("step", program_key(Program.of(runs[0]), runs[0]), runs[0])[0]], 0.5)
    note(known, "measure cold", runs[0], 7.0, detail=SCORES.name)
    note(known, "measure again", runs[0], 2.0, detail=SCORES.name)
    later = estimate(None, runs[:3], [SCORES])
    # On disk: loaded, not compiled. Three runs of 30 steps, two of them prepared without compiling.
    assert later.compiling == 5 and (later.new_programs, later.kept_programs) == (0, 1)
    assert later.training == 3 * 30 * 0.5 + 2 * 1.0
    assert later.measuring == GUESSES["measure warm"] + 2 * 2.0
    assert later.seconds == later.compiling + later.training + later.measuring
    assert later.basis == "times measured on this machine"
    # Another width of the same kind of model takes as long to compile as that kind does.
    assert estimate(None, [runs[3]]).compiling == 40


def test_steps_of_another_size_take_as_long_as_their_operations(known, small):
    from recombine.training.estimate import flops_per_step

    one, wide = small(12), small(12, model=MLP(width=64, depth=1))
    exact, *alike = names_of("step", program_key(Program.of(one), one), one)
    known.note(alike[:-1], 1e-9)
    assert estimate(None, [wide]).training == pytest.approx(30 * 1e-9 * flops_per_step(wide))
    assert exact not in alike


def test_a_convolution_is_counted_by_the_compiler(known):
    from recombine.training.config import RunConfig

    config = RunConfig.model_validate({"family": "sprites", "model": {"kind": "convnet"}})
    expected = step_flops(config) * config.recipe.steps / 1e9
    assert estimate(None, [config]).training == pytest.approx(expected, rel=1e-6)


def test_what_is_stored_takes_no_time_and_what_was_done_is_noted(known, store, small, fresh_programs):
    runs = [small(12, seed=seed) for seed in range(2)]
    LocalEngine().run(store, runs, [SCORES])
    assert estimate(store, runs, [SCORES]).seconds == 0
    only_scores = estimate(store, runs, [Scores(draws=2)])
    assert only_scores.compiling == only_scores.training == 0 < only_scores.measuring
    key = program_key(Program.of(runs[0]), runs[0])
    assert known.knows(f"step||{key}") and known.knows(f"start again||{key}")
    assert known.knows(f"start cold||{key}") or known.knows(f"start warm||{key}")
    again = estimate(None, runs, [SCORES])
    assert again.kept_programs == 1 and again.guessed_programs == 0
    assert (known._path).exists(), "kept for the next process"


def test_networks_that_are_not_trained_need_no_program(known, small):
    from recombine.recipes.paper import Paper

    config = small(12, recipe=Paper(steps=0, tasks=8, samples=4))
    assert estimate(None, [config]).compiling == 0 == estimate(None, [config]).training


def test_other_versions_compile_anew(small, monkeypatch):
    config = small(12)
    before = program_key(Program.of(config), config)
    assert before == program_key(Program.of(small(20, seed=3)), small(20, seed=3)), "one bucket"
    assert before != program_key(
        Program.of(small(12, family=Hyperteacher(hidden=5))), small(family=Hyperteacher(hidden=5))
    )
    monkeypatch.setattr(module.jax, "__version__", "99")
    assert before != program_key(Program.of(config), config)


def test_the_time_left_falls_with_what_is_done_and_learns_from_it(monkeypatch):
    now = 0.0
    monkeypatch.setattr("recombine.training.progress.time.monotonic", lambda: now)
    clock = _Clock(Estimate(20.0, 60.0, 20.0, 1, 0, 0, starts={"a": 20.0, "b": 0.0}, steps={"a": 0.3, "b": 0.3}))
    assert clock.left() == 100
    now = 20.0
    clock.stepped("a", 0)
    assert clock.left() == pytest.approx(80), "compiling counted, and took as long as estimated"
    now = 80.0  # 100 steps took twice their time.
    clock.stepped("a", 100)
    assert 50 < clock.left() < 100
    clock.left_out("b", 100)
    before = clock.left()
    now = 90.0
    clock.measured(1, 2)
    assert clock.left() < before
    clock.measured(2, 2)
    assert clock.left() == 0
