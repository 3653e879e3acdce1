import numpy as np
import pytest

from recombine.figures.layers import decodability_by_layer_info, site_order
from recombine.figures.lines import draw_lines


def test_sites_stand_from_the_input_to_the_output():
    found = site_order(["late", "hidden 10", "hidden 2", "encoding", "hidden 1", "early", "hidden 2"])
    assert found == ("encoding", "hidden 1", "hidden 2", "hidden 10", "late", "early")


def test_means_of_the_chosen_form_and_strength(probes):
    info = decodability_by_layer_info(probes)
    chosen = probes[(probes["form"] == "intrinsic") & (probes["strength"] == "chosen")]
    here = chosen[(chosen["site"] == "hidden 2") & (chosen["network"] == "trained")]
    rows = info.summary.set_index(["series", "x"])
    assert rows.loc[("trained on 40", 2), "mean"] == pytest.approx(here.query("number == 40")["r2"].mean())
    assert rows.loc[("control task", 2), "mean"] == pytest.approx(here["control"].mean())
    names = ["trained on 40", "trained on 160", "control task", "untrained network"]
    assert [style.name for style in info.styles] == names
    assert info.x_names == ("encoding", "hidden 1", "hidden 2", "hidden 10")


def test_controls_count_once_a_replicate(probes):
    info = decodability_by_layer_info(probes)
    assert set(info.summary["replicates"]) == {3}


def test_low_values_are_clamped_and_the_caption_says_so(probes):
    probes.loc[probes["site"] == "hidden 1", "r2"] = -3.0
    info = decodability_by_layer_info(probes)
    row = info.clipped.set_index(["series", "x"]).loc[("trained on 40", 1)]
    assert row["mean"] == -3.0
    assert info.domain[0] < row["shown"] < -0.2
    assert "below \N{MINUS SIGN}0.20" in info.caption
    assert draw_lines(info).to_dict()


@pytest.mark.parametrize(
    "cut",
    [
        lambda probes: probes.iloc[:0],
        lambda probes: probes[probes["replicate"] == 0],
        lambda probes: probes[(probes["number"] == 40) & (probes["site"] == "encoding")],
        lambda probes: probes[probes["network"] == "untrained"],
        lambda probes: probes.assign(r2=np.nan),
        lambda probes: probes.assign(r2=np.nan, control=np.nan),
        lambda probes: probes.assign(site='</script><b>"&'),
    ],
)
def test_thin_input_draws_something(probes, cut):
    info = decodability_by_layer_info(cut(probes))
    assert info.caption
    assert draw_lines(info).to_dict()
