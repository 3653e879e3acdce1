"""The largest error of a network, recomputed from its data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.families.hyperteacher import HyperteacherShape
from recombine.models.base import Edit, Network, Trace, unedited
from recombine.probes import sup_error
from recombine.probes.base import Measured
from recombine.probes.sup_error import SupError, count_weights, site_widths
from recombine.supports.regions import side
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream, stream_key

PROBE = SupError(tasks=30, samples=5)


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny())


@pytest.fixture(scope="module")
def measured(setting: Setting) -> Measured:
    return PROBE.measure(setting, setting.network())


@pytest.fixture(scope="module")
def tasks(measured: Measured) -> pd.DataFrame:
    return pd.DataFrame(measured.columns)


def test_summary_is_that_of_its_columns(measured: Measured, tasks: pd.DataFrame):
    by_region = tasks.groupby("region").sup_error.max()
    assert measured.summary["sup_error"] == tasks.sup_error.max()
    assert measured.summary["sup_error_in"] == by_region["trained"]
    assert measured.summary["sup_error_held_out"] == by_region["held_out"]
    assert measured.summary["rms_error"] == pytest.approx(np.sqrt((tasks.rms_error**2).mean()))
    assert (tasks.rms_error <= tasks.sup_error).all()


def test_neurons_and_weights_are_counted(setting: Setting, measured: Measured):
    network = setting.network()
    assert site_widths(network, setting) == [8, 8]
    assert measured.summary["neurons"] == 16
    wanted = (6 + 4 + 1) * 8 + (8 + 1) * 8 + (8 + 1) * 3
    assert measured.summary["weights"] == count_weights(network) == wanted


def test_each_region_holds_its_combinations(setting: Setting, tasks: pd.DataFrame):
    space = setting.config.space
    names = {space.name(row): row for row in space.enumerate()}
    trained = {space.name(row) for row in setting.support.rows}
    assert tasks.groupby("region").size().to_dict() == {"trained": 30, "held_out": 30}
    held_out = set(tasks.combination[tasks.region == "held_out"])
    assert set(tasks.combination[tasks.region == "trained"]) == trained
    assert held_out and not held_out & trained
    rows = np.array([names[name] for name in held_out])
    assert set(side(rows, setting.config.seeds.support)) == {"test"}


def test_errors_are_recomputed_from_their_data(setting: Setting, tasks: pd.DataFrame):
    """The place of a task in its region gives its key, the key its data; then plain numpy."""
    space, network = setting.config.space, setting.network()
    names = {space.name(row): row for row in space.enumerate()}

    @jax.jit
    def examples(row: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        by_data, _ = jax.random.split(key)
        _, code, batch = draw_examples(setting.teacher, setting.encoder, row, by_data, PROBE.samples)
        return network(code, batch.inputs), batch.targets

    for index in (0, 29, 30, 59):
        name = f"sup-error {tasks.region[index]}"
        salt = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")
        key = jax.random.fold_in(stream_key(setting.data_key, Stream.TEST, salt), index % 30)
        found, wanted = examples(jnp.asarray(names[tasks.combination[index]]), key)
        error = np.abs(np.asarray(found, float) - np.asarray(wanted, float))
        assert tasks.sup_error[index] == pytest.approx(error.max(), rel=1e-4)
        assert tasks.rms_error[index] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-4)


class Off(Network):
    """Right but for one number: it knows the teacher's answers to be zero and adds .25 in one place."""

    def trace(self, code: jax.Array, inputs: jax.Array, edit: Edit = unedited) -> tuple[jax.Array, Trace]:
        return jnp.zeros((len(inputs), 3)).at[0, 1].set(0.25), {"inputs": inputs}


def test_one_wrong_output_is_found(setting: Setting):
    silent = jax.tree.map(jnp.zeros_like, setting.teacher)
    blank = Setting(setting.config)
    blank.__dict__["teacher"] = silent
    summary = PROBE.measure(blank, Off()).summary
    assert summary["sup_error"] == 0.25
    assert summary["rms_error"] == pytest.approx(0.25 / np.sqrt(5 * 3))
    assert summary["weights"] == 0


def test_wide_networks_use_smaller_batches(setting: Setting, measured: Measured, monkeypatch: pytest.MonkeyPatch):
    """What one call holds is limited; the numbers are the same."""
    monkeypatch.setattr(sup_error, "MAX_ACTIVATIONS", 8 * 5 * 7)
    again = PROBE.measure(setting, setting.network())
    np.testing.assert_allclose(again.columns["sup_error"], measured.columns["sup_error"], rtol=1e-5)


class Named(HyperteacherShape):
    """A family whose targets are classes."""

    kind: Literal["named"] = "named"
    targets: ClassVar[Literal["numbers", "classes"]] = "classes"

    def draw(self, *given: Any) -> Any:
        raise NotImplementedError


def test_classes_are_refused(setting: Setting):
    fields = {name: getattr(setting.config, name) for name in type(setting.config).model_fields}
    config = RunConfig.model_construct(**(fields | {"family": Named()}))
    with pytest.raises(BadInput, match="'named' are classes"):
        PROBE.measure(Setting(config), setting.network())
