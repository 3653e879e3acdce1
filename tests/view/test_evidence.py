"""The document of the Evidence page, from exported results and from a store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from recombine.errors import BadInput
from recombine.view import evidence, write_evidence_page

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"


def exported(folder: Path, **changes) -> Path:
    """A folder with the exported results of one study, changed."""
    records = json.loads((RESULTS / "data-scaling/verdicts.json").read_text())
    target = folder / "results/data-scaling"
    target.mkdir(parents=True)
    (target / "verdicts.json").write_text(json.dumps([record | changes for record in records]))
    (target / "score_by_size.png").write_bytes((RESULTS / "data-scaling/score_by_size.png").read_bytes())
    return folder / "results"


def test_every_exported_claim_is_there_as_it_was_recorded():
    document = evidence(RESULTS)
    recorded = {
        (record["study"], record["profile"], record["claim"]): record
        for path in RESULTS.rglob("verdicts.json")
        for record in json.loads(path.read_text())
    }
    shown = {
        (study["study"], study["profile"], claim["claim"]): claim
        for study in document["studies"]
        for claim in study["claims"]
    }
    assert shown.keys() == recorded.keys()
    for name, claim in shown.items():
        for field in ("answer", "effect", "interval", "statement", "primary", "replicates"):
            assert claim[field] == recorded[name][field], (name, field)
    ids = [study["id"] for study in document["studies"]]
    assert len(set(ids)) == len(ids), "each result has its own link"


def test_primary_claims_come_first_and_the_answer_is_theirs():
    for study in evidence(RESULTS)["studies"]:
        order = [claim["primary"] for claim in study["claims"]]
        assert order == sorted(order, reverse=True)
        primary = [claim for claim in study["claims"] if claim["primary"]]
        for claim, text in zip(primary, study["answer"], strict=False):
            assert text.lower().startswith(claim["answer"]) and claim["statement"] in text


def test_figures_are_the_images_beside_the_verdicts(tmp_path):
    (study,) = evidence(exported(tmp_path), images="pictures/")["studies"]
    assert [figure["src"] for figure in study["figures"]] == ["pictures/data-scaling/score_by_size.png"]
    assert not evidence(tmp_path / "results", figures=False)["studies"][0]["figures"]


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"no verdicts\.json below it"):
        evidence(tmp_path)
    (tmp_path / "study").mkdir()
    (tmp_path / "study/verdicts.json").write_text('[{"claim": 1}]')
    with pytest.raises(BadInput, match="not understood"):
        evidence(tmp_path)


def test_the_page_is_made_of_files_that_need_no_server_and_no_module(tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>"
    page = write_evidence_page(exported(tmp_path, statement=hostile), tmp_path / "site")
    script = (page.parent / "evidence-page.js").read_text()
    assert "import " not in script and "\nexport " not in script
    data = (page.parent / "evidence-data.js").read_text()
    assert "</script" not in data
    document = json.loads(data.removeprefix("window.recombineEvidence = ").removesuffix(";\n"))
    assert document["studies"][0]["claims"][0]["statement"] == hostile, "the text itself is not changed"
    assert all((page.parent / figure["src"]).is_file() for figure in document["studies"][0]["figures"])


def test_the_runs_behind_a_replicate_are_those_of_its_seed(study_store):
    from recombine.component import find
    from recombine.store import load_store

    store = load_store(study_store)
    (study,) = evidence(store, figures=False)["studies"]
    seeds = {run.run_id: run.config.seeds for run in store.runs()}
    claims = {claim["claim"]: claim for claim in study["claims"]}
    groups = claims["rises"]["runs"]
    design = find("studies", "data-scaling").profile("smoke").design  # pyright: ignore[reportAttributeAccessIssue]
    assert len(groups) == len(claims["rises"]["values"]) == design.study.replicates
    for group in groups:
        assert len({seeds[run].teacher for run in group}) == 1
        assert len(group) == len(design.arms["main"].cells)
    assert len({seeds[group[0]].teacher for group in groups}) == len(groups)
    # The control's claims rest on other runs.
    main = {run for group in groups for run in group}
    assert not {run for group in claims["control-stays-at-zero"]["runs"] for run in group} & main


def test_a_store_gives_the_verdicts_of_its_study(study_store):
    from recombine.design.run import verdicts_of
    from recombine.store import load_store

    store = load_store(study_store)
    (study,) = evidence(study_store, runs=False)["studies"]
    answers = {claim["claim"]: (claim["answer"], claim["effect"]) for claim in study["claims"]}
    assert answers == {record["claim"]: (record["answer"], record["effect"]) for record in verdicts_of(store)}
    assert {figure["name"] for figure in study["figures"]} >= {"score_by_size", "curves"}


def test_the_code_of_the_document_runs(tmp_path, monkeypatch):
    page = (RESULTS.parent / "viewer.md").read_text()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/results").symlink_to(exported(tmp_path))
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    exec(compile(code, "viewer.md", "exec"), {})
    assert (tmp_path / "site/evidence/evidence.html").is_file()


def test_the_document_lists_every_path_of_the_api():
    from recombine.view.server import API

    page = (RESULTS.parent / "viewer.md").read_text()
    missing = [path for _, path, _ in API if path.partition("/{")[0] not in page]
    assert not missing
