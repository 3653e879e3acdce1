"""encodings: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.overrides import apply
from recombine.studies.encodings import PUBLISHED, Encodings


@pytest.fixture(scope="module")
def laptop() -> Encodings:
    return apply(Encodings.profile("laptop"), ["first_seed=0"])


@pytest.fixture(scope="module")
def published() -> Encodings:
    """With the published teacher for few-shot, too."""
    return apply(Encodings.profile("workstation"), ["first_seed=0", "replicates=12"])


@pytest.fixture(scope="module")
def tables(made):
    """Tables with the published scores plus a shift. Runs that fulfil `missing` are absent."""

    def build(study, shift=0.0, noise=0.005, missing=lambda labels: False):
        draw = np.random.default_rng(0)

        def score(labels):
            wobble = noise * draw.standard_normal()
            if missing(labels):
                return {}
            if labels["arm"] == "lookup":
                return {"r2_in": 0.8, "r2_held_out": -1.0, "correlation_held_out": wobble}
            published = PUBLISHED[labels["encoding"]]["generalisation"]
            ours = published + shift + wobble
            return {"r2_in": 0.99, "r2_held_out": ours, "r2_ratio_held_out": ours}

        def probes(labels):
            sites = {"encoding": 0.4, "hidden 1": 0.9, "hidden 2": 0.7}
            rows = pd.DataFrame({"site": sites.keys(), "r2": sites.values()})
            return rows.assign(form="intrinsic", strength="chosen", network="trained")

        return made(study, score, decodability=probes)

    return build


def test_runs_of_every_encoding(laptop):
    runs = laptop.design.runs
    assert len(laptop.design.run_ids) == len(runs)
    main = [labels["encoding"] for _, labels in runs if labels["arm"] != "lookup"]
    assert {kind: main.count(kind) for kind in PUBLISHED} == dict.fromkeys(PUBLISHED, 12)
    assert all(config.encoding.kind == labels["encoding"] for config, labels in runs)
    control = {labels["encoding"] for _, labels in runs if labels["arm"] == "lookup"}
    assert control == {"identity", "interval-shuffle"}


def test_published_scores_are_found_again(published, laptop, tables, words):
    found = words(published, tables(published))
    assert all(found[f"as-published-{kind}"] == "equivalent" for kind in PUBLISHED)
    found = words(laptop, tables(laptop))
    assert "as-published-few-shot" not in found, "a smaller teacher is not compared with the published one"
    assert found["all-generalise"] == "supported" and found["few-shot-generalises"] == "supported"
    assert found["decoded-where-the-input-hides-it"] == "supported"


def test_other_scores_are_not(published, tables, words):
    found = words(published, tables(published, shift=-0.2))
    assert all(found[f"as-published-{kind}"] == "contradicted" for kind in PUBLISHED)
    assert found["all-generalise"] == "contradicted"


def test_the_lowest_encoding_counts_and_a_missing_one_decides_nothing(laptop, tables, effects):
    values = effects(laptop, tables(laptop, noise=0.0))
    assert values["all-generalise"] == pytest.approx(0.95)
    assert values["decoded-where-the-input-hides-it"][0] == pytest.approx(0.8 - 0.4)
    assert values["control-is-learned"] == pytest.approx(0.8)

    def gone(labels):
        return labels["encoding"] == "tokens" and labels["replicate"] == 0

    values = effects(laptop, tables(laptop, missing=gone))
    assert np.isnan(values["all-generalise"][0]) and np.isfinite(values["all-generalise"][1:]).all()


def test_the_overview_has_the_published_numbers_beside_ours(laptop, tables):
    given = tables(laptop, noise=0.0)
    frame = laptop.design.overview(given).set_index(["arm", "encoding"])
    row = frame.loc[("main", "invertible")]
    assert row["r2_held_out"] == pytest.approx(0.95) == row["published_generalisation"]
    assert row["input_decoder"] == pytest.approx(0.4) and row["deepest_decoder"] == pytest.approx(0.7)
    assert np.isnan(frame.loc[("lookup", "identity"), "published_generalisation"])


def test_figures_of_tables_and_of_nothing(laptop, tables, made):
    for given in (tables(laptop), made(laptop, lambda labels: {})):
        assert [figure.name for figure in laptop.design.figures(given)] == ["encodings"]
        assert len(laptop.design.overview(given)) == 8
