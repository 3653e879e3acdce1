"""The figures of the study `text-to-image`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.dots import dots_info, draw_dots
from recombine.figures.image_grid import draw_image_grid, image_grid_info
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.matrix import draw_matrix, matrix_info
from recombine.probes.concepts import MEAN, MOMENTS, READING
from recombine.spaces.product import ProductSpace
from recombine.studies.base import Tables
from recombine.studies.text_to_image_claims import ONE
from recombine.studies.text_to_image_relation import RUN, by_combination, of_size, successes

if TYPE_CHECKING:
    from recombine.studies.text_to_image import TextToImage

ARM_NAMES = {
    "complete": "every pair of parts met",
    "missing": "some pairs never met",
    "corner": "around one combination",
    "two things": "two things",
}
REGIONS = {"trained": "trained on", "held_out": "held out", "validation": "held out", "rest": "held out"}
KINDS = {"trained on": "trained on", "held out": "not trained on"}
MEASURES = {
    "success_in": "trained combinations",
    "success_held_out": "held-out combinations",
}
BINS = 6
"""Classes of decodability in the figure of the relation."""
SHOWN = 10
"""Images that are shown beside the training images nearest to them."""


def figures(study: TextToImage, tables: Tables) -> list[Figure]:
    """What is drawn, what is right, where the parts can be read, and whether that says what is right."""
    if not len(successes(tables, study.sizes)):
        return []  # Nothing was measured.
    found = [
        _map(study, tables, arm)
        for arm in ("complete", "missing", "corner")
        if len(_gallery(study, tables, arm))
    ]
    found += [_pairs(study, tables)] if len(_gallery(study, tables, "two things")) else []
    found += [
        _success(study, tables),
        _coverage(study, tables),
        _blocks(study, tables),
        _relation(study, tables),
        _factors(study, tables),
        _nearest(study, tables),
    ]
    if len(study.steps) > 1:
        found.append(_learning(study, tables))
    if len(tables.runs.drop_duplicates(list(study.cells))) > len(study.sizes):
        found.append(scale_figure(study, tables))
    return found


def _gallery(study: TextToImage, tables: Tables, arm: str) -> pd.DataFrame:
    """The images of the first replicate, whatever they show."""
    frame = of_size(
        tables.others["gallery"],
        study.sizes,
        ["region", "image", "nearest", "rendered", "right", "combination", "constituents"],
    )
    return frame[(frame["arm"] == arm) & (frame["replicate"] == study.seeds[0])].assign(
        kind=lambda one: one["region"].map(REGIONS)
    )


def _map(study: TextToImage, tables: Tables, arm: str) -> Figure:
    """Every combination of one thing at its place on the map."""
    factors = dict(study.arms(study.usual["number"])[arm][0].factors)
    return _grid(
        study,
        tables,
        arm,
        rows=("shape", "place"),
        groups="colour",
        inside="size",
        title=f"What the network draws: {ARM_NAMES[arm]}",
        caption=(
            f"One image of every combination, drawn by the network of the first replicate ({ARM_NAMES[arm]}). A row is "
            f"the shape and the place that were asked for; the two of a colour are {' and '.join(factors['size'])}."
        ),
    )


def _pairs(study: TextToImage, tables: Tables) -> Figure:
    """Scenes with two things: left ones in rows, right ones in columns."""
    factors = dict(study.arms(study.usual["number"])["two things"][0].factors)
    return _grid(
        study,
        tables,
        "two things",
        rows=("left colour", "left shape"),
        groups="right shape",
        inside="right colour",
        title="Who has which colour?",
        caption=(
            "One image of every combination of two things, first replicate: the left thing by row, the right one's shape by "
            f"group of columns and its colour ({', '.join(factors['right colour'])}) inside."
        ),
    )


def _grid(
    study: TextToImage,
    tables: Tables,
    arm: str,
    rows: tuple[str, str],
    groups: str,
    inside: str,
    title: str,
    caption: str,
) -> Figure:
    """An arm's images: two factors make the rows, the second one slower; one the groups of columns, one the columns inside."""
    space, _ = study.arms(study.usual["number"])[arm]
    factors, frame = dict(space.factors), _gallery(study, tables, arm)
    parts, (quick, slow) = _parts(space, frame), rows
    table = frame[["image", "kind"]].assign(
        row=parts[quick] + " " + parts[slow],
        group=parts[groups],
        place=[factors[inside].index(value) for value in parts[inside]],
        right=frame["right"].astype(bool),
        name=frame["combination"],
    )
    info = image_grid_info(
        table,
        KINDS,
        caption_lead=caption,
        rows=[f"{one} {other}" for other in factors[slow] for one in factors[quick]],
        groups=list(factors[groups]),
    )
    return Figure(f"images_{arm.replace(' ', '_')}", title, info.caption, draw_image_grid(info))


def _parts(space: ProductSpace, frame: pd.DataFrame) -> pd.DataFrame:
    """The value of each factor in each combination."""
    values = [value for _, some in space.factors for value in some]
    names = [name for name, _ in space.factors]
    told = [[values[int(part)] for part in parts] for parts in frame["constituents"]]
    return pd.DataFrame(told, columns=names, index=frame.index)


def _success(study: TextToImage, tables: Tables) -> Figure:
    info = dots_info(
        of_size(tables.runs, study.sizes, list(MEASURES)),
        "arm",
        MEASURES,
        labels=ARM_NAMES,
        ceiling=1.0,
        x_title="share of images with every factor right",
        caption_lead="Success in drawing what the caption says, by what was trained on.",
    )
    return Figure("success", "Does the network draw what it is asked for?", info.caption, draw_dots(info))


def _coverage(study: TextToImage, tables: Tables) -> Figure:
    table = by_combination(tables, study.sizes)
    far = table["distance"] > 1
    unmet = table["pairs_met"] < 1
    how = np.select([unmet & far, unmet, far], ["a pair unmet, far", "a pair unmet", "far"], "near")
    table = table.assign(how=how)
    means = table.groupby(["arm", "how", "replicate"])["success"].mean().reset_index()
    # What only a few replicates have says little, and its interval would fill the figure.
    often = means.groupby(["arm", "how"])["replicate"].transform("nunique") * 2 > study.replicates
    means = means[often]
    means["row"] = [f"{arm}: {how}" for arm, how in zip(means["arm"], means["how"], strict=True)]
    order = [
        f"{arm}: {how}" for arm in ARM_NAMES for how in ("near", "far", "a pair unmet", "a pair unmet, far")
    ]
    info = dots_info(
        means,
        "row",
        {"success": "success"},
        labels=[row for row in order if row in set(means["row"])],
        floor=0.0,
        ceiling=1.0,
        x_title="share of images with every factor right",
        caption_lead=(
            "Held-out combinations by what training showed of them: whether a pair of their parts never met, and whether more "
            "than one part would have to change to arrive at a trained combination (far). What fewer than half of the "
            "replicates have is left out."
        ),
    )
    return Figure("coverage", "Which held-out combinations fail?", info.caption, draw_dots(info))


def _blocks(study: TextToImage, tables: Tables) -> Figure:
    frame = of_size(
        tables.others["concepts"],
        study.sizes,
        ["combination", "network", "site", "moment", "factor", "selectivity"],
    )
    frame = frame[(frame["combination"] == "") & (frame["network"] == "trained")]
    frame = frame[frame["arm"] == "complete"].copy()
    frame["moment"] = frame["moment"].replace("", "text")
    moments = {"text": "text encoder", **{name: f"at {name}" for name, _ in MOMENTS}, MEAN: MEAN}
    info = matrix_info(
        frame,
        "site",
        "moment",
        "selectivity",
        "factor",
        column_labels=moments,
        row_labels={
            READING: "text encoder",
            **{site: site for site in frame["site"].unique() if site != READING},
        },
        row_title="block",
        column_title="share of the way from noise to image",
        value_title="selectivity",
        caption_lead=(
            "How well a linear map reads each factor of held-out combinations off each block while the image is drawn (R² less "
            "that of codes that are random by combination; complete support)."
        ),
    )
    return Figure("blocks", "Where, and when, can the parts be read?", info.caption, draw_matrix(info))


def _relation(study: TextToImage, tables: Tables) -> Figure:
    # Two things have too few held-out combinations to be read.
    table = by_combination(tables, {arm: study.sizes[arm] for arm in ONE})
    ranks = table.groupby(RUN)["decodability"].rank(pct=True)
    table = table.assign(level=(ranks * BINS).clip(upper=BINS - 1e-9) // 1 + 1)
    means = table.groupby([*RUN, "level"])["success"].mean().reset_index()
    info = lines_info(
        means,
        x="level",
        y="success",
        series="arm",
        labels=ARM_NAMES,
        log=False,
        floor=0.0,
        ceiling=1.0,
        x_title=f"decodability of the combination: from worst (1) to best ({BINS}) within the run",
        y_title="share of images with every factor right",
        caption_lead=(
            "Held-out combinations in six classes, from those whose parts are read worst off the chosen block to those read "
            "best. A line that rises says that decodability tells failures apart within a run."
        ),
    )
    return Figure("relation", "Does decodability say what will fail?", info.caption, draw_lines(info))


def _factors(study: TextToImage, tables: Tables) -> Figure:
    found = successes(tables, study.sizes)
    found = found[found["arm"] != "two things"]
    rights = {
        name: name.removeprefix("right ")
        for name in found.columns
        if name.startswith("right ") and found[name].notna().any()
    }
    means = found.groupby(RUN)[list(rights)].mean().reset_index()
    info = dots_info(
        means,
        "arm",
        rights,
        labels=ARM_NAMES,
        ceiling=1.0,
        x_title="share of held-out images in which the factor is right",
        caption_lead="Which part goes wrong: success on held-out combinations factor by factor.",
    )
    return Figure("factors", "Which part goes wrong?", info.caption, draw_dots(info))


def _nearest(study: TextToImage, tables: Tables) -> Figure:
    """Drawn images of held-out combinations above the nearest images of trained ones; in the order of the table."""
    rows = []
    names = {"image": "drawn", "nearest": "nearest trained one", "rendered": "as rendered"}
    for arm in ("complete", "missing"):
        frame = _gallery(study, tables, arm)
        frame = frame[frame["region"] == "held_out"].head(SHOWN)
        for place, (_, one) in enumerate(frame.iterrows()):
            rows += [
                {
                    "row": words,
                    "group": ARM_NAMES[arm],
                    "place": place,
                    "image": one[column],
                    "kind": "held out" if column != "nearest" else "trained on",
                    "right": bool(one["right"]) if column == "image" else None,
                    "name": one["combination"],
                }
                for column, words in names.items()
            ]
    columns = ["row", "group", "place", "image", "kind", "right", "name"]
    info = image_grid_info(
        pd.DataFrame(rows, columns=columns),
        KINDS,
        caption_lead=(
            "The first held-out combinations of the first replicate: what the network drew, the nearest of many rendered images "
            "of trained combinations (root mean square over pixels), and an image of the combination as the renderer makes it."
        ),
        rows=list(names.values()),
    )
    return Figure("nearest", "Is it copied from training?", info.caption, draw_image_grid(info))


def _learning(study: TextToImage, tables: Tables) -> Figure:
    usual = study.usual
    frame = tables.runs[tables.runs["arm"] == "complete"]
    frame = frame[(frame["width"] == usual["width"]) & (frame["number"] == usual["number"])]
    names = {
        f"right_{factor}_held_out": factor
        for factor in ("colour", "place", "size", "shape")
        if f"right_{factor}_held_out" in frame
    }
    long = frame.melt(["replicate", "steps"], list(names), var_name="factor", value_name="right")
    info = lines_info(
        long,
        x="steps",
        y="right",
        series="factor",
        labels=names,
        floor=0.0,
        ceiling=1.0,
        x_title="steps of training",
        y_title="share of held-out images in which it is right",
        caption_lead="The order in which concepts are learned: success on held-out combinations, factor by factor.",
    )
    return Figure("learning_order", "Which concept comes first?", info.caption, draw_lines(info))


def scale_figure(study: TextToImage, tables: Tables) -> Figure:
    """All cells of the grid with one thing: what is scaled, and what is trained on."""
    usual, unit = study.usual, {"width": "channels", "steps": "steps", "number": "combinations"}
    names: dict[tuple[object, ...], str] = {}
    for _, row in tables.runs.drop_duplicates(list(study.cells)).iterrows():
        key = tuple(row[name] for name in study.cells)
        if row["arm"] in study.sizes and row["arm"] != "complete":
            continue  # These are in the figure of success.
        changed = [f"{row[name]} {said}" for name, said in unit.items() if row[name] != usual[name]]
        if row["arm"] == "complete":
            names[key] = ", ".join(changed) or "the usual size"
        else:
            names[key] = study.described(str(row["arm"]))
    cells = [tuple(row) for row in tables.runs[list(study.cells)].itertuples(index=False)]
    rows = pd.Series([names.get(cell) for cell in cells], index=tables.runs.index, dtype=object)
    frame = tables.runs.assign(cell=rows).dropna(subset=["cell"])
    info = dots_info(
        frame,
        "cell",
        MEASURES,
        labels=list(names.values()),
        floor=0.0,
        ceiling=1.0,
        x_title="share of images with every factor right",
        caption_lead=(
            "One thing: what more training, wider networks and other combinations to train on bring. The usual size: "
            + ", ".join(f"{usual[name]} {said}" for name, said in unit.items())
            + ", every pair met."
        ),
    )
    return Figure("scale", "Does more of it help?", info.caption, draw_dots(info))
