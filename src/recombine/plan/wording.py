"""Text of plans: names in a sentence, costs, and certificates as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recombine.errors import BadInput, did_you_mean
from recombine.plain import plain
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace

if TYPE_CHECKING:
    from recombine.supports.certificate import Certificate

SHOWN = 8
"""The number of names that a sentence lists."""


def listed(names: list[str], shown: int = SHOWN) -> str:
    """The first names, and the number of the others."""
    rest = len(names) - shown
    return ", ".join(plain(name) for name in names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def no_file(path: Path, what: str, endings: tuple[str, ...]) -> BadInput:
    """The error for a file that does not exist, with the nearest file of these endings beside it."""
    near = [str(file) for ending in endings for file in sorted(path.parent.glob(f"*{ending}"))]
    return BadInput(f"There is no file {str(path)!r}{what}.", fix=did_you_mean(str(path), near[:20]))


def interactions_of(strength: int, *, subsets: bool) -> str:
    """The name of the interactions of a strength, in the plural: levels, pairs, sets of 3 levels."""
    part = "modules" if subsets else "levels"
    return {1: part, 2: "pairs"}.get(strength, f"sets of {strength} {part}")


def certificate_rows(
    certificate: Certificate | None, space: Space, strength: int, covered: tuple[int, int] | None = None
) -> list[tuple[str, str]]:
    """A certificate as rows of a table: pairs of a name and a value, with the same names for every certificate of one plan.

    The certificate is None where there are no combinations yet. Where constraints exclude interactions, `covered` says
    how many are covered, and how many are allowed.
    """
    subsets = not isinstance(space, ProductSpace)
    part = "modules" if subsets else "levels"
    strengths = sorted({min(2, space.slots), strength} - {1})
    names = ["combinations", f"{part} never seen", f"{part} are connected"]
    names += [f"{interactions_of(size, subsets=subsets)} covered" for size in strengths]
    names += [f"allowed {interactions_of(strength, subsets=subsets)} covered"] if covered is not None else []
    # For products the eigenvalue is always 0, because the levels of each factor add up to one.
    names += [f"{part} used evenly", *(["smallest eigenvalue of E[zz']"] if subsets else [])]
    if certificate is None:
        return [(name, "none" if index == 0 else "-") for index, name in enumerate(names)]
    unseen = len(certificate.unseen)
    values = [
        f"{certificate.size} of {in_words(certificate.space_size)}",
        f"{unseen} of {space.width}" if unseen else "none",
        "yes" if certificate.groups == 1 else f"no: {certificate.groups} groups",
        *(str(certificate.coverage_of(size)) for size in strengths),
        *([f"{covered[0]} of {covered[1]}"] if covered is not None else []),
        "yes" if certificate.balanced else "no",
        f"{certificate.spectrum[-1]:.3g}" if abs(certificate.spectrum[-1]) > 1e-9 else "0",
    ]
    return list(zip(names, values, strict=False))


def amount(value: float) -> str:
    """A cost or a budget as text: integers without a decimal point."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"
