"""subgraphs: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.families.multiplication import sizes_of
from recombine.graphs.labels import LABELS
from recombine.graphs.multiplication import check_table, digit_gains
from recombine.overrides import validate
from recombine.spaces.number_pairs import NumberPairs
from recombine.studies.subgraphs import ARMS, FAMILIES, STEPS, Subgraphs
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting

SHARES = {1: (0.9, 0.0, 0.02, 0.08), 2: (0.7, 0.05, 0.15, 0.1), 3: (0.4, 0.1, 0.4, 0.1), 4: (0.2, 0.1, 0.6, 0.1)}
"""Labels by depth in larger problems: what the literature expects."""
World = Callable[..., Tables]
SIZES = {"lists": (3, 4), "products": (12, 22), "puzzles": (5, 7)}
"""A trained size and a larger one."""


@pytest.fixture(scope="module")
def small() -> Subgraphs:
    whole = {"formats": ("steps", "question only", "steps, plain places"), "first_seed": 0, "replicates": 6}
    return validate(Subgraphs, Subgraphs.profiles["smoke"] | whole)


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Problems of trained sizes are nearly all right, larger ones as often as given."""

    def make(
        study: Subgraphs,
        beyond: float = 0.2,
        rise: float = 0.1,
        told: float = 0.8,
        noise: float = 0.002,
        off: float = 0.0,
        change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    ) -> Tables:
        draw = np.random.default_rng(0)
        shown = {problem: _first_rows(study, problem) for problem in FAMILIES}
        wobbles = {(arm, seed): noise * draw.standard_normal(8) for arm in ARMS for seed in study.seeds}

        def right(labels: dict[str, Any]) -> dict[bool, float]:
            wobble = wobbles[labels["arm"], labels["replicate"]]
            larger = beyond - 0.05 if labels["arm"] == "lists_plain" else beyond
            return {False: 0.99 + wobble[0], True: larger + wobble[1]}

        def score(labels: dict[str, Any]) -> dict[str, Any]:
            wobble = wobbles[labels["arm"], labels["replicate"]]
            values = {"exact_in": right(labels)[False], "exact_beyond": right(labels)[True]}
            if not labels["arm"].endswith("question"):
                values |= {
                    "share_propagation_beyond": 0.4 + wobble[2],
                    "share_local_beyond": 0.1 + wobble[3],
                    "short_beyond": 0.6,
                    "frequency_of_right_beyond": 0.8 + wobble[4],
                    "bound_beyond": 0.35 + wobble[5],
                    "off_prediction_beyond": off + wobble[6],
                }
            return values

        def steps(labels: dict[str, Any]) -> pd.DataFrame:
            (problem, written), wobble = ARMS[labels["arm"]], wobbles[labels["arm"], labels["replicate"]]
            rows: list[dict[str, Any]] = []
            for size, is_beyond in zip(SIZES[problem], (False, True), strict=True):
                common = {"size": size, "name": str(size), "beyond": is_beyond, "number": 1000}
                row, stated = shown[problem][size] if written != "question only" else ("", "")
                answered = {"right": 1000 * right(labels)[is_beyond], "row": row, "stated": stated}
                rows.append(common | {"part": "answers"} | answered)
                rows += [common | one for one in _results(problem, size, is_beyond, told, wobble[7])]
                if written != "question only":
                    rows += [common | one for one in _steps(rise, wobble[5])]
            return change(pd.DataFrame(rows))

        return made(study, score, graph_steps=steps)

    return make


def _first_rows(study: Subgraphs, problem: str) -> dict[int, tuple[str, str]]:
    """A problem for each size, with the right values of its nodes."""
    config = getattr(study, problem)
    family, rows = config.family, Setting(config).support.reserved
    sizes, found = family.sizes(rows), {}
    for size in SIZES[problem]:
        row = rows[sizes == size][0] if (sizes == size).any() else rows[0]
        graph = family.graph(row)
        found[size] = (" ".join(map(str, row)), " ".join(["1"] * len(graph)))
    return found


def _results(problem: str, size: int, beyond: bool, told: float, wobble: float) -> list[dict[str, Any]]:
    """Digits of products: those told most are right as often as said beyond chance, others by chance."""
    if problem != "products":
        return []
    gains = digit_gains(*divmod(size, 10))
    most = gains.gain >= np.median(gains.gain)
    share = np.where(most | (not beyond), told if beyond else 0.9, 0.0) + wobble
    right = gains.common + share * (1 - gains.common)
    return [{"part": "result", "place": at, "right": 1000 * one} for at, one in enumerate(right, start=1)]


def _steps(rise: float, wobble: float) -> list[dict[str, Any]]:
    return [
        {
            "part": "steps",
            "place": depth,
            "step": "best sum",
            "parents": parents,
            **{label: 1000 * (share + wobble / 4) for label, share in zip(LABELS, shares, strict=True)},
            "sound": 500,
            "slips": 500 * (0.05 * parents + (rise if depth > 3 else 0.0) + wobble),
        }
        for depth, shares in SHARES.items()
        # Steps with few parents lie at the top, and slip less: that is not depth.
        for parents in ((1,) if depth == 1 else (2, 3) if depth == 2 else (3,))
    ]


def test_every_arm_has_its_replicates() -> None:
    study = Subgraphs.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.design.runs])
    sizes = labels.groupby("arm").size()
    assert (sizes == study.replicates).all() and study.replicates >= 8
    assert set(sizes.index) == set(ARMS)
    by_arm = {labels["arm"]: config for config, labels in study.design.runs}
    steps, plain = by_arm["lists"], by_arm["lists_plain"]
    assert steps.support == plain.support and steps.objective != plain.objective
    assert steps.objective.random_positions and not plain.objective.random_positions  # type: ignore[attr-defined]


@pytest.mark.parametrize("profile", Subgraphs.profiles)
def test_every_size_of_every_profile_has_its_table_of_digits(profile: str) -> None:
    pairs = Subgraphs.profile(profile).products.space
    assert isinstance(pairs, NumberPairs)
    for size in sizes_of(pairs):
        check_table(*size)
    with pytest.raises(BadInput, match="at most"):
        check_table(4, 4)


def test_training_does_not_pay_for_pads_and_loses_nothing(small: Subgraphs) -> None:
    for config, labels in small.design.runs:
        problem = ARMS[labels["arm"]][0]
        family, objective, support = getattr(small, problem).family, config.objective, Setting(config).support
        assert isinstance(support, Listed)
        sizes = np.unique(family.sizes(support.rows)).tolist()
        longest = np.max([config.family.lengths(size) for size in sizes], axis=0)  # type: ignore[attr-defined]
        if problem != "puzzles":
            assert (objective.prompt_length, objective.answer_length) == tuple(longest)  # type: ignore[attr-defined]


def test_verdicts_where_the_literature_is_right(small: Subgraphs, world: World, words: Any) -> None:
    claims = small.design.claims
    assert words(small, world(small)) == {claim.name: claim.of("subgraphs").wanted for claim in claims}
    assert sum(claim.primary for claim in claims) == 1


def test_verdicts_where_networks_compute(small: Subgraphs, world: World, words: Any) -> None:
    verdicts = words(small, world(small, beyond=0.98, rise=0.0, told=0.0))
    assert verdicts["larger-lists-fail"] == "equivalent", "within the margin of no loss"
    assert verdicts["slips-rise-with-depth"] == "equivalent"
    assert verdicts["told-digits-are-right"] == "equivalent"
    assert verdicts["places-are-not-all"] == "inconclusive", "nothing fails, so positions are no reason for it"


@pytest.mark.parametrize("off", [-0.2, 0.2])
def test_rates_that_do_not_carry_over(small: Subgraphs, world: World, words: Any, off: float) -> None:
    assert words(small, world(small, off=off))["rates-carry-over"] == "contradicted"


def test_effects_are_computed_as_stated(small: Subgraphs, world: World, effects: Any) -> None:
    values = effects(small, world(small, noise=0.0))
    expected = {
        "fits-lists": 0.99,
        "larger-lists-fail": 0.79,
        "larger-products-fail": 0.79,
        "places-are-not-all": 0.05,
        "slips-rise-with-depth": 0.1,
        "rates-carry-over": 0.0,
        "seen-subgraphs-are-right": 0.8,
        "errors-propagate": 0.3,
        "answers-are-too-short": 0.6,
        "told-digits-are-right": 0.8,
        "results-are-learned": 0.9,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, atol=1e-9, err_msg=name)


def test_figures_are_drawn_with_and_without_runs(small: Subgraphs, world: World) -> None:
    full = world(small)
    names = [
        "lists_by_size",
        "puzzles_by_size",
        "products_by_size",
        "by_graph_depth",
        *(f"{name}_by_depth" for name in ("lists", "products", "puzzles")),
        "digits",
        *(f"{name}_one_answer" for name in ("lists", "products", "puzzles")),
    ]
    for tables in (full, Tables.from_frames(full.labels, {})):
        figures = small.design.figures(tables)
        assert [figure.name for figure in figures] == names
        assert all(figure.chart.to_dict() for figure in figures)


def test_digits_are_shown_of_a_trained_size_and_of_a_larger_one(small: Subgraphs, world: World) -> None:
    def change(parts: pd.DataFrame) -> pd.DataFrame:
        digits = parts[(parts["part"] == "result") & (parts["size"] == 22)]
        if digits.empty:
            return parts
        larger = [
            digits.assign(size=size, name=str(size), place=digits["place"] + more)
            for size in (23, 32)
            for more in (0, 1)
        ]
        others = pd.concat([parts[parts["part"] != "result"], digits.assign(beyond=False), *larger])
        keys = [name for name in ("part", "size", "place", "step", "parents") if name in others]
        return others.drop_duplicates(keys)

    figures = {figure.name: figure for figure in small.design.figures(world(small, change=change))}
    shown = str(figures["digits"].chart.to_dict())
    assert "22 digits" in shown and "23 digits" in shown and "32 digits" not in shown


def test_other_families_are_refused() -> None:
    with pytest.raises(BadInput, match="maximum-sum, with its steps"):
        validate(Subgraphs, {"lists": {"family": "scan"}})


def test_formats_that_are_left_out_are_not_asked_about(small: Subgraphs, world: World, words: Any) -> None:
    less = validate(Subgraphs, small.model_dump() | {"formats": (STEPS,)})
    assert set(less.design.arms) == set(FAMILIES)
    tables = world(less)
    verdicts = words(less, tables)
    assert verdicts["larger-lists-fail"] == "supported"
    for name in ("larger-lists-fail-question", "places-are-not-all", "told-digits-are-right"):
        assert name not in verdicts
    assert all(figure.chart.to_dict() for figure in less.design.figures(tables))
