"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from recombine.errors import BadInput, RecombineError
from recombine.writers import part_of


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file under a temporary name and rename it, so that a reader sees the old or the new file.

    Args:
        path: Where to write. Missing folders are created.
        content: Text (written as UTF-8) or bytes.

    Returns:
        The path.
    """
    path = Path(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder.", fix=f"name a file, for example {path / 'report.html'}")
    part = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise RecombineError(
            f"Cannot write {path}: {error.strerror or error}.",
            fix="choose a folder that you may write to and that has space left",
        ) from error
    return path
