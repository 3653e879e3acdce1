"""Decodability: every split is over combinations, and both controls work."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from recombine.models.base import Network, Trace
from recombine.probes import decodability as module
from recombine.probes.base import Measured
from recombine.probes.decodability import Decodability, TracedRows, control_targets, probe_site
from recombine.probes.ridge import STRENGTHS
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.supports.regions import side
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=8, max_active=3)
FORMS = ("intrinsic", "transfer", "in_distribution")


class Made(Network):
    """A network whose one site is what a test wants it to be."""

    table: Array
    identity: bool

    def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
        held = (code > 0).astype(jnp.float32)
        known = jnp.all(self.table == held, axis=1).astype(jnp.float32)
        site = known if self.identity else 3 * code - 1
        return jnp.zeros((len(inputs), 3)), {"made": jnp.tile(site, (len(inputs), 1))}


def made(identity: bool) -> Made:
    """Its site is one-hot in the combination's identity, or the task vector in other units."""
    rows = SPACE.enumerate()
    table = np.stack([np.isin(np.arange(SPACE.width), row) for row in rows])
    return Made(jnp.asarray(table, jnp.float32), identity)


@pytest.fixture(scope="module")
def setting(tiny: Callable[..., RunConfig]) -> Setting:
    return Setting(tiny(space=SPACE, support=Random(number=34), seeds=Seeds.replicate(1)))


@pytest.fixture(scope="module")
def measured(setting: Setting) -> Measured:
    return Decodability().measure(setting, made(identity=False))


def record(measured: Measured, **wanted: str) -> dict[str, Any]:
    """The one row of the table with these labels."""
    columns = measured.columns
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def test_the_table_is_complete(measured: Measured):
    """Each site of each network in three forms at two strengths; no network stands before the encoding."""
    labels = ("network", "site", "form", "strength")
    found = set(zip(*(measured.columns[name] for name in labels), strict=True))
    sites = [("trained", "encoding"), ("trained", "made"), ("untrained", "hidden 1"), ("untrained", "hidden 2")]
    forms, strengths = ("intrinsic", "transfer", "in_distribution"), ("1", "chosen")
    assert found == {(*site, *rest) for site in sites for rest in itertools.product(forms, strengths)}
    assert len(measured.columns["r2"]) == len(found)
    used = dict(zip(measured.columns["strength"], measured.columns["value"], strict=True))
    assert used["1"] == 1.0


def test_the_encoding_is_read_perfectly_under_identity(measured: Measured):
    for form in ("intrinsic", "transfer", "in_distribution"):
        assert record(measured, site="encoding", form=form, strength="chosen")["r2"] > 0.999
        assert record(measured, site="encoding", form=form, strength="1")["r2"] > 0.9


def test_a_site_that_encodes_constituents_is_selective(measured: Measured):
    found = record(measured, site="made", form="intrinsic", strength="chosen")
    assert found["r2"] > 0.999
    assert found["selectivity"] == found["r2"] - found["control"]
    assert found["selectivity"] > 0.3


def test_a_site_that_encodes_whole_combinations_is_not_selective(setting: Setting):
    """One unit for each combination: the control task is easy there, and nothing carries over to new ones."""
    found = record(
        Decodability().measure(setting, made(identity=True)), site="made", form="intrinsic", strength="chosen"
    )
    assert found["control"] > 0.7
    assert found["r2"] < 0.1
    assert found["selectivity"] < -0.6


def test_the_untrained_network_is_measured_too(setting: Setting):
    """It is the network before training: measured as the trained one, it gives the same numbers."""
    measured = Decodability().measure(setting, setting.network())
    for site, form in itertools.product(("hidden 1", "hidden 2"), ("intrinsic", "transfer", "in_distribution")):
        one, other = (
            record(measured, network=name, site=site, form=form, strength="chosen") for name in ("trained", "untrained")
        )
        assert {**one, "network": ""} == {**other, "network": ""}
    assert measured.summary["intrinsic"] == measured.summary["intrinsic_untrained"]
    deepest = record(measured, network="trained", site="hidden 2", form="intrinsic", strength="chosen")
    assert measured.summary["intrinsic"] == deepest["r2"]
    assert measured.summary["selectivity"] == deepest["selectivity"]


def test_a_probe_with_too_few_combinations_cannot_read(tiny: Callable[..., RunConfig]):
    """Two combinations per constituent are the fewest: half of 30 is too few for 8, and half of the held-out ones is enough."""
    few = Setting(tiny(space=SPACE, support=Random(number=30), seeds=Seeds.replicate(1)))
    measured = Decodability().measure(few, made(identity=False))
    r2 = {form: record(measured, site="made", form=form, strength="chosen")["r2"] for form in FORMS}
    assert np.isnan(r2["in_distribution"]) and np.isnan(measured.summary["in_distribution_untrained"])
    assert r2["intrinsic"] > 0.999 and r2["transfer"] > 0.999


def test_it_is_deterministic(setting: Setting, measured: Measured):
    again = Decodability().measure(Setting(setting.config), made(identity=False))
    assert again == measured


@pytest.fixture(scope="module")
def folds(setting: Setting) -> list[tuple[TracedRows, TracedRows, TracedRows]]:
    """What is fitted, scored and used to choose, in every fold of one site."""
    seen: list[tuple[TracedRows, TracedRows, TracedRows]] = []

    def watch(
        fit: TracedRows, score: TracedRows, validation: TracedRows, site: str
    ) -> dict[str, tuple[float, float, float]]:
        seen.append((fit, score, validation))
        return {"1": (0.0, 0.0, 1.0), "chosen": (0.0, 0.0, 1.0)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_fold", watch)
        Decodability().measure(setting, setting.network())
    return seen


def combinations(part: TracedRows) -> set[tuple[int, ...]]:
    rows = {tuple(row) for row in part.rows.tolist()}
    assert len(rows) == len(part.rows)
    return rows


def test_no_combination_is_both_fitted_and_scored(
    setting: Setting, folds: list[tuple[TracedRows, TracedRows, TracedRows]]
):
    assert len(folds) == 5 * (1 + 2 * 2), "two folds of two forms and one of the third, at every site"
    for fit, score, validation in folds:
        assert not combinations(fit) & combinations(score)
        assert not combinations(validation) & (combinations(fit) | combinations(score))


def test_each_form_uses_the_combinations_that_it_names(
    setting: Setting, folds: list[tuple[TracedRows, TracedRows, TracedRows]]
):
    trained = {tuple(row) for row in setting.support.rows.tolist()}
    test = {
        tuple(row)
        for row in SPACE.enumerate().tolist()
        if tuple(row) not in trained and side(np.array([row]), 1)[0] == "test"
    }
    first, second, transfer, third, fourth = ((combinations(fit), combinations(score)) for fit, score, _ in folds[:5])
    assert first[0] | first[1] == test, "intrinsic: never trained, and of the test side"
    assert second == (first[1], first[0]), "both ways round"
    assert transfer == (trained, test)
    assert third[0] | third[1] == trained
    assert fourth == (third[1], third[0])
    for _, _, validation in folds:
        assert not combinations(validation) & (trained | test)


def test_tasks_belong_to_their_combinations(setting: Setting):
    """Also after splitting: the vectors of a part are those of its rows, `draws` to fit on and others to score on."""
    parts = Decodability(draws=3)._traced_regions(setting, setting.network())
    for part in [*parts.values(), *parts["held_out"].halves(), *parts["trained"].halves()]:
        for values in (part.fit, part.score):
            vectors = values["vector"].reshape(len(part.rows), 3, SPACE.width)
            for row, drawn in zip(part.rows, vectors, strict=True):
                held = np.isin(np.arange(SPACE.width), row)
                assert ((drawn > 0) == held).all()
        assert not (part.fit["vector"] == part.score["vector"]).all()


def synthetic(seed: int, combinations: int, noise: float) -> TracedRows:
    """A part whose site tells the vector up to noise."""
    rng = np.random.default_rng(seed)
    rows = np.arange(combinations * 2).reshape(-1, 2) + seed * 1000
    weights = np.random.default_rng(0).normal(size=(4, 20))

    def tasks() -> dict[str, np.ndarray]:
        vector = rng.normal(size=(2 * combinations, 4))
        site = vector @ weights + noise * rng.normal(size=(2 * combinations, 20))
        return {"vector": vector, "site": site, "control": rng.permuted(vector, axis=1)}

    return TracedRows(rows, tasks(), tasks())


def test_one_fold_against_scikit_learn():
    fit, score, validation = synthetic(1, 20, 0.5), synthetic(2, 15, 0.5), synthetic(3, 10, 0.5)
    found = module._fold(fit, score, validation, "site")

    def r2(part: TracedRows, strength: float) -> float:
        ridge = Ridge(alpha=strength).fit(fit.fit["site"], fit.fit["vector"])
        return float(r2_score(part.score["vector"], ridge.predict(part.score["site"])))

    best = max(STRENGTHS, key=lambda strength: r2(validation, strength))
    assert found["chosen"][2] == pytest.approx(np.log10(best))
    assert found["1"][2] == 0.0
    for name, strength in (("1", 1.0), ("chosen", best)):
        control = Ridge(alpha=strength).fit(fit.fit["site"], fit.fit["control"]).predict(fit.score["site"])
        assert found[name][0] == pytest.approx(r2(score, strength), abs=1e-6)
        assert found[name][1] == pytest.approx(r2_score(fit.score["control"], control), abs=1e-6)


def test_the_strength_follows_the_validation_side_alone():
    """Whatever is scored, the same strength; other validation combinations, another strength."""
    fit = synthetic(1, 8, 0.5)
    quiet, loud = synthetic(3, 10, 0.1), synthetic(4, 10, 30.0)
    chosen = {
        (score.rows[0, 0], validation.rows[0, 0]): module._fold(fit, score, validation, "site")["chosen"][2]
        for score in (synthetic(2, 15, 0.1), synthetic(5, 15, 30.0))
        for validation in (quiet, loud)
    }
    by_validation = {place: {value for key, value in chosen.items() if key[1] == place} for _, place in chosen}
    assert all(len(values) == 1 for values in by_validation.values())
    assert len(set.union(*by_validation.values())) == 2


def test_two_halves_are_averaged():
    parts = {"held_out": synthetic(1, 30, 1.0), "trained": synthetic(2, 21, 1.0), "validation": synthetic(3, 9, 1.0)}
    records = {(one["form"], one["strength"]): one for one in probe_site(parts, "site")}
    even, odd = parts["held_out"].halves()
    folds = [module._fold(one, other, parts["validation"], "site")["1"] for one, other in ((even, odd), (odd, even))]
    assert records["intrinsic", "1"]["r2"] == pytest.approx(np.mean([fold[0] for fold in folds]))
    assert records["intrinsic", "1"]["control"] == pytest.approx(np.mean([fold[1] for fold in folds]))
    whole = module._fold(parts["trained"], parts["held_out"], parts["validation"], "site")["chosen"]
    assert records["transfer", "chosen"]["r2"] == pytest.approx(whole[0])


def test_a_form_without_enough_combinations_is_left_out():
    parts = {"held_out": synthetic(1, 2, 1.0), "trained": synthetic(2, 21, 1.0), "validation": synthetic(3, 9, 1.0)}
    assert {one["form"] for one in probe_site(parts, "site")} == {"transfer", "in_distribution"}


def test_control_targets_are_fixed_by_the_combination():
    rows = SPACE.enumerate()[::5]
    rng = np.random.default_rng(0)
    vectors = np.zeros((3 * len(rows), SPACE.width), np.float32)
    for index, row in enumerate(rows):
        parts = list(SPACE.constituents(row))
        vectors[3 * index : 3 * index + 3, parts] = rng.uniform(0.5, 1, size=(3, len(parts)))
    control = control_targets(rows, vectors, 0)
    np.testing.assert_array_equal(control, control_targets(rows, vectors, 0))
    np.testing.assert_array_equal(np.sort(control, axis=1), np.sort(vectors, axis=1))
    places = [tuple(np.flatnonzero(values)) for values in control]
    for index in range(len(rows)):
        assert len(set(places[3 * index : 3 * index + 3])) == 1, "one code for all tasks of a combination"
    assert (control != control_targets(rows, vectors, 1)).any(), "another replicate has other codes"
    # In another company, another code: the same combination alone or among others has the same.
    alone = control_targets(rows[4:5], vectors[12:15], 0)
    np.testing.assert_array_equal(alone, control[12:15])
    # A constituent's code differs from combination to combination.
    single = [place for place, row in zip(places[::3], rows, strict=True) if 0 in row]
    assert len(set(single)) > 1


def test_a_network_without_sites_is_probed_at_its_encoding(setting: Setting, monkeypatch: pytest.MonkeyPatch):
    class Closed(Network):
        def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
            return jnp.zeros((len(inputs), 3)), {}

    monkeypatch.setattr(Setting, "network", lambda self: Closed())
    measured = Decodability(draws=1).measure(setting, Closed())
    assert set(measured.columns["site"]) == {"encoding"}
    assert measured.summary["intrinsic"] > 0.99
