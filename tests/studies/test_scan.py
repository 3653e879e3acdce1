"""scan: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.objectives.next_token import NextToken
from recombine.overrides import validate
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.scan import Scan
from recombine.studies.scan_claims import APART, CELLS, FEW, SCALED, SPLITS
from recombine.training.prepare import Setting
from recombine.training.program import Program, signature

ACCURACY = {
    "simple": 0.99,
    "alike": 0.95,
    "around-right": 0.5,
    "divergent": 0.8,
    "add-jump": 0.02,
    "length": 0.1,
    APART: 0.2,
    FEW: 0.4,
}
DIVERGENCE = {
    "simple": 0.01,
    "alike": 0.01,
    "around-right": 0.3,
    "divergent": 0.2,
    "add-jump": 0.6,
    "length": 0.5,
    APART: 0.5,
    FEW: 0.1,
}
"""A world in which every claim holds; the true divergences are others."""


@pytest.fixture(scope="module")
def small() -> Scan:
    whole = {"asked": tuple(CELLS), "grown": ("width", "layers", "share"), "depths": (1, 2)}
    whole |= {"first_seed": 0, "replicates": 6}
    return validate(Scan, Scan.profiles["smoke"] | whole)


def tables(
    study: Scan,
    closing: float = 0.0,
    noise: float = 0.005,
    known: bool = True,
    unmet: float = 0.5,
    helped: float = 0.4,
) -> Tables:
    """Scores by split. `closing` is what the largest size gains where the gap is; `known` says whether 'jump' alone is
    answered right; `unmet` is the share of what is right at equal length where a pair is new; `helped` is what a split at random
    loses at the least size."""
    draw = np.random.default_rng(0)
    runs, combinations = [], []
    for config, labels in study.runs():
        size = {name: labels[name] for name in study.usual}
        control = labels["family"] == "lookup-scan"
        gain = closing if size == study.usual and labels["split"] in ("add-jump", "length") else 0.0
        gain -= helped if labels["split"] == "simple" and size == study.least else 0.0
        accuracy = 0.0 if control else ACCURACY[labels["split"]] + gain + noise * draw.standard_normal()
        apart = DIVERGENCE[labels["split"]] + noise * draw.standard_normal()
        values = {
            "accuracy_in": 0.995 - abs(noise * draw.standard_normal()),
            "accuracy_held_out": accuracy,
            "compound_divergence": apart,
            "right_jump": float(known),
        }
        runs.append({"run": config.run_id} | labels | values)
        combinations += [
            {"run": config.run_id, "region": "held_out", "stratum": stratum, "combination": command}
            | labels
            | {"whole": accuracy * share, "episodes": 1.0}
            for stratum, command, share in (
                ("all_pairs_met", "walk left and run", 1.0),
                ("all_pairs_met", "look and walk left", 1.0),
                ("some_pairs_unmet", "run after look right", unmet),
                # Short ones are right and long ones are not, whatever met.
                ("all_pairs_met", "walk", 1.0),
                ("some_pairs_unmet", "jump around right twice", 0.0),
            )
        ]
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), pd.DataFrame(combinations), empty, empty)


def judged(study: Scan, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_cell_has_its_replicates() -> None:
    study = Scan.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    assert not labels.duplicated().any()
    sizes = labels.groupby(["family", "split", "width", "layers", "share"]).size()
    assert (sizes == study.replicates).all() and study.replicates >= 8
    own = labels[labels["family"] == "scan"]
    assert set(own["split"]) == set(CELLS)
    smaller = own[own["width"] < study.usual["width"]]
    assert set(smaller["split"]) == {*SCALED, "simple"}
    assert len(labels) <= 130, "what two cores can do"


def test_replicates_share_nothing_that_is_random() -> None:
    seeds = [config.seeds for config, labels in Scan.profile("laptop").runs() if labels["split"] == "simple"]
    assert {seed.init for seed in seeds} == set(Scan.profile("laptop").seeds)


def test_verdicts_where_every_claim_holds(small: Scan) -> None:
    words = {name: verdict.verdict for name, verdict in judged(small, tables(small)).items()}
    assert set(words.values()) == {"supported"}


def test_verdicts_where_scale_closes_the_gaps(small: Scan) -> None:
    found = judged(small, tables(small, closing=0.6))
    for name in ("width", "layers", "share"):
        assert found[f"{name}-does-not-close-add-jump"].verdict == "contradicted"
    assert found["add-jump-fails"].verdict == "equivalent", "within the margin of no loss"


def test_nothing_is_said_of_a_verb_that_was_not_learned(small: Scan) -> None:
    found = judged(small, tables(small, known=False))
    assert found["jump-is-known"].verdict != "supported"
    assert found["add-jump-fails"].verdict == "inconclusive"
    assert found["length-fails"].verdict == "supported"


def test_splits_share_their_compiled_programs() -> None:
    runs = Scan.profile("laptop").runs()
    lists = {
        labels["split"]: Setting(config).lane().sampler
        for config, labels in runs
        if config.family.kind == "scan" and labels["replicate"] == 1000 and labels["width"] == 64
    }
    assert len({signature(lists[split]) for split in SPLITS}) == 1
    # All splits at the largest size, random places, the control, the narrowest network, the shallowest.
    assert len({Program.of(config).name for config, _ in runs}) == 5
    for config, labels in runs:
        assert isinstance(config.objective, NextToken)
        assert bool(config.objective.spread) == (labels["split"] == APART)


def test_new_pairs_are_compared_at_equal_length(small: Scan) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0, unmet=1.0))}
    np.testing.assert_allclose(found["unmet-pairs-tell"], 0.0, atol=1e-9)
    assert judged(small, tables(small, unmet=1.0))["unmet-pairs-tell"].verdict == "equivalent"


def test_numbers_of_actions_count_by_what_they_tell(small: Scan) -> None:
    frames = tables(small, noise=0.0)
    own = (frames.combinations["split"] == "divergent") & (frames.combinations["replicate"] == 2)
    # Two actions: one command of each kind, both wrong. Weights are 1 / 2 there and 2 / 3 at three actions.
    more = [
        frames.combinations[own].head(1).iloc[0].to_dict()
        | {"stratum": stratum, "combination": command, "whole": 0.0}
        for stratum, command in (("all_pairs_met", "walk left"), ("some_pairs_unmet", "run right"))
    ]
    combinations = pd.concat([frames.combinations, pd.DataFrame(more)], ignore_index=True)
    added = Tables(frames.runs, combinations, frames.probes, frames.curves)
    found = {one.claim.name: one.values for one in small.effects(added)}["unmet-pairs-tell"]
    np.testing.assert_allclose(found[[0, 2]], [0.4, 0.4 * (2 / 3) / (2 / 3 + 1 / 2)])


def test_scale_that_helps_nowhere_says_nothing(small: Scan) -> None:
    found = judged(small, tables(small, helped=0.0))
    assert found["more-helps-where-it-can"].verdict == "equivalent"
    assert found["width-does-not-close-add-jump"].verdict == "inconclusive"
    assert found["share-does-not-close-length"].verdict == "inconclusive"
    assert found["layers-does-not-close-length"].verdict == "supported"


def test_few_commands_that_were_not_learned_say_nothing(small: Scan) -> None:
    frames = tables(small)
    frames.runs.loc[(frames.runs["split"] == FEW) & (frames.runs["family"] == "scan"), "accuracy_in"] = 0.5
    assert judged(small, frames)["few-commands-tell-more"].verdict == "inconclusive"


def test_effects_are_computed_as_stated(small: Scan) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0))}
    expected = {
        "add-jump-fails": 0.97,
        "length-fails": 0.89,
        "width-does-not-close-length": 0.0,
        "divergent-fails": 0.15,
        "unmet-pairs-tell": 0.4,
        "control-fails": 0.0,
        "length-fails-at-trained-places": 0.995 - 0.2,
        "more-helps-where-it-can": 0.4,
        "few-commands-tell-more": 0.4,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-9, err_msg=name)


def test_a_missing_run_leaves_its_replicate_out(small: Scan) -> None:
    frames = tables(small)
    gone = (frames.runs["split"] == "length") & (frames.runs["replicate"] == 1)
    left = Tables(frames.runs[~gone], frames.combinations, frames.probes, frames.curves)
    found = {one.claim.name: one.values for one in small.effects(left)}
    assert np.isnan(found["length-fails"][1]) and np.isfinite(np.delete(found["length-fails"], 1)).all()


def test_a_replicate_without_commands_tells_nothing_of_pairs(small: Scan) -> None:
    frames = tables(small)
    gone = (frames.combinations["split"] == "divergent") & (frames.combinations["replicate"] == 1)
    left = Tables(frames.runs, frames.combinations[~gone], frames.probes, frames.curves)
    found = {one.claim.name: one.values for one in small.effects(left)}["unmet-pairs-tell"]
    assert np.isnan(found[1]) and np.isfinite(np.delete(found, 1)).all()


def test_figures_show_every_split(small: Scan) -> None:
    figures = {figure.name: figure for figure in small.figures(tables(small))}
    assert set(figures) == {"by_split", "by_width", "by_layers", "by_share", "by_length", "by_certificate"}
    for figure in figures.values():
        assert figure.chart.to_dict()
    assert "longer answers" in str(figures["by_split"].chart.to_dict())


@pytest.mark.parametrize("given", [{"widths": (8,)}, {"shares": (1.0, 0.5)}, {"shares": (0.1, 0.5)}])
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"smallest first|must be 1"):
        validate(Scan, given)


def test_what_is_left_out_is_not_decided(small: Scan) -> None:
    less = small.model_copy(update={"asked": ("simple", "add-jump"), "grown": ("width",)})
    assert {labels["split"] for _, labels in less.runs()} == {"simple", "add-jump"}
    assert {labels["layers"] for _, labels in less.runs()} == {small.depths[-1]}
    found = judged(less, tables(less))
    assert found["add-jump-fails"].verdict == "supported"
    assert all(
        found[name].verdict == "inconclusive"
        for name in (
            "length-fails",
            "length-fails-at-trained-places",
            "control-fails",
            "divergent-fails",
            "layers-does-not-close-add-jump",
        )
    )
    assert all(figure.chart.to_dict() for figure in less.figures(tables(less)))
    flat = validate(Scan, less.model_dump() | {"depths": (1,)})
    assert judged(flat, tables(flat))["layers-does-not-close-add-jump"].verdict == "inconclusive"
    with pytest.raises(BadInput, match="'tall'"):
        validate(Scan, {"asked": ("simple", "tall")})
