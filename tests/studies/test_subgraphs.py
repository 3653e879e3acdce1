"""subgraphs: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.families.multiplication import sizes_of
from recombine.graphs.labels import LABELS
from recombine.graphs.multiplication import check_table, digit_gains
from recombine.overrides import validate
from recombine.spaces.number_pairs import NumberPairs
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.subgraphs import Subgraphs
from recombine.studies.subgraphs_claims import ARMS, CLAIMS, LISTS, PLAIN, PRODUCTS, PUZZLES, QUESTION, STEPS
from recombine.supports.listed import Listed
from recombine.training.prepare import Setting

SHARES = {
    1: (0.9, 0.0, 0.02, 0.08),
    2: (0.7, 0.05, 0.15, 0.1),
    3: (0.4, 0.1, 0.4, 0.1),
    4: (0.2, 0.1, 0.6, 0.1),
}
"""Labels by depth in larger problems: what the literature expects."""
SIZES = {LISTS: (3, 4), PRODUCTS: (12, 22), PUZZLES: (5, 7)}
"""A trained size and a larger one."""


@pytest.fixture(scope="module")
def small() -> Subgraphs:
    whole = {"arms": (STEPS, QUESTION, PLAIN), "first_seed": 0, "replicates": 6}
    return validate(Subgraphs, Subgraphs.profiles["smoke"] | whole)


def tables(
    study: Subgraphs,
    beyond: float = 0.2,
    rise: float = 0.1,
    told: float = 0.8,
    noise: float = 0.002,
    off: float = 0.0,
) -> Tables:
    """Problems of trained sizes are nearly all right, larger ones as often as said."""
    draw = np.random.default_rng(0)
    runs, steps = [], []
    shown = {problem: _first_rows(study, problem) for problem in ARMS}
    for config, labels in study.runs():
        wobble = noise * draw.standard_normal(8)
        name = {"run": config.run_id} | labels
        problem, arm = labels["problem"], labels["arm"]
        right = {False: 0.99 + wobble[0], True: (beyond - 0.05 if arm == PLAIN else beyond) + wobble[1]}
        values = {"exact_in": right[False], "exact_beyond": right[True]}
        if arm != QUESTION:
            values |= {
                "share_propagation_beyond": 0.4 + wobble[2],
                "share_local_beyond": 0.1 + wobble[3],
                "short_beyond": 0.6,
                "frequency_of_right_beyond": 0.8 + wobble[4],
                "bound_beyond": 0.35 + wobble[5],
                "off_prediction_beyond": off + wobble[6],
            }
        runs.append(name | values)
        for size, is_beyond in zip(SIZES[problem], (False, True), strict=True):
            common = {"size": size, "name": str(size), "beyond": is_beyond, "number": 1000}
            row, stated = shown[problem][size] if arm != QUESTION else ("", "")
            common_answer = {
                "part": "answers",
                "right": 1000 * right[is_beyond],
                "row": row,
                "stated": stated,
            }
            steps.append(name | common | common_answer)
            steps += [name | common | one for one in _results(problem, size, is_beyond, told, wobble[7])]
            if arm != QUESTION:
                steps += [name | common | one for one in _steps(rise, wobble[5])]
    empty = pd.DataFrame({"run": []})
    return Tables(pd.DataFrame(runs), empty, empty, empty, {"graph-steps": pd.DataFrame(steps)})


def _first_rows(study: Subgraphs, problem: str) -> dict[int, tuple[str, str]]:
    """A problem for each size, with the right values of its nodes."""
    family = study.family(problem)
    rows = Setting(study.problems[problem]).support.reserved
    sizes, found = family.sizes(rows), {}
    for size in SIZES[problem]:
        row = rows[sizes == size][0] if (sizes == size).any() else rows[0]
        graph = family.graph(row)
        found[size] = (" ".join(map(str, row)), " ".join(["1"] * len(graph)))
    return found


def _results(problem: str, size: int, beyond: bool, told: float, wobble: float) -> list[dict[str, Any]]:
    """Digits of products: those told most are right as often as said beyond chance, others by chance."""
    if problem != PRODUCTS:
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


def judged(study: Subgraphs, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_arm_has_its_replicates() -> None:
    study = Subgraphs.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    sizes = labels.groupby(["problem", "arm"]).size()
    assert (sizes == study.replicates).all() and study.replicates >= 8
    assert set(sizes.index) == {(problem, arm) for problem, arms in ARMS.items() for arm in arms}
    by_arm = {(one["problem"], one["arm"]): config for config, one in study.runs()}
    steps, plain = by_arm[LISTS, STEPS], by_arm[LISTS, PLAIN]
    assert steps.support == plain.support and steps.objective != plain.objective
    assert steps.objective.spread and not plain.objective.spread  # type: ignore[attr-defined]


@pytest.mark.parametrize("profile", Subgraphs.profiles)
def test_every_size_of_every_profile_has_its_table_of_digits(profile: str) -> None:
    pairs = Subgraphs.profile(profile).products.space
    assert isinstance(pairs, NumberPairs)
    for size in sizes_of(pairs):
        check_table(*size)
    with pytest.raises(BadInput, match="at most"):
        check_table(4, 4)


def test_training_does_not_pay_for_pads_and_loses_nothing(small: Subgraphs) -> None:
    for config, labels in small.runs():
        family, objective = small.family(labels["problem"]), config.objective
        support = Setting(config).support
        assert isinstance(support, Listed)
        own = family.model_copy(update={"steps": labels["arm"] != QUESTION})
        longest = np.max(
            [own.lengths(size) for size in np.unique(family.sizes(support.rows)).tolist()], axis=0
        )
        if labels["problem"] != PUZZLES:
            assert (objective.prompts, objective.answers) == tuple(longest)  # type: ignore[attr-defined]


def test_verdicts_where_the_literature_is_right(small: Subgraphs) -> None:
    found = judged(small, tables(small))
    words = {name: verdict.verdict for name, verdict in found.items()}
    assert all(one.verdict == one.claim.wanted for one in found.values()), words
    assert sum(claim.primary for claim in CLAIMS) == 1


def test_verdicts_where_networks_compute(small: Subgraphs) -> None:
    found = judged(small, tables(small, beyond=0.98, rise=0.0, told=0.0))
    assert found["larger-lists-fail"].verdict == "equivalent", "within the margin of no loss"
    assert found["slips-rise-with-depth"].verdict == "equivalent"
    assert found["told-digits-are-right"].verdict == "equivalent"
    assert found["places-are-not-all"].verdict == "inconclusive", (
        "nothing fails, so places are no reason for it"
    )


@pytest.mark.parametrize("off", [-0.2, 0.2])
def test_rates_that_do_not_carry_over(small: Subgraphs, off: float) -> None:
    assert judged(small, tables(small, off=off))["rates-carry-over"].verdict == "contradicted"


def test_effects_are_computed_as_stated(small: Subgraphs) -> None:
    found = {one.claim.name: one.values for one in small.effects(tables(small, noise=0.0))}
    expected = {
        "fits-lists": 0.99,
        "larger-lists-fail": 0.79,
        "larger-products-fail": 0.79,
        "places-are-not-all": 0.05,
        "slips-rise-with-depth": 0.1,
        "rates-carry-over": 0.0,
        "errors-propagate": 0.3,
        "answers-are-too-short": 0.6,
        "told-digits-are-right": 0.8,
        "results-are-learned": 0.9,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-9, err_msg=name)


def test_figures_are_drawn_with_and_without_runs(small: Subgraphs) -> None:
    full = tables(small)
    names = [
        "lists_by_size",
        "puzzles_by_size",
        "products_by_size",
        "by_graph_depth",
        *(f"{name}_by_depth" for name in ("lists", "products", "puzzles")),
        "digits",
        *(f"{name}_one_answer" for name in ("lists", "products", "puzzles")),
    ]
    nothing = Tables(
        full.runs[:0],
        full.combinations,
        full.probes,
        full.curves,
        {"graph-steps": full.others["graph-steps"][:0]},
    )
    for frames in (full, nothing):
        figures = small.figures(frames)
        assert [figure.name for figure in figures] == names
        assert all(figure.chart.to_dict() for figure in figures)


def test_digits_are_shown_of_a_trained_size_and_of_a_larger_one(small: Subgraphs) -> None:
    frames = tables(small)
    parts = frames.others["graph-steps"]
    digits = parts[(parts["part"] == "result") & (parts["size"] == 22)]
    trained = digits.assign(beyond=False)
    larger = [
        digits.assign(size=size, name=str(size), place=digits["place"] + more)
        for size in (23, 32)
        for more in (0, 1)
    ]
    others = pd.concat([parts[parts["part"] != "result"], trained, *larger]).drop_duplicates(
        ["run", "part", "size", "place", "step", "parents"]
    )
    figures = {
        one.name: one for one in small.figures(dataclasses.replace(frames, others={"graph-steps": others}))
    }
    said = str(figures["digits"].chart.to_dict())
    assert "22 digits" in said and "23 digits" in said and "32 digits" not in said


def test_other_families_are_refused() -> None:
    with pytest.raises(BadInput, match="maximum-sum, with its steps"):
        validate(Subgraphs, {"lists": {"family": "scan"}})


def test_arms_that_are_left_out_are_not_decided(small: Subgraphs) -> None:
    less = small.model_copy(update={"arms": (STEPS,)})
    assert {labels["arm"] for _, labels in less.runs()} == {STEPS}
    found = judged(less, tables(less))
    assert found["larger-lists-fail"].verdict == "supported"
    for name in ("larger-lists-fail-question", "places-are-not-all", "told-digits-are-right"):
        assert found[name].verdict == "inconclusive", name
    assert all(figure.chart.to_dict() for figure in less.figures(tables(less)))
