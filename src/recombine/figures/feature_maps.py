"""Figures of what is inside networks: feature maps side by side, weight sweeps as film strips, masks on weight matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.image_grid import draw_image_grid, image_grid_info

ONE_KIND = {"image": "image"}
MASKS = ((238, 238, 238), (0, 114, 178), (230, 159, 0), (40, 40, 40))
"""Colours of weights that no mask keeps, the first alone, the second alone, and both."""
SIDE = 64
"""The most rows and columns of a matrix that are drawn."""
COLUMNS = ["row", "group", "place", "image", "kind", "right", "name"]


def feature_maps(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """The picture that each network draws, and maps of its distinct neurons from the first layer to the last.

    Args:
        tables: The table `representation` of one run for each network, by its name in words.
    """
    group, cells = "the picture, then feature maps from the first layer to the last", []
    for row, table in tables.items():
        pictures, maps = (table[table["what"] == what] for what in ("picture", "map"))
        cells += [_cell(row, group, 0, image, row) for image in pictures["image"]]
        cells += [
            _cell(row, group, 1 + number, image, f"parity purity {purity:.2f}")
            for number, image, purity in zip(maps["number"], maps["image"], maps["purity"], strict=True)
        ]
    caption = (
        "The picture (left) and the activations of neurons over it, of the first replicate: a sample of the neurons whose map "
        "is not that of an earlier one, from the first layer to the last. Each map is scaled from its lowest (black) to its "
        "highest value (white). A factored network has maps that are whole parts or symmetric; a fractured one has pieces."
    )
    info = image_grid_info(pd.DataFrame(cells, columns=COLUMNS), ONE_KIND, caption, list(tables))
    return Figure("feature_maps", "What do the neurons draw?", info.caption, draw_image_grid(info))


def film_strips(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """What each network draws while one row of its weights changes step by step.

    Args:
        tables: The table `representation` of one run for each network, by its name in words.
    """
    cells = [
        _cell(f"weights {number + 1}", name, int(frame), image, f"{name}: frame {int(frame) + 1}")
        for name, table in tables.items()
        for number, frame, image in table.loc[table["what"] == "sweep", ["number", "frame", "image"]].itertuples(
            index=False
        )
    ]
    rows = sorted({str(cell["row"]) for cell in cells})
    caption = (
        "Each strip changes the outgoing weights of one unit, drawn at random among those that change the picture, from minus to "
        "plus the same noise; the frame in the middle is the trained picture. First replicate. In a factored network the "
        "picture changes and stays symmetric; in a fractured one it breaks."
    )
    info = image_grid_info(pd.DataFrame(cells, columns=COLUMNS), ONE_KIND, caption, rows, list(tables))
    return Figure("film_strips", "What happens when weights change?", info.caption, draw_image_grid(info))


def masks_on_network(table: pd.DataFrame, masks: tuple[str, str], networks: int = 3) -> Figure | None:
    """The matrices of networks, with the weights that two masks keep in colour.

    Args:
        table: The table `subnetwork` of masks, with the columns `replicate` and `mask`.
        masks: The two names in `mask`.
        networks: The most networks, one per replicate.

    Returns:
        The figure; None where the table has no whole masks.
    """
    if "shape" not in table:
        return None
    sizes = [math.prod(int(size) for size in str(shape).split("x")) for shape in table["shape"]]
    if not len(whole := table[table["sample"].map(len) == sizes]):
        return None
    cells = []
    shown = list(dict.fromkeys(whole["replicate"]))[:networks]
    for (replicate, matrix), parts in whole.groupby(["replicate", "matrix"], sort=False):
        found = parts.drop_duplicates("mask").set_index("mask")
        if replicate not in shown or not set(masks) <= set(found.index):
            continue
        shape = [int(size) for size in str(found["shape"].iloc[0]).split("x")]
        first, second = (_block(str(found["sample"][name]), shape) for name in masks)
        side = max(first.shape)
        image = np.full((side, side, 3), 255)
        image[: first.shape[0], : first.shape[1]] = np.array(MASKS)[first + 2 * second]
        block, _, name = str(matrix).removesuffix(".weight").rpartition("blocks.")[-1].partition(".")
        numbered = block.isdigit()
        row, group = (
            (name, f"block {int(block) + 1}") if numbered else (str(matrix).rpartition(".")[-1], "outside of blocks")
        )
        cells.append(
            _cell(row, group, shown.index(replicate), image.ravel().tolist(), f"{matrix}, replicate {replicate}")
        )
    caption = (
        f"Weight matrices of {len(shown)} network{'s' * (len(shown) > 1)} (one column each). Blue weights are kept by the mask of the {masks[0]} alone, orange ones "
        f"by that of the {masks[1]} alone, black ones by both. Of larger matrices the first {SIDE} rows and columns are drawn."
    )
    info = image_grid_info(pd.DataFrame(cells, columns=COLUMNS), ONE_KIND, caption)
    return Figure("masks", "Which weights does each rule need?", info.caption, draw_image_grid(info))


def _block(bits: str, shape: list[int]) -> np.ndarray:
    """The corner of a mask that is drawn, as zeros and ones."""
    mask = (np.frombuffer(bits.encode(), "u1") == ord("1")).astype(int)
    return mask.reshape(shape[0], -1)[:SIDE, :SIDE]


def _cell(row: str, group: str, place: int, image: object, name: str) -> dict[str, object]:
    return dict(zip(COLUMNS, (row, group, place, image, "image", None, name), strict=True))
