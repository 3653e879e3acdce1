"""What the tests of studies share: tables made by hand, and one small study that really ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

# Imported in the fixtures, so that JAX starts after tests/conftest.py has said where compiled programs are kept.
if TYPE_CHECKING:
    from recombine.design import Study, Tables
    from recombine.design.run import StudyResult
    from recombine.store.store import Store
    from recombine.studies.data_scaling import DataScaling

SMALL = [
    "modules=8",
    "max_active=2",
    "width=8",
    "depth=1",
    "recipe=paper",
    "learning_rate=0.01",
    "steps=30",
    "tasks=8",
    "samples=4",
    "eval_every=10",
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
    from recombine.design.run import run_study
    from recombine.engines.local import LocalEngine
    from recombine.store.store import Store
    from recombine.training.program import shared_compiler

    shared_compiler.cache_clear()  # A test counts what the study compiles.
    store = Store(tmp_path_factory.mktemp("study") / "store")
    return run_study(study, "smoke", store, LocalEngine()), store


Score = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="session")
def made() -> Callable[..., Tables]:
    """Tables of a study made by hand: `made(study, score, curves=..., combinations=...)`.

    `score` maps the labels of a run (`arm`, the axes, `replicate`) to its columns. Other tables are frames with a column
    `run`; a function makes one frame per run from its labels, and gets the labels only.
    """
    import pandas as pd

    from recombine.design import Tables

    def make(study: Study, score: Score, **frames: Any) -> Tables:
        runs = study.design.runs
        labels = pd.DataFrame([{"run": config.run_id} | names for config, names in runs])
        rows = [{"run": config.run_id, "status": "complete"} | dict(score(names)) for config, names in runs]
        named = {"runs": pd.DataFrame(rows).drop_duplicates("run")}
        for name, frame in frames.items():
            if callable(frame):
                parts = [frame(names).assign(run=config.run_id) for config, names in runs]
                frame = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
            named[name.replace("_", "-")] = frame
        return Tables.from_frames(labels, named)

    return make


@pytest.fixture(scope="session")
def effects() -> Callable[[Study, Tables], dict[str, Any]]:
    """The effects of a study's claims by name: `effects(study, tables)["rises"]` has one number per replicate."""

    def compute(study: Study, tables: Tables) -> dict[str, Any]:
        return {effect.claim.name: effect.values for effect in study.design.effects(tables)}

    return compute


@pytest.fixture(scope="session")
def words() -> Callable[[Study, Tables], dict[str, str]]:
    """The verdicts of a study alone by claim: `words(study, tables)["rises"]` is `supported`, say."""

    def compute(study: Study, tables: Tables) -> dict[str, str]:
        from recombine.stats.verdicts import settle

        judged = settle([effect.judge() for effect in study.design.effects(tables)])
        return {verdict.claim.name: verdict.verdict for verdict in judged}

    return compute
