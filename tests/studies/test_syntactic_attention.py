"""syntactic-attention: the ablation differs in nothing else, and effects on tables whose answers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.overrides import apply
from recombine.studies.routes.syntactic_attention import GAPS, SyntacticAttentionStudy
from recombine.training import Setting
from recombine.training.flops import weight_count

SMALL = ["first_seed=0", "replicates=6", 'splits=["simple","add-jump","around-right"]']


@pytest.fixture(scope="module")
def small() -> SyntacticAttentionStudy:
    return apply(SyntacticAttentionStudy.profile("smoke"), SMALL)


def tables(study: SyntacticAttentionStudy, made: Any, gain: float) -> Any:
    draw = np.random.default_rng(0)

    def score(labels: dict[str, Any]) -> dict[str, Any]:
        right = 0.97
        if labels.get("split", "add-jump") in GAPS:
            right = 0.05 + (gain if labels.get("separate") is True else 0)
        noise = 0.005 * draw.standard_normal(2)
        return {
            "accuracy_in": 0.98 + noise[0],
            "accuracy_held_out": right + noise[1],
            "right_jump": 1.0,
            "weights": 5.0,
        }

    return made(study, score)


def test_the_ablation_differs_in_nothing_else() -> None:
    study = SyntacticAttentionStudy.profile("laptop")
    assert study.replicates >= 8 and study.first_seed >= 1000
    by_label = {
        (labels["split"], labels["separate"]): config
        for config, labels in study.design.arms["main"].runs
        if labels["replicate"] == study.first_seed
    }
    for split in study.splits:
        bias, ablation = by_label[split, True], by_label[split, False]
        assert ablation.replace(separate=True) == bias
        assert weight_count(Setting(ablation).network_shapes()) > weight_count(Setting(bias).network_shapes())


def test_verdicts_where_the_bias_closes_the_gaps(small: SyntacticAttentionStudy, made: Any, words: Any) -> None:
    found = words(small, tables(small, made, gain=0.9))
    assert set(found.values()) == {"supported"}, found


def test_verdicts_where_it_does_not(small: SyntacticAttentionStudy, made: Any, words: Any) -> None:
    some, none = (words(small, tables(small, made, gain=gain)) for gain in (0.4, 0.0))
    for split in GAPS:
        assert some[f"bias-helps-{split}"] == "supported" and some[f"bias-closes-{split}"] == "contradicted"
        assert none[f"bias-helps-{split}"] in ("equivalent", "contradicted")
    assert none["width-does-not-close-add-jump"] == "supported"


def test_a_split_that_is_left_out_is_not_asked(made: Any, words: Any) -> None:
    study = apply(SyntacticAttentionStudy.profile("smoke"), ["first_seed=0", "replicates=6"])
    found = words(study, tables(study, made, gain=0.9))
    assert "bias-helps-around-right" not in found and found["bias-helps-add-jump"] == "supported"


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="splits must have 'simple' and 'add-jump'"):
        apply(SyntacticAttentionStudy.profile("smoke"), ['splits=["simple"]'])
