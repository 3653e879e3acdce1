"""Requests: a study or a sweep is stored before it trains, so that it can be resumed.

<store>/requests/<kind>-<name>.json has the kind (`study` or `sweep`), the name, runs and measurements, and what is needed
to run it again. It stays after the end, because it says which runs belong together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from recombine.store.files import explained
from recombine.store.store import Store
from recombine.training import RunConfig

KINDS = ("study", "sweep")
KEYS = frozenset({"request", "name", "runs", "measurements", "time"})

Request = dict[str, Any]
"""A record with at least `KEYS`."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """How much of a request is done."""

    runs: int
    done: int
    failed: int
    """Runs whose loss did not stay finite. They are not tried again."""
    measurements: int
    """Measurements that its sound runs will have at the end."""
    measured: int
    """Measurements that are done."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to train or measure."""
        return self.done + self.failed == self.runs and self.measured == self.measurements


def parents_of(configs: Iterable[RunConfig]) -> Request:
    """The part of a request that names the runs that others start from; empty if there are none."""
    parents = dict.fromkeys(run_id for config in configs for run_id in config.ancestors())
    return {"parents": list(parents)} if parents else {}


def runs_with_parents(record: Request) -> frozenset[str]:
    """The runs of a request or of a study's record, with those that they start from."""
    return frozenset((*record["runs"], *record.get("parents", ())))


def _name(request: Request) -> str:
    return f"{request['request']}-{request['name']}"


def remember(store: Store, request: Request) -> None:
    """Store a request; it replaces one of the same kind and name."""
    assert request["request"] in KINDS
    assert request.keys() >= KEYS
    store.write_record("requests", _name(request), request)


def forget(store: Store, request: Request) -> None:
    """Delete a request; its runs stay."""
    with explained(store.path):
        (store.path / "requests" / f"{_name(request)}.json").unlink(missing_ok=True)


def requests(store: Store, kind: str | None = None) -> list[Request]:
    """All requests of a store, by kind and name. A damaged record is reported and left out."""
    records = store.records("requests", "a study or sweep", _sound)
    return [record for record in records.values() if kind in (None, record["request"])]


def _sound(file: str, record: Request) -> bool:
    return (
        record.keys() >= KEYS
        and record["request"] in KINDS
        and all(isinstance(record[name], list) for name in ("runs", "measurements"))
        and file == f"{_name(record)}.json"
    )


def standing(store: Store, request: Request, *, indexed: bool = False) -> Standing:
    """How much of a request is in the store, by the names of its runs and measurements.

    Args:
        store: The store.
        request: The request.
        indexed: Ask the index as of its last look: quick, for lists. What decides about work reads the files.
    """
    if indexed:
        held = store.index.held(request["runs"], refresh=False)
        status, measured = {run: each[0] for run, each in held.items()}, {run: each[1] for run, each in held.items()}
    else:
        status, measured = {run_id: store.status(run_id) for run_id in request["runs"]}, None
    done = [run_id for run_id, word in status.items() if word == "complete"]
    failed = sum(word == "failed" for word in status.values())
    names = request["measurements"]
    return Standing(
        runs=len(status),
        done=len(done),
        failed=failed,
        measurements=(len(status) - failed) * len(names),
        measured=sum(
            store.measurement(run_id, name) is not None if measured is None else name in measured[run_id]
            for run_id in done
            for name in names
        ),
    )
