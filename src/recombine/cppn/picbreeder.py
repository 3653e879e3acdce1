"""Reads networks that people evolved on Picbreeder: one XML genome, alone or in a zip archive."""

from __future__ import annotations

import lzma
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

from recombine.cppn.genome import ACTIVATIONS, INPUTS, Genome, Link
from recombine.errors import BadInput

LARGEST = 4 * 2**20
"""The most bytes of a genome. The published ones have less than 100 kB."""
MOST_NODES = 2000
EXPECTED = (
    "a genome of Picbreeder: XML with genome/nodes/node and genome/links/link, or a zip archive with one such file"
)

DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)
"""What `zipfile` raises where an archive is damaged, encrypted or packed in an unknown way."""

Name = tuple[str | None, str | None]
"""Branch and id of a node."""


def read_genome(path: str | Path) -> Genome:
    """Read a network that was evolved on Picbreeder.

    Args:
        path: A zip archive with one XML file, or the XML file itself. Nothing in it is run or unpickled; archives with
            large members and XML with a document type (entities) are refused.

    Returns:
        The genome. A file that is damaged or of another format raises `BadInput`.

    Example:
        ```python
        genome = read_genome("skull.zip")
        ```
    """
    path = Path(path)
    text = _contents(path)
    # Entities need a document type, and no genome has one. UTF-16 would hide it from this search.
    if b"<!" in re.sub(rb"<!--.*?-->", b"", text, flags=re.DOTALL) or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        _refuse(path, "it has a document type or is not UTF-8")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        _refuse(path, f"it is not XML ({error})")
    genome = root if root.tag == "genome" else root.find("genome")
    if genome is None:
        _refuse(path, f"<{root.tag}> has no <genome>")
    return _genome(path, genome)


def _refuse(path: Path, reason: str) -> NoReturn:
    raise BadInput(
        f"{path} is not {EXPECTED}: {reason}.", fix="give a file such as skull.zip of the paper's repository"
    )


def _contents(path: Path) -> bytes:
    """The bytes of the genome, at most `LARGEST`."""
    try:
        if path.stat().st_size > LARGEST:
            _refuse(path, f"it has {path.stat().st_size:,} bytes, more than {LARGEST:,}")
        data = path.read_bytes()
        if not data.startswith(b"PK"):
            return data
        with zipfile.ZipFile(path) as archive:
            files = [member for member in archive.infolist() if not member.is_dir()]
            if len(files) != 1:
                _refuse(path, f"the archive has {len(files)} files, not one")
            # The length that an archive states may be false, so reading stops by itself.
            with archive.open(files[0]) as member:
                data = member.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror or error}.", fix=f"give the path of {EXPECTED}"
        ) from error
    except DAMAGED as error:
        _refuse(path, f"the archive is damaged ({error})")
    if len(data) > LARGEST:
        _refuse(path, f"the file in the archive has more than {LARGEST:,} bytes")
    return data


def _genome(path: Path, root: ElementTree.Element) -> Genome:
    nodes: dict[Name, tuple[str | None, str]] = {}
    for node in root.findall("nodes/node"):
        name = _name(path, node.find("marking"), "a node has no <marking>")
        words = (node.findtext("activation") or "").strip()
        activation = words.removesuffix("(x)")
        if activation not in ACTIVATIONS:
            _refuse(path, f"node {name} has the activation {words!r}, not one of {', '.join(ACTIVATIONS)}")
        if name in nodes:
            _refuse(path, f"there are two nodes {name}")
        nodes[name] = node.get("label"), activation
    if not nodes or len(nodes) > MOST_NODES:
        _refuse(path, f"it has {len(nodes)} nodes, not 1 to {MOST_NODES}")
    labels = {label: name for name, (label, _) in nodes.items() if label}
    outputs = ("ink",) if "ink" in labels else ("hue", "saturation", "brightness")
    if missing := [label for label in (*INPUTS, *outputs) if label not in labels]:
        _refuse(path, f"it has no node with the label {' or '.join(missing)}")
    first = [labels[label] for label in INPUTS]
    every = [*first, *(name for name in nodes if name not in first)]
    number = {name: place for place, name in enumerate(every)}
    weights: dict[tuple[int, int], float] = {}
    for link in root.findall("links/link"):
        ends = [_name(path, link.find(end), f"a link has no <{end}>") for end in ("source", "target")]
        if unknown := [end for end in ends if end not in number]:
            _refuse(path, f"a link names the node {unknown[0]}, which does not exist")
        try:
            weight = float(link.findtext("weight") or "")
        except ValueError:
            weight = math.nan
        if not math.isfinite(weight):
            _refuse(path, f"the weight of a link is {link.findtext('weight')!r}, not a number")
        place = number[ends[0]], number[ends[1]]
        # Two links between the same nodes add up.
        weights[place] = weights.get(place, 0.0) + weight
    links: tuple[Link, ...] = tuple((*place, weight) for place, weight in weights.items())
    try:
        return Genome(
            activations=tuple(nodes[name][1] for name in every),  # type: ignore[arg-type]
            links=links,
            outputs=tuple(number[labels[label]] for label in outputs),
        )
    except ValueError as error:
        _refuse(path, str(error))


def _name(path: Path, element: ElementTree.Element | None, missing: str) -> Name:
    if element is None or element.get("id") is None:
        _refuse(path, missing)
    return element.get("branch"), element.get("id")
