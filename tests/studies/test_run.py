"""Running a study: what is kept, and verdicts that follow from what is kept alone."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from recombine.design import Effect
from recombine.design.run import newest_records, run_study, verdicts_of
from recombine.engines.local import LocalEngine
from recombine.probes.base import Measured
from recombine.probes.scores import Scores
from recombine.stats.verdicts import Claim, settle
from recombine.store.store import Store


def test_a_study_trains_measures_and_decides(ran, study):
    result, store = ran
    assert (result.sweep.trained, result.sweep.found, result.sweep.measured) == (8, 0, 16)
    assert result.sweep.compilations == 2, "one program a family"
    assert result.sweep.failed == () and store.problems == []
    assert list(result.verdicts["claim"]) == [claim.name for claim in study.design.claims]
    for verdict in result.records:
        if verdict["claim"].startswith(
            ("decod", "control-decod", "selectivity")
        ):  # A probe has too few combinations to read at this size.
            assert verdict["replicates"] == 0 and verdict["verdict"] == "inconclusive"
            continue
        assert verdict["replicates"] == 2 and np.isfinite(verdict["effect"]) and verdict["p_adjusted"] is not None
    assert all(claim in repr(result) and claim in result._repr_html_() for claim in result.verdicts["claim"])


def test_tables_carry_the_labels_of_the_study(ran, study):
    result, _ = ran
    expected = {(labels["arm"], labels["number"], labels["replicate"]) for _, labels in study.runs()}
    tables = result.tables
    for frame in (tables.runs, tables.combinations, tables["decodability"], tables.curves):
        assert {"run", "arm", "replicate", "number", "space"} <= set(frame.columns)
        found = set(frame[["arm", "number", "replicate"]].drop_duplicates().itertuples(index=False, name=None))
        assert found == expected
    assert len(result.tables.runs) == 8
    assert set(result.tables.curves.groupby("run")["step"].max()) == {30}


def test_the_overview_has_a_line_for_each_arm_and_number(ran):
    overview = ran[0].overview
    assert len(overview) == 4 and (overview["n"] == 2).all()
    assert overview["score_held_out"].notna().all()


def test_running_again_does_nothing_and_finds_the_same(ran, study):
    result, store = ran
    again = run_study(study, "smoke", store, LocalEngine())
    assert (again.sweep.trained, again.sweep.found, again.sweep.measured) == (0, 8, 0)
    assert again.records == result.records


def test_verdicts_follow_from_the_record_alone(ran, tmp_path):
    result, store = ran
    (record,) = store.studies()
    text = json.dumps(record)
    effects = [Effect.from_record(item) for item in json.loads(text)["effects"]]
    again = settle([effect.judge() for effect in effects])
    assert [verdict.record() | {"profile": result.profile} for verdict in again] == result.records

    # A store that holds nothing but the record.
    bare = Store(tmp_path / "bare")
    bare.write_study("data-scaling-smoke", record)
    assert verdicts_of(bare) == verdicts_of(store)
    assert result.profile == "smoke, changed" and verdicts_of(bare) == result.records


def test_the_record_names_runs_settings_and_provenance_but_no_place(ran, study, tmp_path_factory):
    _, store = ran
    (record,) = store.studies()
    assert record["study"] == "data-scaling" and record["profile"] == "smoke, changed"
    assert set(record["runs"]) == set(store.run_ids())
    assert type(study).model_validate(record["config"]) == study
    assert set(record["provenance"]) == {"time", "versions", "machine"}
    assert str(store.path) not in json.dumps(record)


def test_effects_that_are_not_numbers_survive_the_record():
    claim = Claim("c", "s", "It is so.", "greater", 0.05, needs=("a", "b"))
    effect = Effect(claim, np.array([0.5, np.nan, np.inf]))
    from recombine.store.files import finite

    back = Effect.from_record(json.loads(json.dumps(finite(effect.record()))))
    assert back.claim == claim
    assert back.judge() == Effect(claim, np.array([0.5, np.nan, np.nan])).judge()


def record(study, profile, time, value, primary=True):
    claim = Claim("rises", study, "It rises.", "greater", 0.05, primary=primary)
    spread = value + 0.01 * np.arange(12)
    return {
        "study": study,
        "profile": profile,
        "config": {},
        "runs": [],
        "effects": [Effect(claim, spread).record()],
        "provenance": {"time": time},
    }


def test_of_each_study_the_newest_profile_counts_or_the_one_asked_for(tmp_path):
    store = Store(tmp_path)
    store.write_study("a-smoke", record("a", "smoke", "2026-01-01T00:00:00+00:00", -1.0))
    store.write_study("a-demo", record("a", "demo", "2026-01-02T00:00:00+00:00", 1.0))
    store.write_study("b-smoke", record("b", "smoke", "2026-01-01T00:00:00+00:00", 1.0))
    assert {(v["study"], v["profile"], v["verdict"]) for v in verdicts_of(store)} == {
        ("a", "demo", "supported"),
        ("b", "smoke", "supported"),
    }
    (smoke,) = [v for v in verdicts_of(store, "smoke") if v["study"] == "a"]
    assert smoke["verdict"] == "contradicted"
    assert verdicts_of(store, "paper") == []
    assert set(newest_records(store)) == {"a", "b"}


def test_another_study_of_the_store_changes_no_verdict(tmp_path):
    store = Store(tmp_path)
    claim = Claim("weak", "a", "It is so.", "greater", 0.0, primary=True)
    # Just significant alone: t = 2.8 with 11 degrees of freedom.
    values = np.linspace(-1, 1, 12)
    values = 2.8 + values / values.std(ddof=1) * 12**0.5
    weak = record("a", "smoke", "t", 0.0) | {"effects": [Effect(claim, values).record()]}
    store.write_study("a-smoke", weak)
    (alone,) = verdicts_of(store)
    assert alone["verdict"] == "supported"
    for name in "bcd":
        other = Claim("null", name, "It is so.", "greater", 0.0, primary=True)
        nothing = Effect(other, np.linspace(-1, 1, 12)).record()
        store.write_study(f"{name}-smoke", record(name, "smoke", "t", 0.0) | {"effects": [nothing]})
    (together,) = [v for v in verdicts_of(store) if v["study"] == "a"]
    assert together["verdict"] == "supported" and together["p_adjusted"] == alone["p"] < 0.05
    assert together["p_portfolio"] == pytest.approx(4 * alone["p"])


@pytest.mark.parametrize(
    "effects", [[{}], [{"claim": {"name": "x"}, "values": []}], [{"claim": 3, "values": 4}], "text"]
)
def test_effects_that_are_not_understood_are_reported_and_the_others_judged(tmp_path, effects):
    store = Store(tmp_path)
    store.write_study("a-smoke", record("a", "smoke", "t", 1.0) | {"effects": effects})
    store.write_study("b-smoke", record("b", "smoke", "t", 1.0))
    assert [v["study"] for v in verdicts_of(store)] == ["b"]
    assert len(store.problems) == 1 and "'a'" in store.problems[0]


def test_another_measurement_of_the_same_runs_does_not_change_a_study(ran, study, tmp_path):
    _, store = ran
    shutil.copytree(store.path, tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    for run_id in copy.run_ids():
        later = Measured({"r2_in": -99.0, "r2_held_out": -99.0}, {"combination": ["x"]})
        copy.add_measurement(run_id, Scores(draws=1), later)
    assert (copy.runs_df()["r2_in"] == -99.0).all()
    before, after = (study.design.effects(study.design.tables(one)) for one in (store, copy))
    for one, two in zip(before, after, strict=True):
        assert np.array_equal(one.values, two.values, equal_nan=True)


def test_tables_of_a_study_that_has_not_run_are_empty(study, tmp_path):
    tables = study.design.tables(Store(tmp_path))
    assert all(tables[name].empty for name in ("runs", "combinations", "decodability", "curves"))
    assert all(np.isnan(effect.values).all() for effect in study.design.effects(tables))


def test_overrides_do_not_take_the_place_of_the_profile(ran, tmp_path):
    """A study with other settings is kept beside the profile's own result, under a name of its own."""
    _, store = ran
    names = [path.stem for path in (store.path / "studies").iterdir()]
    assert names and all(name.startswith("data-scaling-smoke-") for name in names)
