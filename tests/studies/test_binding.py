"""binding: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.binding import DIVIDERS, METHODS, PLACES, Binding


@pytest.fixture(scope="module")
def small():
    return apply(Binding.profile("smoke"), ["first_seed=0", "replicates=6", "dividers=" + ",".join(DIVIDERS)])


def literature(labels):
    """What the literature expects: slots bind everywhere, the pooled vector what it saw, and more of it with scale."""
    wobble = 0.002 * (labels["replicate"] % 3)
    arm = labels["arm"]
    if arm in DIVIDERS:
        found = {"single": 0.93, "filled": 0.9, "crowded": 0.39, "slot_images": 0.95}[arm]
        return {
            "r2_in": 0.9 + wobble,
            "ari": found + wobble,
            "ari_kmeans": 0.83,
            "ari_components": 0.56,
            "ari_untrained": 0.001 + wobble,
        }
    rates = dict.fromkeys(PLACES, 0.01 + wobble)
    if labels.get("network") != "slots":
        small = labels.get("width") == 8 or labels.get("steps") == 10
        rates = {"in": 0.3 if small else 0.1, "new_conjunction": 0.6, "more_objects": 0.4, "both_new": 0.6}
        rates = {where: rate + wobble for where, rate in rates.items()}
    return {
        "feature_in": 0.98,
        "untrained_confused_in": 0.5 + wobble,
        **{f"illusory_{where}": rate for where, rate in rates.items()},
        **{f"confused_{where}": rate / 2 for where, rate in rates.items()},
    }


# The runs


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_the_pooled_vector_is_as_wide_as_all_slots_and_trained_alike(profile):
    study = Binding.profile(profile)
    by_network = {labels["network"]: config for config, labels in study.design.runs if labels["arm"] == "answers"}
    slots, pooled = by_network["slots"], by_network["pooled"]
    assert pooled.model.slots == 1 and slots.model.slots > 1
    assert slots.model.slots * slots.model.width == pooled.model.width
    assert slots.replace(**{"model.slots": 1, "model.width": pooled.model.width}) == pooled
    assert slots.recipe.steps == max(study.steps)


def test_the_laptop_has_eight_replicates_of_every_cell():
    labels = [tuple(sorted((k, v) for k, v in row.items() if k != "replicate")) for _, row in Binding().design.runs]
    assert {labels.count(cell) for cell in labels} == {8}


def test_claims_about_dividers_that_are_left_out_are_not_asked():
    study = Binding.profile("smoke")
    names = {claim.name for claim in study.design.claims}
    assert "reconstruction-segregates" in names
    assert not {"slots-segregate", "reconstruction-segregates-filled"} & names


def test_sizes_in_the_wrong_order_are_refused():
    with pytest.raises(BadInput, match="smallest first"):
        validate(Binding, {"widths": (96, 16)})


# The effects


def test_as_in_the_literature(small, made, words):
    found = words(small, made(small, literature))
    wanted = {claim.name: claim.of("binding").wanted for claim in small.design.claims}
    others = {name: verdict for name, verdict in found.items() if verdict != wanted[name]}
    # Scale helps where conjunctions were seen, and does not reach slots.
    assert set(others) == {
        *("width-helps-new-conjunction", "data-helps-new-conjunction"),
        *("scale-reaches-slots-in", "scale-reaches-slots-new-conjunction"),
    }
    assert [claim.name for claim in small.design.claims if claim.primary] == ["reconstruction-segregates"]


def test_effects_are_computed_as_stated(small, made, effects):
    found = effects(small, made(small, literature))
    for name, value in {
        "reconstruction-segregates": 0.1 + 0.002,
        "single-objects-teach-it": 0.54,
        "slots-bind-in": 0.09,
        "slots-bind-new-conjunction": 0.59,
        "width-helps-in": 0.2,
        "data-helps-new-conjunction": 0.0,
        "scale-reaches-slots-in": 0.09,
        "control-untrained-does-not-bind": 0.002,
    }.items():
        np.testing.assert_allclose(np.mean(found[name]), value, atol=1e-9, err_msg=name)


def test_networks_that_do_not_see_features_decide_nothing_about_binding(small, made, words):
    def blind(labels):
        row = literature(labels)
        return row | ({"feature_in": 0.9 + 0.001 * labels["replicate"]} if "feature_in" in row else {})

    found = words(small, made(small, blind))
    assert found["slots-bind-in"] == found["width-helps-in"] == "inconclusive"
    assert found["reconstruction-segregates"] == "supported"


def test_without_runs_nothing_is_decided(small, made, effects):
    assert all(np.isnan(values).all() for values in effects(small, made(small, lambda labels: {})).values())


def test_figures_of_tables_and_of_nothing(small, made):
    import pandas as pd

    def scenes(labels):
        if labels["arm"] not in DIVIDERS:
            return pd.DataFrame()
        parts = [[-1, 0, 0, 1] * 64 for _ in range(2)]
        return pd.DataFrame(
            {f"parts_{name}": parts for name in ("owner", "trained", "untrained", "kmeans", "components")}
        )

    def pairs(labels):
        if labels["arm"] in DIVIDERS:
            return pd.DataFrame()
        frame = {"combination": "disc red 2", "where": ["in", "new_conjunction"], "bound": 1.0, "unbound": [-1.0, 1.0]}
        image = [list(range(192))] * 2
        return pd.DataFrame(frame).assign(image_bound=image, image_unbound=image)

    full = made(small, literature, segregation=scenes, conjunctions=pairs)
    for given, count in ((full, 7), (made(small, lambda labels: {}), 4)):
        figures = list(small.design.figures(given))
        assert len(figures) == count
        for figure in figures:
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = small.design.overview(full)
    assert set(METHODS) <= set(overview.columns)
