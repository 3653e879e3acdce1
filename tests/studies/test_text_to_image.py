"""Text to image: what is trained on, how success and decodability are brought together, and what each claim compares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from recombine.studies.base import Tables
from recombine.studies.text_to_image import ARMS, CLAIMS, SCALING, TextToImage
from recombine.studies.text_to_image_figures import figures
from recombine.studies.text_to_image_relation import (
    by_combination,
    by_factor,
    independence,
    related,
    successes,
)
from recombine.supports.regions import distance

STUDY = TextToImage.profile("laptop").model_copy(update={"replicates": 2})
FACTORS = {"complete": ("shape", "colour"), "two things": ("left shape", "right shape")}
IMAGES = 8


def tables(link: float = 1.0, seed: int = 0) -> Tables:
    """Every run has 30 held-out combinations whose factors go right with a chance that their decodability sets by `link`."""
    rng = np.random.default_rng(seed)
    runs, combinations, concepts, readout, gallery = [], [], [], [], []
    for config, labels in STUDY.runs():
        factors = FACTORS["two things" if labels["arm"] == "two things" else "complete"]
        runs.append(labels | {"run": config.run_id, "success_in": 0.9, "success_held_out": 0.5, "checker_error": 0.001,
                              "concepts_r2": 0.5, "concepts_selectivity": 0.4, "concepts_untrained_selectivity": 0.1,
                              "success_all_pairs_met": 0.6, "success_some_pairs_unmet": 0.3, "copied_held_out": 0.04,
                              "swapped_in": 0.01, "swapped_held_out": 0.06, "text_r2": 0.9})  # fmt: skip
        space = config.space
        for number in range(30):
            row = np.array(
                [offset + number % level for offset, level in zip(space.offsets, space.levels, strict=True)]
            )
            name = f"c{number}"
            own = {"combination": name, **labels}
            read = rng.uniform(size=len(factors))
            chance = 0.5 + link * (read - 0.5)
            hits = rng.uniform(size=(IMAGES, len(factors))) < chance
            columns = {}
            for place, factor in enumerate(factors):
                plain = factor.replace(" ", "_")
                columns |= {f"hit_{plain}": hits[:, place].sum(), f"asked_{plain}": IMAGES}
                concepts += [
                    own | {"network": network, "site": site, "moment": moment, "chosen": site != "reading",
                           "factor": factor, "r2": value, "control": None, "selectivity": None}
                    for network, site, moment, value in (("trained", "middle", "0.5", read[place]),
                                                         ("trained", "reading", "", rng.uniform()),
                                                         ("untrained", "middle", "0.3", rng.uniform()))
                ]  # fmt: skip
            combinations.append(
                own | columns | {"region": "held_out", "whole": hits.all(1).sum(), "images": IMAGES}
            )
            readout.append(
                own
                | {"rarest_part": number % 5, "pairs_met": 1 - (number % 3) / 6, "distance": 1 + number % 2}
            )
            gallery.append(own | {"constituents": row.tolist(), "region": "trained" if number % 2 else "held_out",
                                  "right": bool(hits[0].all()), "image": [number] * 48, "nearest": [0] * 48,
                                  "rendered": [9] * 48})  # fmt: skip
        concepts += [
            labels | {"combination": "", "network": "trained", "site": site, "moment": moment, "chosen": False,
                      "factor": factor, "r2": 0.5, "control": 0.1, "selectivity": 0.4}
            for factor in factors for site, moment in (("middle", "0.5"), ("reading", ""))
        ]  # fmt: skip
    others = {name: pd.DataFrame(rows) for name, rows in
              (("concepts", concepts), ("readout", readout), ("gallery", gallery))}  # fmt: skip
    return Tables(
        pd.DataFrame(runs), pd.DataFrame(combinations), pd.DataFrame(), pd.DataFrame(), others=others
    )


@pytest.fixture(scope="module")
def linked() -> Tables:
    return tables()


def test_arms_share_their_test_and_miss_what_they_should():
    for seed in STUDY.seeds:
        drawn = {labels["arm"]: (config, config.support.draw(config.space, config.seeds.support))
                 for config, labels in STUDY.runs() if labels["replicate"] == seed}  # fmt: skip
        assert list(drawn) == list(ARMS)
        np.testing.assert_array_equal(drawn["complete"][1].reserved, drawn["missing"][1].reserved)
        covered = {arm: support.certificate((2,)).coverage[0].share for arm, (_, support) in drawn.items()}
        assert covered["complete"] == covered["two things"] == 1
        assert covered["missing"] < 1 and covered["corner"] == 1
        corner = drawn["corner"][1]
        away = distance(corner.reserved, corner.rows, drawn["corner"][0].space.width)
        assert set(away.tolist()) == {1, 2}
        assert drawn["complete"][1].size == drawn["missing"][1].size == STUDY.usual["number"]


def test_success_is_a_share_of_images(linked: Tables):
    found = successes(linked, STUDY.usual)
    raw = linked.combinations.iloc[0]
    row = found[(found["combination"] == raw["combination"]) & (found["arm"] == raw["arm"])].iloc[0]
    assert row["success"] == raw["whole"] / IMAGES
    assert row["right shape"] == raw["hit_shape"] / IMAGES
    assert np.isnan(row["right left shape"])


def test_the_relation_is_spearmans_within_arms(linked: Tables):
    """Of one arm alone it is scipy's; of several each point counts within its arm."""
    cases = by_combination(linked, STUDY.usual)
    one = cases[(cases["arm"] == "complete")]
    wanted = [spearmanr(*one.loc[one["replicate"] == seed, ["decodability", "success"]].to_numpy().T).statistic
              for seed in STUDY.seeds]  # fmt: skip
    np.testing.assert_allclose(related(one, STUDY.seeds), wanted)
    # An arm that is better on the whole makes no relation.
    shifted = cases.assign(success=cases["success"] + 5 * (cases["arm"] == "corner"))
    np.testing.assert_allclose(related(shifted, STUDY.seeds), related(cases, STUDY.seeds))


def test_a_planted_relation_is_found_and_none_where_there_is_none(linked: Tables):
    cases = by_combination(linked, STUDY.usual)
    assert related(cases, STUDY.seeds).min() > 0.5
    assert related(cases, STUDY.seeds, rivals=True).min() > 0.5
    assert related(by_factor(linked, STUDY.usual), STUDY.seeds, group=["arm", "factor"]).min() > 0.4
    assert np.abs(related(cases, STUDY.seeds, exchanged=True)).max() < 0.3
    none = by_combination(tables(link=0.0), STUDY.usual)
    assert np.abs(related(none, STUDY.seeds)).max() < 0.3


def test_a_rival_that_is_behind_it_is_taken_out(linked: Tables):
    """Where decodability and success both follow the text encoder, nothing is left beside it."""
    rng = np.random.default_rng(3)
    cases = by_combination(linked, STUDY.usual)
    text = rng.uniform(size=len(cases))
    behind = cases.assign(
        text=text,
        decodability=text + 0.05 * rng.normal(size=len(cases)),
        success=text + 0.05 * rng.normal(size=len(cases)),
    )
    assert related(behind, STUDY.seeds).min() > 0.8
    assert np.abs(related(behind, STUDY.seeds, rivals=True)).max() < 0.3


def test_without_failures_there_is_no_relation(linked: Tables):
    cases = by_combination(linked, STUDY.usual).assign(success=1.0)
    assert np.isnan(related(cases, STUDY.seeds)).all()


def test_independent_parts_are_found_so_and_others_are_not():
    """Factors are drawn independently in the tables; where all of an image goes wrong at once the joint is above."""
    assert np.abs(independence(tables(seed=5), STUDY.usual, STUDY.seeds)).max() < 0.03
    together = tables(seed=6)
    frame = together.combinations
    for name in [name for name in frame.columns if name.startswith("hit_")]:
        frame[name] = frame["whole"].where(frame[name.replace("hit", "asked")].notna())
    assert independence(together, STUDY.usual, STUDY.seeds).min() > 0.03


def test_every_claim_has_its_effect(linked: Tables):
    found = {effect.claim.name: effect.values for effect in STUDY.effects(linked)}
    assert list(found) == [claim.name for claim in CLAIMS]
    np.testing.assert_allclose(found["falls-short"], 0.4)
    np.testing.assert_allclose(found["missing-conjunctions"], 0.3)
    np.testing.assert_allclose(found["colours-are-exchanged"], 0.05)
    np.testing.assert_allclose(found["selective"], 0.3)
    cases = by_combination(linked, STUDY.usual)
    corner = cases[cases["arm"] == "corner"]
    means = corner.groupby(["replicate", "distance"])["success"].mean().unstack()
    np.testing.assert_allclose(found["distance"], means[1] - means[2])


def test_scale_is_asked_about_where_something_is_scaled():
    full = TextToImage.profile("full")
    assert full.usual == {"width": 32, "steps": 1600, "number": 72}
    assert full.usual == STUDY.usual
    own = {config.run_id for config, _ in STUDY.runs()}
    assert own <= {config.run_id for config, _ in full.runs()}
    assert {claim.name for claim in SCALING} == {
        "wider-composes",
        "more-combinations-compose",
        "shape-is-last",
    }


def test_figures_are_drawn_from_tables(linked: Tables):
    found = figures(STUDY, linked)
    assert [figure.name for figure in found] == [
        "images_complete", "images_missing", "images_corner", "images_two_things", "success", "coverage", "blocks",
        "relation", "factors", "nearest",
    ]  # fmt: skip
    for figure in found:
        assert figure.caption and figure.chart.to_dict()
