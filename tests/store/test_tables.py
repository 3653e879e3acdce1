"""The store as tables: columns and values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.engines.local import LocalEngine
from recombine.probes.base import Measured
from recombine.probes.decodability import Decodability
from recombine.probes.scores import Scores
from recombine.store.store import Store
from recombine.store.tables import flatten


def test_nested_names_are_joined_and_kinds_stand_under_their_part():
    config = {"kind": "x", "space": {"kind": "subset", "modules": 8}, "seeds": {"init": 1}, "target": None}
    assert dict(flatten(config)) == {
        "kind": "x",
        "space": "subset",
        "space.modules": 8,
        "seeds.init": 1,
        "target": None,
    }


def test_runs(store, ended, small):
    store.commit(ended(small(12)))
    store.commit(ended(small(20), failed_at=7))
    frame = store.runs_df().set_index("support.number")
    assert set(frame.index) == {12, 20}
    assert frame.loc[12, "run"] == small(12).run_id
    assert frame.loc[12, "status"] == "complete" and frame.loc[20, "status"] == "failed"
    assert frame.loc[20, "failed_at"] == 7
    assert frame.loc[12, "family"] == "hyperteacher" and frame.loc[12, "space.modules"] == 8
    assert frame.loc[12, "steps"] == 30 and frame.loc[12, "seconds"] == 1.5
    assert list(store.runs_df([small(20).run_id])["support.number"]) == [20]


def test_curves(store, ended, small):
    for seed in range(2):
        store.commit(ended(small(seed=seed)))
    frame = store.curves_df()
    assert list(frame.columns) == ["run", "step", "loss", "score_in", "score_held_out"]
    assert len(frame) == 6
    one = frame[frame["run"] == small().run_id].set_index("step")
    assert one.loc[20, "loss"] == pytest.approx(0.05) and one.loc[30, "score_held_out"] == pytest.approx(0.15)


def test_an_empty_store_gives_empty_tables_with_a_run_column(store):
    for frame in (store.runs_df(), store.curves_df(), store.combinations_df(), store.probes_df()):
        assert frame.empty and list(frame.columns) == ["run"]
    assert store.runs_df(["nowhere"]).empty


def test_names_with_signs_of_patterns(tmp_path, ended):
    names = ("a1", "a[1]", "b*", "bb", "c?", "cc")
    for index, name in enumerate(names):
        curves = [{"step": index, "loss": 0.0, "score_in": 0.0, "score_held_out": 0.0}]
        Store(tmp_path / name).commit(ended(curves=curves))
    for index, name in enumerate(names):
        store = Store(tmp_path / name)
        frame = store.curves_df()
        assert frame["step"].tolist() == [index] and frame["run"].tolist() == store.run_ids()
        assert store.problems == []


def test_combinations_pool_their_tasks(store, ended, small):
    store.commit(ended(small()))
    columns = {
        "combination": ["0+1", "0+1", "2"],
        "constituents": [[0, 1], [0, 1], [2]],
        "draw": [0, 1, 0],
        "region": ["held_out"] * 3,
        "stratum": ["all_pairs_met"] * 3,
        "error": [1.0, 3.0, 1.0],
        "spread": [4.0, 4.0, 2.0],
        "ratio": [0.3, 0.5, 0.6],
    }
    store.add_measurement(small().run_id, Scores(), Measured({}, columns))
    frame = store.combinations_df().set_index("combination")
    assert frame.loc["0+1", "r2"] == pytest.approx(1 - 4 / 8)
    assert frame.loc["0+1", "r2_ratio"] == pytest.approx(1 - 0.4)
    assert frame.loc["0+1", "r2_median"] == pytest.approx(np.median([0.75, 0.25]))
    assert frame.loc["2", "r2"] == pytest.approx(0.5)
    assert list(frame["parts"]) == [2, 1] and frame.loc["2", "constituents"].tolist() == [2]
    assert list(frame["run"]) == [small().run_id] * 2

    parts = store.constituents_df().set_index("constituent")
    assert parts.loc[0, "r2"] == parts.loc[1, "r2"] == pytest.approx(0.5)
    assert parts.loc[2, "r2"] == pytest.approx(0.5)
    strata = store.strata_df()
    assert strata["r2"].item() == pytest.approx(1 - 5 / 10)
    assert strata["r2_ratio"].item() == pytest.approx(1 - 1.4 / 3)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, small, ended):
    """A store with a real measurement of each kind, of a network that was not trained."""
    store = Store(tmp_path_factory.mktemp("scored") / "store")
    run = small(number=18)
    store.commit(ended(run, shift=0.0))
    measurements = [Scores(combinations=18, draws=2, samples=8), Decodability(combinations=18, draws=2)]
    LocalEngine().run(store, [run], measurements)
    return store


def test_real_scores_agree_between_the_tables(scored):
    run = scored.runs_df().iloc[0]
    frame = scored.combinations_df()
    assert {"run", "combination", "region", "stratum", "constituents", "parts", "error", "spread"} <= set(frame)
    for region, column in (("trained", "r2_in"), ("held_out", "r2_held_out")):
        part = frame[frame["region"] == region]
        assert 1 - part["error"].sum() / part["spread"].sum() == pytest.approx(run[column], abs=1e-5)
    setting = scored.load(run["run"]).setting
    trained = {setting.config.space.name(row) for row in setting.support.rows}
    assert set(frame.loc[frame["region"] == "trained", "combination"]) == trained
    assert not set(frame.loc[frame["region"] != "trained", "combination"]) & trained
    assert frame["combination"].is_unique and len(frame) == setting.config.space.size


def test_real_probes_have_every_site_network_form_and_strength(scored):
    frame = scored.probes_df()
    assert {"run", "site", "network", "form", "strength", "value", "r2", "control", "selectivity"} <= set(frame)
    assert set(frame["site"]) == {"encoding", "hidden 1", "hidden 2"}
    assert set(frame["network"]) == {"trained", "untrained"}
    assert set(frame["form"]) == {"intrinsic", "transfer", "in_distribution"}
    assert not frame.duplicated(["run", "site", "network", "form", "strength"]).any()
    run = scored.runs_df().iloc[0]
    deepest = frame.query("site == 'hidden 2' and network == 'trained' and strength == 'chosen'")
    chosen = deepest.set_index("form")["r2"]
    assert np.isnan(chosen["intrinsic"]) and run["intrinsic"] is None, (
        "a few combinations are too few for eight constituents"
    )
    assert chosen["transfer"] == pytest.approx(run["transfer"])
    # The stored network *is* the untrained one here, so the control gives the same.
    assert run["transfer_untrained"] == pytest.approx(run["transfer"])
    assert set(frame.loc[frame["site"] == "encoding", "network"]) == {"trained"}


def test_tables_are_plain_frames(scored):
    for frame in (scored.runs_df(), scored.curves_df(), scored.combinations_df(), scored.probes_df()):
        assert isinstance(frame, pd.DataFrame) and "filename" not in frame.columns


def test_scores_by_constituent_and_stratum_agree_with_the_combinations(scored):
    combinations = scored.combinations_df()
    held_out = combinations[combinations["region"] == "held_out"]
    parts = scored.constituents_df()
    parts = parts[parts["region"] == "held_out"].set_index("constituent")
    assert set(parts.index) == {part for group in held_out["constituents"] for part in group}
    for part, row in parts.iterrows():
        holding = held_out[[part in group for group in held_out["constituents"]]]
        assert row["r2"] == pytest.approx(1 - holding["error"].sum() / holding["spread"].sum())
    strata = scored.strata_df()
    strata = strata[strata["region"] == "held_out"].set_index("stratum")
    for name, group in held_out.groupby("stratum"):
        assert strata.loc[name, "r2"] == pytest.approx(1 - group["error"].sum() / group["spread"].sum())
        assert {"r2_ratio", "r2_median"} <= set(strata.columns)


def test_tables_of_an_empty_store_are_empty(store):
    for frame in (store.runs_df(), store.constituents_df(), store.strata_df(), store.probes_df()):
        assert frame.empty
