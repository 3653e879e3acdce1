"""What a notebook user types."""

from __future__ import annotations

import pytest

import recombine as rc
from recombine.errors import BadInput

SMALL = {"modules": 8, "max_active": 2, "width": 8, "depth": 1, "steps": 10, "numbers": [12, 20], "first_seed": 0}


def test_a_study_runs_by_name_and_its_result_shows_itself(tmp_path):
    result = rc.run("data-scaling", profile="smoke", store=tmp_path / "runs", quiet=True, **SMALL)
    assert list(result.verdicts["claim"])[:2] == ["fits", "rises"] and result.profile == "smoke, changed"
    assert {"verdict", "effect", "low", "high", "statement"} <= set(result.verdicts.columns)
    assert "rises" in repr(result) and "<table>" in result._repr_html_()
    assert next(figure.name for figure in result.figures) == "score_by_size"
    page = result.report(tmp_path / "report.html")
    assert page.exists() and "data-scaling" in page.read_text()
    again = rc.run("data-scaling", profile="smoke", store=tmp_path / "runs", quiet=True, **SMALL)
    assert again.sweep.trained == 0 and again.records == result.records


def test_a_sweep_is_a_grid_over_a_configuration(tmp_path):
    config = rc.RunConfig(
        space=rc.SubsetSpace(modules=8, max_active=2),
        model=rc.models.MLP(width=8, depth=1),
        recipe=rc.recipes.Fast(steps=10),
    )
    result = rc.sweep(config, grid={"number": [12, 20]}, replicates=2, store=tmp_path / "runs", quiet=True)
    assert list(result.cells["number"]) == [12, 20] and len(result.runs) == 4
    assert "4 runs" in repr(result) and "<table>" in result._repr_html_()
    assert len(rc.load_store(tmp_path / "runs").runs_df()) == 4


@pytest.mark.parametrize(
    "study, settings, message",
    [
        ("data-scalign", {}, "no study called"),
        ("data-scaling", {"profile": "huge"}, "no profile 'huge'"),
        ("data-scaling", {"profile": "smoke", "widht": 3}, "nothing called 'widht'"),
        (3, {}, "is not a study"),
    ],
)
def test_wrong_names_are_errors_and_create_nothing(tmp_path, study, settings, message):
    with pytest.raises(BadInput, match=message):
        rc.run(study, store=tmp_path / "runs", **settings)
    assert not (tmp_path / "runs").exists()


def test_every_public_name_loads_and_is_listed():
    for name in rc.__all__:
        assert getattr(rc, name) is not None
    assert {"run", "sweep", "supports", "models", "Study", "Arm", "claim"} <= set(dir(rc))
    assert rc.supports.Random.model_fields and rc.models.Transformer.model_fields
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rc.nothing
