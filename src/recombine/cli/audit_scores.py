"""What the scores and the factors of a table mean: options that the commands of the audit share."""

from __future__ import annotations

import dataclasses
from typing import Any

from cyclopts import Parameter

from recombine.cli.options import split_names
from recombine.errors import BadInput


@Parameter(name="*", group="Scores and factors")
@dataclasses.dataclass(frozen=True)
class ScoreOptions:
    """What the values of the score columns and of ordered factors mean."""

    scale: str | None = None
    """The lowest and the highest possible score: 0,100."""
    lower_is_better: bool = False
    """Low scores are good, as for errors."""
    chance: float | None = None
    """The score of guessing, in the unit of the score: 0.1."""
    success: list[str] | None = None
    """The text that means success, as in `--success pass`; every other text means failure."""
    trials: str | None = None
    """The column with the number of trials of a row; the score is their mean or the number of successes."""
    cluster: str | None = None
    """A column such as the prompt: rows with the same value in one combination count as one."""
    numeric: list[str] | None = None
    """Factors that are numbers, put into bins: size, size=4 (bins) or size=0:10:50 (their ends)."""
    ordinal: list[str] | None = None
    """Factors with steps, in ascending order: level=low,medium,high."""

    def columns(self) -> dict[str, Any]:
        """The arguments of `audit_table`."""
        from recombine.audit.scales import parse_scale

        return {
            "scale": parse_scale(self.scale),
            "lower_is_better": self.lower_is_better,
            "chance": self.chance,
            "success": split_names(self.success),
            "trials": self.trials,
            "cluster": self.cluster,
            "numeric": dict(_numeric(text) for text in split_names(self.numeric)),
            "ordinal": dict(_ordinal(text) for text in self.ordinal or ()),
        }

    def check_unused(self, option: str) -> None:
        """Raise BadInput if one of these options is given beside an option that does not use them."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) != field.default:
                name = f"--{field.name.replace('_', '-')}"
                raise BadInput(f"{name} belongs to the audit of scores.", fix=f"leave out {name} or {option}")


PLAIN_SCORES = ScoreOptions()
"""By default higher numbers are better, and the scale follows from the values."""


def _numeric(text: str) -> tuple[str, Any]:
    """A factor, with a number of bins or the ends of its bins."""
    from recombine.audit.reading.ordered import NUMERIC_FIX

    name, given, bins = text.partition("=")
    if not given:
        return name, None
    try:
        numbers = [float(piece) for piece in bins.split(":")]
    except ValueError:
        raise BadInput(f"--numeric {text!r} names neither a number of bins nor their ends.", fix=NUMERIC_FIX) from None
    return name, numbers[0] if len(numbers) == 1 else numbers


def _ordinal(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, steps = text.partition("=")
    if not name.strip() or len(split_names([steps])) < 2:
        raise BadInput(
            f"--ordinal {text!r} does not name the steps of a factor.", fix="write --ordinal level=low,medium,high"
        )
    return name.strip(), split_names([steps])
