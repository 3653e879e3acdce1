"""`recombine audit LOG --template ...`."""

from __future__ import annotations

from pathlib import Path

RECORDED = Path(__file__).parent.parent / "audit" / "logs" / "recorded"
SCENES = "a {colour} {object} on a {place}"


def test_a_log_with_a_template(cli):
    """The fields of the template are the factors, and the only score of the log is the score."""
    answer = cli("audit", RECORDED / "wandb_answers.table.json", "--template", "a {colour} {object}")
    assert answer.code == 0, answer.err
    assert "12 rows, 6 of 6 combinations (3 colour x 2 object)" in answer.out and "success  0.83" in answer.out


def test_a_function_of_the_prompt_and_a_log_as_training_table(cli):
    Path("words.py").write_text("def split(prompt):\n    return dict(zip(('colour', 'object'), prompt.split()[1:3]))\n")
    Path("train.csv").write_text("prompt\na red ball\na blue cup\n")
    mlflow = RECORDED / "mlflow_answers.json"
    answer = cli("audit", mlflow, "--parse", "words:split", "--score", "correct", "--train", "train.csv", "--json")
    assert answer.code == 0, answer.err
    assert answer.document["factors"] == {"colour": 3, "object": 2} and answer.document["support"]["size"] == 2


def test_what_is_wrong_is_said(cli):
    log = RECORDED / "inspect.eval"
    for arguments, words in (
        ([log], ["No factor is named", "metadata.colour", "--template"]),
        ([log, "--template", SCENES], ["several scores: exact, checks.object, checks.all", "--score exact"]),
        (
            [log, "--template", "the {a}", "--score", "exact"],
            ["None of the 24 prompts", "such as 'a red ball on a table'"],
        ),
        ([log, "--template", SCENES, "--parse", "a:b", "--score", "exact"], ["cannot be imported"]),
        ([log, "--template", SCENES, "--score", "exact", "--coverage-graph"], ["belongs to the audit of scores"]),
        ([log, "--template", SCENES, "--coverage-graph"], ["takes tables, not prompts"]),
        ([log, "--prompt", "x", "--score", "exact"], ["nothing is applied"]),
        (["none.eval", "--template", SCENES], ["no file 'none.eval'"]),
    ):
        answer = cli("audit", *arguments)
        assert answer.code == 2, answer.out
        for word in words:
            assert word in " ".join(answer.err.split()), answer.err
