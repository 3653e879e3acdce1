"""coverage-principle: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.coverage_principle import CoveragePrinciple, exponent
from recombine.studies.coverage_principle_claims import ARMS, LARGE, LOOKUP, OTHER, THOUGHT, THREE, TWO

CONSTANT = {TWO: 0.8, THOUGHT: 0.4}
"""Examples for half of the inputs are so many times n ** 2.5."""
INPUTS = 10
"""Rows of each level in a run."""


@pytest.fixture(scope="module")
def small() -> CoveragePrinciple:
    return apply(
        CoveragePrinciple.profile("smoke"),
        ["first_seed=0", "replicates=6", "tokens=[8, 12, 16]", "held_out=0.1"],
    ).model_copy(update={"shares": (0.15, 0.22, 0.3), "few": 0.22})


def right(study: CoveragePrinciple, labels: dict[str, Any], level: str, gain: float) -> float:
    """A world in which every claim holds."""
    arm, tokens, number = labels["arm"], labels["tokens"], labels["number"]
    if level == "uncovered" or arm == LOOKUP:
        return 1 / tokens
    if arm in (THREE, OTHER):
        return 0.2
    of = TWO if arm == LARGE else arm
    needed = CONSTANT[of] * tokens**2.5
    base = float(np.clip(0.5 + 0.4 * np.log2(number / needed), 0.0, 0.85)) + (gain if arm == LARGE else 0.0)
    return base + (0.1 if level == "high" else -0.1)


def tables(study: CoveragePrinciple, noise: float = 0.003, flat: bool = False, gain: float = 0.0) -> Tables:
    """`flat`: coverage tells nothing. `gain`: what the large network adds."""
    draw = np.random.default_rng(0)
    runs, cutoffs = [], []
    for config, labels in study.runs():
        name = {"run": config.run_id} | labels
        wobble = noise * draw.standard_normal(4)
        runs.append(name | {"accuracy_in": 0.99 - abs(wobble[0]), "answered": 0.5, "covered": 0.6})
        for place, level in enumerate(("uncovered", "low", "high")):
            share = 0.6 if flat else right(study, labels, level, gain)
            for one in range(INPUTS):
                cutoffs.append(
                    name
                    | {
                        "cutoff": 4 * place + (one % 2 if place else 0),
                        "right": share + wobble[place + 1],
                        "known": level != "uncovered",
                        "guess": 1 / study.most,
                    }
                )
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), empty, empty, empty, {"cutoffs": pd.DataFrame(cutoffs)})


def judged(study: CoveragePrinciple, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_cell_has_its_replicates() -> None:
    study = CoveragePrinciple.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    assert not labels.duplicated().any() and study.replicates >= 8
    assert (labels.groupby(["arm", "tokens", "number"]).size() == study.replicates).all()
    assert set(labels["arm"]) == set(ARMS)


@pytest.mark.parametrize("name", CoveragePrinciple.profiles)
def test_every_profile_has_inputs_for_its_examples(name: str) -> None:
    study = CoveragePrinciple.profile(name)
    assert len(study.runs()) == len(study.cells_run) * study.replicates


def test_arms_that_are_compared_share_tokens_and_number() -> None:
    study = CoveragePrinciple.profile("laptop")
    sizes = {arm: set[tuple[int, int]]() for arm in ARMS}
    for arm, tokens, number in study.cells_run:
        sizes[arm].add((tokens, number))
    for arm in ARMS:
        assert sizes[arm] <= sizes[TWO]
    assert (study.most, study.number(study.few)) in sizes[THOUGHT] & sizes[LARGE] & sizes[TWO]


@pytest.mark.parametrize("name", ["laptop", "paper"])
def test_the_large_network_has_twenty_times_the_weights(name: str) -> None:
    study = CoveragePrinciple.profile(name)

    def weights(model: Any) -> int:
        return 2 * model.layers * (2 + model.widening) * model.width**2

    assert 18 <= weights(study.large) / weights(study.model) <= 25


def test_verdicts_where_every_claim_holds(small: CoveragePrinciple) -> None:
    words = {name: verdict.verdict for name, verdict in judged(small, tables(small)).items()}
    assert set(words.values()) == {"supported"}, words


def test_verdicts_where_coverage_tells_nothing(small: CoveragePrinciple) -> None:
    found = judged(small, tables(small, flat=True))
    assert found["coverage-tells"].verdict == "equivalent", "within the margin of no difference"
    assert found["uncovered-stay-at-chance"].verdict == "contradicted"
    assert found["control-fails"].verdict == "contradicted"


def test_verdicts_where_size_makes_up_for_examples(small: CoveragePrinciple) -> None:
    assert judged(small, tables(small, gain=0.3))["size-does-not-help"].verdict == "contradicted"


def test_effects_are_computed_as_stated(small: CoveragePrinciple) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0))}
    two = np.clip(0.5 + 0.4 * np.log2(small.number(0.3) / (0.8 * 16**2.5)), 0, 0.85)
    expected = {
        "fits-two-hop": 0.99,
        "composes": two + 0.1,
        "coverage-tells": two + 0.1 - 1 / 16,
        "more-evidence-is-better": 0.2,
        "some-evidence-is-better": two - 0.1 - 1 / 16,
        "uncovered-stay-at-chance": -1 / 16,
        "uncovered-are-guessed": 0.0,
        "three-hops-need-more": two - 0.2,
        "non-tree-fails": two - 0.2,
        "size-does-not-help": 0.0,
        "needs-more-than-facts": 2.5,
        "control-fails": -1 / 16,
    }
    for name, value in expected.items():
        # Numbers of examples are rounded, and curves are straight between them.
        exact = name != "needs-more-than-facts"
        np.testing.assert_allclose(found[name], value, atol=1e-9 if exact else 0.05, err_msg=name)


def test_numbers_that_were_not_reached_are_censored(small: CoveragePrinciple) -> None:
    frames = tables(small, noise=0.0)
    cutoffs = frames.others["cutoffs"]
    low = cutoffs.assign(right=cutoffs["right"].where(cutoffs["tokens"] < small.most, 0.1))
    found = small.needed(dataclasses.replace(frames, others={"cutoffs": low}))
    last = found[found["tokens"] == small.most]
    assert (last["censored"] == "right").all()
    assert (last["needed"] == small.number(small.shares[-1])).all()


def test_the_exponent_is_that_of_a_power() -> None:
    tokens = np.array([10, 14, 20] * 2)
    frame = pd.DataFrame({"tokens": tokens, "needed": 3.0 * tokens**2.5, "censored": "no"})
    assert exponent(frame) == pytest.approx(2.5)
    assert np.isnan(exponent(frame.assign(censored="right")))


def test_a_missing_run_leaves_its_replicate_out(small: CoveragePrinciple) -> None:
    frames = tables(small)
    gone = {
        name: frame[~((frame["arm"] == OTHER) & (frame["replicate"] == 1))]
        for name, frame in (("runs", frames.runs), ("cutoffs", frames.others["cutoffs"]))
    }
    left = dataclasses.replace(frames, runs=gone["runs"], others={"cutoffs": gone["cutoffs"]})
    found = {one.claim.name: one.values for one in small.effects(left)}
    assert np.isnan(found["non-tree-fails"][1]) and np.isfinite(np.delete(found["non-tree-fails"], 1)).all()
    assert np.isfinite(found["three-hops-need-more"]).all()


def test_figures_show_every_arm(small: CoveragePrinciple) -> None:
    figures = {figure.name: figure for figure in small.figures(tables(small))}
    assert set(figures) == {"by_cutoff", "by_arm", "by_number", "needed"}
    for figure in figures.values():
        assert figure.chart.to_dict()
    shown = str(figures["by_arm"].chart.to_dict())
    assert all(words in shown for words in ARMS.values())
    assert "exponent 2.5" in figures["needed"].caption


@pytest.mark.parametrize(
    "given",
    [{"tokens": (10, 14)}, {"shares": (0.2, 0.1)}, {"few": 0.5}, {"base": {"family": "lookup-hops"}}],
)
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"smallest first|one of shares|hops on hops"):
        validate(CoveragePrinciple, given)
