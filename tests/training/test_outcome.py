"""A run that ended shows itself and can be measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.training.config import RunConfig
from recombine.training.outcome import Outcome
from recombine.training.trainer import train


@pytest.fixture(scope="module")
def run(tiny: Callable[..., RunConfig]) -> Outcome:
    return train(tiny(), quiet=True)


def test_a_run_shows_its_settings_scores_and_time(run: Outcome):
    text = repr(run)
    assert len(text.splitlines()) <= 20
    assert text.startswith(f"run {run.config.run_id}: 30 steps in ")
    for words in ("MLP(width=8, depth=2)", "Random(number=12)", "eval_every", "held out (validation)", "loss"):
        assert words in text
    assert f"{run.curves[-1]['score_held_out']:.3f} held out" in text
    html = run._repr_html_()
    assert "<table>" in html and "MLP(width=8, depth=2)" in html
    failed = dataclasses.replace(run, failed_at=7, curves=[])
    assert repr(failed).startswith(f"run {run.config.run_id}: failed at step 7")


def test_a_run_is_measured_by_one_call(run: Outcome):
    assert run.measure(Scores()).summary == Scores().measure(run.setting, run.network).summary


def test_configurations_show_what_is_not_the_default(tiny: Callable[..., RunConfig]):
    assert repr(MLP()) == "MLP()" and repr(MLP(width=8)) == "MLP(width=8)"
    assert repr(RunConfig()) == "RunConfig()"
    assert "recipe=Paper(learning_rate=0.01, steps=30, tasks=8, samples=4)" in repr(tiny())
