"""The file of an index: a table in Parquet, and after it the hash of all that is before.

A file that is missing, cut short, damaged, or of another version gives no table, and the index is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recombine.errors import StoreError
from recombine.store.files import replacing

NAME = "index.cache"
"""The file's name in the store."""

VERSION = 1
"""Another version of the index is made anew."""

HASH_BYTES = 32


def read(path: Path) -> tuple[pa.Table, dict[str, Any]] | None:
    """The table and its facts; None if there is no sound file."""
    try:
        data = path.read_bytes()
        content, digest = data[:-HASH_BYTES], data[-HASH_BYTES:]
        if len(digest) < HASH_BYTES or hashlib.sha256(content).digest() != digest:
            return None
        table = pq.read_table(pa.BufferReader(content), use_threads=False)
        facts = json.loads((table.schema.metadata or {})[b"index"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None
    return (table, facts) if facts.get("version") == VERSION else None


def write(path: Path, table: pa.Table, facts: dict[str, Any], temporary: Path) -> bool:
    """Write the file in one step; False where this is impossible. Of two writers the last one wins, and both are right."""
    note = {b"index": json.dumps(facts | {"version": VERSION}).encode()}
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(note), sink, compression="lz4", write_statistics=False)
    content = sink.getvalue().to_pybytes()
    with contextlib.suppress(OSError, StoreError):
        with replacing(path, temporary) as part:
            part.write_bytes(content + hashlib.sha256(content).digest())
        return True
    return False
