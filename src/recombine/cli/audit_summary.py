"""An audit on one screen."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from recombine._show import shorten
from recombine.audit.findings import (
    Advice,
    Audit,
    DecodabilityFinding,
    EffectsFinding,
    FactorEffect,
    GapFinding,
    PartsFinding,
    ScoreFinding,
)
from recombine.audit.wording import decimal, large, p_text
from recombine.cli.output import interval_text
from recombine.plain import plain

FEW = 3
"""So many of a list stand on the screen; --json and --tables have all."""
SLICES, FACTORS, PAIRS = 5, 8, 5
"""The most rows of each table."""
LONGEST = 70
"""The most characters of a combination's name."""


@dataclasses.dataclass(frozen=True)
class Block:
    """A paragraph: what stands before its first line, and before the others."""

    text: Text
    first: str = "  "
    rest: str = "  "

    def lines(self, console: Console) -> Iterator[Text]:
        """The paragraph in lines that fit, without spaces at their ends."""
        lead = self.first
        for line in self.text.split("\n", allow_blank=True):
            for piece in line.wrap(console, max(console.width - len(self.rest), 20)) or [Text()]:
                piece.rstrip()
                yield Text.assemble(lead if piece.plain else "", piece)
                lead = self.rest


def summary(audit: Audit, width: int = 80) -> Iterator[Text]:
    """What was read, the support, and for each score: strata, parts or combination, what to do. Line by line."""
    console = Console(width=width)
    for block in _blocks(audit):
        yield from block.lines(console)


def _blocks(audit: Audit) -> Iterator[Block]:
    yield _head(audit)
    for note in audit.notes[:FEW]:
        yield _said(note, "dim")
    if len(audit.notes) > FEW:
        yield _said(f"and {len(audit.notes) - FEW} more notes: see --json", "dim")
    if audit.support is not None:
        yield _heading("What training covers")
        for sentence in audit.support.sentences:
            yield _said(sentence)
    for score in audit.scores:
        yield from _score(score)


def _said(text: str, style: str = "") -> Block:
    return Block(Text(plain(text), style=style))


def _heading(name: str, after: str = "") -> Block:
    text = Text("\n")
    text.append(plain(name), style="bold")
    if after:
        text.append("  " + plain(after))
    return Block(text, "", "")


def _head(audit: Audit) -> Block:
    levels = " x ".join(f"{number:,} {name}" for name, number in audit.factors.items())
    counts = f"{audit.rows:,} rows, {audit.combinations:,} of {large(audit.space_size)} combinations"
    text = Text(plain(Path(audit.source).name), style="bold")
    text.append(plain(f": {counts} ({levels})"), style="not bold")
    return Block(text, "", "")


def _score(score: ScoreFinding) -> Iterator[Block]:
    overall = score.overall
    over = f"mean over {overall.replicates:,} combinations" if overall is not None else "one combination only"
    yield _heading(score.score, f"{interval_text(overall)}  {over}")
    if score.gap is not None:
        yield from _gap(score.gap)
    yield from _slices(score)
    yield from _effects(score.effects)
    yield from _parts(score.parts)
    if score.decodability is not None:
        yield from _inside(score.decodability)
    yield _heading("What to do")
    for number, advice in enumerate(score.advice, start=1):
        yield _advice(number, advice)
    if not score.advice:
        yield _said("No rule applies.")


def _gap(gap: GapFinding) -> Iterator[Block]:
    rows = [("", "combinations", "rows", "score")]
    rows += [(one.name, f"{one.combinations:,}", f"{one.rows:,}", interval_text(one.score)) for one in gap.strata]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for index, (name, *numbers) in enumerate(rows):
        cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        yield _said("  ".join([name.ljust(widths[0]), *cells]), "" if index else "dim")
    told = []
    if gap.raw is not None:
        told.append(f"trained minus held out {interval_text(gap.raw, sign=True)}")
    if gap.adjusted is not None:
        told.append(f"with parts held constant {interval_text(gap.adjusted, sign=True)}")
    text = Text("; ".join(told) + (". " if told else ""))
    text.append(plain(gap.note), style="dim")
    yield Block(text)


def _slices(score: ScoreFinding) -> Iterator[Block]:
    if not score.lowest:
        return
    lowest = "; ".join(f"{shorten(cell.name, LONGEST)} {decimal(cell.score)}" for cell in score.lowest[:FEW])
    yield _heading("Where it is weakest")
    rows = [
        (shorten(each.name, LONGEST), f"{each.combinations:,}", interval_text(each.score), interval_text(each.worse))
        for each in score.slices[:SLICES]
    ]
    yield from _columns(("values", "combinations", "score", "worse than the others by"), rows)
    if score.slices and not any(each.certain for each in score.slices):
        yield _said("None of these is certain: so many slices were compared that some are low by chance.", "dim")
    yield _said(f"worst combinations: {lowest}")


def _effects(found: EffectsFinding) -> Iterator[Block]:
    if not found.effects:
        return
    yield _heading("Which factors matter, and which interact")
    factors = [each for each in found.effects if each.kind != "pair"]
    pairs = [each for each in found.effects if each.kind == "pair"]
    factors = sorted(factors, key=lambda each: (each.p, -abs(each.size.estimate)))[:FACTORS]
    rows = [
        (_effect_name(each), interval_text(each.size, sign=bool(each.contrast)), p_text(each.p))
        for each in (*factors, *pairs[:PAIRS])
    ]
    yield from _columns(("", "points of the score", "p"), rows)
    yield _said("Points: the difference that is named, otherwise the standard deviation of effects.", "dim")
    hidden = len(found.effects) - len(rows)
    if hidden:
        yield _said(f"and {hidden:,} more: see --json", "dim")
    for direction in ("worse", "better"):
        named = [pair for each in pairs for pair in getattr(each, direction)]
        named.sort(key=lambda pair: -abs(pair.effect.estimate))
        if named:
            some = "; ".join(
                f"{shorten(pair.name, LONGEST)} {interval_text(pair.effect, sign=True)}" for pair in named[:FEW]
            )
            yield _said(f"{direction} than their values predict: {some}")
    if found.note:
        yield _said(found.note, "dim")


def _effect_name(effect: FactorEffect) -> str:
    name = f"{effect.name} (trend)" if effect.kind == "trend" else effect.name
    return shorten(f"{name}: {effect.contrast}" if effect.contrast else name, LONGEST)


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """A small table; its columns are wide enough for their texts."""
    if not rows:
        return
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for index, row in enumerate((heads, *rows)):
        cells = [
            text.ljust(width) if not column else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield _said("  ".join(cells).rstrip(), "" if index else "dim")


def _parts(parts: PartsFinding) -> Iterator[Block]:
    yield _heading("Parts or combination?")
    # What would make it possible to tell stands under what to do.
    reasons = parts.identification.reasons[:FEW]
    refused = () if parts.identification.identified else (" ".join(("Unknown.", *reasons)),)
    for sentence in refused or (parts.verdict,):
        yield _said(sentence)
    named = {"hardest parts": parts.hardest_parts, "easiest parts": parts.easiest_parts}
    named |= {"hardest pairs": parts.hardest_pairs, "easiest pairs": parts.easiest_pairs}
    for what, each in named.items():
        if each:
            effects = [f"{shorten(part.name, LONGEST)} {interval_text(part.effect, sign=True)}" for part in each]
            more = [f"and {len(each) - FEW:,} more"] if len(each) > FEW else []
            yield _said(f"{what} ({each[0].scale}): {'; '.join(effects[:FEW] + more)}")


def _inside(found: DecodabilityFinding) -> Iterator[Block]:
    yield _heading("Inside the model")
    sites = {(site.factor, site.layer): site for site in found.sites}
    for factor, layer in found.chosen.items():
        site = sites.get((factor, layer))
        if site is not None:
            beside = f"chance {site.chance:.2f}, selectivity {site.selectivity:+.2f}"
            yield _said(f"{factor} at {layer}: {interval_text(site.score)}, {beside}")
    if found.relation is not None:
        relation = interval_text(found.relation, sign=True)
        yield _said(f"decodability and score, within strata: rank correlation {relation}")
    if found.note:
        yield _said(found.note, "dim")


def _advice(number: int, advice: Advice) -> Block:
    text = Text(plain(advice.sentence))
    for combination in advice.collect[:FEW]:
        text.append("\n+ " + plain(shorten(" + ".join(combination), LONGEST)), style="green")
    if len(advice.collect) > FEW:
        text.append(f"\n+ {len(advice.collect) - FEW} more: see --report, --tables or --json", style="green")
    text.append(f"\n{advice.rule}: {plain(advice.because)}", style="dim")
    first = f"  {number}. "
    return Block(text, first, " " * len(first))
