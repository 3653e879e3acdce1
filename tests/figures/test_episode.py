import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.figures.episode import (
    EpisodeObject,
    actions_in_words,
    draw_episode,
    episode_info,
    episode_kinds,
    episode_segments,
    episode_steps,
)

WALLS = np.pad(np.zeros((3, 4), bool), 1, constant_values=True)
BALL, KEY = EpisodeObject(1, 1, "ball", 1.0), EpisodeObject(3, 4, "key", -0.5)


def test_equal_actions_in_a_row_are_said_once():
    words = actions_in_words(["right", "right", "right", "up", "pick up", "pick up"])
    assert words == "1\N{EN DASH}3 right, 4 up, 5\N{EN DASH}6 pick up"
    assert actions_in_words([]) == ""


def test_arrows_point_where_the_agent_goes():
    info = episode_info(WALLS, path=[(2, 2), (1, 2), (1, 3), (2, 3), (2, 2)])
    pieces = episode_segments(info)
    # The start is entered again a little aside, so the last arrow is not quite level.
    assert pieces["angle"].tolist()[:3] == pytest.approx([0, 90, 180])
    assert 225 < pieces["angle"].tolist()[3] < 315
    assert not pieces["jump"].any()


def test_pieces_of_a_way_back_do_not_lie_on_those_of_the_way_there():
    info = episode_info(WALLS, path=[(2, 1), (2, 2), (2, 3), (2, 2), (2, 1)])
    pieces = episode_segments(info)
    there, back = pieces.iloc[1], pieces.iloc[2]
    assert (there["x2"], there["y2"]) == (back["x"], back["y"])
    assert (there["x"], there["y"]) != (back["x2"], back["y2"])


def test_steps_that_stay_have_no_piece_and_far_ones_are_jumps():
    info = episode_info(WALLS, path=[(1, 1), (1, 1), (3, 4)], actions=["wait", "leap"])
    pieces = episode_segments(info)
    assert pieces["step"].tolist() == [2]
    assert pieces["jump"].tolist() == [True]
    assert episode_steps(info) == {(1, 1): [0, 1], (3, 4): [2]}


def test_the_legend_says_worth_and_when_it_was_reached():
    things = [BALL, KEY, BALL._replace(row=2), EpisodeObject(2, 2, "lamp"), BALL._replace(value=2.0)]
    info = episode_info(WALLS, things, path=[(1, 2), (1, 1), (2, 1)])
    assert list(episode_kinds(info).values()) == [
        "ball: +1, reached at step 1, 2",
        "key: \N{MINUS SIGN}0.50",
        "lamp",
        "ball: +2, reached at step 1",
    ]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"walls": np.zeros((2, 3, 4), bool)}, "height x width"),
        ({"path": [(0, 6)]}, "outside the grid of 5 rows and 6 columns"),
        ({"objects": [EpisodeObject(-1, 0, "<b>")]}, "'<b>'"),
        ({"path": [(1, 1), (1, 2)], "actions": ["up", "up"]}, "1 steps, but there are 2 actions"),
    ],
)
def test_an_episode_that_does_not_fit_together_is_refused(settings, match):
    with pytest.raises(BadInput, match=match):
        episode_info(**({"walls": WALLS} | settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"walls": np.zeros((0, 0), bool)},
        {"path": [(1, 1)]},
        {"objects": [BALL._replace(name='</script><b>"&.[0]', value=None)]},
        {"path": [(1, 1), (1, 2)] * 90, "actions": ["right", "left"] * 89 + ["right"], "title": "long " * 60},
        {"walls": np.zeros((40, 40), bool), "path": [(0, 0), (0, 1), (0, 0)]},
    ],
)
def test_any_episode_draws_something(settings):
    info = episode_info(**({"walls": WALLS} | settings))
    assert info.caption
    assert draw_episode(info).to_dict()
