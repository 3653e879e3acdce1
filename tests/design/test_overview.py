"""The overview of a study: means over replicates in each cell of each arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import pandas as pd
import pytest

from recombine.design import Arm, Study, StudyClaim, Tables
from recombine.training.config import RunConfig


class Two(Study):
    """Does it?"""

    kind: Literal["two"] = "two"
    profiles: ClassVar[dict[str, Any]] = {"smoke": {}}
    shown: ClassVar[tuple[str, ...]] = ("r2_in",)
    replicates: int = 2

    def arms(self) -> dict[str, Arm]:
        return {"main": Arm(RunConfig(), width=(8, 16)), "other": Arm(RunConfig(), width=32)}

    def claims(self, main: Arm) -> Iterator[StudyClaim]:
        return iter(())

    def overview_columns(self, tables: Tables) -> pd.DataFrame | None:
        if tables.labels["arm"].iloc[0] == "other":
            return None
        return tables.combinations.groupby("run")["size"].max().reset_index()


def test_the_overview_has_means_by_cell_and_the_columns_that_a_study_adds():
    study = Two()
    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in study.design.runs])
    runs = pd.DataFrame({"run": labels["run"], "r2_in": [0.0, 1.0, 2.0, None, 4.0, 6.0]})
    sizes = pd.DataFrame({"run": [*labels["run"][:4]] * 2, "size": [1.0, 2, 3, 4, 5, 6, 7, 8]})
    overview = study.design.overview(Tables.from_frames(labels, {"runs": runs, "combinations": sizes}))
    assert list(overview.columns) == ["arm", "width", "n", "r2_in", "size"]
    assert overview["n"].tolist() == [2, 1, 2]
    assert overview["r2_in"].tolist() == [0.5, 2.0, 5.0]
    assert overview["size"].tolist() == [5.5, 7.5, pytest.approx(float("nan"), nan_ok=True)]
