"""Feature maps side by side, and weight sweeps as film strips."""

from __future__ import annotations

import pandas as pd
import pytest

from recombine.figures.feature_maps import feature_maps, film_strips

IMAGE = [0, 128, 255] * 16


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    rows = [("picture", 0, 0), *(("map", number, 0) for number in range(3))]
    rows += [("sweep", number, frame) for number in range(2) for frame in range(5)]
    table = pd.DataFrame(rows, columns=["what", "number", "frame"]).assign(purity=0.75, image=[IMAGE] * len(rows))
    return {"evolved": table, "SGD <b>": table[table["what"] != "map"]}


def drawn(figure) -> list[dict]:
    spec = figure.chart.to_dict()
    data = [layer.get("data", {}).get("values", []) for layer in spec["layer"]]
    data += [*spec.get("datasets", {}).values(), spec.get("data", {}).get("values", [])]
    return next(values for values in data if values and "url" in values[0])


def test_each_network_has_its_picture_and_its_maps(tables):
    cells = drawn(feature_maps(tables))
    assert len(cells) == 4 + 1
    assert [cell["name"] for cell in cells].count("parity purity 0.75") == 3
    assert all(cell["url"].startswith("data:image/png;base64,") for cell in cells)


def test_each_strip_has_its_frames(tables, tmp_path):
    figure = film_strips(tables)
    cells = drawn(figure)
    assert len(cells) == 2 * 2 * 5
    assert {cell["x"] for cell in cells} == set(range(10)), "two networks of five frames side by side"
    assert figure.save(tmp_path / "strips.png").stat().st_size > 1000


def test_nothing_to_show():
    empty = pd.DataFrame(columns=["what", "number", "frame", "purity", "image"])
    assert feature_maps({"evolved": empty}).caption
