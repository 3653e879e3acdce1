"""Linear decodability of the constituents at each layer, with both controls."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from recombine.figures.lines import LinesInfo, lines_info
from recombine.figures.summary import require
from recombine.figures.theme import size_name

FLOOR = -0.2
"""Means below this value become triangles."""
COLUMNS = ("replicate", "number", "site", "network", "form", "strength", "r2", "control")
CONTROLS = ("control task", "untrained network")


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
        floor=FLOOR,
        ceiling=1.0,
        x_names=sites,
        x_title="layer",
        y_title="decodability of the constituents (R²)",
        caption_lead="How well a linear probe predicts the constituents from the encoding and from each hidden layer "
        "(probe fitted on one half of the held-out combinations, tested on the other half); 1 is perfect. Each number of "
        f"training combinations has one line. Dashed lines are the controls, averaged over the sizes. {before.capitalize()}: the same network before training. "
        f"{task.capitalize()}: the same probe, fitted to random labels; it shows how much a probe can memorise.",
    )
