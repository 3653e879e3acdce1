"""What a notebook calls: run a study, run a sweep."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recombine.component import find
from recombine.design.changed import changed
from recombine.design.run import StudyResult, run_study
from recombine.design.study import Study
from recombine.design.sweeps.grid import SweepFile
from recombine.design.sweeps.run import SweepResult, run_sweep
from recombine.design.sweeps.yaml_file import read_sweep
from recombine.engines.base import Engine
from recombine.engines.local import LocalEngine
from recombine.errors import BadInput
from recombine.overrides import validate
from recombine.probes.base import Measurement
from recombine.store.store import Store
from recombine.trackers.tracking import Track, trackers_of
from recombine.training.config import RunConfig
from recombine.training.progress import ProgressDisplay

StorePath = str | os.PathLike[str]


def run(
    study: str | Study | type[Study],
    *,
    profile: str = "laptop",
    store: StorePath | Store = "runs",
    engine: Engine | None = None,
    quiet: bool = False,
    track: Track | None = None,
    **settings: Any,
) -> StudyResult:
    """Run a study: train what the store does not have, measure it, and decide the claims.

    Args:
        study: The name of a study (`recombine ls studies`), a subclass of `rc.Study`, or a study with settings.
        profile: `smoke` (seconds), `demo`, `laptop` (minutes) or `paper` (a cluster): same code, other sizes.
        store: The folder for runs; it is created where there is none. Runs that are there are not trained again.
        engine: What trains; by default this process.
        quiet: Show no progress.
        track: Trackers that also receive curves, scores, verdicts and figures: a name, a component, or several.
        **settings: Settings to change, as `replace` takes them: `replicates=4`, `width=64`.

    Returns:
        The result: `.verdicts` (a DataFrame), `.figures`, `.tables`, `.overview`, `.report("report.html")`.

    Example:
        ```python
        result = rc.run("data-scaling", profile="demo")
        result.verdicts[["claim", "verdict", "effect"]]
        ```
    """
    trackers = trackers_of(track)
    made = _study(study, profile)
    overrides = [f"{name}={json.dumps(_plain(value))}" for name, value in settings.items()]
    made = changed(made, overrides)
    opened = store if isinstance(store, Store) else Store(Path(store))
    with ProgressDisplay(quiet=quiet) as progress:
        return run_study(made, profile, opened, engine or LocalEngine(), progress, overrides, trackers)


def _study(study: str | Study | type[Study], profile: str) -> Study:
    if isinstance(study, Study):
        return study
    kind = find("studies", study) if isinstance(study, str) else study
    if not (isinstance(kind, type) and issubclass(kind, Study)):
        raise BadInput(f"{study!r} is not a study.", fix="give a name, a subclass of rc.Study, or an instance")
    return kind.profile(profile)


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def sweep(
    source: StorePath | RunConfig | Mapping[str, Any] | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    cases: Sequence[Mapping[str, Any]] = (),
    replicates: int = 12,
    first_seed: int = 0,
    measure: Sequence[Measurement | str] = ("scores",),
    name: str = "sweep",
    store: StorePath | Store = "runs",
    engine: Engine | None = None,
    quiet: bool = False,
    track: Track | None = None,
) -> SweepResult:
    """Train and measure every cell of a grid over any settings, with replicates.

    Args:
        source: What all runs share: a `RunConfig`, settings by name, or nothing for the defaults. Or the path of a sweep
            file (YAML), which has everything else as well.
        grid: Values by setting, as in `{"width": [64, 128], "number": [40, 80]}`; every combination is a cell.
        cases: Settings that go together; each case is crossed with the grid.
        replicates: Runs of each cell, each with its own teacher, support, initialisation and data.
        first_seed: The seed of the first replicate.
        measure: Measurements, as objects or names.
        name: What the store calls the sweep.
        store: The folder for runs; it is created where there is none.
        engine: What trains; by default this process.
        quiet: Show no progress.
        track: Trackers that also receive curves, scores and the table of cells.

    Returns:
        The result: `.runs` and `.cells` (DataFrames).

    Example:
        ```python
        rc.sweep(grid={"width": [64, 128], "number": [40, 160]}, replicates=3).cells
        ```
    """
    trackers = trackers_of(track)
    if isinstance(source, (str, os.PathLike)):
        if grid or cases:
            raise BadInput(f"The sweep file {source} has its own grid.", fix="give a file, or settings with a grid")
        made = read_sweep(Path(source))
    else:
        base = (
            source.model_dump(mode="json", exclude={"seeds"}) if isinstance(source, RunConfig) else dict(source or {})
        )
        values: dict[str, Any] = {
            "name": name,
            "base": {key: _plain(value) for key, value in base.items()},
            "grid": {key: [_plain(value) for value in levels] for key, levels in (grid or {}).items()},
            "replicates": replicates,
            "first_seed": first_seed,
            "measure": list(measure),
        }
        if cases:
            values["cases"] = [{key: _plain(value) for key, value in case.items()} for case in cases]
        made = validate(SweepFile, values)
    opened = store if isinstance(store, Store) else Store(Path(store))
    with ProgressDisplay(quiet=quiet) as progress:
        return run_sweep(made, opened, engine or LocalEngine(), progress, trackers=trackers)
