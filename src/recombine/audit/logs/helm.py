"""Runs of HELM: a folder with per_instance_stats.json beside instances.json or scenario_state.json."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.audit.logs.json_stream import items, members
from recombine.audit.logs.sample import Notes, Reader, Sample
from recombine.errors import BadInput

STATS, INSTANCES, STATE = "per_instance_stats.json", "instances.json", "scenario_state.json"


def recognises(path: Path, head: bytes) -> bool:
    """Whether a path is the folder of a run, or its per_instance_stats.json."""
    return path.name == STATS or (path / STATS).is_file()


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The instances of a run: one sample for each instance, perturbation and trial, with the mean of each metric.

    Metrics and texts are in two files, in any order. They are joined by a temporary database, which need not fit
    into memory.
    """
    folder = path if path.is_dir() else path.parent
    database = sqlite3.connect("")  # A temporary file of its own, which disappears with the connection.
    try:
        database.execute(
            "CREATE TABLE texts (id TEXT, perturbation TEXT, text TEXT, split TEXT, PRIMARY KEY (id, perturbation))"
        )
        database.execute("CREATE TABLE stats (id TEXT, perturbation TEXT, trial INT, name TEXT, mean REAL, split TEXT)")
        database.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?)", _texts(folder))
        database.executemany("INSERT INTO stats VALUES (?, ?, ?, ?, ?, ?)", _stats(folder / STATS))
        if unknown := database.execute(
            "SELECT count(DISTINCT id) FROM stats WHERE id NOT IN (SELECT id FROM texts)"
        ).fetchone()[0]:
            notes.sentences.append(
                f"{unknown:,} instances have metrics but no text, so that a template cannot be applied."
            )
        joined = database.execute(
            "SELECT s.id, s.perturbation, trial, name, mean, coalesce(t.split, s.split), text FROM stats s "
            "LEFT JOIN texts t ON t.id = s.id AND t.perturbation = s.perturbation ORDER BY s.id, s.perturbation, trial, s.rowid"
        )
        for (instance, perturbation, trial), group in itertools.groupby(joined, key=lambda row: row[:3]):
            found = list(group)
            scores = {name: mean for _, _, _, name, mean, _, _ in found}
            columns = {
                "instance": instance,
                "perturbation": perturbation or "none",
                "trial": trial,
                "split": found[0][5],
            }
            yield Sample(found[0][6], columns | scores, tuple(scores))
    except sqlite3.Error as error:
        fix = "free space for temporary files" if "full" in str(error) else None
        raise BadInput(f"The files of {title} cannot be joined: {error}.", fix=fix) from None
    finally:
        database.close()


def _texts(folder: Path) -> Iterator[tuple[str, str, str | None, str | None]]:
    """The instances: id, perturbation, text and split."""
    if (folder / INSTANCES).is_file():
        instances: Iterator[Any] = items(folder / INSTANCES, INSTANCES)
    elif (folder / STATE).is_file():
        states = members(folder / STATE, STATE, "request_states")
        instances = (state["instance"] for name, state in states if name == "request_states" and "instance" in state)
    else:
        raise BadInput(
            f"There is neither {INSTANCES} nor {STATE} beside {STATS}, so the prompts are unknown.",
            fix="give the whole folder of the run",
        )
    for instance in instances:
        given = instance.get("input")
        text = given.get("text") if isinstance(given, dict) else given
        yield str(instance.get("id")), _perturbation(instance), text, instance.get("split")


def _stats(path: Path) -> Iterator[tuple[str, str, int, str, float, str | None]]:
    """The metrics of each instance: id, perturbation, trial, name, mean and split."""
    for record in items(path, STATS):
        if not isinstance(record, dict) or "instance_id" not in record or not isinstance(record.get("stats"), list):
            raise BadInput(
                f"{STATS} has an entry without instance_id and stats: {json.dumps(record)[:80]}.",
                fix="give the file as HELM writes it",
            )
        for stat in record["stats"]:
            name = stat["name"]
            named = name if isinstance(name, dict) else {"name": str(name)}
            mean = stat.get("mean", stat["sum"] / stat["count"] if stat.get("count") else None)
            if mean is not None:
                key = str(record["instance_id"]), _perturbation(record), int(record.get("train_trial_index", 0))
                yield *key, named["name"], float(mean), named.get("split")


def _perturbation(record: dict[str, Any]) -> str:
    """The name of a perturbation; empty for the original."""
    given = record.get("perturbation")
    return str(given.get("name", "")) if isinstance(given, dict) else ""


READER = Reader("helm", recognises, samples)
