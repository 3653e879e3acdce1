import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from recombine.audit.audit import audit_cells
from recombine.audit.cells import Cells, Factor
from recombine.audit.findings import (
    Advice,
    Audit,
    DecodabilityFinding,
    Deviation,
    Fit,
    GapFinding,
    Identification,
    Lowest,
    PartsFinding,
    ScoreFinding,
    Site,
    Stratum,
    SupportFinding,
)
from recombine.errors import BadInput
from recombine.figures.embed import vega_bundle
from recombine.plain import plain
from recombine.report.audit.answer import answer
from recombine.report.audit.page import render_audit, write_audit
from recombine.stats.intervals import Interval

HOSTILE = "</script><script>alert(\"1\")</script><img src=x onerror=alert(2)> & 'q' \u202eevil \x00\x1b[31m\n\ud800 العربية 动作"


def interval(estimate, half=0.1, method="t over combinations"):
    return Interval(estimate, estimate - half, estimate + half, 20, 0.95, method)


def cells(factors=None, trained=None, seed=0, fill=1.0):
    """Every combination of two factors, or a part of them."""
    factors = factors or {"colour": ("red", "blue", "grey"), "shape": ("cube", "ball", "cone", "ring")}
    (first, down), (second, across) = factors.items()
    rng = np.random.default_rng(seed)
    grid = np.argwhere(rng.random((len(down), len(across))) <= fill)
    mean = rng.integers(0, 5, size=(len(grid), 1)) / 4
    return Cells(
        factors=(Factor(first, down, (first,)), Factor(second, across, (second,))),
        constituents=grid + np.array([0, len(down)]),
        slots=(first, second),
        scores=("success",),
        binary=(True,),
        count=np.full(len(grid), 4),
        mean=mean,
        spread=4 * mean * (1 - mean),
        trained=None if trained is None else rng.random(len(grid)) < trained,
    )


REFUSED = PartsFinding(
    Identification(
        12,
        20,
        0,
        3,
        4.0,
        False,
        ("12 combinations cannot carry 20 parameters.",),
        ("Collect 9 more.",),
        (("colour=red",),),
    )
)


def finding(**changes):
    """A score of which nothing is known but its mean."""
    made = {"score": "success", "rows": 48, "overall": interval(0.5), "gap": None, "parts": REFUSED}
    return ScoreFinding(**(made | {"decodability": None, "advice": ()} | changes))


def audit(of, *scores, **changes):
    made = {"source": "/somewhere/table.csv", "combinations": len(of.constituents), "space_size": 10**30, "rows": 48}
    made |= {"factors": {one.name: len(one.values) for one in of.factors}, "support": None, "notes": ()}
    return Audit(**(made | {"scores": scores or (finding(),)} | changes))


def full(name):
    """All that can be said, with one text everywhere."""
    deviation = Deviation(f"{name} + {name}", interval(-1.0, method="shrunken"), 0.01, "logit")
    found = Identification(12, 6, 6, 1, 4.0, True, (), (name,), rank=6)
    fits = tuple(Fit(link, {name: 0.1}, interval(0.5), 0.005, name) for link in ("logit", "log"))
    parts = PartsFinding(found, fits, True, (deviation,), (deviation,), name, (deviation,), (name,))
    sites = tuple(Site(f"{name} {k}", name, interval(0.6), 0.25, 0.3, 0.3) for k in range(3))
    inside = DecodabilityFinding(sites, {name: f"{name} 1"}, interval(0.3), name, {name: interval(0.6)})
    strata = (Stratum("trained", 8, 32, interval(0.9)), Stratum(name, 4, 16, interval(0.2)))
    advice = (
        Advice("collect-pairs", name, name, ((f"{name}={name}", f"shape={name}"), (f"{name}=red", "shape=cube"))),
        Advice("composes", name, name),
    )
    return finding(
        score=name,
        gap=GapFinding(strata, interval(0.4), interval(0.3), name),
        parts=parts,
        decodability=inside,
        advice=advice,
        lowest=(Lowest(name, 0.0, 4),),
    )


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind of element."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.stack = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)

    def text(self, tag):
        return " ".join(" ".join(self.texts.get(tag, [])).split())

    def charts(self):
        return [json.loads(text) for text in self.texts.get("script", []) if text.startswith("{")]


@pytest.fixture(scope="module")
def hostile():
    """A page on which every text tries to break out."""
    of = cells({HOSTILE: (HOSTILE, "red", "x" * 900), "shape": ("cube", f"{HOSTILE} 2", "1", "2")}, trained=0.5)
    of = dataclasses.replace(of, scores=(HOSTILE,), notes=(HOSTILE,))
    support = SupportFinding(6, (HOSTILE,), ((HOSTILE, HOSTILE),), 1, ((HOSTILE,),), 0.5, {1: 0.5}, (HOSTILE,))
    whole = audit(of, full(HOSTILE), source=HOSTILE, support=support, notes=(HOSTILE,))
    return render_audit(whole, of)


def test_nothing_from_the_data_becomes_an_element(hostile):
    page = Page(hostile)
    assert page.stack == []
    assert {"img", "iframe", "link", "object", "base", "form"} & {tag for tag, _ in page.elements} == set()
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    charts = [one for one in scripts if one.get("type") == "application/json"]
    assert len(scripts) == len(charts) + 3, "what draws, what is drawn with, and what copies"
    assert len(charts) == 6
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_every_text_of_the_data_is_there_and_nothing_in_it_is_hidden(hostile):
    page = Page(hostile)
    for tag in ("p", "td", "th", "li", "dt"):
        assert '</script><script>alert("1")</script><img' in page.text(tag), tag
    assert not re.search("[\u202e\u0000\u001b\ud800]", hostile)
    assert "\\u202eevil \\x00\\x1b[31m\\n\\ud800 العربية 动作" in page.text("p")
    for chart in page.charts():
        assert "\u202e" not in json.dumps(chart, ensure_ascii=False)


def test_the_page_names_no_place_on_a_network():
    of = cells(trained=0.5)
    page = render_audit(audit(of, full("name")), of)
    bundle = vega_bundle()
    assert page.count(bundle) == 1
    rest = page.replace(bundle, "")
    assert re.findall(r"\b\w+://|[\"'(=]//|\burl\(|@import", rest) == []
    assert {one["href"][0] for _, one in Page(page).elements if "href" in one} <= {"#"}
    assert not [one for _, one in Page(page).elements if "src" in one]
    # Names of XML spaces and schemas, which nobody loads: the policy forbids it.
    hosts = set(re.findall(r"https?://([\w.-]+)", bundle))
    assert hosts <= {"www.w3.org", "vega.github.io", "github.com"}
    (policy,) = [one["content"] for _, one in Page(page).elements if "http-equiv" in one]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == 3
    assert "http" not in policy


def test_the_answer_comes_first_then_what_to_do_then_the_map():
    of = cells(trained=0.5)
    support = SupportFinding(6, (), (), 0, (("a",),), 1.0, {1: 0.0}, ("Trained on 6 combinations.",))
    page = render_audit(audit(of, full("name"), support=support, notes=("Three rows were set aside.",)), of)
    heads = [
        "It fails if two values never met",
        "What to do",
        "Map of the combination space",
        "Trained and held out",
        "Parts or combination?",
        "Inside the model",
        "What training covers",
        "Trained on 6 combinations.",
        "What was read",
        "Three rows were set aside.",
        "Methods",
    ]
    places = [page.index(head) for head in heads]
    assert places == sorted(places)
    assert "48 rows; 12 of about 10^30 possible combinations scored (3 colour" in page


def test_combinations_to_collect_are_a_table_with_a_column_a_place():
    of = cells()
    advice = Advice("cannot-tell", "Collect.", "numbers", (("colour=red", "shape=a=b"), ("colour=blue", "shape=cube")))
    page = Page(render_audit(audit(of, finding(advice=(advice,))), of))
    assert ("table", {"id": "collect-1-1"}) in page.elements
    assert next(one for tag, one in page.elements if tag == "button")["data-copy"] == "collect-1-1"
    titles = [one["title"] for tag, one in page.elements if tag == "td" and one.get("class") == "name"]
    assert titles[:4] == ["red", "a=b", "blue", "cube"]


def test_a_table_that_says_little_has_a_page():
    of = cells()
    page = Page(render_audit(audit(of), of))
    assert "What training covers" not in page.text("h2")
    assert "Trained and held out" not in page.text("h2")
    assert "Inside the model" not in page.text("h2")
    assert "12 combinations cannot carry 20 parameters." in page.text("p")
    assert "No rule applies" in page.text("p")
    assert "unknown" in page.text("dd")
    assert len(page.charts()) == 1


def test_one_stratum_of_one_combination_has_a_row_without_a_bar():
    of = dataclasses.replace(cells(), trained=np.zeros(12, dtype=bool))
    gap = GapFinding((Stratum("a part unseen", 1, 4, None),), None, None, "No trained combination was evaluated.")
    page = Page(render_audit(audit(of, finding(gap=gap, overall=None)), of))
    assert "A point without a bar has no interval." in page.text("p") or "There are no intervals." in page.text("p")
    assert "No trained combination was evaluated." in page.text("p")


def test_nothing_stands_out():
    found = Identification(12, 6, 6, 1, 4.0, True, (), ())
    fits = (Fit("identity", {"colour": 0.0}, interval(0.0), 0.9, "crossed random effects"),)
    of = cells()
    page = Page(render_audit(audit(of, finding(parts=PartsFinding(found, fits, False, verdict="Parts suffice."))), of))
    assert "No value and no pair stands out" in page.text("p")
    assert "Parts suffice." in page.text("p")


def test_several_scores_have_a_part_each():
    of = dataclasses.replace(
        cells(),
        scores=("success", "present"),
        binary=(True, False),
        mean=np.linspace(0, 9, 24).reshape(12, 2),
        spread=np.zeros((12, 2)),
    )
    page = Page(render_audit(audit(of, finding(), finding(score="present")), of))
    assert [one["href"] for _, one in page.elements if "href" in one] == ["#score-1", "#score-2"]
    assert [one["id"] for tag, one in page.elements if tag == "h2" and one.get("id", "").startswith("score")] == [
        "score-1",
        "score-2",
    ]
    assert len(page.charts()) == 2


def test_many_levels_make_a_page_that_opens():
    factors = {"subject": tuple(f"s{k}" for k in range(300)), "predicate": tuple(f"p{k}" for k in range(200))}
    of = cells(factors, trained=0.3, fill=0.1)
    page = render_audit(audit(of), of)
    assert "36 of 300 subject and 36 of 200 predicate" in page
    assert len(page) - len(vega_bundle()) < 400_000


def test_sets_have_a_map_of_pairs():
    of = Cells(
        factors=(Factor("tools", ("saw", "axe", "file"), ("tools",), "set"),),
        constituents=np.array([[0, -1], [0, 1], [1, 2]]),
        slots=("tools", "tools"),
        scores=("success",),
        binary=(True,),
        count=np.array([2, 2, 2]),
        mean=np.array([[1.0], [0.5], [0.0]]),
        spread=np.zeros((3, 1)),
    )
    advice = Advice("join-groups", "Collect.", "numbers", (("tools=saw", "tools=file"),))
    page = Page(render_audit(audit(of, finding(advice=(advice,))), of))
    assert "On the diagonal" in page.text("p")
    assert "saw; file" in page.text("td")


def strata(**means):
    names = {"trained": "trained", "met": "all pairs met", "unmet": "some pairs unmet"}
    made = tuple(Stratum(names[key], 9, 36, interval(mean)) for key, mean in means.items())
    return GapFinding(made, interval(0.3), interval(0.2))


@pytest.mark.parametrize(
    ("rules", "gap", "words", "tone"),
    [
        (["memorises"], strata(trained=0.95, met=0.4), "It memorises: 0.95 on trained", "contradicted"),
        (["collect-pairs"], strata(trained=0.9, unmet=0.3), "0.30, compared with 0.90 on trained", "contradicted"),
        (
            ["collect-pairs", "composes"],
            strata(trained=0.9, met=0.8, unmet=0.3),
            "recombines pairs that met in training",
            "contradicted",
        ),
        (
            ["coverage-fine-model-limit"],
            strata(trained=0.9, met=0.7),
            "recombines partly: 0.90 on trained",
            "contradicted",
        ),
        (["composes"], strata(trained=0.9, met=0.9), "Do.", "supported"),
        (
            ["undecided"],
            strata(trained=0.9, met=0.8),
            "do not decide whether it recombines: the mean of trained combinations minus that of held-out ones is +0.20",
            "inconclusive",
        ),
        (
            ["one-side-only"],
            strata(trained=0.9),
            "trained and held-out combinations were not both scored",
            "inconclusive",
        ),
        (["solved", "no-training-information"], None, "It solves all combinations: the mean is 0.50", "supported"),
        (["low-everywhere"], None, "this table cannot separate parts from combinations", "contradicted"),
        ([], None, "no training combinations were given", "inconclusive"),
    ],
)
def test_the_answer_follows_from_the_rules(rules, gap, words, tone):
    said = answer(finding(gap=gap, advice=tuple(Advice(rule, "Do.", "numbers") for rule in rules)))
    assert words in said.sentence
    assert said.tone == tone
    assert said.sentence.endswith(".")


def test_low_everywhere_with_training_is_the_models_limit():
    low = Advice("coverage-fine-model-limit", "Scores are low everywhere.", "numbers")
    said = answer(finding(gap=strata(trained=0.2, met=0.2), overall=interval(0.2), advice=(low,)))
    assert "fails even on trained combinations (0.20" in said.sentence


def test_methods_are_sections_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "methods-audit.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
    of = cells(trained=0.5)
    support = SupportFinding(6, (), (), 0, (("a",),), 1.0, {1: 0.0}, ())
    page = Page(render_audit(audit(of, full("name"), support=support), of))
    named = {plain(one) for one in re.findall("section “([^”]+)”", page.text("p"))}
    assert named == {"Coverage", "Strata and gap", "Parts or combination", "Decodability"}
    assert named | {"Advice rules"} <= sections


def test_a_whole_audit_has_a_page():
    # A row of the grid: nothing is identified, so nothing has to be fitted.
    of = cells({"colour": ("red",), "shape": tuple("abcdefgh")}, trained=0.6)
    page = Page(render_audit(audit_cells(of, source="table.csv"), of))
    assert page.stack == []
    assert "recombine audit: table.csv" in page.text("title")


def test_the_page_is_written_whole(tmp_path):
    of = cells()
    path = write_audit(audit(of), of, tmp_path / "deep" / "audit.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(BadInput, match="is a folder"):
        write_audit(audit(of), of, tmp_path)
