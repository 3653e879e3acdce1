"""sprite-splits: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.probes.scores import Scores
from recombine.studies.sprite_splits import NETWORKS, SPACE, SPLITS, SpriteSplits
from recombine.training.prepare import Setting

FACTORS = ("shape", "size", "column", "row")
HARD = [split for split in SPLITS if split != "random"]
LOST = {"random": {}, "element": {}, "reach": {"shape": 1.0}, "extrapolation": {"column": 1.8}}
"""What the literature expects: how much of R2 each split costs, by factor."""


@pytest.fixture(scope="module")
def small():
    return apply(SpriteSplits.profile("smoke"), ["first_seed=0", "replicates=6"])


@pytest.fixture(scope="module")
def regions(small):
    """The region of every combination in every run."""
    found = {}
    for config, labels in small.design.runs:
        rows = config.space.enumerate()
        part = Setting(config).regions
        region = np.where(part.contains("trained", rows), "trained", "validation")
        held_out = part.rows("held_out", len(rows), "test")
        names = {config.space.name(row) for row in held_out}
        names = [
            ("held_out" if config.space.name(row) in names else where) for row, where in zip(rows, region, strict=True)
        ]
        found[tuple(labels.values())] = names
    return found


@pytest.fixture(scope="module")
def tables(made, regions):
    def make(study, noise=0.0, lost=LOST, mlp=0.1, keep=lambda frame: frame, poor=None):
        """Scores that lose a given amount of each factor in each split; the MLP loses more in all but the random split.

        `keep` drops rows of runs and combinations, `poor` changes the summary of runs.
        """
        draw = np.random.default_rng(0)
        runs, combinations = {}, {}
        for config, labels in study.design.runs:
            key, split = tuple(labels.values()), labels.get("split", "random")
            wobble = noise * draw.standard_normal(8)
            names = [config.space.name(row) for row in config.space.enumerate()]
            frame = pd.DataFrame({"combination": names, "region": regions[key], "images": 4.0, "whole": 0.0})
            for place, factor in enumerate(FACTORS):
                missing = 0.02 + wobble[place] + lost[split].get(factor, 0.0)
                if labels["network"] == "mlp" and split != "random":
                    missing += mlp
                # Only what is held out is lost.
                frame[f"error_{factor}"] = np.where(frame["region"] == "trained", 0.02, missing) * frame["images"]
                frame[f"hit_{factor}"] = 0.0
            pooled = study.base.family.pooled(frame[frame["region"] == "held_out"], ["region"]).iloc[0]
            runs[key] = {
                "r2_in": 0.98 + wobble[4],
                "r2_held_out": -0.3 + wobble[5] if labels["arm"] == "lookup" else float(pooled["r2"]),
                "success_held_out": 0.1 + wobble[5],
                "refit_success": 0.5 + wobble[6],
                "refit_success_untrained": 0.2 + wobble[7],
            } | {f"r2_{factor}_held_out": float(pooled[f"r2_{factor}"]) for factor in FACTORS}
            if poor is not None:
                runs[key] |= poor(labels)
            combinations[key] = keep(frame.assign(**labels)).drop(columns=list(labels))
        return made(
            study,
            lambda labels: runs[tuple(labels.values())],
            combinations=lambda labels: combinations[tuple(labels.values())],
        )

    return make


# The runs


def test_the_laptop_has_twelve_replicates_of_every_cell():
    labels = pd.DataFrame([labels for _, labels in SpriteSplits.profile("laptop").design.runs])
    assert not labels.duplicated().any()
    assert (labels.groupby(["arm", "network", "split"], dropna=False).size() == 12).all()
    assert len(labels) == 12 * 2 * (len(SPLITS) + 1)


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_blocks_lie_within_each_other_and_networks_share_them(profile):
    study = SpriteSplits.profile(profile)
    space, seed = study.base.space, study.first_seed
    rows = space.enumerate()
    held_out = [~getattr(study, split).draw(space, seed).contains(rows) for split in HARD]
    assert held_out[0].sum() > 2
    for inner, outer in itertools.pairwise(held_out):
        assert np.all(inner <= outer) and inner.sum() < outer.sum()
    (scores,) = [one for one in study.measurements() if isinstance(one, Scores)]
    assert len(rows) <= scores.combinations
    by_cell = {}
    for config, labels in study.design.runs:
        assert config.model == getattr(study, labels["network"]) and config.encoding.kind == "unsaid"
        cell = labels["arm"], labels.get("split"), labels["replicate"]
        rest = config.model_copy(update={"model": study.mlp})
        assert by_cell.setdefault(cell, rest) == rest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"control": "sprites"}, "another family"),
        ({"base": {"family": "sprites", "space": {"kind": "product", "factors": SPACE | {"row": 99}}}}, "at most 4096"),
    ],
)
def test_studies_that_make_no_sense_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(SpriteSplits, given)


# The effects


def test_effects_are_computed_as_stated(small, tables, effects):
    found = effects(small, tables(small))
    expected = {"extrapolation-fails": 1.8}
    for network in NETWORKS:
        extra = 0.1 if network == "mlp" else 0.0
        expected |= {
            f"{network}-fits": 0.98,
            f"{network}-in-distribution": 0.98,
            f"{network}-element-is-easy": extra,
            f"{network}-range-is-harder": 0.25,
            f"{network}-extrapolation-is-hardest": 0.2,
            f"{network}-range-loses-the-shape": 1.0,
            f"{network}-extrapolation-spares-the-rest": extra,
            f"{network}-knows-more-than-it-says": 0.4,
            f"{network}-learned-what-it-does-not-say": 0.3,
            f"control-is-learned-by-{network}": 0.98,
            f"control-fails-{network}": -0.3,
        }
    expected |= {f"convolution-helps-{split}": 0.1 for split in HARD}
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(6, value), atol=1e-9, err_msg=name)


def test_as_in_the_literature_every_claim_is_supported(small, tables, words):
    found = words(small, tables(small, noise=0.005, mlp=0.0))
    helps = {f"convolution-helps-{split}" for split in HARD}
    wanted = {claim.name: claim.of("sprite-splits").wanted for claim in small.design.claims}
    assert {name for name, verdict in found.items() if verdict != wanted[name]} == helps
    assert {found[name] for name in helps} == {"equivalent"}
    assert [claim.name for claim in small.design.claims if claim.primary] == ["extrapolation-fails"]


def test_a_network_that_extrapolates_contradicts(small, tables, words):
    found = words(small, tables(small, noise=0.005, lost={split: {} for split in SPLITS}, mlp=0.0))
    assert found["extrapolation-fails"] == found["convnet-range-is-harder"] == "equivalent"


def test_a_network_that_does_not_fit_decides_nothing(small, tables, words):
    def poor(labels):
        bad = labels["network"] == "mlp" and labels.get("split") == "reach"
        return {"r2_in": 0.5 + 0.01 * labels["replicate"]} if bad else {}

    found = words(small, tables(small, noise=0.005, poor=poor))
    assert found["mlp-range-is-harder"] == found["extrapolation-fails"] == "inconclusive"
    assert found["convnet-range-is-harder"] == "supported"


def test_a_failed_run_takes_its_replicate_out(small, tables, effects):
    def failed(labels):
        return (labels["network"], labels.get("split"), labels["replicate"]) == ("convnet", "reach", 3)

    def without(frame):
        gone = (frame["network"] == "convnet") & (frame.get("split") == "reach") & (frame["replicate"] == 3)
        return frame[~gone] if "split" in frame else frame

    names = ("r2_in", "r2_held_out", "success_held_out", "refit_success", "refit_success_untrained")
    empty = lambda labels: dict.fromkeys(names, np.nan) if failed(labels) else {}  # noqa: E731
    found = effects(small, tables(small, keep=without, poor=empty))
    for name in ("convnet-range-is-harder", "convnet-fits", "convolution-helps-reach"):
        assert np.isnan(found[name]).nonzero()[0].tolist() == [3], name
    assert np.isfinite(found["mlp-range-is-harder"]).all() and np.isfinite(found["extrapolation-fails"]).all()


def test_combinations_that_were_not_scored_are_not_replaced_by_others(small, regions, tables, effects):
    config, _ = small.design.runs[0]
    names = [config.space.name(row) for row in config.space.enumerate()]
    key = next(key for key in regions if key[:3] == ("main", "element", "convnet") and key[3] == 2)
    block = [name for name, region in zip(names, regions[key], strict=True) if region == "held_out"]

    def without(frame):
        if "split" not in frame:
            return frame
        gone = (frame["split"] == "random") & (frame["replicate"] == 2) & (frame["combination"] == block[0])
        return frame[~gone]

    found = effects(small, tables(small, keep=without))
    assert np.isnan(found["convnet-element-is-easy"]).nonzero()[0].tolist() == [2]


def test_without_runs_nothing_is_decided(small, made, effects):
    assert all(np.isnan(values).all() for values in effects(small, made(small, lambda labels: {})).values())


# What is shown


def test_figures_and_overview_of_tables_and_of_nothing(small, tables, made):
    frames = tables(small, noise=0.01)
    for given in (frames, made(small, lambda labels: {})):
        for figure in small.design.figures(given):
            assert figure.chart.to_dict() and figure.caption and figure.title.endswith("?")
    overview = small.design.overview(frames)
    assert len(overview) == 10 and (overview["n"] == 6).all()
