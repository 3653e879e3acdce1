"""The command that plans: which combinations to collect next."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import recombine as rc
from recombine._show import shorten
from recombine.cli.options import JsonOption
from recombine.cli.output import check_table, console, errors, message, number, print_json, table, write_table
from recombine.errors import BadInput
from recombine.plain import plain
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from rich.console import Console

    from recombine.spaces.base import Space
    from recombine.supports.certificate import Certificate

SHOWN = 20
"""So many combinations are shown in a terminal; files have them all."""
COLUMNS = 6
"""The most factors that have a column each in a terminal."""
LONGEST = 60
"""So many characters of a combination fit a line where it has more factors."""


def plan(
    file: Path | None = None,
    *,
    levels: str | None = None,
    subsets: str | None = None,
    collected: Path | None = None,
    strength: int | None = None,
    budget: float | None = None,
    forbid: list[str] | None = None,
    require: list[str] | None = None,
    include: list[str] | None = None,
    stronger: list[str] | None = None,
    cost: str | None = None,
    strategy: str | None = None,
    scores: Path | None = None,
    seed: int | None = None,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"))] = None,
    as_json: JsonOption = False,
) -> None:
    """Plan which combinations to collect next, in the order in which they help most.

    Args:
        file: A YAML or TOML file: factors and their levels, constraints, costs; or a model file of PICT, ACTS or CTWedge.
        levels: The space in short: 3^13, or '4^15 3^17 2^29' (levels^factors).
        subsets: Up to K of M modules, as M,K.
        collected: What is there already: CSV with a column for each factor, or JSON.
        strength: Cover all sets of this many levels; 2 means all pairs.
        budget: How much may be spent: combinations, or cost.
        forbid: Never collect this: 'colour=red and object=dog'.
        require: Always: 'if colour=red then object!=dog'.
        include: At least one combination is to be like this.
        stronger: Factors with a strength of their own: 'object, table, camera @ 3'.
        cost: one (for each combination), levels (from the file) or changes (of factors).
        strategy: covering, or diagonal, L, stair, single-factor, random, no-variation, complete.
        scores: Scores by number of combinations, to forecast from: CSV or Parquet.
        seed: Another seed, another plan.
        out: Write the combinations to this table: .csv, .parquet, .jsonl.
    """
    from recombine.plan.collected import header

    check_table(out)
    given: dict[str, Any] = {"collected": collected, "strength": strength, "budget": budget}
    given |= {"cost": cost, "strategy": strategy, "seed": seed}
    spec = _spec(file, levels, subsets)
    spec = dataclasses.replace(
        spec,
        forbid=(*spec.forbid, *(forbid or ())),
        require=(*spec.require, *(require or ())),
        include=(*spec.include, *(include or ())),
        stronger=(*spec.stronger, *(rc.plan.spec.parse_group(text, spec.space) for text in stronger or ())),
        # What the file says of levels does not count where another cost is asked for here.
        costs={} if cost in ("one", "changes") else spec.costs,
        **{name: value for name, value in given.items() if value is not None},
    )
    # Before anything is planned, so that a broken table is reported at once.
    known = None if scores is None else rc.plan.read_scores(scores)
    with ProgressBar("planning", quiet=as_json) as bar:
        made = rc.make_plan(**vars(spec), progress=bar.update)
    there, new = len(made.collected), len(made.combinations)
    ahead = None if known is None else rc.plan.forecast_scores(known, there, new)
    if out is not None:
        import pandas as pd

        write_table(pd.DataFrame(made.names, columns=header(made.space), dtype=object), out)
    if as_json:
        print_json(_document(made, spec, ahead, out))
    else:
        _tell(made, spec, ahead, out)


def _spec(file: Path | None, levels: str | None, subsets: str | None) -> rc.plan.PlanSpec:
    given = [source for source in (file, levels, subsets) if source is not None]
    if len(given) != 1:
        text = "No space to plan for was given." if not given else "The space was given more than once."
        raise BadInput(text, fix="give a file with factors and levels, or --levels 3^13, or --subsets 16,3")
    if file is not None:
        return rc.plan.read_spec(file)
    space = rc.plan.levels_space(levels) if levels is not None else rc.plan.subsets_space(str(subsets))
    return rc.plan.PlanSpec(space)


def _document(
    made: rc.plan.Plan, spec: rc.plan.PlanSpec, ahead: rc.plan.Forecast | None, out: Path | None
) -> dict[str, Any]:
    from recombine.plan.collected import header

    return {
        "combinations": made.names,
        "factors": header(made.space) if isinstance(made.space, rc.ProductSpace) else None,
        "certificate": {
            "before": _certificate(made.certificate_before, made.space),
            "after": _certificate(made.certificate_after, made.space),
        },
        "cost": made.cost,
        "costs": list(made.costs),
        "strength": made.strength,
        "interactions": {"covered": made.covered, "coverable": made.coverable, "total": made.total},
        "strategy": spec.strategy or "covering",
        "seed": spec.seed,
        "notes": list(made.notes),
        "forecast": None if ahead is None else dataclasses.asdict(ahead),
        "out": None if out is None else str(out),
    }


def _certificate(certificate: Certificate | None, space: Space) -> dict[str, Any] | None:
    if certificate is None:
        return None
    names = [space.label(part) for part in certificate.unseen]
    return dataclasses.asdict(certificate) | {"unseen_names": names}


def _tell(made: rc.plan.Plan, spec: rc.plan.PlanSpec, ahead: rc.plan.Forecast | None, out: Path | None) -> None:
    """To people; where standard output is no terminal and no file was named, it has the CSV and they get the words."""
    piped = out is None and not sys.stdout.isatty()
    if piped:
        from recombine.plan.collected import write_csv

        write_csv(made.combinations, made.space, sys.stdout)
        sys.stdout.flush()  # The certificate takes longer than many plans.
    place = errors() if piped else console()
    if not piped:
        _tell_combinations(made, spec, place, out)
    _tell_certificate(made, place)
    if ahead is not None:
        _tell_outlook(ahead, place)
    for note in made.notes:
        place.print(f"note: {plain(note)}", markup=False, highlight=False)
    if out is not None:
        message(f"combinations: {out}")


def _tell_combinations(made: rc.plan.Plan, spec: rc.plan.PlanSpec, place: Console, out: Path | None) -> None:
    from recombine.plan.collected import header
    from recombine.plan.wording import amount

    names = [[plain(str(name)) for name in row] for row in made.names[:SHOWN]]
    columns = [plain(name) for name in header(made.space)]
    if len(columns) > COLUMNS:
        columns, names = ["combination"], [[shorten(", ".join(row), LONGEST)] for row in names]
    names = [[*row, *[""] * (len(columns) - len(row))] for row in names]
    priced = (spec.cost or ("levels" if spec.costs else "one")) != "one"
    rows = [
        (str(rank), *row, *([amount(cost)] if priced else []))
        for rank, (row, cost) in enumerate(zip(names, made.costs, strict=False), 1)
    ]
    if not rows:
        place.print("Nothing to collect.", highlight=False)
        return
    price = f" at a cost of {amount(made.cost)}" if priced else ""
    place.print(f"collect {len(made.combinations)} combinations{price}", style="bold", highlight=False)
    place.print(table("", ["", *columns, *(["cost"] if priced else [])], rows, left=1 + len(columns)))
    rest = len(made.combinations) - len(rows)
    if rest:
        where = f"all are in {out}" if out is not None else "-o plan.csv writes all of them"
        place.print(f"... and {rest} more: {where}\n", highlight=False, markup=False)


def _tell_certificate(made: rc.plan.Plan, place: Console) -> None:
    from recombine.plan.wording import certificate_rows, listed

    ruled_out = made.coverable < made.total
    before, after = (
        certificate_rows(one, made.space, made.strength, (met, made.coverable) if ruled_out else None)
        for one, met in ((made.certificate_before, made.covered_before), (made.certificate_after, made.covered))
    )
    rows = [(name, one, two) for (name, one), (_, two) in zip(before, after, strict=True)]
    place.print(table("", ["certificate", "before", "after"], rows))
    for when, certificate in (("before", made.certificate_before), ("after", made.certificate_after)):
        if certificate is not None and certificate.unseen:
            names = [made.space.label(part) for part in certificate.unseen]
            place.print(f"never seen {when}: {listed(names)}", markup=False, highlight=False)


def _tell_outlook(ahead: rc.plan.Forecast, place: Console) -> None:
    from recombine.plan.forecast import declined

    rows = []
    for point in ahead.expected:
        between = "-" if point.low is None else f"{number(point.low)} to {number(point.high)}"
        rows.append((str(point.number), number(point.score), between))
    level = next((point.level for point in ahead.expected if point.level is not None), None)
    interval = "interval" if level is None else f"{level * 100:.0f} % interval"
    place.print(table("", ["combinations in all", "expected score", interval], rows))
    for sentence in (*declined(ahead.expected), *ahead.notes):
        place.print(sentence, markup=False, highlight=False)
