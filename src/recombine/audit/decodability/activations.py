"""The activations of a model for the rows of a table."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from recombine.errors import BadInput


@dataclasses.dataclass(frozen=True)
class Activations:
    """Activations of the rows of a table by layer, with the combination and the scores of each row."""

    layers: dict[str, Float[np.ndarray, ...]]
    """(row, feature) by layer name, in the order of the computation. Layers may differ in width."""
    cell: Int[np.ndarray, " row"]
    """The index of each row's combination in `Cells`."""
    scores: Float[np.ndarray, ...]
    """(row, score); NaN where a score is missing."""

    def __post_init__(self) -> None:
        rows = len(self.cell)
        shapes = {name: values.shape for name, values in self.layers.items()}
        wrong = {name: shape for name, shape in shapes.items() if len(shape) != 2 or shape[0] != rows}
        if wrong:
            raise BadInput(
                f"Activations need one row of features for each of the {rows} rows of the table, got the shapes {wrong}.",
                fix="give one array per layer with the rows in the table's order; flatten or average other axes",
            )
        if self.scores.ndim != 2 or len(self.scores) != rows:
            raise BadInput(
                f"The scores of {rows} rows of activations have shape {self.scores.shape}.",
                fix="give one row of scores for each row of activations",
            )
