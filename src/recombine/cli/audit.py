"""The command that audits a table: of scores, or of facts, which the coverage graph reads by themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import recombine as rc
from recombine.cli.audit_gate import NO_GATE, GateOptions, end_gate, gate_record, say_gate
from recombine.cli.audit_log import NO_LOG, LogOptions, with_defaults
from recombine.cli.audit_scores import PLAIN_SCORES, ScoreOptions
from recombine.cli.options import JsonOption, SeedOption, split_names
from recombine.cli.output import check_file, check_folder, console, print_json, say, say_written, table, write_tables
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


SCORES_ALONE = CoverageGraphOptions()
"""By default an audit looks at scores, not at the coverage graph of facts."""


def audit(
    table: Path,
    *,
    factors: list[str] | None = None,
    roles: list[str] | None = None,
    sets: list[str] | None = None,
    score: list[str] | None = None,
    where: str | None = None,
    train: Path | None = None,
    split: str | None = None,
    space: Path | None = None,
    activations: Path | None = None,
    key: str | None = None,
    quick: Annotated[bool, Parameter(negative="")] = False,
    report: Path | None = None,
    tables: Path | None = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    scoring: ScoreOptions = PLAIN_SCORES,
    graph: CoverageGraphOptions = SCORES_ALONE,
    gate: GateOptions = NO_GATE,
    log: LogOptions = NO_LOG,
) -> None:
    """Audit your own model by a table: does it recombine, which combinations fail and why, what to collect?

    Args:
        table: Scores by combination: CSV, TSV, Parquet, JSON Lines or Arrow; or a log of Inspect, lm-evaluation-harness,
            HELM, GenEval, W&B or MLflow.
        factors: The columns that make a combination: colour,object.
        roles: A factor in several columns that share values: object=object,object_2.
        sets: Columns that hold sets of values.
        score: The columns with scores: numbers, percentages, true and false, pass and fail.
        where: Only rows for which this holds: "kind = 'colors'".
        train: A table of the combinations that the model was trained on.
        split: Or the column that says so: split=train.
        space: A plan file with all possible values and constraints; only possible combinations are counted and proposed.
        activations: safetensors or npz, an array a layer, a row for each row of the table.
        key: The column and the array by which activations and rows are matched.
        quick: Answer at once: coverage, strata, weakest slices and advice; no fitted models.
        report: Also write a page: audit.html. Of scores: the coverage graph has none.
        tables: Also write tables (CSV) into this folder.
        seed: Of what is drawn: bootstraps, folds, plans.
    """
    if graph.asked():
        if report is not None:
            fix = "leave out --report; --json has what is printed and more, --tables FOLDER has all"
            raise BadInput("There is no page of the coverage graph.", fix=fix)
        unused = {"factors": factors, "roles": roles, "sets": sets, "score": score, "train": train, "split": split}
        unused |= {"space": space, "quick": quick}
        scoring.check_unused("--coverage-graph")
        for name in [name for name, value in (unused | {"activations": activations, "key": key}).items() if value]:
            raise BadInput(f"--{name} belongs to the audit of scores.", fix=f"leave out --{name} or --coverage-graph")
        if gate != NO_GATE:
            raise BadInput("A gate judges scores.", fix="leave out --coverage-graph, or the options of the gate")
        if log != NO_LOG:
            fix = "leave out --coverage-graph, or the options of logs"
            raise BadInput("The coverage graph takes tables, not prompts.", fix=fix)
        _audit_facts(table, graph, where, tables, seed, as_json=as_json)
        return
    names = {"factors": split_names(factors), "sets": split_names(sets), "scores": split_names(score)}
    columns = {**names, "roles": parse_roles(roles or ()), "split": parse_split(split), "where": where, "key": key}
    columns |= scoring.columns() | {"space": space}
    if key is not None and activations is None:
        raise BadInput("--key matches activations to rows.", fix="name them too: --activations FILE")
    if report is not None:
        check_file(report, example="audit.html")
    check_folder(tables)
    gate.check()
    from recombine.audit.audit import audit_cells, read
    from recombine.audit.comparison.scored import scored_cells

    source = log.source(table)
    columns = with_defaults(source, columns)
    trained = None if train is None else log.source(train)
    page, written = None, []
    with ProgressBar("reading the table") as on:
        cells, inside = read(source, activations=activations, progress=on, train=trained, **columns)
        comparison = gate.compare(cells, Path(table).name, columns | {"train": trained})
        result = audit_cells(cells, inside, source=str(table), quick=quick, seed=seed, progress=on)
        checks = gate.judge(result, comparison)
        if report is not None:
            from recombine.report import write_audit

            on("writing the report")
            page = str(write_audit(result, cells, report, checks=checks, comparison=comparison))
        if tables is not None:
            from recombine.audit.tables import lost_table

            on("writing the tables")
            lost = lost_table(comparison)
            frames = rc.audit.audit_tables(result, cells) | ({"lost": lost} if len(lost) else {})
            written = write_tables(frames, tables)
    if as_json:
        files = {"report": page, "tables": written, "scored": scored_cells(cells, Path(table).name).record()}
        print_json(result.record() | files | gate_record(checks, comparison))
        end_gate(checks)
        return
    from recombine.cli.audit_summary import summary

    out = console()
    for line in summary(result, width=out.width):
        out.print(line, highlight=False, soft_wrap=True)
    say_gate(checks, comparison)
    say_written([*([] if page is None else [page]), *written])
    end_gate(checks)


def parse_roles(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Roles as name=column,column."""
    return dict(_named(text, "--roles", "the columns of a factor", "object=object,object_2") for text in given)


def parse_split(given: str | None) -> tuple[str, tuple[str, ...]] | None:
    """The column that says what was trained on, and the values that say so."""
    return None if given is None else _named(given, "--split", "a column and the value of trained rows", "split=train")


def _named(text: str, option: str, what: str, example: str) -> tuple[str, tuple[str, ...]]:
    """A name and its values, written as name=value,value."""
    name, _, values = text.partition("=")
    if not name.strip() or not split_names([values]):
        raise BadInput(f"{option} {text!r} does not name {what}.", fix=f"write {option} {example}")
    return name.strip(), split_names([values])


# Facts


def _audit_facts(
    source: Path, options: CoverageGraphOptions, where: str | None, tables: Path | None, seed: int, *, as_json: bool
) -> None:
    """Read the facts, and print and write what they cover."""
    check_folder(tables)
    columns = {
        "fragments": [split_names([names]) for names in options.fragment or ()],
        "context": split_names(options.context),
        "outcome": options.outcome,
    }
    written = []
    with ProgressBar("reading the table") as on:
        found, looked = rc.audit.audit_coverage_graph(
            source, test=options.test, where=where, k=options.k, seed=seed, progress=on, **columns
        )
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
    heads = ["cutoff", "combinations", "share", "", *(["implied right"] if _graded(found) else [])]
    yield table("How much is covered", heads, _levels(found), left=1)
    columns = [plain(name) for name in found.columns]
    if found.implied:
        some = min(SHOWN, len(found.implied))
        graded = [found.outcome] if _graded(found) else []
        follows = [
            (
                *map(_cut, each.combination),
                _cut(each.outcome or "several"),
                *([_cut(each.true or "-")] if graded else []),
                each.cutoff,
            )
            for each in found.implied[:some]
        ]
        heads = [*columns, f"implied {plain(found.outcome)}", *map(plain, graded), "cutoff"]
        covered = sum(one.combinations for one in found.cutoffs if one.cutoff >= max(found.k, 1))
        yield table(f"What follows, {some} of {covered:,}", heads, follows, left=len(heads) - 1)
    if found.uncovered:
        reasons = [(reason, f"{number:,}") for reason, number in found.because.items()]
        yield table(f"Why {found.uncovered_count:,} are uncovered", ["", ""], reasons)
        rows = [(*map(_cut, case.combination), case.cutoff) for case in _spread(found)]
        some = "" if len(rows) == found.uncovered_count else f", {len(rows)} of {found.uncovered_count:,}"
        yield table(f"Uncovered{some}", [*columns, "cutoff"], rows, left=len(columns))
    thin = [part for part in found.thinnest if part.shared < max(found.k, 2)][:SHOWN]
    if thin:
        rows = [(*map(_cut, part.fragment), part.contexts, part.shared, part.uncovered) for part in thin]
        heads = [*map(plain, found.fragments[0]), "contexts", "shared with one alike", "uncovered"]
        yield table("Fragments with least evidence", heads, rows, left=len(found.fragments[0]))
    if found.collect:
        rows = [
            (*map(_cut, gain.combination), gain.sure, gain.at_best, _cut("-" if gain.outcome is None else gain.outcome))
            for gain in found.collect[:SHOWN]
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


def _graded(found: rc.audit.CoverageGraphFinding) -> bool:
    """Whether the true outcomes of combinations are known."""
    return any(one.right is not None for one in found.cutoffs)


def _levels(found: rc.audit.CoverageGraphFinding) -> list[tuple[str, ...]]:
    """The cutoffs, smallest first; those that are too many to show in one line."""
    groups = [(str(one.cutoff), [one]) for one in found.cutoffs[:CUTOFFS]]
    rest = list(found.cutoffs[CUTOFFS:])
    if rest:
        groups.append((f"{rest[0].cutoff} or more", rest))
    rows = []
    for name, group in groups:
        count = sum(one.combinations for one in group)
        known = [one.right for one in group if one.right is not None]
        right = f"{sum(known) / count:.2f}" if known and count else "-"
        share = f"{100 * count / max(1, found.looked_at):.1f} %"
        uncovered = "uncovered" if group[0].cutoff < found.k else ""
        rows.append((name, f"{count:,}", share, uncovered, *([right] if _graded(found) else [])))
    return rows


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
