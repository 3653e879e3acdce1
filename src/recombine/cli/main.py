"""The command line: parse, call, print. Heavy imports happen inside the commands."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from recombine import __version__
from recombine.cli.audit_coverage_graph import CoverageGraphOptions
from recombine.cli.audit_llm import audit_llm_app
from recombine.cli.engines import EngineOptions
from recombine.cli.options import DEFAULT_STORE, DryOption, JsonOption, Overrides, StoreOption
from recombine.cli.store import store_app
from recombine.errors import RecombineError, did_you_mean

app = App(
    name="recombine",
    help="Can a neural network recombine what it knows, why, and what data would make it so?",
    version=__version__,
    help_format="plaintext",
    # cyclopts would end the process without a word; we say how to go on.
    suppress_keyboard_interrupt=False,
)
app.register_install_completion_command(help="Install completion for your shell.")
app.command(store_app)
app.command(audit_llm_app)

HERE = EngineOptions()
"""Where commands compute unless told otherwise: in this process."""
SCORES = CoverageGraphOptions()
"""What an audit looks at unless told otherwise: scores, and not the coverage graph of facts."""


@app.command
def run(
    study: Annotated[str, Parameter(help="The study, or all; `recombine ls studies` lists them.")],
    *overrides: Overrides,
    profile: Annotated[
        str, Parameter(help="smoke, demo, laptop, paper (or one of the study): same code, other sizes.")
    ] = "laptop",
    store: StoreOption = DEFAULT_STORE,
    report: Annotated[Path | None, Parameter(help="Also write the report page to this file.")] = None,
    engines: EngineOptions = HERE,
    json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Run a study: train what is missing, measure it, and decide its claims."""
    from recombine.cli.commands import run_command

    run_command(study, overrides, profile, store, report, engines, as_json=json, dry_run=dry_run)


@app.command
def train(
    family: Annotated[str, Parameter(help="The family of tasks; `recombine ls families` lists them.")],
    *overrides: Overrides,
    store: StoreOption = DEFAULT_STORE,
    engines: EngineOptions = HERE,
    json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Train one model, store it and score it."""
    from recombine.cli.commands import train_command

    train_command(family, overrides, store, engines, as_json=json, dry_run=dry_run)


@app.command
def sweep(
    file: Annotated[Path, Parameter(help="A YAML file: base, grid, cases, replicates, measure.")],
    *overrides: Overrides,
    out: Annotated[
        Path | None,
        Parameter(name=("--out", "-o"), help="Also write one row a run: .csv, .parquet or .jsonl."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
    dry_run: DryOption = False,
    engines: EngineOptions = HERE,
) -> None:
    """Train and measure every cell of a grid over any settings, with replicates."""
    from recombine.cli.sweeps import sweep_command

    sweep_command(file, overrides, out, store, engines, as_json=json, dry_run=dry_run)


@app.command
def resume(
    *names: Annotated[str, Parameter(help="Studies and sweeps; else all that are not done.")],
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
    dry_run: DryOption = False,
    engines: EngineOptions = HERE,
) -> None:
    """Finish the studies and sweeps that were begun in a store."""
    from recombine.cli.sweeps import resume_command

    resume_command(names, store, engines, as_json=json, dry_run=dry_run)


@app.command
def ls(
    what: Annotated[
        str, Parameter(help="runs, sweeps, or a kind of component: studies, families, models, ...")
    ] = "runs",
    *,
    tag: Annotated[str | None, Parameter(help="Only runs with this tag.")] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """List the runs of a store, or the components of a kind with a line each."""
    from recombine.cli.listing import list_command

    list_command(what, store, tag, as_json=json)


@app.command
def show(
    what: Annotated[
        str, Parameter(help="config, a component's name, or the (beginning of the) name of a run.")
    ],
    *,
    picture: Annotated[
        Path | None, Parameter(help="Write an example of a grid world (a family or a run) to this file.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Show a run, a component's settings, or (`show config`) all settings of a run."""
    from recombine.cli.listing import show_command

    show_command(what, store, picture, as_json=json)


@app.command
def audit(
    table: Annotated[Path, Parameter(help="Scores by combination: CSV, TSV, Parquet, JSON Lines or Arrow.")],
    *,
    factors: Annotated[
        list[str] | None, Parameter(negative="", help="The columns that make a combination: colour,object.")
    ] = None,
    roles: Annotated[
        list[str] | None,
        Parameter(negative="", help="A factor in several columns that share values: object=object,object_2."),
    ] = None,
    sets: Annotated[
        list[str] | None, Parameter(negative="", help="Columns that hold sets of values.")
    ] = None,
    score: Annotated[
        list[str] | None, Parameter(negative="", help="The columns with scores: 0 and 1, or real numbers.")
    ] = None,
    where: Annotated[
        str | None, Parameter(help="Only rows for which this holds: \"kind = 'colors'\".")
    ] = None,
    train: Annotated[
        Path | None, Parameter(help="A table of the combinations that the model was trained on.")
    ] = None,
    split: Annotated[str | None, Parameter(help="Or the column that says so: split=train.")] = None,
    activations: Annotated[
        Path | None, Parameter(help="safetensors or npz, an array a layer, a row for each row of the table.")
    ] = None,
    key: Annotated[
        str | None, Parameter(help="The column and the array by which activations and rows are matched.")
    ] = None,
    report: Annotated[
        Path | None, Parameter(help="Also write a page: audit.html. Of scores: the coverage graph has none.")
    ] = None,
    tables: Annotated[Path | None, Parameter(help="Also write tables (CSV) into this folder.")] = None,
    seed: Annotated[int, Parameter(help="Of what is drawn: bootstraps, folds, plans.")] = 0,
    json: JsonOption = False,
    graph: CoverageGraphOptions = SCORES,
) -> None:
    """Audit your own model by a table: does it recombine, which combinations fail and why, what to collect?"""
    from recombine.cli.audit import audit_command

    audit_command(
        table,
        factors=factors or (),
        roles=roles or (),
        sets=sets or (),
        scores=score or (),
        where=where,
        train=train,
        split=split,
        activations=activations,
        key=key,
        report=report,
        tables=tables,
        seed=seed,
        graph=graph,
        as_json=json,
    )


@app.command
def audit_images(
    pipeline: Annotated[
        Path, Parameter(help="The folder of a diffusers text-to-image pipeline (safetensors only).")
    ],
    *,
    prompts: Annotated[
        list[str],
        Parameter(negative="", help="Sets of prompts: animals, counting, ... or YAML files of your own."),
    ],
    out: Annotated[
        Path, Parameter(name=("--out", "-o"), help="The folder for images and findings; run again to go on.")
    ],
    judge: Annotated[
        str | None,
        Parameter(help="file:LABELS.csv, module:function, clip:FOLDER, vqa:FOLDER or openai:URL."),
    ] = None,
    judge_model: Annotated[str | None, Parameter(help="The model that an endpoint is to ask.")] = None,
    prompts_per_set: Annotated[int, Parameter(help="Different combinations of each set.")] = 100,
    images_per_prompt: Annotated[int, Parameter(help="Made in one go: fewer need less memory.")] = 4,
    steps: Annotated[int, Parameter(help="Of the schedule.")] = 30,
    guidance: Annotated[float | None, Parameter(help="Else what the pipeline has of its own.")] = None,
    size: Annotated[int | None, Parameter(help="Pixels of an edge; else what the pipeline has.")] = None,
    seed: Annotated[int, Parameter(help="Of prompts, noise and bootstraps.")] = 0,
    device: Annotated[str, Parameter(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    precision: Annotated[str, Parameter(help="auto, float32, float16 or bfloat16.")] = "auto",
    offload: Annotated[
        bool, Parameter(negative="", help="Keep only the part at work on the accelerator.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Audit a text-to-image pipeline: what it fails to compose, and whether its blocks say so."""
    from recombine.cli.audit_images import audit_images_command

    audit_images_command(
        pipeline,
        out,
        prompts=prompts,
        judge=judge,
        judge_model=judge_model,
        prompts_per_set=prompts_per_set,
        images_per_prompt=images_per_prompt,
        steps=steps,
        guidance=guidance,
        size=size,
        seed=seed,
        device=device,
        precision=precision,
        offload=offload,
        as_json=json,
    )


@app.command
def plan(
    file: Annotated[
        Path | None, Parameter(help="A YAML or TOML file: factors and their levels, constraints, costs.")
    ] = None,
    *,
    levels: Annotated[
        str | None, Parameter(help="The space in short: 3^13, or '4^15 3^17 2^29' (levels^factors).")
    ] = None,
    subsets: Annotated[str | None, Parameter(help="Up to K of M modules, as M,K.")] = None,
    collected: Annotated[
        Path | None, Parameter(help="What is there already: CSV with a column for each factor, or JSON.")
    ] = None,
    strength: Annotated[int | None, Parameter(help="Cover all sets of so many levels; 2: all pairs.")] = None,
    budget: Annotated[float | None, Parameter(help="How much may be spent: combinations, or cost.")] = None,
    forbid: Annotated[
        list[str] | None, Parameter(negative="", help="Never collect this: 'colour=red and object=dog'.")
    ] = None,
    require: Annotated[
        list[str] | None, Parameter(negative="", help="Always: 'if colour=red then object!=dog'.")
    ] = None,
    include: Annotated[
        list[str] | None, Parameter(negative="", help="At least one combination is to be like this.")
    ] = None,
    cost: Annotated[
        str | None,
        Parameter(help="one (for each combination), levels (from the file) or changes (of factors)."),
    ] = None,
    strategy: Annotated[
        str | None,
        Parameter(help="covering, or diagonal, L, stair, single-factor, random, no-variation, complete."),
    ] = None,
    scores: Annotated[
        Path | None, Parameter(help="Scores by number of combinations, to forecast from: CSV or Parquet.")
    ] = None,
    seed: Annotated[int | None, Parameter(help="Another seed, another plan.")] = None,
    out: Annotated[
        Path | None,
        Parameter(name=("--out", "-o"), help="Write the combinations to this table: .csv, .parquet, .jsonl."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Plan which combinations to collect next, in the order in which they help most."""
    from recombine.cli.plan import plan_command

    plan_command(
        file,
        levels=levels,
        subsets=subsets,
        collected=collected,
        strength=strength,
        budget=budget,
        forbid=forbid or (),
        require=require or (),
        include=include or (),
        cost=cost,
        strategy=strategy,
        scores=scores,
        seed=seed,
        out=out,
        as_json=json,
    )


@app.command
def verdicts(
    *,
    profile: Annotated[str | None, Parameter(help="Only studies that ran in this profile.")] = None,
    store: StoreOption = DEFAULT_STORE,
    markdown: Annotated[bool, Parameter(negative="", help="Print the table as Markdown.")] = False,
    json: JsonOption = False,
) -> None:
    """The verdicts of all studies in a store, corrected for their number."""
    from recombine.cli.listing import verdicts_command

    verdicts_command(profile, store, as_json=json, as_markdown=markdown)


@app.command
def report(
    study: Annotated[str | None, Parameter(help="The study; needed when the store holds several.")] = None,
    *,
    profile: Annotated[str | None, Parameter(help="The profile; else the largest that ran.")] = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="The file to write.")] = Path("report.html"),
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Write a study's report: one HTML file that opens from disk."""
    from recombine.cli.commands import report_command

    report_command(study, profile, out, store, as_json=json)


@app.command
def export(
    study: Annotated[
        str | None, Parameter(help="The study, or all; needed when the store holds several.")
    ] = None,
    *,
    profile: Annotated[str | None, Parameter(help="The profile; else the largest that ran.")] = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"), help="The folder to write into.")] = Path("results"),
    store: StoreOption = DEFAULT_STORE,
    json: JsonOption = False,
) -> None:
    """Write results as small files: verdicts.json, overview.csv, a PNG for each figure; with `all`, also verdicts.md."""
    from recombine.cli.results import export_command

    export_command(study, profile, out, store, as_json=json)


@app.command
def doctor(
    *,
    store: Annotated[
        Path | None, Parameter(name="--store", help="Also check this store, and repair what can be repaired.")
    ] = None,
    json: JsonOption = False,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative="", help="Only look: change nothing in the store.")
    ] = False,
) -> None:
    """Check the installation and the machine; check and repair a store. Nothing is deleted."""
    from recombine.cli.doctor import doctor_command

    doctor_command(store, as_json=json, dry_run=dry_run)


@app.command
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")]) -> None:
    """Print the completion script of a shell."""
    sys.stdout.write(app.generate_completion(prog_name="recombine", shell=shell) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """The entry point: turns errors into messages and exit codes."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(_guarded(given))


def _guarded(given: list[str]) -> int:
    from recombine.cli.output import Told, Warnings

    as_json = "--json" in given
    log = logging.getLogger("recombine")
    if not any(isinstance(handler, Warnings) for handler in log.handlers):
        log.addHandler(Warnings())
    try:
        # The process is short-lived and often interrupted: cyclopts' own handling would hide the exit code.
        app(given, exit_on_error=False, print_error=False, result_action="return_value")
    except Told as error:
        return _fail(error.message, error.fix, error.exit_code, as_json=False)
    except RecombineError as error:
        return _fail(error.message, error.fix, error.exit_code, as_json)
    except CycloptsError as error:
        return _fail(str(error), _hint(given), 2, as_json)
    except KeyboardInterrupt:
        return _fail(*_interrupted(given), 130, as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0


KEPT = {"audit-llm": "Answers are kept.", "audit-images": "Images and answers are kept."}
NOTHING_KEPT = ("audit", "plan", "ls", "show", "verdicts", "report", "export", "doctor")
"""Commands that read and tell: interrupted, they begin anew."""


def _interrupted(given: list[str]) -> tuple[str, str]:
    """What an interrupt leaves behind, and what to do next."""
    command = given[0] if given else ""
    if command in NOTHING_KEPT:
        return "Interrupted. Nothing was kept.", "run the same command again"
    kept = KEPT.get(command, "Finished runs are kept.")
    return f"Interrupted. {kept}", "run the same command again to go on"


def _hint(given: list[str]) -> str:
    commands = [name for name in app if not name.startswith("-")]
    word = given[0] if given else ""
    return "see `recombine --help`" if word in commands else did_you_mean(word, commands)


def _fail(what: str, fix: str | None, code: int, as_json: bool) -> int:
    from recombine.cli.output import message, print_json

    interrupted = code == 130
    message(f"error: {what}", style="bold yellow" if interrupted else "bold red")
    if fix:
        message(f"  {'next' if interrupted else 'fix'}: {fix}")
    if as_json:
        print_json({"error": what, "fix": fix, "exit_code": code})
    return code


if __name__ == "__main__":
    main()
