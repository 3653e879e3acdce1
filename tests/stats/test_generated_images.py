"""Success of generated images: the tables of combinations, and each statistic on tables whose answer is planted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from recombine.errors import BadInput
from recombine.stats.generated_images import (
    RIVALS,
    combination_table,
    decodability_relation,
    exchanged_colours,
    factor_relation,
    independent_success,
    joint_success,
    loss_of_unmet_pairs,
    near_minus_far,
    rank_over_models_and_concepts,
    rank_over_runs,
    rank_within_runs,
    success_rates,
)

FACTORS = {"complete": ("shape", "colour"), "missing": ("shape", "colour"), "corner": ("shape", "colour"),
           "two": ("left shape", "right shape", "left colour", "right colour")}  # fmt: skip
SEEDS = range(4)
IMAGES = 6
COMBINATIONS = 60
COVARIATES = ("text_r2", "concepts_untrained_r2", "success_in")
Arms = dict[str, dict[str, pd.DataFrame]]


def made(link: float = 1.0, seed: int = 0, together: float = 0.0) -> Arms:
    """The tables of each arm. The chance that a factor is right follows its decodability by `link`.

    With a chance `together` every factor of an image is wrong.
    """
    rng = np.random.default_rng(seed)
    arms: Arms = {}
    for arm, factors in FACTORS.items():
        runs, images, concepts, readout = [], [], [], []
        for replicate in SEEDS:
            labels, level = {"arm": arm, "replicate": replicate}, rng.uniform()
            covariates = {name: rng.uniform() for name in COVARIATES}
            runs.append(labels | covariates | {"success_held_out": level, "concepts_r2": level + 0.01 * rng.normal()})
            for number in range(COMBINATIONS):
                own = labels | {
                    "combination": f"c{number}",
                    "constituents": [number % 4, 4 + number % 8, 12 + number % 2],
                }
                read = rng.uniform(size=len(factors))
                hits = rng.uniform(size=(IMAGES, len(factors))) < 0.5 + link * (read - 0.5)
                hits &= rng.uniform(size=(IMAGES, 1)) >= together
                for region, (draw, hit) in ((r, image) for r in ("held_out", "trained") for image in enumerate(hits)):
                    columns = {f"{what}_{factor.replace(' ', '_')}": float(value)
                               for factor, right in zip(factors, hit, strict=True)
                               for what, value in (("hit", right), ("asked", 1))}  # fmt: skip
                    images.append(own | columns | {"region": region, "whole": float(hit.all()), "images": 1.0, "seen": 1.0,
                                                   "exchangeable": 1.0, "exchanged": float(draw % 2)})  # fmt: skip
                for place, factor in enumerate(factors):
                    probes = (("trained", "chosen", read[place]), ("trained", "early", rng.uniform()),
                              ("trained", "text", rng.uniform()), ("untrained", "chosen", rng.uniform()))  # fmt: skip
                    concepts += [own | {"network": network, "use": use, "factor": factor, "r2": r2}
                                 for network, use, r2 in probes]  # fmt: skip
                readout.append(
                    own | {"rarest_part": number % 5, "pairs_met": 1 - (number % 3) / 6, "distance": 1 + number % 2}
                )
            concepts.append(
                labels | {"combination": "", "network": "trained", "use": "", "factor": factors[0], "r2": 0.5}
            )
        frames = {"runs": runs, "scores": images, "concepts": concepts, "readout": readout}
        arms[arm] = {name: pd.DataFrame(rows) for name, rows in frames.items()}
    return arms


@pytest.fixture(scope="module")
def linked() -> Arms:
    return made()


def relation(arms: Arms, by: str = "decodability", covariates: Sequence[str] = ()) -> pd.Series:
    return decodability_relation(*arms.values(), by=by, covariates=covariates)


def test_success_is_a_share_of_images(linked: Arms):
    rates = success_rates(*linked.values())
    raw = linked["complete"]["scores"]
    images = raw[(raw["combination"] == "c4") & (raw["replicate"] == 1) & (raw["region"] == "held_out")]
    chosen = (rates["arm"] == "complete") & (rates["combination"] == "c4") & (rates["replicate"] == 1)
    row = rates[chosen].iloc[0]
    assert row["success"] == images["whole"].mean()
    assert row["right shape"] == images["hit_shape"].mean()
    assert np.isnan(row["right left shape"])


def test_several_images_in_one_row_are_refused(linked: Arms):
    scores = linked["complete"]["scores"].assign(images=2.0)
    with pytest.raises(BadInput, match="several images"):
        success_rates({"scores": scores})


def test_the_relation_is_spearmans_within_runs(linked: Arms):
    wanted = [
        np.mean([spearmanr(*own[["decodability", "success"]].to_numpy().T).statistic for _, own in some.groupby("arm")])
        for _, some in combination_table(*linked.values()).groupby("replicate")
    ]
    np.testing.assert_allclose(relation(linked), wanted)


def test_a_planted_relation_is_found_and_none_where_there_is_none(linked: Arms):
    assert relation(linked).min() > 0.5
    assert relation(linked, covariates=RIVALS).min() > 0.5
    assert relation(linked, "early").abs().max() < 0.3
    assert relation(linked, "untrained").abs().max() < 0.3
    assert relation(made(link=0.0)).abs().max() < 0.3


def test_which_factor_is_wrong_does_not_follow_from_which_combination_is(linked: Arms):
    """Planted factor by factor it is found; where all factors of a combination are read equally well it is not."""
    assert factor_relation(*linked.values()).min() > 0.3
    alike = made()
    for tables in alike.values():
        concepts = tables["concepts"]
        keys = ["replicate", "combination", "network", "use"]
        tables["concepts"] = concepts.assign(r2=concepts.groupby(keys)["r2"].transform("mean"))
    assert np.abs(np.nan_to_num(factor_relation(*alike.values()))).max() < 0.3


def test_a_rival_that_explains_the_relation_is_partialled_out(linked: Arms):
    rng = np.random.default_rng(3)
    table = combination_table(*linked.values())
    text = rng.uniform(size=len(table))
    noise = 0.2 * rng.normal(size=(2, len(table)))
    behind = table.assign(text=text, decodability=text + noise[0], success=text + noise[1])
    assert rank_within_runs(behind, 4).min() > 0.5
    assert rank_within_runs(behind, 4, covariates=RIVALS).abs().max() < 0.3


def test_a_replicate_without_an_arm_has_no_number_and_a_run_without_failures_does_not_count(linked: Arms):
    table = combination_table(*linked.values())
    partial = table[(table["arm"] != "corner") | (table["replicate"] != 1)]
    assert rank_within_runs(partial, 4).isna().tolist() == [False, True, False, False]
    solved = table.assign(success=table["success"].where(table["arm"] != "corner", 1.0))
    three = rank_within_runs(table[table["arm"] != "corner"], 3)
    np.testing.assert_allclose(rank_within_runs(solved, 4), three)
    assert rank_within_runs(table.assign(success=1.0), 4).isna().all()


def test_runs_are_related_within_their_arm(linked: Arms):
    """Tukey's pseudo-values of a planted relation, also with covariates that have nothing to do with it."""
    assert rank_over_runs(*linked.values()).mean() > 0.8
    assert rank_over_runs(*linked.values(), covariates=COVARIATES).mean() > 0.8


def test_models_and_concepts_are_points_of_one_correlation(linked: Arms):
    """The pseudo-values average to scipy's correlation over all points, less its bias; a planted relation is found."""
    one = {name: linked[name] for name in ("complete", "missing")}
    points = []
    for tables in one.values():
        decoded = tables["concepts"][
            (tables["concepts"]["network"] == "trained") & (tables["concepts"]["use"] == "chosen")
        ]
        for (replicate, factor), rows in decoded[decoded["combination"] != ""].groupby(["replicate", "factor"]):
            images = tables["scores"][
                (tables["scores"]["replicate"] == replicate) & (tables["scores"]["region"] == "held_out")
            ]
            points.append((replicate, rows["r2"].mean(), images.groupby("combination")[f"hit_{factor}"].mean().mean()))
    frame = pd.DataFrame(points, columns=["replicate", "x", "y"])
    whole = spearmanr(frame["x"], frame["y"]).statistic
    without = [spearmanr(*frame[frame["replicate"] != seed][["x", "y"]].to_numpy().T).statistic for seed in SEEDS]
    expected = [len(SEEDS) * whole - (len(SEEDS) - 1) * value for value in without]
    np.testing.assert_allclose(rank_over_models_and_concepts(*one.values()), expected)


def test_near_minus_far_is_a_difference_of_means(linked: Arms):
    table = combination_table(linked["corner"])
    means = table.groupby(["replicate", "distance"])["success"].mean().unstack()
    np.testing.assert_allclose(near_minus_far(linked["corner"]), means[1] - means[2])


def test_independent_factors_come_from_different_images():
    right = np.array([[1, 0], [1, 1], [0, 1]], bool)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    assert independent_success(right) == pytest.approx(np.mean([right[i, 0] * right[j, 1] for i, j in pairs]))


@pytest.mark.parametrize("images", [4, 6])
def test_independent_success_is_unbiased_however_few_the_images(images: int):
    """Also where all factors of an image are wrong together, and a product of shares would be far too large."""
    rng = np.random.default_rng(images)
    lost = rng.uniform(size=(4000, images, 1)) < 0.3
    right = (rng.uniform(size=(4000, images, 4)) < 0.9) & ~lost
    mean = np.mean([independent_success(one) for one in right])
    assert mean == pytest.approx((0.9 * 0.7) ** 4, abs=0.01)
    assert np.mean(right.mean(1).prod(1)) > mean + 0.03


def test_independent_factors_are_told_from_factors_that_fail_together():
    assert joint_success(*made(seed=5).values()).abs().max() < 0.04
    assert joint_success(*made(seed=6, link=0.0, together=0.4).values()).min() > 0.04


def test_joint_success_needs_every_arm(linked: Arms):
    scores = linked["corner"]["scores"]
    broken = linked | {"corner": {"scores": scores[scores["replicate"] != 2]}}
    assert joint_success(*broken.values()).isna().tolist() == [False, False, True, False]


def test_exchanged_colours_are_a_share_of_wrong_ones(linked: Arms):
    raw = linked["two"]["scores"]
    shapes = (raw["hit_left_shape"] > 0) & (raw["hit_right_shape"] > 0)
    colours = (raw["hit_left_colour"] > 0) | (raw["hit_right_colour"] > 0)
    wrong = raw[(raw["region"] == "held_out") & shapes & ~colours]
    np.testing.assert_allclose(exchanged_colours(linked["two"]), wrong.groupby("replicate")["exchanged"].mean())


def test_the_loss_of_unmet_pairs_is_more_than_that_combinations_are_hard():
    """Combinations with an unmet pair are .3 harder in both arms; in one of them they lose .2 more."""
    arms = made()
    for arm, more in (("complete", 0.0), ("missing", 0.2)):
        scores = arms[arm]["scores"]
        unmet = scores["combination"].str[1:].astype(int) % 3 > 0
        arms[arm]["scores"] = scores.assign(whole=0.8 - (0.3 + more) * unmet)
    np.testing.assert_allclose(loss_of_unmet_pairs(arms["complete"], arms["missing"]), 0.2)
