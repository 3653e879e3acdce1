"""The Audit page: a table is uploaded, its columns are shown, and `recombine audit` makes the page."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path
from typing import Any

from recombine.audit.reading.tables import open_table
from recombine.errors import BadInput
from recombine.view.viewer import Viewer

ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json", ".arrow", ".feather")
HEAD = 8
"""Rows that the page shows."""
FEW = 50
"""A column with more values than this is hardly a factor."""
MOST_TABLES = 20


def upload(viewer: Viewer, name: str, body: bytes) -> dict[str, Any]:
    """Keep a table until the viewer ends, and describe its columns."""
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"{name[:100]!r} is no table.", fix=f"give one of {', '.join(ENDINGS)}")
    if not body:
        raise BadInput(f"{name[:100]!r} is empty.", fix="give a table with a line of column names and rows")
    tables = viewer.scratch / "tables"
    tables.mkdir(exist_ok=True)
    for old in sorted(tables.iterdir(), key=lambda path: path.stat().st_mtime)[: -MOST_TABLES + 1]:
        shutil.rmtree(old, ignore_errors=True)
    folder = tables / uuid.uuid4().hex
    folder.mkdir()
    # The page of the audit shows the name of the file.
    path = folder / (re.sub(r"[^\w .-]", "_", Path(name).stem)[:80] + ending)
    path.write_bytes(body)
    try:
        return {"table": folder.name, "name": name} | _described(path, name)
    except BadInput:
        shutil.rmtree(folder)
        raise


def _described(path: Path, title: str) -> dict[str, Any]:
    with open_table(path, title=title, wanted=(), where=None, memory=None) as table:
        texts = [column.text for column in table.columns]
        counts = ", ".join(
            f"approx_count_distinct({text}), count(TRY_CAST({text} AS DOUBLE)), count({text})" for text in texts
        )
        (row,) = table.fetch(f"SELECT count(*), {counts} FROM {table.relation}")
        head = table.fetch(f"SELECT {', '.join(texts)} FROM {table.relation} LIMIT {HEAD}")
        columns = [
            {"name": column.name, "distinct": int(distinct), "numeric": 0 < numbers == present}
            for column, distinct, numbers, present in zip(table.columns, row[1::3], row[2::3], row[3::3], strict=True)
        ]
    if row[0] == 0:
        raise BadInput(f"{title[:100]!r} has no rows.", fix="give a table with one row per example")
    return {"rows": row[0], "columns": _with_roles(columns), "head": [[*map(_cell, cells)] for cells in head]}


def _with_roles(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A first guess: columns of few texts are factors, the last numeric column or one called so is the score."""
    scores = [
        column
        for column in columns
        if re.search(r"score|success|correct|accuracy|pass|error|reward", column["name"], re.I)
    ]
    numeric = [column for column in columns if column["numeric"]]
    score = (scores or numeric[-1:] or columns[-1:])[0]["name"] if columns else ""
    for column in columns:
        factor = 1 < column["distinct"] <= FEW and not column["numeric"]
        column["role"] = "score" if column["name"] == score else "factor" if factor else "none"
    return columns


def _cell(value: Any) -> str | None:
    return None if value is None else str(value)[:200]


def begin(viewer: Viewer, body: dict[str, Any]) -> dict[str, Any]:
    """Start the audit of an uploaded table: factors, scores, and what the scores mean."""
    found = list((viewer.scratch / "tables").glob(f"{_identifier(body.get('table'))}/*"))
    if len(found) != 1:
        raise BadInput("The table is not here any more.", fix="drop it again")
    path = found[0]
    factors, scores = (_columns(body, name) for name in ("factors", "scores"))
    if not factors or not scores:
        raise BadInput("An audit needs at least one factor and one score.", fix="choose columns")
    page = viewer.scratch / f"audit-{uuid.uuid4().hex}.html"
    arguments = [
        "audit",
        str(path),
        f"--factors={','.join(factors)}",
        f"--score={','.join(scores)}",
        f"--report={page}",
    ]
    for option in ("scale", "where", "split", "success", "chance"):
        text = str(body.get(option) or "").strip()
        arguments += [f"--{option}={text}"] if text else []
    for flag in ("lower_is_better", "quick"):
        arguments += [f"--{flag.replace('_', '-')}"] if body.get(flag) is True else []
    job = viewer.jobs.start("audit", f"The audit of {str(body.get('name', 'a table'))[:80]}", arguments)
    job.page = page
    return job.record()


def _identifier(table: object) -> str:
    """The identifier of an upload: hexadecimal digits, so it is no pattern and no path."""
    return table if isinstance(table, str) and re.fullmatch("[0-9a-f]{32}", table) else "none"


def _columns(body: dict[str, Any], name: str) -> list[str]:
    given = body.get(name)
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise BadInput(f"{name} is no list of columns.")
    for each in given:
        if "," in each:
            raise BadInput(
                f"The column {each[:50]!r} has a comma in its name.", fix="rename it, and drop the table again"
            )
    return given


def progress(viewer: Viewer, job: str) -> dict[str, Any]:
    """How far an audit is; `page` is the address of its page once it is done."""
    found = viewer.jobs.get(job)
    done = found.state == "done" and found.page is not None and found.page.is_file()
    return found.record() | {"page": f"audits/{found.id}" if done else None}


def page(viewer: Viewer, job: str) -> Path:
    """The page of an audit that is done."""
    found = viewer.jobs.get(job)
    if found.page is None or not found.page.is_file():
        raise BadInput("This audit has no page.", fix="wait until it is done")
    return found.page
