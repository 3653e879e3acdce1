"""Activations are matched to the rows of a table, and nothing is unpickled."""

from __future__ import annotations

import json
import struct

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from recombine.audit.decodability.files import from_arrays, read_activations
from recombine.audit.reading.read import read_rows
from recombine.errors import BadInput


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [10, 11, 12, 13, 14],
            "colour": ["red", "blue", "red", None, "blue"],
            "s": [1.0, 0.0, None, 1.0, 1.0],
            "kind": ["a", "a", "a", "a", "b"],
        }
    )


def rows(**changes):
    return read_rows(table(), **{"factors": ["colour"], "scores": ["s"], "key": "id", **changes})


def layers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"first": rng.normal(size=(5, 2, 3)).astype(np.float32), "second": rng.integers(0, 9, (5,))}


def write(path, arrays) -> None:
    np.savez(path, **arrays) if path.suffix == ".npz" else save_file(arrays, path)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_rows_match_the_whole_table(suffix, tmp_path):
    path, arrays = tmp_path / f"t{suffix}", layers()
    write(path, arrays)
    cells, found = rows()
    made = read_activations(path, found)
    assert set(made.layers) == {"first", "second"}
    np.testing.assert_array_equal(made.layers["first"], arrays["first"].reshape(5, 6)[[0, 1, 4]])
    np.testing.assert_array_equal(made.layers["second"], arrays["second"][[0, 1, 4], None])
    assert all(np.issubdtype(layer.dtype, np.floating) for layer in made.layers.values())
    assert [cells.name(cell) for cell in made.cell] == ["red", "blue", "blue"]
    assert made.scores[:, 0].tolist() == [1.0, 0.0, 1.0]
    same = from_arrays(arrays, found)
    np.testing.assert_array_equal(same.layers["first"], made.layers["first"])


@pytest.mark.parametrize(
    "keys", [np.array([14, 10, 99, 11]), np.array(["14", "10", "x", "11"]), np.array([b"14", b"10", b"z", b"11"])]
)
def test_rows_match_by_key(keys, tmp_path):
    path = tmp_path / "t.npz"
    write(path, {"id": keys, "h": np.arange(8.0).reshape(4, 2)})
    _, found = rows()
    made = read_activations(path, found, key="id")
    assert made.layers["h"].tolist() == [[2, 3], [6, 7], [0, 1]] and set(made.layers) == {"h"}


def test_bfloat16(tmp_path):
    values = np.array([[1.5, -2.0], [0.25, 3.0], [0, 1], [2, 4], [8, 16]], dtype=np.float32)
    data = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    header = json.dumps({"h": {"dtype": "BF16", "shape": [5, 2], "data_offsets": [0, len(data)]}}).encode()
    path = tmp_path / "t.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    np.testing.assert_array_equal(read_activations(path, rows()[1]).layers["h"], values[[0, 1, 4]])


class Trap:
    """Would leave a mark if it were unpickled."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_objects_are_refused_and_not_run(tmp_path):
    mark = tmp_path / "mark"
    trap = np.empty(5, dtype=object)
    trap[:] = [Trap(mark)] * 5
    np.savez(tmp_path / "t.npz", h=trap)
    with pytest.raises(BadInput, match="Python objects"):
        read_activations(tmp_path / "t.npz", rows()[1])
    assert not mark.exists()


@pytest.mark.parametrize(
    "arrays, changes, match",
    [
        ({"h": np.ones((4, 2))}, {}, r"shape \(4, 2\); the table has 5 rows"),
        ({"h": np.ones((3, 2))}, {}, "whole table, before the filter"),
        ({"h": np.float64(3)}, {}, r"shape \(\)"),
        ({"h": np.ones((5, 0))}, {}, "is empty"),
        ({"h": np.array([[1.0], [np.nan], [1], [1], [1]])}, {}, "not finite in 1 scored rows, first in row 2"),
        ({"h": np.array(list("abcde"))}, {}, "not real numbers"),
        ({"h": np.ones(5, dtype=complex)}, {}, "not real numbers"),
        ({"h": np.ones(5)}, {"key": "id"}, "no array 'id', which is named as the key"),
        ({"id": np.ones(5)}, {"key": "id"}, "holds no layers"),
        ({}, {}, "holds no layers"),
        ({"h": np.ones(2), "id": np.array([10, 10])}, {"key": "id"}, "'10' more than once"),
        ({"h": np.ones(2), "id": np.array([10, 11])}, {"key": "id"}, "1 of 3 scored rows .* first '14' in row 5"),
        ({"h": np.ones(2), "id": np.arange(10, 15)}, {"key": "id"}, "key 'id' has 5 entries"),
        ({"h": np.ones(5), "id": np.ones((5, 2))}, {"key": "id"}, "not a list of names"),
    ],
)
def test_what_does_not_fit(arrays, changes, match, tmp_path):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(BadInput, match=match):
        read_activations(tmp_path / "t.npz", rows()[1], **changes)


def test_nan_in_rows_that_do_not_count(tmp_path):
    np.savez(tmp_path / "t.npz", h=np.array([1, 2, np.nan, np.nan, 3]))
    assert read_activations(tmp_path / "t.npz", rows()[1]).layers["h"].ravel().tolist() == [1, 2, 3]


def test_a_key_that_the_table_was_not_asked_for(tmp_path):
    np.savez(tmp_path / "t.npz", h=np.ones(5), id=np.arange(5))
    with pytest.raises(BadInput, match="no key column was read from the table"):
        read_activations(tmp_path / "t.npz", rows(key=None)[1], key="id")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt", ".npy"])
@pytest.mark.parametrize("content", [b"", b"junk" * 100, b"\xff" * 64, b"PK\x03\x04junk"])
def test_damaged_files(suffix, content, tmp_path):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="t" + suffix):
        read_activations(path, rows()[1])
    with pytest.raises(BadInput, match="no file"):
        read_activations(tmp_path / "none.npz", rows()[1])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_files_that_were_cut_short_or_changed(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    write(path, {"h": np.random.default_rng(0).normal(size=(5, 50))})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="cannot be read"):
        read_activations(path, rows()[1])
    if suffix == ".npz":
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
        with pytest.raises(BadInput, match="cannot be read"):
            read_activations(path, rows()[1])
