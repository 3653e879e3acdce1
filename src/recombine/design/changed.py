"""A study with a user's settings; those that would change nothing are refused, with what to set instead."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from recombine.design.study import Study
from recombine.errors import BadInput
from recombine.overrides import apply, split


def changed(study: Study, overrides: Sequence[str]) -> Study:
    """The study with overrides applied. A sweep sets some parts of its runs itself: to set them besides would be of no effect."""
    made = apply(study, overrides)
    for place, override in enumerate(overrides):
        if _idle(study, made, [*overrides[:place], *overrides[place + 1 :]]):
            name = split(override)[0]
            raise BadInput(
                f"{name!r} would change no run of {study.kind!r}: the study sets it itself, or leaves out what has it.",
                fix=f"set what the study varies: {', '.join(_own(study))}; or another part: {', '.join(_parts(study))}",
            )
    return made


def _idle(study: Study, made: Study, others: Sequence[str]) -> bool:
    """Whether the same is run and measured with the other overrides alone."""
    try:
        without = apply(study, others)
    except BadInput:
        return False  # The others need it.
    differ = [name for name in type(made).model_fields if getattr(made, name) != getattr(without, name)]
    # What is the study's own may also be about claims or figures.
    if not differ or not all(isinstance(getattr(made, name), BaseModel) for name in differ):
        return False
    return made.design.runs == without.design.runs and made.design.measurements == without.design.measurements


def _own(study: Study) -> list[str]:
    """The settings that are the study's own."""
    return [name for name in type(study).model_fields if name != "kind" and name not in _parts(study)]


def _parts(study: Study) -> list[str]:
    """The parts of its runs."""
    return [name for name in type(study).model_fields if isinstance(getattr(study, name), BaseModel)]
