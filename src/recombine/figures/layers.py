"""Measurements by layer: how well probes read the constituents, and what the swap test and erasure do to the network.

Titles are the questions that the figures answer; `**style` is what `lines` takes besides, for instance `facet`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.lines import LinesInfo, draw_lines, lines_info
from recombine.figures.study import lines
from recombine.figures.summary import require
from recombine.figures.theme import size_name

FORMS = {"intrinsic": "probe fitted on held-out combinations", "transfer": "probe fitted on trained combinations"}
"""Forms of the measurement `decodability` with the titles of their panels."""
SWAPS = {
    "ceiling": "ceiling: the whole layer",
    "ceiling_shift": "ceiling: a shift, whatever the input",
    "efficacy": "constituent swapped",
    "floor_control": "floor: probe of random codes",
    "floor_random": "floor: random directions",
}
"""Columns of the measurement `swap` with their names in the legend."""
ERASURES = {
    "before": "no edit",
    "after": "constituents erased",
    "random": "random subspaces erased",
    "mean": "whole layer at its mean",
}
"""Columns of the measurement `erasure` with their names in the legend."""
COLUMNS = ("replicate", "number", "site", "network", "form", "strength", "r2", "control")
CONTROLS = ("control task", "untrained network")


def with_layers(frame: pd.DataFrame) -> pd.DataFrame:
    """Add a column `layer`: the number of the hidden layer that `site` names, 0 for the encoding, NaN for other sites.

    An empty table may lack the column `site`.
    """
    site = frame.reindex(columns=["site"])["site"].astype(str)
    number = site.str.extract(r"hidden (\d+)$")[0].astype(float)
    return frame.assign(layer=number.where(site != "encoding", 0.0))


def forms_by_layer(frame: pd.DataFrame, *, series: str, title: str, caption: str = "", **style: Any) -> Figure:
    """Decodability of the constituents in each layer, by both forms of probe side by side.

    Args:
        frame: The table `decodability` of an arm; rows of a fixed ridge strength are left out.
        series: The column whose levels have lines.
        caption: What the series are; how to read the panels comes first.
    """
    columns = ["replicate", "layer", "form", "strength", "r2", series]
    probes = with_layers(frame).reindex(columns=columns)
    return lines(
        probes[probes["form"].isin(list(FORMS)) & (probes["strength"] == "chosen")],
        x="layer",
        y="r2",
        series=series,
        facet="form",
        facet_labels=FORMS,
        name="decodability_by_layer",
        title=title,
        caption="How well a linear probe reads the constituents of tasks of held-out combinations in each layer. Left: the "
        "probe is fitted on other held-out combinations, equally many for every network. Right, as published: it is fitted on "
        "the network's own training combinations, so few of them starve the probe too. The first hidden layer receives the "
        f"constituents from the encoding and proves nothing. {caption}",
        **{"log": False, "floor": -0.2, "ceiling": 1.0} | style,
        x_title="hidden layer (0: the encoding)",
        y_title="decodability (R²)",
    )


def swap_by_layer(frame: pd.DataFrame, *, title: str, **style: Any) -> Figure:
    """The efficacy of swapping a constituent in each hidden layer, with ceilings and floors: the table `swap`."""
    return lines(
        with_layers(frame),
        x="layer",
        y=SWAPS,
        name="swap_by_layer",
        title=title,
        caption="The swap test on held-out combinations: activations are moved until a probe reads another constituent, and "
        "the network runs on. Efficacy is 1 where it then answers as it would for the other task, and 0 where the edit is no "
        "better than none. The ceilings insert the whole layer of the other task, or the mean difference of both tasks over "
        "inputs. The floors are edits of equal length in other directions. The first layer receives the constituents from "
        "the encoding and does not count.",
        controls=[SWAPS["floor_control"], SWAPS["floor_random"]],
        **{"log": False, "floor": -0.5, "ceiling": 1.0, "x_title": "hidden layer", "y_title": "efficacy"} | style,
    )


def erasure_by_layer(frame: pd.DataFrame, *, title: str, **style: Any) -> Figure:
    """Held-out R² after the constituents are erased from each hidden layer, with controls: the table `erasure`."""
    return lines(
        with_layers(frame),
        x="layer",
        y=ERASURES,
        name="erasure_by_layer",
        title=title,
        caption="Held-out R² when the constituents are erased from one layer, so that no linear probe finds them there. If the "
        "network needs what is read, this costs more than erasing random subspaces of the same rank. With the whole layer at "
        "its mean nothing is left to erase.",
        controls=[ERASURES["before"], ERASURES["mean"]],
        **{"log": False, "floor": -1.0, "ceiling": 1.0, "x_title": "hidden layer", "y_title": "held-out R²"} | style,
    )


def site_order(sites: Iterable[str]) -> tuple[str, ...]:
    """Sites from input to output: the encoding, the hidden layers by number, then all others."""
    distinct = list(dict.fromkeys(str(site) for site in sites))

    def key(site: str) -> tuple[int, int, int]:
        layer = re.fullmatch(r"hidden[ _]?(\d{1,9})", site)
        if site == "encoding":
            return (0, 0, 0)
        return (1, int(layer[1]), 0) if layer else (2, 0, distinct.index(site))

    return tuple(sorted(distinct, key=key))


def decodability_by_layer_info(probes: pd.DataFrame) -> LinesInfo:
    """Mean decodability at each site over replicates, for each training-set size and both controls.

    Args:
        probes: The store's table of the decodability probe. Its rows of the form `intrinsic` are shown, with the ridge
            penalty that cross-validation chose.

    Returns:
        The input of `draw_lines`.
    """
    require(probes, COLUMNS, "probes")
    chosen = probes[(probes["form"] == "intrinsic") & (probes["strength"].astype(str) == "chosen")]
    trained = chosen[chosen["network"] == "trained"]
    untrained = chosen[chosen["network"] == "untrained"]
    task, before = CONTROLS
    # Averages within a replicate come first, so each replicate counts once for the controls, whatever its sizes.
    frame = pd.concat(
        [
            trained.assign(series=trained["number"], value=trained["r2"]),
            trained.assign(series=task, value=trained["control"]),
            untrained.assign(series=before, value=untrained["r2"]),
        ]
    )
    sites = site_order(frame["site"])
    sizes = {size: size_name(size) for size in sorted(set(trained["number"]))}
    return lines_info(
        frame.assign(place=[sites.index(str(site)) for site in frame["site"]]),
        "place",
        "value",
        "series",
        labels=sizes | {name: name for name in CONTROLS},
        controls=CONTROLS,
        ordered=True,
        log=False,
        floor=-0.2,
        ceiling=1.0,
        x_names=sites,
        x_title="layer",
        y_title="decodability of the constituents (R²)",
        caption_lead="How well a linear probe predicts the constituents from the encoding and from each hidden layer "
        "(probe fitted on one half of the held-out combinations, tested on the other half); 1 is perfect. Each number of "
        f"training combinations has one line. Dashed lines are the controls, averaged over the sizes. {before.capitalize()}: the same network before training. "
        f"{task.capitalize()}: the same probe, fitted to random labels; it shows how much a probe can memorise.",
    )


def decodability_by_layer(probes: pd.DataFrame, *, title: str) -> Figure:
    """Decodability of the constituents layer by layer. `probes` is the table `decodability` of an arm."""
    info = decodability_by_layer_info(probes)
    return Figure("decodability_by_layer", title, info.caption, draw_lines(info))
