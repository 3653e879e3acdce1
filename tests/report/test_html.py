import json
import math
from html.parser import HTMLParser

import pytest

from recombine.errors import BadInput
from recombine.figures.base import Figure
from recombine.figures.theme import message_chart, themed, values
from recombine.report.html import Report, Table, cell, render_report, verdict_counts, write_report

HOSTILE = '</script><script>alert("1")</script><img src=x onerror=alert(2)> & "quoted" \'single\''


def record(**changes):
    made = {
        "claim": "rises",
        "study": "data-scaling",
        "statement": "Held-out R\u00b2 rises.",
        "role": "claim",
        "answer": "holds",
        "effect": 0.38,
        "interval": [0.33, 0.43],
        "margin": 0.05,
        "direction": "greater",
        "replicates": 4,
        "primary": True,
        "p": 0.0001,
        "p_adjusted": 0.0002,
        "note": "",
    }
    return made | changes


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind of element."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.stack = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "link", "br"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        self.stack.pop()

    def handle_data(self, data):
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)


def hostile_chart():
    import altair as alt
    import pandas as pd

    frame = pd.DataFrame({"name": [HOSTILE], "score": [0.5]})
    chart = alt.Chart(values(frame)).mark_bar().encode(x=alt.X("score:Q", title=HOSTILE), y="name:N", tooltip="name:N")
    return themed(chart, HOSTILE)


@pytest.fixture(scope="module")
def hostile():
    """A page on which every text tries to break out."""
    verdict = record(**dict.fromkeys(("claim", "study", "statement", "role", "answer", "direction", "note"), HOSTILE))
    report = Report(
        title=HOSTILE,
        question=HOSTILE,
        answer=HOSTILE,
        verdicts=[verdict],
        figures=[Figure(HOSTILE, HOSTILE, HOSTILE, hostile_chart())],
        tables=[Table(HOSTILE, [HOSTILE, "n"], [[HOSTILE, 1]], HOSTILE)],
        facts={HOSTILE: HOSTILE},
    )
    return render_report(report)


def test_nothing_from_the_data_becomes_an_element(hostile):
    page = Page(hostile)
    assert page.stack == []
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "data-chart": "chart-1"}, {}, {}]
    assert "img" not in {tag for tag, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    for tag in ("title", "h1", "h2", "td", "th", "dt", "dd", "span", "code"):
        assert HOSTILE in "".join(page.texts[tag]), tag


def test_the_chart_arrives_as_it_was(hostile):
    page = Page(hostile)
    (spec,) = [json.loads(text) for text in page.texts["script"] if text.startswith("{")]
    assert spec["description"] == HOSTILE
    assert HOSTILE in json.dumps(spec, ensure_ascii=False).replace('\\"', '"')


def test_the_page_loads_nothing(hostile):
    page = Page(hostile)
    loading = {"src", "href", "srcset", "action", "data", "poster", "background"}
    assert not [one for one in page.elements if loading & set(one[1])]
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    style = "".join(page.texts["style"])
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_the_library_is_there_once(hostile):
    assert hostile.count("window.vegaEmbed") == 1
    assert len(hostile) < 2_000_000


def test_a_verdict_says_word_role_effect_interval_and_margin():
    page = render_report(
        Report("t", "q", "a", [record(answer="does not hold", effect=-0.2, interval=[-0.3, -0.1], role="claim")])
    )
    for words in (
        "does not hold",
        "primary claim",
        "\u22120.20",
        "\u22120.30 to \u22120.10",
        "holds above +0.05",
        "&lt; 0.001",
    ):
        assert words in page
    assert "secondary claim" in render_report(Report("t", "q", "a", [record(primary=False)]))
    assert "precondition" in render_report(Report("t", "q", "a", [record(primary=False, role="precondition")]))


def test_a_claim_on_several_scales_shows_each_of_them():
    scales = [
        {"scale": "R2", "effect": -0.04, "interval": [-0.05, -0.03]},
        {"scale": "log error", "effect": 0.74, "interval": [0.7, 0.78]},
    ]
    verdict = record(answer="depends on the scale", effect=-0.04, interval=[-0.05, -0.03], scales=scales)
    page = render_report(Report("t", "q", "a", [verdict]))
    for words in ("depends on the scale", "effect, R2", "log error", "+0.74, +0.70 to +0.78"):
        assert words in page
    assert "verdict depends primary" in page


def test_the_primary_claim_stands_first():
    page = render_report(Report("t", "q", "a", [record(statement="second", primary=False), record(statement="first")]))
    assert page.index("first</p>") < page.index("second</p>")


def test_an_unknown_word_is_no_class_name(hostile):
    classes = [attributes["class"] for _, attributes in Page(hostile).elements if "class" in attributes]
    assert "verdict inconclusive primary" in classes


def test_an_empty_report_is_a_page():
    page = render_report(Report("title", "question", "answer"))
    assert "question" in page
    assert "vegaEmbed" not in page
    assert Page(page).stack == []


def test_verdicts_without_numbers():
    page = render_report(Report("t", "q", "a", [{"claim": "bare"}, record(effect=None, interval=[None, None], p=None)]))
    assert "no interval" in page


def test_write(tmp_path):
    path = write_report(
        Report("t", "q", "a", [], [Figure("f", "F", "c", message_chart("x"))]), tmp_path / "a" / "r.html"
    )
    assert path == tmp_path / "a" / "r.html"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(path.parent.iterdir()) == [path]
    assert write_report(Report("t", "other", "a"), path).read_text(encoding="utf-8").count("other") >= 1


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(BadInput, match="is a folder"):
        write_report(Report("t", "q", "a"), tmp_path)


def test_rows_have_a_cell_for_each_column():
    with pytest.raises(BadInput, match="2 columns"):
        Table("t", ["a", "b"], [[1, 2], [1]])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\u2013"),
        (math.nan, "\u2013"),
        (0.12345, "0.123"),
        (-0.5, "\u22120.500"),
        (12.345, "12.3"),
        (40, "40"),
        (True, "yes"),
        (0.0, "0.000"),
        (0.00001, "1.00e-05"),
        ("word", "word"),
    ],
)
def test_cells(value, text):
    assert cell(value) == text


def test_numbers_stand_to_the_right():
    page = render_report(Report("t", "q", "a", tables=[Table("t", ["name", "score"], [["a", 0.5], ["b", None]])]))
    assert '<th scope="col" class="number">score</th>' in page
    assert '<th scope="col">name</th>' in page


def test_counts():
    counts = verdict_counts([record(), record(answer="does not hold"), record()])
    assert counts == "3 claims (holds: 2, does not hold: 1)"
    assert verdict_counts([]) == "no claims"
