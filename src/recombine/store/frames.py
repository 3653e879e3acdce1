"""The tables of a store as pandas DataFrames. pandas is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from recombine.probes.base import Measurement

if TYPE_CHECKING:
    import pandas as pd

    from recombine.store.store import Store

Names = Sequence[str] | None
"""The runs of a table; None for all."""

Chosen = Sequence[Measurement] | None
"""The measurements to use; None for the newest of each kind."""


class Frames:
    """The tables of a store, one method each. All take names of runs and measurements to restrict them."""

    def runs_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row per run: its configuration (`support.number`, ...), how it ended, and its summary numbers."""
        from recombine.store.tables import runs_frame

        return runs_frame(cast("Store", self), run_ids, chosen)

    def combinations_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row per run and combination: region, stratum, and the family's metrics."""
        from recombine.store.tables import combinations_frame

        return combinations_frame(cast("Store", self), run_ids, chosen)

    def constituents_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row per run, region and constituent: the metrics over combinations with this constituent."""
        from recombine.store.tables import by_constituent, measurement_frame

        store = cast("Store", self)
        return by_constituent(store, measurement_frame(store, "scores", run_ids, chosen))

    def strata_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row per run, region and coverage stratum: its metrics."""
        from recombine.store.tables import measurement_frame, pooled

        store = cast("Store", self)
        return pooled(store, measurement_frame(store, "scores", run_ids, chosen), ["run", "region", "stratum"])

    def probes_df(self, run_ids: Names = None, chosen: Chosen = None, kind: str = "decodability") -> pd.DataFrame:
        """The table of a probe. For decodability: one row per run, site, network, form and strength."""
        from recombine.store.tables import measurement_frame

        return measurement_frame(cast("Store", self), kind, run_ids, chosen)

    def curves_df(self, run_ids: Names = None) -> pd.DataFrame:
        """One row an evaluation: run, step, loss, score_in, score_held_out."""
        from recombine.store.tables import curves_frame

        return curves_frame(cast("Store", self), run_ids)
