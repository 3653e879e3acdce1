"""Figures of one run, for notebooks."""

from __future__ import annotations

import pandas as pd
from altair.typing import ChartType

from recombine.figures.curves import curves_info, draw_curves
from recombine.training.train import Outcome


def plot_curves(outcome: Outcome) -> ChartType:
    """The scores of a run over its steps, in and out of distribution. `.save("curves.html")` writes it."""
    labels = {"run": outcome.config.run_id, "replicate": 0, "number": outcome.setting.support.size}
    frame = pd.DataFrame(outcome.curves).assign(family=outcome.config.family.kind, **labels)
    return draw_curves(curves_info(frame, family=None))
