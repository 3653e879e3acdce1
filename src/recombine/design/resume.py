"""Finishing what was asked of a store and is not done: studies and sweeps, from their records alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pydantic import ValidationError

from recombine.component import find
from recombine.design.run import run_study
from recombine.design.study import Study
from recombine.design.sweeps.grid import SweepFile
from recombine.design.sweeps.run import run_sweep
from recombine.engines.base import Engine, Plan, Sweep, plan
from recombine.errors import BadInput, RecombineError, did_you_mean
from recombine.overrides import validate
from recombine.store.requests import Request, requests
from recombine.store.selection import asked
from recombine.store.store import Store
from recombine.trackers.base import Tracker
from recombine.training.config import RunConfig
from recombine.training.progress import Progress


@dataclasses.dataclass(frozen=True)
class Task:
    """A request that is understood."""

    request: Request
    work: Study | SweepFile
    configs: tuple[RunConfig, ...]
    ahead: Plan
    """What is left to do."""
    decided: bool
    """Whether a study's claims were decided; a sweep has none."""

    @property
    def name(self) -> str:
        return self.request["name"]

    @property
    def complete(self) -> bool:
        left = self.ahead.runs - self.ahead.done - self.ahead.failed
        return self.decided and left == 0 and self.ahead.measurements == 0

    def finish(
        self, store: Store, engine: Engine, progress: Progress | None = None, trackers: Sequence[Tracker] = ()
    ) -> Sweep:
        """Train and measure what is missing; a study's claims are decided."""
        overrides = self.request["overrides"]
        if isinstance(self.work, SweepFile):
            return run_sweep(self.work, store, engine, progress, overrides, trackers).sweep
        result = run_study(self.work, self.request["profile"], store, engine, progress, overrides, trackers)
        assert result.sweep is not None  # It is None only where a study was read from a store.
        return result.sweep


def wanted(store: Store, names: Sequence[str] = ()) -> list[Request]:
    """The requests of these names (of a study: all of its requests), or all."""
    if not names:
        return requests(store)
    found: dict[tuple[str, str], Request] = {}
    for name in names:
        own = asked(store, name)
        if not own:
            known = {one["name"] for one in requests(store)}
            raise BadInput(
                f"No study or sweep called {name!r} was asked of {store.path}.", fix=did_you_mean(name, known)
            )
        found |= {(one["request"], one["name"]): one for one in own}
    return list(found.values())


def understood(store: Store, request: Request) -> Task:
    """What a request means to this version of recombine; BadInput where it means nothing any more."""
    try:
        work: Study | SweepFile
        if request["request"] == "sweep":
            work = validate(SweepFile, request["file"])
        else:
            kind = find("studies", request["study"])
            assert issubclass(kind, Study)
            work = validate(kind, request["config"])
            kind.profile(request["profile"])
        configs = tuple(config for config, _ in work.runs())
        ahead = plan(store, configs, list(work.measurements()))
        _ = request["overrides"]
    except (RecombineError, ValidationError, KeyError, TypeError) as error:
        reason = error.message if isinstance(error, RecombineError) else repr(error)
        raise BadInput(f"What was asked as {request['name']!r} is not understood: {reason}") from error
    result = store.path / "studies" / f"{request['name']}.json"
    return Task(request, work, configs, ahead, decided=request["request"] == "sweep" or result.exists())
