"""`recombine audit --coverage-graph`: what a table of facts covers by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

import recombine as rc
from recombine.cli.options import split_names
from recombine.cli.output import check_folder, print_json, say, say_written, table, write_tables
from recombine.errors import BadInput
from recombine.plain import plain
from recombine.progress import ProgressBar

# Imported in the functions, as `--help` must load nothing heavy.
if TYPE_CHECKING:
    from rich.table import Table

    from recombine.audit.coverage_graph.findings import Chain, Uncovered

SHOWN = 8
"""So many combinations, fragments and examples are shown in a terminal; --json has more, --tables all."""
CUTOFFS = 12
"""The number of cutoffs with a line each; larger ones share the last line."""
LONGEST = 40
"""The most characters of a name from data."""


@Parameter(name="*", group="Coverage graph")
@dataclasses.dataclass(frozen=True)
class CoverageGraphOptions:
    """Options of the coverage graph; the audit of scores has none of them."""

    coverage_graph: bool = False
    """Instead: which combinations follow from a table of facts, by swapping fragments that behave alike. With --json and --tables; there is no page of it."""
    fragment: list[str] | None = None
    """The columns of the fragment, a,b; again for another way of cutting."""
    context: list[str] | None = None
    """The columns beside the fragment; by default all others but the outcome."""
    outcome: str | None = None
    """The column of the outcome; by default the last column that is not named."""
    test: Path | None = None
    """A table of combinations to examine; by default all fragments in all contexts."""
    k: int = 1
    """Fragments are alike if they share at least this many contexts and agree on all of them."""

    def asked(self) -> bool:
        """Whether the coverage graph is asked for; BadInput if another of these options is given without it."""
        for field in dataclasses.fields(self):
            if not self.coverage_graph and getattr(self, field.name) != field.default:
                raise BadInput(f"--{field.name} belongs to the coverage graph.", fix="add --coverage-graph")
        return self.coverage_graph


def coverage_graph_command(
    source: Path,
    options: CoverageGraphOptions,
    *,
    where: str | None,
    tables: Path | None,
    seed: int,
    as_json: bool,
    unused: dict[str, Any],
) -> None:
    """Read the facts, and print and write what they cover. `unused` are options that say nothing here, with their values."""
    if unused.get("report"):
        raise BadInput(
            "There is no page of the coverage graph.",
            fix="leave out --report; --json has what is printed and more, --tables FOLDER has all",
        )
    for name, value in unused.items():
        if value:
            raise BadInput(f"--{name} belongs to the audit of scores.", fix=f"leave out --{name} or --coverage-graph")
    check_folder(tables)
    with ProgressBar("reading the table") as on:
        found, looked = rc.audit.audit_coverage_graph(
            source,
            fragments=[split_names([columns]) for columns in options.fragment or ()],
            context=split_names(options.context),
            outcome=options.outcome,
            test=options.test,
            where=where,
            k=options.k,
            seed=seed,
            progress=on,
        )
        written = []
        if tables is not None:
            on("writing the tables")
            written = write_tables(rc.audit.coverage_graph_tables(found, looked), tables)
    if as_json:
        print_json(found.record() | {"tables": written})
        return
    for piece in told(found):
        say(piece)
    say_written(written)


def told(found: rc.audit.CoverageGraphFinding) -> Iterator[str | Table]:
    """What was read, how much is covered by how much evidence, what is not, and what to collect."""
    yield _head(found)
    for note in found.notes:
        yield f"note: {plain(note)}"
    yield ""
    yield table("How much is covered", ["cutoff", "combinations", "share", ""], _levels(found), left=1)
    columns = [plain(name) for name in found.columns]
    if found.uncovered:
        reasons = [(reason, f"{number:,}") for reason, number in found.because.items()]
        yield table(f"Why {found.uncovered_count:,} are uncovered", ["", ""], reasons)
        rows = [(*map(_cut, one.combination), one.cutoff) for one in _spread(found)]
        some = "" if len(rows) == found.uncovered_count else f", {len(rows)} of {found.uncovered_count:,}"
        yield table(f"Uncovered{some}", [*columns, "cutoff"], rows, left=len(columns))
    thin = [one for one in found.thinnest if one.shared < max(found.k, 2)][:SHOWN]
    if thin:
        rows = [(*map(_cut, one.fragment), one.contexts, one.shared, one.uncovered) for one in thin]
        heads = [*map(plain, found.fragments[0]), "contexts", "shared with one alike", "uncovered"]
        yield table("Fragments with least evidence", heads, rows, left=len(found.fragments[0]))
    if found.collect:
        rows = [
            (*map(_cut, one.combination), one.sure, one.at_best, "-" if one.outcome is None else _cut(one.outcome))
            for one in found.collect[:SHOWN]
        ]
        heads = [*columns, "surely covers", "at best", f"if {plain(found.outcome)} is"]
        yield table("Collect next", heads, rows, left=len(columns))
    if found.chain is not None:
        yield _chain(found.chain, found)


def _head(found: rc.audit.CoverageGraphFinding) -> str:
    named = plain(Path(found.source).name)
    text = f"{named}: {found.examples:,} facts"
    for fragment, (fragments, contexts) in zip(found.fragments, found.sizes, strict=True):
        rest = [name for name in found.columns if name not in fragment]
        text += f"\n  {fragments:,} fragments ({', '.join(map(plain, fragment))}) x {contexts:,} contexts ({', '.join(map(plain, rest))}), outcome {plain(found.outcome)}"
    if found.trained:
        text += f"\n  in training, and left out: {found.trained:,} of the combinations to look at"
    return text


def _levels(found: rc.audit.CoverageGraphFinding) -> list[tuple[str, str, str, str]]:
    """The cutoffs, smallest first; those that are too many to show in one line."""
    rows = [(str(one.cutoff), one.combinations, one.cutoff) for one in found.cutoffs[:CUTOFFS]]
    rest = found.cutoffs[CUTOFFS:]
    if rest:
        rows.append((f"{rest[0].cutoff} or more", sum(one.combinations for one in rest), rest[0].cutoff))
    total = max(1, found.looked_at)
    return [
        (name, f"{number:,}", f"{100 * number / total:.1f} %", "uncovered" if cutoff < found.k else "")
        for name, number, cutoff in rows
    ]


def _spread(found: rc.audit.CoverageGraphFinding) -> list[Uncovered]:
    """Some uncovered combinations, smallest cutoff first, and as long as there are others none of the same fragment."""
    places = [found.columns.index(name) for name in found.fragments[0]]
    first: dict[tuple[str, ...], Uncovered] = {}
    for one in found.uncovered:
        first.setdefault(tuple(one.combination[place] for place in places), one)
    chosen = [*first.values()][:SHOWN]
    more = [one for one in found.uncovered if one not in chosen][: SHOWN - len(chosen)]
    return [one for one in found.uncovered if one in (*chosen, *more)]


def _chain(chain: Chain, found: rc.audit.CoverageGraphFinding) -> Table:
    """The chain of one combination, a line for each that it leads through."""
    at = dict(zip(found.columns, chain.combination, strict=True))
    rows = [[*map(_cut, at.values()), "?", ""]]
    for swap in chain.swaps:
        at |= zip(swap.columns, swap.after, strict=True)
        rows.append([*map(_cut, at.values()), "?", f"{swap.shared:,}"])
    rows[-1][-2] = _cut(chain.outcome)
    heads = [*map(plain, (*found.columns, found.outcome)), "contexts shared with the line above"]
    title = f"How one with cutoff {chain.cutoff} is covered"
    return table(title, heads, rows, left=len(heads) - 1)


def _cut(text: str) -> str:
    text = plain(text)
    # In the middle: long names often differ at their ends.
    half = LONGEST // 2
    return text if len(text) <= LONGEST else text[: half - 1] + "…" + text[-half:]
