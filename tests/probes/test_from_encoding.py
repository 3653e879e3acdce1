"""Recovering the constituents from the code through the model: always if it is right, by chance if it ignores the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher, HyperteacherShape, HyperteacherTeacher, Modules
from recombine.models.base import Edit, Network, Trace, unedited
from recombine.probes.from_encoding import FromEncoding, decode
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=6, max_active=3)
MEASURE = FromEncoding(candidates=8)


class Knowing(Network):
    """The hyperteacher as a function of z, with an error in some tasks: `lost` inputs of every code beyond a limit."""

    teacher: HyperteacherTeacher
    noise: Array
    slots: int

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        (layer,) = self.teacher.shared
        weight = jnp.einsum("m,mfh->fh", code, layer.weights) / self.slots**0.5
        hidden = jax.nn.relu(inputs @ weight + code @ layer.biases / self.slots**0.5)
        wrong = self.noise * (inputs[:, :1] > 0.5)
        return hidden @ self.teacher.readout + wrong, {"hidden": hidden}


class Blind(Network):
    """Gives zeros."""

    outputs: int

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        return jnp.zeros((len(inputs), self.outputs)), {"hidden": inputs}


class Twins(HyperteacherShape):
    """All modules are one and the same: functions do not tell the constituents."""

    kind: Literal["twins"] = "twins"

    def draw(self, space: Space, key: Array) -> HyperteacherTeacher:
        drawn = Hyperteacher(inputs=self.inputs, hidden=self.hidden, outputs=self.outputs).draw(space, key)
        same = tuple(
            Modules(*(jnp.broadcast_to(leaf[:1], leaf.shape) for leaf in jax.tree.leaves(layer)))
            for layer in drawn.shared
        )
        return HyperteacherTeacher(space=space, shape=self, shared=same, readout=drawn.readout)


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny(space=SPACE, support=Random(number=12), seeds=Seeds.replicate(2)))


def knowing(setting: Setting, noise: float) -> Knowing:
    teacher = setting.teacher
    assert isinstance(teacher, HyperteacherTeacher)
    return Knowing(teacher, jnp.float32(noise), SPACE.slots)


def test_the_constituents_are_recovered_from_a_correct_model(setting: Setting):
    found = MEASURE.measure(setting, knowing(setting, 0.0)).summary
    for suffix in ("", "_in"):
        assert found[f"recovered{suffix}"] == found[f"bound{suffix}"] == 1
        assert found[f"wrong{suffix}"] == found[f"slack{suffix}"] == 0
        assert found[f"epsilon{suffix}"] > 0


def test_the_bound_holds_for_a_model_that_is_sometimes_wrong(setting: Setting):
    found = MEASURE.measure(setting, knowing(setting, 1.0)).summary
    assert found["wrong"] == pytest.approx(0.25, abs=0.06), "where the first feature is above .5"
    assert found["bound"] == pytest.approx(1 - found["wrong"] ** 0.5)
    assert found["slack"] == found["recovered"] - found["bound"]
    assert found["slack"] > 0


def test_a_model_that_ignores_its_code_recovers_only_by_chance(setting: Setting):
    measured = FromEncoding(candidates=8, coefficients=1).measure(setting, Blind(3))
    assert measured.summary["wrong"] > 0.9
    assert measured.summary["recovered"] < 0.5


def test_recovery_fails_where_functions_do_not_determine_the_constituents(tiny: Callable[..., RunConfig]):
    """The theorem's assumption is broken: a model that is never wrong, and nothing to recover."""
    setting = Setting(
        tiny(space=SPACE, support=Random(number=12), family=Twins(inputs=4, hidden=5, outputs=3, coefficients="k-hot"))
    )
    # The inputs' answers are exact to rounding; so is the distance of candidates: only strictly nearer counts.
    found = FromEncoding(candidates=8, coefficients=1).measure(setting, knowing(setting, 0.0))
    assert found.summary["recovered"] < 0.5
    assert found.summary["epsilon"] < 1e-5


def test_decoding_against_loops():
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {name: rng.uniform(size=(20, 2, 3, 10)) for name in ("model", "truth")}
    found["truth"][:, 0, 0] = 0
    recovered, wrong, epsilon = decode(found, samples=6, percent=10)
    others = [
        found["truth"][task, draw, candidate, place] ** 0.5
        for task in range(20)
        for draw in range(2)
        for candidate in (1, 2)
        for place in range(10)
    ]
    assert epsilon == pytest.approx(np.percentile(others, 10) / 2)
    for task in range(20):
        sums = {
            (draw, candidate): found["model"][task, draw, candidate, :6].sum()
            for draw in range(2)
            for candidate in range(3)
        }
        best = min(sums, key=lambda key: sums[key])
        assert recovered[task] == (best[1] == 0)
        far = [found["model"][task, 0, 0, place] ** 0.5 >= epsilon for place in range(6, 10)]
        assert wrong[task] == pytest.approx(np.mean(far))


def test_ties_are_not_recovered():
    same: dict[str, np.ndarray] = {"model": np.zeros((4, 1, 2, 6)), "truth": np.zeros((4, 1, 2, 6))}
    recovered, wrong, epsilon = decode(same, samples=3, percent=5)
    assert not recovered.any()
    assert wrong.all()
    assert epsilon == 0


def test_the_table_has_one_row_per_task(setting: Setting):
    measured = MEASURE.measure(setting, setting.network())
    columns = measured.columns
    assert {len(values) for values in columns.values()} == {len(columns["region"])}
    held_out = np.array(columns["region"]) == "held_out"
    assert measured.summary["recovered"] == pytest.approx(np.mean(np.array(columns["recovered"])[held_out]))
    assert measured.summary["wrong_in"] == pytest.approx(np.mean(np.array(columns["wrong"])[~held_out]))
    assert measured == MEASURE.measure(Setting(setting.config), setting.network())


def test_classes_are_refused(setting: Setting):
    class Classes(Hyperteacher):
        targets: ClassVar[Any] = "classes"

    changed = Setting(setting.config.model_copy(update={"family": Classes()}))
    with pytest.raises(BadInput, match="compares numbers"):
        MEASURE.measure(changed, setting.network())
