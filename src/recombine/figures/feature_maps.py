"""Figures of networks that draw a picture: their feature maps side by side, and weight sweeps as film strips."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.image_grid import draw_image_grid, image_grid_info

ONE_KIND = {"image": "image"}
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


def _cell(row: str, group: str, place: int, image: object, name: str) -> dict[str, object]:
    return dict(zip(COLUMNS, (row, group, place, image, "image", None, name), strict=True))
