import itertools

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.figures.matrix import draw_matrix, matrix_info


@pytest.fixture
def frame():
    rows = [
        (replicate, width, depth, kind, width / 100 - 0.1 * depth + 0.01 * replicate)
        for replicate, width, depth, kind in itertools.product(range(3), (32, 64), (1, 2, 4), ("a", "b"))
        if (width, depth) != (32, 4)
    ]
    return pd.DataFrame(rows, columns=["replicate", "width", "depth", "kind", "score"])


def test_cells_are_means_and_the_missing_are_there(frame):
    info = matrix_info(frame, "depth", "width", "score", "kind")
    cells = info.cells.set_index(["facet", "row", "column"])
    assert len(cells) == 12
    assert cells.loc[("a", "2", "64"), "value"] == pytest.approx(0.64 - 0.2 + 0.01)
    assert cells.loc[("a", "2", "64"), "text"] == "0.45"
    assert np.isnan(cells.loc[("b", "4", "32"), "value"])
    assert cells.loc[("b", "4", "32"), "text"] == ""
    assert "Hatched" in info.caption


def test_replicates_count_once(frame):
    doubled = pd.concat([frame, frame[frame["replicate"] == 0]])
    left, right = (matrix_info(one, "depth", "width", "score").cells["value"] for one in (frame, doubled))
    assert left.dropna().tolist() == pytest.approx(right.dropna().tolist())


def test_values_beyond_the_scale_are_said(frame):
    assert "beyond the colour scale" in matrix_info(frame, "depth", "width", "score", domain=(0, 0.1)).caption


@pytest.mark.parametrize(
    "cut",
    [
        lambda frame: frame.iloc[:0],
        lambda frame: frame.iloc[:1],
        lambda frame: frame.assign(score=np.nan),
        lambda frame: frame.assign(score=0.5),
        lambda frame: frame.assign(width='</script><b>"&.[0]'),
        lambda frame: pd.concat([frame.assign(width=width) for width in range(60)]),
    ],
)
def test_thin_input_draws_something(frame, cut):
    info = matrix_info(cut(frame), "depth", "width", "score", "kind")
    assert info.caption
    assert draw_matrix(info).to_dict()


def test_a_wrong_table_is_refused(frame):
    with pytest.raises(BadInput, match="'loss'"):
        matrix_info(frame, "depth", "width", "loss")
