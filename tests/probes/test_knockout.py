"""Knockout: purity of units whose effects are known, and a network made of modules against one that mixes them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.models.base import Network, unedited
from recombine.probes import Knockout
from recombine.probes.knockout import purity
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


@given(
    st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=2, max_size=5),
    st.floats(0.1, 10),
    st.permutations(range(3)),
)
@settings(max_examples=50, deadline=None)
def test_purity_is_a_share_that_knows_no_scale_and_no_order(rows, scale, order):
    changes = np.array(rows)
    found = purity(changes)
    if changes.sum() <= 0:
        assert np.isnan(found)
        return
    assert -1e-9 <= found <= 1 + 1e-9
    assert purity(scale * changes[:, list(order)]) == pytest.approx(found)


def test_purity_by_hand():
    assert purity(np.eye(4)) == pytest.approx(1)
    assert purity(np.ones((4, 7))) == pytest.approx(0)
    # Shares 3/4 and 1/4: (10/16 - 1/2) / (1/2). The second unit has no effect and does not count.
    assert purity(np.array([[3.0, 0.0], [1.0, 0.0]])) == pytest.approx(0.25)
    # The first unit is pure and has three quarters of the effect; the second is not pure at all.
    assert purity(np.array([[6.0, 1.0], [0.0, 1.0]])) == pytest.approx(0.75)


class Parts(Network):
    """Unit m works on the tasks of constituent m alone; with `mixed`, all units work on all tasks."""

    mixed: Any

    def trace(self, code, inputs, edit=unedited):
        gates = jnp.where(self.mixed, jnp.ones_like(code), (jnp.abs(code) > 0).astype(jnp.float32))
        hidden = edit("hidden 1", jnp.sum(inputs, axis=1, keepdims=True) * gates)
        return hidden @ jnp.ones((len(code), 1)), {"hidden 1": hidden}


CONFIG = RunConfig.model_validate(
    {
        "space": {"kind": "subset", "modules": 5, "max_active": 2},
        "support": {"kind": "random", "number": 8},
        "model": {"kind": "mlp", "width": 6, "depth": 2},
    }
)


def test_a_network_of_modules_is_pure_and_a_mixed_one_is_not(monkeypatch):
    setting = Setting(CONFIG)
    for mixed, expected in ((False, 1.0), (True, 0.0)):
        network = Parts(jnp.asarray(mixed))
        monkeypatch.setattr(Setting, "network", lambda self, network=network: network)
        measured = Knockout(draws=1, samples=64).measure(setting, network)
        # Effects are relative to the variance of the outputs on 64 examples of each task.
        near = pytest.approx(expected, abs=0.01)
        assert measured.summary == {"purity": near, "purity_untrained": near}
        assert set(measured.columns) == {"site", "unit", "constituent", "change"}
        assert len(measured.columns["unit"]) == 5 * 5


def test_spaces_without_single_constituents_are_refused():
    config = CONFIG.replace(**{"space.min_active": 2})
    with pytest.raises(BadInput, match="single constituent"):
        Knockout().measure(Setting(config), Parts(jax.numpy.asarray(True)))
