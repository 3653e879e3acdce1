"""text-to-image: its arms, and what each claim compares, on tables made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine import stats
from recombine.design import Tables
from recombine.stats.generated_images import RIVALS
from recombine.studies.text_to_image import ARMS, OVER_RUNS, TextToImage
from recombine.supports.regions import distance

STUDY = TextToImage.profile("laptop").model_copy(update={"replicates": 4})
FULL = TextToImage.profile("full")
SCALING = ["wider-composes", "more-combinations-compose", "shape-is-last", "more-gaps-cost-more",
           "a-smaller-corner-composes-less", "covering-pairs-helps"]  # fmt: skip
FACTORS = {False: ("shape", "colour"), True: ("left shape", "right shape", "left colour", "right colour")}
LEVELS = {False: (4, 8, 2, 4), True: (2, 4, 2, 4)}


def score(labels: dict[str, Any]) -> dict[str, float]:
    """A number for each run that depends on its labels: more of anything is better."""
    more = sum(float(labels.get(axis, 0)) for axis in ("width", "number", "reach")) - labels.get("pairs", 0)
    success = 0.5 + 0.001 * more - 0.1 * (labels["arm"] == "random") + 0.01 * (labels["replicate"] % 3)
    return {"success_in": 0.9, "success_held_out": success, "success_all_pairs_met": success, "checker_error": 0.001,
            "checker_error_noised": 0.004, "concepts_r2": success, "concepts_selectivity": 0.4,
            "concepts_untrained_selectivity": 0.1, "copied_right": 0.04, "text_r2": 0.1, "concepts_untrained_r2": 0.2,
            "right_colour_held_out": 0.7, "right_shape_held_out": 0.4}  # fmt: skip


def frames(labels: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """The other tables of a run: twelve held-out and trained combinations with four images each."""
    two = labels["arm"] == "two_things"
    rng, factors = np.random.default_rng(labels["replicate"]), FACTORS[two]
    rows: dict[str, list[dict[str, Any]]] = {"scores": [], "concepts": [], "readout": [], "gallery": []}
    for number in range(12):
        offsets = np.cumsum([0, *LEVELS[two][:-1]])
        constituents = [int(offset + number % levels) for offset, levels in zip(offsets, LEVELS[two], strict=True)]
        own = {"combination": f"c{number}", "constituents": constituents}
        hits = rng.uniform(size=(4, len(factors))) < rng.uniform()
        for region, hit in ((region, hit) for region in ("held_out", "trained") for hit in hits):
            columns = {f"{what}_{factor.replace(' ', '_')}": float(value)
                       for factor, right in zip(factors, hit, strict=True)
                       for what, value in (("hit", right), ("asked", 1))}  # fmt: skip
            judged = {"region": region, "whole": float(hit.all()), "images": 1.0, "seen": 1.0}
            rows["scores"].append(own | columns | judged | {"exchangeable": 1.0, "exchanged": float(hit[0])})
        for factor in factors:
            rows["concepts"] += [
                own | {"network": network, "use": use, "factor": factor, "r2": rng.uniform(), "blind": rng.uniform()}
                for network, use in (("trained", "chosen"), ("trained", "early"), ("trained", "text"), ("untrained", "chosen"))
            ]  # fmt: skip
        rows["readout"].append(
            own | {"rarest_part": number % 5, "pairs_met": 1 - number % 3, "distance": 1 + number % 2}
        )
        rows["gallery"].append(own | {"region": "trained" if number % 2 else "held_out", "right": bool(hits[0].all()),
                                      "image": [number] * 48, "nearest": [0] * 48, "rendered": [9] * 48})  # fmt: skip
    rows["concepts"] += [
        {"combination": "", "network": "trained", "site": site, "moment": moment, "factor": factor, "selectivity": 0.4}
        for factor in factors for site, moment in (("middle", "0.5"), ("reading", ""))
    ]  # fmt: skip
    return {name: pd.DataFrame(own) for name, own in rows.items()}


def build(made: Callable[..., Tables], study: TextToImage) -> Tables:
    names = ("scores", "concepts", "readout", "gallery")
    return made(study, score, **{name: lambda labels, name=name: frames(labels)[name] for name in names})


@pytest.fixture(scope="module")
def tables(made: Callable[..., Tables]) -> Tables:
    return build(made, STUDY)


@pytest.fixture(scope="module")
def full(made: Callable[..., Tables]) -> Tables:
    return build(made, FULL.model_copy(update={"replicates": 2}))


def test_arms_share_their_test_and_miss_what_they_should():
    for seed in STUDY.seeds:
        drawn = {labels["arm"]: (config, config.support.draw(config.space, config.seeds.support))
                 for config, labels in STUDY.design.runs if labels["replicate"] == seed}  # fmt: skip
        assert list(drawn) == list(ARMS)
        np.testing.assert_array_equal(drawn["complete"][1].reserved, drawn["missing"][1].reserved)
        covered = {arm: support.certificate((2,)).coverage[0].share for arm, (_, support) in drawn.items()}
        # A pair of colours that only the test has cannot be trained on.
        assert covered["complete"] > 0.98 and covered["two_things"] > 0.9
        assert covered["missing"] < 0.98 and covered["corner"] == 1
        corner = drawn["corner"][1]
        away = distance(corner.reserved, corner.rows, drawn["corner"][0].space.width)
        assert set(away.tolist()) == {1, 2}
        assert drawn["complete"][1].size == drawn["missing"][1].size == STUDY.usual["number"]


def test_every_claim_has_its_effect(tables: Tables, effects: Callable[..., dict[str, Any]]):
    values = effects(STUDY, tables)
    assert not set(values) & set(SCALING)
    np.testing.assert_allclose(values["selective"], 0.3)
    np.testing.assert_allclose(values["judge-is-right"], 0.004)
    np.testing.assert_allclose(values["nothing-is-copied"], 0.04)
    np.testing.assert_allclose(values["falls-short"], [0.9 - 0.5 - 0.01 * (seed % 3) for seed in STUDY.seeds])
    arms = STUDY.design.data(tables)
    one = [arms[name] for name in ("complete", "missing", "corner")]
    for name, wanted in {
        "decodability-relates": stats.decodability_relation(*one),
        "beyond-rivals": stats.decodability_relation(*one, covariates=RIVALS),
        "early": stats.decodability_relation(*one, by="early", covariates=RIVALS),
        "tells-the-factor": stats.factor_relation(*one),
        "over-runs": stats.rank_over_runs(*one),
        "over-runs-beyond-rivals": stats.rank_over_runs(*one, covariates=OVER_RUNS),
        "missing-conjunctions": stats.loss_of_unmet_pairs(*one[:2]),
        "distance": stats.near_minus_far(arms["corner"]),
        "parts-fail-independently": stats.joint_success(*one),
        "colours-are-exchanged": stats.exchanged_colours(arms["two_things"]) - 1 / 9,
        "control-untrained": stats.decodability_relation(*one, by="untrained"),
    }.items():
        np.testing.assert_allclose(values[name], wanted.reindex(list(STUDY.seeds)), err_msg=name)
    assert np.isfinite([values[name] for name in ("decodability-relates", "tells-the-factor", "distance")]).all()


def test_without_runs_nothing_is_decided(made: Callable[..., Tables], effects: Callable[..., dict[str, Any]]):
    empty = made(STUDY, lambda labels: {})
    for name, values in effects(STUDY, empty).items():
        assert np.isnan(values).all(), name
    assert STUDY.design.figures(empty) == []


def test_scale_is_asked_about_where_something_is_scaled(full: Tables, effects: Callable[..., dict[str, Any]]):
    assert FULL.usual == STUDY.usual == {"width": 32, "steps": 1200, "number": 72}
    assert FULL.first_seed != STUDY.first_seed, "recorded claims are decided by fresh replicates"
    alike = FULL.model_copy(update={"first_seed": STUDY.first_seed})
    own = {config.run_id for config, _ in STUDY.design.runs}
    assert own <= {config.run_id for config, _ in alike.design.runs}
    wide = STUDY.model_copy(update={"widths": (16, 32)})
    assert [claim.name for claim in wide.design.claims if claim.name in SCALING] == ["wider-composes"]
    small = FULL.model_copy(update={"replicates": 2})
    values = effects(small, full)
    assert list(values)[-len(SCALING) :] == SCALING
    wanted = (0.001 * 48, 0.001 * 60, 0.3, 0.006, -0.001, 0.1)
    for name, effect in zip(SCALING, wanted, strict=True):
        np.testing.assert_allclose(values[name], effect, err_msg=name)


def test_figures_are_drawn_from_tables(tables: Tables):
    figures = STUDY.design.figures(tables)
    assert [figure.name for figure in figures] == [
        "images_complete", "images_missing", "images_corner", "images_two_things", "success", "coverage", "blocks",
        "relation", "factors", "nearest",
    ]  # fmt: skip
    for figure in figures:
        assert figure.caption and figure.chart.to_dict()


def test_what_is_scaled_is_shown_row_by_row(full: Tables):
    *_, order, scale = FULL.model_copy(update={"replicates": 2}).design.figures(full)
    assert (order.name, scale.name) == ("learning_order", "scale")
    text = str(scale.chart.to_dict())
    for row in ("the usual size", "64 channels", "300 steps", "48 combinations", "6 pairs never met", "drawn at random",
                "around one combination, reach 1"):  # fmt: skip
        assert row in text
    assert "The usual size: 32 channels, 1200 steps, 72 combinations, every pair met." in scale.caption
    assert "two things" not in text and "72 combinations" not in str(scale.chart.to_dict()["datasets"])
