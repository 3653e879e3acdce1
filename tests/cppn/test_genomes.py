"""Genomes, their dense networks and their pictures."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from recombine.cppn import ACTIVATIONS, Dense, Genome, colours, dense, places
from recombine.cppn.genome import FUNCTIONS

PLACES = places(9)
IN = ("identity",) * 4


def outputs(network: Dense, inputs: np.ndarray) -> np.ndarray:
    """A dense network, evaluated unit by unit."""
    hidden = inputs
    for matrix in (network.first, *network.middle):
        totals = hidden @ matrix
        units = [FUNCTIONS[ACTIVATIONS[kind]](totals[:, unit]) for unit, kind in enumerate(network.activations)]
        hidden = np.stack(units, axis=1)
    return hidden @ network.readout


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32), mutations=st.integers(0, 60))
def test_the_dense_network_computes_what_the_genome_computes(grown, seed, mutations):
    genome = grown(seed, mutations)
    wanted = genome.values(PLACES)[:, list(genome.outputs)]
    np.testing.assert_allclose(outputs(dense(genome), PLACES), wanted, rtol=1e-9, atol=1e-9)


def test_three_outputs_one_of_which_feeds_a_hidden_node():
    genome = Genome(
        activations=(*IN, "sin", "gaussian", "sigmoid", "cos"),
        links=((1, 4, 2.0), (4, 5, 1.0), (5, 6, -1.5), (3, 6, 0.5), (0, 7, 1.0), (7, 5, 0.3)),
        outputs=(4, 6, 5),
    )
    assert genome.layers[4:] == (1, 2, 3, 1)
    wanted = genome.values(PLACES)[:, list(genome.outputs)]
    np.testing.assert_allclose(outputs(dense(genome), PLACES), wanted, atol=1e-12)


def test_an_output_without_links_is_a_constant():
    genome = Genome(activations=(*IN, "gaussian"), links=(), outputs=(4,))
    assert np.all(outputs(dense(genome), PLACES) == 1.0)


def test_activations_are_those_of_picbreeder():
    x = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(FUNCTIONS["sigmoid"](x), 2 / (1 + np.exp(-x)) - 1)
    np.testing.assert_allclose(FUNCTIONS["gaussian"](x), 2 * np.exp(-(x**2)) - 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": ((4, 5, 1.0), (5, 4, 1.0))}, "cycle"),
        ({"links": ((4, 1, 1.0),)}, "input"),
        ({"links": ((1, 4, 1.0), (1, 4, 2.0))}, "two links"),
        ({"links": ((1, 9, 1.0),)}, "nodes 0 to 5"),
        ({"outputs": (4, 5)}, "1 output"),
        ({"activations": (*IN, "relu", "sin")}, "identity"),
        ({"links": ((1, 4, float("nan")),)}, "finite"),
    ],
)
def test_impossible_genomes_are_refused(change, message):
    whole = {"activations": (*IN, "sin", "sin"), "links": ((1, 4, 1.0),), "outputs": (4,)} | change
    with pytest.raises(ValidationError, match=message):
        Genome.model_validate(whole)


def test_places_are_rows_from_top_to_bottom():
    inputs = places(3)
    assert inputs[:, 0].tolist() == [-1, -1, -1, 0, 0, 0, 1, 1, 1]
    assert inputs[:, 1].tolist() == [-1, 0, 1] * 3
    assert inputs[4, 2] == 0 and inputs[0, 2] == pytest.approx(1.4 * 2**0.5)


@given(st.floats(0, 0.999), st.floats(0, 1), st.floats(0, 1))
def test_colours_are_those_of_colorsys(hue, saturation, brightness):
    made = colours(np.array([[hue, saturation, brightness]]))[0]
    np.testing.assert_allclose(made, colorsys.hsv_to_rgb(hue, saturation, brightness), atol=1e-9)
    grey = colours(np.array([[-brightness]]))[0]
    np.testing.assert_allclose(grey, [brightness] * 3)
