"""constraints: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.objectives.constraint_reward import ConstraintReward
from recombine.overrides import apply, validate
from recombine.studies.constraints import ARMS, DECODER, ENCODER, Constraints

World = Callable[..., Tables]
BOX = {"9 buses": 0.58, "14 buses": 0.47, "knapsack": 0.75}
TYPES = ("p-bounds", "p-balance-loaded", "bounds", "hard", "total", "every")


@pytest.fixture(scope="module")
def small() -> Constraints:
    return apply(Constraints.profile("laptop"), ["first_seed=0", "replicates=6"])


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """A world in which every claim holds, but for what is given: the rate of hard constraints with `steps`, and how much
    more than the mean a network satisfies (`above`). `change` gives other values for single runs."""

    def make(
        study: Constraints,
        noise: float = 0.002,
        steps: float = 0.0,
        above: float = 0.0,
        change: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda labels: {},
    ) -> Tables:
        draw = np.random.default_rng(0)

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            problem, method = ARMS[labels["arm"]]
            box, size = BOX[problem], study.widths.index(labels["width"])
            hard = 0.1 + steps * (method == "with steps") + 0.3 * (labels["arm"] == "knapsack_reward")
            total = box + 0.02
            values: dict[str, float] = {
                "share_box": box,
                # Malformed answers take .03 of everything.
                "total_network": total + above - 0.03,
                "total_network_formed": total + above,
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
            other = change(labels)
            values = {} if other is None else values | other
            return {key: value + noise * draw.standard_normal() for key, value in values.items()}

        rates = pd.DataFrame(
            [
                {"answers": source, "tolerance": tolerance, "constraints": kind, "rate": tolerance}
                for source in ("network", "mean", "nearest", "network_repaired")
                for tolerance in (0.01, 0.1)
                for kind in TYPES
            ]
        )
        return made(study, score, constraint_rates=lambda labels: rates)

    return make


def undecided(study: Constraints, verdicts: dict[str, str]) -> set[str]:
    """The claims whose verdict is not the wanted one."""
    wanted = {claim.name: claim.of("constraints").wanted for claim in study.design.claims}
    assert set(verdicts) == set(wanted)
    return {name for name, verdict in verdicts.items() if verdict != wanted[name]}


def test_every_arm_has_its_replicates_and_what_it_is_named_for() -> None:
    study = Constraints.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.design.runs])
    sizes = labels.groupby(["arm", "model", "width"]).size()
    assert (sizes == study.replicates).all() and study.replicates >= 8 and len(sizes) == 12
    plain = labels[labels["arm"] == "nine"]
    assert {tuple(row) for row in plain[["model", "width"]].to_numpy()} == {
        (model, width) for model in ("decoder", "encoder-decoder") for width in study.widths
    }
    for config, own in study.design.runs:
        method = ARMS[own["arm"]][1]
        assert config.model.kind == own["model"] and config.model.width == own["width"]  # type: ignore[attr-defined]
        assert config.family.steps == (method == "with steps")  # type: ignore[attr-defined]
        assert isinstance(config.objective, ConstraintReward) == (method == "with reward")


def test_verdicts_where_every_claim_holds(small: Constraints, world: World, words: Any) -> None:
    assert undecided(small, words(small, world(small))) == set()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"steps": 0.4}, "steps-do-not-lift"),
        ({"above": 0.2}, "plateau-is-the-mean-9"),
        ({"above": -0.2}, "plateau-is-the-box-14"),
    ],
)
def test_verdicts_where_a_claim_does_not_hold(
    small: Constraints, world: World, words: Any, given: dict[str, float], name: str
) -> None:
    assert words(small, world(small, **given))[name] == "contradicted"


def test_effects_are_computed_as_stated(small: Constraints, world: World, effects: Any) -> None:
    values = effects(small, world(small, noise=0.0))
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
        np.testing.assert_allclose(values[name], value, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("column", "value", "arm", "failed"),
    [
        (
            "error_in",
            0.95,
            {"arm": "nine", "model": ENCODER},
            {
                "bounds-not-balance",
                "size-changes-little-encoder-decoder",
                "architecture-changes-little",
                "fits-9-encoder-decoder",
            },
        ),
        ("error_in", 0.95, {"arm": "nine_steps"}, {"steps-do-not-lift", "fits-9-steps"}),
        ("error_in", 0.95, {"arm": "nine_reward"}, {"reward-does-not-lift", "fits-9-reward"}),
        (
            "error_in",
            0.95,
            {"arm": "nine", "model": DECODER, "width": 32},
            {"steps-do-not-lift", "reward-does-not-lift", "fits-9-usual"},
        ),
        (
            "error_in",
            0.95,
            {"arm": "knapsack_reward"},
            {"reward-works-where-it-can", "reward-does-not-lift", "fits-knapsack-reward"},
        ),
        ("malformed_network", 0.3, {"arm": "nine_steps"}, {"steps-do-not-lift", "well-formed-9-steps"}),
        ("malformed_network", 0.3, {"arm": "nine_reward"}, {"reward-does-not-lift", "well-formed-9-reward"}),
        (
            "malformed_network",
            0.3,
            {"arm": "knapsack_reward"},
            {"reward-works-where-it-can", "reward-does-not-lift", "well-formed-knapsack-reward"},
        ),
        ("malformed_network", 0.3, {"arm": "knapsack_steps"}, set()),
        ("hard_network_formed", 0.1, {"arm": "knapsack_reward"}, {"reward-works-where-it-can", "reward-does-not-lift"}),
    ],
)
def test_an_arm_that_failed_leaves_its_own_claims_undecided_and_no_others(
    small: Constraints, world: World, words: Any, column: str, value: float, arm: dict[str, Any], failed: set[str]
) -> None:
    def change(labels: dict[str, Any]) -> dict[str, Any]:
        return {column: value} if arm.items() <= labels.items() else {}

    assert any(change(labels) for _, labels in small.design.runs)
    assert undecided(small, words(small, world(small, change=change))) == failed


def test_every_precondition_is_needed(small: Constraints) -> None:
    claims = small.design.claims
    needed = {name for claim in claims for name in claim.needs}
    assert {claim.name for claim in claims if claim.role == "precondition"} <= needed


def test_what_is_left_out_is_not_asked(world: World, words: Any) -> None:
    whole = {"methods": ("answer only", "with reward"), "first_seed": 0, "replicates": 6}
    study = validate(Constraints, Constraints.profiles["smoke"] | whole)
    verdicts = words(study, world(study))
    assert not {"bounds-not-balance-14", "steps-do-not-lift", "architecture-changes-little"} & verdicts.keys()
    assert verdicts["bounds-not-balance"] == "supported", "over the architectures that were trained"
    assert verdicts["reward-works-where-it-can"] == "supported"


def test_a_missing_run_leaves_its_replicate_out(small: Constraints, world: World, effects: Any) -> None:
    def change(labels: dict[str, Any]) -> dict[str, Any] | None:
        return None if labels["arm"] == "nine_reward" and labels["replicate"] == 1 else {}

    values = effects(small, world(small, change=change))
    assert np.isnan(values["reward-does-not-lift"][1]) and np.isfinite(values["steps-do-not-lift"]).all()


def test_figures_are_drawn_with_and_without_runs(small: Constraints, world: World) -> None:
    names = ["by_size", "by_type", "by_arm", "by_tolerance", "by_error"]
    whole = world(small)
    for tables in (whole, Tables.from_frames(whole.labels, {})):
        figures = small.design.figures(tables)
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
