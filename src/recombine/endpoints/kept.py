"""The folder of an audit by questions: how they were asked, and a line of JSON for each answer."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.store.files import check_writable, explained, read_record, reclaim, sealed, write_json

SETTINGS = "settings.json"
ANSWERS = "answers.jsonl"


class Kept:
    """What was answered so far. An answer counts as soon as its line is whole; one that was cut off does not."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()

    @property
    def answers(self) -> Path:
        """The file of the answers."""
        return self.path / ANSWERS

    def check(self, settings: Mapping[str, Any]) -> None:
        """BadInput if the folder holds answers to other settings, or something else. Changes nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"{self.path} is a file.", fix="name a folder with --out")
        place = self.path / SETTINGS
        if not place.is_file():
            if self.path.is_dir() and any(self.path.iterdir()):
                raise BadInput(
                    f"{self.path} is not empty and holds no audit of a language model.",
                    fix="name a new folder with --out",
                )
            return
        held = read_record(place)
        other = [name for name, value in settings.items() if held.get(name) != value]
        if other and self.answers.is_file():
            told = ", ".join(f"{name} {held.get(name)!r} (now {settings[name]!r})" for name in other)
            raise BadInput(
                f"{self.path} holds answers that were got with other settings: {told}.",
                fix="give the same settings to go on, or another folder with --out",
            )

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Makes the folder, after `check`. Without answers, settings may change."""
        self.check(settings)
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            check_writable(self.path)
            reclaim(self.path)
            write_json(self.path / SETTINGS, sealed(dict(settings)))

    def read(self) -> dict[str, dict[str, Any]]:
        """The last word on each item."""
        return {record["item"]: record for record in self._lines()}

    def add(self, record: Mapping[str, Any]) -> None:
        """Writes a line, to the disk. Several threads may do so."""
        line = json.dumps(dict(record), allow_nan=False) + "\n"
        with self._lock, explained(self.path), open(self.answers, "ab") as file:
            # After a line that was cut off, a new one.
            file.write(("\n" if self._cut() else "").encode() + line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _cut(self) -> bool:
        """Whether the last line has no end."""
        if not self.answers.is_file() or not self.answers.stat().st_size:
            return False
        with open(self.answers, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.answers.is_file():
            return
        with explained(self.path):
            text = self.answers.read_text(encoding="utf-8", errors="replace")
        for line in text.split("\n"):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and isinstance(record.get("item"), str):
                yield record
