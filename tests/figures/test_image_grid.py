"""The grid of images: pixels arrive as they were, and every image stands where it belongs."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.figures.image_grid import data_url, draw_image_grid, image_grid_info
from recombine.figures.png import encode_png
from recombine.figures.save import save_figure

KINDS = {"old": "trained on", "new": "not trained on"}


def pixels_of(content: bytes) -> np.ndarray:
    """A PNG without filters, read by its definition."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        name, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length]) == (zlib.crc32(name + data),)
        chunks[name] = data
        at += 12 + length
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind) == (8, 2)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_pixels_arrive():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (5, 7, 3)).astype(np.uint8)
    np.testing.assert_array_equal(pixels_of(encode_png(pixels)), pixels)
    image = rng.integers(0, 256, (16, 16, 3))
    address = data_url(image.ravel().tolist())
    larger = pixels_of(base64.b64decode(address.removeprefix("data:image/png;base64,")))
    np.testing.assert_array_equal(larger[::4, ::4], image)
    with pytest.raises(BadInput, match="a square of pixels with three channels"):
        data_url([0] * 10)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        [
            {
                "row": row,
                "group": group,
                "place": place,
                "image": rng.integers(0, 256, 48).tolist(),
                "kind": "new" if place else "old",
                "right": row == "disc" or None if place else False,
                "name": f"{row} <b>{group}</b> {place}",
            }
            for row in ("disc", "square")
            for group in ("red", "blue")
            for place in range(3)
        ]
    )


def test_images_stand_where_they_belong():
    info = image_grid_info(frame(), KINDS, "Images.")
    assert (info.rows, info.groups, info.width) == (("disc", "square"), (("red", 0, 2), ("blue", 3, 5)), 6)
    one = info.cells[(info.cells["x"] == 4) & (info.cells["y"] == 1)].iloc[0]
    assert one["name"] == "square <b>blue</b> 1"
    assert info.caption == "Images. A cross marks a wrong image."


def test_it_is_drawn_without_a_network(tmp_path):
    chart = draw_image_grid(image_grid_info(frame(), KINDS, "Images."))
    assert save_figure(chart, tmp_path / "grid.png").stat().st_size > 1000
    assert "data:image/png" in save_figure(chart, tmp_path / "grid.svg").read_text()


def test_without_images_it_says_so(tmp_path):
    chart = draw_image_grid(image_grid_info(frame().head(0), KINDS, "Images."))
    assert "No image" in save_figure(chart, tmp_path / "none.svg").read_text()
