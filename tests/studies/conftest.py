"""What the tests of studies share: tables made by hand, and one small study that really ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

# Imported in the fixtures, so that JAX starts after tests/conftest.py has said where compiled programs are kept.
if TYPE_CHECKING:
    from recombine.store.store import Store
    from recombine.studies.base import Tables
    from recombine.studies.data_scaling import DataScaling
    from recombine.studies.run import StudyResult

SMALL = [
    "modules=8",
    "max_active=2",
    "width=8",
    "depth=1",
    "recipe=paper",
    "rate=0.01",
    "steps=30",
    "tasks=8",
    "samples=4",
    "every=10",
    "validation_tasks=8",
    "numbers=12,20",
    "replicates=2",
    "first_seed=0",
]


@pytest.fixture(scope="session")
def study() -> DataScaling:
    """The study at a size that trains in seconds."""
    from recombine.overrides import apply
    from recombine.studies.data_scaling import DataScaling

    return apply(DataScaling.profile("smoke"), SMALL)


@pytest.fixture(scope="session")
def ran(study: DataScaling, tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyResult, Store]:
    """The small study after its runs."""
    from recombine.engines.local import LocalEngine
    from recombine.store.store import Store
    from recombine.studies.run import run_study

    store = Store(tmp_path_factory.mktemp("study") / "store")
    return run_study(study, "smoke", store, LocalEngine()), store


Score = Callable[[str, int, int], dict[str, Any]]


@pytest.fixture(scope="session")
def tables() -> Callable[..., Tables]:
    """Tables of a study whose scores are a given function of family, number and replicate.

    The scores may hold `curve`, a list of (step, loss, score_held_out), and `status`.
    """
    import pandas as pd

    from recombine.studies.base import Tables

    def make(study: DataScaling, score: Score) -> Tables:
        runs, curves = [], []
        for config, labels in study.runs():
            values = dict(score(labels["family"], labels["number"], labels["replicate"]))
            curve = values.pop("curve", [(10, 1.0, 0.0), (20, 0.5, values.get("r2_held_out"))])
            runs.append({"run": config.run_id, "status": "complete"} | labels | values)
            for step, loss, held_out in curve:
                point = {"step": step, "loss": loss, "score_in": 0.0, "score_held_out": held_out}
                curves.append({"run": config.run_id} | labels | point)
        empty = pd.DataFrame({"run": []})
        return Tables(pd.DataFrame(runs), empty, empty, pd.DataFrame(curves))

    return make
