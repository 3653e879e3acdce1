"""The tables of a study's runs: each is read once, when it is first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recombine.probes.base import Measurement
from recombine.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from recombine.training.config import RunConfig

Reader = Callable[[str], "pd.DataFrame"]
"""From the name of a table to the table, for all runs: `runs`, `combinations`, `curves`, or a kind of measurement."""


class Tables:
    """The tables of some runs, with the labels that the study gave them.

    `runs` has one row per run, `combinations` one per combination and region, `curves` one per evaluation.
    `tables["swap"]` is the table of a measurement by its kind. A label wins over a column of the same name.

    Failed runs stay in `runs`, with empty scores.
    """

    def __init__(self, labels: pd.DataFrame, read: Reader, study: Tables | None = None) -> None:
        """Make the tables.

        Args:
            labels: A column `run` and one per label; a run may occur several times, in several arms.
            read: Reads a table of all runs.
            study: The tables of the whole study, where these are of one arm.
        """
        self.labels = labels
        self.study = self if study is None else study
        self._read = read
        self._frames: dict[str, pd.DataFrame] = {}

    @classmethod
    def from_store(
        cls, store: Store, runs: Sequence[tuple[RunConfig, Mapping[str, Any]]], measurements: Sequence[Measurement]
    ) -> Tables:
        """The tables of these runs in a store. Only the given measurements count: others may have been made since."""
        import pandas as pd

        labels = pd.DataFrame([{"run": config.run_id} | dict(names) for config, names in runs])
        run_ids = list(dict.fromkeys(labels["run"]))

        @functools.cache
        def read(name: str) -> pd.DataFrame:
            if name == "runs":
                return store.runs_df(run_ids, measurements)
            if name == "combinations":
                return store.combinations_df(run_ids, measurements)
            if name == "curves":
                return store.curves_df(run_ids)
            return store.probes_df(run_ids, measurements, kind=name)

        return cls(labels, read)

    @classmethod
    def from_frames(cls, labels: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Tables:
        """Tables made by hand, for tests. Missing ones are empty."""
        import pandas as pd

        empty = pd.DataFrame({"run": pd.Series(dtype="object")})
        return cls(labels, lambda name: frames.get(name, empty))

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run: labels, settings, how it ended, summary numbers of all measurements."""
        return self["runs"]

    @property
    def combinations(self) -> pd.DataFrame:
        """One row per run, combination and region: the stratum and the family's metrics."""
        return self["combinations"]

    @property
    def curves(self) -> pd.DataFrame:
        """One row per run and evaluation: step, loss and scores."""
        return self["curves"]

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._frames:
            frame, own = self._read(name), [label for label in self.labels.columns if label != "run"]
            kept = frame.drop(columns=[label for label in own if label in frame.columns])
            self._frames[name] = self.labels.merge(kept, on="run")
        return self._frames[name]

    def arm(self, name: str, axes: Iterable[str]) -> Tables:
        """The tables of one arm: its runs, with its own labels only."""
        own = self.labels.loc[self.labels["arm"] == name, ["run", "arm", *axes, "replicate"]]
        return Tables(own.infer_objects().reset_index(drop=True), self._read, self.study)
