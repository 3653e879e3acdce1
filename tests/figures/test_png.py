"""Packed PNG files: the same pixels in fewer bytes."""

from __future__ import annotations

import io

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from PIL import Image, PngImagePlugin

from recombine.figures.png import packed_png


def test_a_figure_has_the_same_pixels_in_fewer_bytes() -> None:
    chart = alt.Chart(pd.DataFrame({"x": range(20), "y": range(20)})).mark_point().encode(x="x", y="y")
    loose = vl_convert.vegalite_to_png(chart.to_json())
    tight = packed_png(loose)
    assert len(tight) < 0.7 * len(loose)
    np.testing.assert_array_equal(*(np.asarray(Image.open(io.BytesIO(one))) for one in (loose, tight)))


def test_what_else_a_file_holds_stays() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)
    words = PngImagePlugin.PngInfo()
    words.add_text("about", "noise")
    made = io.BytesIO()
    Image.fromarray(noise).save(made, "png", pnginfo=words, compress_level=0)
    tight = Image.open(io.BytesIO(packed_png(made.getvalue())))
    np.testing.assert_array_equal(np.asarray(tight), noise)
    assert tight.info["about"] == "noise"
