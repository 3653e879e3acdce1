"""A run is stored whole or not at all, once, and comes back as it was."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from recombine.errors import BadInput, StoreError
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.probes.scores import Scores
from recombine.recipes.fast import Fast
from recombine.store import files, provenance
from recombine.store.store import Store


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def test_weights_come_back_bit_for_bit(store, ended):
    outcome = ended()
    store.commit(outcome)
    run = store.load(outcome.config)
    for before, after in zip(leaves(outcome.network), leaves(run.network), strict=True):
        assert before.dtype == after.dtype
        assert before.tobytes() == after.tobytes()


def test_a_loaded_model_gives_the_same_outputs(store, ended):
    outcome = ended()
    store.commit(outcome)
    code, inputs = jnp.linspace(0, 1, 8), jnp.linspace(-1, 1, 12).reshape(3, 4)
    # Another Store object: nothing may have been kept in memory.
    model = Store(store.path).load(outcome.config.run_id).network
    assert np.array_equal(model(code, inputs), outcome.network(code, inputs))


def test_the_configuration_comes_back_and_names_the_folder(store, ended, small):
    for config in (small(), small(20), small(seed=1)):
        store.commit(ended(config))
        run = store.load(config)
        assert run.config == config
        assert run.config.run_id == config.run_id == run.run_id
        assert (store.path / "runs" / config.run_id / "manifest.json").is_file()
    assert len(store.run_ids()) == 3


def test_every_part_of_the_configuration_changes_the_name(small):
    configs = [
        small(),
        small(13),
        small(seed=1),
        small(target=0.5),
        small(recipe=Fast(steps=30)),
        small(model=MLP(width=17, depth=1)),
        small(family=Lookup()),
    ]
    assert len({config.run_id for config in configs}) == len(configs)
    assert small().run_id == small().run_id


def test_a_changed_meaning_changes_the_name(small, monkeypatch):
    config = small()
    before = config.run_id
    monkeypatch.setattr(type(config.family), "version", 2)
    assert config.run_id != before


def test_a_run_is_found_by_the_beginning_of_its_name(store, ended, small):
    for seed in range(3):
        store.commit(ended(small(seed=seed)))
    name = small().run_id
    assert store.load(name[:12]).run_id == name
    with pytest.raises(BadInput, match="not the name of a run"):
        store.load("zzzz")
    with pytest.raises(BadInput):
        store.load("")


def test_a_crash_before_the_rename_leaves_no_run(store, ended, monkeypatch):
    outcome = ended()

    def crash(*_):
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(os, "rename", crash)
    with pytest.raises(RuntimeError):
        store.commit(outcome)
    monkeypatch.undo()
    assert outcome.config not in store
    assert store.run_ids() == [] and store.problems == []
    store.commit(outcome)
    assert store.status(outcome.config.run_id) == "complete"


def test_the_manifest_is_written_last(store, ended, monkeypatch):
    written: list[str] = []
    real = files.os.replace

    def replace(source, target):
        written.append(Path(target).name)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    store.commit(ended())
    assert written[-1] == "manifest.json" and "weights.safetensors" in written


def test_a_crash_while_the_manifest_is_written_leaves_no_run(store, ended, monkeypatch):
    import recombine.store.manifest as module

    def crash(path, value):
        path.with_name(f"{path.name}.part").write_text(json.dumps(value)[:50])
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_json", crash)
    with pytest.raises(KeyboardInterrupt):
        store.commit(ended())
    assert store.run_ids() == [] and list((store.path / "temporary").iterdir()) == []


def test_the_first_commit_wins(store, ended):
    first, second = ended(steps=30, shift=0.5), ended(steps=29, shift=0.25)
    store.commit(first)
    store.commit(second)
    run = store.load(first.config)
    assert run.manifest["steps"] == 30
    assert np.array_equal(leaves(run.network)[0], leaves(first.network)[0])
    assert list((store.path / "temporary").iterdir()) == []


def test_who_renames_first_wins_even_if_it_began_later(store, ended, monkeypatch):
    import recombine.store.manifest as module

    slow, quick = ended(steps=1), ended(steps=2)
    real = module.save_tree

    def overtaken(*arguments):
        monkeypatch.setattr(module, "save_tree", real)
        real(*arguments)
        Store(store.path).commit(quick)

    monkeypatch.setattr(module, "save_tree", overtaken)
    store.commit(slow)
    assert store.load(slow.config).manifest["steps"] == 2
    assert store.problems == []


def test_racing_threads_leave_one_whole_run(store, ended, small):
    for seed in range(4):
        config = small(seed=seed)
        outcomes = [ended(config, steps=steps, shift=float(steps)) for steps in (1, 2, 3)]
        gate = threading.Barrier(len(outcomes))

        def commit(outcome, gate=gate):
            gate.wait()
            Store(store.path).commit(outcome)

        threads = [threading.Thread(target=commit, args=(outcome,)) for outcome in outcomes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run = store.load(config)
        winner = outcomes[run.manifest["steps"] - 1]
        assert np.array_equal(leaves(run.network)[0], leaves(winner.network)[0])
    assert store.problems == []


def test_a_failed_run_is_kept_with_its_step_and_without_weights(store, ended):
    outcome = ended(failed_at=17)
    store.commit(outcome)
    assert store.status(outcome.config.run_id) == "failed"
    assert outcome.config in store
    run = store.load(outcome.config)
    assert run.manifest["failed_at"] == 17
    assert not (store.folder(run.run_id) / "weights.safetensors").exists()
    with pytest.raises(StoreError, match="failed at step 17"):
        _ = run.network


def test_curves_that_are_not_finite_can_be_stored(store, ended):
    point = {"step": 10, "loss": float("nan"), "score_in": float("-inf"), "score_held_out": float("nan")}
    outcome = ended(curves=[point], failed_at=3)
    store.commit(outcome)
    assert store.curves_df()["loss"].isna().all()


def test_the_files_are_parquet_safetensors_and_json(store, ended):
    outcome = ended()
    store.commit(outcome)
    folder = store.folder(outcome.config.run_id)
    assert {path.name for path in folder.iterdir()} == {"manifest.json", "curves.parquet", "weights.safetensors"}
    assert len(load_file(folder / "weights.safetensors")) == len(leaves(outcome.network))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"] == {
        name: (folder / name).stat().st_size for name in ("curves.parquet", "weights.safetensors")
    }


def test_provenance_says_what_and_how_but_not_who_and_where(store, ended, monkeypatch):
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "some-person")
    monkeypatch.setattr("socket.gethostname", lambda: "some-host")
    monkeypatch.setattr("platform.node", lambda: "some-host")
    provenance.machine.cache_clear()
    provenance.versions.cache_clear()
    store.commit(ended())
    text = (store.folder(store.run_ids()[0]) / "manifest.json").read_text()
    manifest = json.loads(text)
    found = manifest["provenance"]
    assert set(found["versions"]) >= {"python", "recombine", "jax", "jaxlib", "equinox", "optax", "numpy"}
    assert "not installed" not in found["versions"].values()
    assert set(found["machine"]) >= {"system", "processor", "cores", "backend", "device"}
    assert manifest["plan"] == {"lanes": 1, "threads": provenance.threads()}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["time"])
    assert "some-person" not in text and "some-host" not in text
    assert str(store.path) not in text and str(Path.home()) + "/" not in text
    assert not re.search(r'"(/|~|[A-Za-z]:\\)', text)


def test_a_store_and_a_run_show_themselves(store, ended, small):
    assert repr(store) == f"Store({str(store.path)!r}): runs: 0; studies: none"
    outcome = ended()
    store.commit(outcome)
    store.commit(ended(small(seed=1), failed_at=3))
    assert repr(store) == f"Store({str(store.path)!r}): runs: 1; failed runs: 1; studies: none"
    assert "<table>" in store._repr_html_() and str(store.path) in store._repr_html_()
    run = store.load(outcome.config)
    assert run.measure(Scores()).summary.keys() >= {"r2_in", "r2_held_out"}
    store.add_measurement(run.run_id, Scores(), run.measure(Scores()))
    text = repr(store.load(outcome.config))
    assert text.startswith(f"run {run.run_id}: 30 steps in 1.5 s\n") and len(text.splitlines()) <= 20
    for words in ("Random(", "MLP(", "r2_held_out"):
        assert words in text and words in run._repr_html_()
    assert repr(store.load(small(seed=1))).startswith(f"run {small(seed=1).run_id}: failed")
