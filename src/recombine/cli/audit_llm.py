"""`recombine audit-llm ...`: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from recombine.cli.options import DryOption, JsonOption
from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.endpoints.embers_audit import EmbersAudit
    from recombine.language.items import Item

audit_llm_app = App(
    name="audit-llm", help="Audit a language model by asking it questions.", help_format="plaintext"
)

KEY = "RECOMBINE_LLM_KEY"
"""The variable of the environment with the key. It is sent to the endpoint and to nobody else, and never stored."""
ITEMS = 40
AT_ONCE = 4
LONGEST = 86_400.0
"""Seconds that somebody may want to wait for one answer: a day."""
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
    # A function of the user's may print, now and when it is asked; standard output is for what we say.
    with contextlib.redirect_stdout(sys.stderr):
        asked, notes = _items(items, items_from, tasks or (), shifts, seed)
        subject = _subject(endpoint, model, function, temperature, patience, key_variable)
        subject.settings.update(
            {
                "audit": "embers",
                "version": VERSION,
                "items": "built-in" if items_from is None else items_from.name,
                "seed": None if items_from is not None else seed,
                "shifts": None if items_from is not None else shifts,
            }
        )
    if dry_run:
        from recombine.cli.audit_llm_summary import say_dry
        from recombine.endpoints.kept import Kept

        kept = Kept(out)
        kept.check(subject.settings)
        say_dry(asked, kept, notes, as_json=json)
        return
    threads = at_once if at_once is not None else 1 if endpoint is None else AT_ONCE
    _audit(subject, asked, out, threads, notes, as_json=json)


@dataclasses.dataclass(frozen=True)
class Subject:
    """The model that is asked."""

    ask: Callable[[str], Any]
    settings: dict[str, Any]
    """All that its answers depend on. No secrets."""
    fix: Callable[[], str]
    """What to do about answers that did not come, where that is known."""


def _items(
    number: int | None, source: Path | None, tasks: Sequence[str], shifts: str, seed: int
) -> tuple[list[Item], list[str]]:
    """The items, and what is to be said of their file."""
    from recombine.cli.audit import split_names
    from recombine.language.item_files import read_items
    from recombine.language.items import make_items

    wanted = split_names(tasks)
    if source is None:
        return make_items(ITEMS if number is None else number, seed, wanted, _shifts(shifts)), []
    if number is not None:
        raise BadInput(
            "--items says how many are made, --items-from names items of your own.", fix="give one of them"
        )
    read, notes = read_items(source)
    found = [item for item in read if not wanted or item.task in wanted]
    if not found:
        raise BadInput(f"{source} has no items of the tasks {', '.join(wanted)}.", fix="leave --tasks out")
    return found, notes


def _shifts(given: str) -> dict[str, int]:
    try:
        common, rare = (int(one) for one in given.split(","))
    except ValueError:
        raise BadInput(
            f"--shifts {given!r} does not name two shifts.", fix="write the common one first: --shifts 13,12"
        ) from None
    return {"common": common, "rare": rare}


def _subject(
    endpoint: str | None,
    model: str | None,
    function: str | None,
    temperature: float | None,
    patience: float,
    key_variable: str,
) -> Subject:
    if (endpoint is None) == (function is None):
        raise BadInput(
            "Either an endpoint or a function is asked.",
            fix="--endpoint URL --model NAME, or --function module:function",
        )
    if temperature is not None and not 0 <= temperature < math.inf:
        raise BadInput(
            f"A temperature is 0 or more, got {temperature:g}.", fix="0 is usual; `none` sends none"
        )
    if function is not None:
        from recombine.endpoints.function import load_function, source_version

        if model is not None:
            raise BadInput("--model names the model of an endpoint.", fix="leave it out with --function")
        found = load_function(function)
        return Subject(found, {"model": function, "source": source_version(found)}, str)
    if endpoint is None or not model:
        raise BadInput("The endpoint needs to know which model to ask.", fix="--model NAME")
    if not 0 < patience <= LONGEST:
        raise BadInput(
            f"Patience is more than 0 seconds and no more than a day, got {patience:g}.", fix="60 is usual"
        )
    from recombine.endpoints.chat import LIMIT, ChatEndpoint

    chat = ChatEndpoint(endpoint, model, key_variable, patience=patience, limit=max(LIMIT, 2 * patience))
    options = {} if temperature is None else {"temperature": temperature}

    def ask(prompt: str) -> str:
        return chat.ask([{"role": "user", "content": prompt}], **options)

    return Subject(ask, {"model": model, "endpoint": chat.base, "temperature": temperature}, lambda: chat.fix)


def _audit(
    subject: Subject, items: Sequence[Item], out: Path, at_once: int, notes: Sequence[str], *, as_json: bool
) -> None:
    from recombine.cli.audit_llm_summary import say
    from recombine.cli.output import Told, print_json
    from recombine.cli.waiting import Waiting
    from recombine.endpoints.embers_audit import audit_embers

    # Standard output first: the bar puts itself in its place too, and gives back what it found.
    with contextlib.redirect_stdout(sys.stderr), Waiting("asking the model") as on:
        made = audit_embers(subject.ask, items, out, subject.settings, at_once=at_once, notes=notes, on=on)
        on("writing the report")
        files = _write(made, out)
    if as_json:
        print_json(made.record() | {"files": files})
    else:
        say(made, files)
    if made.missing:
        fix = subject.fix() or "see that the model answers"
        raise Told(" ".join(made.lacking), fix=f"{fix}, and run the same command again")


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
