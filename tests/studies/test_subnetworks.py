"""subnetworks: its runs and their lines, a smoke run, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.engines.local import LocalEngine
from recombine.errors import BadInput
from recombine.models import MaskedNetwork
from recombine.probes import Subnetwork
from recombine.store.store import Store
from recombine.studies.subnetworks import PARTS, PRETRAINED, SCRATCH, SIDES, UNTRAINED, Subnetworks

STUDY = Subnetworks.profile("smoke")
TESTED = Subnetworks.model_validate(Subnetworks.profiles["smoke"] | {"replicates": 6})


@pytest.fixture(scope="module")
def tables(made):
    """Tables in which the ablated trained network keeps `keeps` of the other rule, and loses its own."""

    def build(keeps=0.9, pretrained=0.9, random=0.25, learned=0.99):
        draw = np.random.default_rng(0)

        def score(labels):
            wobble = lambda value: value + 0.01 * draw.standard_normal()  # noqa: E731
            kept = {SCRATCH: keeps, PRETRAINED: pretrained, UNTRAINED: random}[labels["weights"]]
            found = {"subnetwork_own": 0.98, "subnetwork_other": 0.3, "ablated_own": 0.2, "ablated_other": kept}
            found |= dict.fromkeys(("whole_own", "whole_other"), learned)
            return {f"{name}_{region}": wobble(value) for name, value in found.items() for region in ("in", "held_out")}

        def masks(labels):
            own = "11110000" if labels.get("rule") == "first" else "11001100"
            return pd.DataFrame({"matrix": ["a"], "weights": [8], "kept": [4], "sample": [own]})

        return made(TESTED, score, subnetwork=masks)

    return build


def test_masks_start_from_the_runs_that_they_are_about():
    runs = STUDY.design.runs
    assert len(STUDY.design.run_ids) == len(runs)
    for config, labels in runs:
        (parent,) = config.parents
        assert parent.seeds == config.seeds and config.model.model == parent.model
        assert (parent.recipe.steps == 0) == (labels["weights"] == UNTRAINED)
        assert bool(parent.parents) == (labels["weights"] == PRETRAINED)
    named = {labels["arm"]: config for config, labels in runs}
    assert named["modules"].support.combinations == ((0,),)


def test_modular_networks_are_told_from_those_in_random_weights(tables, words, effects):
    found = words(TESTED, tables())
    for name in ("sentences", "pictures"):
        assert found[f"{name}-ablation-is-specific"] == found[f"{name}-not-in-random-weights"] == "supported"
        assert found[f"{name}-masks-fit-random-weights"] == "supported"
    assert found["pretraining-makes-modular"] in ("contradicted", "equivalent")
    assert effects(TESTED, tables())["sentences-ablation-is-specific"].mean() == pytest.approx(0.25 - 0.9, abs=0.02)
    same = words(TESTED, tables(keeps=0.2, pretrained=0.2, random=0.2))
    assert (
        same["sentences-ablation-is-specific"] != "supported" and same["sentences-not-in-random-weights"] != "supported"
    )
    assert words(TESTED, tables(learned=0.5))["sentences-not-in-random-weights"] == "inconclusive"


def test_pretraining_can_help(tables, words):
    assert words(TESTED, tables(keeps=0.5, pretrained=0.9))["pretraining-makes-modular"] == "supported"


def test_overlap_is_the_share_of_weights_that_both_keep(tables):
    frame = TESTED.overlaps(tables())
    # Each keeps 4 of 8, and both keep 2: 2 of 6; independent masks would keep 2 of 6 as well.
    assert set(frame["arm"]) == {"sentences", "pictures"}
    np.testing.assert_allclose(frame["overlap"], 2 / 6)
    np.testing.assert_allclose(frame["chance"], 2 / 6)


def test_figures_are_drawn_with_and_without_runs(tables, made):
    names = ["parts_sentences", "parts_pictures", "overlap", "kept", "modules"]
    assert [figure.name for figure in TESTED.design.figures(tables())] == names
    none = [figure.name for figure in TESTED.design.figures(made(TESTED, lambda labels: {}))]
    assert none == [name for name in names if name != "kept"]


def test_whole_masks_are_drawn_and_samples_are_not():
    from recombine.figures.feature_maps import MASKS, masks_on_network

    rows = [
        {"replicate": 0, "matrix": "encoder.blocks.1.mlp.up.weight", "shape": "2x2", "mask": mask, "sample": bits}
        for mask, bits in (("first", "1100"), ("second", "1010"))
    ]
    figure = masks_on_network(pd.DataFrame(rows), ("first", "second"))
    assert figure is not None and "1 networks" not in figure.caption
    document = str(figure.chart.to_dict())
    assert "block 2" in document and "mlp.up" in document and len(MASKS) == 4
    assert masks_on_network(pd.DataFrame(rows).assign(shape="2x3"), ("first", "second")) is None
    assert masks_on_network(pd.DataFrame(rows).drop(columns="shape"), ("first", "second")) is None


def test_a_mask_is_measured(tmp_path):
    """The parts of a real mask: the whole network is the parent, and both parts differ from it."""
    config = next(config for config, labels in STUDY.design.runs if labels["arm"] == "modules")
    store = Store(tmp_path / "store")
    LocalEngine().run(store, [config], [Subnetwork(draws=1, samples=4)])
    summary = store.summaries(config.run_id)
    assert {f"{part}_{side}_in" for part in PARTS for side in SIDES} | {"kept"} <= summary.keys()
    network = store.load(config).network
    assert isinstance(network, MaskedNetwork) and summary["kept"] == pytest.approx(float(network.share()))
    assert len({round(summary[f"{part}_own_in"], 6) for part in PARTS}) > 1
    parent = store.load(config.parents[0])
    with pytest.raises(BadInput, match="needs a masked network"):
        parent.measure(Subnetwork())
