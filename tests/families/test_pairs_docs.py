"""The Python of docs/your-benchmark.md runs on files in COGS's format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "your-benchmark.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = {
        "train": "A cat ran .\tcat ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )\tin_distribution\n"
        "Emma ran .\trun . agent ( x _ 1 , Emma )\tin_distribution\n",
        "dev": "Emma slept .\tsleep . agent ( x _ 1 , Emma )\tin_distribution\n",
        "gen": "A hedgehog ran .\thedgehog ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )\tsubj_new\n"
        "A cat slept .\tcat ( x _ 1 ) AND sleep . agent ( x _ 2 , x _ 1 )\tsubj_old\n",
    }
    for split, text in lines.items():
        Path(f"{split}.tsv").write_text(text)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "your-benchmark.md", "exec"), names)
    said = capsys.readouterr().out
    assert "'words_unseen': 0.25" in said and len(names["setting"].support.reserved) == 2
