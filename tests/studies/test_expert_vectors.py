"""expert-vectors: its runs and their lines, and its effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.chained.string_tasks import composites
from recombine.models import Expert
from recombine.objectives import PolicyGradient
from recombine.overrides import apply
from recombine.probes.routes.expert_scores import named, oldest, unseen_composites
from recombine.studies.routes.expert_vectors import REWARD, SCALES, TOKENS, WAYS, ExpertVectors
from recombine.training.prepare import check_line
from recombine.training.program import buckets

SMOKE = ExpertVectors.profile("smoke")
TESTED = apply(ExpertVectors.profile("smoke"), ["first_seed=0", "replicates=6"])
LORA = TESTED.pair[1]
World = Callable[..., Any]


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Tables in which an expert has `own[model, objective]`, and its mixtures what `mixed` says."""

    def make(
        own: Callable[[str, str], float] = lambda model, objective: 0.8 + 0.08 * (objective == REWARD),
        best: float = 0.4,
        search: float = 0.5,
        merged: Callable[[str], float] = lambda model: 0.7 if model == SCALES else 0.4,
        base: float = 0.5,
    ) -> Any:
        draw = np.random.default_rng(0)

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            wobble = lambda value: value + 0.002 * draw.standard_normal()  # noqa: E731
            right = {f"right_{task}": wobble(base) for task in TESTED.tasks}
            if labels["arm"] == "base":
                return {**right, "composites": wobble(0.2)}
            model = labels["model"]
            if labels["arm"] == "merged":
                return {name: wobble(merged(model)) for name in right}
            if labels["arm"] == "experts":
                found = {"own": wobble(own(model, labels["objective"])), "own_base": wobble(base)}
                return {**found, "parameters": 100.0 if model == SCALES else 4000.0}
            alone = own(model, labels["trained"])
            found = dict.fromkeys(WAYS, best - 0.01) | {"composite_best": best, "composite_search": search}
            found |= {"composite_base": 0.2, "single_base": base, "single_alone": alone}
            found |= {"single_mean": alone - (0.02 if model == SCALES else 0.12)}
            found |= {"single_sum": alone - (0.05 if model == SCALES else 0.3), "classifier_accuracy": 0.99}
            return {name: wobble(value) for name, value in found.items()}

        return made(TESTED, score)

    return make


def test_runs_come_from_the_right_runs() -> None:
    kinds: dict[str, list[Any]] = {}
    for config, labels in SMOKE.design.runs:
        kinds.setdefault(labels["arm"], []).append((config, labels))
        assert oldest(config).seeds == config.seeds and oldest(config).model == SMOKE.base.model
    experts = {config.run_id for config, _ in kinds["experts"]}
    for config, labels in kinds["experts"]:
        assert isinstance(config.objective, PolicyGradient) == (labels["objective"] == REWARD)
        assert config.support.combinations == ((labels["task"], "nothing"),)  # type: ignore[attr-defined]
    for config, _ in kinds["mixtures"]:
        assert len(config.parents) == len(SMOKE.tasks) and {each.run_id for each in config.parents} <= experts
    check_line(kinds["mixtures"][0][0])
    for config, _ in kinds["merged"]:
        assert config.generation == len(SMOKE.tasks)
        assert [run for run in config.ancestors() if run in experts], "it begins with an expert of the study"
    laptop = ExpertVectors.profile("laptop")
    assert laptop.replicates >= 8 and laptop.first_seed >= 1000
    one = apply(laptop, ["replicates=2"]).design.runs
    programs = buckets([config for config, _ in one if config.recipe.steps])
    assert len(programs) == 1 + 2 * (1 + len(laptop.ranks)), "one for the base, one per kind of expert and objective"


def test_unseen_composites_are_those_that_the_base_was_not_trained_on() -> None:
    base = ExpertVectors.profile("laptop").base
    found = {named(base, row) for row in unseen_composites(base)}
    trained = set(composites(ExpertVectors().tasks, (1, 2, 3, 4)))
    assert found == set(composites(ExpertVectors().tasks, (5,))) and not found & trained


def test_verdicts_where_everything_holds(world: World, words: Any) -> None:
    found = words(TESTED, world())
    undecided = {claim: verdict for claim, verdict in found.items() if verdict != "supported"}
    # The objective alone makes the difference in these tables, and what is kept apart is the same.
    assert undecided == {"adapter-part": "equivalent", "kept-apart": "equivalent"}


def test_verdicts_where_nothing_holds(world: World, words: Any) -> None:
    flat = words(TESTED, world(own=lambda model, objective: 0.5, search=0.2, merged=lambda model: 0.5))
    for name in ("expert-over-base-scales-reward", "published-comparison", "mix-by-search", "merged-lora-forgets"):
        assert flat[name] in ("contradicted", "equivalent"), name
    known = words(TESTED, world(base=0.97))
    assert known["base-is-partial"] == "contradicted" and known["expert-over-base-scales-reward"] == "inconclusive"


def test_effects_are_the_differences_that_they_name(world: World, effects: Any) -> None:
    own = {(SCALES, REWARD): 0.9, (SCALES, TOKENS): 0.8, (LORA, REWARD): 0.86, (LORA, TOKENS): 0.7}
    found = effects(TESTED, world(own=lambda *cell: own[cell]))
    wanted = {"published-comparison": 0.2, "objective-part": 0.13, "adapter-part": 0.07, "mixes-interfere-less": 0.28}
    wanted |= {"mix-by-search": -0.1, "merged-lora-forgets": 0.3, "merged-scales-forget-less": 0.2, "kept-apart": 0.0}
    for name, value in wanted.items():
        assert np.mean(found[name]) == pytest.approx(value, abs=0.01), name


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="ranks must be at least 1 different sizes"):
        apply(SMOKE, ["ranks=[4,2]"])
    assert isinstance(SMOKE.models[SCALES], Expert)
