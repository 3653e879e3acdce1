"""`recombine audit-llm tools`: parse, call, print. Heavy imports happen inside the command."""

from __future__ import annotations

import contextlib
import json as json_module
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from recombine.cli import output
from recombine.cli.options import DryOption, JsonOption, SeedOption
from recombine.cli.subjects import AT_ONCE, KEY, read_subject
from recombine.errors import BadInput
from recombine.plain import plain
from recombine.progress import ProgressBar

if TYPE_CHECKING:
    from recombine.audit.tools.findings import ToolsFindings
    from recombine.audit.tools.questions import ToolPlan
    from recombine.endpoints import AnswerCache, ToolsAudit

PAIRS_SHOWN = 20


def tools(
    *,
    tools_from: Annotated[Path, Parameter(name=("--tools", "-t"))],
    out: Annotated[Path, Parameter(name=("--out", "-o"))],
    endpoint: str | None = None,
    model: str | None = None,
    function: str | None = None,
    calls: Literal["native", "text"] | None = None,
    depth: int = 3,
    values: int = 2,
    questions: int | None = None,
    wording: Literal["names", "descriptions"] = "names",
    train: Path | None = None,
    at_once: int | None = None,
    temperature: float | None = 0.0,
    timeout: float = 60.0,
    key_variable: str = KEY,
    seed: SeedOption = 0,
    json: JsonOption = False,
    dry_run: DryOption = False,
) -> None:
    """Which functions can a model call, and which pairs of them can it nest?

    Args:
        tools_from: A JSON file with function schemas, see docs/audit-llm.md.
        out: The folder for answers and findings; run again to continue.
        endpoint: An OpenAI-compatible endpoint: https://host/v1, with --model.
        model: The name of the endpoint's model.
        function: Instead of an endpoint: module:function, which takes a prompt and returns the answer.
        calls: `native` (tool_calls, with made-up results) or `text` (all calls in one text); a function has text only.
        depth: The number of functions in the deepest chains.
        values: Questions, with other values, for each chain.
        questions: Most questions; by default as many as cover all pairs.
        wording: Whether questions give the names of functions, or their descriptions.
        train: Training data as JSON lines: were the failing pairs nested in it?
        at_once: Questions in parallel; default 4, for a function 1.
        temperature: The temperature of the endpoint; `none` sends no temperature.
        timeout: Seconds for one answer.
        key_variable: The environment variable with the endpoint's key.
        seed: The seed of the plan and of the values.
    """
    from recombine.calling import read_tools, trained_pairs
    from recombine.endpoints import AnswerCache, audit_tools
    from recombine.endpoints.tools_audit import tools_settings

    library = read_tools(tools_from)
    # A user's function may print. Standard output is reserved for the result.
    with contextlib.redirect_stdout(sys.stderr):
        subject = read_subject(endpoint, model, function, temperature, timeout, key_variable)
    if subject.chat is None and calls == "native":
        raise BadInput("A function answers in text.", fix="leave out --calls, or give --endpoint")
    notation = calls or ("text" if subject.chat is None else "native")
    kinds: dict[str, Any] = {"depth": depth, "values": values, "questions": questions, "wording": wording, "seed": seed}
    if dry_run:
        from recombine.audit.tools.questions import make_questions

        if train is not None:
            trained_pairs(train, library)
        kept = AnswerCache(out)
        kept.check(tools_settings(library, notation, wording, seed, subject.settings))
        _say_dry(make_questions(library, notation=notation, **kinds), kept, as_json=json)
        return
    # Redirect standard output first: the progress bar replaces it too, and restores what it found.
    with contextlib.redirect_stdout(sys.stderr), ProgressBar("asking the model") as on:
        result = audit_tools(
            library,
            subject.ask if notation == "text" or subject.chat is None else subject.chat,
            out,
            calls=notation,
            train=train,
            settings=subject.settings,
            at_once=at_once if at_once is not None else 1 if endpoint is None else AT_ONCE,
            on=on,
            **kinds,
        )
        on("writing the report")
        files = _write(result, out)
    if json:
        output.print_json(result.record() | {"files": files})
    else:
        _say_result(result, files)
    if result.missing:
        fix = subject.fix() or "check that the model answers"
        raise output.CheckFailed(" ".join(result.lacking), fix=f"{fix}, and run the same command again")


def _write(result: ToolsAudit, out: Path) -> dict[str, str]:
    """The findings, the answers and the nestings as tables, examples to train on, and the page."""
    from recombine.figures.files import write_whole

    files = {"findings": str(write_whole(out / "audit.json", output.json_text(result.record(), indent=1)))}
    if result.findings is not None:
        from recombine.report import write_tools

        for name, frame in (("answers", result.answers), ("nestings", result.nestings)):
            files[name] = str(output.write_table(output.without_formulas(frame), out / f"{name}.csv"))
        lines = "".join(json_module.dumps(example, ensure_ascii=False) + "\n" for example in result.examples)
        files["examples"] = str(write_whole(out / "examples.jsonl", lines))
        files["report"] = str(write_tools(result, result.findings, out / "report.html"))
    return files


def _say_result(result: ToolsAudit, files: Mapping[str, str]) -> None:
    findings, asked = result.findings, len(result.plan.questions)
    right = f", {output.interval_text(findings.right)} right" if findings is not None else ""
    name = result.settings.get("model", "")
    output.say_line(f"{name}: {asked} questions, {len(result.answers)} answered{right}", "bold")
    if findings is not None:
        output.say_line(findings.verdict, "bold")
        _say_found(findings)
        for sentence in findings.advice:
            output.say_line(sentence)
    for note in () if findings is None else findings.notes:
        output.say_line(note, "dim")
    output.say_written(files.values())


def _say_found(findings: ToolsFindings) -> None:
    from recombine.report.tools import WHY, share

    rows = [[str(each.depth), each.questions, output.interval_text(each.right)] for each in findings.depths]
    output.say(output.table("Right answers, by depth", ["functions in the chain", "questions", "right"], rows))
    rows = [
        [plain(each.name), share(each.alone), share(each.as_outer), share(each.as_inner)] for each in findings.functions
    ]
    output.say(output.table("Functions: share right", ["function", "alone", "as outer", "as inner"], rows))
    if findings.failing:
        known = findings.failing[0].trained is not None
        columns = ["outer", "inner", "nested", "why", "q", *(["in training"] if known else [])]
        rows = [
            [plain(one.outer), plain(one.inner), f"{one.nested} of {one.asked}", WHY[one.reason], _q(one.q)]
            + ([one.trained] if known else [])
            for one in findings.failing[:PAIRS_SHOWN]
        ]
        output.say(output.table("Pairs that do not nest", columns, rows, left=2))
    if (more := len(findings.failing) - PAIRS_SHOWN) > 0:
        output.say(f"and {more} more pairs: see the page")
    wrong = [[outcome, number] for outcome, number in findings.outcomes.items()]
    output.say(output.table("Answers", ["", "number"], wrong))


def _q(value: float | None) -> str:
    return "-" if value is None else f"{value:.1g}"


def _say_dry(plan: ToolPlan, kept: AnswerCache, *, as_json: bool) -> None:
    """Print the number of questions by depth, how many are answered already, and an example of each depth."""
    from recombine.endpoints.asking import answered

    held = kept.read()
    done = {question.name for question in plan.questions if answered(held.get(question.name))}
    depths = sorted({question.depth for question in plan.questions})
    groups = {depth: [question for question in plan.questions if question.depth == depth] for depth in depths}
    counts = [(depth, len(group), sum(question.name in done for question in group)) for depth, group in groups.items()]
    examples = {str(depth): group[0].prompt for depth, group in groups.items()}
    names = ["functions in the chain", "questions", "answered"]
    if as_json:
        document = {"questions": len(plan.questions), "answered": len(done), "examples": examples}
        document |= {"pairs": {"asked": plan.pairs, "nestable": plan.nestable}, "possible_chains": plan.possible}
        depths_record = [dict(zip(("depth", "questions", "answered"), row, strict=True)) for row in counts]
        output.print_json(document | {"depths": depths_record, "notes": list(plan.notes)})
        return
    output.say(output.table("", names, [(str(depth), *row) for depth, *row in counts]))
    for depth, prompt in examples.items():
        output.say(f"Example of {depth}", "bold")
        output.say("\n".join(map(plain, prompt.splitlines())))
    for note in plan.notes:
        output.say_line(note, "dim")
    output.say(f"{plan.pairs} of {plan.nestable} pairs are asked; {plan.possible:,} chains are possible")
    output.say(f"{len(plan.questions) - len(done)} of {len(plan.questions)} questions would be asked", "bold")
