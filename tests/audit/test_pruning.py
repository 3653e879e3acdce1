"""Subnetworks of a user's own model, on a model whose two halves are known."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recombine as rc
from recombine.audit.pruning import PrunedModel
from recombine.errors import BadInput

UNITS = 6


class Halves(eqx.Module):
    """Two independent halves: the first reads the first half of the inputs, the second the rest."""

    first: jax.Array
    second: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.concatenate([x[:UNITS] @ self.first, x[UNITS:] @ self.second])


@pytest.fixture(scope="module")
def weights() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    first, second = (np.sign(rng.normal(size=(UNITS, 2))) * rng.uniform(1, 2, (UNITS, 2)) for _ in range(2))
    return first.astype(np.float32), second.astype(np.float32)


def batches(weights: tuple[np.ndarray, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Data that only the first half is about, and data that only the second half is about."""
    rng, out = np.random.default_rng(1), []
    for half in (0, 1):
        x = np.zeros((128, 2 * UNITS), np.float32)
        x[:, half * UNITS : (half + 1) * UNITS] = rng.normal(size=(128, UNITS))
        y = np.concatenate([x[:, :UNITS] @ weights[0], x[:, UNITS:] @ weights[1]], axis=1)
        out.append({"x": x, "y": y})
    return out


def equinox_loss(model: Halves, batch: dict[str, np.ndarray]) -> jax.Array:
    return jnp.mean((jax.vmap(model)(jnp.asarray(batch["x"])) - batch["y"]) ** 2)


def check(pruned: PrunedModel) -> None:
    assert pruned.kept["first"].all() and not pruned.kept["second"].any(), "it is the first half"
    assert pruned.share == pytest.approx(0.5)
    assert pruned.losses["subnetwork"]["own"] < 1e-6 and pruned.losses["ablated"]["other"] < 1e-6
    assert pruned.losses["ablated"]["own"] > 1 and pruned.losses["subnetwork"]["other"] > 1
    assert pruned.specific > 1 and "50.0%" in repr(pruned)


def test_the_half_that_the_data_needs_is_found_in_an_equinox_module(weights):
    model = Halves(*map(jnp.asarray, weights))
    pruned = rc.subnetwork(model, equinox_loss, *batches(weights), steps=150)
    check(pruned)
    np.testing.assert_array_equal(model.first, weights[0])


def test_the_same_half_is_found_in_a_torch_module(weights):
    torch = pytest.importorskip("torch")

    class TorchHalves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (torch.nn.Parameter(torch.tensor(each)) for each in weights)

        def forward(self, x):
            return torch.cat([x[:, :UNITS] @ self.first, x[:, UNITS:] @ self.second], dim=1)

    def loss(model, batch):
        return ((model(torch.tensor(batch["x"])) - torch.tensor(batch["y"])) ** 2).mean()

    model = TorchHalves()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    check(rc.subnetwork(model, loss, *batches(weights), steps=150))
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_cannot_be_masked_is_refused(weights):
    model = Halves(*map(jnp.asarray, weights))
    own, other = batches(weights)
    with pytest.raises(BadInput, match="no matrix to mask"):
        rc.subnetwork(eqx.nn.LayerNorm(3), equinox_loss, own, other)
    with pytest.raises(BadInput, match="at least one step"):
        rc.subnetwork(model, equinox_loss, own, other, steps=0)
    with pytest.raises(BadInput, match="not finite"):
        rc.subnetwork(model, lambda model, batch: jnp.nan, own, other, steps=2)
