"""Relative information gain: the exact values for two-digit multiplication, and scikit-learn's of random tables."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.metrics import mutual_info_score

from recombine.errors import BadInput
from recombine.graphs.information_gain import entropy, relative_information_gain
from recombine.graphs.multiplication import digit_table


def test_the_exact_values_of_two_by_two_digits():
    table = digit_table(2, 2)
    last = table.product[:, -1]
    assert relative_information_gain(table.left[:, -1], last) == pytest.approx(0.2229, abs=5e-5)
    both = np.stack([table.left[:, -1], table.right[:, -1]], axis=1)
    assert relative_information_gain(both, last) == pytest.approx(1)
    first = relative_information_gain(table.left[:, 0], table.product[:, 0])
    assert first == pytest.approx(0.1976, abs=5e-5)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_scipy_and_scikit_learn_agree(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 3, (40, 2)), rng.integers(0, 4, 40)
    joint = x[:, 0] * 3 + x[:, 1]
    unknown = stats.entropy(np.bincount(y))
    assert relative_information_gain(x, y) == pytest.approx(mutual_info_score(joint, y) / unknown)
    assert entropy(np.bincount(y)) == pytest.approx(stats.entropy(np.bincount(y), base=2))


def test_the_ends():
    everything, nothing = np.arange(4), np.zeros(4, np.int64)
    assert relative_information_gain(everything, everything) == 1
    assert relative_information_gain(nothing, everything) == 0
    with pytest.raises(BadInput, match="same in every row"):
        relative_information_gain(everything, nothing)
    with pytest.raises(BadInput, match="3 rows and outputs 4"):
        relative_information_gain(everything[:3], everything)


def test_lists_and_types_of_few_bits():
    assert relative_information_gain([0, 1, 2, 3], [0, 0, 1, 1]) == 1
    assert relative_information_gain([[0, 1], [1, 0]], [5, 6]) == 1
    far = np.array([-100, 100, -100, 100], np.int8)
    assert relative_information_gain(far, np.arange(4)) == pytest.approx(0.5)
    assert relative_information_gain(far, far.astype(np.uint8)) == pytest.approx(1)
    assert relative_information_gain(np.array([0, 255], np.uint8), far[:2]) == pytest.approx(1)
    assert relative_information_gain(np.array([0, 2**62], np.uint64), np.array([-(2**62), 2**62])) == 1
    with pytest.raises(BadInput, match="Inputs must be 64-bit integers, got an array of float64"):
        relative_information_gain([0.5, 1.5], [0, 1])
