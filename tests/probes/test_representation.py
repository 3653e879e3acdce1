"""Scores of networks that draw pictures: known networks, and the published ones."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.cppn import Genome, read_genome
from recombine.cppn.scores import axis_of
from recombine.errors import BadInput
from recombine.families.picture import Picture
from recombine.models import CPPN, MLP
from recombine.probes import Representation
from recombine.probes.representation import scaled, tangents
from recombine.recipes import Paper
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SYMMETRIC = Genome(
    # sin(y), gaussian(2 x), and the output reads both: nothing in it is odd in x.
    activations=("identity",) * 4 + ("sin", "gaussian", "tanh"),
    links=((0, 4, 3.0), (1, 5, 2.0), (4, 6, 1.0), (5, 6, 1.0)),
    outputs=(6,),
)


def run(genome: Genome, **settings) -> RunConfig:
    side = settings.pop("side", 16)
    recipe = Paper(steps=0, tasks=1, samples=side**2)
    return RunConfig(family=Picture(side=side, genome=genome), model=CPPN(**settings), recipe=recipe)


def measured(config: RunConfig, **settings):
    setting = Setting(config)
    return Representation(**settings).measure(setting, setting.network())


def test_a_symmetric_network_is_pure_and_has_its_own_maps_alone():
    result = measured(run(SYMMETRIC, weights="evolved"))
    assert result.summary["mse"] < 1e-10 and result.summary["change_size"] == 0 and "left" not in result.summary
    assert result.summary["parity_purity"] == pytest.approx(1, abs=1e-6)
    assert result.summary["distinct_maps"] == 3
    assert result.summary["picture_asymmetry"] == pytest.approx(0, abs=1e-9)
    assert result.summary["nonzero_weights"] == 4 + 1, "its links and the readout"
    random = measured(run(SYMMETRIC)).summary
    assert random["neurons"] == result.summary["neurons"] and random["mse"] > 1e-3
    assert random["parity_purity"] < 0.99 and random["distinct_maps"] > 3


def test_the_table_has_the_picture_maps_and_strips():
    result = measured(run(SYMMETRIC), maps=3, strips=2)
    what = np.array(result.columns["what"])
    assert (what == "picture").sum() == 1 and (what == "map").sum() == 3 and (what == "sweep").sum() == 2 * 5
    assert {len(image) for image in result.columns["image"]} == {3 * 16**2}
    assert set(result.summary) <= set(Representation.summary_names)


def test_what_is_left_of_a_change():
    changed = run(SYMMETRIC, weights="evolved").replace(combinations=(("moved",),))
    result = measured(changed)
    assert result.summary["left"] == pytest.approx(1, abs=1e-5) and result.summary["change_size"] > 0
    assert "sweep_asymmetry" not in result.summary and set(result.columns["what"]) == {"picture"}


def test_tangents_are_differences_of_the_picture():
    setting = Setting(run(SYMMETRIC))
    network, teacher, size = setting.network(), setting.teacher, 1e-3
    by_weight = tangents(network, teacher.inputs)
    assert len(by_weight) == sum(weights.size for weights in (*network.layers, network.readout))
    units = network.layers[0].shape[1]
    moved = eqx.tree_at(lambda some: some.layers[0], network, network.layers[0].at[2, 1].add(size))
    before, after = (np.asarray(some(jnp.zeros(4), teacher.inputs), float) for some in (network, moved))
    np.testing.assert_allclose(by_weight[2 * units + 1], (after - before).ravel() / size, atol=0.02)


def test_the_mirror_is_that_of_the_picture():
    y, x = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8), indexing="ij")
    assert axis_of((x**2 + y).reshape(-1, 1))[0] == "x"
    assert axis_of((y**2 + x).reshape(-1, 1))[0] == "y"
    assert scaled(np.array([2.0, 3.0, 4.0]))[:, 0].tolist() == [0, 0.5, 1]
    assert not scaled(np.ones(4)).any()


def test_other_models_are_refused():
    config = RunConfig(model=MLP(width=4, depth=1))
    with pytest.raises(BadInput, match="draw pictures"):
        Representation().measure(Setting(config), Setting(config).network())


@pytest.mark.parametrize(
    ("name", "asymmetry", "maps"),
    [
        ("skull", 0.255, 20),
        pytest.param("butterfly", 0.233, 32, marks=pytest.mark.slow),
        pytest.param("apple", 0.097, 64, marks=pytest.mark.slow),
    ],
)
def test_published_networks_have_the_scores_that_were_found_for_them(picbreeder, name, asymmetry, maps):
    """Figures of an earlier analysis at 64 x 64 pixels, by which the exact forms of the scores were chosen; its draws were other ones."""
    config = run(read_genome(picbreeder / f"{name}.zip"), weights="evolved", side=64)
    summary = measured(config, draws=128, maps=1, strips=1).summary
    assert summary["mse"] < 1e-6
    assert summary["distinct_maps"] == maps
    assert summary["parity_purity"] == pytest.approx(0.98, abs=0.03)
    assert summary["sweep_asymmetry"] == pytest.approx(asymmetry, abs=0.05)
    mirror, _ = axis_of(np.asarray(Setting(config).teacher.pictures[0], float)[:, -1:])
    assert mirror == "x"
