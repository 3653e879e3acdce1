"""Main claims again, with fresh seeds: what is drawn, and that a stopped command goes on."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "docs" / "results"


@pytest.fixture
def replicate():
    spec = importlib.util.spec_from_file_location("replicate", RESULTS / "replicate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def recorded(tmp_path):
    """Three studies with one main claim each, and a precondition."""
    for number, study in enumerate(("one", "two", "three")):
        claim = {"study": study, "profile": "laptop", "effect": 0.1 * number, "interval": [0.0, 0.4], "replicates": 4}
        claims = [
            claim | {"claim": "fits", "role": "precondition", "primary": False, "answer": "holds"},
            claim | {"claim": "main", "role": "claim", "primary": True, "answer": "holds"},
            claim | {"claim": "further", "role": "claim", "primary": False, "answer": "holds"},
        ]
        (tmp_path / study).mkdir()
        (tmp_path / study / "verdicts.json").write_text(json.dumps(claims))
    return tmp_path


def test_a_stopped_replication_goes_on_with_the_same_draw(replicate, recorded, monkeypatch):
    asked = []

    def again(claim, main, store, first_seed):
        if len(asked) == 1 and store.name == "first":
            raise KeyboardInterrupt
        asked.append(claim["study"])
        assert main == ["main"] and first_seed == 20_000
        answer = "not decided" if claim["study"] == "two" else "holds"
        return {"answer": answer, "effect": 0.2, "interval": [None, None], "replicates": 4}

    monkeypatch.setattr(replicate, "again", again)
    arguments = ["replicate", "--results", str(recorded), "--number", "3", "--store"]
    monkeypatch.setattr(sys, "argv", [*arguments, "first"])
    with pytest.raises(KeyboardInterrupt):
        replicate.main()
    assert "**1 of 1**" in (page := (recorded / "replication.md").read_text()) or "**0 of 1**" in page
    assert "Still to run" in page
    monkeypatch.setattr(sys, "argv", [*arguments, "second"])
    replicate.main()
    assert sorted(asked) == ["one", "three", "two"]
    page = (recorded / "replication.md").read_text()
    assert "3 of 3 recorded main claims" in page and "**2 of 3** answers" in page and "Still to run" not in page
    assert "| [two](two/): `main` | holds | 0.100 [0.000, 0.400] | not decided | no interval | **no** |" in page
