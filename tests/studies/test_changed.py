"""Settings of a study that would change nothing are refused."""

from __future__ import annotations

import pytest

from recombine.design.changed import changed
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.studies.data_scaling import DataScaling
from recombine.studies.scan import Scan


@pytest.mark.parametrize(
    "override", ["base.support.split=length", "base.support.share=0.5", "base.model.width=16", "model.width=16"]
)
def test_what_the_sweep_sets_itself_is_refused(override: str) -> None:
    with pytest.raises(BadInput, match="would change no run") as refused:
        changed(Scan.profile("smoke"), ["replicates=1", override])
    assert "widths" in str(refused.value.fix) and "splits" in str(refused.value.fix)


@pytest.mark.parametrize("override", ["steps=7", "widths=8,24", "combinations=8", "model.heads=4", "first_seed=3"])
def test_what_has_an_effect_is_applied(override: str) -> None:
    study = Scan.profile("smoke")
    assert changed(study, [override]) == apply(study, [override]) != study


def test_a_setting_that_is_the_default_is_no_mistake() -> None:
    study = DataScaling.profile("smoke")
    same = f"base.recipe.steps={study.base.recipe.steps}"
    assert changed(study, [same]) == study


def test_one_value_where_several_are_expected() -> None:
    with pytest.raises(BadInput, match="several values") as refused:
        apply(Scan.profile("smoke"), ["widths=64"])
    assert "with commas between them" in str(refused.value.fix)
    assert validate(Scan, {"splits": ["simple"]}).splits == ("simple",)
