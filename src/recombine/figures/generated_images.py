"""Figures of generated images: galleries, success by coverage and by decodability, what blocks tell while an image is drawn.

The frames are tables of the measurements `gallery` and `concepts`, and those of `recombine.stats.generated_images`. `arms` are
the names of the arms in words, `factors` those of the factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.image_grid import draw_image_grid, image_grid_info
from recombine.figures.study import SCORE, dots, lines, matrix, with_columns

REGIONS = {"trained": "trained", "held_out": "held_out", "validation": "held_out", "rest": "held_out"}
"""The kind of an image, by the region of its combination."""
KINDS = {"trained": "trained on", "held_out": "not trained on"}
"""The names of these kinds in the legend."""
RIGHT = "share of images with every factor right"
MEASURES = {"success_in": "trained combinations", "success_held_out": "held-out combinations"}
BINS = 6
"""Classes of decodability."""


def gallery(images: pd.DataFrame, factors: Mapping[str, Sequence[str]], *, name: str, arm: str) -> Figure:
    """One generated image of every combination of a scene's factors, at its place on the map of combinations.

    Frames show which combinations were trained on, crosses which images are wrong.

    Args:
        images: The table `gallery` of one run.
        factors: The names and levels of the factors, in the order of the space: shape, colour, size and place of one thing,
            or shape and colour of a left and a right thing.
        name: The name of the figure.
        arm: What was trained on, in words.
    """
    title = f"What the network draws: {arm}"
    if "left shape" in factors:
        (quick, slow), groups, inside = ("left colour", "left shape"), "right shape", "right colour"
        title = "Which thing has which colour?"
        rest = "The left thing is the row; the shape of the right thing is the group of columns"
    else:
        (quick, slow), groups, inside = ("shape", "place"), "colour", "size"
        rest = "The shape and the place in the caption are the row, the colour is the group of columns"
    caption = (
        f"One image of every combination, drawn by the network of the first replicate ({arm}). {rest}; inside a group the "
        f"{inside} is {', '.join(factors[inside])}."
    )
    levels = [level for some in factors.values() for level in some]
    named = [[levels[int(constituent)] for constituent in row] for row in images["constituents"]]
    parts = pd.DataFrame(named, columns=list(factors), index=images.index, dtype=object)
    table = images[["image"]].assign(
        kind=images["region"].map(REGIONS),
        row=parts[quick] + " " + parts[slow],
        group=parts[groups],
        place=[list(factors[inside]).index(level) for level in parts[inside]],
        right=images["right"].astype(bool),
        name=images["combination"],
    )
    rows = [f"{first} {second}" for second in factors[slow] for first in factors[quick]]
    info = image_grid_info(table, KINDS, caption, rows, list(factors[groups]))
    return Figure(name, title, info.caption, draw_image_grid(info))


def nearest_images(images: Mapping[str, pd.DataFrame], number: int = 10) -> Figure:
    """Generated images of held-out combinations above their nearest training images and what the renderer makes.

    Args:
        images: Tables `gallery`, each of one run, by the name of their group of columns.
        number: The number of combinations of each group: the first ones of the table.
    """
    shown = {"image": "drawn", "nearest": "nearest trained one", "rendered": "as rendered"}
    cells = [
        {
            "row": words,
            "group": group,
            "place": place,
            "image": image[column],
            "kind": "trained" if column == "nearest" else "held_out",
            "right": bool(image["right"]) if column == "image" else None,
            "name": image["combination"],
        }
        for group, frame in images.items()
        for place, (_, image) in enumerate(frame[frame["region"] == "held_out"].head(number).iterrows())
        for column, words in shown.items()
    ]
    columns = ["row", "group", "place", "image", "kind", "right", "name"]
    caption = (
        "The first held-out combinations of the first replicate: what the network drew, the nearest of many rendered images "
        "of trained combinations (root mean square over pixels), and an image of the combination as the renderer makes it."
    )
    info = image_grid_info(pd.DataFrame(cells, columns=columns), KINDS, caption, list(shown.values()))
    return Figure("nearest", "Are images copied from training?", info.caption, draw_image_grid(info))


def success_by_arm(runs: pd.DataFrame, arms: Mapping[str, str]) -> Figure:
    """Success on trained and on held-out combinations, one row per arm."""
    return dots(
        runs,
        category="arm",
        measures=MEASURES,
        labels=arms,
        name="success",
        title="Does the network draw what the caption says?",
        caption="Success in drawing what the caption says, by what was trained on.",
        ceiling=1.0,
        x_title=RIGHT,
    )


def success_by_cell(cells: Mapping[str, pd.DataFrame], usual: str) -> Figure:
    """Success on trained and on held-out combinations, one row per size of the training or the network.

    Args:
        cells: The runs of each row by its name, from top to bottom.
        usual: The size of the row that the others are compared to, in words.
    """
    frame = pd.concat([own.assign(cell=name) for name, own in cells.items()], ignore_index=True)
    return dots(
        frame,
        category="cell",
        measures=MEASURES,
        labels=list(cells),
        name="scale",
        title="Does more of it help?",
        caption="One thing: the effect of more training, wider networks and other training combinations. The usual size: "
        f"{usual}, every pair met.",
        x_title=RIGHT,
        **SCORE,
    )


def success_by_factor(rates: pd.DataFrame, factors: Sequence[str], arms: Mapping[str, str]) -> Figure:
    """The share of held-out images in which each factor is right, one row per arm: the table of `success_rates`."""
    rights = {f"right {factor}": factor for factor in factors if f"right {factor}" in rates}
    return dots(
        rates.groupby(["arm", "replicate"])[list(rights)].mean().reset_index(),
        category="arm",
        measures=rights,
        labels=arms,
        name="factors",
        title="Which part goes wrong?",
        caption="Success on held-out combinations, factor by factor.",
        ceiling=1.0,
        x_title="share of held-out images in which the factor is right",
    )


def learning_order(runs: pd.DataFrame, factors: Sequence[str]) -> Figure:
    """The share of held-out images in which each factor is right, over the steps of training."""
    return lines(
        runs,
        x="steps",
        y={f"right_{factor}_held_out": factor for factor in factors},
        name="learning_order",
        title="Which concept comes first?",
        caption="The order in which concepts are learned: success on held-out combinations, factor by factor.",
        x_title="training steps",
        y_title="share of held-out images in which the factor is right",
        **SCORE,
    )


def success_by_coverage(table: pd.DataFrame, arms: Iterable[str], replicates: int) -> Figure:
    """Success on held-out combinations by what training showed of them.

    Args:
        table: A `combination_table`.
        arms: The arms from top to bottom.
        replicates: The number of replicates; rows that at most half of them have are left out.
    """
    kinds = ("near", "far", "a pair unmet", "a pair unmet, far")
    kind = np.take(kinds, 2 * (table["pairs_met"] < 1) + (table["distance"] > 1))
    means = table.assign(kind=kind).groupby(["arm", "kind", "replicate"])["success"].mean().reset_index()
    # Few replicates say little, and their interval would fill the figure.
    means = means[means.groupby(["arm", "kind"])["replicate"].transform("nunique") * 2 > replicates]
    row = [f"{arm} {kind}" for arm, kind in zip(means["arm"], means["kind"], strict=True)]
    labels = {f"{arm} {kind}": f"{arm.replace('_', ' ')}: {kind}" for arm in arms for kind in kinds}
    return dots(
        means.assign(row=row),
        category="row",
        measures={"success": "success"},
        labels={name: words for name, words in labels.items() if name in set(row)},
        name="coverage",
        title="Which held-out combinations fail?",
        caption="Success on held-out combinations by what training showed of them: whether a pair of their parts never met, and "
        "whether more than one part must change to arrive at a trained combination (far). Rows that at most half of the "
        "replicates have are left out.",
        x_title=RIGHT,
        **SCORE,
    )


def success_by_decodability(table: pd.DataFrame, arms: Mapping[str, str]) -> Figure:
    """Success on held-out combinations in classes of decodability: a `combination_table`, from worst to best in each run."""
    ranks = table.groupby(["arm", "replicate"])["decodability"].rank(pct=True)
    table = table.assign(level=(ranks * BINS).clip(upper=BINS - 1e-9) // 1 + 1)
    return lines(
        table.groupby(["arm", "replicate", "level"])["success"].mean().reset_index(),
        x="level",
        y="success",
        series="arm",
        labels=arms,
        name="relation",
        title="Does decodability show what will fail?",
        caption=f"Held-out combinations in {BINS} classes, from those whose parts are decoded worst from the chosen block to those "
        "decoded best. A rising line means that decodability distinguishes failures within a run.",
        log=False,
        x_title=f"decodability of the combination: from worst (1) to best ({BINS}) within the run",
        y_title=RIGHT,
        **SCORE,
    )


def decodability_by_block(concepts: pd.DataFrame, arm: str) -> Figure:
    """Selectivity of each factor in each block of the trained network, at each moment while an image is drawn.

    Args:
        concepts: The table of the measurement `concepts` of one arm.
        arm: The arm in words.
    """
    frame = with_columns(concepts, "combination", "network", "site", "moment", "factor", "selectivity")
    frame = frame[(frame["combination"] == "") & (frame["network"] == "trained")]
    moments = sorted(frame["moment"].unique())  # The text encoder has none, and the mean comes last.
    sites = sorted(frame["site"].unique(), key=lambda site: site != "reading")
    times = {moment: {"": "text encoder", "mean": "mean"}.get(moment, f"at {moment}") for moment in moments}
    return matrix(
        frame,
        row="site",
        column="moment",
        value="selectivity",
        facet="factor",
        labels={"column": times, "row": {site: "text encoder" if site == "reading" else site for site in sites}},
        name="blocks",
        title="Where, and when, can the parts be read?",
        row_title="block",
        column_title="share of the way from noise to image",
        caption="How well a linear map reads each factor of held-out combinations off each block while the image is drawn "
        f"(R² minus that of codes that are random by combination; {arm}).",
    )
