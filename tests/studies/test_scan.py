"""scan: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.objectives.next_token import NextToken
from recombine.overrides import validate
from recombine.studies.scan import RANDOM_POSITIONS, SCALED, SPLITS, Scan
from recombine.training.prepare import Setting
from recombine.training.program import Program, signature

ACCURACY = {
    "simple": 0.99,
    "alike": 0.95,
    "around-right": 0.5,
    "divergent": 0.8,
    "add-jump": 0.02,
    "length": 0.1,
    RANDOM_POSITIONS: 0.2,
    "few": 0.4,
}
"""A world in which every claim holds."""

COMMANDS = (
    ("all_pairs_met", "walk left and run", 1.0),
    ("all_pairs_met", "look and walk left", 1.0),
    ("some_pairs_unmet", "run after look right", None),
    # Short ones are right and long ones are not, whatever met.
    ("all_pairs_met", "walk", 1.0),
    ("some_pairs_unmet", "jump around right twice", 0.0),
)

World = Callable[..., Tables]


@pytest.fixture(scope="module")
def small() -> Scan:
    whole = {"splits": tuple(SPLITS), "scales": ("width", "layers", "share"), "depths": (1, 2)}
    whole |= {"first_seed": 0, "replicates": 6}
    return validate(Scan, Scan.profiles["smoke"] | whole)


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Scores by split. `closing` is what the largest size gains where the gap is; `known` says whether 'jump' alone is
    answered right; `unmet` is the share of what is right at equal length where a pair is new; `helped` is what a random
    split loses at the smallest size; `missing` says which runs have no rows; `fitted` which do not fit."""

    def make(
        study: Scan,
        closing: float = 0.0,
        noise: float = 0.005,
        known: bool = True,
        unmet: float = 0.5,
        helped: float = 0.4,
        missing: Callable[[dict[str, Any]], bool] = lambda labels: False,
        unfitted: Callable[[dict[str, Any]], bool] = lambda labels: False,
        **frames: Any,
    ) -> Tables:
        draw = np.random.default_rng(0)
        last = {"width": study.widths[-1], "layers": study.depths[-1], "share": 1.0}

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            split, arm = labels["split"], labels["arm"]
            largest = arm == "main" or any(labels.get(axis) == level for axis, level in last.items())
            gain = closing if largest and split in SCALED else 0.0
            gain -= helped if arm == "small" else 0.0
            right = 0.0 if arm == "lookup" else ACCURACY[split] + gain + noise * draw.standard_normal()
            values = {"accuracy_in": 0.5 if unfitted(labels) else 0.995 - abs(noise * draw.standard_normal())}
            values |= {"compound_divergence": 0.3, "right_jump": float(known), "accuracy_held_out": right}
            return {} if missing(labels) else values

        def combinations(labels: dict[str, Any]) -> pd.DataFrame:
            right = ACCURACY[labels["split"]] * (labels["arm"] != "lookup")
            rows = [
                {"region": "held_out", "stratum": stratum, "combination": command, "episodes": 1.0}
                | {"whole": right * (unmet if share is None else share)}
                for stratum, command, share in COMMANDS
            ]
            return pd.DataFrame([] if missing(labels) else rows)

        return made(study, score, **{"combinations": combinations} | frames)

    return make


def test_every_cell_has_its_replicates() -> None:
    study = Scan.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.design.runs])
    assert not labels.duplicated().any()
    cells = [name for name in labels.columns if name != "replicate"]
    assert (labels.groupby(cells, dropna=False).size() == study.replicates).all() and study.replicates >= 8
    assert set(labels.loc[labels["arm"] == "main", "split"]) == set(SPLITS)
    assert set(labels.loc[labels["arm"].isin(study.scales), "split"]) == set(SCALED)
    assert set(labels.loc[labels["arm"] == "small", "split"]) == {"simple"}
    assert len(study.design.run_ids) <= 130, "what two cores can do"


def test_replicates_share_nothing_that_is_random() -> None:
    study = Scan.profile("laptop")
    seeds = [config.seeds for config, labels in study.design.runs if labels["split"] == "simple"]
    assert {seed.init for seed in seeds} == set(study.seeds)


def test_verdicts_where_every_claim_holds(small: Scan, world: World, words: Any) -> None:
    assert set(words(small, world(small)).values()) == {"supported"}


def test_verdicts_where_scale_closes_the_gaps(small: Scan, world: World, words: Any) -> None:
    verdicts = words(small, world(small, closing=0.6))
    for name in ("width", "layers", "share"):
        assert verdicts[f"{name}-does-not-close-add-jump"] == "contradicted"
    assert verdicts["add-jump-fails"] == "equivalent", "within the margin of no loss"


def test_a_verb_that_was_not_learned_decides_nothing(small: Scan, world: World, words: Any) -> None:
    verdicts = words(small, world(small, known=False))
    assert verdicts["jump-is-known"] != "supported"
    assert verdicts["add-jump-fails"] == "inconclusive"
    assert verdicts["length-fails"] == "supported"


def test_splits_share_their_compiled_programs() -> None:
    runs = Scan.profile("laptop").design.runs
    lists = {
        labels["split"]: Setting(config).arrays().sampler
        for config, labels in runs
        if labels["arm"] == "main" and labels["replicate"] == 1000
    }
    others = ("few", RANDOM_POSITIONS)
    assert len({signature(lists[split]) for split in SPLITS if split not in others}) == 1
    # All splits at the largest size, random positions, the control, the narrowest network, the shallowest.
    assert len({Program.of(config).name for config, _ in runs}) == 5
    for config, labels in runs:
        assert isinstance(config.objective, NextToken)
        assert bool(config.objective.random_positions) == (labels["split"] == RANDOM_POSITIONS)


def test_new_pairs_are_compared_at_equal_length(small: Scan, world: World, effects: Any, words: Any) -> None:
    tables = world(small, noise=0.0, unmet=1.0)
    np.testing.assert_allclose(effects(small, tables)["unmet-pairs-tell"], 0.0, atol=1e-9)
    assert words(small, world(small, unmet=1.0))["unmet-pairs-tell"] == "equivalent"


def test_numbers_of_actions_are_weighted_by_what_they_tell(small: Scan, world: World, effects: Any) -> None:
    tables = world(small, noise=0.0)
    run = next(
        config.run_id
        for config, labels in small.design.runs
        if labels["arm"] == "main" and labels["split"] == "divergent" and labels["replicate"] == 2
    )
    # Two actions: one command of each kind, both wrong. Weights are 1 / 2 there and 2 / 3 at three actions.
    more = pd.DataFrame(
        [
            {"run": run, "region": "held_out", "stratum": stratum, "combination": command, "whole": 0.0}
            for stratum, command in (("all_pairs_met", "walk left"), ("some_pairs_unmet", "run right"))
        ]
    )
    frame = tables.combinations[["run", "region", "stratum", "combination", "whole"]].drop_duplicates()
    added = world(small, noise=0.0, combinations=pd.concat([frame, more], ignore_index=True))
    values = effects(small, added)["unmet-pairs-tell"]
    np.testing.assert_allclose(values[[0, 2]], [0.4, 0.4 * (2 / 3) / (2 / 3 + 1 / 2)])


def test_scale_that_helps_nowhere_decides_nothing(small: Scan, world: World, words: Any) -> None:
    verdicts = words(small, world(small, helped=0.0))
    assert verdicts["more-helps-where-it-can"] == "equivalent"
    assert verdicts["width-does-not-close-add-jump"] == "inconclusive"
    assert verdicts["share-does-not-close-length"] == "inconclusive"
    assert verdicts["layers-does-not-close-length"] == "supported"


def test_few_commands_that_were_not_learned_decide_nothing(small: Scan, world: World, words: Any) -> None:
    tables = world(small, unfitted=lambda labels: labels["arm"] == "main" and labels["split"] == "few")
    assert words(small, tables)["few-commands-tell-more"] == "inconclusive"


def test_effects_are_computed_as_stated(small: Scan, world: World, effects: Any) -> None:
    values = effects(small, world(small, noise=0.0))
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
        np.testing.assert_allclose(values[name], value, atol=1e-9, err_msg=name)
    closing = effects(small, world(small, noise=0.0, closing=0.3))
    np.testing.assert_allclose(closing["layers-does-not-close-length"], 0.3, atol=1e-9)


@pytest.mark.parametrize(("split", "claim"), [("length", "length-fails"), ("divergent", "unmet-pairs-tell")])
def test_a_missing_run_leaves_its_replicate_out(
    small: Scan, world: World, effects: Any, split: str, claim: str
) -> None:
    tables = world(small, missing=lambda labels: labels["split"] == split and labels["replicate"] == 1)
    values = effects(small, tables)[claim]
    assert np.isnan(values[1]) and np.isfinite(np.delete(values, 1)).all()


def test_figures_show_every_split(small: Scan, world: World) -> None:
    figures = {figure.name: figure for figure in small.design.figures(world(small))}
    assert set(figures) == {"by_split", "by_width", "by_layers", "by_share", "by_length", "by_certificate"}
    for figure in figures.values():
        assert figure.chart.to_dict()
    assert "longer answers" in str(figures["by_split"].chart.to_dict())


@pytest.mark.parametrize(
    "given", [{"widths": (8,)}, {"shares": (1.0, 0.5)}, {"shares": (0.1, 0.5)}, {"splits": ("simple", "tall")}]
)
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"smallest first|must be 1|'tall'"):
        validate(Scan, given)


def test_what_is_left_out_is_not_asked(small: Scan, world: World, words: Any) -> None:
    less = validate(Scan, small.model_dump() | {"splits": ("simple", "add-jump"), "scales": ("width",)})
    assert {labels["split"] for _, labels in less.design.runs} == {"simple", "add-jump"}
    assert {config.model.layers for config, _ in less.design.runs} == {small.depths[-1]}  # type: ignore[attr-defined]
    verdicts = words(less, world(less))
    assert verdicts["add-jump-fails"] == "supported"
    for name in ("length-fails", "length-fails-at-trained-places", "control-fails", "divergent-fails"):
        assert name not in verdicts
    assert "layers-does-not-close-add-jump" not in verdicts
    assert all(figure.chart.to_dict() for figure in less.design.figures(world(less)))
    flat = validate(Scan, less.model_dump() | {"depths": (1,)})
    assert "layers-does-not-close-add-jump" not in words(flat, world(flat))
