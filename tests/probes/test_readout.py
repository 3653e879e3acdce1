"""Readout: each combination is scored by a probe that never saw it, and the support's columns equal brute force."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from recombine.errors import BadInput
from recombine.probes.activations import activations
from recombine.probes.base import Measured
from recombine.probes.readout import Readout, before_training, read_errors
from recombine.probes.ridge import STRENGTHS, mean_r2
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.gaps import Gaps
from recombine.supports.missing_part import MissingPart
from recombine.supports.random import Random
from recombine.testing import check_component
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=8, max_active=3)
SUPPORT = Gaps(number=12, parts=1, pairs=4, reserve=40)
READOUT = Readout(draws=3)


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny(space=SPACE, support=SUPPORT, seeds=Seeds.replicate(3)))


@pytest.fixture(scope="module")
def rows(setting: Setting) -> np.ndarray:
    return setting.regions.rows("held_out", 512, "test")


@pytest.fixture(scope="module")
def measured(setting: Setting) -> Measured:
    return READOUT.measure(setting, setting.network())


def test_it_is_a_component():
    check_component(Readout())


def test_one_row_per_held_out_combination_of_the_test_side(setting, rows, measured):
    table = pd.DataFrame(measured.columns)
    assert list(table["combination"]) == [SPACE.name(row) for row in rows]
    assert not setting.support.contains(rows).any()
    assert np.isfinite(table.drop(columns="combination").to_numpy(float)).all()
    assert measured.summary == {"readout_r2": pytest.approx(1 - table["error"].mean())}


def test_errors_equal_those_of_scikit_learn_fitted_on_the_other_half(setting, rows, measured):
    network = setting.network()
    test = activations(setting, network, rows, 3, "readout test")
    choice = setting.regions.rows("held_out", 512, "validation")
    validation = activations(setting, network, choice, 3, "readout validation")
    number = np.repeat(np.arange(len(rows)), 3)
    wanted = np.empty(len(rows))
    spread = test["vector"].var(axis=0).sum()
    for half in (0, 1):
        fit = number % 2 != half
        probes = [Ridge(alpha=strength).fit(test["hidden 2"][fit], test["vector"][fit]) for strength in STRENGTHS]
        best = max(probes, key=lambda probe: mean_r2(validation["vector"], probe.predict(validation["hidden 2"])))
        squared = ((best.predict(test["hidden 2"]) - test["vector"]) ** 2).sum(axis=1)
        for index in range(half, len(rows), 2):
            wanted[index] = squared[number == index].mean() / spread
    np.testing.assert_allclose(measured.columns["error"], wanted, rtol=2e-3)


def test_a_readout_decodes_exactly_what_the_layer_encodes():
    rng = np.random.default_rng(0)
    vector = rng.integers(0, 2, size=(400, 5)).astype(float)
    noise = rng.normal(size=(400, 7))
    told = {"vector": vector, "site": vector @ rng.normal(size=(5, 7)), "noise": noise}
    clear = read_errors(told, told, "site", 100)
    assert clear.shape == (100,) and clear.max() < 1e-6
    assert read_errors(told, told, "noise", 100).mean() == pytest.approx(1, abs=0.1)


def test_the_probe_of_a_combination_is_fitted_without_it():
    """A layer that knows combinations by name only: the probe of the other half knows nothing of this one."""
    rng = np.random.default_rng(1)
    vector = np.repeat(rng.normal(size=(40, 5)), 4, axis=0)
    told = {"vector": vector, "name": np.repeat(np.eye(40), 4, axis=0)}
    assert read_errors(told, told, "name", 40).mean() > 0.9


def test_a_combination_that_is_not_encoded_has_a_large_error():
    rng = np.random.default_rng(2)
    vector = rng.normal(size=(200, 4))
    site = vector.copy()
    site[40:44] = -site[40:44]  # The eleventh combination of four tasks.
    error = read_errors({"vector": vector, "s": site}, {"vector": vector, "s": vector}, "s", 50)
    assert int(error.argmax()) == 10 and error[10] > 10 * np.delete(error, 10).max()


def test_the_supports_columns_equal_brute_force(setting, rows):
    found = before_training(setting, rows)
    train = [{int(part) for part in row if part < 8} for row in setting.support.rows]
    often = {
        parts: sum(set(parts) <= one for one in train)
        for size in (1, 2, 3)
        for parts in itertools.combinations(range(8), size)
    }
    for index, row in enumerate(rows):
        held = sorted(int(part) for part in row if part < 8)
        pairs = list(itertools.combinations(held, 2))
        unmet = sum(often[pair] == 0 for pair in pairs)
        wanted = {
            "parts": len(held),
            "unseen": sum(often[(part,)] == 0 for part in held),
            "rarest_part": min(often[(part,)] for part in held),
            "pairs_met": 1 - unmet / len(pairs) if pairs else 1,
            "pairs_unmet": unmet,
            "rarest_pair": min(often[pair] for pair in pairs) if pairs else often[(held[0],)],
            "distance": min(max(len(one), len(held)) - len(one & set(held)) for one in train),
            "size": 12,
            "pairs_covered": np.mean([often[key] > 0 for key in often if len(key) == 2]),
            "triples_covered": np.mean([often[key] > 0 for key in often if len(key) == 3]),
            "smallest_eigenvalue": 0,
        }
        for name, value in wanted.items():
            assert found[name][index] == pytest.approx(value, abs=1e-9), (name, held)
    assert {0, 1} <= set(found["unseen"]) and len(set(found["pairs_unmet"])) > 2


def test_the_smallest_eigenvalue_is_positive_where_all_constituents_are_identifiable(tiny):
    setting = Setting(tiny(space=SPACE, support=Random(number=60), seeds=Seeds.replicate(1)))
    rows = setting.regions.rows("held_out", 10)
    found = before_training(setting, rows)["smallest_eigenvalue"]
    np.testing.assert_allclose(found, np.linalg.eigvalsh(setting.support.second_moment())[0])
    assert found[0] > 0


@pytest.mark.parametrize(
    ("space", "support"),
    [
        (SubsetSpace(modules=8, max_active=3), MissingPart(part=2)),
        (ProductSpace.model_validate({"factors": {"a": 3, "b": 3, "c": 2}}), Random(number=8)),
        (SubsetSpace(modules=8, max_active=1), Random(number=4, require_connected=False)),
    ],
    ids=["rule", "product", "single"],
)
def test_every_kind_of_support_and_space_is_described(tiny, space, support):
    setting = Setting(tiny(space=space, support=support, seeds=Seeds.replicate(2)))
    rows = setting.regions.rows("held_out", 20)
    found = before_training(setting, rows)
    assert all(len(values) == len(rows) and np.isfinite(values).all() for values in found.values())
    assert (found["distance"] >= 1).all()


def test_one_held_out_combination_is_too_few(tiny, monkeypatch):
    setting = Setting(tiny(space=SPACE, support=SUPPORT, seeds=Seeds.replicate(3)))
    few = setting.regions.rows("held_out", 1, "test")
    monkeypatch.setattr(type(setting.regions), "require", lambda *_: few)
    with pytest.raises(BadInput, match="There is one held-out combination"):
        READOUT.measure(setting, setting.network())
