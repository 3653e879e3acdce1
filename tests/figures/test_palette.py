import itertools

import numpy as np
import pytest

from recombine.figures import palette

SIMULATED = {
    "plain": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
"""Linear RGB as these eyes see it (Machado and others, 2009)."""


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def perceived(colour):
    """Oklab, in which equal distances look about equal."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return lab @ np.cbrt(np.clip(cones @ np.clip(colour, 0, 1), 0, None))


@pytest.mark.parametrize("eyes", SIMULATED)
def test_colours_are_told_apart(eyes):
    every = [*palette.COLOURS, *palette.CONTROL_COLOURS]
    seen = {colour: perceived(np.array(SIMULATED[eyes]) @ linear(colour)) for colour in every}
    for one, other in itertools.combinations(every, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 0.05, (one, other)


def test_colours_read_on_white_and_on_the_dark_page():
    weights = [0.2126, 0.7152, 0.0722]
    dark = linear("#16191f") @ weights
    for colour in (*palette.COLOURS, palette.NOTE, palette.RULE):
        light = linear(colour) @ weights
        assert 1.05 / (light + 0.05) >= 2.6
        assert (light + 0.05) / (dark + 0.05) >= 2.9


def test_levels_come_in_the_order_of_their_labels_then_by_size():
    assert list(palette.levels(["b", "a", "c", "a"])) == ["b", "a", "c"]
    assert palette.levels([32.0, 4.0, 16.0, float("nan"), None]) == {4.0: "4", 16.0: "16", 32.0: "32"}
    assert palette.levels(["a", "b", "c"], {"c": "last", "x": "absent", "a": "first"}) == {
        "c": "last",
        "a": "first",
        "b": "b",
    }
    assert list(palette.levels(["a", "b"], ["b", "a"])) == ["b", "a"]
    assert list(palette.levels(["a", "b"], {"a": "same", "b": "same"}).values()) == ["same", "same (2)"]


def test_a_named_series_keeps_its_colour_when_another_is_absent():
    labels = {"a": "A", "b": "B", "c": "C"}
    every = {style.key: style for style in palette.series_styles("abc", labels)}
    fewer = {style.key: style for style in palette.series_styles("c", labels)}
    assert fewer["c"] == every["c"]


def test_controls_are_dashed_and_have_colours_of_their_own():
    plain, control, other = palette.series_styles("abc", controls=("b", "c"))
    assert plain.dash == palette.SOLID
    assert palette.SOLID not in (control.dash, other.dash)
    assert {control.colour, other.colour} == set(palette.CONTROL_COLOURS)


@pytest.mark.parametrize("ordered", [False, True])
def test_many_series_differ_in_colour_or_dash(ordered):
    styles = palette.series_styles(range(20), ordered=ordered)
    assert len({(style.colour, style.dash) for style in styles}) == 20


def test_a_legend_of_short_names_has_one_line_and_of_long_ones_several():
    short, long = palette.series_styles("abcd"), palette.series_styles([name * 60 for name in "abcd"])
    assert palette.legend_above(short).to_dict()["columns"] == 4
    assert palette.legend_above(long).to_dict()["columns"] == 2
