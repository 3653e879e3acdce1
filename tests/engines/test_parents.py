"""Runs that come from runs: parents are trained first, once, and children start from their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.engines.base import plan
from recombine.engines.local import LocalEngine
from recombine.engines.processes import ProcessEngine
from recombine.errors import BadInput, StoreError
from recombine.models import MLP, Masked, MaskedNetwork
from recombine.probes import Scores
from recombine.store import requests
from recombine.store.archive import archive
from recombine.store.selection import Selection, remove, used_by_others, with_ancestors
from recombine.store.store import Store
from recombine.training import RunConfig, train
from recombine.training.outcome import Outcome
from recombine.training.prepare import Setting, check_line

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")


@pytest.fixture(scope="module")
def base(tiny: Callable[..., RunConfig]) -> RunConfig:
    return tiny(model=MLP(width=8, depth=2))


@pytest.fixture(scope="module")
def line(base: RunConfig) -> dict[str, RunConfig]:
    """A parent with two children: a mask, and a readout that goes on; and a child of the second."""
    readout = base.replace(parents=(base,), trains=("layers.2.*",))
    return {
        "base": base,
        "mask": base.replace(model=Masked(model=base.model), parents=(base,)),
        "readout": readout,
        "all": base.replace(parents=(readout,)),
    }


@pytest.fixture(scope="module")
def store(line: dict[str, RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("line") / "store")
    sweep = LocalEngine().run(made, [line["mask"], line["all"]], [Scores(combinations=4, draws=1)])
    assert sweep.trained == 4 and sweep.measured == 2, "parents are trained, and only what was asked for is measured"
    return made


def weights(store: Store, config: RunConfig) -> list[Any]:
    return jax.tree.leaves(store.load(config).network)


def test_names_cover_the_whole_line_and_old_names_stay(base: RunConfig, line: dict[str, RunConfig]) -> None:
    assert "parents" not in base.dump() and "trains" not in base.dump()
    names = {config.run_id for config in line.values()}
    assert len(names) == 4
    other = base.replace(steps=base.recipe.steps + 1)
    assert line["all"].replace(parents=(line["readout"].replace(parents=(other,)),)).run_id not in names
    for config in line.values():
        assert RunConfig.model_validate(config.dump()) == config
    assert line["all"].generation == 2 and list(line["all"].ancestors()) == [base.run_id, line["readout"].run_id]


def test_children_start_from_their_parents(store: Store, line: dict[str, RunConfig]) -> None:
    base, readout = weights(store, line["base"]), weights(store, line["readout"])
    same = [bool((one == other).all()) for one, other in zip(base, readout, strict=True)]
    assert same == [True, True, True, True, False, False], "only the readout was trained"
    mask = store.load(line["mask"])
    network = mask.network
    assert isinstance(network, MaskedNetwork)
    for one, other in zip(jax.tree.leaves(network.network), base, strict=True):
        np.testing.assert_array_equal(one, other)
    before = mask.setting.network()
    assert isinstance(before, MaskedNetwork) and float(before.temperature) == 1.0
    assert float(network.temperature) == pytest.approx(200.0)
    assert any(bool((one != 0.05).any()) for one in jax.tree.leaves(network.masks))
    np.testing.assert_array_equal(jax.tree.leaves(before.network)[0], base[0])


def test_a_run_without_a_store_trains_its_parents(line: dict[str, RunConfig], store: Store) -> None:
    outcome = train(line["all"], quiet=True)
    for one, other in zip(jax.tree.leaves(outcome.network), weights(store, line["all"]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(jax.tree.leaves(outcome.setting.network())[0], weights(store, line["readout"])[0])


def test_processes_train_the_same_line(line: dict[str, RunConfig], store: Store, tmp_path: Any) -> None:
    other = Store(tmp_path / "store")
    sweep = ProcessEngine(2, threads=1).run(other, [line["mask"], line["all"]], [Scores(combinations=4, draws=1)])
    assert sweep.trained == 4 and sorted(other.run_ids()) == sorted(store.run_ids())
    for config in line.values():
        for one, two in zip(weights(store, config), weights(other, config), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_shared_parent_is_trained_once_and_read_once(
    base: RunConfig, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read, trained = Store(tmp_path / "store"), [], []
    children = [base.replace(parents=(base,), **{"seeds.data": seed}) for seed in range(10)]
    load, commit = Store.load, Store.commit
    monkeypatch.setattr(Store, "load", lambda self, run: read.append(run) or load(self, run))
    monkeypatch.setattr(Store, "commit", lambda self, outcome: trained.append(outcome) or commit(self, outcome))
    LocalEngine().run(store, children)
    assert len(trained) == 11 and len(read) == 1


def test_what_is_left_counts_missing_parents(line: dict[str, RunConfig], store: Store) -> None:
    before = plan(None, [line["mask"], line["all"]])
    assert before.runs == 2 and before.steps == sum(config.recipe.steps for config in line.values())
    assert plan(store, [line["mask"], line["all"]]).steps == 0


def test_a_removed_parent_is_trained_again_only_when_it_is_needed(line: dict[str, RunConfig], tmp_path: Any) -> None:
    store = Store(tmp_path / "store")
    LocalEngine().run(store, [line["readout"]])
    remove(store, [line["base"].run_id])
    assert LocalEngine().run(store, [line["readout"]]).trained == 0
    with pytest.raises(StoreError, match="which is not in the store"):
        store.load(line["readout"]).setting.network()
    assert LocalEngine().run(store, [line["all"]]).trained == 1, "its parent is there, and needs no parent any more"
    assert LocalEngine().run(store, [line["mask"]]).trained == 2


def test_other_shapes_and_filters_are_refused_before_anything_trains(base: RunConfig, tmp_path: Any) -> None:
    store = Store(tmp_path / "store")
    wide = base.replace(width=16, parents=(base,))
    cases = {
        f"cannot start from {base.run_id}: .*layers.0.weight is": wide,
        "names no weight": base.replace(parents=(base,), trains=("readout",)),
        "names all weights": base.replace(trains=("layers.*",)),
        "goes on with the weights of one run, and 2 are given": base.replace(parents=(base, base)),
    }
    for message, config in cases.items():
        with pytest.raises(BadInput, match=message):
            check_line(config)
        with pytest.raises(BadInput, match=message):
            LocalEngine().run(store, [base, config])
        with pytest.raises(BadInput, match=message):
            plan(store, [config])  # So --dry-run says it as well.
    assert store.run_ids() == []


def test_a_parent_is_not_named_but_described(base: RunConfig) -> None:
    for given in (base.run_id, [base.run_id]):
        with pytest.raises((BadInput, ValueError), match="whole configuration, not by a name"):
            RunConfig.model_validate({"parents": given})


def test_a_failed_parent_is_named(base: RunConfig, tmp_path: Any) -> None:
    store = Store(tmp_path / "store")
    child, network = base.replace(parents=(base,)), Setting(base).network()
    store.commit(Outcome(base, network, [], 3, 0.0, 0.0, None, failed_at=3, stack_size=1))
    with pytest.raises(BadInput, match=f"its parent {base.run_id} failed"):
        LocalEngine().run(store, [child])
    other = base.replace(**{"seeds.init": 7})
    sweep = LocalEngine().run(store, [child, other.replace(parents=(other,))])
    assert sweep.trained == 2 and child not in store
    assert any(base.run_id in problem for problem in store.problems)


def test_stores_know_the_line(line: dict[str, RunConfig], store: Store, tmp_path: Any) -> None:
    names = {name: config.run_id for name, config in line.items()}
    row = store.runs_df().set_index("run")["parents"]
    assert row[names["all"]] == names["readout"] and row.isna()[names["base"]]
    assert with_ancestors(store, [names["all"]]) == [names["base"], names["readout"], names["all"]]
    kept = used_by_others(store, [names["base"]], Selection(runs=[names["base"]]))
    assert kept[names["base"]].startswith("run ")
    assert not used_by_others(store, list(names.values()), Selection())
    made = archive(store, tmp_path / "line.zip", with_ancestors(store, [names["all"]]))
    assert len(made.runs) == 3
    asked = requests.parents_of([line["all"]])
    assert asked == {"parents": [names["base"], names["readout"]]} and requests.parents_of([line["base"]]) == {}


def test_a_cycle_cannot_be_written(base: RunConfig) -> None:
    document: dict[str, Any] = base.dump()
    document["parents"] = [document]
    with pytest.raises(ValueError, match="recursion"):
        RunConfig.model_validate(document)


def test_masks_are_a_product_and_their_parts_add_up(base: RunConfig) -> None:
    network = Masked(model=base.model).draw(3, 2, 4, jax.random.key(0))
    chosen = jax.tree.map(
        lambda logit: jnp.where(jnp.arange(logit.size).reshape(logit.shape) % 3 == 0, 1.0, -1.0), network.masks
    )
    network = MaskedNetwork(network.network, chosen, jnp.asarray(1e6), 200.0, 0.1)
    whole, kept, other = (
        jax.tree.leaves(part) for part in (network.network, network.part("subnetwork"), network.part("ablated"))
    )
    for one, two, three in zip(whole, kept, other, strict=True):
        if one.ndim > 1:
            np.testing.assert_array_equal(one, two + three)
            assert ((two == 0) | (three == 0)).all()
        else:
            np.testing.assert_array_equal(one, two)
    for soft, hard in zip(jax.tree.leaves(network.part()), kept, strict=True):
        np.testing.assert_allclose(soft, hard, atol=1e-6)
    assert float(network.share()) == pytest.approx(1 / 3, abs=0.03)
    assert float(network.penalty()) == pytest.approx(0.1 * float(network.share()), rel=1e-4)


def test_the_line_of_a_parent_is_checked_too(base: RunConfig, tmp_path: Any) -> None:
    store, wide = Store(tmp_path / "store"), base.replace(width=16, parents=(base,))
    with pytest.raises(BadInput, match=f"The run {wide.run_id} cannot start from {base.run_id}"):
        LocalEngine().run(store, [wide.replace(parents=(wide,))])
    assert store.run_ids() == []


def test_a_parent_that_is_there_counts_though_its_own_parent_failed(base: RunConfig, tmp_path: Any) -> None:
    store = Store(tmp_path / "store")
    middle, network = base.replace(parents=(base,)), Setting(base).network()
    store.commit(Outcome(base, network, [], 3, 0.0, 0.0, None, failed_at=3, stack_size=1))
    store.commit(Outcome(middle, network, [], 5, 0.0, 0.0, None, failed_at=None, stack_size=1))
    assert LocalEngine().run(store, [middle.replace(parents=(middle,))]).trained == 1
