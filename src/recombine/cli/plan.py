"""The command that plans: which combinations to collect next."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.cli.output import console, errors, message, number, print_json, table
from recombine.cli.waiting import Waiting
from recombine.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from recombine.plan.forecast import Outlook
    from recombine.plan.planner import Plan
    from recombine.plan.spec import PlanSpec
    from recombine.spaces.base import Space
    from recombine.supports.certificate import Certificate

SHOWN = 20
"""So many combinations are shown in a terminal; files have them all."""
COLUMNS = 6
"""Up to so many factors have a column each in a terminal."""
LONGEST = 60
"""So many characters of a combination fit a line where it has more factors."""


def plan_command(
    file: Path | None,
    *,
    levels: str | None = None,
    subsets: str | None = None,
    collected: Path | None = None,
    strength: int | None = None,
    budget: float | None = None,
    forbid: Sequence[str] = (),
    require: Sequence[str] = (),
    include: Sequence[str] = (),
    cost: str | None = None,
    strategy: str | None = None,
    scores: Path | None = None,
    seed: int | None = None,
    out: Path | None = None,
    as_json: bool,
) -> None:
    """Plan, and tell: a table for people, CSV for pipes and files, or one JSON document."""
    from recombine.cli.tables import check_table

    if out is not None:
        check_table(out)
    given: dict[str, Any] = {
        "collected": collected,
        "strength": strength,
        "budget": budget,
        "cost": cost,
        "strategy": strategy,
        "seed": seed,
    }
    with _safe_to_show():
        said = _spec(file, levels, subsets)
        spec = dataclasses.replace(
            said,
            forbid=(*said.forbid, *forbid),
            require=(*said.require, *require),
            include=(*said.include, *include),
            # What the file says of levels does not count where another cost is asked for here.
            costs={} if cost in ("one", "changes") else said.costs,
            **{name: value for name, value in given.items() if value is not None},
        )
        known = _scores(scores)
        made = _made(spec, quiet=as_json)
        ahead = _outlook(made, known)
    if out is not None:
        _write(made, out)
    if as_json:
        print_json(_document(made, spec, ahead, out))
    else:
        _tell(made, spec, ahead, out)


@contextlib.contextmanager
def _safe_to_show() -> Iterator[None]:
    """Errors quote names from data: nothing in them may act on a terminal."""
    from recombine.plain import plain

    try:
        yield
    except BadInput as error:
        said = "\n".join(plain(line) for line in error.message.split("\n"))
        raise BadInput(said, fix=None if error.fix is None else plain(error.fix)) from error


def _spec(file: Path | None, levels: str | None, subsets: str | None) -> PlanSpec:
    from recombine.plan.spec import PlanSpec, levels_space, read_spec, subsets_space

    given = [one for one in (file, levels, subsets) if one is not None]
    if len(given) != 1:
        said = "No space to plan for was given." if not given else "The space was given more than once."
        raise BadInput(said, fix="give a file with factors and levels, or --levels 3^13, or --subsets 16,3")
    if file is not None:
        return read_spec(file)
    return PlanSpec(levels_space(levels) if levels is not None else subsets_space(str(subsets)))


def _made(spec: PlanSpec, *, quiet: bool) -> Plan:
    from recombine.plan.collected import as_rows, read_collected
    from recombine.plan.constraints import compiled, require
    from recombine.plan.costs import costs_of
    from recombine.plan.planner import make_plan
    from recombine.supports.strategies import COVERING

    there = spec.collected
    rows = (
        None
        if there is None
        else read_collected(there, spec.space)
        if isinstance(there, Path)
        else as_rows(there, spec.space)
    )
    with Waiting("planning", quiet=quiet) as waiting:
        return make_plan(
            spec.space,
            collected=rows,
            strength=spec.strength,
            budget=spec.budget,
            forbidden=compiled(spec.forbid, spec.require, spec.space),
            include=[require(text, spec.space) for text in spec.include],
            costs=costs_of(spec.space, spec.cost, spec.costs),
            strategy=spec.strategy or COVERING,
            seed=spec.seed,
            on=lambda done, total: waiting("planning", done / total if total else None),
        )


def _scores(path: Path | None) -> pd.DataFrame | None:
    """Before anything is planned, so that a broken table is told at once."""
    if path is None:
        return None
    from recombine.plan.forecast import read_scores

    return read_scores(path)


def _outlook(made: Plan, scores: pd.DataFrame | None) -> Outlook | None:
    if scores is None:
        return None
    from recombine.plan.forecast import outlook

    before = 0 if made.certificate_before is None else made.certificate_before.size
    return outlook(scores, before, len(made.combinations))


def _write(made: Plan, out: Path) -> None:
    import pandas as pd

    from recombine.cli.tables import write_table
    from recombine.plan.collected import as_names, header

    frame = pd.DataFrame(as_names(made.combinations, made.space), columns=header(made.space), dtype=object)
    write_table(frame, out)


def _document(made: Plan, spec: PlanSpec, ahead: Outlook | None, out: Path | None) -> dict[str, Any]:
    from recombine.plan.collected import as_names, header
    from recombine.spaces.product import ProductSpace

    return {
        "combinations": as_names(made.combinations, made.space),
        "factors": header(made.space) if isinstance(made.space, ProductSpace) else None,
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


def _tell(made: Plan, spec: PlanSpec, ahead: Outlook | None, out: Path | None) -> None:
    """To people; where standard output is no terminal and no file was named, it has the CSV and they get the words."""
    piped = out is None and not sys.stdout.isatty()
    if piped:
        from recombine.plan.collected import write_csv

        write_csv(made.combinations, made.space, sys.stdout)
    place = errors() if piped else console()
    if not piped:
        _tell_combinations(made, spec, place, out)
    _tell_certificate(made, place)
    if ahead is not None:
        _tell_outlook(ahead, place)
    from recombine.plain import plain

    for note in made.notes:
        place.print(f"note: {plain(note)}", markup=False, highlight=False)
    if out is not None:
        message(f"combinations: {out}")


def _tell_combinations(made: Plan, spec: PlanSpec, place: Console, out: Path | None) -> None:
    from recombine.plain import plain
    from recombine.plan.collected import as_names, header
    from recombine.plan.wording import amount

    names = [[plain(str(one)) for one in row] for row in as_names(made.combinations[:SHOWN], made.space)]
    columns = [plain(name) for name in header(made.space)]
    if len(columns) > COLUMNS:
        columns, names = ["combination"], [[_cut(", ".join(row))] for row in names]
    names = [[*row, *[""] * (len(columns) - len(row))] for row in names]
    priced = (spec.cost or ("levels" if spec.costs else "one")) != "one"
    rows = [
        (str(place), *row, *([amount(cost)] if priced else []))
        for place, (row, cost) in enumerate(zip(names, made.costs, strict=False), 1)
    ]
    title = f"collect {len(made.combinations)} combinations"
    title += f" at a cost of {amount(made.cost)}" if priced else ""
    if not rows:
        place.print("Nothing to collect.", highlight=False)
        return
    place.print(title, style="bold", highlight=False)
    place.print(table("", ["", *columns, *(["cost"] if priced else [])], rows, left=1 + len(columns)))
    rest = len(made.combinations) - len(rows)
    if rest:
        where = f"all are in {out}" if out is not None else "-o plan.csv writes all of them"
        place.print(f"... and {rest} more: {where}\n", highlight=False, markup=False)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + " …"


def _tell_certificate(made: Plan, place: Console) -> None:
    from recombine.plan.wording import certificate_rows, listed

    ruled_out = made.coverable < made.total
    before, after = (
        certificate_rows(one, made.space, made.strength, (met, made.coverable) if ruled_out else None)
        for one, met in (
            (made.certificate_before, made.covered_before),
            (made.certificate_after, made.covered),
        )
    )
    rows = [(name, one, two) for (name, one), (_, two) in zip(before, after, strict=True)]
    place.print(table("", ["certificate", "before", "after"], rows))
    for when, certificate in (("before", made.certificate_before), ("after", made.certificate_after)):
        if certificate is not None and certificate.unseen:
            names = [made.space.label(part) for part in certificate.unseen]
            place.print(f"never seen {when}: {listed(names)}", markup=False, highlight=False)


def _tell_outlook(ahead: Outlook, place: Console) -> None:
    from recombine.plan.forecast import declined

    rows = [
        (
            str(one.number),
            number(one.score),
            "-" if one.low is None else f"{number(one.low)} to {number(one.high)}",
        )
        for one in ahead.expected
    ]
    level = next((one.level for one in ahead.expected if one.level is not None), None)
    interval = "interval" if level is None else f"{level * 100:.0f} % interval"
    place.print(table("", ["combinations in all", "expected score", interval], rows))
    for sentence in (*declined(ahead.expected), *ahead.notes):
        place.print(sentence, markup=False, highlight=False)
