"""The command line: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Literal

from cyclopts import App, CycloptsError, Parameter

from recombine import __version__
from recombine.errors import RecombineError, did_you_mean

app = App(
    name="recombine",
    help="Can a neural network recombine what it knows, why, and what data would make it so?",
    version=__version__,
    help_format="plaintext",
    # Flags and lists have no opposite such as --no-json.
    default_parameter=Parameter(negative=""),
    # cyclopts would end the process silently; we say how to continue.
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(help="Install completion for your shell.")

COMMANDS = {
    "run:run": "Run a study: train what is missing, measure it, and decide its claims.",
    "run:train": "Train one model, store it and score it.",
    "sweeps:sweep": "Train and measure every cell of a grid over any settings, with replicates.",
    "sweeps:resume": "Finish the studies and sweeps that were begun in a store.",
    "listing:ls": "List the runs of a store, or the components of a kind with one line each.",
    "compare:compare": "Compare two runs, two groups of runs, or two stores: settings, scores, combinations.",
    "plot:plot": "Draw one number of the runs against another: means with 95 % intervals.",
    "note:note": "Write a note on a run, or show its notes.",
    "listing:show": "Show a study, a sweep, a run, a component's settings, or (`show config`) all settings of a run.",
    "audit_commands:audit_app": "Audit your own model by a table: does it recombine, which combinations fail, why, what to collect?",
    "audit_images:audit_images": "Audit a text-to-image pipeline: what it fails to compose, and whether its blocks say so.",
    "plan:plan": "Plan which combinations to collect next, in the order in which they help most.",
    "listing:verdicts": "The verdicts of all studies in a store, corrected for their number.",
    "view:view": "Open the viewer: evidence, runs, comparisons, audits and plans in a browser, live, on this machine only.",
    "results:report": "Write the report of a study or sweep: one HTML file that opens from disk.",
    "results:export": "Write results as small files: verdicts.json, overview.csv, a PNG for each figure; with `all`, also verdicts.md.",
    "store:store_app": "Look after a store: delete, archive, tag and merge runs.",
    "audit_llm:audit_llm_app": "Audit a language model by asking it questions.",
    "doctor:doctor": "Check the installation and the machine; check and repair a store. Nothing is deleted.",
}
"""Where each command is declared, below `recombine.cli`. A module is imported when its command is called."""

for path, text in COMMANDS.items():
    name = path.partition(":")[2].removesuffix("_app").replace("_", "-")
    app.command(f"recombine.cli.{path}", name=name, help=text)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script of a shell.

    Args:
        shell: The shell.
    """
    sys.stdout.write(app.generate_completion(prog_name="recombine", shell=shell) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """The entry point: turns errors into messages and exit codes."""
    from recombine.cli.streams import open_closed_streams

    open_closed_streams()
    code = _guarded(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Nothing is left to do, so an interrupt needs no traceback.
    if code > 128:
        os._exit(code)  # Libraries that were interrupted while they compiled crash at an ordinary end.
    sys.exit(code)


def _guarded(given: list[str]) -> int:
    """Run a command; returns the exit code. Signals and output that fails are taken care of."""
    from recombine.cli.streams import lasting, why_lost
    from recombine.interrupts import installed

    try:
        with installed(), lasting() as out:
            code = _run(given)
            out.flush()
            lost = None if out.error is None else why_lost(out.error)
            if lost is not None:
                fix = "the work itself is done; the same command prints it again"
                code = _fail(f"Standard output cannot be written: {lost}.", fix, code or 1, as_json=False)
            return code
    except KeyboardInterrupt:
        return 130  # Between the last message and the end.


def _run(given: list[str]) -> int:
    from recombine.cli.output import CheckFailed, Warnings

    as_json = "--json" in given
    log = logging.getLogger("recombine")
    if not any(isinstance(handler, Warnings) for handler in log.handlers):
        log.addHandler(Warnings(logging.WARNING))
    try:
        # The process is short-lived and often interrupted: cyclopts' own handling would hide the exit code.
        app(given, exit_on_error=False, print_error=False, result_action="return_value")
    except RecombineError as error:
        return _fail(error.message, error.fix, error.exit_code, as_json and not isinstance(error, CheckFailed))
    except CycloptsError as error:
        return _fail(str(error), _hint(given), 2, as_json)
    except MemoryError as error:
        fix = "ask for less, or use a machine with more memory"
        return _fail(f"There is not enough memory: {str(error) or 'an allocation failed'}", fix, 1, as_json)
    except KeyboardInterrupt as error:
        code = 128 + getattr(error, "number", signal.SIGINT)
        return _fail(*_interrupted(given), code, as_json)
    return 0


KEPT = {"audit-llm": "Answers are kept.", "audit-images": "Images and answers are kept."}
NOTHING_KEPT = ("audit", "plan", "ls", "plot", "compare", "show", "verdicts", "report", "export", "doctor")
"""Commands that read and tell: interrupted, they begin anew."""


def _interrupted(given: list[str]) -> tuple[str, str]:
    """What an interrupt leaves behind, and what to do next."""
    command = given[0] if given else ""
    if command in NOTHING_KEPT:
        return "Interrupted. Nothing was kept.", "run the same command again"
    kept = KEPT.get(command, "Finished runs are kept.")
    return f"Interrupted. {kept}", "run the same command again to continue"


def _hint(given: list[str]) -> str:
    commands = [name for name in app if not name.startswith("-")]
    word = given[0] if given else ""
    return "see `recombine --help`" if word in commands else did_you_mean(word, commands)


def _fail(what: str, fix: str | None, code: int, as_json: bool) -> int:
    from recombine.cli.output import message, print_json

    interrupted = code > 128
    message(f"error: {what}", style="bold yellow" if interrupted else "bold red")
    if fix:
        message(f"  {'next' if interrupted else 'fix'}: {fix}")
    if as_json:
        print_json({"error": what, "fix": fix, "exit_code": code})
    return code


if __name__ == "__main__":
    main()
