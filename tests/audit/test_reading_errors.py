"""What is wrong with a table or a filter is said, with the line, the row and the value; nothing is executed."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from recombine.audit.reading.read import read_cells
from recombine.errors import BadInput


def good() -> pd.DataFrame:
    return pd.DataFrame({"colour": ["red", "blue", "red"], "object": ["cube", "cube", "ball"], "s": [1, 0, 1]})


def refused(source, match: str, **changes) -> BadInput:
    asked = {"factors": ["colour", "object"], "scores": ["s"], **changes}
    with pytest.raises(BadInput, match=match) as caught:
        read_cells(source, **asked)
    assert caught.value.exit_code == 2
    assert len(caught.value.message) < 600
    return caught.value


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"factors": ["color", "object"]}, "no column 'color'.*\n.*did you mean 'colour'"),
        ({"factors": ["Colour"]}, "no column 'Colour'"),
        ({"roles": {"thing": ["object", "object_2"]}, "factors": []}, "no column 'object_2'"),
        ({"roles": {"thing": ["object"]}}, "1 role column"),
        ({"scores": ["score"]}, "no column 'score'"),
        ({"scores": []}, "No score"),
        ({"factors": []}, "No factor"),
        ({"scores": ["colour"]}, "'colour' is named more than once"),
        ({"scores": ["s", "s"]}, "'s' is named more than once"),
        ({"roles": {"thing": ["object", "colour"]}}, "named more than once"),
        ({"sets": ["thing"], "roles": {"thing": ["a", "b"]}}, "both as roles and as a set"),
        ({"split": ("part", "train")}, "no column 'part'"),
        ({"split": ("colour", "train")}, "'train' in column 'colour'.*\n.*'blue', 'red'"),
        ({"split": ("s", "1"), "train": good()}, "Both a training table and a split"),
        ({"key": "id"}, "no column 'id'"),
        ({"where": "colour = 'purple'"}, "keeps none of the 3 rows"),
        ({"where": "colour = 'blue'"}, "only one combination .blue . cube"),
        ({"train": good()[["colour"]]}, "training table has no column 'object'"),
        ({"train": good().iloc[:0]}, "training table has no rows"),
    ],
)
def test_what_was_asked_does_not_fit(changes, match):
    refused(good(), match, **changes)


def test_scores_that_are_not_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("colour,object,s\nred,cube,1\nred,ball,\nblue,ball,good\nblue,cube,bad\n")
    refused(path, "'s' is not a finite number in row 3 of t.csv: 'good'")
    refused(path, "row 4 of t.csv: 'bad'", where="object = 'cube'")
    refused(good().assign(s=[1.0, np.inf, 0.0]), "row 2 of the table: 'inf'")
    refused(good().assign(s=["0,5", "1", "0"]), "row 1 of the table: '0,5'")
    refused(
        good().assign(s=[1e308, -1e308, 1e308]).iloc[[0, 1, 2, 0]].assign(colour=["a", "a", "b", "a"], object="x"),
        "too large",
    )
    refused(good().assign(s=None), "No row of the table has all of the scores s")
    refused(good().assign(s=[[1], [2], [3]]), "not a finite number")


def test_columns_without_values(tmp_path):
    refused(good().assign(object=None), "'object' is empty in all 3 rows of the table")
    data = good().assign(kind=["a", "b", "a"], object=["x", None, "y"])
    refused(data, "'object' is empty in all 1 rows of the table that the filter keeps", where="kind = 'b'")
    refused(good().assign(colour=["a", None, None], object=[None, "x", "y"]), "No row .* value for every factor")
    refused(good().assign(object=[["a"], ["b"], ["c"]]), "'object' holds lists")
    refused(good().assign(object=['["a"', '["a"]', '[{"a": 1}]']), "not a list of values", sets=["object"])


@pytest.mark.parametrize(
    "text, match",
    [
        ("red,cube,1\nred,ball,0\nblue,ball\nblue,cube,1\n", "Line 4 of t.csv has 2 values, but 3 columns"),
        ("red,cube,1\nblue,cube,1,9\n", "Line 3 of t.csv has 4 values, but 3 columns"),
        ('red,cube,1\n"blue,cube,1\nred,ball,1\n', "Line 3 of t.csv opens a quote"),
        ("", "t.csv has no rows"),
    ],
)
def test_broken_lines(text, match, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("colour,object,s\n" + text)
    refused(path, match)


def test_a_broken_line_far_down(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["colour,object,s", *["red,cube,1", "blue,ball,0"] * 100_000]
    lines[150_000] = "red,cube"
    path.write_text("\n".join(lines))
    refused(path, "Line 150001 of t.csv has 2 values")


def test_broken_json(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"colour": "red", "object": "x", "s": 1}\n{"colour": \n')
    refused(path, "Line 2 of t.jsonl is not JSON")
    path.write_text('{"colour": "red", "object": "x", "s": 1}\n' * 30_000 + "{oops}\n")
    refused(path, "Line 30001 of t.jsonl is not JSON")
    path.write_text("[1, 2]\n")
    refused(path, "not a list of objects")
    path.write_text("3\n")
    refused(path, "Line 1 of t.jsonl is not an object")
    path.write_text('{"s": 1, "S": 2}\n')
    refused(path, "differ only in case")


@pytest.mark.parametrize(
    "suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".json", ".arrow", ".feather", ".csv.gz", ".xlsx", ""]
)
@pytest.mark.parametrize("content", ["empty", "junk", "zeros", "parquet", "arrow", "zip", "blank", "latin"])
def test_what_is_not_a_table(suffix, content, tmp_path):
    path = tmp_path / f"t{suffix}"
    rng = np.random.default_rng(0)
    path.write_bytes(
        {
            "empty": b"",
            "junk": rng.bytes(4000),
            "zeros": bytes(4000),
            "parquet": b"PAR1" + rng.bytes(400) + b"PAR1",
            "arrow": b"ARROW1" + rng.bytes(400),
            "zip": b"PK\x03\x04" + rng.bytes(400),
            "blank": b"  \n\n",
            "latin": "colour,object,s\ncaf\xe9,x,1\n".encode("latin-1"),
        }[content]
    )
    refused(path, ".")


def test_other_encodings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("colour,object,s\nred,x,1\ncaf\xe9,x,1\n".encode("latin-1"))
    error = refused(path, r"not UTF-8 text \(line 3, byte 0xe9\)")
    assert "iconv" in str(error.fix)
    far = "colour,object,s\n" + "red,x,1\n" * 200_000 + "caf\xe9,x,1\n"
    path.write_bytes(far.encode("latin-1"))
    refused(path, r"not UTF-8 text \(line 200002, byte 0xe9\)")
    path.write_bytes(b"\xff\xfe" + "colour,object,s\nred,x,1\n".encode("utf-16-le") + b"\x00\xd8\x41")
    refused(path, "UTF-16")
    path.write_bytes("colour,object,s\nred,x,1\n".encode("utf-16-le"))
    refused(path, "not a text table")


def test_what_is_not_there(tmp_path):
    refused(tmp_path / "none.csv", "no file")
    refused(tmp_path, "not a file")
    refused(3, "is a int, not a table")
    refused(pd.DataFrame(), "no columns")
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(good()), path)
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "cannot be read as a table")


def test_columns_of_the_same_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("colour,colour,object,s\nred,red,x,1\n")
    refused(path, "2 columns with the name 'colour'")
    path.write_text("colour,Colour,object,s\nred,a,x,1\nblue,b,x,0\n")
    assert read_cells(path, factors=["colour", "object"], scores=["s"]).width == 3
    refused(path, "cannot distinguish the columns 'colour' and 'Colour'", where="colour = 'red'")


ATTACKS = [
    "1 = 1; DROP TABLE t",
    "1 = 1; COPY (SELECT 1) TO '{out}'",
    "colour = 'red') UNION SELECT * FROM read_csv('{secret}') --",
    "1 = 1) OR (1 = 1",
    "colour IN (SELECT column0 FROM read_csv('{secret}'))",
    "EXISTS (FROM read_text('{secret}'))",
    "EXISTS (FROM '{secret}')",
    "(SELECT count(*) FROM glob('{folder}/*')) > 0",
    "colour = (SELECT content FROM read_blob('{secret}'))",
    "colour = ANY (SELECT 'red')",
    "ATTACH '{out}'",
    "COPY t TO '{out}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA version",
    "1 = 1 FROM read_csv('{secret}')",
    "1 = 1 WHERE true",
    "1 = 1 GROUP BY 1",
    "1 = 1 ORDER BY 1",
    "1 = 1 LIMIT 1",
    "1 = 1 AS x",
    "1 = 1, 2 = 2",
    "WITH x AS (SELECT 1) SELECT 1",
    "COLUMNS(*) = '1'",
    "*",
    "count(*) > 0",
    "row_number() OVER () = 1",
    "colour = $1",
    "colour = ?",
    "colour = 'red",
    "/* colour",
    "-- colour",
    "select",
    "\0",
    "colour = 'a' QUALIFY true",
    "query('SELECT 1') = 1",
    "no_such_function(colour)",
    "colr = 'red'",
    "colour + 1 > 2",
    "colour",
    "s > 1 AND s = 'abc'",
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("form", ["csv", "frame"])
def test_a_filter_is_one_expression_and_reaches_nothing(attack, form, tmp_path):
    secret, out = tmp_path / "secret.csv", tmp_path / "out"
    secret.write_text("red\n")
    path = tmp_path / "t.csv"
    good().to_csv(path, index=False)
    where = attack.format(secret=secret, out=out, folder=tmp_path)
    refused(path if form == "csv" else good(), "[Ff]ilter", where=where)
    assert not out.exists() and sorted(os.listdir(tmp_path)) == ["secret.csv", "t.csv"]


def test_filters_that_are_fine():
    for where in ("colour = 'red' -- a remark", "s BETWEEN 0 AND 1", "\"colour\" LIKE 'r%' OR object ~ 'c.*'", " "):
        assert read_cells(good(), factors=["colour", "object"], scores=["s"], where=where).count.sum() >= 2


def test_a_filter_names_the_column_it_misses():
    assert "'colour'" in str(refused(good(), "colr", where="colr = 'red'").fix)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read_cells(good(), factors=["colour", "object"], scores=["s"])
    refused(good(), "no column", scores=["x"])
    assert not list(tmp_path.iterdir())
