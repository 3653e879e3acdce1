"""embers: its runs, and its effects on answers whose odds are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recombine.design import Tables
from recombine.errors import BadInput
from recombine.language.drawn import LEVELS
from recombine.overrides import apply, validate
from recombine.studies.embers import ARMS, Embers

LOGPROB = dict(zip(LEVELS, (-8.0, -15.0, -26.0), strict=True))
CIPHER = -28.0
"""The log-probability of what is no text."""
COMMON, FREQUENT = 3.0, 2.5
"""Log-odds of the common shift, and of all where they are even."""


@pytest.fixture(scope="module")
def small() -> Embers:
    return apply(Embers.profile("smoke"), ["first_seed=0", "replicates=12"])


World = Callable[..., Tables]


@pytest.fixture(scope="module")
def world(made: Any) -> World:
    """Answers that are right with log-odds of -1, `common` more for the common shift, and for every 10 nats `output` of the
    answer's log-probability above -18 and `given` of the input's. `kept` says which runs have answers."""

    def make(
        study: Embers,
        output: float = 1.0,
        given: float = 0.0,
        common: float = COMMON,
        fits: float = 1.0,
        rare: float = 1.0,
        texts: int = 80,
        kept: Callable[[dict[str, Any]], bool] = lambda labels: True,
    ) -> Tables:
        draw = np.random.default_rng(0)

        def answers(labels: dict[str, Any]) -> pd.DataFrame:
            arm, own = labels["arm"], study.shifts(labels["replicate"])[labels["arm"] == "rotated"]
            rows: list[dict[str, Any]] = []
            for level, logprob in LOGPROB.items():
                plain = {"region": "held_out", "way": "text", "level": level, "shift": 0, "common": False}
                rows += [plain | {"own_logprob": logprob, "right": 0.0, "text": f"{level} 0"}]
                for way in ("decode", "encode"):
                    probabilities = (CIPHER, logprob) if way == "decode" else (logprob, CIPHER)
                    weighted = zip((given, output), probabilities, strict=True)
                    odds = sum(weight * (value + 18) / 10 for weight, value in weighted)
                    odds = 0.0 if arm == "even_texts" else odds
                    for shift in range(1, study.alphabet):
                        lead = FREQUENT if arm == "even_shifts" else common * (shift == own)
                        chance = 1 / (1 + math.exp(1 - lead - odds))
                        rows += [
                            {"region": "held_out", "way": way, "level": level, "shift": shift}
                            | {"common": shift == own, "text": f"{level} {number}"}
                            | {"right": float(draw.random() < chance), "output_logprob": probabilities[1]}
                            | {"input_logprob": probabilities[0] + 0.1 * number % 1}
                            for number in range(texts)
                        ]
            trained = {"region": "trained", "way": "decode", "level": ""}
            rows += [trained | {"common": True, "right": fits}, trained | {"common": False, "right": rare}]
            return pd.DataFrame(rows if kept(labels) else [])

        return made(study, lambda labels: {}, cipher_answers=answers)

    return make


@pytest.fixture(scope="module")
def usual(small: Embers, world: World) -> Tables:
    return world(small)


def test_every_arm_has_its_replicates() -> None:
    study = Embers.profile("laptop")
    assert set(study.design.arms) == set(ARMS) and study.replicates >= 8 and study.first_seed >= 1000
    assert len(study.design.run_ids) == 4 * study.replicates


def test_arms_differ_in_the_stream_alone() -> None:
    study = Embers.profile("laptop")
    runs = study.design.runs
    first = {labels["arm"]: config for config, labels in runs if labels["replicate"] == study.seeds[0]}
    for config in first.values():
        assert config.model_copy(update={"support": first["skewed"].support}) == first["skewed"]
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


def test_verdicts_where_probability_matters(small: Embers, usual: Tables, words: Any) -> None:
    verdicts = words(small, usual)
    wanted = {claim.name: claim.of("embers").wanted for claim in small.design.claims}
    assert verdicts == wanted


def test_verdicts_where_only_the_input_matters(small: Embers, world: World, words: Any) -> None:
    verdicts = words(small, world(small, output=0.0, given=1.0))
    assert verdicts["decoding-gap"] == "contradicted"
    assert verdicts["probable-output"] == "equivalent"
    assert verdicts["output-over-input"] == "contradicted"
    assert verdicts["common-task"] == "supported"


def test_verdicts_where_tasks_are_alike(small: Embers, world: World, words: Any) -> None:
    verdicts = words(small, world(small, common=0.0, texts=150))
    assert verdicts["common-task"] == "equivalent" and verdicts["gap-moves"] == "equivalent"


def test_a_network_that_did_not_fit_decides_nothing(small: Embers, world: World, words: Any) -> None:
    for missing in ({"fits": 0.5}, {"rare": 0.8}):
        verdicts = words(small, world(small, **missing, texts=12))
        for name in ("probable-output", "common-task", "decoding-gap", "output-weight", "gap-moves"):
            assert verdicts[name] == "inconclusive"


def test_weights_are_those_of_the_odds(small: Embers, world: World, effects: Any) -> None:
    values = effects(small, world(small, output=1.2, given=0.4, texts=100))
    assert values["output-weight"].mean() == pytest.approx(1.2, abs=0.1)
    assert values["output-over-input"].mean() == pytest.approx(0.8, abs=0.1)


def test_effects_are_means_of_answers(small: Embers, usual: Tables, effects: Any) -> None:
    frame = usual["cipher-answers"]
    values = effects(small, usual)
    own = frame[(frame["arm"] == "skewed") & (frame["replicate"] == 2) & (frame["region"] == "held_out")]
    right = own[own["way"] == "decode"].groupby("level")["right"].mean()
    assert values["probable-output"][2] == pytest.approx(right["probable"] - right["made up"])
    assert values["probable-order"][2] == pytest.approx(right["probable"] - right["reordered"])
    ciphers = own[own["way"] != "text"]
    common = ciphers["common"].astype(bool)
    lead = ciphers[common]["right"].mean() - ciphers[~common]["right"].mean()
    assert values["common-task"][2] == pytest.approx(lead)
    assert values["knows-the-language"][2] == pytest.approx(7.0)


def test_a_missing_run_leaves_its_replicate_out(small: Embers, world: World, effects: Any) -> None:
    def kept(labels: dict[str, Any]) -> bool:
        return labels["arm"] != "rotated" or labels["replicate"] != 1

    values = effects(small, world(small, texts=12, kept=kept))
    assert np.isnan(values["gap-moves"][1]) and np.isfinite(np.delete(values["gap-moves"], 1)).all()
    assert np.isfinite(values["common-task"]).all()


def test_figures_are_drawn_with_and_without_runs(small: Embers, usual: Tables) -> None:
    names = ["by_probability", "by_frequency", "rotation", "weights"]
    for tables in (usual, Tables.from_frames(usual.labels, {})):
        figures = small.design.figures(tables)
        assert [figure.name for figure in figures] == names
        assert all(figure.chart.to_dict() for figure in figures)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"base": {"family": "scan"}}, "must be ciphers on cipher-stream"),
        ({"base": {"family": "ciphers", "support": {"kind": "cipher-stream", "skew": 1}}}, "a skew and uneven texts"),
    ],
)
def test_studies_that_make_no_sense_are_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        validate(Embers, given)
