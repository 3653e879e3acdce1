"""A marimo notebook as a page of the site: it is run, and each cell stands with what it shows."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock


def page(path: Path, store: Path, given: Mapping[str, Any]) -> str:
    """Run a notebook.

    Args:
        path: The notebook. It has a cell that defines only `store`.
        store: The store that it uses instead of its own.
        given: Other values that take the place of cells.

    Returns:
        Its cells and what they show, as Markdown with HTML.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = {"store": str(store), **given}
    # As in a notebook, a view shows itself and writes no page.
    with mock.patch("recombine.view.show.in_notebook", return_value=True):
        shown, _ = module.app.run(defs=values)
        left = iter(shown)
        # Cells come in the order of the file. One that defines a given value did not run.
        cells = zip(module.app._cell_manager.codes(), module.app._cell_manager.cells(), strict=True)
        parts = [_cell(code, None if cell.defs & values.keys() else next(left)) for code, cell in cells]
    return "\n\n".join(part for part in parts if part).replace("](../docs/", "](") + "\n"


def _cell(code: str, value: Any) -> str:
    if (text := _markdown(code)) is not None:
        return text
    if code.strip() == "import marimo as mo":
        return ""
    block = f"```python\n{code}\n```"
    return f"{block}\n\n{_html(value)}" if hasattr(value, "_repr_html_") else block


def _markdown(code: str) -> str | None:
    """The text of a cell that is only text."""
    match ast.parse(code).body:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Name("mo"), "md"), [ast.Constant(str(text))]))]:
            return text.strip()
    return None


def _html(value: Any) -> str:
    # Markdown ends a block of HTML at an empty line.
    lines = [line for line in value._repr_html_().splitlines() if line.strip()]
    return '<div class="shown">' + "\n".join(lines) + "</div>"
