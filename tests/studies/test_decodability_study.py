"""decodability: its runs, and its effects on tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.design.replicates import rank_correlation
from recombine.design.study import PROFILES
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.decodability import CORRELATIONS, Decodability
from recombine.studies.scaling_law import ScalingLaw

FAMILIES = {"main": "hyperteacher", "others": "hyperteacher", "lookup": "lookup", "ignored": "ignored-part"}
CLAIMS = [
    "fits",
    *CORRELATIONS,
    *("probe-starves", "fades", "fades-more", "learned", "swap", "swap-deepest", "swap-deepest-helps", "swap-share"),
    *("erasure-holds", "erasure-first", "erasure-middle", "theorem-says-something", "theorem", "control-is-learned"),
    *("selectivity", "control-stays-at-zero", "control-is-decodable", "control-swap-misses", "control-not-recovered"),
    *("ignored-is-learned", "ignored-part-fades"),
]


def summary(labels, draw):
    """The numbers of a run, as they are where every claim holds."""
    number, width = labels["number"], labels["width"]
    quality = draw.standard_normal()
    size = {40: 0.0, 80: 1.0, 160: 2.0, 320: 3.0}[number]
    narrow = 0.0 if width == 128 else 0.2
    values = {
        "r2_in": 0.93 + 0.005 * draw.standard_normal(),
        "r2_held_out": 0.5 + 0.1 * size + 0.02 * quality - narrow,
        "correlation_held_out": 0.002 * draw.standard_normal(),
        "intrinsic": 0.6 + 0.02 * size + 0.02 * quality + 0.005 * draw.standard_normal() - narrow,
        "intrinsic_untrained": 0.3,
        "selectivity": 0.5,
        "transfer": 0.4 + 0.1 * size,
        "middle": 0.9 + 0.01 * quality - narrow,
        "efficacy": 0.02 + 0.001 * quality,
        "efficacy_best": 0.2 + 0.01 * quality,
        "ceiling_shift_best": 0.25,
        "floor_random": -0.2,
        "floor_control": -0.15,
        "floor_random_best": -0.15,
        "floor_control_best": -0.1,
        "accuracy_best": 0.2,
        "recovered": 0.95,
        "recovered_in": 1.0,
        "bound_in": 0.4 + 0.01 * quality,
        "slack_in": 0.6 - 0.01 * quality,
    }
    if labels["arm"] == "lookup":
        values |= {
            "r2_held_out": -2.0,
            "selectivity": 0.3,
            "accuracy_best": -2.0 + quality / 10,
            "recovered": 0.05,
            "slack_in": 0.3 + 0.01 * quality,
            "bound_in": 0.7,
        }
    return values


def layer_rows(values, depth):
    """The tables of decodability and erasure of one run."""
    probes, erased = [], []
    for number in range(depth + 1):
        site = f"hidden {number}" if number else "encoding"
        trained = {0: 1.0, 1: 0.96, 2: values["middle"], 3: values["intrinsic"]}[number]
        for network in ("trained", "untrained"):
            for form in ("intrinsic", "transfer", "in_distribution"):
                r2 = trained if network == "trained" else values["intrinsic_untrained"]
                if form == "transfer" and number == 3:
                    r2 = values["transfer"]
                names = {"site": site, "network": network, "form": form, "control": 0.1}
                probes += [names | {"strength": "1", "r2": r2 - 0.5}, names | {"strength": "chosen", "r2": r2}]
        if number:
            wobble = 0.01 * values["efficacy"]
            lost = {1: 0.4, 2: 0.3, 3: 0.1}[number] + wobble
            scores = {"before": 0.85, "after": 0.85 - lost, "random": 0.75, "mean": -0.2}
            erased.append({"site": site, "trivial": number == 1, "decodable_after": 0.01 + wobble} | scores)
    return probes, erased


def swap_rows(values, depth):
    names = ("efficacy", "floor_random", "floor_control")
    made = {name: values[name] for name in names} | {"ceiling": 1.0, "ceiling_shift": 0.3}
    return [{"site": f"hidden {number}"} | made for number in range(1, depth + 1)]


def readings(study, lost, draw):
    """The tables `readout` and `combinations` of one run: combinations that hold the ignored part are read worse."""
    read, scored = [], []
    for number in range(30):
        holds = number % 3 == 0
        error = 0.3 + (0.03 + lost) * holds + 0.001 * draw.standard_normal()
        read.append({"combination": f"c{number}", "error": error})
        parts = np.array([study.ignored.part, 5]) if holds else np.array([4, 5])
        scored.append({"combination": f"c{number}", "constituents": parts, "region": "held_out"})
    return read, scored


@pytest.fixture(scope="module")
def filled():
    """Tables in which every claim holds; `change(labels, values)` alters a run, `drop(labels)` leaves it out."""

    def make(study, change=None, drop=None, seed=0):
        draw = np.random.default_rng(seed)
        frames = {name: [] for name in ("decodability", "erasure", "swap", "readout", "combinations")}
        runs = []
        for config, labels in study.design.runs:
            values = summary(labels, draw)
            if change is not None:
                values |= change(labels, values)
            if drop is not None and drop(labels):
                continue
            lost = values.pop("lost", 0.2 if labels["arm"] == "ignored" else 0.0)
            probes, erased = layer_rows(values, study.depth)
            del values["middle"]
            read, scored = readings(study, lost, draw)
            rows = {"decodability": probes, "erasure": erased, "swap": swap_rows(values, study.depth)}
            for name, some in (rows | {"readout": read, "combinations": scored}).items():
                frames[name] += [row | {"run": config.run_id} for row in some]
            runs.append({"run": config.run_id, "status": "complete"} | values)
        labels = pd.DataFrame([{"run": config.run_id} | names for config, names in study.design.runs])
        tables = {name: pd.DataFrame(rows) for name, rows in (frames | {"runs": runs}).items() if rows}
        return Tables.from_frames(labels, tables)

    return make


@pytest.fixture(scope="module")
def study():
    return apply(Decodability.profile("laptop"), ["first_seed=1000", "replicates=12"])


@pytest.fixture(scope="module")
def tables(study, filled):
    return filled(study)


def networks(study, tables):
    data = study.design.data(tables)
    return study.networks(*(data[arm] for arm in ("main", "others") if arm in data))


def spearman(x, y):
    return float(pd.Series(x).corr(pd.Series(y), method="spearman"))


def words(study, tables):
    """The verdict on each claim alone."""
    return {effect.claim.name: effect.judge().verdict for effect in study.design.effects(tables)}


# The runs


@pytest.mark.parametrize("profile", PROFILES)
def test_runs_are_unique_and_every_cell_has_every_replicate(profile):
    study = Decodability.profile(profile)
    runs = study.design.runs
    labels = pd.DataFrame([labels for _, labels in runs])
    assert len(study.design.run_ids) == len(labels)
    assert not labels.duplicated().any()
    cells = labels.groupby(["arm", "width", "number"])["replicate"].nunique()
    few, many = study.numbers[0], study.numbers[-1]
    expected = {("main", study.width, number) for number in study.numbers}
    expected |= {("others", width, number) for width in study.other_widths for number in study.other_numbers}
    expected |= {("lookup", study.width, few), ("lookup", study.width, many), ("ignored", study.width, many)}
    assert (cells == study.replicates).all() and set(cells.index) == expected
    for config, label in runs:
        assert config.support.number == label["number"] and config.family.kind == FAMILIES[label["arm"]]
        assert config.model.hidden == (label["width"],) * study.depth


def test_the_laptop_grid_shares_its_runs_with_the_scaling_law(study):
    assert study.replicates == 12 and len(study.design.runs) <= 110
    own = {config.run_id: labels["arm"] for config, labels in study.design.runs}
    shared = {config.run_id for config, _ in ScalingLaw.profile("laptop").design.runs} & set(own)
    alone = {arm for run, arm in own.items() if run not in shared}
    assert alone == {"ignored"}, "all but the ignored part are trained anyway"


def test_layers_that_claims_are_about():
    by_depth = {depth: validate(Decodability, {"depth": depth}) for depth in (2, 3, 4, 6)}
    assert {depth: one.middle for depth, one in by_depth.items()} == {
        2: "hidden 2",
        3: "hidden 2",
        4: "hidden 2",
        6: "hidden 3",
    }
    assert by_depth[4].deepest == "hidden 4"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numbers": (80, 40)}, "smallest first"),
        ({"numbers": (40,), "other_numbers": ()}, "at least 2"),
        ({"other_numbers": (81,)}, "must be some of"),
        ({"other_widths": (128,)}, "must differ from width"),
        ({"depth": 1}, "greater than or equal to 2"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(given, message):
    with pytest.raises(BadInput, match=message):
        validate(Decodability, given)


# The effects


def test_where_all_is_as_stated_every_claim_holds(study, tables):
    found = {effect.claim.name: effect.judge() for effect in study.design.effects(tables)}
    assert list(found) == CLAIMS
    assert [name for name, verdict in found.items() if verdict.claim.primary] == ["at-equal-fit"]
    # In these tables few and many combinations fade alike but for the rise of the deepest layer.
    assert {name for name, one in found.items() if one.verdict != one.claim.wanted} <= {"fades-more"}
    assert all(verdict.replicates == 12 for verdict in found.values())
    smoke = Decodability.profile("smoke")
    assert [claim.name for claim in smoke.design.claims] == CLAIMS, "a profile without other widths has all claims too"


def test_effects_are_computed_as_stated(study, filled, effects):
    def change(labels, values):
        few = labels["number"] == 40
        fixed = {name: round(value, 6) for name, value in values.items()}
        if labels["arm"] in ("main", "others"):
            own = {"r2_in": 0.91 if labels["number"] == 160 else 0.95, "intrinsic": 0.6 if few else 0.7}
            own |= {"transfer": 0.4 if few else 0.75, "efficacy": 0.05, "efficacy_best": 0.2, "bound_in": 0.41}
            return fixed | own | {"slack_in": 0.59, "selectivity": 0.5, "lost": 0.01}
        own = {"r2_in": 0.9, "intrinsic": 0.62, "selectivity": 0.3, "recovered": 0.06, "bound_in": 0.7}
        own |= {"slack_in": 0.3, "accuracy_best": -2.0, "correlation_held_out": 0.03 if few else 0.01}
        return fixed | own | {"lost": 0.21}

    found = effects(study, filled(study, change))
    expected = {
        "fits": 0.91,
        "probe-starves": 0.35 - 0.1,
        "fades": 0.36,
        "fades-more": 0.1,
        "learned": 0.4,
        "swap": 0.3,
        "swap-deepest": 0.2,
        "swap-deepest-helps": 0.05,
        "swap-share": 0.8,
        "erasure-holds": 0.0105,
        "erasure-first": 0.75 - (0.45 - 0.0005),
        "erasure-middle": 0.75 - (0.55 - 0.0005),
        "theorem-says-something": 0.41,
        "theorem": 0.3,
        "control-is-learned": 0.9,
        "selectivity": 0.2,
        "control-stays-at-zero": 0.02,
        "control-is-decodable": 0.32,
        "control-swap-misses": -2.0,
        "control-not-recovered": 0.06,
        "ignored-is-learned": 0.9,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], np.full(12, value), atol=1e-9, err_msg=name)
    np.testing.assert_allclose(found["ignored-part-fades"], np.full(12, 0.2), atol=0.005)


def test_a_correlation_that_only_the_size_makes_is_not_taken_for_one(study, filled):
    draw = np.random.default_rng(5)

    def change(labels, values):
        size = labels["number"] / 320
        noise = draw.standard_normal(3)
        return {
            "intrinsic": 0.4 + 0.3 * size + 0.02 * noise[0],
            "middle": 0.4 + 0.3 * size + 0.02 * noise[1],
            "r2_held_out": 0.4 + 0.5 * size + 0.02 * noise[2],
        }

    tables = filled(study, change)
    frame = networks(study, tables)
    assert spearman(frame["intrinsic"], frame["r2_held_out"]) > 0.7
    found = words(study, tables)
    assert not {"supported"} & {found[name] for name in CORRELATIONS}


def test_a_correlation_that_only_the_width_makes_is_told_apart(study, filled):
    draw = np.random.default_rng(6)

    def change(labels, values):
        wide = labels["width"] == 128
        noise = draw.standard_normal(2)
        return {"intrinsic": 0.4 + 0.3 * wide + 0.02 * noise[0], "r2_held_out": 0.4 + 0.5 * wide + 0.02 * noise[1]}

    # Width differs at every size here.
    wider = apply(study, ["other_numbers=40,80,160,320"])
    found = words(wider, filled(wider, change))
    assert found["within-size"] == "supported"
    assert "supported" not in (found["within-size-and-width"], found["at-equal-fit"])


def test_the_mean_of_the_pseudo_values_is_near_the_correlation(study, tables, effects):
    frame = networks(study, tables)
    assert len(frame) == 72
    whole = rank_correlation(frame, "intrinsic", "r2_held_out", ["number"])
    assert effects(study, tables)["within-size"].mean() == pytest.approx(whole, abs=0.03)
    alone = frame[(frame["number"] == 40)]
    expected = spearman(alone["intrinsic"], alone["r2_held_out"])
    assert rank_correlation(alone, "intrinsic", "r2_held_out", ["number", "width"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gone", "without", "still"),
    [
        (("main", 128, 160), [*CORRELATIONS, "fits"], ["learned", "swap", "theorem"]),
        (("others", 58, 80), CORRELATIONS, ["fits", "fades"]),
        (("main", 128, 40), [*CORRELATIONS, "fits", "fades", "probe-starves", "theorem"], ["learned", "swap"]),
        (("main", 128, 320), ["learned", "swap", "erasure-middle", "ignored-part-fades"], ["fades", "theorem"]),
        (("lookup", 128, 40), ["theorem", "selectivity", "control-is-decodable"], ["within-size", "fits"]),
        (("ignored", 128, 320), ["ignored-is-learned", "ignored-part-fades"], ["within-size", "swap"]),
    ],
)
def test_a_missing_run_gives_its_replicate_no_number(study, filled, effects, gone, without, still):
    def drop(labels):
        return (labels["arm"], labels["width"], labels["number"]) == gone and labels["replicate"] == 1003

    found = effects(study, filled(study, drop=drop))
    for name in without:
        assert np.flatnonzero(np.isnan(found[name])).tolist() == [3], name
    for name in still:
        assert np.isfinite(found[name]).all(), name


def test_without_runs_nothing_is_decided(study, filled):
    nothing = filled(study, drop=lambda labels: True)
    assert all(np.isnan(effect.values).all() for effect in study.design.effects(nothing))
    assert all(figure.chart.to_dict() for figure in study.design.figures(nothing))
    assert study.design.overview(nothing).empty


def test_controls_that_do_not_behave_are_found(study, filled):
    def leaks(labels, values):
        if labels["arm"] == "lookup":
            return {"correlation_held_out": 0.2 + values["r2_in"] / 100, "recovered": 0.5 + values["r2_in"] / 100}
        return {"lost": 0.0}

    found = words(study, filled(study, leaks))
    for name in ("control-stays-at-zero", "control-not-recovered"):
        assert found[name] == "contradicted"
    assert found["ignored-part-fades"] != "supported"


def test_a_layer_that_reads_but_does_not_use_is_told_apart(study, filled):
    def unused(labels, values):
        wobble = values["r2_in"] / 100
        return {"efficacy": -0.2 + wobble, "efficacy_best": -0.1 + wobble}

    found = words(study, filled(study, unused))
    assert found["swap"] == "equivalent" and found["swap-share"] == "contradicted"
    assert found["swap-deepest-helps"] == "contradicted" and found["learned"] == "supported"


def test_the_overview_and_the_figures(study, tables):
    frame = study.design.overview(tables)
    assert len(frame) == 9 and (frame["n"] == 12).all()
    found = study.design.figures(tables)
    assert [figure.name for figure in found] == [
        "decodability_within_size",
        "decodability_by_layer",
        "swap_by_layer",
        "erasure_by_layer",
    ]
    assert all(figure.chart.to_dict() and figure.caption for figure in found)
    assert "Rank correlation within size" in found[0].caption
