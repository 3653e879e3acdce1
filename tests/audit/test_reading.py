"""A table becomes cells: every form alike, and as pandas would group it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recombine.audit.cells import NOTHING, Cells
from recombine.audit.reading.arrow import numbers
from recombine.audit.reading.read import read_cells, read_rows

HUMAN = Path(__file__).parents[2].parent / "shared/data/text_to_image_human.csv"


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "colour": ["red", "red", "blue", "blue", None, "red", "green"],
            "count": pd.array([2, 2, 10, 2, 2, 10, 2], dtype="Int64"),
            "kind": ["a", "a", "a", "a", "a", "a", "b"],
            "success": [1, 0, 1, 1, 0, 1, 1],
            "quality": [0.5, 0.25, None, 1.5, 2.0, 3.0, 1.0],
        }
    )


class Capsule:
    """A frame that offers nothing but Arrow's stream, as a frame of polars does."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Lazy:
    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def collect(self) -> Capsule:
        return Capsule(self.table)


def write_csv(folder, data):
    data.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def write_bom(folder, data):
    data.to_csv(folder / "bom.csv", index=False, encoding="utf-8-sig")
    return folder / "bom.csv"


def write_semicolons(folder, data):
    data.to_csv(folder / "s.csv", index=False, sep=";", lineterminator="\r\n")
    return folder / "s.csv"


def write_utf16(folder, data):
    data.to_csv(folder / "u.csv", index=False, encoding="utf-16")
    return folder / "u.csv"


def write_gzip(folder, data):
    (folder / "t.csv.gz").write_bytes(gzip.compress(data.to_csv(index=False).encode()))
    return folder / "t.csv.gz"


def write_tsv(folder, data):
    data.to_csv(folder / "t.tsv", index=False, sep="\t")
    return folder / "t.tsv"


def write_parquet(folder, data):
    pa.parquet.write_table(pa.Table.from_pandas(data), folder / "t.parquet")
    return folder / "t.parquet"


def write_feather(folder, data):
    pa.feather.write_feather(data, str(folder / "t.feather"))
    return folder / "t.feather"


def write_stream(folder, data):
    table = pa.Table.from_pandas(data)
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as out:
        out.write_table(table)
    return folder / "t.arrow"


def write_lines(folder, data):
    data.to_json(folder / "t.jsonl", orient="records", lines=True, force_ascii=False)
    return folder / "t.jsonl"


def write_list(folder, data):
    data.to_json(folder / "t.json", orient="records")
    return folder / "t.json"


FORMS = {
    "csv": write_csv,
    "bom": write_bom,
    "semicolons": write_semicolons,
    "utf-16": write_utf16,
    "gzip": write_gzip,
    "tsv": write_tsv,
    "parquet": write_parquet,
    "feather": write_feather,
    "arrow stream": write_stream,
    "json lines": write_lines,
    "json list": write_list,
    "pandas": lambda _, data: data,
    "pandas floats": lambda _, data: data.astype({"count": float}),
    "pandas categories": lambda _, data: data.astype({"colour": "category"}),
    "arrow": lambda _, data: pa.Table.from_pandas(data),
    "capsule": lambda _, data: Capsule(pa.Table.from_pandas(data)),
    "lazy": lambda _, data: Lazy(pa.Table.from_pandas(data)),
}


def same(one: Cells, other: Cells) -> None:
    for field in dataclasses.fields(Cells):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second, err_msg=field.name)
        elif field.name != "notes":
            assert first == second, field.name


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_cells(form, tmp_path):
    source = FORMS[form](tmp_path, frame())
    asked = {"factors": ["colour", "count"], "scores": ["success", "quality"], "where": "kind = 'a' AND count < 11"}
    cells = read_cells(source, **asked)
    assert [factor.values for factor in cells.factors] == [("blue", "red"), ("2", "10")]
    assert cells.constituents.tolist() == [[0, 2], [1, 2], [1, 3]]
    assert cells.slots == ("colour", "count")
    assert cells.binary == (True, False)
    assert cells.count.tolist() == [1, 2, 1]
    np.testing.assert_allclose(cells.mean, [[1, 1.5], [0.5, 0.375], [1, 3]])
    np.testing.assert_allclose(cells.spread, [[0, 0], [0.5, 0.03125], [0, 0]])
    assert cells.trained is None
    same(cells, read_cells(frame(), **asked))


def test_rows_that_are_left_out_are_noted():
    notes = " ".join(read_cells(frame(), factors=["colour", "count"], scores=["success", "quality"]).notes)
    assert "1 row of 7 of the table lacks the value of a factor and is left out (colour: 1)." in notes
    assert "1 row without a score does not count as evaluated (quality: 1)." in notes
    assert "between 1 and 2 rows" in notes


def test_values_are_as_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code,score\n007,1\n7,0\n7.0,1\n1e1,1\n")
    cells = read_cells(path, factors=["code"], scores=["score"], where="code >= 7")
    assert cells.factors[0].values == ("007", "7", "7.0", "1e1")
    assert any("'007', '7', '7.0'" in note and "count as different" in note for note in cells.notes)


def test_similar_spellings_and_many_values_are_noted(tmp_path):
    names = [f"v{n}" for n in range(1200)] + ["Red", "red ", "RED"]
    cells = read_cells(pd.DataFrame({"name": names, "score": 1.5}), factors=["name"], scores=["score"])
    notes = " ".join(cells.notes)
    assert len(cells.factors[0].values) == 1203
    assert "1,203 values" in notes and "'RED', 'Red', 'red '" in notes


def test_roles_share_their_values():
    data = pd.DataFrame({"a": ["x", "y", "z", None], "b": ["y", "x", "x", "x"], "s": [1, 0, 1, 1]})
    cells = read_cells(data, factors=[], roles={"thing": ["a", "b"]}, scores=["s"])
    assert cells.factors[0].values == ("x", "y", "z")
    assert cells.factors[0].kind == "roles" and cells.slots == ("a", "b")
    assert cells.constituents.tolist() == [[0, 1], [1, 0], [2, 0]]
    assert cells.name(0) == "a=x + b=y"
    listed = read_cells(data, factors=["thing"], roles={"thing": ["a", "b"]}, scores=["s"])
    same(cells, listed)


SETS = {
    "bars": ["a|b", "b|a", "c", "b| c |a", "[]"],
    "semicolons": ["a;b", "b;a", "c;", "b;c;a;a", "[]"],
    "pluses": ["a+b", "b + a", "c", "b+c+a", "[]"],
    "json": ['["a","b"]', '["b","a"]', '["c"]', '["b","c","a"]', "[]"],
    "python": ["['a', 'b']", "['b', 'a']", "['c']", "['b', 'c', 'a']", "[]"],
    "lists": [["a", "b"], ["b", "a"], ["c"], ["b", "c", "a"], []],
    "frozen": [frozenset("ab"), frozenset("ba"), frozenset("c"), frozenset("bca"), frozenset()],
}


@pytest.mark.parametrize("written", SETS)
def test_sets_in_any_order_are_one_combination(written):
    data = pd.DataFrame({"on": SETS[written], "s": [1.0, 2.0, 3.0, 4.0, 5.0]})
    cells = read_cells(data, factors=[], sets=["on"], scores=["s"])
    assert cells.factors[0].values == ("a", "b", "c") and cells.slots == ("on", "on", "on")
    got = {tuple(part for part in row if part != NOTHING): n for n, row in enumerate(cells.constituents.tolist())}
    assert set(got) == {(), (2,), (0, 1), (0, 1, 2)}
    both = got[0, 1]
    assert cells.count[both] == 2 and cells.mean[both, 0] == 1.5 and cells.spread[both, 0] == 0.5


def test_a_column_of_sets_has_one_separator():
    data = pd.DataFrame({"on": ["C++|C", "C|Rust", "C++"], "s": [1.0, 2.0, 3.0]})
    assert read_cells(data, factors=[], sets=["on"], scores=["s"]).factors[0].values == ("C", "C++", "Rust")


def test_a_training_table_marks_and_adds_combinations(tmp_path):
    train = tmp_path / "train.csv"
    train.write_text("colour,count\nred,2\nred,2\nyellow,3\n,2\n")
    cells = read_cells(frame(), factors=["colour", "count"], scores=["success"], where="kind = 'a'", train=train)
    assert cells.trained is not None
    by_name = {cells.name(n): n for n in range(len(cells.count))}
    assert [cells.trained[by_name[name]] for name in ("red + 2", "yellow + 3", "blue + 2")] == [True, True, False]
    only = by_name["yellow + 3"]
    assert cells.count[only] == 0 and np.isnan(cells.mean[only]).all() and not cells.spread[only].any()
    notes = " ".join(cells.notes)
    assert "The filter was not applied to train.csv" in notes and "1 trained combination has no score." in notes
    assert "1 row of 4 of train.csv lacks" in notes


def test_a_split_column_and_rows_of_both():
    data = pd.DataFrame(
        {
            "a": ["x", "x", "y", "z", "w", "v"],
            "s": [1.0, 0.0, 1.0, None, 0.5, None],
            "split": ["Train", "test", "test", "train", "valid", "test"],
        }
    )
    cells = read_cells(data, factors=["a"], scores=["s"], split=("split", "train"))
    assert cells.trained is not None
    assert [cells.name(n) for n in range(4)] == ["w", "x", "y", "z"]
    assert cells.trained.tolist() == [False, True, False, True]
    assert cells.count.tolist() == [1, 2, 1, 0]
    assert any("1 combination has trained and held-out rows and counts as trained." in note for note in cells.notes)
    several = read_cells(data, factors=["a"], scores=["s"], split=("split", ("train", "valid")))
    assert several.trained is not None and several.trained.tolist() == [True, True, False, True]
    every = read_cells(data, factors=["a"], scores=["s"], split=("split", ("train", "valid", "test")))
    assert any("nothing is held out" in note for note in every.notes)


STRANGE = [
    "<script>alert('x')</script>",
    "a\tb\nc\rd",
    '"quoted", and; more|',
    "bell \x07 escape \x1b[31m",
    "красный",
    "赤い",
    "أحمر",
    "👩‍🚀",
    "'; DROP TABLE t; --",
    "${jndi:x}",
    "{{7*7}}",
    "null",
    " lead",
    "\u202eright to left",
]


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "feather", "json lines", "pandas", "utf-16"])
def test_any_text_survives_as_a_value(form, tmp_path):
    data = pd.DataFrame({"a<b>\"'": STRANGE, "score": range(len(STRANGE))})
    cells = read_cells(FORMS[form](tmp_path, data), factors=["a<b>\"'"], scores=["score"])
    assert cells.factors[0].values == tuple(sorted(STRANGE))
    np.testing.assert_array_equal(cells.mean[:, 0], np.argsort(STRANGE))


def test_names_of_files_and_columns_are_taken_literally(tmp_path):
    folder = tmp_path / "kind=1"
    folder.mkdir()
    (folder / "a.csv").write_text("Object,object,#f0,score\nx,1,p,1\ny,2,q,0\n")
    path = folder / "[a]*'; --.csv"
    (folder / "a.csv").rename(path)
    (folder / "a'; --.csv").write_text("other\n1\n")
    cells = read_cells(path, factors=["object", "#f0"], scores=["score"], where="score >= 0 AND \"#f0\" <> 'z'")
    assert [factor.values for factor in cells.factors] == [("1", "2"), ("p", "q")]


def test_scores_that_say_true_or_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,s\nx,True\nx, false \ny,NaN\ny,n/a\ny,1\nz,\n")
    cells = read_cells(path, factors=["a"], scores=["s"])
    assert cells.binary == (True,) and cells.count.tolist() == [2, 1]
    assert cells.mean[:, 0].tolist() == [0.5, 1.0]
    typed = read_cells(pd.DataFrame({"a": ["x", "y"], "s": [True, False]}), factors=["a"], scores=["s"])
    assert typed.mean[:, 0].tolist() == [1.0, 0.0]


def test_a_filter_on_a_column_that_is_numbers_at_first(tmp_path):
    rows = [f"{n % 7},{n % 2},{n}" for n in range(25_000)] + ["1,1,last"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,s,id", *rows]))
    assert read_cells(path, factors=["a"], scores=["s"], where="id = '5' OR id = 'last'").count.sum() == 2
    assert read_cells(path, factors=["a"], scores=["s"], where="TRY_CAST(id AS DOUBLE) < 10").count.sum() == 10


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from(["x", "Y", "y ", "2", "é"])),
            st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)),
            st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda v: round(v, 6))),
        ),
        min_size=1,
        max_size=40,
    ),
    form=st.sampled_from(["parquet", "pandas", "json lines", "csv"]),
)
def test_cells_are_what_pandas_groups(rows, form, tmp_path):
    data = pd.DataFrame(rows, columns=["a", "b", "s"]).astype({"a": "str", "b": "str", "s": float})
    data["a"], data["b"] = [r[0] for r in rows], [r[1] for r in rows]
    whole = data[data.notna().all(axis=1)]
    whole = whole[np.array([bool(text.strip()) for text in whole["b"]], dtype=bool)]
    groups = whole.groupby(["a", "b"])["s"]
    if len(groups) < 2:
        return
    if form == "csv":  # Quoted throughout, as pandas leaves lone carriage returns bare.
        (tmp_path / "t.csv").write_bytes(data.to_csv(index=False, quoting=1, lineterminator="\n").encode())
        source = tmp_path / "t.csv"
    else:
        source = FORMS[form](tmp_path, data)
    cells, found = read_rows(source, factors=["a", "b"], scores=["s"])
    values = [value for factor in cells.factors for value in factor.values]
    got = {tuple(values[part] for part in row): n for n, row in enumerate(cells.constituents)}
    assert set(got) == set(groups.groups)
    for name, scores in groups:
        n = got[name]
        assert cells.count[n] == len(scores)
        np.testing.assert_allclose(cells.mean[n, 0], scores.mean(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(cells.spread[n, 0], ((scores - scores.mean()) ** 2).sum(), rtol=1e-6, atol=1e-6)
    assert found.row.tolist() == whole.index.tolist() and found.total == len(data)
    assert [tuple(values[p] for p in cells.constituents[c]) for c in found.cell] == [
        (a, b) for a, b in zip(whole["a"], whole["b"], strict=True)
    ]
    np.testing.assert_array_equal(found.scores[:, 0], whole["s"])


def test_rows_know_their_cell_and_key(tmp_path):
    data = frame().assign(id=[f"k{n}" for n in range(7)])
    cells, rows = read_rows(
        FORMS["csv"](tmp_path, data), factors=["colour", "count"], scores=["quality"], where="kind = 'a'", key="id"
    )
    assert rows.row.tolist() == [0, 1, 3, 5] and rows.total == 7
    assert rows.key == ("k0", "k1", "k3", "k5")
    assert [cells.name(cell) for cell in rows.cell] == ["red + 2", "red + 2", "blue + 2", "red + 10"]
    assert rows.scores[:, 0].tolist() == [0.5, 0.25, 1.5, 3.0]


def test_reading_twice_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.integers(0, 9, 5000), "b": rng.integers(0, 9, 5000), "s": rng.normal(size=5000)})
    path = FORMS["csv"](tmp_path, data)
    first, second = (read_cells(path, factors=["a", "b"], scores=["s"]) for _ in range(2))
    assert first.mean.tobytes() == second.mean.tobytes() and first.spread.tobytes() == second.spread.tobytes()


KINDS = {
    "colors": (["object", "colour"], {}, 19),
    "counting": (["object", "count"], {}, 17),
    "two_object": ([], {"object": ["object", "object_2"]}, 18),
    "color_attr": ([], {"object": ["object", "object_2"], "colour": ["colour", "colour_2"]}, 13),
    "position": (["relation"], {"object": ["object", "object_2"]}, 20),
}


@pytest.mark.skipif(not HUMAN.exists(), reason="the human-labelled table does not lie beside this repository")
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_judged_images(kind):
    factors, roles, number = KINDS[kind]
    cells = read_cells(HUMAN, factors=factors, roles=roles, scores=["success"], where=f"kind = '{kind}'")
    assert len(cells.count) == number and cells.binary == (True,)
    assert (cells.count == 4).all() and not cells.notes
    with HUMAN.open() as stream:
        expected = pd.read_csv(stream).query("kind == @kind")["success"].mean()
    np.testing.assert_allclose((cells.mean[:, 0] * cells.count).sum() / cells.count.sum(), expected)
    if kind == "counting":
        assert all(value == str(int(value)) for value in cells.factors[1].values)


def test_json_of_records_that_differ(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in [{"a": "x", "s": 1}, {"s": 0, "a": "y", "on": ["p"]}, {"a": "z"}]))
    cells = read_cells(path, factors=["a"], scores=["s"])
    assert cells.count.tolist() == [1, 1]


def test_cells_show_themselves_on_a_screen_and_in_a_notebook():
    names = ["<i>\x1b[0m", *(f"v{n}" for n in range(1199))]
    cells = read_cells(pd.DataFrame({"name": names, "score": 0.5}), factors=["name"], scores=["score"])
    lines = repr(cells).splitlines()
    assert lines[0] == "Cells: 1,200 combinations (unknown trained), 1,200 scored rows, scores score"
    assert lines[1].startswith("  name: 1,200 (<i>\\x1b[0m, v0, v1, v10 and 1,196 more)") and len(lines) == 2
    assert "<i>" not in cells._repr_html_() and "&lt;i&gt;" in cells._repr_html_()


@given(
    st.sampled_from([pa.int8(), pa.int32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]),
    st.lists(st.one_of(st.none(), st.booleans()), max_size=40),
    st.integers(0, 20),
)
def test_numbers_of_arrow_are_those_of_to_numpy(kind, values, offset):
    column = pa.array([None if value is None else kind.to_pandas_dtype()(value) for value in values], kind)[offset:]
    np.testing.assert_array_equal(numbers(column).astype(float), column.to_numpy(zero_copy_only=False).astype(float))


def test_a_small_audit_does_not_import_pandas(tmp_path):
    (tmp_path / "table.csv").write_text("a,b,s\n" + "".join(f"{n % 4},{n // 4},{n % 2}\n" for n in range(20)))
    code = """
import sys
from recombine.audit.audit import audit_table
audit_table("table.csv", factors=["a", "b"], scores="s", quick=True)
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
