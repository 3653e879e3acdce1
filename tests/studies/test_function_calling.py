"""function-calling: equal tokens, equal instances, and verdicts on tables whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.overrides import apply, validate
from recombine.studies.routes.function_calling import COVERAGE, METRICS, NEW, ROUTES, FunctionCalling, by_coverage
from recombine.training import RunConfig


@pytest.fixture(scope="module")
def small() -> FunctionCalling:
    return apply(FunctionCalling.profile("smoke"), ["first_seed=0", "replicates=6"])


def tables(study: FunctionCalling, made: Any, gains: dict[str, float], tokens: float = 1.0, fit: float = 0.97) -> Any:
    """Scores of .3 on new programs, plus what a route gains; depth and pairs fail."""
    draw = np.random.default_rng(0)

    def score(labels: dict[str, Any]) -> dict[str, Any]:
        gain, noise = gains.get(labels["route"], 0.0), 0.005 * draw.standard_normal(3)
        scores = {f"{metric}_{split}": 0.5 for metric in METRICS for split in ("seen", *NEW)}
        scores |= {f"ast_{split}": 0.3 + gain + own for split, own in zip(NEW, noise, strict=True)}
        scores |= {f"name_f1_{split}": 0.8 for split in NEW}
        return scores | {
            "accuracy_in": fit + noise[0],
            "ast_trained": fit + noise[1],
            "ast_seen": 0.9,
            "ast_renamed": 0.0,
            "training_tokens": 1e6 * (tokens if labels["route"] == "granular" else 1),
        }

    return made(study, score)


def test_routes_have_equal_tokens_and_instances() -> None:
    study = FunctionCalling.profile("laptop")
    assert study.replicates >= 8 and study.first_seed >= 1000
    seed = {labels["route"]: config for config, labels in study.design.runs if labels["replicate"] == study.first_seed}
    assert set(seed) == set(ROUTES) and len({config.space.number for config in seed.values()}) == 1
    families = study.families()
    assert families["sevenfold"].programs == 7 * families["umbrella"].programs == 7 * families["granular"].programs
    tokens = {route: seed[route].recipe.steps * family.mean_tokens() for route, family in families.items()}
    assert list(tokens.values()) == pytest.approx([tokens["granular"]] * 3, rel=0.002)


def test_verdicts_where_granular_tasks_help(small: FunctionCalling, made: Any, words: Any) -> None:
    found = words(small, tables(small, made, {"granular": 0.3, "sevenfold": 0.15}))
    assert found == {name: "equivalent" if name.startswith("equal-tokens") else "supported" for name in found}


def test_verdicts_where_they_do_not(small: FunctionCalling, made: Any, words: Any) -> None:
    found = words(small, tables(small, made, {"umbrella": 0.3}))
    assert found["granular-helps"] == "contradicted" == found["more-programs-help"]
    assert found["granular-beats-more-programs"] in ("equivalent", "contradicted")
    assert found["new-pairs-fail"] == "supported"


def test_no_verdict_without_a_fit_or_with_other_tokens(small: FunctionCalling, made: Any, words: Any) -> None:
    gains = {"granular": 0.3}
    for table in (tables(small, made, gains, tokens=1.1), tables(small, made, gains, fit=0.5)):
        assert words(small, table)["granular-helps"] not in ("supported", "contradicted")


def test_pairs_by_coverage() -> None:
    answers = pd.DataFrame(
        {
            "replicate": 0,
            "route": "granular",
            "split": ["trained", "seen", "seen", "seen", "pair", "function", "depth"],
            "trained": [9, 1, 3, 3, 0, 0, 5],
            "ast": [1.0, 0.5, 1.0, 0.0, 0.2, 0.1, 0.0],
        }
    )
    found = by_coverage(answers).set_index("nested")["ast"].to_dict()
    assert found == {"0": 0.2, "0, new function": 0.1, "1": 0.5, "2-3": 0.5} and set(found) <= set(COVERAGE)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="needs runs of function-calls"):
        FunctionCalling(base=validate(RunConfig, {"family": "nested"}))
