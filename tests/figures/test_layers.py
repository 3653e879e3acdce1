"""Figures by layer: layers are numbered by their site, and tables without rows give a figure too."""

import numpy as np
import pandas as pd
import pytest

from recombine.figures.layers import ERASURES, SWAPS, erasure_by_layer, forms_by_layer, swap_by_layer, with_layers

SITES = ["encoding", "hidden 1", "hidden 12", "output"]


def test_layers_are_numbered_by_their_site():
    np.testing.assert_array_equal(with_layers(pd.DataFrame({"site": SITES}))["layer"], [0.0, 1.0, 12.0, np.nan])
    assert with_layers(pd.DataFrame(columns=["replicate"]))["layer"].empty


@pytest.mark.parametrize(("draw", "measures"), [(swap_by_layer, SWAPS), (erasure_by_layer, ERASURES)])
def test_interventions_have_one_line_per_measure_and_one_panel_per_number(draw, measures):
    rows = [
        {"replicate": seed, "number": number, "site": site} | dict.fromkeys(measures, 0.1 * seed)
        for seed in range(3)
        for number in (40, 320)
        for site in SITES[1:3]
    ]
    chart = str(draw(pd.DataFrame(rows), title="?", facet="number").chart.to_dict())
    assert all(f"'{name}'" in chart for name in (*measures.values(), "40", "320"))
    empty = pd.DataFrame(columns=["replicate", "number", "site", *measures])
    assert draw(empty, title="?", facet="number").chart.to_dict()


def test_only_probes_with_the_chosen_strength_are_shown():
    rows = [
        {"replicate": seed, "site": site, "form": form, "strength": strength, "r2": r2, "kind": "network"}
        for seed in range(3)
        for site in SITES[:2]
        for form in ("intrinsic", "transfer", "in_distribution")
        for strength, r2 in (("1", 0.123), ("chosen", 0.875))
    ]
    figure = forms_by_layer(pd.DataFrame(rows), series="kind", title="?", caption="The end.")
    chart = str(figure.chart.to_dict())
    assert "0.875" in chart and "0.123" not in chart and "in_distribution" not in chart
    assert "probe fitted on trained combinations" in chart and "The end." in figure.caption
