"""Scores of a network: by region, stratum, combination and constituent."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from recombine.families.hyperteacher import Hyperteacher
from recombine.probes.base import Measured
from recombine.probes.scores import MAP_LIMIT, Scores
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.supports.regions import STRATA, side
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream, stream_key

SPACE = SubsetSpace(modules=6, max_active=3)
SCORES = Scores(draws=3, samples=8)


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    """Few combinations, so that every stratum occurs; one part may be unseen."""
    support = Random(number=4, require_connected=False)
    return Setting(tiny(space=SPACE, support=support, seeds=Seeds.replicate(8)))


@pytest.fixture(scope="module")
def measured(setting: Setting) -> Measured:
    return SCORES.measure(setting, setting.network())


@pytest.fixture(scope="module")
def tasks(measured: Measured) -> pd.DataFrame:
    return pd.DataFrame(measured.columns)


def three_forms(tasks: pd.DataFrame) -> dict[str, float]:
    """By loops over the tasks."""
    errors, spreads, ratios = (list(tasks[name]) for name in ("error", "spread", "ratio"))
    return {
        "r2": 1 - sum(errors) / sum(spreads),
        "r2_ratio": 1 - sum(ratios) / len(ratios),
        "r2_median": float(np.median([1 - error / spread for error, spread in zip(errors, spreads, strict=True)])),
        "correlation": sum(tasks["agreement"]) / (sum(spreads) * sum(tasks["power"])) ** 0.5,
    }


def test_summary_is_that_of_its_columns(measured: Measured, tasks: pd.DataFrame):
    held_out = tasks[tasks.region == "held_out"]
    groups = {"in": tasks[tasks.region == "trained"], "held_out": held_out}
    groups |= {name: held_out[held_out.stratum == name] for name in STRATA}
    groups = {name: group for name, group in groups.items() if len(group)}
    assert set(groups) == {"in", "held_out", *STRATA}, "this support has all strata"
    wanted = {f"{form}_{name}": value for name, group in groups.items() for form, value in three_forms(group).items()}
    assert measured.summary == pytest.approx(wanted, rel=1e-6)


def test_each_region_holds_its_combinations(setting: Setting, tasks: pd.DataFrame):
    names = {SPACE.name(row): row for row in SPACE.enumerate()}
    assert set(tasks.combination) == set(names), "small spaces are scored as a whole, for the map"
    trained = {SPACE.name(row) for row in setting.support.rows}
    for region, group in tasks.groupby("region"):
        found = set(group.combination)
        if region == "trained":
            assert found == trained
            continue
        assert not found & trained
        sides = set(side(np.array([names[name] for name in found]), setting.config.seeds.support))
        assert sides == {"test" if region == "held_out" else "validation"}
    assert set(tasks.region) == {"trained", "held_out", "validation"}
    assert (tasks.groupby("combination").size() == SCORES.draws).all()


def test_strata_against_brute_force(setting: Setting, tasks: pd.DataFrame):
    lists = [set(SPACE.constituents(row)) for row in setting.support.rows]
    for _, task in tasks.iterrows():
        parts = set(task.constituents)
        assert task.combination == SPACE.name(SPACE.row(sorted(parts)))
        met = all(any(set(pair) <= other for other in lists) for pair in itertools.combinations(parts, 2))
        unseen = any(all(part not in other for other in lists) for part in parts)
        assert task.stratum == ("part_unseen" if unseen else "all_pairs_met" if met else "some_pairs_unmet")


def test_scores_of_a_task_are_recomputed_from_its_data(setting: Setting, tasks: pd.DataFrame):
    """The place of a task in its region gives its key, the key its data; then plain numpy."""
    import jax

    network = setting.network()
    import hashlib

    names = {SPACE.name(row): row for row in SPACE.enumerate()}
    for index in (0, 17, len(tasks) - 1):
        row = jnp.asarray(names[tasks.combination[index]])
        region = tasks.region[index]
        salt = int.from_bytes(hashlib.blake2b(region.encode(), digest_size=4).digest(), "little")
        place = index - int(np.argmax(tasks.region == region))
        base = stream_key(setting.data_key, Stream.TEST, salt)
        by_data, _ = jax.random.split(jax.random.fold_in(base, place))
        _, code, batch = draw_examples(setting.teacher, setting.encoder, row, by_data, SCORES.samples)
        y = np.asarray(batch.targets, float)
        error = (y - np.asarray(network(code, batch.inputs), float)) ** 2
        assert tasks.error[index] == pytest.approx(error.sum(), rel=1e-4)
        assert tasks.spread[index] == pytest.approx(((y - y.mean(0)) ** 2).sum(), rel=1e-4)
        assert tasks.ratio[index] == pytest.approx((error / y.var(0)).mean(), rel=1e-3)


@pytest.mark.parametrize("by", [["stratum"], ["combination"], ["stratum", "draw"]])
def test_pooling_against_brute_force(by: list[str], tasks: pd.DataFrame):
    both = pd.concat([tasks.assign(run="a"), tasks.assign(run="b", error=2 * tasks.error)], ignore_index=True)
    labels = ["run", "region", *by]
    found = Hyperteacher().pooled(both, labels)
    wanted: dict[tuple[Any, ...], dict[str, float]] = {}
    for key in {tuple(task[name] for name in labels) for _, task in both.iterrows()}:
        chosen = np.all([both[name] == value for name, value in zip(labels, key, strict=True)], axis=0)
        wanted[key] = three_forms(both[chosen])
    assert len(found) == len(wanted)
    for _, row in found.iterrows():
        forms = {name: row[name] for name in ("r2", "r2_ratio", "r2_median", "correlation")}
        assert forms == pytest.approx(wanted[tuple(row[name] for name in labels)])


def test_reserved_combinations_are_the_held_out_ones(tiny: Callable[..., RunConfig]):
    """One common test for supports of every size; the rest is neither trained nor held out."""
    sets = []
    for number in (10, 20):
        rows = Scores().rows(Setting(tiny(space=SPACE, support=Random(number=number, reserve=12))))
        sets.append({tuple(row) for row in rows["held_out"].tolist()})
        every = [tuple(row) for part in rows.values() for row in part.tolist()]
        assert len(every) == len(set(every)) == SPACE.size
        assert len(rows["held_out"]) + len(rows["validation"]) == 12
        assert len(rows["rest"]) == SPACE.size - 12 - number
    assert sets[0] == sets[1]


def test_large_spaces_are_sampled(tiny: Callable[..., RunConfig]):
    space = SubsetSpace(modules=1000, max_active=20)
    setting = Setting(tiny(space=space, support=Random(number=600)))
    assert space.size > MAP_LIMIT
    rows = Scores(combinations=40).rows(setting)
    assert {name: len(values) for name, values in rows.items()} == {"trained": 40, "held_out": 40}
    assert setting.support.contains(rows["trained"]).all()
    assert not setting.support.contains(rows["held_out"]).any()


def test_it_is_deterministic_and_named_by_its_parameters(setting: Setting, measured: Measured):
    again = SCORES.measure(Setting(setting.config), setting.network())
    assert again == measured
    assert SCORES.name == Scores(draws=3, samples=8).name
    assert SCORES.name != Scores(draws=3, samples=9).name
    assert SCORES.name.startswith("scores-")


def test_a_new_meaning_has_a_new_name(monkeypatch: pytest.MonkeyPatch):
    before = SCORES.name
    monkeypatch.setattr(Scores, "version", Scores.version + 1)
    assert SCORES.name != before


def test_without_a_number_of_examples_it_is_the_familys(setting: Setting):
    """Grids of puzzles differ in size: the family knows how many examples make one."""
    number = setting.config.family.validation_samples
    some = {"combinations": 2, "draws": 1, "map": False}
    given, own = (
        Scores.model_validate({**some, "samples": samples}).measure(setting, setting.network())
        for samples in (number, None)
    )
    assert own == given
