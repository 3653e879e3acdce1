"""`recombine audit --coverage-graph`: what a table of facts covers by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from recombine.errors import BadInput

# Imported in the functions, as `--help` must load nothing heavy.
if TYPE_CHECKING:
    from rich.table import Table

    from recombine.audit.coverage_graph_findings import Chain, CoverageGraphFinding, Uncovered

SHOWN = 8
"""So many combinations, fragments and examples are shown in a terminal; --json has more, --tables all."""
CUTOFFS = 12
"""So many cutoffs have a line each; larger ones share the last."""
LONGEST = 40
"""Names from data are cut to so many characters."""


@Parameter(name="*", group="Coverage graph")
@dataclasses.dataclass(frozen=True)
class CoverageGraphOptions:
    """Options of the coverage graph; the audit of scores has none of them."""

    coverage_graph: Annotated[
        bool,
        Parameter(
            negative="",
            help="Instead: which combinations follow from a table of facts, by swapping fragments that behave alike. With --json and --tables; there is no page of it.",
        ),
    ] = False
    fragment: Annotated[
        list[str] | None,
        Parameter(
            negative="",
            help="The columns of the fragment, a,b; again for another way of cutting.",
        ),
    ] = None
    context: Annotated[
        list[str] | None,
        Parameter(negative="", help="The columns beside the fragment; else all others but the outcome."),
    ] = None
    outcome: Annotated[
        str | None, Parameter(help="The column of what comes out; else the last that is not named.")
    ] = None
    test: Annotated[
        Path | None,
        Parameter(help="A table of combinations to look at; else all fragments in all contexts."),
    ] = None
    k: Annotated[
        int, Parameter(help="Fragments are alike if they share so many contexts and agree on all of them.")
    ] = 1

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
            raise BadInput(
                f"--{name} belongs to the audit of scores.", fix=f"leave out --{name} or --coverage-graph"
            )
    if tables is not None and tables.exists() and not tables.is_dir():
        raise BadInput(f"{tables} is a file.", fix="name a folder for the tables")
    from recombine.audit.coverage_graph import audit_coverage_graph, coverage_graph_tables
    from recombine.cli.output import console, print_json
    from recombine.cli.waiting import Waiting

    with Waiting("reading the table") as on:
        found, looked = audit_coverage_graph(
            source,
            fragments=[_names([one]) for one in options.fragment or ()],
            context=_names(options.context or ()),
            outcome=options.outcome,
            test=options.test,
            where=where,
            k=options.k,
            seed=seed,
            on=on,
        )
        written = []
        if tables is not None:
            on("writing the tables")
            written = _write(coverage_graph_tables(found, looked), tables)
    if as_json:
        print_json(found.record() | {"tables": written})
        return
    out = console()
    for piece in told(found):
        # Tables are escaped already.
        out.print(piece, highlight=False, markup=False if isinstance(piece, str) else None)
    for name in written:
        out.print(f"written: {name}", markup=False, highlight=False, soft_wrap=True)


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip())


def _write(made: dict[str, Any], folder: Path) -> list[str]:
    from recombine.cli.tables import write_table
    from recombine.store.files import explained

    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [str(write_table(frame, folder / f"{name}.csv")) for name, frame in made.items()]


def told(found: CoverageGraphFinding) -> Iterator[str | Table]:
    """What was read, how much is covered by how much evidence, what is not, and what to collect."""
    from recombine.cli.output import table

    yield _head(found)
    for note in found.notes:
        yield f"note: {_plain(note)}"
    yield ""
    yield table("How much is covered", ["cutoff", "combinations", "share", ""], _levels(found), left=1)
    columns = [_plain(name) for name in found.columns]
    if found.uncovered:
        reasons = [(reason, f"{number:,}") for reason, number in found.because.items()]
        yield table(f"Why {found.uncovered_count:,} are uncovered", ["", ""], reasons)
        rows = [(*_cells(one.combination), one.cutoff) for one in _spread(found)]
        title = f"Uncovered{_of(len(rows), found.uncovered_count)}"
        yield table(title, [*columns, "cutoff"], rows, left=len(columns))
    thin = [one for one in found.thinnest if one.shared < max(found.k, 2)][:SHOWN]
    if thin:
        yield _thin(found, thin)
    if found.collect:
        rows = [
            (
                *_cells(one.combination),
                one.sure,
                one.at_best,
                "-" if one.outcome is None else _cut(one.outcome),
            )
            for one in found.collect[:SHOWN]
        ]
        heads = [*columns, "surely covers", "at best", f"if {_plain(found.outcome)} is"]
        yield table("Collect next", heads, rows, left=len(columns))
    if found.chain is not None:
        yield _chain(found.chain, found)


def _head(found: CoverageGraphFinding) -> str:
    named = _plain(Path(found.source).name)
    text = f"{named}: {found.examples:,} facts"
    for fragment, (fragments, contexts) in zip(found.fragments, found.sizes, strict=True):
        rest = [name for name in found.columns if name not in fragment]
        text += f"\n  {fragments:,} fragments ({', '.join(map(_plain, fragment))}) x {contexts:,} contexts ({', '.join(map(_plain, rest))}), outcome {_plain(found.outcome)}"
    if found.trained:
        text += f"\n  in training, and left out: {found.trained:,} of the combinations to look at"
    return text


def _levels(found: CoverageGraphFinding) -> list[tuple[str, str, str, str]]:
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


def _spread(found: CoverageGraphFinding) -> list[Uncovered]:
    """Some uncovered combinations, smallest cutoff first, and as long as there are others none of the same fragment."""
    places = [found.columns.index(name) for name in found.fragments[0]]
    first: dict[tuple[str, ...], Uncovered] = {}
    for one in found.uncovered:
        first.setdefault(tuple(one.combination[place] for place in places), one)
    chosen = [*first.values()][:SHOWN]
    more = [one for one in found.uncovered if one not in chosen][: SHOWN - len(chosen)]
    return [one for one in found.uncovered if one in (*chosen, *more)]


def _thin(found: CoverageGraphFinding, thin: Sequence[Any]) -> Table:
    from recombine.cli.output import table

    rows = [(*_cells(one.fragment), one.contexts, one.shared, one.uncovered) for one in thin]
    heads = [*map(_plain, found.fragments[0]), "contexts", "shared with one alike", "uncovered"]
    return table("Fragments with least evidence", heads, rows, left=len(found.fragments[0]))


def _chain(chain: Chain, found: CoverageGraphFinding) -> Table:
    """The chain of one combination, a line for each that it leads through."""
    from recombine.cli.output import table

    at = dict(zip(found.columns, chain.combination, strict=True))
    rows = [[*_cells([*at.values()]), "?", ""]]
    for swap in chain.swaps:
        at |= zip(swap.columns, swap.after, strict=True)
        rows.append([*_cells([*at.values()]), "?", f"{swap.shared:,}"])
    rows[-1][-2] = _cut(chain.outcome)
    heads = [*map(_plain, (*found.columns, found.outcome)), "contexts shared with the line above"]
    title = f"How one with cutoff {chain.cutoff} is covered"
    return table(title, heads, rows, left=len(heads) - 1)


def _cells(values: Sequence[str]) -> list[str]:
    return [_cut(value) for value in values]


def _of(shown: int, total: int) -> str:
    return "" if shown == total else f", {shown} of {total:,}"


def _cut(text: str) -> str:
    text = _plain(text)
    # In the middle: long names often differ at their ends.
    half = LONGEST // 2
    return text if len(text) <= LONGEST else text[: half - 1] + "…" + text[-half:]


def _plain(text: str) -> str:
    from recombine.plain import plain

    return plain(text)
