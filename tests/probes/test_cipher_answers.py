"""Answers to ciphers: exact where the answers are known."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jaxtyping import Array

from recombine.errors import BadInput
from recombine.families.base import Batch
from recombine.language.drawn import LEVELS
from recombine.models.base import Network
from recombine.objectives.next_token import NextToken
from recombine.probes.cipher_answers import CipherAnswers, LineTask, described, trained_lines
from recombine.studies.embers import Embers
from recombine.supports.cipher_stream import cipher_space, rows_of, texts_of
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SPACE = cipher_space(5, 4)
SCALE = 3.0


class Known(NextToken):
    """Says the right answer but for `wrong` letters, and expects every right token by the same log-odds."""

    wrong: int = 0

    def evaluate(self, network: Network, codes: Array, batch: Batch, key: Array) -> Array:
        return batch.targets.at[..., : self.wrong].add(1.0)

    def predict(self, network: Network, codes: Array, batch: Batch, key: Array) -> Array:
        words = 3 + 5 + 4 + 3
        return (SCALE * jax.nn.one_hot(batch.targets.astype(jnp.int32), words)).reshape(*codes.shape[:1], 1, -1)


@pytest.fixture(scope="module")
def setting() -> Setting:
    study = Embers.profile("smoke").model_copy(update={"first_seed": 0})
    return Setting(study.runs()[0][0])


@pytest.mark.parametrize("wrong", [0, 2])
def test_answers_are_right_as_a_whole(setting: Setting, wrong: int) -> None:
    row = jnp.asarray(setting.support.reserved[30])
    found = LineTask(Known(wrong=wrong))(setting.network(), setting.teacher, setting.encoder, row, jax.random.key(0))
    assert bool(found["right"]) == (wrong == 0)
    assert float(found["letters"]) == pytest.approx(1 - wrong / 5)
    told = SCALE - np.log(np.exp(SCALE) + 14)
    assert float(found["own_logprob"]) == pytest.approx(5 * told, rel=1e-5)


def test_input_and_output_have_separate_probabilities(setting: Setting) -> None:
    support: Any = setting.support
    text = support.graded[0, 3]
    rows = rows_of(SPACE, np.array([0, 2, 6]), np.stack([text] * 3))  # A text, decode 2, encode 2.
    found = pd.DataFrame(described(SPACE, support, rows))
    plain, moved = support.language.log_probability(np.stack([text, (text + 2) % 5]))
    np.testing.assert_allclose(found["output_logprob"], [plain, plain, moved])
    np.testing.assert_allclose(found["input_logprob"], [np.nan, moved, plain])
    assert found["way"].tolist() == ["text", "decode", "encode"] and found["shift"].tolist() == [0, 2, 2]
    assert found["text"].tolist() == ["probable 3"] * 3


def test_every_held_out_text_has_its_level(setting: Setting) -> None:
    support: Any = setting.support
    found = pd.DataFrame(described(SPACE, support, support.reserved))
    assert found["level"].value_counts().to_dict() == dict.fromkeys(LEVELS, 8 * 9)
    assert found["text"].nunique() == 3 * 8
    assert set(described(SPACE, support, support.rows)["level"]) == {""}, "no trained line has a held-out text"


def test_trained_lines_are_of_the_stream_with_both_kinds_of_shift(setting: Setting) -> None:
    support: Any = setting.support
    rows = trained_lines(SPACE, support, 3)
    assert support.contains(rows).all()
    kinds, _ = texts_of(SPACE, rows)
    common = (kinds - 1) % 4 + 1 == support.common
    assert common.tolist() == [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3


def test_a_run_is_measured(setting: Setting) -> None:
    found = CipherAnswers(combinations=60, trained=4).measure(setting, setting.network())
    frame = pd.DataFrame(found.columns)
    described_by = ["way", "shift", "common", "level", "text", "input_logprob", "output_logprob"]
    assert [*frame.columns] == ["region", *described_by, "right", "letters", "own_logprob"]
    assert set(frame["region"]) == {"held_out", "trained"}
    assert frame["right"].isin([0, 1]).all() and (frame["own_logprob"] < 0).all()
    held_out = frame[(frame["region"] == "held_out") & (frame["way"] == "decode") & frame["common"]]
    assert found.summary["decode_common"] == pytest.approx(held_out["right"].mean())


def test_other_families_are_refused(setting: Setting) -> None:
    config = RunConfig.model_validate({"family": "scan"})
    with pytest.raises(BadInput, match="family=ciphers"):
        CipherAnswers().measure(Setting(config), setting.network())
