"""`recombine audit-llm ...`: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from recombine.cli.options import DryOption, JsonOption
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.embers import Embers
    from recombine.endpoints.embers_audit import EmbersAudit
    from recombine.language.items import Item

audit_llm_app = App(
    name="audit-llm", help="Audit a language model by asking it questions.", help_format="plaintext"
)

KEY = "RECOMBINE_LLM_KEY"
"""The variable of the environment with the key. It is sent to the endpoint and to nobody else, and never stored."""
ITEMS = 40
AT_ONCE = 4
VERSION = 1
"""Of what is asked and how: answers of another one are not mixed with these."""


@audit_llm_app.command
def embers(
    *,
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="The folder for answers and findings; run again to go on.")
    ],
    endpoint: Annotated[
        str | None, Parameter(help="An OpenAI-compatible endpoint: https://host/v1, with --model.")
    ] = None,
    model: Annotated[str | None, Parameter(help="The model that the endpoint is to ask.")] = None,
    function: Annotated[
        str | None, Parameter(help="Or module:function, which takes a prompt and returns the answer.")
    ] = None,
    items: Annotated[
        int | None, Parameter(help="Of each task, variant and level of probability; 40 unless told.")
    ] = None,
    items_from: Annotated[
        Path | None, Parameter(help="Or your own: CSV or JSON lines, see docs/audit-llm.md.")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        Parameter(
            negative="", help="decode, encode, reversal, counting, linear, sorting, acronym; else all."
        ),
    ] = None,
    shifts: Annotated[str, Parameter(help="The common and the rare shift of the ciphers.")] = "13,12",
    at_once: Annotated[
        int | None, Parameter(help="Questions under way at a time; 4 unless told, 1 of a function.")
    ] = None,
    temperature: Annotated[float | None, Parameter(help="Sent to the endpoint; `none` sends none.")] = 0.0,
    patience: Annotated[float, Parameter(help="Seconds for one answer.")] = 60.0,
    key_variable: Annotated[
        str, Parameter(help="The variable of the environment with the endpoint's key.")
    ] = KEY,
    seed: Annotated[int, Parameter(help="Of the items.")] = 0,
    json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Does a model do better on common tasks and probable answers, where neither should matter?"""
    from recombine.endpoints.kept import Kept

    asked = _items(items, items_from, tasks or (), shifts, seed)
    ask, settings = _model(endpoint, model, function, temperature, patience, key_variable)
    settings |= {
        "audit": "embers",
        "version": VERSION,
        "items": "built-in" if items_from is None else items_from.name,
        "seed": None if items_from is not None else seed,
        "shifts": None if items_from is not None else shifts,
    }
    if dry_run:
        kept = Kept(out)
        kept.check(settings)
        _say_dry(asked, kept, as_json=json)
        return
    threads = at_once if at_once is not None else 1 if endpoint is None else AT_ONCE
    _audit(ask, asked, out, settings, threads, as_json=json)


def _items(
    number: int | None, source: Path | None, tasks: Sequence[str], shifts: str, seed: int
) -> list[Item]:
    from recombine.cli.audit import split_names
    from recombine.language.item_files import read_items
    from recombine.language.items import make_items

    wanted = split_names(tasks)
    if source is None:
        return make_items(ITEMS if number is None else number, seed, wanted, _shifts(shifts))
    if number is not None:
        raise BadInput(
            "--items says how many are made, --items-from names items of your own.", fix="give one of them"
        )
    found = [item for item in read_items(source) if not wanted or item.task in wanted]
    if not found:
        raise BadInput(f"{source} has no items of the tasks {', '.join(wanted)}.", fix="leave --tasks out")
    return found


def _shifts(given: str) -> dict[str, int]:
    try:
        common, rare = (int(one) for one in given.split(","))
    except ValueError:
        raise BadInput(
            f"--shifts {given!r} does not name two shifts.", fix="write the common one first: --shifts 13,12"
        ) from None
    return {"common": common, "rare": rare}


def _model(
    endpoint: str | None,
    model: str | None,
    function: str | None,
    temperature: float | None,
    patience: float,
    key_variable: str,
) -> tuple[Callable[[str], Any], dict[str, Any]]:
    """What is asked, and all that its answers depend on. No secrets."""
    if (endpoint is None) == (function is None):
        raise BadInput(
            "Either an endpoint or a function is asked.",
            fix="--endpoint URL --model NAME, or --function module:function",
        )
    if function is not None:
        from recombine.endpoints.function import load_function, source_version

        if model is not None:
            raise BadInput("--model names the model of an endpoint.", fix="leave it out with --function")
        found = load_function(function)
        return found, {"model": function, "source": source_version(found)}
    if endpoint is None or not model:
        raise BadInput("The endpoint needs to know which model to ask.", fix="--model NAME")
    if not patience > 0:
        raise BadInput(f"Patience is more than 0 seconds, got {patience:g}.", fix="60 is usual")
    from recombine.endpoints.chat import LIMIT, ChatEndpoint

    chat = ChatEndpoint(endpoint, model, key_variable, patience=patience, limit=max(LIMIT, 2 * patience))
    options = {} if temperature is None else {"temperature": temperature}

    def ask(prompt: str) -> str:
        return chat.ask([{"role": "user", "content": prompt}], **options)

    return ask, {"model": model, "endpoint": chat.base, "temperature": temperature}


def _audit(
    ask: Callable[[str], Any],
    items: Sequence[Item],
    out: Path,
    settings: dict[str, Any],
    at_once: int,
    *,
    as_json: bool,
) -> None:
    from recombine.cli.output import Told, print_json
    from recombine.cli.waiting import Waiting
    from recombine.endpoints.embers_audit import audit_embers

    with Waiting("asking the model") as on:
        made = audit_embers(ask, items, out, settings, at_once=at_once, on=on)
        on("writing the report")
        files = _write(made, out)
    if as_json:
        print_json(made.record() | {"files": files})
    else:
        _say(made, files)
    if made.missing:
        raise Told(
            f"{made.missing} of {made.items} items have no answer. {' '.join(made.notes)}",
            fix="see that the model answers, and run the same command again",
        )


def _write(made: EmbersAudit, out: Path) -> dict[str, str]:
    """The findings, the answers as a table, and the page."""
    import json as written

    from recombine.cli.tables import write_table
    from recombine.figures.files import write_whole
    from recombine.store.files import finite

    record = written.dumps(finite(made.record()), indent=1, allow_nan=False, default=str)
    files = {"findings": str(write_whole(out / "audit.json", record))}
    if made.found is not None:
        from recombine.report.embers import write_embers

        files["answers"] = str(write_table(made.answers, out / "answers.csv"))
        files["report"] = str(write_embers(made, made.found, out / "report.html"))
    return files


def _say(made: EmbersAudit, files: dict[str, str]) -> None:
    from recombine.cli.audit_summary import interval_text
    from recombine.cli.output import console, verdict_table
    from recombine.plain import plain

    out = console()

    def line(text: str, style: str | None = None) -> None:
        out.print(plain(text), style=style, markup=False, highlight=False, soft_wrap=True)

    found = made.found
    right = f", {interval_text(found.right)} right" if found is not None else ""
    line(f"{made.settings['model']}: {made.items} items, {len(made.answers)} answered{right}", "bold")
    if found is not None:
        _say_found(found, out)
        out.print(verdict_table([verdict.record() for verdict in found.verdicts]))
    for note in (*made.notes, *(() if found is None else found.notes)):
        line(note, "dim")
    for name in files.values():
        line(f"written: {name}")


def _say_found(found: Embers, out: Any) -> None:
    from recombine.audit.embers import LEVELS
    from recombine.cli.audit_summary import interval_text
    from recombine.cli.output import table
    from recombine.plain import plain
    from recombine.report.embers import share_rows

    rows = [
        [plain(task), variant, str(items)]
        + [interval_text(by_level[one].right) if one in by_level else "-" for one in ("all", *LEVELS)]
        for task, variant, items, by_level in share_rows(found)
    ]
    out.print(
        table(
            "Right answers, by probability of the text",
            ["task", "variant", "items", "all", *LEVELS],
            rows,
            left=2,
        )
    )
    if found.weights:
        weights = [[one.name, interval_text(one.weight, sign=True)] for one in found.weights]
        out.print(table("Log-odds (10 nats, 10 characters)", ["", "weight [95 % interval]"], weights))


def _say_dry(items: Sequence[Item], kept: Any, *, as_json: bool) -> None:
    """How many items there are of each kind, how many are answered already, and an example of each task."""
    from recombine.cli.output import console, print_json, table
    from recombine.endpoints.asking import answered
    from recombine.plain import plain

    held = kept.read()
    done = {item.name for item in items if answered(held.get(item.name))}
    kinds: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        kinds.setdefault((item.task, item.variant), []).append(item)
    examples = {task: members[0].prompt for (task, _), members in reversed(kinds.items())}
    if as_json:
        counts = [
            {
                "task": task,
                "variant": variant,
                "items": len(members),
                "answered": sum(one.name in done for one in members),
            }
            for (task, variant), members in kinds.items()
        ]
        print_json({"items": len(items), "answered": len(done), "kinds": counts, "examples": examples})
        return
    rows = [
        [plain(task), variant, str(len(members)), str(sum(one.name in done for one in members))]
        for (task, variant), members in kinds.items()
    ]
    out = console()
    out.print(table("", ["task", "variant", "items", "answered"], rows, left=2))
    for task, prompt in reversed(examples.items()):
        out.print(plain(task), style="bold", markup=False, highlight=False)
        out.print("\n".join(plain(one) for one in prompt.splitlines()), markup=False, highlight=False)
    told = f"{len(items) - len(done)} of {len(items)} questions would be asked"
    out.print(told, style="bold", markup=False, highlight=False)
