import math

from recombine.figures.audit.layers import MOST_FACTORS, MOST_LAYERS, LayerRow, audit_layers_info, draw_audit_layers
from recombine.figures.embed import chart_json


def rows(layers, factors):
    return [
        LayerRow(f"layer {layer}", f"factor {factor}", layer / layers, 0.1, 0.9, 0.3, 0.25)
        for layer in range(layers)
        for factor in range(factors)
    ]


def test_layers_stand_as_they_came_and_the_chosen_one_is_marked():
    info = audit_layers_info(rows(3, 2), {"factor 1": "layer 1"})
    assert info.layers == ("layer 0", "layer 1", "layer 2")
    marked = info.rows[info.rows["chosen"]]
    assert list(zip(marked["layer"], marked["factor"], strict=True)) == [("layer 1", "factor 1")]
    assert info.domain == (0.0, 1.0)
    spec = chart_json(draw_audit_layers(info))
    assert "control task" in spec
    assert "chance" in spec


def test_of_many_layers_the_best_and_the_chosen_are_among_those_shown():
    info = audit_layers_info(rows(200, 2), {"factor 0": "layer 3"})
    assert len(info.layers) <= MOST_LAYERS
    assert {"layer 0", "layer 3", "layer 199"} <= set(info.layers)
    assert f"{len(info.layers)} of 200 layers" in info.caption


def test_of_many_factors_some_are_shown():
    info = audit_layers_info(rows(2, 30))
    assert len(info.factors) == MOST_FACTORS
    assert "9 of 30 factors" in info.caption
    draw_audit_layers(info).to_dict()


def test_no_sites_and_no_numbers():
    assert "No layer was probed" in chart_json(draw_audit_layers(audit_layers_info([])))
    info = audit_layers_info([LayerRow("a", "b", 0.5, math.nan, math.nan, math.nan, 0.5)])
    assert info.domain == (0.0, 1.0)
    draw_audit_layers(info).to_dict()
