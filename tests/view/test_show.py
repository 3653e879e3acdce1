"""`rc.view` shows things in a notebook's cell, and as pages elsewhere."""

from __future__ import annotations

import sys
import types
from typing import Any

import pandas as pd
import pytest

import recombine as rc
from recombine.errors import BadInput
from recombine.view import show

CONFIG = rc.RunConfig(
    space=rc.SubsetSpace(modules=6, max_active=2),
    support=rc.supports.Random(number=12),
    model=rc.models.MLP(width=8, depth=1),
    recipe=rc.recipes.Fast(steps=4, tasks=8),
    eval_every=2,
)

view: Any = rc.view


@pytest.fixture(scope="module")
def outcome():
    return rc.train(CONFIG)


@pytest.fixture(scope="module")
def store(outcome, tmp_path_factory):
    made = rc.Store(tmp_path_factory.mktemp("shown") / "runs")
    made.commit(outcome)
    return made


@pytest.fixture(scope="module")
def audit():
    rows = [
        (colour, thing, float((colour, thing) != ("red", "<b>box")))
        for colour in ("red", "blue")
        for thing in ("<b>box", "cup")
    ]
    frame = pd.DataFrame(rows * 3, columns=["colour", "thing", "score"])
    call: Any = rc.audit
    return call(frame, factors=["colour", "thing"], scores="score")


@pytest.fixture
def notebook(monkeypatch):
    """As if this code ran in a cell of marimo."""
    monkeypatch.setitem(sys.modules, "marimo", types.SimpleNamespace(running_in_notebook=lambda: True))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal without a graphical display, and what browsers were asked to open."""
    opened: list[str] = []
    monkeypatch.setattr(show, "in_notebook", lambda: False)
    monkeypatch.setattr(show, "has_browser", lambda: False)
    monkeypatch.setattr(show.webbrowser, "open", opened.append)
    return opened


def things(outcome, store, audit):
    plan = rc.make_plan(rc.ProductSpace(factors={"a": 2, "b": 3}), strength=2)
    return [outcome, store.load(outcome.config), store, audit, audit.figures[0], plan, CONFIG.space]


def test_a_terminal_gets_a_page_that_needs_no_network(outcome, store, audit, terminal, capsys):
    for thing in things(outcome, store, audit):
        shown = view(thing)
        assert capsys.readouterr() == ("", f"page: {shown.path}\n")
        page = shown.path.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in page and page.rstrip().endswith("</html>")
        assert "<b>box" not in page.replace("\\u003cb>box", ""), "names from data are no markup"
    assert terminal == []


def test_a_notebook_shows_the_thing_with_its_figures_and_writes_nothing(outcome, store, audit, notebook, capsys):
    for thing in things(outcome, store, audit):
        shown = view(thing)
        assert shown.path is None and capsys.readouterr() == ("", "")
        # Up to the first figure: the names inside a drawn one are never the same twice.
        assert thing._repr_html_().partition("<img")[0] in shown._repr_html_()
    assert view(outcome)._repr_html_().count("data:image/svg+xml") == 1
    assert view(audit)._repr_html_().count("data:image/svg+xml") == len(audit.figures) > 0
    assert outcome.config.run_id in view(store)._repr_html_()


def test_the_page_goes_where_it_is_asked_to_go_and_opens_if_asked(outcome, terminal, tmp_path):
    shown = view(outcome, tmp_path / "run.html", browser=True)
    assert shown.path == tmp_path / "run.html"
    assert terminal == [(tmp_path / "run.html").as_uri()]


def test_a_cell_of_jupyter_counts_as_a_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    for shell, inside in ((None, False), (types.SimpleNamespace(), False), (types.SimpleNamespace(kernel=1), True)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert show.in_notebook() is inside


def test_what_cannot_be_shown_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no view of 3, which is of type int"):
        view(3)
    with pytest.raises(BadInput, match=r"cannot be written to page\.txt"):
        view(CONFIG.space, tmp_path / "page.txt")
