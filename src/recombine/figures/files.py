"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from recombine.errors import RecombineError


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file beside its place and move it there: a reader sees the old file or the new one.

    Folders on the way are made.
    """
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes a file for its owner only; a report is for whoever may read the folder.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise RecombineError(
            f"Cannot write {path}: {error.strerror or error}.",
            fix="choose a folder that you may write to and that has space left",
        ) from error
    return path


def _umask() -> int:
    # There is no way to read the mask but to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
