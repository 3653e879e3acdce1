"""Checks of columns and groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.errors import BadInput
from recombine.stats.columns import codes, less_group_means, numbers


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"x": [1.0, 2.0], "y": [1.0]}, r"'x': \(2,\), 'y': \(1,\)"),
        ({"x": [[1.0], [2.0]]}, "flat columns"),
        ({"x": [1.0, np.nan], "y": [1.0, 2.0]}, "1 of 2 values of 'x' are not finite"),
        ({"x": [1.0]}, "At least 2 points are needed, got 1"),
    ],
)
def test_bad_columns_are_refused(columns, said):
    with pytest.raises(BadInput, match=said):
        numbers(2, **columns)


def test_codes():
    numbered, groups = codes(["b", "a", "b"], 3)
    assert numbered.tolist() == [1, 0, 1]
    assert groups.tolist() == ["a", "b"]
    with pytest.raises(BadInput, match="one label per point"):
        codes(["a"], 2)


@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 3)), min_size=1, max_size=20))
@settings(derandomize=True, deadline=None)
def test_group_means_vanish(points):
    values, labels = (np.array(column) for column in zip(*points, strict=True))
    group, groups = codes(labels, len(values))
    left = less_group_means(values, group)
    for index in range(len(groups)):
        assert left[group == index].mean() == pytest.approx(0, abs=1e-9)
