"""depth-or-width: shapes with equally many weights, steps with equal compute, and effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.depth_or_width import DepthOrWidth
from recombine.studies.routes.steps import by_steps
from recombine.training import Setting
from recombine.training.flops import step_flops, weight_count

World = Callable[..., Tables]


@pytest.fixture(scope="module")
def small() -> DepthOrWidth:
    return apply(DepthOrWidth.profile("smoke"), ["first_seed=0", "replicates=6"])


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Depth helps composed chains, the more the longer they are. `gain` is what depth adds everywhere; `helps=False`: nowhere."""

    def make(study: DepthOrWidth, helps: bool = True, gain: float = 0.0) -> Tables:
        draw = np.random.default_rng(0)

        def level(labels: dict[str, Any]) -> int:
            return [own[0] for own in study.shapes].index(labels["layers"])

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            if labels["arm"] == "hyperteacher":
                values = {"r2_in": 0.95, "r2_held_out": 0.6 + 0.2 * (labels["depth"] == study.mlp_shapes[1][0])}
                return values | {"weights": 1000.0, "training_flops": 5.0}
            memory = labels["arm"] == "memory"
            fitted = 0.7 if memory else 0.97
            return {
                "accuracy_in": fitted - abs(0.01 * draw.standard_normal()),
                "accuracy_held_out": 1 / study.values + 0.01 * draw.standard_normal(),
                "weights": 1000.0 + level(labels),
                "training_flops": 1e6,
            }

        def right(labels: dict[str, Any], steps: int) -> float:
            if labels["arm"] == "last" or not helps:
                return 0.9
            height = (0.3, 0.9, 0.6)[level(labels)] + (0.05 if labels["arm"] == "shared" else 0)
            return height if steps > 2 else 0.9

        def combinations(labels: dict[str, Any]) -> pd.DataFrame:
            if labels["arm"] == "hyperteacher":
                return pd.DataFrame()
            rows = []
            for steps in range(1, 7):
                share = right(labels, steps) + gain * level(labels) + 0.005 * draw.standard_normal()
                names = " ".join("0" * (steps + 1))
                rows.append({"region": "held_out", "combination": names, "whole": share})
                rows.append({"region": "trained", "combination": names, "whole": 0.0})
            return pd.DataFrame(rows)

        return made(study, score, combinations=combinations)

    return make


@pytest.mark.parametrize("name", ["laptop", "paper"])
def test_shapes_have_equally_many_weights(name: str) -> None:
    for arm in ("chains", "hyperteacher"):
        counts = [
            weight_count(Setting(own[0]).network_shapes())
            for own in DepthOrWidth.profile(name).design.arms[arm].configs
        ]
        middle = (max(counts) + min(counts)) / 2
        assert max(counts) <= 1.02 * middle, counts


def test_equal_compute_is_equal() -> None:
    arm = DepthOrWidth.profile("laptop").design.arms["equal_compute"]
    costs = [step_flops(own[0]) * own[0].recipe.steps for own in arm.configs]
    assert max(costs) / min(costs) < 1.01


def test_replicates_and_steps() -> None:
    study = DepthOrWidth.profile("laptop")
    assert study.replicates >= 8 and study.first_seed >= 1000
    longer, chains = (study.design.arms[name] for name in ("longer", "chains"))
    assert longer.configs[0][0].recipe.steps == study.longer * chains.configs[0][0].recipe.steps
    shared = study.design.arms["shared"].configs[0][0]
    assert shared.replace(repeats=1) == chains.configs[0][0], "they differ in nothing else"


def test_accuracy_is_read_by_the_number_of_steps(small: DepthOrWidth, world: World) -> None:
    tables = small.design.data(world(small))["chains"]
    table = by_steps(tables).merge(tables.runs[["run", "layers"]], on="run").groupby("layers").mean(numeric_only=True)
    first, last = table.iloc[0], table.iloc[-1]
    assert first["steps_2"] == pytest.approx(0.9, abs=0.05) and first["steps_5"] == pytest.approx(0.3, abs=0.05)
    assert first["composed"] == pytest.approx((first["steps_4"] + first["steps_5"]) / 2)
    assert last["composed"] == pytest.approx(0.6, abs=0.05)


def test_verdicts_where_depth_helps(small: DepthOrWidth, world: World, words: Any) -> None:
    found = words(small, world(small))
    holds = {name for name, verdict in found.items() if verdict == "supported"}
    wanted = {
        "depth-helps-composition",
        "depth-helps-nesting",
        "more-steps-need-more-depth",
        "too-thin-hurts",
        "thin-beats-wide",
    }
    wanted |= {"depth-helps-at-equal-compute", "longer-training-does-not-replace-depth", "depth-helps-hyperteacher"}
    wanted |= {"random-answers-stay-at-chance", "depth-does-not-help-memory"}
    assert wanted <= holds, {name: found[name] for name in wanted - holds}
    assert found["one-step-needs-no-depth"] == "equivalent"


def test_a_gain_everywhere_is_no_gain_of_composition(small: DepthOrWidth, world: World, effects: Any) -> None:
    """Depth that helps every task alike says nothing about composed stages."""
    found = effects(small, world(small, helps=False, gain=0.03))
    assert np.abs(found["depth-helps-composition"][0]).max() < 0.03
    plain = effects(small, world(small, helps=False))
    assert np.abs(plain["depth-helps-composition"]).max() < 0.2


def test_bad_input(small: DepthOrWidth) -> None:
    with pytest.raises(BadInput, match="must be the layers of a shape between"):
        apply(small, ["deep=7"])
    with pytest.raises(BadInput, match="rising numbers of layers"):
        apply(small, ["shapes=[[2,16,0.1,5],[1,16,0.1,5],[3,8,0.1,5]]"])
