"""The reader of Picbreeder's files: what it reads, and what it refuses."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recombine.cppn import Genome, places, read_genome
from recombine.errors import BadInput

LABELS = {0: "y", 1: "x", 2: "d", 3: "bias"}


def written(genome: Genome, inside: str = "") -> str:
    """A genome as Picbreeder writes it, its nodes in reverse order."""
    names = ("ink",) if len(genome.outputs) == 1 else ("hue", "saturation", "brightness")
    labels = LABELS | dict(zip(genome.outputs, names, strict=True))
    kinds = {0: "in", 1: "in", 2: "in", 3: "in"} | dict.fromkeys(genome.outputs, "out")
    nodes = [
        f'<node {f"label={chr(34)}{labels[node]}{chr(34)}" if node in labels else ""} type="{kinds.get(node, "hidden")}">'
        f'<marking branch="7" id="{node}"/><activation>{kind}(x)</activation></node>'
        for node, kind in reversed(list(enumerate(genome.activations)))
    ]
    links = [
        f'<link><marking branch="8" id="{place}"/><source branch="7" id="{source}"/><target branch="7" id="{target}"/>'
        f"<weight>{weight!r}</weight></link>"
        for place, (source, target, weight) in enumerate(genome.links)
    ]
    body = f"<nodes>{''.join(nodes)}</nodes><links>{''.join(links)}</links>{inside}"
    return f'<?xml version="1.0" encoding="UTF-8"?><!-- a comment --><data version="1.0"><genome>{body}</genome></data>'


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), zipped=st.booleans())
def test_a_written_genome_is_read_again(grown, tmp_path, seed, zipped):
    genome, path = grown(seed), tmp_path / "genome"
    if zipped:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", written(genome))
    else:
        path.write_text(written(genome))
    read = read_genome(path)
    assert len(read.links) == len(genome.links)
    at = places(7)
    pictures = [each.values(at)[:, list(each.outputs)] for each in (read, genome)]
    np.testing.assert_allclose(*pictures, rtol=1e-9, atol=1e-9)


@pytest.fixture
def sound(grown) -> str:
    return written(grown(3))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(x)</activation>", "2(x)</activation>", "activation"),
        ('label="ink"', "", "label hue"),
        ('label="x"', "", "label x"),
        ("<weight>", "<weight>nan", "not a number"),
        ('<target branch="7"', '<target branch="9"', "does not exist"),
        ("<marking", "<other", "marking"),
        ("</genome>", "", "not XML"),
        ("<genome>", "<gene>", "not XML"),
        ('id="5"', 'id="4"', "two nodes"),
    ],
)
def test_damaged_genomes_are_refused_with_their_name(sound, tmp_path, old, new, reason):
    path = tmp_path / "damaged.xml"
    assert old in sound
    path.write_text(sound.replace(old, new))
    with pytest.raises(BadInput, match=reason) as caught:
        read_genome(path)
    assert str(path) in caught.value.message and "Picbreeder" in caught.value.message


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"PK\3\4 broken", b"\x80\x04K\x01.", b"<data/>", b"\x89PNG\r\n", b"\xff\xfe<\0"]
)
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(BadInput, match="is not a genome of Picbreeder"):
        read_genome(path)


def test_entities_are_never_expanded(sound, tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]>'
    path = tmp_path / "bomb.xml"
    path.write_text(sound.replace("<data", f"{bomb}<data").replace("identity(x)", "&c;"))
    with pytest.raises(BadInput, match="document type"):
        read_genome(path)


def test_archives_are_read_up_to_a_limit(tmp_path):
    path = tmp_path / "large.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b" " * (2**23))
    assert path.stat().st_size < 2**16
    with pytest.raises(BadInput, match="more than"):
        read_genome(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "<data/>")
        archive.writestr("b", "<data/>")
    with pytest.raises(BadInput, match="2 files"):
        read_genome(path)


def test_a_damaged_archive_is_refused(sound, tmp_path):
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", sound)
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    path.write_bytes(data)
    with pytest.raises(BadInput, match="damaged"):
        read_genome(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing.zip", tmp_path):
        with pytest.raises(BadInput, match="cannot be read"):
            read_genome(path)


@pytest.mark.parametrize(("name", "nodes", "links"), [("skull", 23, 57), ("butterfly", 34, 108), ("apple", 83, 264)])
def test_the_published_genomes_are_read(picbreeder, name, nodes, links):
    genome = read_genome(picbreeder / f"{name}.zip")
    assert (len(genome.activations), len(genome.links)) == (nodes, links)
    assert len(genome.outputs) == (1 if name == "skull" else 3)
