"""What to do, by explicit rules. docs/methods-audit.md has the same table."""

from __future__ import annotations

from collections.abc import Callable

from recombine.audit.advising.evidence import Evidence
from recombine.audit.advising.remarks import REMARKS, constant_score
from recombine.audit.advising.remedies import REMEDIES, Said
from recombine.audit.findings import Advice
from recombine.audit.wording import decimal

Rule = Callable[[Evidence], Said | None]


def _named(*rules: Rule) -> dict[str, Rule]:
    return {rule.__name__.replace("_", "-"): rule for rule in rules}  # pyright: ignore[reportFunctionMemberAccess]


RULES = _named(*REMEDIES, constant_score, *REMARKS)
"""All rules by name. Each says in its docstring when it applies."""


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """Apply all rules.

    Args:
        evidence: The findings of one score.

    Returns:
        The advice of the rules that apply: first remedies, by how much the mean score could rise, then everything else
        in a fixed order. A score that does not vary gets no other advice.
    """
    if (alone := constant_score(evidence)) is not None:
        return (Advice("constant-score", alone.sentence, alone.because),)
    remedies = [(name, said) for name, rule in _named(*REMEDIES).items() if (said := rule(evidence)) is not None]
    # The sort is stable, so remedies without a gain keep their order.
    remedies.sort(key=lambda named: -named[1].gain if named[1].gain is not None else 0.0)
    remarks = [(name, said) for name, rule in _named(*REMARKS).items() if (said := rule(evidence)) is not None]
    return tuple(_advice(name, said) for name, said in (*remedies, *remarks))


def _advice(name: str, said: Said) -> Advice:
    because = said.because
    if said.gain is not None and said.gain > 0:
        because += f"; could improve the mean by up to {decimal(said.gain)}"
    return Advice(name, said.sentence, because, said.collect, said.gain)
