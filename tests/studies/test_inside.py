"""inside: its runs and their parents, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import validate
from recombine.studies.inside import TELLS, Inside, specificity

TESTED = Inside.model_validate(
    Inside.profiles["smoke"] | {"replicates": 6, "widths": (8, 16), "first_seed": 0, "reserve": 60}
)


@pytest.fixture(scope="module")
def tables(made):
    """Tables in which tells follow a quality of each network, as strongly as `follows` says, and otherwise are noise."""

    def build(follows=None, held_out=1.0, random=0.0):
        follows = dict.fromkeys(TELLS, 0.9) if follows is None else follows

        def score(labels):
            names = {"taught": "number", "units": "width", "length": "steps"}
            cell = {names.get(name, name): value for name, value in labels.items()}
            place = [int(cell[name]) for name in ("number", "width", "steps", "replicate")]
            quality, *noise = np.random.default_rng(place).uniform(size=7)

            def tell(name, number):
                return follows.get(name, 0) * quality + (1 - follows.get(name, 0)) * noise[number]

            if labels["arm"] == "networks":
                held = held_out * quality + (1 - held_out) * noise[3]
                found = {"r2_in": 0.9 + 0.05 * noise[4], "r2_held_out": 0.2 + 0.6 * held, "purity_untrained": 0.0}
                return found | {"intrinsic": tell("decodable", 0), "purity": tell("factored", 1)}
            lost = random + 0.01 * noise[5] if labels["arm"] == "random" else tell("modular", 2)
            parts = {
                "ablated_own_in": 1 - 0.2 * 2**lost,
                "ablated_other_in": 0.8,
                "whole_own_in": 0.9,
                "whole_other_in": 0.9,
            }
            return parts | {"r2_in": 0.9 + 0.05 * noise[4]}

        return made(TESTED, score)

    return build


def test_masks_start_from_the_networks_that_are_measured():
    by_arm = {}
    for config, labels in TESTED.design.runs:
        by_arm.setdefault(labels["arm"], []).append(config)
    networks = {config.run_id for config in by_arm["networks"]}
    assert {config.parents[0].run_id for config in by_arm["masks"]} == networks
    for config in (*by_arm["masks"], *by_arm["random"]):
        (parent,) = config.parents
        assert config.model.model == parent.model and config.seeds == parent.seeds
    assert all(config.parents[0].recipe.steps == 0 for config in by_arm["random"])
    assert {labels["replicate"]: 0 for _, labels in TESTED.design.runs}.keys() == set(range(6))


def test_specificity_is_a_ratio_of_errors_beside_that_of_the_whole_network():
    row = {"replicate": 1, "whole_own_in": 0.9, "whole_other_in": 0.8, "ablated_own_in": -3.0, "ablated_other_in": 0.0}
    # Errors of 4 against 1 without the subnetwork, and of .1 against .2 with it: 8 times.
    assert specificity(pd.DataFrame([row]), ["replicate"])[1] == pytest.approx(3)


def test_networks_whose_tells_agree_coincide(tables, words):
    found = words(TESTED, tables())
    assert found["they-coincide"] == "supported"
    assert all(found[f"{name}-tells"] == "supported" for name in TELLS)
    assert found["control-random-weights"] == "supported"
    assert found["decodable-tells-more-than-modular"] != "supported"


def test_one_tell_is_better_than_the_others(tables, effects):
    found = effects(TESTED, tables({"decodable": 1.0}))
    assert np.mean(found["decodable-tells"]) == pytest.approx(1, abs=0.05)
    assert abs(np.mean(found["modular-tells"])) < 0.5 and abs(np.mean(found["factored-tells"])) < 0.5
    assert np.mean(found["decodable-tells-more-than-modular"]) > 0.5


def test_masks_on_random_weights_that_are_needed_spoil_the_control(tables, words):
    assert words(TESTED, tables(random=0.4))["control-random-weights"] != "supported"


def test_networks_that_are_all_alike_are_refused():
    with pytest.raises(BadInput, match="must differ"):
        validate(Inside, {"widths": (32,), "steps": (100,)})


def test_figures_of_tables_and_of_nothing(tables, made):
    for given in (tables(), made(TESTED, lambda labels: {})):
        figures = list(TESTED.design.figures(given))
        assert len(figures) == len(TELLS) + 1
        for figure in figures:
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
