"""Results of GenEval: results.jsonl, one line per image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.audit.logs.json_stream import json_lines
from recombine.audit.logs.sample import Notes, Reader, Sample, is_scalar
from recombine.errors import BadInput

ALWAYS = ("filename", "tag", "prompt", "correct", "metadata")


def recognises(path: Path, head: bytes) -> bool:
    """Whether a file has results of GenEval."""
    return path.is_file() and all(f'"{name}"'.encode() in head for name in ALWAYS) and head.lstrip().startswith(b"{")


def samples(path: Path, title: str, notes: Notes) -> Iterator[Sample]:
    """The images: tag, prompt, correct, and what the prompt asks for as class_1, color_1, count_1, position_1, class_2, ..."""
    for number, record in json_lines(path, title):
        try:
            metadata = record["metadata"]
            metadata = json.loads(metadata) if isinstance(metadata, str) else metadata
            columns = {"tag": record["tag"], "correct": record["correct"]} | _asked_for(metadata)
            yield Sample(record["prompt"], columns, ("correct",))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadInput(
                f"Line {number} of {title} is not a result of GenEval: {type(error).__name__} {error}.",
                fix="give results.jsonl as evaluate_images.py writes it",
            ) from None


def _asked_for(metadata: dict[str, Any]) -> dict[str, Any]:
    """The objects that a prompt asks for. A position is a word and the number of the other object, from 0."""
    columns = {}
    for number, wanted in enumerate(metadata.get("include", ()), start=1):
        for name, value in wanted.items():
            value = value[0] if name == "position" and isinstance(value, list) else value
            if is_scalar(value):
                columns[f"{name}_{number}"] = value
    return columns


READER = Reader("geneval", recognises, samples)
