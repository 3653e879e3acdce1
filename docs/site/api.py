"""Pages of the API: one per package, from its front door. mkdocstrings makes them of the docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "recombine"

USED_FIRST = (
    "run",
    "train",
    "sweep",
    "view",
    "audit",
    "audit_table",
    "audit_model",
    "ask_model",
    "make_plan",
    "load_store",
)


def public_names(init: Path) -> dict[str, str]:
    """The public names of a front door, each with the module that it comes from, in order of appearance."""
    block = init.read_text("utf-8").partition("if TYPE_CHECKING:\n")[2]
    found = re.findall(r"^    from (\S+) import (\([^)]*\)|[^\n]*)", block, re.MULTILINE)
    return {name: module for module, names in found for name in re.findall(r"\w+ as (\w+)", names)}


def write(out: Path) -> list[Any]:
    """Write the pages of the API.

    Args:
        out: The folder `api` of the site's pages.

    Returns:
        Their entries in the navigation.
    """
    out.mkdir(parents=True, exist_ok=True)
    entries: list[Any] = [{"Packages": "api/index.md"}]
    rows = []
    for init in sorted(PACKAGE.rglob("__init__.py")):
        package = ".".join(init.parent.relative_to(PACKAGE.parent).parts)
        names = {name: module for name, module in public_names(init).items() if module != package}
        if not names:
            continue
        summary = (ast.get_docstring(ast.parse(init.read_text("utf-8"))) or "").strip()
        short = package.removeprefix("recombine.")
        (out / f"{short}.md").write_text(_page(package, summary, names), encoding="utf-8")
        entries.append({short: f"api/{short}.md"})
        rows.append(f"| [{package}]({short}.md) | {_first_sentence(summary)} | {len(names)} |")
    (out / "index.md").write_text(_index(rows), encoding="utf-8")
    return entries


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _index(rows: list[str]) -> str:
    return "\n".join(
        [
            "# API",
            "",
            "Every package has a front door that exports its public names, for example `rc.supports.Random`. The pages are made from docstrings.",
            "",
            "| package | what it has | names |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _page(package: str, summary: str, names: dict[str, str]) -> str:
    lines = [f"# {package}", "", summary, ""]
    ordered = sorted(
        names, key=lambda name: (name not in USED_FIRST, USED_FIRST.index(name) if name in USED_FIRST else 0)
    )
    for name in ordered if package == "recombine" else names:
        lines += [f"::: {names[name]}.{name}", ""]
    return "\n".join(lines)
