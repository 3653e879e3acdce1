import json

import numpy as np
import pandas as pd
import pytest

from recombine.figures.combination_map import combination_map_info, draw_combination_map


def cell(info, row, column, part):
    cells = info.cells.set_index(["row", "column", "part"])
    return cells.loc[(row, column, part)]


def test_a_cell_pools_the_combinations_that_hold_both(combinations):
    info = combination_map_info(combinations)
    # Below the diagonal what was trained: only {0, 1} holds 0 and 1.
    assert cell(info, 1, 0, "trained")["r2"] == pytest.approx(1 - 3 / 10)
    # Above it what was held out: {1, 2} and {0, 1, 2} hold 1 and 2.
    assert cell(info, 1, 2, "held out")["r2"] == pytest.approx(1 - 9 / 15)
    assert cell(info, 1, 2, "held out")["combinations"] == 2
    # The diagonal has both: {0}, {0, 1} were trained; {0, 2}, {0, 1, 2} held out.
    assert cell(info, 0, 0, "trained")["r2"] == pytest.approx(1 - 4 / 20)
    assert cell(info, 0, 0, "held out")["r2"] == pytest.approx(1 - 25 / 20)


def test_pairs_that_never_met_are_marked_on_both_sides(combinations):
    info = combination_map_info(combinations)
    marked = info.cells[info.cells["marked"]]
    assert sorted(zip(marked["row"], marked["column"], marked["part"], strict=True)) == [
        (0, 2, "held out"),
        (2, 0, "trained"),
    ]
    assert np.isnan(cell(info, 2, 0, "trained")["r2"])
    # 1 and 2 are in no trained row, but the stratum of {1, 2} says that they met.
    assert cell(info, 1, 2, "held out")["met"]


def test_pairs_that_no_combination_holds_are_not_marked():
    frame = pd.DataFrame(
        {
            "run": "a",
            "replicate": 0,
            "number": 1,
            "constituents": [[0, 2], [1, 2]],
            "region": ["trained", "held_out"],
            "stratum": "some_pairs_unmet",
            "error": 0.1,
            "spread": 1.0,
        }
    )
    marked = combination_map_info(frame).cells.query("marked")
    assert {tuple(sorted(pair)) for pair in zip(marked["row"], marked["column"], strict=True)} == {(1, 2)}


def test_the_first_replicate_is_shown(combinations):
    (panel,) = combination_map_info(combinations).panels
    assert panel.number == 40
    assert panel.r2_trained == pytest.approx(1 - 4 / 20)
    assert panel.r2_held_out == pytest.approx(1 - 31 / 35)


def test_labels_are_kept_as_they_are_and_told_apart(combinations):
    labels = ["</script><script>alert(1)</script>", "r\u00f6t & \u8d64", "r\u00f6t & \u8d64"]
    info = combination_map_info(combinations, labels)
    assert info.labels == (labels[0], labels[1], f"{labels[2]} (2)")
    text = json.dumps(draw_combination_map(info).to_dict())
    assert json.dumps(labels[0]) in text


def test_many_constituents_are_grouped_and_the_caption_says_so():
    rng = np.random.default_rng(0)
    parts = [sorted(rng.choice(300, 3, replace=False).tolist()) for _ in range(200)]
    frame = pd.DataFrame(
        {
            "run": "a",
            "replicate": 0,
            "number": 100,
            "constituents": parts,
            "region": ["trained", "held_out"] * 100,
            "stratum": "some_pairs_unmet",
            "error": rng.uniform(size=200),
            "spread": 1.0,
        }
    )
    info = combination_map_info(frame)
    assert len(info.labels) <= 40
    assert info.group == 8
    assert "300 constituents" in info.caption or "299 constituents" in info.caption
    # By hand: the held-out combinations that have a member in group 0 and one in group 5.
    chosen = [index for index in range(1, 200, 2) if {part // 8 for part in parts[index]} >= {0, 5}]
    got = info.cells.query("row == 0 and column == 5 and part == 'held out'")
    assert got["combinations"].sum() == len(chosen)
    if chosen:
        assert got["r2"].iloc[0] == pytest.approx(1 - frame["error"].iloc[chosen].mean())
    assert draw_combination_map(info).to_dict()


@pytest.mark.parametrize(
    "cut",
    [
        lambda frame: frame.iloc[:0],
        lambda frame: frame[frame["region"] == "trained"],
        lambda frame: frame[frame["region"] == "held_out"],
        lambda frame: frame.assign(region="rest"),
        lambda frame: frame.assign(error=np.nan),
        lambda frame: frame.assign(spread=0.0),
        lambda frame: frame.iloc[:1],
    ],
)
def test_thin_input_draws_something(combinations, cut):
    info = combination_map_info(cut(combinations))
    assert info.caption
    assert draw_combination_map(info).to_dict()


def test_sixteen_modules_stay_legible(combinations):
    spec = draw_combination_map(combination_map_info(combinations, [str(part) for part in range(16)])).to_dict()
    (panel,) = spec["concat"]
    assert panel["width"] / 16 >= 14
    sizes = [
        layer["encoding"]["y"]["axis"]["labelFontSize"]
        for layer in panel["layer"]
        if "x" in layer["encoding"] and "axis" in layer["encoding"].get("y", {})
    ]
    assert sizes
    assert min(sizes) >= 12
