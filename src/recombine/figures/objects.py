"""Figures of scenes with several objects: how methods divide them, and pairs of scenes with swapped bindings.

The frames are tables of the measurements `segregation` and `conjunctions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.image_grid import draw_image_grid, image_grid_info

PARTS = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (213, 94, 0), (86, 180, 233), (240, 228, 66))
"""Colours of the parts of a scene: Okabe and Ito, distinguishable for colour-blind readers."""
SHARED = (150, 150, 150)
"""The colour of pixels that several objects cover."""
COLUMNS = ["row", "group", "place", "image", "kind", "right", "name"]


def coloured(parts: Sequence[int], owner: Sequence[int]) -> list[int]:
    """A division of a scene as a colour image, black where there is no object.

    Args:
        parts: The part of each pixel.
        owner: The object of each pixel: -1 for the background, -2 for several objects.
    """
    numbers, owners = np.asarray(parts), np.asarray(owner)
    image = np.array(PARTS)[numbers % len(PARTS)]
    image[numbers < 0] = SHARED
    image[owners == -1] = 0
    return image.ravel().tolist()


def divisions(tables: Mapping[str, tuple[pd.DataFrame, str]], scenes: int = 8) -> Figure:
    """The same scenes as different methods divide them: one row per method, one column per scene.

    Args:
        tables: For each row, its name with a table `segregation` of one run and the column of the division.
        scenes: The most scenes.
    """
    cells = [
        {
            "row": name,
            "group": "",
            "place": place,
            "image": coloured(scene[column], scene["parts_owner"]),
            "kind": "scene",
            "right": None,
            "name": f"{name}, scene {place}",
        }
        for name, (frame, column) in tables.items()
        for place, (_, scene) in enumerate(frame[frame["parts_owner"].map(len) > 0].head(scenes).iterrows())
    ]
    caption = (
        "The first test scenes of the first replicate. Colours show which part each pixel was given to; which colour a part has "
        "means nothing. The background is black and does not count; pixels that two objects share are grey in the first row."
    )
    info = image_grid_info(pd.DataFrame(cells, columns=COLUMNS), {"scene": "scene"}, caption, list(tables))
    return Figure("divisions", "Which pixels belong together?", info.caption, draw_image_grid(info))


def swapped_pairs(tables: Mapping[str, pd.DataFrame], where: str, words: str, pairs: int = 6) -> Figure:
    """Pairs of scenes with swapped bindings, the answers of each network, and crosses where an answer is wrong.

    Args:
        tables: A table `conjunctions` of one run by the name of its network.
        where: Which scenes: a value of the column `where`.
        words: The same in words.
        pairs: The most pairs.
    """
    sides = {"bound": "has it", "unbound": "has it not"}
    cells = [
        {
            "row": f"{network}: {side_words}",
            "group": "",
            "place": place,
            "image": pair[f"image_{side}"],
            "kind": "yes" if pair[side] > 0 else "no",
            "right": bool((pair[side] > 0) == (side == "bound")),
            "name": f"{pair['combination']}: {network} says {'yes' if pair[side] > 0 else 'no'}",
        }
        for network, frame in tables.items()
        for place, (_, pair) in enumerate(
            frame[(frame["where"] == where) & (frame["image_bound"].map(len) > 0)].head(pairs).iterrows()
        )
        for side, side_words in sides.items()
    ]
    asked = {cell["place"]: str(cell["name"]).split(":")[0] for cell in cells}
    listed = "; ".join(str(asked[place]) for place in sorted(asked))
    caption = (
        f"Pairs of scenes with the same shapes and the same colours ({words}, first replicate). Only in the upper scene of a pair "
        f"does one object have both the shape and the colour that are asked for. Asked for, from left to right: {listed}."
    )
    rows = [f"{network}: {side}" for network in tables for side in sides.values()]
    kinds = {"yes": "the network says yes", "no": "the network says no"}
    info = image_grid_info(pd.DataFrame(cells, columns=COLUMNS), kinds, caption, rows)
    return Figure(f"pairs_{where}", "Is there such a thing?", info.caption, draw_image_grid(info))
