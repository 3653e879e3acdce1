"""A store's contents as data frames. pandas is loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from recombine.probes.base import Measurement

if TYPE_CHECKING:
    import pandas as pd

    from recombine.store.store import Store

Names = Sequence[str] | None
"""The runs that a frame is about; None for all."""

Chosen = Sequence[Measurement] | None
"""The measurements that count; None for the newest of each kind."""


class Frames:
    """The tables of a store, one method each."""

    def runs_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row a run: its configuration (`support.number`, ...), how it ended, and its summary numbers."""
        from recombine.store.tables import runs_frame

        return runs_frame(cast("Store", self), run_ids, chosen)

    def combinations_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row a combination of a run: region, stratum, and the family's metrics."""
        from recombine.store.tables import combinations_frame

        return combinations_frame(cast("Store", self), run_ids, chosen)

    def constituents_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row a constituent of a run and region: metrics of the combinations that hold it."""
        from recombine.store.tables import by_constituent, measurement_frame

        store = cast("Store", self)
        return by_constituent(store, measurement_frame(store, "scores", run_ids, chosen))

    def strata_df(self, run_ids: Names = None, chosen: Chosen = None) -> pd.DataFrame:
        """One row a coverage stratum of a run and region: its metrics."""
        from recombine.store.tables import measurement_frame, pooled

        store = cast("Store", self)
        return pooled(
            store, measurement_frame(store, "scores", run_ids, chosen), ["run", "region", "stratum"]
        )

    def probes_df(
        self, run_ids: Names = None, chosen: Chosen = None, kind: str = "decodability"
    ) -> pd.DataFrame:
        """The table of a probe: for decodability one row a run, site, network, form and strength."""
        from recombine.store.tables import measurement_frame

        return measurement_frame(cast("Store", self), kind, run_ids, chosen)

    def curves_df(self, run_ids: Names = None) -> pd.DataFrame:
        """One row an evaluation: run, step, loss, score_in, score_held_out."""
        from recombine.store.tables import curves_frame

        return curves_frame(cast("Store", self), run_ids)
