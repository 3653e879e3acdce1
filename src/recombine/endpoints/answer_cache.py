"""The folder of an audit by questions: its settings, and a cache of the answers."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.store.files import check_writable, explained, read_record, reclaim, sealed, write_json


class JsonLines:
    """Records appended to a file. A record counts once its line is complete; a line that was cut off is skipped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record and flush it to disk. Several threads may call this at once."""
        line = json.dumps(dict(record), allow_nan=False) + "\n"
        with self._lock, explained(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab+") as file:
                # A new record must not continue a line that was cut off.
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    line = line if file.read(1) == b"\n" else "\n" + line
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        with explained(self.path.parent):
            text = self.path.read_text(encoding="utf-8", errors="replace")
        for line in text.split("\n"):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def changed_settings(stored: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The settings that differ from the stored ones, in words. Empty if none does."""
    changed = [name for name, value in settings.items() if stored.get(name) != value]
    return ", ".join(f"{name} {stored.get(name)!r} (now {settings[name]!r})" for name in changed)


class AnswerCache:
    """The answers so far, one line of JSON each. An interrupted audit loses no answer."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.answers = self.path / "answers.jsonl"
        """The file of the answers."""
        self._records = JsonLines(self.answers)
        self.add = self._records.add
        """Appends a record and flushes it to disk. Several threads may call this at once."""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise `BadInput` if the folder contains answers to other settings, or other files. Changes nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"{self.path} is a file.", fix="name a folder with --out")
        stored = self.path / "settings.json"
        if not stored.is_file():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise BadInput(
                    f"{self.path} is not empty and contains no audit of a language model.",
                    fix="name a new folder with --out",
                )
            return
        changed = changed_settings(read_record(stored), settings)
        if changed and self.answers.is_file():
            raise BadInput(
                f"{self.path} contains answers to other settings: {changed}.",
                fix="use the same settings to continue, or another folder with --out",
            )

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Check and create the folder. As long as there are no answers, the settings may change."""
        self.check(settings)
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            check_writable(self.path)
            reclaim(self.path)
            write_json(self.path / "settings.json", sealed(dict(settings)))

    def read(self) -> dict[str, dict[str, Any]]:
        """The last record of each item."""
        return {record["item"]: record for record in self._records if isinstance(record.get("item"), str)}
