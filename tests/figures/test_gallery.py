"""Every general figure, drawn to SVG on made-up data, and with none."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from recombine.figures.axes import Reference
from recombine.figures.calibration import calibration_info, draw_calibration
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.episode import EpisodeObject, draw_episode, episode_info
from recombine.figures.forecast import draw_forecast, forecast_info
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.figures.save import save_figure
from recombine.figures.scatter import draw_scatter, scatter_info

ODD = 'a.b["c"] <i>&'
"""A name that is markup, a path into a record and a quotation at once."""
NAMES = ("plain", ODD)


def runs():
    draw = np.random.default_rng(3)
    rows = [
        (replicate, size, name, width, 0.8 - 4 / size, draw.normal(0.4 - (name == ODD), 0.1))
        for replicate, size, name, width in itertools.product(range(3), (10, 20, 40), NAMES, (32, 64))
    ]
    return pd.DataFrame(rows, columns=["replicate", "size", "name", "width", "score_in", "score"])


def lines(table):
    line = [Reference(0.95, "threshold")]
    info = lines_info(table, "size", "score", "name", "width", controls=(ODD,), floor=-0.25, references=line)
    return draw_lines(info)


def dots(table):
    notes, known = {ODD: "connected, 71 % of pairs met"}, {"score": {ODD: 0.2}}
    return draw_dots(dots_info(table, "name", ["score_in", "score"], notes=notes, published=known, floor=-0.2))


def scatter(table):
    return draw_scatter(scatter_info(table, "score_in", "score", "name", fit="common", note="r = 0.5"))


def calibration(table):
    frame = table.assign(predictor=table["name"], predicted=table["score_in"], observed=table["score"], n=3)
    return draw_calibration(calibration_info(frame.assign(low=frame["observed"] - 0.1, high=frame["observed"] + 0.1)))


def forecast(table):
    points = table.assign(x=table["size"], y=table["score"], fitted=table["size"] < 40)
    curve = points.assign(predicted=points["score_in"], low=0.1, high=0.9)
    return draw_forecast(forecast_info(points, curve, curve, facet="width", law=ODD))


def matrix(table):
    return draw_matrix(
        matrix_info(table[table["size"] > 10 * (table["name"] == ODD)], "name", "size", "score", "width")
    )


def episode(table):
    walls = np.zeros((4, 4) if len(table) else (0, 0), bool)
    things = [EpisodeObject(1, 1, ODD, 1.0)] if len(table) else []
    way = [(0, 0), (0, 1), (1, 1)] if len(table) else []
    return draw_episode(episode_info(walls, things, way, [ODD] * (len(way) - 1), title=ODD))


@pytest.mark.parametrize("figure", [lines, dots, scatter, calibration, forecast, matrix, episode])
def test_gallery(figure, tmp_path):
    full = save_figure(figure(runs()), tmp_path / "full.svg").read_text()
    assert ODD in "".join(ElementTree.fromstring(full).itertext())
    assert "NaN" not in full
    empty = save_figure(figure(runs().iloc[:0]), tmp_path / "empty.svg").read_text()
    assert "yet" in empty
