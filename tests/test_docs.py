"""The documents hold no leftovers, their links lead somewhere, and the code of docs/extending.md works."""

import re
from pathlib import Path
from typing import Any

import pytest

import recombine as rc

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_no_placeholder_is_left():
    wrong = [
        f"{page.relative_to(ROOT)}: {word}"
        for page in PAGES
        for word in re.findall(r"@[A-Z]+@|TODO|FIXME|XXX", page.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_links_lead_somewhere():
    wrong = [
        f"{page.relative_to(ROOT)} links to {target}"
        for page in PAGES
        # Links of pages that only the site has are those of the site; tests/test_site.py builds it.
        if ROOT / "docs" / "site" not in page.parents
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def extending():
    """The Python blocks of docs/extending.md."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL | re.MULTILINE)


def test_the_study_of_the_page_goes_from_its_file_to_verdicts(extending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, run, inside, share, *_ = extending
    assert len(study.splitlines()) <= 60
    names = {"__name__": "rotation"}
    for block in (study, run, inside, share):
        exec(compile(block, "extending.md", "exec"), names)
    result: Any = names["result"]
    verdicts = result.verdicts.set_index("claim")["verdict"].to_dict()
    assert verdicts["fits"] == verdicts["rises"] == "supported"
    assert verdicts["control-stays-at-zero"] == "equivalent"
    assert len(result.overview) == 5 and len(result.figures) == 1
    assert (tmp_path / "rotation.html").stat().st_size > 10_000
    variants: Any = [names["RotationInside"], names["RotationShare"]]
    assert [one.kind for one in variants[0].profile("demo").design.measurements] == ["scores", "decodability"]
    more: Any = rc.run(variants[1], profile="demo", store=result.store, quiet=True)
    assert more.sweep.trained == 0 and more.verdicts["effect"].notna().all(), "it has the runs of the first"


def test_the_encoding_of_the_page_conforms(extending):
    from recombine.testing import check_encoding

    names: dict[str, Any] = {"__name__": "random_rotation"}
    exec(compile(extending[-1], "extending.md", "exec"), names)
    check_encoding(names["RandomRotation"](), rc.SubsetSpace(modules=5, max_active=2), rc.families.Hyperteacher())


def test_the_page_about_your_own_network_runs_as_it_stands():
    page = (ROOT / "docs" / "inside-a-network.md").read_text()
    names: dict[str, Any] = {"__name__": "inside"}
    *blocks, symmetry, experts = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(compile(block, "inside-a-network.md", "exec"), names)
    pruned: Any = names["pruned"]
    assert pruned.losses["whole"]["own"] < 0.02 and 0 < pruned.share < 1
    assert pruned.specific > names["control"].specific
    exec(compile(symmetry, "inside-a-network.md", "exec"), names)
    assert rc.sweep_asymmetry(names["painter"], names["places"]) > 0.1
    assert rc.sweep_asymmetry(names["only_distance"], names["places"]) < 1e-6
    exec(compile(experts, "inside-a-network.md", "exec"), names)
    likely = names["choices"](names["experts"].mix({"third": 1.0}), names["states"]).probs.mean(dim=0)
    assert likely[2] > names["choices"](names["policy"], names["states"]).probs.mean(dim=0)[2]
    assert set(names["weights"]) == {"second", "third"}


def test_no_table_has_long_cells():
    """Verdicts and the debate are generated from the statements of claims, which may be longer."""
    long = [
        f"{page.relative_to(ROOT)}: {cell[:60]}"
        for page in PAGES
        if page.name not in ("verdicts.md", "debate.md")
        for line in page.read_text().splitlines()
        if line.startswith("|")
        for cell in line.split("|")
        if len(cell.split()) > 40
    ]
    assert not long, "\n".join(long)
