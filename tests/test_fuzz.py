"""Every reader of what users give, on damaged and random input: an answer or an error with words, no traceback, no hang.

RECOMBINE_FUZZ=300 gives each reader so many inputs, for a quick look.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recombine.errors import RecombineError

ALL_INPUTS = 100_000
"""Over all readers."""

LONGEST = 5.0
"""Seconds of a core for one input: a busy machine is no failure."""

SWEEP = b"""base:\n  family: hyperteacher\n  space: {kind: subset, modules: 8, max_active: 2}\n  model: {width: 8, depth: 1}
grid: {support.number: [12, 20]}\nreplicates: 2\nmeasure: [{kind: scores, draws: 2}]\n"""
PLAN = b"factors: {colour: [red, blue], shape: 3}\nforbid: ['colour=red and shape=1']\ncosts: {colour: {red: 2}}\n"
TABLE = b"colour,shape,score\nred,a,1\nblue,b,0\nred,b,0.5\n"
LINES = b'{"colour": "red", "shape": "a", "score": 1}\n{"colour": "blue", "shape": "b", "score": 0}\n'
ITEMS = b'{"name": "a", "prompt": "Say yes", "answer": "yes", "task": "t"}\n'
NASTY = [
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b'"', b"'", b"[" * 2000, b'{"a":' * 2000, b"- " * 2000, b"&a [*a]", b"!!python/x"),
    *(b"1e999", b"-1", b"NaN", b"010", b"1:30", b"true", b"null", b"\xe2\x80\xae", b"=1+1", b";", b"--", b"/*", b"9" * 400, b","),
]  # fmt: skip


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"colour": ["red", "blue"], "shape": ["a", "b"], "score": [1.0, 0.0]}), file)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, layer=np.zeros((3, 2)))
    return file.getvalue()


def safetensors() -> bytes:
    from safetensors.numpy import save

    return save({"layer": np.zeros((3, 2), np.float32)}, metadata={"note": "{}"})


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("recombine.json", b'{"format": 1}')
        archive.writestr("archive.json", b'{"format": 1, "files": {}}')
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        info = tarfile.TarInfo("recombine.json")
        info.size = 13
        archive.addfile(info, io.BytesIO(b'{"format": 1}'))
    return file.getvalue()


# What reads a file, by the ending of the file and a sound example.


def sweep(path: Path) -> None:
    from recombine.design.sweeps.yaml_file import read_sweep

    _ = read_sweep(path).cells


def plan(path: Path) -> None:
    from recombine.plan.spec import read_spec

    read_spec(path)


def collected(path: Path) -> None:
    from recombine.plan.collected import read_collected
    from recombine.spaces import ProductSpace

    read_collected(path, ProductSpace(factors={"colour": ("red", "blue"), "shape": ("a", "b")}))


def table(path: Path) -> None:
    from recombine.audit.reading.read import read_cells

    read_cells(path, factors=["colour", "shape"], scores=["score"])


def filters(path: Path) -> None:
    from recombine.filters import check_filter

    check_filter(path.read_text(encoding="utf-8", errors="replace"))


def activations(path: Path) -> None:
    from recombine.audit.decodability.files import _array, _names

    for name in _names(path):
        _array(path, name)


def comparison(path: Path) -> None:
    from recombine.audit.comparison.scored import read_scored

    read_scored(path, factors=["colour", "shape"], scores=["score"])


def overrides(path: Path) -> None:
    from recombine.overrides import apply
    from recombine.training.config import RunConfig

    apply(RunConfig(), [path.read_text(encoding="utf-8", errors="replace")])


def record(path: Path) -> None:
    from recombine.store.files import read_record

    read_record(path)


def arrays(path: Path) -> None:
    from recombine.training.checkpoint import read_arrays

    read_arrays(path)


def archive(path: Path) -> None:
    from recombine.store.packed import unpacked

    with unpacked(path, path.parent / "temporary"):
        pass


def items(path: Path) -> None:
    from recombine.language.item_files import read_items

    read_items(path)


def prompts(path: Path) -> None:
    from recombine.pipelines.prompts.files import read_sets

    read_sets(path)


def genome(path: Path) -> None:
    from recombine.cppn.picbreeder import read_genome

    read_genome(path)


GENOME = b'<genome id="1"><nodes count="1"><node id="0" type="in" label="x"/></nodes><links count="0"/></genome>'
READERS: list[tuple[str, Callable[[Path], None], str, Callable[[], bytes]]] = [
    ("sweep", sweep, ".yaml", lambda: SWEEP),
    ("plan", plan, ".yaml", lambda: PLAN),
    ("plan in TOML", plan, ".toml", lambda: b'forbid = []\n[factors]\ncolour = ["red", "blue"]\n'),
    ("collected", collected, ".csv", lambda: b"colour,shape\nred,a\n"),
    ("collected in JSON", collected, ".json", lambda: b'[["red", "a"]]'),
    ("table in CSV", table, ".csv", lambda: TABLE),
    ("table in JSON Lines", table, ".jsonl", lambda: LINES),
    ("table in Parquet", table, ".parquet", parquet),
    ("filter", filters, ".txt", lambda: b"colour = 'red' AND score < 3"),
    ("activations in npz", activations, ".npz", npz),
    ("activations in safetensors", activations, ".safetensors", safetensors),
    ("audit document", comparison, ".json", lambda: json.dumps({"scores": [], "combinations": []}).encode()),
    ("override", overrides, ".txt", lambda: b"model.width=64"),
    ("record", record, ".json", lambda: b'{"seal": "0", "name": [1, 2]}'),
    ("weights", arrays, ".safetensors", safetensors),
    ("archive in zip", archive, ".zip", zipped),
    ("archive in tar", archive, ".tar.gz", tarred),
    ("items", items, ".jsonl", lambda: ITEMS),
    ("prompts", prompts, ".yaml", lambda: b"mine:\n  prompts: [a red ball]\n"),
    ("genome", genome, ".xml", lambda: GENOME),
]


def too_long(*_: object) -> None:
    raise TimeoutError(f"The reader took more than {LONGEST} s of a core.")


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """A sound file with up to four changes, or other bytes altogether."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        way = draw(st.integers(0, 5))
        if way == 0 and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif way == 1:
            del data[at:]
        elif way == 2:
            del data[at : at + draw(st.integers(1, 20))]
        elif way == 3:
            data[at:at] = draw(st.sampled_from(NASTY))
        elif way == 4:
            data[at:at] = data[draw(st.integers(0, len(data))) :][:50]
        else:
            data[at : at + 1] = draw(st.binary(min_size=1, max_size=4))
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reader", "ending", "example"), READERS, ids=[each[0] for each in READERS])
def test_a_reader_answers_or_says_what_is_wrong(tmp_path, name, reader, ending, example):
    number = int(os.environ.get("RECOMBINE_FUZZ", ALL_INPUTS // len(READERS)))
    path, tried, said = tmp_path / f"input{ending}", [], set[str]()

    @settings(
        max_examples=number, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(damaged(example()))
    def read(data: bytes) -> None:
        tried.append(len(data))
        path.write_bytes(data)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
        try:
            reader(path)
        except RecombineError as error:
            said.add(error.message.strip())
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    path.write_bytes(example())
    with contextlib.suppress(RecombineError):
        reader(path)  # What it imports takes its time once.
    before = signal.signal(signal.SIGVTALRM, too_long)
    try:
        read()
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert len(tried) >= min(number, 100) and said and "" not in said
