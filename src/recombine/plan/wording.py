"""Names in a sentence, and a certificate in words."""

from __future__ import annotations

from recombine.plain import plain
from recombine.spaces.base import Space, in_words
from recombine.spaces.product import ProductSpace
from recombine.supports.certificate import Certificate, Coverage

SHOWN = 8
"""How many names a sentence lists."""


def listed(names: list[str], shown: int = SHOWN) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - shown
    return ", ".join(plain(name) for name in names[:shown]) + (f" and {rest} more" if rest > 0 else "")


def interactions_of(strength: int, *, subsets: bool) -> str:
    """What is covered at a strength, in the plural: levels, pairs of levels, sets of 3 levels."""
    part = "modules" if subsets else "levels"
    return {1: part, 2: "pairs"}.get(strength, f"sets of {strength} {part}")


def share_in_words(coverage: Coverage) -> str:
    """A share that is not rounded to all or nothing where it is neither; an interval where it was sampled."""
    digits = 1
    while (
        digits < 6
        and coverage.share < 1
        and round(coverage.share * 100, digits) in (0.0, 100.0)
        and coverage.share
    ):
        digits += 1
    text = f"{coverage.share * 100:.{digits}f}".rstrip("0").rstrip(".") + " %"
    return (
        text if coverage.exact else f"{text} ({coverage.low * 100:.1f} to {coverage.high * 100:.1f}, sampled)"
    )


def certificate_rows(
    certificate: Certificate | None, space: Space, strength: int, met: tuple[int, int] | None = None
) -> list[tuple[str, str]]:
    """A certificate as lines of a table: what, and how it is.

    `met` has how many interactions of the strength are met, and how many can be, where constraints rule out others.
    """
    subsets = not isinstance(space, ProductSpace)
    part = "modules" if subsets else "levels"
    wanted = sorted({min(2, space.slots), strength} - {1})
    names = ["combinations", f"{part} never seen", f"groups of {part} that never touch"]
    names += [f"{interactions_of(one, subsets=subsets)} met" for one in wanted]
    names += [f"{interactions_of(strength, subsets=subsets)} met that may be"] if met is not None else []
    # Of products it is 0 whatever is collected, as the levels of a factor always add up to one.
    names += ["used evenly", *(["smallest eigenvalue of E[zz']"] if subsets else [])]
    if certificate is None:
        return [(name, "nothing" if place == 0 else "-") for place, name in enumerate(names)]
    unseen = len(certificate.unseen)
    told = [
        f"{certificate.size} of {in_words(certificate.space_size)}",
        f"{unseen} of {space.width}" if unseen else "none",
        "none" if certificate.groups == 1 else str(certificate.groups),
        *(share_in_words(certificate.coverage_of(one)) for one in wanted),
        *([f"{met[0]} of {met[1]}"] if met is not None else []),
        "yes" if certificate.balanced else "no",
        f"{certificate.spectrum[-1]:.3g}" if abs(certificate.spectrum[-1]) > 1e-9 else "0",
    ]
    return list(zip(names, told, strict=False))


def amount(value: float) -> str:
    """A cost or a budget: whole numbers without a point."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"
