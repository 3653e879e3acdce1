"""`recombine compare`: two runs, two groups of runs, or two stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from recombine.cli.output import CheckFailed, interval_text, looked, number, print_json, say, say_line, table

if TYPE_CHECKING:
    from recombine.store.comparison import Comparison


def compare(
    first: str,
    second: str,
    *,
    score: str = "score_held_out",
    margin: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 0.05,
    solved: float = 0.5,
    limit: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 20,
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs, two groups of runs, or two stores: settings that differ, scores, combinations that flipped.

    Args:
        first: A run, a tag, a study or sweep, a filter such as "width = 64", or the folder of a store.
        second: The same; its score minus that of the first is the difference.
        score: The number that is compared.
        margin: The difference that matters.
        solved: The score from which a combination counts as solved.
        limit: The most combinations that are shown (--json has all).
    """
    from pathlib import Path

    from recombine.store.comparison import compare as compare_sides, side
    from recombine.store.store import is_store

    # Two stores need no third one.
    folders = [Path(what) for what in (first, second)]
    store = rc.load_store(store_path if not all(path.is_dir() and is_store(path) for path in folders) else folders[0])
    looked(store, as_json)
    found = compare_sides(side(store, first), side(store, second), score=score, margin=margin, solved=solved)
    if as_json:
        print_json(found.record())
    else:
        _show(found, limit)
    if found.problems:
        fix = f"recombine doctor --store {store_path}"
        raise CheckFailed(f"{len(found.problems)} problems in the store: what was compared is not all.", fix=fix)


def _show(found: Comparison, limit: int) -> None:
    names = found.first.name, found.second.name
    rows: list[Any] = [(each.name, _values(each.first), _values(each.second)) for each in found.settings]
    if rows:
        say(table("settings that differ", ["", *names], rows, left=3))
    else:
        say("All settings but the seeds are the same.")
    facts: list[tuple[str, Any]] = [
        (f"runs: {names[0]}", f"{len(found.first.runs)}, of them {found.unpaired[0]} without a partner"),
        (f"runs: {names[1]}", f"{len(found.second.runs)}, of them {found.unpaired[1]} without a partner"),
        ("pairs (same seeds, same other settings)", found.pairs),
        ("replicates (same seeds)", len(found.effects) or "not paired: no seeds in common"),
        *((f"mean {found.score}: {name}", mean) for name, mean in zip(names, found.means, strict=True)),
        ("difference [95 % interval]", interval_text(found.difference, sign=True)),
    ]
    if found.effects and found.margin > 0:
        needed = "unknown (one replicate)" if len(found.effects) < 2 else "more than 1000: it lies at the margin"
        needed = needed if found.needed is None else found.needed
        facts.append((f"replicates to decide a margin of {found.margin:g}", needed))
    say(table(f"{found.score}, second minus first", ["", ""], facts, left=1))
    say_line(found.answer, "bold")
    if found.combinations:
        _show_combinations(found, limit)


def _show_combinations(found: Comparison, limit: int) -> None:
    several = any(each.pairs > 1 for each in found.combinations)
    changed = [each for each in found.combinations if each.difference or each.flips]
    flips = sum(each.flips > 0 for each in found.combinations)
    title = f"combinations: {flips} of {len(found.combinations)} flipped (solved: {found.solved:g} or more)"
    columns = ["combination", "where", "first", "second", "difference", "gained", "lost"]
    rows = [
        (each.combination, each.regions, each.first, each.second, f"{each.difference:+.3f}", each.gained, each.lost)
        + ((each.pairs,) if several else ())
        for each in changed[:limit]
    ]
    if rows:
        say(table(title, [*columns, "pairs"] if several else columns, rows, left=2))
    else:
        say(f"No combination of {len(found.combinations)} has another score.")
    if len(changed) > limit:
        say(f"... and {len(changed) - limit} more (--limit)")


def _values(values: tuple[Any, ...]) -> str:
    shown = ", ".join(
        "none" if value is None else number(value) if isinstance(value, bool) else str(value) for value in values[:6]
    )
    return shown + (f", ... ({len(values)} values)" if len(values) > 6 else "")
