"""`audit-llm tools`: a stub that nests wrongly for one pair of functions, and answers of all other kinds."""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib.util
import io
import itertools
import json
import re
from pathlib import Path

import pytest

from recombine.audit.tools.questions import make_questions
from recombine.calling import make_library, read_tools
from recombine.endpoints import chat

STUB = Path(__file__).with_name("tool_stub.py")
spec = importlib.util.spec_from_file_location("tool_stub", STUB)
tool_stub = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool_stub)

PAGE = Path(__file__).parents[2] / "docs" / "audit-llm.md"
BROKEN = ("send_mail", "weather")
FAST = {**chat.ChatEndpoint.__init__.__kwdefaults__, "first_wait": 0.001}


@pytest.fixture
def cli(tmp_path, monkeypatch):
    from recombine.cli.main import _guarded

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chat.ChatEndpoint.__init__, "__kwdefaults__", FAST)
    functions = tool_stub.tools_document()
    (tmp_path / "tools.json").write_text(json.dumps(functions))
    (tmp_path / "few.json").write_text(json.dumps(functions[:3]))

    def call(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _guarded(["audit-llm", "tools", "--out", "out", *(str(argument) for argument in arguments)])
        return code, out.getvalue(), err.getvalue()

    return call


@pytest.fixture
def asked(cli, server, tmp_path):
    return lambda *more: cli("--tools", "few.json", "--endpoint", server.url, "--model", "stub", *more)


def planned(tmp_path, tools="few.json", **kinds):
    return make_questions(read_tools(tmp_path / tools), **kinds).questions


@pytest.mark.parametrize("notation", ["native", "text"])
def test_the_broken_pair_is_named(cli, server, reply, tmp_path, monkeypatch, notation):
    tools, pair = ("tools.json", BROKEN) if notation == "native" else ("few.json", ("weather", "translate"))
    asked = functools.partial(cli, "--tools", tools, "--endpoint", server.url, "--model", "stub")
    questions = planned(tmp_path, tools, notation=notation)
    server.say = tool_stub.stub_model(questions, {pair}, reply=reply, server=server)
    code, out, err = asked("--calls", notation, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["answered"] == len(questions) and document["failing"] == [list(pair)]
    found = document["findings"]["pairs"][0]
    assert (found["outer"], found["inner"], found["nested"], found["reason"]) == (*pair, 0, "combination")
    assert found["asked"] >= 2 and (notation == "text" or found["q"] < 0.01)
    wrong = [question for question in questions if pair in itertools.pairwise(question.functions)]
    assert document["findings"]["outcomes"] == {"right": len(questions) - len(wrong), "not nested": len(wrong)}
    assert all(each["alone"] == 1 for each in document["findings"]["functions"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert (
        f"1 of {25 if notation == 'native' else 9} pairs does not nest" in page and "because of the combination" in page
    )
    with open(document["files"]["nestings"]) as file:
        assert {row["nested"] for row in csv.DictReader(file) if (row["outer"], row["inner"]) == pair} == {"0"}
    # What to train on: the pair, with values that were not asked, and right by the same rules.
    examples = [json.loads(line) for line in Path(document["files"]["examples"]).read_text().splitlines()]
    prompts = {question.prompt for question in questions}
    assert examples and not any(example["messages"][0]["content"] in prompts for example in examples)
    assert all("`weather`" in example["messages"][0]["content"] for example in examples)
    if notation == "native":
        monkeypatch.setenv("COLUMNS", "100")
        _, shown, _ = asked()
        block = PAGE.read_text().partition("stub: 70 questions")[2].partition("```")[0]
        assert [" ".join(line.split()) for line in f"stub: 70 questions{block}".strip().splitlines()] == [
            " ".join(line.split()) for line in shown.strip().replace("out/", "audit/").splitlines()
        ]
    # Again: nothing is asked, and all is as it was.
    before = len(server.asked)
    code, out, _ = asked("--calls", notation, "--json")
    assert code == 0 and len(server.asked) == before and json.loads(out) == document


def test_only_missing_questions_are_asked_again_and_training_data_is_read(asked, server, reply, tmp_path):
    questions = planned(tmp_path, depth=2, values=1)
    right = tool_stub.stub_model(questions, {("weather", "translate")}, reply=reply, server=server)
    server.say = lambda number, prompt: reply(status=400) if prompt == questions[3].prompt else right(number, prompt)
    code, _, err = asked("--depth", 2, "--values", 1)
    assert code == 1 and f"1 of {len(questions)} items have no answer" in err
    before, server.say = len(server.asked), right
    data = tmp_path / "train.jsonl"
    call = {"name": "translate", "arguments": {"text": {"name": "weather", "arguments": {"city": "a", "days": 1}}}}
    data.write_text(json.dumps({"messages": [{"role": "assistant", "content": json.dumps(call)}]}) + "\n")
    code, out, err = asked("--depth", 2, "--values", 1, "--train", data, "--json")
    assert code == 0, err
    assert len(server.asked) == before + questions[3].depth
    document = json.loads(out)
    counts = {(pair["outer"], pair["inner"]): pair["trained"] for pair in document["findings"]["pairs"]}
    assert counts["translate", "weather"] == 1 and counts["weather", "translate"] == 0 and sum(counts.values()) == 1
    assert "Of the 1 failing pair, 1 do not nest" in document["findings"]["advice"][-1]


def test_prose_garbage_and_invented_functions_are_counted(asked, server, reply, tmp_path):
    questions = planned(tmp_path, depth=2, values=1)
    native = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{oops"}}
    invented = {"id": "a", "type": "function", "function": {"name": "fly", "arguments": "{}"}}
    odd = {
        questions[0].prompt: {"content": "I \x1b[31mcannot <b>do</b> that."},
        questions[1].prompt: {"content": None, "tool_calls": [native]},
        questions[2].prompt: {"content": None, "tool_calls": [invented]},
        questions[3].prompt: {"content": json.dumps(questions[3].call.record())},
    }
    right = tool_stub.stub_model(questions, reply=reply, server=server)

    def say(number, prompt):
        if prompt in odd:
            return reply(body=json.dumps({"choices": [{"message": odd[prompt]}]}).encode())
        return right(number, prompt)

    server.say = say
    code, out, err = asked("--depth", 2, "--values", 1, "--json")
    assert code == 0, err
    findings = json.loads(out)["findings"]
    wrong = {"prose": 1, "unreadable": 1, "hallucinated function": 1}
    assert findings["outcomes"] == {"right": len(questions) - 3, **wrong}
    assert any(f"1 of {len(questions)} answers have calls as text" in note for note in findings["notes"])
    assert findings["as_text"] == 1 and findings["scores"]["hallucinated"] == pytest.approx(1 / len(questions))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<b>do" not in page and "\x1b" not in page
    code, out, _ = asked("--depth", 2, "--values", 1)
    assert code == 0 and "prose" in out and "\x1b" not in out


def test_a_wrong_part_is_not_blamed_on_a_combination(asked, server, reply, tmp_path):
    questions = planned(tmp_path, depth=2)
    broken = {("translate", one["name"]) for one in tool_stub.TOOLS[:3]}
    server.say = tool_stub.stub_model(questions, broken, reply=reply, server=server)
    code, out, _ = asked("--depth", 2, "--json")
    findings = json.loads(out)["findings"]
    failing = {(pair["outer"], pair["inner"]): pair["reason"] for pair in findings["pairs"] if pair["fails"]}
    assert code == 0 and failing == dict.fromkeys(broken, "outer function")
    assert "other functions inside: translate" in findings["advice"][0]


def test_a_dry_run_asks_nothing(asked, server, tmp_path):
    code, out, _ = asked("--dry-run")
    assert code == 0 and "questions would be asked" in out and "Call `" in out
    code, out, _ = asked("--dry-run", "--json")
    document = json.loads(out)
    assert code == 0 and document["pairs"] == {"asked": 9, "nestable": 9} and document["possible_chains"] == 39
    assert document["questions"] < 2 * document["possible_chains"]
    assert not server.asked and not (tmp_path / "out").exists()


def test_the_key_is_sent_and_in_no_file(asked, server, reply, monkeypatch, tmp_path):
    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("RECOMBINE_LLM_KEY", key)
    function = {"name": "weather", "arguments": json.dumps({"city": f"key {key}"})}
    echo = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    server.say = lambda number, prompt: reply(body=json.dumps({"choices": [{"message": echo}]}).encode())
    code, out, err = asked("--depth", 2, "--values", 1, "--json")
    assert code == 0 and key not in out + err
    assert {auth for _, auth, _ in server.asked} == {f"Bearer {key}"}
    assert not any(key.encode() in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_other_settings_are_refused(asked, server, reply, tmp_path):
    server.say = lambda number, prompt: reply("no")
    assert asked("--depth", 2, "--values", 1)[0] == 0
    for more in (("--wording", "descriptions"), ("--calls", "text"), ("--seed", 1)):
        code, _, err = asked("--depth", 2, "--values", 1, *more)
        assert code == 2 and "other settings" in err
    before = len(server.asked)
    assert asked("--depth", 2, "--values", 2)[0] == 0, "more questions are no other settings"
    assert len(server.asked) == 2 * before


LOOP = {"$ref": "#/$defs/a"}


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("{oops", "is not JSON"),
        ("[]", "There are no functions"),
        ("3", "expected a list of functions"),
        ([{"description": "x"}], "has no name"),
        ([{"name": "f"}, {"name": "f"}], "Two functions are called 'f'"),
        ([{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "dict"}}}}], "'dict' is no type"),
        ([{"name": "f", "parameters": {"type": "object", "properties": {"x": {"enum": 3}}}}], "is not JSON Schema"),
        ([{"name": "f", "parameters": {"type": "object", "properties": 3}}], "is not JSON Schema"),
        ([{"name": "f", "parameters": {"type": "string"}}], "must be an object"),
        ([{"name": "f", "parameters": {"type": "object", "required": ["x"]}}], "has no schema"),
        (
            [
                {
                    "name": "f",
                    "parameters": {
                        "type": "object",
                        "properties": {"x": LOOP},
                        "$defs": {"a": {"type": "array", "items": LOOP}},
                    },
                }
            ],
            "leads back to itself",
        ),
        ([{"name": "f", "parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/b"}}}}], "leads nowhere"),
        ([{"name": "f", "parameters": {"properties": {"x": {"$ref": "http://host/x"}}}}], "another document"),
        (
            [
                {"name": one, "parameters": {"properties": {"x": {"default": {"name": other, "arguments": {}}}}}}
                for one, other in (("f", "g"), ("g", "f"))
            ],
            "A default depends on itself: f -> g -> f",
        ),
        ([{"name": "f", "parameters": {"properties": {"x": {"type": "string", "pattern": "^Z9$"}}, "required": ["x"]}}], "No value was found"),
    ],
)  # fmt: skip
def test_bad_functions(cli, tmp_path, tools, said):
    (tmp_path / "bad.json").write_text(tools if isinstance(tools, str) else json.dumps(tools))
    code, _, err = cli("--tools", "bad.json", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m")
    assert code == 2 and said in err and "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--depth", 0), "The depth must be"),
        (("--values", 0), "At least one question"),
        (("--questions", 1), "fewer than"),
        (("--train", "no.jsonl"), "cannot be read"),
        (("--calls", "prose"), "prose"),
        (("--tools", "no.json"), "There is no file"),
    ],
)
def test_bad_options(cli, tmp_path, more, said):
    given = () if more[0] == "--tools" else ("--tools", "tools.json")
    code, _, err = cli(*given, "--endpoint", "http://127.0.0.1:9/v1", "--model", "m", *more)
    assert code == 2 and said in err and "Traceback" not in err


def test_a_function_answers_in_text(cli, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_calling_model.py").write_text("def model(prompt):\n    return 'I would rather not.'\n")
    arguments = ("--tools", "tools.json", "--function", "my_calling_model:model", "--questions", "6")
    code, out, err = cli(*arguments, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["findings"]["outcomes"] == {"prose": document["answered"]} and document["answered"] <= 6
    assert any("contain no call" in note for note in document["notes"])
    code, _, err = cli(*arguments, "--calls", "native")
    assert code == 2 and "A function answers in text" in err


def test_results_with_a_type_go_only_where_they_fit():
    number = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    text = {"type": "object", "properties": {"t": {"type": "string"}}, "required": ["t"]}
    library = make_library(
        [
            {"name": "count", "parameters": text, "returns": {"type": "integer"}},
            {"name": "double", "parameters": number, "returns": {"type": "number"}},
            {"name": "spell", "parameters": number, "returns": {"type": "string"}},
        ]
    )
    plan = make_questions(library, values=1)
    chains = {question.functions for question in plan.questions}
    pairs = {pair for chain in chains for pair in itertools.pairwise(chain)}
    fits = {("count", "spell"), ("double", "count"), ("double", "double"), ("spell", "count"), ("spell", "double")}
    assert pairs == fits and plan.pairs == plan.nestable == 5
    assert {(name,) for name in library} <= chains
    few = make_questions(library, values=1, questions=2)
    assert len(few.questions) == 2 and any("are not asked" in note for note in few.notes)


def test_the_python_of_the_page_runs(cli, server, reply, tmp_path, capsys):
    page = PAGE.read_text()
    schemas = re.search(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "tools.json").write_text(schemas[1])
    questions = planned(tmp_path, "tools.json")
    pair = "book_hotel", "find_city"
    server.say = tool_stub.stub_model(questions, {pair}, reply=reply, server=server)
    exec(compile(block.replace("http://localhost:8000/v1", server.url), "audit-llm.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["book_hotel find_city combination 0 of 4"]


def test_descriptions_that_do_not_tell_functions_apart():
    library = make_library([{"name": name, "description": text} for name, text in (("a", "x"), ("b", "x"), ("c", ""))])
    plan = make_questions(library, wording="descriptions", values=1)
    assert {question.functions for question in plan.questions} == {("a",), ("b",), ("c",)}
    assert any("1 of 3 functions have no description" in note for note in plan.notes)
    assert any("partly luck: a, b" in note for note in plan.notes)
    assert any("nothing is nested" in note for note in plan.notes)
    assert "Call `c` without arguments" in next(one.prompt for one in plan.questions if one.functions == ("c",))
    assert (
        "Do the following: x without arguments"
        in plan.questions[0].prompt + plan.questions[1].prompt + plan.questions[2].prompt
    )
