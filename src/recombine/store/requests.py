"""Requests: a study or a sweep is stored before it trains, so that it can be resumed.

<store>/requests/<kind>-<name>.json has the kind (`study` or `sweep`), the name, runs and measurements, and what is needed
to run it again. It stays after the end, because it says which runs belong together.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from recombine.errors import StoreError
from recombine.store.files import explained, read_record, sealed, write_json
from recombine.store.measurements import read_measurement
from recombine.store.store import Store

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
    def left(self) -> int:
        """Runs to train."""
        return self.runs - self.done - self.failed

    @property
    def complete(self) -> bool:
        """Whether nothing is left to train or measure."""
        return self.left == 0 and self.measured == self.measurements


def _file(kind: str, name: str) -> str:
    return f"{kind}-{name}.json"


def remember(store: Store, request: Request) -> None:
    """Store a request; it replaces one of the same kind and name."""
    assert request["request"] in KINDS
    assert request.keys() >= KEYS
    folder = store.path / "requests"
    with explained(store.path):
        folder.mkdir(exist_ok=True)
        place = folder / _file(request["request"], request["name"])
        write_json(place, sealed(request), store.path / "temporary")


def forget(store: Store, request: Request) -> None:
    """Delete a request; its runs stay."""
    with explained(store.path):
        (store.path / "requests" / _file(request["request"], request["name"])).unlink(missing_ok=True)


def requests(store: Store, kind: str | None = None) -> list[Request]:
    """All requests of a store, by kind and name. A damaged record is reported and left out."""
    records = []
    for path in sorted((store.path / "requests").glob("*.json")):
        try:
            record = read_record(path)
            if not _sound(record) or path.name != _file(record["request"], record["name"]):
                raise StoreError(f"{path} is damaged: it is not the record of a study or sweep.")
            records.append(record)
        except StoreError as error:
            store.report(str(error))
    return [record for record in records if kind in (None, record["request"])]


def _sound(record: Request) -> bool:
    return (
        record.keys() >= KEYS
        and record["request"] in KINDS
        and all(isinstance(record[name], list) for name in ("runs", "measurements"))
    )


def standing(store: Store, request: Request) -> Standing:
    """How much of a request is in the store, by the names of its runs and measurements."""
    status = {run_id: store.status(run_id) for run_id in request["runs"]}
    done = [run_id for run_id, word in status.items() if word == "complete"]
    failed = sum(word == "failed" for word in status.values())
    names = request["measurements"]
    return Standing(
        runs=len(status),
        done=len(done),
        failed=failed,
        measurements=(len(status) - failed) * len(names),
        measured=sum(_is_measured(store, run_id, name) for run_id in done for name in names),
    )


def _is_measured(store: Store, run_id: str, name: str) -> bool:
    try:
        return read_measurement(store.folder(run_id) / "measurements", name) is not None
    except StoreError as error:
        store.report(str(error))
        return False
