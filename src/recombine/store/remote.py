"""Runs in an object store (`s3://`, `gs://`, `file://`: whatever fsspec opens), for machines that share no folder.

Names are the same as in a store's folder. The manifest is sent last, so a run exists when its manifest exists. Tables
need a folder, so runs are fetched into one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from recombine.errors import BadInput, MissingPackage, StoreError
from recombine.probes.base import Measured, Measurement
from recombine.store.files import make_folder, new_folder, read_json, replacing, size_of
from recombine.store.manifest import MANIFEST
from recombine.store.store import Store
from recombine.training.outcome import Outcome

MEASUREMENTS = "measurements"


class Remote:
    """An address in an object store with runs."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            fix = 'pip install "recombine[ray]"'
            raise MissingPackage("Object stores need a package that is not installed.", fix=fix) from error
        self.url = url
        if "://" not in url:
            raise BadInput(f"{url!r} is not the address of an object store.", fix="e.g. s3://bucket/runs")
        try:
            self._files, self._root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise BadInput(f"The object store {url} cannot be opened: {error}", fix="e.g. s3://bucket/runs") from error

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            fix = "check the address and your rights there; what was stored is kept"
            raise StoreError(f"The object store {self.url} cannot be used: {error}.", fix=fix) from error

    def _place(self, *parts: str) -> str:
        return "/".join([self._root.rstrip("/"), "runs", *parts])

    def _names(self, *parts: str) -> set[str]:
        """The names in a folder; empty if it does not exist."""
        self._files.invalidate_cache()
        try:
            paths = self._files.ls(self._place(*parts), detail=False)
        except FileNotFoundError:
            return set()
        return {str(path).rstrip("/").rpartition("/")[2] for path in paths}

    def manifest(self, run_id: str) -> dict[str, Any] | None:
        """The manifest of a run; None if the run is missing or incomplete."""
        try:
            manifest = json.loads(self._files.cat_file(self._place(run_id, MANIFEST)))
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None

    # Sending

    def send(self, store: Store, run_id: str) -> None:
        """Send a run and its measurements, unless they are there already. The manifest goes last."""
        folder = store.folder(run_id)
        with self._explained():
            if self.manifest(run_id) is None:
                for path in sorted(folder.iterdir()):
                    if path.is_file() and path.name != MANIFEST:
                        self._send_file(path, run_id, path.name)
                self._send_file(folder / MANIFEST, run_id, MANIFEST)
            there = self._names(run_id, MEASUREMENTS)
            for record in sorted((folder / MEASUREMENTS).glob("*.json")):
                if record.name not in there:
                    self.send_measurement(store, run_id, record.stem)

    def send_measurement(self, store: Store, run_id: str, name: str) -> None:
        """Send a measurement of a run."""
        with self._explained():
            for file in (f"{name}.parquet", f"{name}.json"):  # As in a folder: the record last.
                self._send_file(store.folder(run_id) / MEASUREMENTS / file, run_id, MEASUREMENTS, file)

    def _send_file(self, path: Path, *place: str) -> None:
        self._files.makedirs(self._place(*place[:-1]), exist_ok=True)
        self._files.put_file(str(path), self._place(*place))

    # Fetching

    def fetch(self, store: Store, run_ids: Iterable[str]) -> int:
        """Fetch those of these runs, and their measurements, that exist; returns the number of new runs."""
        came = 0
        with self._explained():
            there = self._names()
            for run_id in dict.fromkeys(run_ids):
                if run_id not in there:
                    continue
                if store.status(run_id) is None:
                    came += self._fetch_run(store, run_id)
                if store.status(run_id) is not None:
                    self._fetch_measurements(store, run_id)
        return came

    def _fetch_run(self, store: Store, run_id: str) -> bool:
        manifest = self.manifest(run_id)
        if manifest is None:
            return False
        if store.folder(run_id).exists():
            store.set_aside(run_id)
        with new_folder(store.path / "temporary", store.folder(run_id)) as folder:
            for name, size in manifest["files"].items():
                file = folder / Path(name).name
                self._files.get_file(self._place(run_id, file.name), str(file))
                if size_of(file) != size:
                    damage = f"{file.name} is not {size} bytes long"
                    fix = f"remove {self._place(run_id)}: it is made again then"
                    raise StoreError(f"The run {run_id} in {self.url} is damaged: {damage}.", fix=fix)
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
        return store.status(run_id) is not None

    def _fetch_measurements(self, store: Store, run_id: str) -> None:
        folder = store.folder(run_id) / MEASUREMENTS
        for record in sorted(self._names(run_id, MEASUREMENTS)):
            if not record.endswith(".json") or _whole(folder / record):
                continue
            make_folder(folder)
            for name in (f"{record.removesuffix('.json')}.parquet", record):
                with replacing(folder / name, store.path / "temporary") as part:
                    self._files.get_file(self._place(run_id, MEASUREMENTS, name), str(part))


def _whole(record: Path) -> bool:
    """Whether a measurement is in a folder, with its table."""
    try:
        return size_of(record.with_suffix(".parquet")) == read_json(record)["bytes"]
    except (StoreError, KeyError, TypeError):
        return False


class UploadingStore(Store):
    """A store that sends each new run and measurement to an object store."""

    def __init__(self, path: str | os.PathLike[str], remote: Remote) -> None:
        super().__init__(path)
        self.remote = remote

    def commit(self, outcome: Outcome) -> None:
        super().commit(outcome)
        self.remote.send(self, outcome.config.run_id)

    def add_measurement(self, run_id: str, measurement: Measurement, measured: Measured) -> None:
        super().add_measurement(run_id, measurement, measured)
        self.remote.send_measurement(self, run_id, measurement.name)
