"""Shows a result in the best way there is where Python runs: in the cell of a notebook, or as a page in a browser."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from recombine import _html
from recombine._show import shorten
from recombine.design.run import StudyResult
from recombine.errors import BadInput
from recombine.figures.base import Figure
from recombine.figures.curves import curves_info
from recombine.figures.files import write_whole
from recombine.figures.lines import draw_lines
from recombine.report.audit.result import AuditResult
from recombine.store.manifest import CURVES
from recombine.store.store import Store
from recombine.store.stored_run import StoredRun
from recombine.training.outcome import Outcome

RUNS_SHOWN = 200
"""Rows of the table of runs of a store."""


@dataclasses.dataclass(frozen=True, repr=False)
class View:
    """Something that is shown. A notebook shows it in its cell."""

    thing: Any
    path: Path | None = None
    """The page; None where a notebook shows the thing without one."""

    def __repr__(self) -> str:
        first = shorten(repr(self.thing).partition("\n")[0], 80)
        return f"View({first})" if self.path is None else f"View({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return inline(self.thing)


def view(thing: Any, path: str | os.PathLike[str] | None = None, *, browser: bool | None = None) -> View:
    """Show a result, a run, an audit, a plan, a figure or a store. `rc.view(...)` is this function.

    In a notebook the cell shows it, with its figures. Elsewhere a page is written, which opens from disk and needs no
    network; its path is printed, and a browser opens where there is one. For a store that grows, `recombine view` is a
    live page.

    Args:
        thing: What to show: anything of recombine that a notebook can show.
        path: The HTML file to write. By default a notebook writes none, and a terminal gets one in a new temporary folder.
        browser: Whether to open the page. By default it is opened from a terminal with a graphical display.

    Returns:
        The view, with the path of its page.

    Example:
        ```python
        result = rc.run("data-scaling", profile="demo")
        rc.view(result)
        ```
    """
    if not hasattr(thing, "_repr_html_"):
        raise BadInput(
            f"There is no view of {shorten(repr(thing))}, which is of type {type(thing).__name__}.",
            fix="give a result, a run, an audit, a plan, a figure or a store",
        )
    inside = in_notebook()
    if path is None and inside:
        return View(thing)
    page = write_page(thing, Path(path) if path is not None else _new_file(thing))
    # For people, so it goes where a message would go and no program reads it as data.
    sys.stderr.write(f"page: {page}\n")
    if has_browser() and not inside if browser is None else browser:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(page.resolve().as_uri())
    return View(thing, page)


def in_notebook() -> bool:
    """Whether this code runs in a cell of Jupyter or marimo, which shows values as HTML."""
    marimo, ipython = sys.modules.get("marimo"), sys.modules.get("IPython")
    if marimo is not None and marimo.running_in_notebook():
        return True
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def has_browser() -> bool:
    """Whether a person at a terminal would see a browser open. Browsers of the terminal would take its place."""
    graphical = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return bool(graphical) and sys.stdout.isatty()


def inline(thing: Any) -> str:
    """A thing as HTML for a cell: what it says of itself, then its figures, as pictures."""
    return "".join([thing._repr_html_(), *(figure._repr_html_() for figure in _figures(thing)), _runs(thing)])


def write_page(thing: Any, path: Path) -> Path:
    """Write the page of a thing: its own where it has one, else what a notebook would show.

    Args:
        thing: What to show.
        path: The HTML file to write.

    Returns:
        The path.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"A page cannot be written to {path.name}.", fix="end the path in .html")
    own: Callable[[Path], Any] | None = None
    if isinstance(thing, Figure):
        own = thing.save
    elif isinstance(thing, StudyResult):
        own = thing.report
    elif isinstance(thing, AuditResult):
        own = thing.page
    if own is not None:
        own(path)
        return path
    return write_whole(path, _PAGE.format(title=_html.text(_name(thing)), style=_STYLE, body=inline(thing)))


def _figures(thing: Any) -> list[Figure]:
    if isinstance(thing, StudyResult | AuditResult):
        return list(thing.figures)
    # The figure of curves is about R2.
    if not isinstance(thing, Outcome | StoredRun) or thing.config.family.metric != "r2":
        return []
    frame = pd.DataFrame(thing.curves) if isinstance(thing, Outcome) else pd.read_parquet(thing.folder / CURVES)
    if frame.empty:
        return []
    info = curves_info(frame.assign(replicate=0, number=thing.setting.support.size))
    return [Figure("curves", "Scores during training", info.caption, draw_lines(info))]


def _runs(thing: Any) -> str:
    if not isinstance(thing, Store):
        return ""
    rows = []
    for run in thing.runs(thing.run_ids()[:RUNS_SHOWN]):
        scores = [f"{value:.3f}" for value in run._scores().values()]
        rows.append((run.run_id, run.config.family.kind, run.config.model.kind, *[*scores, "", ""][:2]))
    return _html.table(("run", "family", "model", "score in training", "held out"), rows) if rows else ""


def _name(thing: Any) -> str:
    return shorten(repr(thing).partition("\n")[0], 80)


def _new_file(thing: Any) -> Path:
    words = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(thing).__name__).lower())
    return Path(tempfile.mkdtemp(prefix="recombine-")) / f"{words.strip('-')}.html"


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    ":root{color-scheme:light dark}img{background:#fff;max-width:100%}.recombine{overflow-x:auto}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{border-bottom:1px solid #8886;padding:.3rem .8rem;"
    "text-align:left;vertical-align:top}"
)

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title><style>{style}</style></head>
<body>{body}</body></html>
"""
