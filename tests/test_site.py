"""The site is built, the notebook is run for it, and its checks find what they look for."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without the pages of the API; its notebook trains for a moment."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(SITE / "build.py"), "--quick", "--without-api"]
    command += ["--out", str(folder / "site"), "--work", str(folder / "work")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "needs no server" in done.stdout.splitlines()[-1], "the last line says how to open it"
    return folder / "site"


def test_the_notebook_ran_and_its_results_show_themselves(site):
    page = (site / "first-study.html").read_text()
    assert "data-scaling (smoke)" in page and "control-gains-nothing" in page
    # A figure of the study, the curves of a run, and the figures of an audit.
    assert page.count("data:image/svg+xml") >= 3
    assert "Plan: collect 2 combinations" in page


def test_every_study_has_its_page_and_every_claim_is_evidence(site):
    text = (site / "results" / "evidence-data.js").read_text()
    document = json.loads(text.partition("= ")[2].rstrip(";\n"))
    for path in (ROOT / "docs" / "results").glob("*/verdicts.json"):
        study = path.parent.name
        records = json.loads(path.read_text())
        claims = {
            claim["claim"] for entry in document["studies"] if entry["study"] == study for claim in entry["claims"]
        }
        assert {record["claim"] for record in records} <= claims
        page = (site / "results" / study / "index.html").read_text()
        assert all(figure.name in page for figure in path.parent.glob("*.png"))
    assert all(
        (site / "results" / figure["src"]).exists() for entry in document["studies"] for figure in entry["figures"]
    )


def test_search_works_from_disk(site):
    """Pages that are opened from disk cannot fetch: the index is a script."""
    index = (site / "search.js").read_text()
    assert "coverage-planning" in index
    assert "iframe-worker.js" in (site / "index.html").read_text()


def load(name):
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_check_finds_broken_links_and_other_hosts(tmp_path):
    pages = {
        "index.html": '<h1 id="top">A</h1><a href="b.html#part">b</a><a href="#top">t</a><a href="https://example.org">w</a>',
        "b.html": '<h2 id="part">B</h2><img src="data:image/png;base64,AA=="><a href="index.html">a</a>',
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    check = load("check")
    assert check.problems(tmp_path) == []
    (tmp_path / "folder").mkdir()
    bad = {
        '<a href="c.html">': "c.html does not exist",
        '<a href="b.html#gone">': "b.html#gone has no such anchor",
        '<a href="folder/">': "folder/ is a folder",
        '<a href="javascript:x()">': "javascript:x() is not a link of the site",
        '<script src="https://example.org/x.js"></script>': "loads https://example.org/x.js from another host",
        '<link rel="stylesheet" href="//example.org/x.css">': "loads //example.org/x.css from another host",
        "<style>@import 'https://example.org/y.css';</style>": "loads https://example.org/y.css from another host",
        '<p style="background: url(https://example.org/z.png)">': "loads https://example.org/z.png from another host",
        '<img src="gone.png">': "gone.png does not exist",
    }
    for markup, words in bad.items():
        (tmp_path / "bad.html").write_text(markup)
        (found,) = check.problems(tmp_path)
        assert words in found
    (tmp_path / "bad.html").unlink()
    (tmp_path / "fonts.css").write_text("@font-face { src: url('https://example.org/f.woff2') }")
    assert check.problems(tmp_path) == ["fonts.css loads https://example.org/f.woff2 from another host"]
