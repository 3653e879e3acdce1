"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from recombine.errors import RecombineError


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file under a temporary name and rename it, so that a reader sees the old or the new file.

    Args:
        path: Where to write. Missing folders are created.
        content: Text (written as UTF-8) or bytes.

    Returns:
        The path.
    """
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp gives access to the owner only. A report is for everyone who may read the folder.
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
    # The only way to read the mask is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
