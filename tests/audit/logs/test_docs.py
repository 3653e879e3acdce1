"""The Python of docs/audit-logs.md runs on a recorded log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = (HERE.parents[2] / "docs" / "audit-logs.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(HERE / "recorded" / "inspect.eval", "log.eval")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "audit-logs.md", "exec"), names)
    assert names["audit"].combinations == len(names["cells"].count) == 6
    assert Path("audit.html").exists() and "exact" in capsys.readouterr().out
