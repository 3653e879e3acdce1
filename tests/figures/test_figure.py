"""A figure shows itself and saves itself; the front door offers every kind of figure."""

import base64
import json
import re

import pytest

from recombine import figures
from recombine.figures import Figure
from recombine.figures.theme import message_chart

ODD = "a <b> & \x1b[31m"


@pytest.fixture
def figure():
    return Figure("empty", f"Title {ODD}", f"Caption {ODD}", message_chart("nothing"))


def test_a_notebook_shows_title_chart_and_caption(figure):
    page = figure._repr_html_()
    image = re.search(r"base64,([^\"]+)", page)
    assert image and base64.b64decode(image[1]).startswith(b"<svg")
    assert "Title a &lt;b&gt;" in page and "Caption a &lt;b&gt;" in page
    assert "\x1b" not in page + repr(figure)
    assert repr(figure).startswith("Figure('empty', title='Title a <b>")


def test_a_saved_page_has_title_and_caption(figure, tmp_path):
    page = figure.save(tmp_path / "figure.html").read_text()
    assert "<h1>Title a &lt;b&gt;" in page and "<p>Caption a &lt;b&gt;" in page


def test_a_specification_is_saved_as_json(figure, tmp_path):
    assert json.loads(figure.save(tmp_path / "figure.json").read_text()) == figure.chart.to_dict()


def test_every_name_of_the_front_door_exists():
    assert {name for name in figures.__all__ if not hasattr(figures, name)} == set()
    assert "draw_lines" in dir(figures)
