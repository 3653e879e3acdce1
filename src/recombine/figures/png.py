"""PNG files: pixels encoded as PNG, and existing files compressed as far as the format allows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import UInt8

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode_png(pixels: UInt8[np.ndarray, "row column 3"]) -> bytes:
    """Pixels as a PNG file."""
    rows, columns, _ = pixels.shape
    # Each line begins with the number of its filter: none.
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return _file([(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")])


def packed_png(png: bytes) -> bytes:
    """The same image in a smaller file.

    The renderer compresses for speed. Compressed for size, a figure is a third or a quarter as large.
    """
    chunks = list(_chunks(png))
    pixels = b"".join(content for name, content in chunks if name == b"IDAT")
    first = next(index for index, (name, _) in enumerate(chunks) if name == b"IDAT")
    others = [chunk for chunk in chunks[first:] if chunk[0] != b"IDAT"]
    return _file([*chunks[:first], (b"IDAT", zlib.compress(zlib.decompress(pixels), 9)), *others])


def _file(chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of these chunks: name and content."""
    return SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the content of each chunk of a PNG file."""
    start = len(SIGNATURE)
    while start < len(png):
        (length,) = struct.unpack_from(">I", png, start)
        yield png[start + 4 : start + 8], png[start + 8 : start + 8 + length]
        start += 12 + length
