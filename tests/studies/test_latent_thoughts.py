"""latent-thoughts: arms that differ in one thing, equal weights and compute, and effects on tables whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.latent_thoughts import LatentThoughts
from recombine.training import Setting
from recombine.training.flops import step_flops, weight_count


def test_weights_and_compute_are_equal() -> None:
    """As the preconditions say, without a run."""
    arms = LatentThoughts.profile("laptop").design.arms
    main = arms["main"].configs[-1][0]
    cost = step_flops(main) * main.recipe.steps
    shapes = {name: Setting(arms[name].configs[0][0]).network_shapes() for name in ("plain", "whole")}
    own = weight_count(Setting(main).network_shapes())
    for network in shapes.values():
        assert abs(weight_count(network) - own) / (weight_count(network) + own) < 0.02
    for name in ("plain_longer", "plain_wider", "whole"):
        config = arms[name].configs[0][0]
        other = step_flops(config) * config.recipe.steps
        assert abs(other - cost) / (other + cost) < 0.1, name


def test_arms_differ_in_one_thing() -> None:
    arms = LatentThoughts.profile("laptop").design.arms
    main = arms["main"].configs[-1][0]
    assert main == arms["latents"].configs[-1][0] == arms["size"].configs[-1][0]
    control = arms["control_uniform"].configs[0][0]
    middle = arms["main"].configs[1][0]
    assert control.replace(concentration=main.family.concentration) == middle  # type: ignore[attr-defined]


@pytest.fixture
def tables(made: Any) -> Any:
    """Tables in which fast steps and latents are worth `gain` bits per token."""

    def make(study: LatentThoughts, gain: float) -> Any:
        draw = np.random.default_rng(0)

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            noise = 0.002 * draw.standard_normal()
            steps, width = labels.get("fast_steps", study.most), labels.get("width", study.widths[-1])
            bits = 3.6 + noise + 0.02 * (width == study.widths[0]) + 0.02 * (labels.get("latents") == study.latents[0])
            if not labels["arm"].startswith(("plain", "whole")):
                bits -= gain * (steps == study.most)
            if labels["arm"] == "whole":
                bits = 3.2 + noise
            moved = {"own": 3.1, "same": 3.2, "composed": 3.2, "topic": 3.3, "style": 3.3, "other": 3.3 + gain}
            return {
                "bits": bits,
                "bits_in": bits,
                "exact": 3.1,
                "exact_reach": 3.6,
                "exact_reach_in": 3.6,
                "excess": bits - 3.1,
                "excess_in": bits - 3.1,
                "gain_reach": -0.1 if labels["arm"] == "control_uniform" else 3.6 - bits,
                "gain_reach_in": 3.61 - bits,
                "divergence": 0.2 + noise,
                "bits_shuffled": bits + gain,
                "bits_longer": bits - 0.01 + noise,
                "bits_same_noise": bits - 0.1,
                "bits_fresh_noise": bits + 0.1 + noise,
                **{f"named_{factor}": 0.8 + noise for factor in ("topic", "style")},
                **{f"r2_{factor}": 0.6 + noise for factor in ("topic", "style")},
                **{f"r2_{factor}_untrained": 0.3 for factor in ("topic", "style")},
                "r2_random": 0.01 + noise,
                **{f"moved_{name}": value + noise for name, value in moved.items()},
                "moved_none": 3.9,
                "weights": 33_000.0,
                "training_flops": 1e11,
            }

        return made(study, score)

    return make


def test_verdicts(tables: Any, words: Any) -> None:
    study = apply(LatentThoughts.profile("laptop"), ["first_seed=0", "replicates=6"])
    found = words(study, tables(study, 0.3))
    assert set(found.values()) <= {"supported", "equivalent"}, found
    nothing = words(study, tables(study, 0.0))
    for claim in ("latents-help-at-equal-weights", "fast-steps-help", "shuffled-latents-hurt", "transfer-topic"):
        assert nothing[claim] != "supported", claim


def test_figures_can_be_drawn(tables: Any) -> None:
    study = apply(LatentThoughts.profile("laptop"), ["first_seed=0", "replicates=2"])
    figures = study.design.figures(tables(study, 0.3))
    assert [figure.name for figure in figures] == ["by_fast_steps", "by_compute", "by_network", "moved"]
    for figure in figures:
        figure.chart.to_dict()


def test_bad_input() -> None:
    with pytest.raises((BadInput, ValueError), match="fewest first"):
        apply(LatentThoughts.profile("smoke"), ["fast=[[4,0.3],[1,0.3]]"])
    with pytest.raises((BadInput, ValueError), match="latents must be at least 2 different sizes"):
        apply(LatentThoughts.profile("smoke"), ["latents=[2]"])
