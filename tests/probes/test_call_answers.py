"""Scores of called functions: known answers have known scores, and the table is one that `recombine audit` reads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from recombine.audit import audit_table
from recombine.calling.listed import placeholders
from recombine.errors import BadInput
from recombine.families import FunctionCalls
from recombine.families.sequences.function_calls import FunctionCallsTeacher, Written
from recombine.language.vocabulary import SPECIAL
from recombine.overrides import validate
from recombine.probes import CallAnswers
from recombine.probes.routes import call_answers
from recombine.probes.routes.call_answers import METRICS, exchanged, score_answer
from recombine.testing import check_probe
from recombine.training import RunConfig, Setting
from recombine.training.program import draw_examples

SMALL = {"programs": 40, "tests": 8, "functions": 14, "held_out_functions": 2, "held_out_pairs": 8}
RUN = validate(
    RunConfig,
    {"family": {"kind": "function-calls", **SMALL}, "model": {"kind": "decoder", "width": 8, "heads": 1, "layers": 1}},
)


@pytest.fixture(scope="module")
def setting() -> Setting:
    return Setting(RUN)


def parts(setting: Setting) -> tuple[FunctionCalls, Written]:
    family, teacher = setting.config.family, setting.teacher
    assert isinstance(family, FunctionCalls) and isinstance(teacher, FunctionCallsTeacher)
    return family, family.written(np.asarray(teacher.bits))


def test_conformance() -> None:
    check_probe(CallAnswers(trained=8), RUN)


def test_known_answers_have_known_scores(setting: Setting) -> None:
    family, written = parts(setting)
    words = family.vocabulary
    number, program = next(
        (number, program)
        for number, (_, program) in enumerate(written.test_programs)
        if program.form == "nested" and program.depth == 2 and len(program.functions) == 2
        and all(len(written.library[name].parameters) == 1 for name in program.functions)
    )  # fmt: skip
    example = written.tests[number]
    outer, _, parameter, _, inner, _, key, _, value, *_ = example.answer

    def scored(text: str) -> dict[str, Any]:
        answer = np.array(words.numbers(text.split()))
        prompt = np.array(words.numbers(example.prompt))
        return dataclasses.asdict(score_answer(family, written.library, example, program, prompt, answer))

    right = f"{outer} ( {parameter} = {inner} ( {key} = {value} ) )"
    best = dict.fromkeys(METRICS, 1.0) | {"hallucinated": 0.0}
    assert " ".join(example.answer) == right and scored(right) == best
    # The same calls one after the other are the same program.
    assert scored(f"r1 = {inner} ( {key} = {value} ) ; r2 = {outer} ( {parameter} = r1 )") == best
    # Only the inner call: one of two names, one of two arguments, in order as far as it goes.
    found = scored(f"{inner} ( {key} = {value} )")
    assert found["whole"] == 0 and found["names"] == found["arguments"] == pytest.approx(2 / 3)
    assert found["order"] == 0.5 and found["hallucinated"] == 0
    # A name that the prompt does not list, though it is a name.
    invented = placeholders(family.names)[family.candidates]
    found = scored(f"{invented} ( {parameter} = {inner} ( {key} = {value} ) )")
    assert (found["whole"], found["names"], found["hallucinated"], found["executed"]) == (0, 0.5, 0.5, 0)
    # No call at all.
    assert scored("the result is 3") == dict.fromkeys(METRICS, 0.0)


def test_exchanged_names() -> None:
    names, candidates = 6, 3
    code = jnp.array([20.0, SPECIAL + 4, 30, SPECIAL, 31, SPECIAL + 2, 32, 0, 0])
    wanted = [20.0, SPECIAL, 30, SPECIAL + 2, 31, SPECIAL + 4, 32, 0, 0]
    assert exchanged(code, names, candidates).tolist() == wanted
    # A name that stands behind the list is left alone.
    assert exchanged(code.at[7].set(SPECIAL), names, candidates).tolist() == [*wanted[:7], SPECIAL, 0]


@dataclasses.dataclass(frozen=True)
class Oracle:
    """Answers everything right, but programs whose row says that names are exchanged, and those with an odd number."""

    objective: Any
    names: int
    candidates: int

    def __call__(self, network, teacher, encoder, row, key):
        _, code, batch = draw_examples(teacher, encoder, row[:1], key, 1)
        answer = jnp.where((row[1] == 0) & (row[0] % 2 == 0), batch.targets[0], 0)
        return {"prompt": code, "answer": answer}


@pytest.fixture(scope="module")
def table(setting: Setting) -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_answers, "CallTask", Oracle)
        measured = CallAnswers(trained=40).measure(setting, setting.network())
    summary = measured.summary
    assert summary["ast_renamed"] == 0
    for split in ("seen", "function", "pair", "depth"):
        assert summary[f"ast_{split}"] == summary[f"executed_{split}"] == summary[f"name_f1_{split}"] == 0.5
    return pd.DataFrame(measured.columns)


def test_the_table_says_what_training_nests(setting: Setting, table: pd.DataFrame) -> None:
    _, written = parts(setting)
    counts = table.groupby("split")["trained"]
    assert counts.min()["seen"] > 0 and counts.min()["depth"] > 0 and counts.min()["trained"] > 0
    assert counts.max()["pair"] == counts.max()["function"] == 0
    assert set(table.loc[table["trained"] == 0, "coverage"]) == {"never nested"}
    depth = table[table["split"] == "depth"].groupby("program")
    assert (depth["depth"].first() == 3).all() and (depth.size() <= 2).all()
    # Every pair that training nests has a row, so the table is a certificate.
    nested = {pair for program in written.split.train for pair in program.pairs}
    assert len(table.loc[table["trained"] > 0, ["outer", "inner"]].drop_duplicates()) == len(nested)
    descriptions = {function.description for function in written.library.values()}
    assert len(descriptions) == len(written.library)
    plain = {text.replace("{", "").replace("}", "") for text in descriptions}
    assert set(table["outer"]) | set(table["inner"]) <= plain


def test_recombine_audit_reads_the_table(
    table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from recombine.cli.main import app

    nested = table["coverage"] == "nested"
    path = tmp_path / "answers.csv"
    table.to_csv(path, index=False)
    command = ["audit", str(path), "--factors", "outer,inner", "--score", "ast", "--split", "coverage=nested"]
    with pytest.raises(SystemExit) as ended:
        app([*command, "--quick", "--json"])
    assert ended.value.code in (0, None)
    found = json.loads(capsys.readouterr().out)
    pairs = table[["outer", "inner"]].drop_duplicates()
    assert found["combinations"] == len(pairs)
    audit = audit_table(
        table, factors=["outer", "inner"], scores="ast", train=table[nested][["outer", "inner"]], quick=True
    )
    strata = {stratum.name: stratum.combinations for stratum in audit.scores[0].gap.strata}
    assert sum(strata.values()) == len(pairs)


def test_other_families_are_refused() -> None:
    setting = Setting(validate(RunConfig, {"model": {"kind": "mlp", "width": 8, "depth": 1}}))
    with pytest.raises(BadInput, match="call-answers measures calls of functions"):
        CallAnswers().measure(setting, setting.network())
