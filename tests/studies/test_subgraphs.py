"""subgraphs: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.graphs.labels import LABELS
from recombine.overrides import apply, validate
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.subgraphs import ARMS, PLAIN, STEPS, Subgraphs

SHARES = {
    1: (0.9, 0.0, 0.02, 0.08),
    2: (0.7, 0.05, 0.15, 0.1),
    3: (0.4, 0.1, 0.4, 0.1),
    4: (0.2, 0.1, 0.6, 0.1),
}
"""Labels by depth in longer lists: what the literature expects."""


@pytest.fixture(scope="module")
def small() -> Subgraphs:
    return apply(Subgraphs.profile("smoke"), ["first_seed=0", "replicates=6"])


def tables(study: Subgraphs, beyond: float = 0.2, noise: float = 0.002) -> Tables:
    """Lists of trained lengths are nearly all right, longer ones as often as said."""
    draw = np.random.default_rng(0)
    runs, combinations, steps = [], [], []
    for config, labels in study.runs():
        wobble = noise * draw.standard_normal(8)
        name = {"run": config.run_id} | labels
        values = {
            "share_propagation_beyond": 0.4 + wobble[0],
            "share_local_beyond": 0.1 + wobble[1],
            "frequency_of_right_beyond": 0.8 + wobble[2],
            "bound_beyond": 0.35 + wobble[3],
        }
        runs.append(name | (values if labels["arm"] != ARMS[1] else {}))
        for length in (2, 3, 4):
            right = 0.99 if length <= study.longest else (beyond if labels["arm"] != PLAIN else beyond - 0.05)
            combinations.append(
                name
                | {
                    "region": "held_out",
                    "combination": " ".join("1" * length),
                    "whole": right + wobble[length],
                }
            )
        for length in (3, 4):
            graph = {"entries": " ".join("1" * length), "stated": " ".join("1" * 3 * length)}
            steps += [
                name
                | graph
                | {"length": length, "depth": depth, "label": label, "nodes": 1000 * (share + wobble[5] / 4)}
                for depth, shares in SHARES.items()
                for label, share in zip(LABELS, shares, strict=True)
            ]
    empty = pd.DataFrame({"run": []})
    others = {"graph-steps": pd.DataFrame(steps)}
    return Tables(pd.DataFrame(runs), pd.DataFrame(combinations), empty, empty, others)


def judged(study: Subgraphs, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_arm_has_its_replicates() -> None:
    study = Subgraphs.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    assert (labels.groupby("arm").size() == study.replicates).all() and set(labels["arm"]) == set(ARMS)
    by_arm = {labels["arm"]: config for config, labels in study.runs()}
    assert (
        by_arm[STEPS].support == by_arm[PLAIN].support and by_arm[STEPS].objective != by_arm[PLAIN].objective
    )


def test_verdicts_where_the_literature_is_right(small: Subgraphs) -> None:
    words = {name: verdict.verdict for name, verdict in judged(small, tables(small)).items()}
    assert set(words.values()) == {"supported"}, words


def test_verdicts_where_longer_lists_are_answered_as_well(small: Subgraphs) -> None:
    found = judged(small, tables(small, beyond=0.98))
    assert found["longer-lists-fail"].verdict == "equivalent", "within the margin of no loss"


def test_effects_are_computed_as_stated(small: Subgraphs) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0))}
    expected = {
        "fits-steps": 0.99,
        "longer-lists-fail": 0.79,
        "places-are-not-all": 0.05,
        "depth-hurts": 0.8 - 0.3,
        "errors-propagate": 0.3,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-9, err_msg=name)


def test_figures_are_drawn_with_and_without_runs(small: Subgraphs) -> None:
    names = ["by_length", "by_depth", "one_answer"]
    figures = small.figures(tables(small))
    assert [figure.name for figure in figures] == names
    assert all(figure.chart.to_dict() for figure in figures)


def test_other_families_are_refused() -> None:
    with pytest.raises(BadInput, match="maximum-sum with its steps"):
        validate(Subgraphs, {"base": {"family": "scan"}})
