"""The JSON API: what pages ask for, and clear refusals."""

from __future__ import annotations

import json
import shutil

import pytest

from recombine.plan import make_plan, read_spec
from recombine.store import load_store

from .conftest import HELD_OUT


def test_evidence_is_that_of_the_store_and_then_of_the_folder(client):
    studies = client.get("evidence")["studies"]
    assert [study["live"] for study in studies] == [True] + [False] * (len(studies) - 1)
    assert len({study["id"] for study in studies}) == len(studies)
    assert studies[0]["id"] == "data-scaling.smoke"
    figure = studies[1]["figures"][0]
    status, headers, body = client.ask("GET", f"/{figure['src']}")
    assert status == 200 and headers["content-type"] == "image/png" and body.startswith(b"\x89PNG")


def test_the_runs_behind_each_point_exist(client, study_store):
    behind = client.get("evidence/data-scaling.smoke/runs")
    names = set(load_store(study_store).names())
    assert behind and all(group and set(group) <= names for groups in behind.values() for group in groups)


def test_figures_of_a_study_are_drawn_once(client):
    first = client.get("evidence/data-scaling.smoke/figures")
    assert {figure["name"] for figure in first} >= {"score_by_size", "curves"}
    assert client.get("evidence/data-scaling.smoke/figures") == first


def test_rows_are_filtered_sorted_and_paged_as_the_index_does(client, study_store):
    index = load_store(study_store).index
    where = "score_held_out > 0.45"
    expected = index.frame(where=where, sort="-score_held_out", columns=("run", "score_held_out"))
    found = client.get("runs?where=score_held_out%20%3E%200.45&sort=-score_held_out&columns=score_held_out&limit=500")
    assert [row[0] for row in found["rows"]] == list(expected["run"]) and found["found"] == len(expected) > 0
    page = client.get("runs?sort=-score_held_out&columns=score_held_out&offset=2&limit=2")
    everything = client.get("runs?sort=-score_held_out&columns=score_held_out")
    assert page["rows"] == everything["rows"][2:4] and page["found"] == everything["found"] == len(index)


def test_columns_shown_first_are_those_that_differ(client):
    known = client.get("columns")
    assert known["shown"][:3] == ["run", "family", "model"]
    assert {"support.number", "score_held_out"} <= set(known["shown"])
    varied = {column["name"] for column in known["columns"] if column["distinct"] > 1}
    settings = [name for name in known["shown"] if "." in name]
    assert settings and set(settings) <= varied


def test_groups_have_means(client):
    found = client.get("groups?by=support.number&columns=score_held_out&where=family%20%3D%20%27hyperteacher%27")
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    means = {row["support.number"]: row["score_held_out"] for row in rows}
    assert means == {number: pytest.approx(score + 0.005) for number, score in HELD_OUT.items()}


def test_a_plot_has_its_runs(client):
    figure = client.get("plot?x=support.number&y=score_held_out&by=family")
    assert figure["runs"] == client.get("runs")["runs"] and "$schema" in figure["spec"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("runs?where=nonsense%20%3E%201", "nonsense"),
        ("runs?where=1;drop", "filter"),
        ("runs?limit=-1", "whole number"),
        ("runs?sort=nothing", "nothing"),
        ("runs?colour=red", "takes no"),
        ("plot?x=width", "needs 'y'"),
        ("plot?x=support.number&y=family", "text"),
        ("runs/ffff", "not the name of a run"),
        ("evidence/nothing/figures", "no result"),
        ("forms/study/nothing", "no study"),
        ("audits/audit-99", "was started"),
    ],
)
def test_bad_requests_say_what_is_wrong(client, path, words):
    status, answer = client.refused("GET", path)
    assert status == 400 and words in answer["error"], answer


def test_a_run_has_its_settings_scores_line_and_figures(client, study_store):
    run = next(load_store(study_store).runs())
    page = client.get(f"runs/{run.run_id[:10]}")
    assert page["run"] == run.run_id and page["scores"]["r2_held_out"] == page["scores"]["score_held_out"]
    settings = {entry["name"]: entry["value"] for entry in page["settings"]}
    assert settings["support.number"] == run.config.support.number
    assert page["line"]["run"] == run.run_id and page["line"]["parents"] == []
    assert page["requests"] == [{"kind": "study", "name": "data-scaling-smoke"}]
    for figure in page["figures"]:
        made = client.get(f"runs/{run.run_id}/figures/{figure['name']}")
        if figure["name"] == "task":
            assert "no picture" in made["nothing"]
        else:
            assert made["spec"] and made["title"]


def test_growth_of_a_plan_ends_at_its_coverage(client, tmp_path):
    text = "factors: {a: [1, 2, 3], b: [x, y, z], c: [p, q]}\nforbid: [a = 1 and b = x]\n"
    made = client.post("plan", {"text": text})
    (tmp_path / "plan.yaml").write_text(text)
    expected = make_plan(**vars(read_spec(tmp_path / "plan.yaml")))
    assert made["rows"] == expected.names and made["covered"] == expected.covered
    assert made["growth"] == sorted(made["growth"]) and made["growth"][-1] == expected.covered
    assert len(made["growth"]) == len(made["rows"])


def test_growth_counts_what_was_collected_before(client):
    text = "factors: {a: [1, 2], b: [x, y]}\ncollected: [[1, x], [2, y]]\n"
    made = client.post("plan", {"text": text})
    assert made["covered_before"] == 2 and made["growth"] == [3, 4]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": ""}, "no space"),
        ({"text": "factors: ["}, "plan.yaml, line"),
        ({"text": "factors: {a: [1, 2]}\ncollected: /etc/passwd"}, "not a file"),
        ({"text": "x", "format": "../../x"}, "no format"),
        ({"text": "factors: {a: [1, 2], a: [1]}"}, "twice"),
    ],
)
def test_a_bad_plan_says_what_is_wrong_and_reads_no_file(client, body, words):
    status, answer = client.refused("POST", "plan", body)
    assert status == 400 and words in answer["error"] and "/tmp" not in answer["error"]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("x.csv", b"", "empty"),
        ("x.exe", b"MZ", "no table"),
        ("x.csv", b"a,b\n", "no rows"),
        ("x.parquet", b"no parquet", "x.parquet"),
        ("x.jsonl", b"[1, 2", "x.jsonl"),
    ],
)
def test_an_upload_that_is_no_table_is_refused(client, name, body, words):
    status, _, answer = client.ask("POST", f"/api/tables?name={name}", body)
    assert status == 400 and words in json.loads(answer)["error"], answer
    assert "/tmp" not in answer.decode()


def test_an_upload_is_described_with_a_guess_of_roles(client):
    table = b"object,colour,id,success\n" + b"".join(
        b"%s,%s,%d,%d\n" % (thing, colour, number, number % 2)
        for number, (thing, colour) in enumerate((t, c) for t in (b"dog", b"cat") for c in (b"red", b"blue", b"green"))
    )
    _, _, answer = client.ask("POST", "/api/tables?name=%3Cb%3E.csv", table)
    described = json.loads(answer)
    assert {column["name"]: column["role"] for column in described["columns"]} == {
        "object": "factor",
        "colour": "factor",
        "id": "none",
        "success": "score",
    }
    assert described["rows"] == 6 and described["head"][0] == ["dog", "red", "0", "0"]
    assert client.refused("POST", "audits", {"table": "../../x", "factors": ["a"], "scores": ["b"]})[0] == 400
    assert (
        "factor"
        in client.refused("POST", "audits", {"table": described["table"], "factors": [], "scores": []})[1]["error"]
    )


def test_a_form_has_the_settings_of_the_schema(client):
    form = client.get("forms/study/data-scaling")
    fields = {field["name"]: field for field in form["fields"]}
    assert fields["replicates"]["type"] == "whole" and fields["replicates"]["least"] == 0
    assert form["profiles"]["smoke"]["replicates"] == 2 and fields["replicates"]["description"]
    settings = client.post("forms/settings", {"settings": {"family": "hyperteacher", "model": "transformer"}})
    by_name = {field["name"]: field for field in settings["fields"]}
    assert by_name["model"]["value"] == "transformer" and "mlp" in by_name["model"]["choices"]
    assert "model.heads" in by_name and not any(name.startswith("seeds") for name in by_name)


@pytest.mark.parametrize(
    "body",
    [
        {"what": "study", "study": "--help", "profile": "smoke"},
        {"what": "study", "study": "data-scaling", "profile": "--store=/etc"},
        {"what": "study", "study": "data-scaling", "profile": "smoke", "overrides": ["--report=/tmp/x"]},
        {"what": "study", "study": "data-scaling", "profile": "smoke", "overrides": ["a=1\n--report=x"]},
        {"what": "study", "study": "data-scaling", "profile": "smoke", "overrides": "replicates=1"},
        {"what": "sweep", "sweep": {"name": "../../x"}},
        {"what": "sweep", "sweep": []},
        {"what": "resume", "name": "--dry-run"},
        {"what": "rm"},
        {},
    ],
)
def test_no_text_of_a_page_becomes_an_option_or_a_path(client, body):
    for path in ("jobs", "dry-run"):
        assert client.refused("POST", path, body)[0] == 400
    assert client.get("jobs") == []


def test_what_is_no_json_is_refused(client):
    for body in (b"[1]", b"{", b"\xff", b"[" * 100_000):
        assert client.ask("POST", "/api/plan", body)[0] == 400


def test_a_store_may_vanish_and_come_back(serving, study_store, tmp_path):
    place = tmp_path / "moving"
    client = serving(place)
    state = client.get("state")
    assert state["exists"] is False and client.get("evidence")["studies"] == []
    status, answer = client.refused("GET", "columns")
    assert status == 503 and "no store" in answer["error"]
    shutil.copytree(study_store, place)
    assert client.get("state")["exists"] and client.get("columns")["runs"] > 0
    place.rename(tmp_path / "elsewhere")
    assert client.refused("GET", "columns")[0] == 503
    (tmp_path / "elsewhere").rename(place)
    assert client.get("columns")["runs"] > 0


def test_damage_and_a_newer_format_are_told_and_the_rest_is_shown(serving, study_store, tmp_path):
    place = tmp_path / "damaged"
    shutil.copytree(study_store, place)
    runs = sorted((place / "runs").iterdir())
    (runs[0] / "manifest.json").write_text("{")
    (runs[1] / "manifest.json").unlink()  # A run half written: no manifest yet.
    (place / "studies" / "data-scaling-smoke.json").write_text("{}")
    marker = json.loads((place / "recombine.json").read_text())
    (place / "recombine.json").write_text(json.dumps(marker | {"format": marker["format"] + 1}))
    client = serving(place)
    assert client.get("columns")["runs"] == len(runs) - 2
    assert client.get("evidence")["studies"] == []
    state = client.get("state")
    assert any(runs[0].name in problem for problem in state["problems"]) and "newer" in state["warning"]
    status, answer = client.refused("GET", f"runs/{runs[0].name}")
    assert status == 503 and "cannot be read" in answer["error"]


def test_many_tabs_ask_at_once(client):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: client.ask("GET", "/api/state")[0], range(200)))
    assert answers == [200] * 200
