"""embers: its runs, and its effects on answers whose odds are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.errors import BadInput
from recombine.language.drawn import LEVELS
from recombine.overrides import apply, validate
from recombine.stats.verdicts import Verdict, settle
from recombine.studies.base import Tables
from recombine.studies.embers import Embers
from recombine.studies.embers_claims import ARMS, EVEN_SHIFTS, EVEN_TEXTS, SKEWED

LOGPROB = dict(zip(LEVELS, (-8.0, -15.0, -26.0), strict=True))
CIPHER = -28.0
"""The log-probability of what is no text."""
COMMON, FREQUENT = 3.0, 2.5
"""Log-odds of the common shift, and of all where they are even."""


@pytest.fixture(scope="module")
def small() -> Embers:
    return apply(Embers.profile("smoke"), ["first_seed=0", "replicates=6"])


def tables(
    study: Embers,
    output: float = 1.0,
    given: float = 0.0,
    common: float = COMMON,
    fits: float = 1.0,
    texts: int = 40,
) -> Tables:
    """Answers that are right with log-odds of -1, `common` more for the common shift, and for every 10 nats `output` of the
    answer's log-probability above -18 and `given` of the input's."""
    draw = np.random.default_rng(0)
    rows = []
    for config, labels in study.runs():
        arm, name = labels["arm"], {"run": config.run_id} | labels
        own = study.shifts(labels["replicate"])[arm == "rotated"]
        for level, told in LOGPROB.items():
            rows += [
                name
                | {"region": "held_out", "way": "text", "level": level, "shift": 0, "common": False}
                | {"own_logprob": told, "right": 0.0, "text": f"{level} 0"}
            ]
            for way in ("decode", "encode"):
                probabilities = (CIPHER, told) if way == "decode" else (told, CIPHER)
                flat = arm == EVEN_TEXTS
                odds = (
                    0.0
                    if flat
                    else sum(
                        weight * (value + 18) / 10
                        for weight, value in zip((given, output), probabilities, strict=True)
                    )
                )
                for shift in range(1, study.alphabet):
                    lead = FREQUENT if arm == EVEN_SHIFTS else common * (shift == own)
                    chance = 1 / (1 + math.exp(1 - lead - odds))
                    rows += [
                        name
                        | {
                            "region": "held_out",
                            "way": way,
                            "level": level,
                            "shift": shift,
                            "common": shift == own,
                        }
                        | {"text": f"{level} {number}", "right": float(draw.random() < chance)}
                        | {
                            "input_logprob": probabilities[0] + 0.1 * number % 1,
                            "output_logprob": probabilities[1],
                        }
                        for number in range(texts)
                    ]
        rows.append(name | {"region": "trained", "way": "decode", "level": "", "common": True, "right": fits})
    empty = pd.DataFrame({"run": []})
    runs = pd.DataFrame([{"run": config.run_id} | labels for config, labels in study.runs()])
    return Tables(runs, empty, empty, empty, {"cipher-answers": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def usual(small: Embers) -> Tables:
    return tables(small)


def judged(study: Embers, frames: Tables) -> dict[str, Verdict]:
    found = settle([effect.judge() for effect in study.effects(frames)])
    return {verdict.claim.name: verdict for verdict in found}


def test_every_arm_has_its_replicates() -> None:
    study = Embers.profile("laptop")
    labels = pd.DataFrame([labels for _, labels in study.runs()])
    assert (labels.groupby("arm").size() == study.replicates).all() and study.replicates >= 8
    assert set(labels["arm"]) == set(ARMS)
    assert study.first_seed >= 1000


def test_arms_differ_in_the_stream_alone() -> None:
    study = Embers.profile("laptop")
    first = {
        labels["arm"]: config for config, labels in study.runs() if labels["replicate"] == study.seeds[0]
    }
    for config in first.values():
        same = config.model_copy(update={"support": first[SKEWED].support})
        assert same == first[SKEWED]
    assert len({config.support for config in first.values()}) == 4


@pytest.mark.parametrize("alphabet", [5, 6, 10, 26])
def test_the_common_shift_goes_round(alphabet: int) -> None:
    study = Embers.profile("laptop").model_copy()
    family = study.base.family.model_copy(update={"alphabet": alphabet})
    study = study.model_copy(update={"base": study.base.model_copy(update={"family": family})})
    pairs = [study.shifts(seed) for seed in range(1000, 1000 + alphabet - 1)]
    assert sorted(common for common, _ in pairs) == list(range(1, alphabet))
    for common, other in pairs:
        assert 1 <= other < alphabet and other != common and (common + other) % alphabet


def test_verdicts_where_probability_matters(small: Embers, usual: Tables) -> None:
    found = judged(small, usual)
    words = {name: verdict.verdict for name, verdict in found.items()}
    assert all(words[name] == verdict.claim.wanted for name, verdict in found.items()), words


def test_verdicts_where_only_the_input_matters(small: Embers) -> None:
    found = judged(small, tables(small, output=0.0, given=1.0))
    assert found["decoding-gap"].verdict == "contradicted"
    assert found["probable-output"].verdict == "equivalent"
    assert found["output-over-input"].verdict == "contradicted"
    assert found["common-task"].verdict == "supported"


def test_verdicts_where_tasks_are_alike(small: Embers) -> None:
    found = judged(small, tables(small, common=0.0, texts=150))
    assert found["common-task"].verdict == "equivalent" and found["gap-moves"].verdict == "equivalent"


def test_a_network_that_did_not_fit_decides_nothing(small: Embers) -> None:
    found = judged(small, tables(small, fits=0.5, texts=12))
    for name in ("probable-output", "common-task", "decoding-gap", "output-weight", "gap-moves"):
        assert found[name].verdict == "inconclusive"


def test_weights_are_those_of_the_odds(small: Embers) -> None:
    frames = tables(small, output=1.2, given=0.4, texts=100)
    found = {one.claim.name: one.values for one in small.effects(frames)}
    assert found["output-weight"].mean() == pytest.approx(1.2, abs=0.1)
    assert found["output-over-input"].mean() == pytest.approx(0.8, abs=0.1)


def test_effects_are_means_of_answers(small: Embers, usual: Tables) -> None:
    frame = usual.others["cipher-answers"]
    found = {one.claim.name: one.values for one in small.effects(usual)}
    own = frame[(frame["arm"] == SKEWED) & (frame["replicate"] == 2) & (frame["region"] == "held_out")]
    right = own[own["way"] == "decode"].groupby("level")["right"].mean()
    assert found["probable-output"][2] == pytest.approx(right["probable"] - right["made up"])
    assert found["probable-order"][2] == pytest.approx(right["probable"] - right["reordered"])
    ciphers = own[own["way"] != "text"]
    lead = ciphers[ciphers["common"]]["right"].mean() - ciphers[~ciphers["common"]]["right"].mean()
    assert found["common-task"][2] == pytest.approx(lead)
    assert found["knows-the-language"][2] == pytest.approx(7.0)


def test_a_missing_run_leaves_its_replicate_out(small: Embers, usual: Tables) -> None:
    frame = usual.others["cipher-answers"]
    kept = frame[(frame["arm"] != "rotated") | (frame["replicate"] != 1)]
    left = Tables(usual.runs, usual.combinations, usual.probes, usual.curves, {"cipher-answers": kept})
    found = {one.claim.name: one.values for one in small.effects(left)}
    assert np.isnan(found["gap-moves"][1]) and np.isfinite(np.delete(found["gap-moves"], 1)).all()
    assert np.isfinite(found["common-task"]).all()


def test_figures_are_drawn_with_and_without_runs(small: Embers, usual: Tables) -> None:
    names = ["by_probability", "by_frequency", "rotation", "weights"]
    empty = pd.DataFrame({"run": []})
    nothing = Tables(empty, empty, empty, empty, {"cipher-answers": empty})
    for frames in (usual, nothing):
        figures = small.figures(frames)
        assert [figure.name for figure in figures] == names
        assert all(figure.chart.to_dict() for figure in figures)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"base": {"family": "scan"}}, "must be ciphers on cipher-stream"),
        ({"base": {"family": "ciphers", "support": {"kind": "cipher-stream", "skew": 1}}}, "and a skew"),
    ],
)
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        validate(Embers, given)
