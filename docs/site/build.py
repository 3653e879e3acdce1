"""Builds the site: collects the pages, runs Zensical on them, and checks every link of what came out.

Run as `make docs`. The pages are put together in build/site-pages, and the finished site replaces the folder site/.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import api
import check
import notebook
import pages

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder of the finished site")
    parser.add_argument("--quick", action="store_true", help="the notebook trains for a moment, which decides nothing")
    parser.add_argument("--without-api", action="store_true", help="leave out the pages of the API")
    parser.add_argument("--work", type=Path, default=ROOT / "build", help="a folder for pages on the way, and for runs")
    options = parser.parse_args()
    build(options.work, options.out, with_api=not options.without_api, quick=options.quick)
    print(f"The site is built. Open {options.out / 'index.html'} in a browser; it needs no server.")


def build(work: Path, out: Path, *, with_api: bool = True, quick: bool = False) -> None:
    """Build the site.

    Args:
        work: A folder for the pages on the way, and for the runs of the notebook, which are kept.
        out: The finished site. It is replaced only by a site without broken links.
        with_api: Whether to make the pages of the API.
        quick: Whether the notebook trains for a moment only.
    """
    runs = work.resolve() / ("notebook-quick" if quick else "notebook")
    work = work.resolve() / "site-pages"
    shutil.rmtree(work, ignore_errors=True)
    entries = pages.collect(work / "pages")
    # The runs of the notebook are kept, so that it trains once.
    text = notebook.page(ROOT / "examples" / "first_study.py", runs, {"settings": {}} if quick else {})
    (work / "pages" / "first-study.md").write_text(pages.for_the_site(text), encoding="utf-8")
    entries["API"] = api.write(work / "pages" / "api") if with_api else _placeholder(work / "pages" / "api")
    (work / "zensical.toml").write_text(_configuration(entries), encoding="utf-8")
    _zensical(work)
    if wrong := check.problems(work / "built"):
        raise SystemExit("The site has faults:\n" + "\n".join(wrong))
    shutil.rmtree(out, ignore_errors=True)
    shutil.move(work / "built", out)


def _placeholder(folder: Path) -> list[Any]:
    folder.mkdir(parents=True)
    (folder / "index.md").write_text("# API\n\nThis build has no pages of the API.\n", encoding="utf-8")
    return ["api/index.md"]


def _configuration(entries: dict[str, list[Any]]) -> str:
    """The configuration with the entries that depend on what there is, and the folder of the sources."""
    text = (HERE / "zensical.toml").read_text("utf-8")
    for name, found in entries.items():
        text, count = re.subn(rf'{{ "{name}" = \[[^\]]*\] }}', lambda _, one={name: found}: _inline(one), text)
        assert count == 1, f"zensical.toml has no entry {name!r} of its own"
    source = f"\n[project.plugins.mkdocstrings.handlers.python]\npaths = [{json.dumps(str(ROOT / 'src'))}]\n"
    text = text.replace("\n[project.plugins.mkdocstrings.handlers.python]\n", source)
    tomllib.loads(text)
    return text


def _inline(value: Any) -> str:
    """A value as TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_inline(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _zensical(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode or not (folder / "built" / "index.html").exists():
        raise SystemExit(f"Zensical failed:\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    main()
