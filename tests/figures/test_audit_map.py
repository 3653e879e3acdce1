import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recombine.figures.audit.combination_map import MOST, Combinations, audit_map_info
from recombine.figures.audit.combination_map_drawing import draw_audit_map
from recombine.figures.embed import chart_json

ODD = '</script> a.b["c"] \u202e\n <i>&'


def combinations(rows, score, slots=None, trained=None, sets=False):
    """Rows of values: one for each slot, or any number of values of one set."""
    slots = slots or (("tools",) if sets else tuple(f"slot {k}" for k in range(len(rows[0]))))
    keys = sorted({(0 if sets else slot, str(value)) for row in rows for slot, value in enumerate(row)})
    names = [name for _, name in keys]
    values = sorted(set(names))
    width = max(len(row) for row in rows)
    atoms = [sorted(keys.index((0 if sets else slot, str(value))) for slot, value in enumerate(row)) for row in rows]
    return Combinations(
        slots=slots,
        slot=np.array([slot for slot, _ in keys]),
        value=np.array([values.index(name) for name in names]),
        names=tuple(names),
        rows=np.array([[-1] * (width - len(row)) + row for row in atoms]),
        score=np.asarray(score, dtype=float),
        repeats=np.where(np.isnan(np.asarray(score, dtype=float)), 0, 3),
        trained=None if trained is None else np.asarray(trained, dtype=bool),
    )


def square(panel, down, across):
    cells = panel.cells
    row, column = panel.down.labels.index(down), panel.across.labels.index(across)
    found = cells[(cells["row"] == row) & (cells["column"] == column)]
    return found.iloc[0] if len(found) else None


def test_two_slots_are_a_grid_of_combinations():
    rows = [("red", "cube"), ("red", "ball"), ("blue", "cube"), ("green", "ball")]
    info = audit_map_info(combinations(rows, [0.2, 0.9, 1.0, math.nan], trained=[True, False, False, True]))
    (panel,) = info.panels
    assert info.single
    assert info.training_known
    assert (panel.down.slot, panel.across.slot) == ("slot 0", "slot 1")
    one = square(panel, "red", "cube")
    assert (one["score"], one["rows"], one["combinations"], one["trained"]) == (0.2, 3, 1, True)
    assert not square(panel, "red", "ball")["trained"]
    assert square(panel, "blue", "ball") is None, "nobody scored it, nobody trained on it"
    only = square(panel, "green", "ball")
    assert only["trained"]
    assert not only["scored"]
    assert "A frame" in info.caption
    assert info.domain == (0.2, 1.0)


def test_values_stand_from_low_to_high_and_numbers_in_their_order():
    rows = list(itertools.product(["good", "bad", "fair"], ["10", "9", "2"]))
    score = [{"good": 1.0, "bad": 0.0, "fair": 0.5}[word] for word, _ in rows]
    (panel,) = audit_map_info(combinations(rows, score)).panels
    assert panel.down.labels == ("bad", "fair", "good")
    assert panel.across.labels == ("2", "9", "10")
    assert panel.across.ordered


def test_values_of_two_roles_have_one_order():
    rows = [(first, second) for first, second in itertools.permutations("abc", 2)]
    score = [0.1 if "b" in row else 0.9 for row in rows]
    (panel,) = audit_map_info(combinations(rows, score)).panels
    assert panel.down.labels == panel.across.labels == ("b", "a", "c")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 4))
def test_pairwise_means_agree_with_counting(seed, slots):
    rng = np.random.default_rng(seed)
    every = list(itertools.product("abc", repeat=slots))
    rows = [every[k] for k in rng.choice(len(every), size=14, replace=False)]
    score = rng.random(14).round(3)
    score[:2] = np.nan
    trained = rng.random(14) < 0.4
    info = audit_map_info(combinations(rows, score, trained=trained))
    assert not info.single
    assert len(info.panels) == slots * (slots - 1) // 2
    for panel in info.panels:
        first, second = (int(axis.slot.split()[1]) for axis in (panel.down, panel.across))
        for down, across in itertools.product(panel.down.labels, panel.across.labels):
            held = [k for k, row in enumerate(rows) if (row[first], row[second]) == (down, across)]
            scored = [score[k] for k in held if not math.isnan(score[k])]
            found = square(panel, down, across)
            if found is None:
                assert not scored
                assert not trained[held].any()
                continue
            assert found["combinations"] == len(scored)
            assert found["rows"] == 3 * len(scored)
            assert found["trained"] == trained[held].any()
            if scored:
                assert found["score"] == pytest.approx(np.mean(scored))


def test_a_set_is_paired_with_itself():
    rows = [("a",), ("a", "b"), ("a", "b", "c"), ("c",)]
    info = audit_map_info(combinations(rows, [1.0, 0.5, 0.0, 0.8], sets=True))
    (panel,) = info.panels
    assert panel.same
    assert (panel.cells["row"] >= panel.cells["column"]).all()
    assert "diagonal" in info.caption
    whole = {(panel.down.labels[one.row], panel.across.labels[one.column]): one for one in panel.cells.itertuples()}
    assert whole["a", "a"].score == pytest.approx(0.5)
    pair = whole.get(("a", "b")) or whole["b", "a"]
    assert (pair.score, pair.combinations) == (pytest.approx(0.25), 2)


def test_of_many_values_the_worst_and_the_most_frequent_are_shown():
    rng = np.random.default_rng(0)
    code = rng.choice(60_000, size=4000, replace=False)
    rows = [(f"s{one // 200}", f"p{one % 200}") for one in code]
    rows += [("s7", f"p{k}") for k in range(200) if ("s7", f"p{k}") not in set(rows)]
    score = [0.0 if row[0] == "s11" else 0.9 for row in rows]
    info = audit_map_info(combinations(rows, score))
    (panel,) = info.panels
    assert (len(panel.down.labels), panel.down.values) == (MOST, 300)
    assert (len(panel.across.labels), panel.across.values) == (MOST, 200)
    assert panel.down.labels[0] == "s11"
    assert "s7" in panel.down.labels
    assert "36 of 300 slot 0 and 36 of 200 slot 1" in info.caption
    assert len(chart_json(draw_audit_map(info))) < 600_000


def test_of_many_slots_some_pairs_are_shown():
    rng = np.random.default_rng(0)
    rows = [tuple(f"v{k}" for k in rng.integers(3, size=40)) for _ in range(30)]
    info = audit_map_info(combinations(rows, rng.random(30)))
    assert (len(info.panels), info.pairs) == (6, 780)
    assert "6 of 780 pairs of slots" in info.caption


def test_one_slot_and_no_score():
    info = audit_map_info(combinations([("a",), ("b",)], [0.1, 0.2]))
    assert len(info.panels[0].cells) == 2
    assert "Each square is a value" in info.caption
    draw_audit_map(info).to_dict()
    empty = audit_map_info(combinations([("a", "b")], [math.nan]))
    assert empty.panels == ()
    assert empty.caption == "No combination has a score."
    assert "no map" in chart_json(draw_audit_map(empty))


def test_odd_names_are_told_and_stay_apart():
    rows = [(ODD, "x"), ("y" * 5000, "image"), ("y" * 5000 + "z", "x")]
    info = audit_map_info(combinations(rows, [0.1, 0.5, 0.9], slots=("image", "rows")), ODD)
    spec = draw_audit_map(info)
    text = chart_json(spec)
    assert "\\u202e" not in text.replace("\\\\u202e", "")
    assert len(text) < 40_000
    assert len(set(info.panels[0].down.labels)) == 3
    titles = [one["title"] for one in spec.to_dict()["layer"][0]["encoding"]["tooltip"]]
    assert len(set(titles)) == len(titles)
    assert not {"image", "title"} & set(titles), "a tooltip would draw a picture of it"


def test_equal_scores_have_a_scale():
    info = audit_map_info(combinations([("a", "b"), ("c", "d")], [7.0, 7.0]))
    assert info.domain == (6.5, 7.5)
