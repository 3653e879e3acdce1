"""Measurements by layer: how well probes read the constituents, and what the swap test and erasure do to the network."""

from __future__ import annotations

from typing import Any

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.study import lines

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


def with_layers(frame: pd.DataFrame) -> pd.DataFrame:
    """Add a column `layer`: the number of the hidden layer that `site` names, 0 for the encoding, NaN for other sites.

    Args:
        frame: A table with a column `site`; an empty table may lack it.
    """
    site = frame.reindex(columns=["site"])["site"].astype(str)
    number = site.str.extract(r"hidden (\d+)$")[0].astype(float)
    return frame.assign(layer=number.where(site != "encoding", 0.0))


def forms_by_layer(frame: pd.DataFrame, *, series: str, title: str, caption: str = "", **style: Any) -> Figure:
    """Decodability of the constituents in each layer, by both forms of probe side by side.

    Args:
        frame: The table `decodability` of an arm; rows of a fixed ridge strength are left out.
        series: The column whose levels have lines.
        title: The question that it answers.
        caption: What the series are; how to read the panels comes first.
        **style: What `lines` takes besides, for instance `labels` and `controls`.
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
    """The efficacy of swapping a constituent in each hidden layer, with ceilings and floors.

    Args:
        frame: The table `swap` of an arm.
        title: The question that it answers.
        **style: What `lines` takes besides, for instance `facet`.
    """
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
    """Held-out R² after the constituents are erased from each hidden layer, with controls.

    Args:
        frame: The table `erasure` of an arm.
        title: The question that it answers.
        **style: What `lines` takes besides, for instance `facet`.
    """
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
