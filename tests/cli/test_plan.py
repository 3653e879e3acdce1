"""`recombine plan`."""

from __future__ import annotations

import csv
import io
import itertools
import json
import subprocess
import sys

import pandas as pd
import pytest

FILE = """\
factors:
  colour: [red, blue, green]
  object: [dog, cat, "<b>cow</b>"]
  size: 2
forbid: [colour=red and object=dog]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "toys.yaml"
    path.write_text(FILE)
    return path


def pairs(combinations):
    return {pair for one in combinations for pair in itertools.combinations(enumerate(one), 2)}


def test_json_is_one_document(cli, file):
    answer = cli("plan", file, "--json")
    assert answer.code == 0 and answer.err == ""
    document = answer.document
    assert len(pairs(document["combinations"])) == 20
    assert document["interactions"] == {"covered": 20, "coverable": 20, "total": 21}
    assert document["certificate"]["before"] is None
    assert document["certificate"]["after"]["complete"] and document["certificate"]["after"]["unseen_names"] == []
    assert document["cost"] == len(document["combinations"]) == len(document["costs"])
    assert document["factors"] == ["colour", "object", "size"]


def test_levels_and_subsets_in_short(cli):
    document = cli("plan", "--levels", "3^4", "--json").document
    assert len(pairs(document["combinations"])) == 54 and document["combinations"][0][0] in ("0", "1", "2")
    document = cli("plan", "--subsets", "8,3", "--budget", "6", "--json").document
    assert len(document["combinations"]) == 6 and all(len(set(one)) == 3 for one in document["combinations"])
    assert all(isinstance(part, int) for one in document["combinations"] for part in one)


def test_standard_output_is_csv_where_it_is_no_terminal(cli, file):
    answer = cli("plan", file, "--strength", "2")
    rows = list(csv.reader(io.StringIO(answer.out)))
    assert rows[0] == ["colour", "object", "size"]
    assert len(pairs(rows[1:])) == 20
    assert "pairs covered" in answer.err and "rule out 1 of 21 pairs" in answer.err, "the words go beside it"


def test_a_plan_is_written_and_goes_on_from(cli, file, tmp_path):
    first = cli("plan", file, "--budget", "3", "-o", "first.csv")
    assert first.code == 0 and "collect 3 combinations" in first.out and "before" in first.out
    assert len(pd.read_csv("first.csv")) == 3
    rest = cli("plan", file, "--collected", "first.csv", "--strength", "2", "--json").document
    assert rest["certificate"]["before"]["size"] == 3
    both = [*pd.read_csv("first.csv", dtype=str).to_numpy().tolist(), *rest["combinations"]]
    assert len(pairs(both)) == 20


def test_the_command_line_adds_to_the_file(cli, file):
    asked = ["--forbid", "size=0 and object=cat", "--require", "if colour=blue then size=1"]
    document = cli("plan", file, *asked, "--json").document
    assert document["combinations"]
    for colour, thing, size in document["combinations"]:
        assert not (colour == "red" and thing == "dog") and not (size == "0" and thing == "cat")
        assert colour != "blue" or size == "1"


def test_changes_cost(cli):
    asked = ["plan", "--levels", "3^4", "--cost", "changes", "--json"]
    walked = cli(*asked).document
    assert walked["interactions"]["covered"] == 54
    steps = zip(walked["combinations"], walked["combinations"][1:], strict=False)
    assert walked["costs"] == [4, *(sum(a != b for a, b in zip(*step, strict=True)) for step in steps)]
    stair = cli(*asked, "--strategy", "stair").document
    assert stair["cost"] == 12 and "of 54 pairs are covered" in stair["notes"][0]


def test_a_budget_that_is_too_small_is_said(cli):
    answer = cli("plan", "--levels", "3^4", "--budget", "4", "--strength", "2")
    assert answer.code == 0 and "too small for full coverage" in answer.err


def test_a_forecast(cli, tmp_path):
    numbers = [4, 8, 16, 32, 64]
    pd.DataFrame({"number": numbers, "score": [1 - number**-0.7 for number in numbers]}).to_csv("s.csv", index=False)
    document = cli("plan", "--levels", "3^4", "--budget", "40", "--scores", "s.csv", "--json").document
    assert [one["number"] for one in document["forecast"]["expected"]] == [10, 20, 30, 40]
    assert document["forecast"]["expected"][-1]["score"] == pytest.approx(1 - 40**-0.7, abs=0.02)
    assert "expected score" in cli("plan", "--levels", "3^4", "--budget", "40", "--scores", "s.csv").err


BAD = [
    ("plan", "No space to plan for"),
    ("plan --levels 3^4 --subsets 4,2", "more than once"),
    ("plan toy.yaml", "did you mean 'toys.yaml'"),
    ("plan --levels 3^", "3^13"),
    ("plan toys.yaml --forbid colr=red", "did you mean 'colour'"),
    ("plan toys.yaml --strategy stairs", "did you mean 'stair'"),
    ("plan toys.yaml --cost change", "did you mean 'changes'"),
    ("plan toys.yaml --collected no.csv", "no file 'no.csv'"),
    ("plan toys.yaml --strength 4", "choose a strength of 1 to 3"),
    ("plan toys.yaml --budget -3", "at least 0"),
    ("plan toys.yaml -o plan.txt", "not the name of a table"),
    ("plan toys.yaml --scores no.csv", "no file 'no.csv'"),
    ("plan toys.yaml --forbid colour=blue --forbid colour!=blue", "constraint"),
]


@pytest.mark.parametrize(("line", "says"), BAD)
def test_bad_input(cli, file, line, says):
    answer = cli(*line.split())
    assert answer.code == 2 and answer.out == "" and says in answer.err, answer.err
    told = cli(*line.split(), "--json")
    assert told.code == 2 and told.document["exit_code"] == 2


def test_names_do_not_act_on_a_terminal(cli, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text('[factors]\n"a\\u001b[31m" = ["[red]x[/red]", "\\u0007", "\\u202e"]\nb = 2\n', encoding="utf-8")
    answer = cli("plan", path, "-o", "plan.csv")
    assert answer.code == 0
    assert not set("\x1b\x07\u202e") & set(answer.out + answer.err)
    assert "[red]x[/red]" in answer.out and "\\x1b" in answer.out
    assert "\x07" in pd.read_csv("plan.csv").iloc[:, 0].tolist(), "the table has them as they are"


def test_many_factors_fit_a_terminal(cli):
    answer = cli("plan", "--levels", "2^40", "-o", "plan.csv")
    assert max(map(len, answer.out.splitlines())) <= 80


def test_help_is_quick_to_load():
    code = "import sys; from recombine.cli.main import app; app(['plan', '--help'], result_action='return_value'); sys.exit('jax' in sys.modules or 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "--strength" in done.stdout


AT_FIRST_ROW = """
import sys

class Out:
    def __init__(self, stream):
        self.stream = stream
    def write(self, text):
        return self.stream.write(text)
    def flush(self):
        self.loaded = getattr(self, "loaded", None) or set(sys.modules)
        self.stream.flush()
    def isatty(self):
        return False

out = sys.stdout = Out(sys.stdout)
from recombine.cli.main import app
app(["plan", sys.argv[1]], result_action="return_value")
sys.stderr.write("heavy: " + " ".join({"jax", "equinox", "scipy", "rich", "pandas"} & out.loaded) + "|")
sys.stderr.write(" ".join({"jax", "rich"} & set(sys.modules)))
"""


def test_the_rows_are_written_before_anything_heavy_loads(tmp_path):
    path = tmp_path / "model.pict"
    path.write_text(
        'size: small, large\nplace: table, shelf\nsort: a, b\nIF [size] = "large" THEN [place] <> "shelf";\n'
    )
    done = subprocess.run([sys.executable, "-c", AT_FIRST_ROW, str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) > 4, done.stderr
    words, _, told = done.stderr.partition("heavy: ")
    before, after = told.split("|")
    assert before == "" and set(after.split()) == {"jax", "rich"}, (
        "the certificate needs them, and comes after the rows"
    )
    assert "pairs covered" in words


def test_what_plan_writes_can_be_given_back(cli):
    with open("done.json", "w") as file:
        json.dump(cli("plan", "--subsets", "6,2", "--json").document, file)
    again = cli("plan", "--subsets", "6,2", "--collected", "done.json", "--strength", "2", "--json").document
    assert again["combinations"] == [] and "nothing needs to be collected" in again["notes"][0]


def test_errors_do_not_act_on_a_terminal_either(cli, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text('forbid = ["b=0", "b=1"]\n[factors]\n"a\\u001b[31m" = ["\\u0007"]\nb = 2\n', encoding="utf-8")
    answer = cli("plan", path)
    assert answer.code == 2 and not set("\x1b\x07") & set(answer.err)
