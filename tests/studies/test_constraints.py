"""constraints: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.objectives.constraint_reward import ConstraintReward
from recombine.overrides import apply, validate
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.constraints import Constraints
from recombine.studies.constraints_claims import (
    CLAIMS,
    DECODER,
    ENCODER,
    PACKING,
    PLAIN,
    REWARD,
    SMALL,
    STEPS,
)

BOX = {SMALL: 0.58, "14 buses": 0.47, PACKING: 0.75}
TYPES = ("p-bounds", "p-balance-loaded", "bounds", "hard", "total", "every")


@pytest.fixture(scope="module")
def small() -> Constraints:
    return apply(Constraints.profile("laptop"), ["first_seed=0", "replicates=6"])


def tables(study: Constraints, noise: float = 0.002, **worlds: float) -> Tables:
    """A world in which every claim holds, but for what `worlds` changes: the rate of hard constraints with `steps`, and how
    much more than the mean a network satisfies."""
    draw = np.random.default_rng(0)
    runs, rates = [], []
    for config, labels in study.runs():
        name = {"run": config.run_id} | labels
        box, size = BOX[labels["problem"]], study.widths.index(labels["width"])
        hard = 0.1 + (worlds.get("steps", 0.0) if labels["arm"] == STEPS else 0)
        hard += 0.3 if labels["arm"] == REWARD and labels["problem"] == PACKING else 0
        total = box + 0.02
        values: dict[str, float] = {
            "share_box": box,
            # Malformed answers take .03 of everything.
            "total_network": total + worlds.get("above", 0.0) - 0.03,
            "total_network_formed": total + worlds.get("above", 0.0),
            "bounds_network": 0.99,
            "hard_network": hard - 0.03,
            "hard_network_formed": hard,
            "every_network": 0.0,
            "malformed_network": 0.01,
            "error_in": 0.5,
            "error_mean_in": 1.0,
            "error_network": 0.9 - 0.1 * size,
            "error_mean": 0.5,
            "total_mean": total - 0.2,
            "total_mean_formed": total,
            "hard_mean": 0.1,
            "bounds_mean": 1.0,
            "every_mean": 0.0,
            "total_network_repaired": 0.9,
            "total_network_repaired_formed": 0.995,
            "total_mean_repaired": 0.8,
            "total_mean_repaired_formed": 0.995,
        }
        wobble = {key: value + noise * draw.standard_normal() for key, value in values.items()}
        runs.append(name | wobble)
        rates += [
            name | {"answers": source, "tolerance": tolerance, "constraints": kind, "rate": tolerance}
            for source in ("network", "mean", "nearest", "network_repaired")
            for tolerance in (0.01, 0.1)
            for kind in TYPES
        ]
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), empty, empty, empty, {"constraint-rates": pd.DataFrame(rates)})


def judged(study: Constraints, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_arm_has_its_replicates_and_what_it_is_named_for() -> None:
    study = Constraints.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    sizes = labels.groupby(list(study.cells)).size()
    assert (sizes == study.replicates).all() and study.replicates >= 8 and len(sizes) == 12
    plain = labels[(labels["problem"] == SMALL) & (labels["arm"] == "answer only")]
    assert {tuple(row) for row in plain[["model", "width"]].to_numpy()} == {
        (model, width) for model in ("decoder", "encoder-decoder") for width in study.widths
    }
    for config, own in study.runs():
        assert config.model.kind == own["model"] and config.model.width == own["width"]  # type: ignore[attr-defined]
        assert config.family.steps == (own["arm"] == STEPS)  # type: ignore[attr-defined]
        assert isinstance(config.objective, ConstraintReward) == (own["arm"] == REWARD)


def test_verdicts_where_every_claim_holds(small: Constraints) -> None:
    found = judged(small, tables(small))
    assert {name for name, one in found.items() if one.verdict != one.claim.wanted} == set()
    assert set(found) == {claim.name for claim in CLAIMS}


@pytest.mark.parametrize(
    ("world", "name"),
    [
        ({"steps": 0.4}, "steps-do-not-lift"),
        ({"above": 0.2}, "plateau-is-the-mean-9"),
        ({"above": -0.2}, "plateau-is-the-box-14"),
    ],
)
def test_verdicts_where_a_claim_does_not_hold(small: Constraints, world: dict[str, float], name: str) -> None:
    assert judged(small, tables(small, **world))[name].verdict == "contradicted"


def test_effects_are_computed_as_stated(small: Constraints) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0))}
    expected = {
        "well-formed-9": 0.99,
        "fits-14": 0.5,
        "bounds-not-balance": 0.92,
        "size-changes-little-decoder": 0.0,
        "error-falls": 0.2,
        "balance-stays-low": 0.1,
        "plateau-is-the-mean-knapsack": 0.0,
        "plateau-is-the-box-9": 0.02,
        "reward-works-where-it-can": 0.3,
        "newton-repairs-14": 0.995,
        "newton-needs-no-network": 0.0,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("column", "value", "arm", "undecided"),
    [
        (
            "error_in",
            0.95,
            {"problem": SMALL, "model": ENCODER},
            {
                "bounds-not-balance",
                "size-changes-little-encoder-decoder",
                "architecture-changes-little",
                "fits-9-encoder-decoder",
            },
        ),
        ("error_in", 0.95, {"problem": SMALL, "arm": STEPS}, {"steps-do-not-lift", "fits-9-steps"}),
        ("error_in", 0.95, {"problem": SMALL, "arm": REWARD}, {"reward-does-not-lift", "fits-9-reward"}),
        (
            "error_in",
            0.95,
            {"problem": SMALL, "model": DECODER, "width": 32, "arm": PLAIN},
            {"steps-do-not-lift", "reward-does-not-lift", "fits-9-usual"},
        ),
        (
            "error_in",
            0.95,
            {"problem": PACKING, "arm": REWARD},
            {"reward-works-where-it-can", "reward-does-not-lift", "fits-knapsack-reward"},
        ),
        (
            "malformed_network",
            0.3,
            {"problem": SMALL, "arm": STEPS},
            {"steps-do-not-lift", "well-formed-9-steps"},
        ),
        (
            "malformed_network",
            0.3,
            {"problem": SMALL, "arm": REWARD},
            {"reward-does-not-lift", "well-formed-9-reward"},
        ),
        (
            "malformed_network",
            0.3,
            {"problem": PACKING, "arm": REWARD},
            {"reward-works-where-it-can", "reward-does-not-lift", "well-formed-knapsack-reward"},
        ),
        ("malformed_network", 0.3, {"problem": PACKING, "arm": STEPS}, set()),
        (
            "hard_network_formed",
            0.1,
            {"problem": PACKING, "arm": REWARD},
            {"reward-works-where-it-can", "reward-does-not-lift"},
        ),
    ],
)
def test_an_arm_that_failed_leaves_its_own_claims_undecided_and_no_others(
    small: Constraints, column: str, value: float, arm: dict[str, Any], undecided: set[str]
) -> None:
    frames = tables(small)
    hit = (frames.runs[list(arm)] == pd.Series(arm)).all(axis=1)
    noise = 0.002 * np.random.default_rng(1).standard_normal(hit.sum())
    frames.runs.loc[hit, column] = value + noise
    found = judged(small, frames)
    assert hit.any() and {name for name, one in found.items() if one.verdict != one.claim.wanted} == undecided


def test_claims_need_what_is_judged() -> None:
    known = {claim.name for claim in CLAIMS}
    assert all(set(claim.needs) <= known for claim in CLAIMS)
    needed = {name for claim in CLAIMS for name in claim.needs}
    assert {claim.name for claim in CLAIMS if claim.role == "precondition"} <= needed


def test_what_is_left_out_is_not_decided() -> None:
    whole = {"arms": (PLAIN, REWARD), "first_seed": 0, "replicates": 6}
    study = validate(Constraints, Constraints.profiles["smoke"] | whole)
    found = judged(study, tables(study))
    assert found["bounds-not-balance-14"].verdict == found["steps-do-not-lift"].verdict == "inconclusive"
    assert found["reward-works-where-it-can"].verdict == "supported"


def test_a_missing_run_leaves_its_replicate_out(small: Constraints) -> None:
    frames = tables(small)
    gone = (frames.runs["arm"] == REWARD) & (frames.runs["replicate"] == 1)
    left = Tables(frames.runs[~gone], frames.combinations, frames.probes, frames.curves, frames.others)
    found = {one.claim.name: one.values for one in small.effects(left)}
    assert np.isnan(found["reward-does-not-lift"][1]) and np.isfinite(found["steps-do-not-lift"]).all()


def test_figures_are_drawn_with_and_without_runs(small: Constraints) -> None:
    names = ["by_size", "by_type", "by_arm", "by_tolerance", "by_error"]
    whole = tables(small)
    none = Tables(
        whole.runs[:0], whole.combinations, whole.probes, whole.curves, {"constraint-rates": whole.runs[:0]}
    )
    for frames in (whole, none):
        figures = small.figures(frames)
        assert [figure.name for figure in figures] == names
        assert all(figure.chart.to_dict() for figure in figures)


@pytest.mark.parametrize("given", [{"widths": (16, 8)}, {"base": {"family": "scan"}}])
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"smallest first|family 'problem'"):
        validate(Constraints, given)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("draws=1", "draws = 1: .*greater than or equal to 2"),
        ("items=1", "items = 1: .*greater than or equal to 2"),
        ("items=12", "12 items with 2 copies"),
        ("heads=3", "heads=3"),
        ("weight=-1", "weight = -1: .*greater than or equal to 0"),
    ],
)
def test_overrides_that_a_part_refuses_are_refused_at_once(override: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        apply(Constraints.profile("smoke"), [override])
