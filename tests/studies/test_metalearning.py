"""metalearning and few-shot-grammars: arms that differ in their episodes only, and effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Study, Tables
from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.episodes import by_context, by_kind
from recombine.studies.routes.few_shot_grammars import KINDS, FewShotGrammars
from recombine.studies.routes.metalearning import TESTED, Metalearning
from recombine.training.program import buckets

World = Callable[..., Tables]


def small(study: type[Study]) -> Study:
    return apply(study.profile("smoke"), ["first_seed=0", "replicates=6"])


def name(context: str, kind: str) -> str:
    return f"context={context} + block=1 + episode=2 + query={kind} 1,2"


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Tables of a study whose held-out accuracy is `right(labels, context, kind)`, and whose runs all fit."""

    def make(study: Study, right: Callable[[dict[str, Any], str, str], float], kinds: Any, contexts: Any) -> Tables:
        draw = np.random.default_rng(0)

        def combinations(labels: dict[str, Any]) -> pd.DataFrame:
            rows = []
            for context in contexts:
                for kind in kinds:
                    share = right(labels, context, kind) + 0.005 * draw.standard_normal()
                    rows.append({"region": "held_out", "combination": name(context, kind), "whole": share})
                    rows.append({"region": "trained", "combination": name(context, kind), "whole": 0.0})
            return pd.DataFrame(rows)

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            fitted = 0.97 - abs(0.01 * draw.standard_normal())
            held_out = right(labels, contexts[0], kinds[0]) + 0.005 * draw.standard_normal()
            return {"accuracy_in": fitted, "accuracy_held_out": held_out, "training_flops": 1e6}

        return made(study, score, combinations=combinations)

    return make


@pytest.mark.parametrize("study", [Metalearning, FewShotGrammars])
def test_arms_share_programs(study: type[Study]) -> None:
    """Arms differ in lists of combinations and in numbers of steps; each width is a program."""
    laptop = study.profile("laptop")
    assert laptop.replicates >= 8 and laptop.first_seed >= 1000
    widths = {config.model.width for config, _ in laptop.design.runs}  # type: ignore[attr-defined]
    lengths = {config.support.length(config.space) > 2**15 for config, _ in laptop.design.runs}  # type: ignore[operator]
    assert lengths == {False}
    assert len(buckets([config for config, _ in laptop.design.runs])) == len(widths)


@pytest.mark.parametrize("study", [Metalearning, FewShotGrammars])
def test_no_tested_episode_is_trained_by_metalearning(study: type[Study]) -> None:
    for config, labels in small(study).design.runs:
        support = config.support.draw(config.space, 0)
        episodes = [set(map(tuple, rows[:, 1:3])) for rows in (support.rows, support.reserved)]  # type: ignore[attr-defined]
        assert bool(episodes[0] & episodes[1]) == labels["arm"].startswith("one"), labels


def test_accuracy_is_read_by_context_and_kind(world: World) -> None:
    study = small(FewShotGrammars)
    heights = {"new": 0.9, "longer": 0.5, "longest": 0.1}
    tables = study.design.data(
        world(
            study,
            lambda labels, context, kind: heights[kind] / (2 if context == "other" else 1),
            tuple(KINDS),
            ("shown", "other"),
        )
    )["main"]
    means = by_kind(tables, context="other").mean(numeric_only=True)
    assert [means[kind] for kind in KINDS] == pytest.approx([0.45, 0.25, 0.05], abs=0.02)
    contexts = by_context(tables).mean(numeric_only=True)
    assert [contexts["shown"], contexts["other"]] == pytest.approx([0.5, 0.25], abs=0.02)


def test_verdicts_where_grids_are_learned_in_context(world: World, words: Any) -> None:
    study = small(Metalearning)
    assert isinstance(study, Metalearning)

    def right(labels: dict[str, Any], context: str, kind: str) -> float:
        if labels["arm"].startswith("one"):
            return 0.05
        if context == "rotated" or labels.get("number") == study.numbers[0]:
            return 0.02
        if labels.get("width") == study.widths[0]:
            return 0.3
        return 0.95 if context == "blocked" or labels["arm"] == "mixed" else 0.4

    found = words(study, world(study, right, ("tested",), TESTED))
    undecided = {claim: verdict for claim, verdict in found.items() if verdict != "supported"}
    assert not undecided


def test_verdicts_where_one_grid_is_enough(world: World, words: Any) -> None:
    """A network that composes in its weights contradicts what is claimed of episodes."""
    study = small(Metalearning)
    found = words(study, world(study, lambda labels, context, kind: 0.95, ("tested",), TESTED))
    for claim in ("episodes-not-one-grid", "prompt-is-not-enough", "more-grids-help", "few-grids-teach-nothing"):
        assert found[claim] in ("contradicted", "equivalent"), claim
    assert found["rotated-fails"] == "contradicted" and found["metalearned-composes"] == "supported"


def test_verdicts_on_grammars(world: World, words: Any) -> None:
    study = small(FewShotGrammars)
    assert isinstance(study, FewShotGrammars)

    def right(labels: dict[str, Any], context: str, kind: str) -> float:
        if labels["arm"].startswith("one") or context == "other" or labels.get("number") == study.numbers[0]:
            return 0.05
        if kind == "new":
            return 0.95
        return 0.9 if kind == "longer" and labels["arm"] == "main" else 0.1

    found = words(study, world(study, right, tuple(KINDS), ("shown", "other")))
    assert set(found.values()) == {"supported"}, found
    flat = words(study, world(study, lambda labels, context, kind: 0.5, tuple(KINDS), ("shown", "other")))
    for claim in ("systematicity", "productivity", "productivity-ends", "other-examples-fail"):
        assert flat[claim] != "supported", claim


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="numbers must be at least 2 different sizes"):
        apply(Metalearning.profile("smoke"), ["numbers=[8]"])
    with pytest.raises(BadInput, match="do not fit: the space has 4096"):
        _ = apply(FewShotGrammars.profile("smoke"), ["numbers=[8,5000]"]).design
