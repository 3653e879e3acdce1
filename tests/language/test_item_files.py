"""Items from a user's file."""

from __future__ import annotations

import json

import pytest

from recombine.errors import BadInput
from recombine.language.item_files import read_items

HEAD = "task,variant,prompt,answer,input_logprob,output_logprob"


def test_csv(tmp_path):
    path = tmp_path / "items.csv"
    rows = [
        HEAD,
        'decode,Common,"Decode, please: uryyb",hello,-50,-9.5',
        'decode,rare,"Decode: tqxxa",hello,,',
        'decode,rare,"Decode: tqxxa",hello,,',
        'encode,common,"Encode: hello",uryyb,-9.5,-50',
    ]
    path.write_text("\ufeff" + "\n".join(rows) + "\n", encoding="utf-8")
    (first, second, third), notes = read_items(path)
    assert len(notes) == 1 and "1 item repeats another one and is asked once" in notes[0]
    assert first.variant == "common" and first.input_logprob == -50 and first.output_logprob == -9.5
    assert first.prompt == first.input == "Decode, please: uryyb" and first.output == first.answer == "hello"
    assert second.input_logprob is None and second.output_logprob is None
    assert first.group == second.group == "hello" and third.group == "Encode: hello"


def test_json_lines(tmp_path):
    path = tmp_path / "items.jsonl"
    row = {
        "task": "encode",
        "variant": "rare",
        "prompt": "Encode: hello",
        "answer": 42,
        "input": "hello",
        "output": "forty-two",
        "output_logprob": -3,
        "other": [1],
    }
    path.write_text(json.dumps(row) + "\n\n" + json.dumps(row | {"group": "g", "answer": 43}) + "\n")
    (first, second), notes = read_items(path)
    assert notes == []
    assert first.answer == "42" and first.input == "hello" and first.output == "forty-two"
    assert first.group == "hello" and second.group == "g" and first.output_logprob == -3.0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "task,prompt,answer\n", "no column 'variant'"),
        ("a.csv", "", "no column 'task'"),
        ("a.csv", HEAD + "\n", "no items"),
        ("a.csv", HEAD + "\nx,odd,p,a,,\n", "line 2 has the variant 'odd'"),
        ("a.csv", HEAD + "\nx,rare,p,,,\n", "line 2 has no answer"),
        ("a.csv", HEAD + "\nx,rare,p,a,much,\n", "log-probability 'much'"),
        ("a.csv", HEAD + "\nx,rare,p,a,0.5,\n", "log-probability '0.5'"),
        ("a.csv", HEAD + "\nx,rare,p,a,nan,\n", "log-probability 'nan'"),
        ("a.jsonl", "{\n", "line 1 is not a JSON"),
        ("a.jsonl", "[1]\n", "line 1 is not a JSON"),
        ("a.jsonl", '{"task": "x"}\n', "line 1 has no variant"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=said):
        read_items(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.csv", "task,variant,promt,answer\nx,rare,p,a\n", "did you mean 'promt'?"),
        ("a.csv", "task,variant,zzzz,answer\n", "Needed: task, variant, prompt, answer"),
        ("a.jsonl", '{"task": "x", "variant": "rare", "promt": "p", "answer": 3}\n', "did you mean 'promt'?"),
    ],
)
def test_misspelt_columns(tmp_path, name, text, hint):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match="prompt") as caught:
        read_items(tmp_path / name)
    assert hint in str(caught.value.fix)


def test_misspelt_optional_columns_are_noted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,variant,prompt,answer,output_logprb,comment\nx,rare,p,a,-3,yes\n")
    (item,), notes = read_items(path)
    assert item.output_logprob is None
    assert notes == ["The column 'output_logprb' of a.csv is not read: did you mean 'output_logprob'?"]


def test_missing_files_and_folders_are_refused(tmp_path):
    for name, said in (("nothing.csv", "There is no file"), (".", "is a folder")):
        with pytest.raises(BadInput, match=said) as caught:
            read_items(tmp_path / name)
        assert "Errno" not in str(caught.value)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="cannot be read"):
        read_items(tmp_path / "bytes.csv")
