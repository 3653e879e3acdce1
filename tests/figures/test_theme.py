import altair as alt
import numpy as np
import pandas as pd
import pytest

from recombine.figures import theme


@pytest.mark.parametrize("number", [0, 1, 2, 4, 9])
def test_each_size_has_a_colour_of_its_own(number):
    colours = theme.size_colours(number)
    assert len(set(colours)) == number
    assert all(len(colour) == 7 and colour.startswith("#") for colour in colours)


def _luminance(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_read_on_white_and_on_the_dark_page():
    roles = [theme.TRAINED, theme.HELD_OUT, theme.CONTROL, theme.UNTRAINED, *theme.ANSWERS.values()]
    dark = _luminance("#16191f")
    for colour in [*roles, *theme.size_colours(4), *theme.size_colours(7)]:
        light = _luminance(colour)
        assert 1.05 / (light + 0.05) >= 2.9
        assert (light + 0.05) / (dark + 0.05) >= 2.9


def test_values_become_json():
    frame = pd.DataFrame({"a": [np.nan, 0.123456789], "b": np.array([1, 2]), "c": ["x", None], "d": [True, False]})
    first, second = theme.values(frame).to_dict()["values"]
    assert first == {"a": None, "b": 1, "c": "x", "d": True}
    assert second["a"] == 0.123457
    assert second["c"] is None


def test_equal_labels_are_told_apart():
    assert theme.unique_labels(["a", "a", "b", "a (2)", "a"]) == ["a", "a (3)", "b", "a (2)", "a (4)"]


def test_the_style_does_not_touch_the_charts_of_others():
    before = alt.Chart(alt.InlineData(values=[])).mark_point().to_dict()["config"]
    theme.message_chart("nothing")
    assert alt.Chart(alt.InlineData(values=[])).mark_point().to_dict()["config"] == before
