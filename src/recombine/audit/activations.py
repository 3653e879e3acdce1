"""What a model had inside while the rows of a table were made."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput


@dataclasses.dataclass(frozen=True)
class Activations:
    """Activations of the rows of a table, layer by layer, and what the rows belong to."""

    layers: dict[str, Float[np.ndarray, ...]]
    """(row, feature) by name of the layer, in the order of the computation. Layers may have any width."""
    cell: Int[np.ndarray, " row"]
    """The combination of each row: its number in `Cells`."""
    scores: Float[np.ndarray, ...]
    """(row, score): the scores of each row; not a number where one is missing."""

    def __post_init__(self) -> None:
        rows = len(self.cell)
        shapes = {name: values.shape for name, values in self.layers.items()}
        wrong = {name: shape for name, shape in shapes.items() if len(shape) != 2 or shape[0] != rows}
        if wrong:
            raise BadInput(
                f"Activations need a row of features for each of the {rows} rows of the table, got the shapes {wrong}.",
                fix="give one array a layer with the rows of the table in their order; flatten or average other axes",
            )
        if self.scores.ndim != 2 or len(self.scores) != rows:
            raise BadInput(
                f"The scores of {rows} rows of activations have shape {self.scores.shape}.",
                fix="give one row of scores for each row of activations",
            )
