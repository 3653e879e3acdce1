"""recursion: arms that differ in one thing, equal weights and compute, and effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.recursion import SAME_SIZE, VARIANTS, Recursion
from recombine.training import Setting
from recombine.training.flops import step_flops, weight_count

World = Callable[..., Tables]
HEIGHTS = {"recursive": 0.9, "one_step": 0.7, "shallow": 0.6, "answer_only": 0.7, "hierarchy": 0.88, "one_pass": 0.4}


@pytest.fixture(scope="module")
def small() -> Recursion:
    return apply(Recursion.profile("laptop"), ["first_seed=0", "replicates=6"])


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """`heights` are the accuracies of arms on held-out puzzles, `first` is the share of them after one outer step."""

    def make(study: Recursion, first: float = 0.7, told: float = 0.02, **heights: float) -> Tables:
        draw, levels = np.random.default_rng(0), {"scaled": 0.5, **HEIGHTS, **heights}

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            name = labels["arm"].removeprefix("mazes_")
            height = levels.get(name, 0.9) + 0.005 * draw.standard_normal()
            return {
                "accuracy_in": height + 0.02,
                "accuracy_held_out": height,
                "accuracy_first": first * height,
                "accuracy_last": height,
                "accuracy_beyond": height + 0.002,
                "accuracy_halted": height - 0.004,
                "steps_halted": 2.5 + 0.1 * draw.standard_normal(),
                "identifier_own": 0.9 + 0.01 * draw.standard_normal(),
                "identifier_other": told if name == "puzzles" else 0.9,
                "weights": 4000.0 if name == "scaled" else 1000.0,
                "training_flops": 1e9 if name in ("recursive", "scaled") else 5e8,
            }

        return made(study, score, outer_steps=pd.DataFrame({"run": pd.Series(dtype="object")}))

    return make


@pytest.mark.parametrize("name", ["laptop", "paper"])
def test_equal_weights(name: str) -> None:
    arms = {own: arm.configs[0][0] for own, arm in Recursion.profile(name).design.arms.items()}
    counts = [weight_count(Setting(arms[own]).network_shapes()) for own in SAME_SIZE]
    assert len(set(counts)) == 1 < weight_count(Setting(arms["scaled"]).network_shapes()) / counts[0]


def test_equal_compute() -> None:
    arms = {own: arm.configs[0][0] for own, arm in Recursion.profile("laptop").design.arms.items()}
    costs = [step_flops(arms[own]) * arms[own].recipe.steps for own in ("recursive", "scaled")]
    assert max(costs) / min(costs) < 1.02


@pytest.mark.parametrize("name", ["laptop", "workstation", "paper"])
def test_layers_of_the_scaled_network_follow_from_the_recursion(name: str) -> None:
    """(n + 1) T applications forward and (n + 1) backward, which cost twice as much, against one pass of all three."""
    study = Recursion.profile(name)
    for run in (study.base, study.mazes):
        model = run.model  # type: ignore[union-attr]
        layers = model.layers * (model.updates + 1) * (model.cycles + 2) / 3  # type: ignore[attr-defined]
        assert abs(study.scaled_layers - layers) < 0.5


def test_arms_differ_in_one_thing() -> None:
    study = Recursion.profile("laptop")
    arms = {own: arm.configs[0][0] for own, arm in study.design.arms.items()}
    assert study.replicates >= 8 and study.first_seed >= 1000 and set(VARIANTS) < set(arms)
    changes = {"one_step": {"gradient": "cycle"}, "answer_only": {"states": 2}, "hierarchy": {"networks": 1}}
    for own, change in changes.items():
        assert arms[own].replace(model=arms[own].model.replace(**change)) == arms["recursive"]
    recursive = arms["recursive"].model
    once = arms["one_pass"].model
    assert recursive.reuse() > 1 == once.reuse() and once.steps == 1  # type: ignore[attr-defined]
    assert len({arms[own].recipe.steps for own in VARIANTS}) == 1


def test_verdicts_where_recursion_helps(small: Recursion, world: World, words: Any) -> None:
    found = words(small, world(small))
    holds = {name for name, verdict in found.items() if verdict == "supported"}
    wanted = {
        "recursion-drives-the-gain",
        "recursion-beats-one-pass",
        "recursion-beats-scale",
        "hierarchy-adds-nothing",
    }
    wanted |= {"latent-state-helps", "full-gradient-beats-one-step", "updates-help", "outer-steps-help"}
    wanted |= {
        "first-step-does-most",
        "halting-saves-steps",
        "recursion-beats-scale-mazes",
        "wrong-identifier-destroys",
    }
    assert wanted <= holds, {name: found[name] for name in wanted - holds}
    assert found["one-rule-needs-no-identifier"] == "equivalent"
    assert found["steps-beyond-training-help"] != "supported"


@pytest.mark.parametrize(
    "heights, lost",
    [
        ({"scaled": 0.9}, {"recursion-drives-the-gain", "recursion-beats-scale"}),
        ({"recursive": 0.6, "hierarchy": 0.95}, {"recursion-drives-the-gain", "hierarchy-adds-nothing"}),
        ({"answer_only": 0.9}, {"latent-state-helps"}),
        ({"first": 0.3}, {"first-step-does-most"}),
        ({"told": 0.5}, {"wrong-identifier-destroys"}),
    ],
)
def test_rivals_that_explain_the_gain(
    small: Recursion, world: World, effects: Any, words: Any, heights: dict[str, float], lost: set[str]
) -> None:
    tables = world(small, **heights)
    found = words(small, tables)
    assert not {name for name in lost if found[name] == "supported"}
    computed = effects(small, tables)
    if "scaled" in heights:
        assert abs(computed["recursion-beats-scale"][0].mean()) < 0.02
        np.testing.assert_allclose(
            computed["recursion-drives-the-gain"][0], computed["recursion-beats-scale"][0], atol=0.05
        )


def test_figures_of_made_tables(small: Recursion, world: World) -> None:
    tables = world(small)
    steps = [
        pd.DataFrame({"run": config.run_id, "step": range(1, 5), "accuracy": 0.2 * np.arange(1, 5)})
        for config, _ in small.design.runs
    ]
    frames = {"runs": tables.runs, "outer-steps": pd.concat(steps).drop_duplicates(["run", "step"])}
    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in small.design.runs])
    frames["runs"] = frames["runs"].drop(columns=[name for name in labels if name != "run"]).drop_duplicates("run")
    names = [figure.name for figure in small.design.figures(Tables.from_frames(labels, frames))]
    assert names == ["by_network", "by_outer_step", "by_compute", "mazes", "identifiers"]


def test_bad_input() -> None:
    small = Recursion.profile("smoke")
    with pytest.raises(BadInput, match="must be a recursive model that is trained with deep supervision"):
        apply(small, ["base.model=mlp", "base.objective=classification"])
    with pytest.raises(BadInput, match="one network of an even number of layers"):
        apply(small, ["base.model.layers=3"])
    with pytest.raises(BadInput, match="with 'recursive', got one_pass"):
        apply(small, ["variants=one_pass,"])
    assert not {"mazes_recursive", "puzzles"} & set(small.design.arms)
    asked = {claim.name for claim in small.design.claims}
    assert "recursion-drives-the-gain" in asked and not {"fits-mazes", "wrong-identifier-destroys"} & asked
