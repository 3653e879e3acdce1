"""encodings: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.overrides import apply
from recombine.stats.verdicts import settle
from recombine.studies.base import Tables
from recombine.studies.encodings import PUBLISHED, Encodings


@pytest.fixture(scope="module")
def laptop() -> Encodings:
    return apply(Encodings.profile("laptop"), ["first_seed=0"])


def tables(study, shift=0.0, noise=0.005):
    """Scores that are the published ones plus a shift."""
    draw = np.random.default_rng(0)
    rows, probes = [], []
    for config, labels in study.runs():
        names = {"run": config.run_id} | labels
        wobble = noise * draw.standard_normal()
        if labels["family"] == "lookup":
            values = {"r2_in": 0.8, "r2_held_out": -1.0, "correlation_held_out": wobble}
        else:
            values = {
                "r2_in": 0.99,
                "r2_held_out": PUBLISHED[labels["encoding"]]["generalisation"] + shift + wobble,
            }
        rows.append(names | {"status": "complete"} | values)
        for site, r2 in (("encoding", 0.4), ("hidden 1", 0.9), ("hidden 2", 0.7)):
            probes.append(
                names
                | {"site": site, "form": "intrinsic", "strength": "chosen", "network": "trained", "r2": r2}
            )
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(rows), empty, pd.DataFrame(probes), empty)


def words(study, frames):
    return {
        one.claim.name: one.verdict for one in settle([effect.judge() for effect in study.effects(frames)])
    }


def test_runs_of_every_encoding(laptop):
    runs = laptop.runs()
    assert len({config.run_id for config, _ in runs}) == len(runs)
    main = [labels["encoding"] for _, labels in runs if labels["family"] == "hyperteacher"]
    assert {kind: main.count(kind) for kind in PUBLISHED} == dict.fromkeys(PUBLISHED, 12)
    control = {labels["encoding"] for _, labels in runs if labels["family"] == "lookup"}
    assert control == {"identity", "interval-shuffle"}


def test_published_scores_are_found_again(laptop):
    found = words(laptop, tables(laptop))
    assert all(found[f"as-published-{kind}"] == "equivalent" for kind in PUBLISHED)
    assert found["all-generalise"] == "supported" and found["few-shot-generalises"] == "supported"
    assert found["decoded-where-the-input-hides-it"] == "supported"


def test_other_scores_are_not(laptop):
    found = words(laptop, tables(laptop, shift=-0.2))
    assert all(found[f"as-published-{kind}"] == "contradicted" for kind in PUBLISHED)
    assert found["all-generalise"] == "contradicted"


def test_the_lowest_encoding_counts_and_a_missing_one_decides_nothing(laptop):
    frames = tables(laptop, noise=0.0)
    values = {one.claim.name: one.values for one in laptop.effects(frames)}
    assert values["all-generalise"] == pytest.approx(0.95)
    gone = (frames.runs["encoding"] == "tokens") & (frames.runs["replicate"] == 0)
    left = Tables(frames.runs[~gone], frames.combinations, frames.probes, frames.curves)
    values = {one.claim.name: one.values for one in laptop.effects(left)}
    assert np.isnan(values["all-generalise"][0]) and np.isfinite(values["all-generalise"][1:]).all()


def test_overview_has_the_published_numbers_beside_ours(laptop):
    frame = laptop.overview(tables(laptop, noise=0.0)).set_index(["family", "encoding"])
    row = frame.loc[("hyperteacher", "invertible")]
    assert row["r2_held_out"] == pytest.approx(0.95) == row["published_generalisation"]
    assert row["input_decoder"] == pytest.approx(0.4) and row["deepest_decoder"] == pytest.approx(0.7)
    assert [figure.name for figure in laptop.figures(tables(laptop))] == ["encodings"]
