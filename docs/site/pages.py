"""Collects the pages of the site: those of docs/, one page per study, and one per package of the API.

Nothing is written twice: pages of docs/ are copied, and only their links change where the site has another address.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from recombine.cli.output import effect_text
from recombine.component import find
from recombine.view import write_evidence_page
from recombine.view.evidence_document import entry_id

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
HERE = DOCS / "site"

ASSETS = ("*.png", "*.svg", "*.csv")


def collect(out: Path) -> dict[str, list[Any]]:
    """Write all pages that are not made from code.

    Args:
        out: The folder of pages. It must not exist.

    Returns:
        Entries of the navigation that depend on what there is: those of `Studies`.
    """
    for page in sorted(DOCS.rglob("*.md")):
        inside = page.relative_to(DOCS)
        if inside.name == "note.md" or inside.parts[0] == "site":
            continue
        # The page of a folder is its index.
        _write(
            out / inside.with_name("index.md" if inside.name == "README.md" else inside.name), page.read_text("utf-8")
        )
    for pattern in ASSETS:
        for file in DOCS.rglob(pattern):
            if HERE not in file.parents:
                _copy(file, out / file.relative_to(DOCS))
    for file in HERE.rglob("*.*"):
        if file.suffix == ".md":
            _write(out / file.relative_to(HERE), _with_parts_of_the_readme(file.read_text("utf-8")))
        elif file.suffix in (".css", ".svg", ".js"):
            _copy(file, out / "assets" / file.name)
    _evidence(out / "results")
    return {"Studies": _studies(out / "results")}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(for_the_site(text), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def for_the_site(text: str) -> str:
    """The text with links to pages instead of folders, and without comments for the tests.

    Args:
        text: Markdown whose links are those of the repository.

    Returns:
        Markdown whose links are those of the site.
    """
    text = re.sub(r"^<!-- (?:tested by|from tutorial|verdicts:).*?-->\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"(\]\([^)#\s]*)README\.md", r"\1index.md", text)
    return re.sub(r"(\]\((?!\w+:)[^)#\s]*/)(\)|#)", r"\1index.md\2", text)


def _with_parts_of_the_readme(text: str) -> str:
    """Sections of the README where a page asks for them: `<!-- README: What came out -->`."""
    readme = (ROOT / "README.md").read_text("utf-8")

    def section(asked: re.Match[str]) -> str:
        found = re.search(rf"^## {re.escape(asked[1])}\n\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE)
        if found is None:
            raise SystemExit(f"The README has no section {asked[1]!r}, which a page of the site shows.")
        return found[1].replace("](docs/", "](").strip()

    return re.sub(r"<!-- README: (.*?) -->", section, text)


def _evidence(out: Path) -> None:
    """The document, the script and the style sheets of the page `results/evidence.md`."""
    # The page itself is one of the site. Its frame and style sheet are for a page that stands alone.
    write_evidence_page(DOCS / "results", out).unlink()
    (out / "page.css").unlink()
    theme = out / "theme.css"
    text = theme.read_text("utf-8")
    # Colours follow the site's switch, and only inside the component.
    for there, here in {
        "color-scheme: light dark;": "",
        ":root": "#evidence",
        "@media (prefers-color-scheme: dark)": '[data-md-color-scheme="slate"]',
    }.items():
        if there not in text:
            raise SystemExit(f"The viewer's theme.css has no {there!r} any more: docs/site/pages.py must change too.")
        text = text.replace(there, here)
    theme.write_text(text, encoding="utf-8")


def _studies(out: Path) -> list[Any]:
    """A page for every folder of recorded results, and their entries in the navigation."""
    entries: dict[str, list[Any]] = {}
    for folder in sorted({path.parent for path in (DOCS / "results").rglob("*/*.png")}):
        inside = folder.relative_to(DOCS / "results")
        records = json.loads(text) if (text := _text(folder / "verdicts.json")) else []
        study, group = inside.name, inside.parts[0] if len(inside.parts) > 1 else "laptop"
        question = find("studies", study).profile("laptop").question
        _write(out / inside / "index.md", study_page(folder, study, group, question, records))
        entries.setdefault(group, []).append({study: f"results/{inside}/index.md"})
    for group, pages in entries.items():
        if group != "laptop":
            names = "\n".join(f"- [{name}]({name}/index.md)" for page in pages for name in page)
            _write(out / group / "index.md", f"# Results at {group} size\n\n{names}\n")
    laptop = entries.pop("laptop")
    larger = [{f"At {group} size": [f"results/{group}/index.md", *pages]} for group, pages in entries.items()]
    return [*laptop, *larger]


def study_page(folder: Path, study: str, group: str, question: str, records: list[dict[str, Any]]) -> str:
    """The page of a study: its question, its claims with the answers first, and its figures."""
    title = study if group == "laptop" else f"{study}, {group} size"
    home = "../" if group == "laptop" else "../../"
    lines = [f"# {title}", "", f"**{question}**", ""]
    parts = {
        "Main claims": [record for record in records if record["primary"]],
        "Other claims": [record for record in records if not record["primary"] and record["role"] == "claim"],
        "Preconditions and controls": [record for record in records if record["role"] != "claim"],
    }
    for heading, those in parts.items():
        if those:
            lines += [f"## {heading}", "", "| does it hold? | claim | effect [95 % interval] |", "|---|---|---|"]
            lines += [
                f"| {_answer(one['answer'])} | {_cell(one['statement'])} | {effect_text(one)} |" for one in those
            ] + [""]
    if records:
        anchor = f"{study}-laptop-profile"
        more = f"[Margins, replicates and p-values]({home}verdicts.md#{anchor})"
        evidence = f"[Every claim with its replicates]({home}evidence.html#/{entry_id(study, group)})"
        lines += [f"{evidence}. {more}. [How verdicts are made]({home}../how-verdicts-are-made.md).", ""]
    elif (folder / "verdicts-earlier-claims.json").exists():
        lines += ["The verdicts of this size are about the claims of an earlier version.", ""]
    if note := _text(folder / "note.md"):
        # Its links start from the table of all verdicts, one folder above.
        lines += ["## Note", "", re.sub(r"\]\((?!\w+:|#)", "](../", note.strip()), ""]
    figures = sorted(folder.glob("*.png"))
    if figures:
        lines += ["## Figures", ""]
        for figure in figures:
            name = figure.stem.replace("_", " ")
            lines += [f"![{study}: {name}]({figure.name})", ""]
    if (folder / "overview.csv").exists():
        lines += ["The means over replicates are a table: [overview.csv](overview.csv).", ""]
    lines += ["## Run it", "", "```", f"recombine run {study} --profile {group}", "```", ""]
    return "\n".join(lines)


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _answer(words: str) -> str:
    return f'<span class="answer {words.replace(" ", "-")}">{words}</span>'
