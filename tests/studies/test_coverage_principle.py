"""coverage-principle: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.coverage_principle import ARMS, CoveragePrinciple

World = Callable[..., Tables]

CONSTANT = {"two_hop": 0.8, "large": 0.8, "thought": 0.4}
"""Examples for half of the inputs are so many times n ** 2.5."""
INPUTS = 10
"""Rows of each level in a run."""


@pytest.fixture(scope="module")
def small() -> CoveragePrinciple:
    return apply(
        CoveragePrinciple.profile("smoke"), ["first_seed=0", "replicates=6", "tokens=[8, 12, 16]", "held_out=0.1"]
    ).model_copy(update={"shares": (0.15, 0.22, 0.3), "few": 0.22})


def right(labels: dict[str, Any], level: str, gain: float) -> float:
    """A world in which every claim holds."""
    arm, tokens, number = labels["arm"], labels["tokens"], labels["number"]
    if level == "uncovered" or arm == "lookup":
        return 1 / tokens
    if arm in ("three_hop", "non_tree"):
        return 0.2
    needed = CONSTANT[arm] * tokens**2.5
    base = float(np.clip(0.5 + 0.4 * np.log2(number / needed), 0.0, 0.85)) + gain * (arm == "large")
    return base + (0.1 if level == "high" else -0.1)


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """`flat`: coverage tells nothing. `gain`: what the large network adds. `stuck`: the most tokens stay at a low score.
    `missing` says which runs have no rows."""

    def make(
        study: CoveragePrinciple,
        noise: float = 0.003,
        flat: bool = False,
        gain: float = 0.0,
        stuck: bool = False,
        missing: Callable[[dict[str, Any]], bool] = lambda labels: False,
    ) -> Tables:
        draw = np.random.default_rng(0)

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            values = {"accuracy_in": 0.99 - abs(noise * draw.standard_normal()), "answered": 0.5, "covered": 0.6}
            return {} if missing(labels) else values

        def cutoffs(labels: dict[str, Any]) -> pd.DataFrame:
            rows, wobble = [], noise * draw.standard_normal(3)
            for index, level in enumerate(("uncovered", "low", "high")):
                share = 0.6 if flat else right(labels, level, gain)
                share = 0.1 if stuck and labels["tokens"] == study.most else share + wobble[index]
                rows += [
                    {"cutoff": 4 * index + (one % 2 if index else 0), "right": share}
                    | {"known": level != "uncovered", "guess": 1 / study.most}
                    for one in range(INPUTS)
                ]
            return pd.DataFrame([] if missing(labels) else rows)

        return made(study, score, cutoffs=cutoffs)

    return make


def test_every_cell_has_its_replicates() -> None:
    study = CoveragePrinciple.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.design.runs])
    assert not labels.duplicated().any() and study.replicates >= 8
    assert (labels.groupby(["arm", "tokens", "number"]).size() == study.replicates).all()
    assert set(labels["arm"]) == set(ARMS)


@pytest.mark.parametrize("name", CoveragePrinciple.profiles)
def test_every_profile_has_inputs_for_its_examples(name: str) -> None:
    study = CoveragePrinciple.profile(name)
    cells = len(study.tokens) * len(study.shares) + len(ARMS) - 1
    assert len(study.design.runs) == cells * study.replicates


def test_arms_that_are_compared_share_tokens_and_number() -> None:
    study = CoveragePrinciple.profile("laptop")
    cells = {
        name: {(cell.labels["tokens"], cell.labels["number"]) for cell in arm.cells}
        for name, arm in study.design.arms.items()
    }
    for name in ARMS:
        assert cells[name] <= cells["two_hop"]
    assert (study.most, study.number(study.few)) in cells["thought"] & cells["large"]


@pytest.mark.parametrize("name", ["laptop", "paper"])
def test_the_large_network_has_twenty_times_the_weights(name: str) -> None:
    study = CoveragePrinciple.profile(name)

    def weights(model: Any) -> int:
        return 2 * model.layers * (2 + model.mlp_ratio) * model.width**2

    assert 18 <= weights(study.large) / weights(study.model) <= 25


def test_verdicts_where_every_claim_holds(small: CoveragePrinciple, world: World, words: Any) -> None:
    assert set(words(small, world(small)).values()) == {"supported"}


def test_verdicts_where_coverage_tells_nothing(small: CoveragePrinciple, world: World, words: Any) -> None:
    verdicts = words(small, world(small, flat=True))
    assert verdicts["coverage-tells"] == "equivalent", "within the margin of no difference"
    assert verdicts["uncovered-stay-at-chance"] == "contradicted"
    assert verdicts["control-fails"] == "contradicted"


def test_verdicts_where_size_makes_up_for_examples(small: CoveragePrinciple, world: World, words: Any) -> None:
    assert words(small, world(small, gain=0.3))["size-does-not-help"] == "contradicted"


def test_effects_are_computed_as_stated(small: CoveragePrinciple, world: World, effects: Any) -> None:
    values = effects(small, world(small, noise=0.0))
    two = np.clip(0.5 + 0.4 * np.log2(small.number(0.3) / (0.8 * 16**2.5)), 0, 0.85)
    expected = {
        "fits-two-hop": 0.99,
        "composes": two + 0.1,
        "coverage-tells": two + 0.1 - 1 / 16,
        "more-evidence-is-better": 0.2,
        "some-evidence-is-better": two - 0.1 - 1 / 16,
        "uncovered-stay-at-chance": -1 / 16,
        "uncovered-are-guessed": 0.0,
        "evidence-not-facts": 0.2,
        "three-hops-need-more": two - 0.2,
        "non-tree-fails": two - 0.2,
        "size-does-not-help": 0.0,
        "needs-more-than-facts": 2.5,
        "control-fails": -1 / 16,
    }
    for name, value in expected.items():
        # Numbers of examples are rounded, and curves are straight between them.
        exact = name != "needs-more-than-facts"
        np.testing.assert_allclose(values[name], value, atol=1e-9 if exact else 0.05, err_msg=name)


def test_numbers_that_were_not_reached_are_censored(small: CoveragePrinciple, world: World) -> None:
    tables = small.design.data(world(small, noise=0.0, stuck=True))["two_hop"]
    needed = small.needed(tables)
    last = needed[needed["tokens"] == small.most]
    assert len(last) == small.replicates and (last["censored"] == "right").all()
    assert (last["needed"] == small.number(small.shares[-1])).all()


def test_a_missing_run_leaves_its_replicate_out(small: CoveragePrinciple, world: World, effects: Any) -> None:
    gone = world(small, missing=lambda labels: labels["arm"] == "non_tree" and labels["replicate"] == 1)
    values = effects(small, gone)
    assert np.isnan(values["non-tree-fails"][1])
    assert np.isfinite(np.delete(values["non-tree-fails"], 1)).all()
    assert np.isfinite(values["three-hops-need-more"]).all()


def test_figures_show_every_arm(small: CoveragePrinciple, world: World) -> None:
    figures = {figure.name: figure for figure in small.design.figures(world(small))}
    assert set(figures) == {"by_cutoff", "by_arm", "by_number", "needed"}
    for figure in figures.values():
        assert figure.chart.to_dict()
    shown = str(figures["by_arm"].chart.to_dict())
    assert all(words in shown for words in ARMS.values())
    assert "exponent 2.5" in figures["needed"].caption


@pytest.mark.parametrize(
    "given", [{"tokens": (10, 14)}, {"shares": (0.2, 0.1)}, {"few": 0.5}, {"base": {"family": "lookup-hops"}}]
)
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"smallest first|one of shares|hops on hops"):
        validate(CoveragePrinciple, given)
