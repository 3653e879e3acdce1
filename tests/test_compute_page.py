"""What a unit of compute buys: points of routes on tables made by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.syntactic_attention import SyntacticAttentionStudy

FILE = Path(__file__).parents[1] / "docs" / "results" / "compute.py"


@pytest.fixture(scope="module")
def compute() -> Any:
    spec = importlib.util.spec_from_file_location("compute_page", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compute_page"] = module  # Its data class looks up its own module.
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def study() -> SyntacticAttentionStudy:
    return apply(SyntacticAttentionStudy.profile("smoke"), ["first_seed=0", "replicates=2"])


@pytest.fixture(scope="module")
def tables(study: SyntacticAttentionStudy) -> Tables:
    """The score is .1 for the ablation and .9 with the bias; a run costs its width, and the bias half as much."""
    labels = pd.DataFrame([{"run": config.run_id} | names for config, names in study.design.runs])
    runs = labels.assign(bias=lambda own: own["separate"].eq(True))
    widths = {config.run_id: float(config.model.width) for config, _ in study.design.runs}  # type: ignore[attr-defined]
    runs["training_flops"] = runs["run"].map(widths) / (1 + runs["bias"])
    runs["accuracy_held_out"] = 0.1 + 0.8 * runs["bias"]
    columns = ["run", "training_flops", "accuracy_held_out"]
    return Tables.from_frames(labels, {"runs": runs[columns].drop_duplicates("run")})


def test_points_are_those_of_the_route(compute: Any, study: Any, tables: Tables) -> None:
    routes = [route for route in compute.ROUTES if route.study == "syntactic-attention"]
    found = pd.concat([compute.points(route, study, tables) for route in routes])
    assert len(found) == 2 * 2 * 2, "two routes, two widths, two replicates"
    means = found.groupby(["route", "training_flops"])["score"].mean()
    assert means.to_dict() == pytest.approx(
        {
            ("width", 8.0): 0.1,
            ("width", 16.0): 0.1,
            ("syntactic attention", 4.0): 0.9,
            ("syntactic attention", 8.0): 0.9,
        }
    )
    text = compute.page(found, [compute.ROUTES[0]], "smoke")
    assert "| width | width 16 | 16 | 0.100 |" in text
    assert "Not recorded: depth, equally many weights (depth-or-width)." in text
    assert compute.figure(found).name == "compute"


def test_every_route_names_an_arm_of_its_study(compute: Any) -> None:
    from recombine.component import find

    for route in compute.ROUTES:
        kind: Any = find("studies", route.study)
        assert route.arm in kind.profile("laptop").design.arms


def test_no_recorded_route_is_an_error(compute: Any) -> None:
    with pytest.raises(BadInput, match="No store has runs of depth-or-width"):
        compute.collected([], "laptop")
