"""Samples of lm-evaluation-harness: `samples_TASK_DATE.jsonl`, written with --log_samples."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recombine.audit.logs.json_stream import items, json_lines
from recombine.audit.logs.sample import Notes, Reader, Sample, flattened, is_scalar
from recombine.errors import BadInput

ALWAYS = {"doc_id", "doc", "arguments", "resps"}
"""What every version writes."""
OWN = ALWAYS | {"target", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
"""What is not a score."""


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file has samples of lm-evaluation-harness."""
    return all(f'"{name}"'.encode() in head for name in ALWAYS)


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The samples of a log: one object per line, or, in older versions, a list."""
    with path.open("rb") as stream:
        listed = stream.read(64).lstrip().startswith(b"[")
    filters = dict[Any, None]()
    for number, record in enumerate(items(path, title), 1) if listed else json_lines(path, title):
        if not isinstance(record, dict) or not record.keys() >= ALWAYS:
            missing = sorted(ALWAYS - set(record)) if isinstance(record, dict) else sorted(ALWAYS)
            raise BadInput(
                f"Sample {number} of {title} lacks {', '.join(missing)}: it is not a sample of lm-evaluation-harness, or of a newer version.",
                fix="write it with --log_samples",
            )
        filters[record.get("filter")] = None
        yield _sample(record)
    if len(filters) > 1:
        named = ", ".join(str(name) for name in filters)
        notes.sentences.append(
            f"Each sample counts once for each filter ({named}); --where \"filter = '{next(iter(filters))}'\" keeps one."
        )


def _sample(record: dict[str, Any]) -> Sample:
    named = record.get("metrics")
    scores = {
        name: value
        for name, value in record.items()
        if (name in named if named else name not in OWN) and is_scalar(value) and not isinstance(value, str)
    }
    columns = {"doc_id": record["doc_id"], "filter": record.get("filter")} | flattened(
        {"target": record.get("target")}, ""
    )
    doc = record["doc"]
    columns |= (
        flattened(doc, "doc.") if isinstance(doc, Mapping) else {"doc": doc if is_scalar(doc) else json.dumps(doc)}
    )
    return Sample(_prompt(record["arguments"]), columns | scores, tuple(scores))


def _prompt(arguments: Any) -> str | None:
    """The text that the model was given: the first argument of the first request."""
    first = next(iter(arguments.values() if isinstance(arguments, Mapping) else arguments), None)
    first = next(iter(first.values() if isinstance(first, Mapping) else first), None) if first else None
    return first if isinstance(first, str) else None


READER = Reader("lm-eval", recognises, samples)
