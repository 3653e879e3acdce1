"""The command: a stub with a known bias, one without, and endpoints in all the ways in which they fail."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from recombine.endpoints import chat
from recombine.language.items import make_items

SMALL = ("--items", "3", "--tasks", "decode,encode")
MANY = ("--items", "40", "--tasks", "decode,encode,reversal", "--at-once", "8")


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Calls the command in an empty folder; waits are short."""
    from recombine.cli.main import _guarded

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chat.ChatEndpoint.__init__, "__kwdefaults__", FAST)

    def call(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _guarded(["audit-llm", "embers", *(str(argument) for argument in arguments)])
        return code, out.getvalue(), err.getvalue()

    return call


FAST = {**chat.ChatEndpoint.__init__.__kwdefaults__, "first_wait": 0.001}


@pytest.fixture
def asked(cli, server, tmp_path):
    """Asks the stub."""
    return lambda *more: cli("--endpoint", server.url, "--model", "stub", "--out", tmp_path / "out", *more)


def items_of(arguments):
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    return make_items(int(given["--items"]), tasks=given["--tasks"].split(","))


def verdicts(document):
    return {one["claim"]: one["verdict"] for one in document["findings"]["verdicts"]}


def test_a_known_bias_is_found(asked, server, biased, tmp_path):
    server.say = biased(items_of(MANY), level=0.0, common=1.2, output=1.0)
    code, out, err = asked(*MANY, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["asked"] == document["answered"] == len(server.asked) == 600
    assert set(verdicts(document).values()) == {"supported"}
    weights = {one["name"]: one["weight"] for one in document["findings"]["weights"]}
    for name, true in (("common variant", 1.2), ("output log-probability", 1.0)):
        assert weights[name]["low"] < true < weights[name]["high"]
        assert weights[name]["estimate"] == pytest.approx(true, rel=0.35)
    assert weights["input log-probability"]["low"] < 0 < weights["input log-probability"]["high"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "supported" in page and "output log-probability" in page
    with open(document["files"]["answers"]) as file:
        assert len(list(csv.DictReader(file))) == 600
    # Again: nothing is asked, and all is as it was.
    code, out, _ = asked(*MANY, "--json")
    assert code == 0 and len(server.asked) == 600 and json.loads(out) == document


def test_no_bias_is_not_found(asked, server, biased):
    server.say = biased(items_of(MANY), level=0.3, common=0.0, output=0.0)
    code, out, _ = asked(*MANY, "--json")
    assert code == 0
    assert not {"supported", "contradicted"} & set(verdicts(json.loads(out)).values())


def test_tables_for_people(asked, server, biased):
    server.say = biased(items_of(SMALL), level=0.5, common=1.0, output=1.0)
    code, out, _ = asked(*SMALL)
    assert code == 0
    assert "stub: 36 items, 36 answered" in out and "decode" in out and "rare" in out
    assert "Verdicts" in out and "output log-probability" in out and "written: " in out


def test_a_dry_run_asks_nothing_and_writes_nothing(asked, server, tmp_path):
    code, out, _ = asked(*SMALL, "--dry-run")
    assert code == 0 and "36 of 36 questions would be asked" in out and "rot-13" in out
    code, out, _ = asked(*SMALL, "--dry-run", "--json")
    document = json.loads(out)
    assert code == 0 and document["items"] == 36 and document["answered"] == 0
    assert not server.asked and not (tmp_path / "out").exists()


def test_a_server_that_is_down(cli, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    arguments = ("--endpoint", url, "--model", "stub", "--out", tmp_path / "out", *SMALL)
    code, out, err = cli(*arguments, "--json")
    assert code == 1 and "36 of 36 items have no answer" in err and "refused" in err
    document = json.loads(out)
    assert document["findings"] is None and document["answered"] == 0
    code, out, err = cli(*arguments)
    assert code == 1 and "run the same command again" in err and "Traceback" not in err


def test_a_busy_server_is_waited_for(asked, server, reply):
    busy = set()

    def say(number, prompt):
        if prompt not in busy:
            busy.add(prompt)
            return reply(status=429, headers=(("Retry-After", "0.01"),))
        return reply("no")

    server.say = say
    code, out, _ = asked(*SMALL, "--json")
    assert code == 0 and json.loads(out)["answered"] == 36 and len(server.asked) == 72


def test_garbage_is_recorded_and_the_rest_goes_on(asked, server, reply, tmp_path):
    items = items_of(SMALL)
    odd = {items[0].prompt: reply(body=b"{oops"), items[1].prompt: reply(body=b"[]")}
    server.say = lambda number, prompt: odd.get(prompt, reply("\x1b[31m<b>no</b>"))
    code, out, err = asked(*SMALL, "--json")
    assert code == 1 and json.loads(out)["answered"] == 34 and "2 of 36 items have no answer" in err
    lines = (tmp_path / "out" / "answers.jsonl").read_text().splitlines()
    assert len(lines) == 36 and sum("not a chat completion" in line for line in lines) == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<b>no" not in page and "\x1b" not in page
    odd.clear()
    before = len(server.asked)
    code, out, _ = asked(*SMALL, "--json")
    assert code == 0 and len(server.asked) == before + 2 and json.loads(out)["answered"] == 36


def test_a_server_that_hangs(asked, server, reply, monkeypatch):
    monkeypatch.setattr(chat.ChatEndpoint.__init__, "__kwdefaults__", FAST | {"attempts": 1})
    server.say = lambda number, prompt: reply("late", delay=2.0)
    began = time.monotonic()
    code, _, err = asked(*SMALL, "--timeout", "0.05", "--at-once", "3")
    assert code == 1 and time.monotonic() - began < 10 and "in a row" in err


def test_the_key_reaches_the_endpoint_and_no_file(asked, server, reply, monkeypatch, tmp_path):
    key = "sk-very-secret-0123456789"
    monkeypatch.setenv("MY_ENDPOINT", key)
    items = items_of(SMALL)
    echoes = {items[0].prompt: reply(f"your key is {key}"), items[1].prompt: reply(status=400, reason=key)}
    server.say = lambda number, prompt: echoes.get(prompt, reply("no"))
    code, out, err = asked(*SMALL, "--key-variable", "MY_ENDPOINT", "--json")
    assert code == 1 and key not in out + err
    assert {auth for _, auth, _ in server.asked} == {f"Bearer {key}"}
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == 5
    assert not any(key.encode() in path.read_bytes() for path in files)


def test_other_settings_are_refused(asked, server, cli, tmp_path):
    assert asked(*SMALL)[0] == 0
    for more in (("--temperature", "1"), ("--seed", "1"), ("--shifts", "3,4")):
        code, _, err = asked(*SMALL, *more)
        assert code == 2 and "other settings" in err
    code, _, err = cli("--endpoint", server.url, "--model", "other", "--out", tmp_path / "out", *SMALL)
    assert code == 2 and "model 'stub' (now 'other')" in err
    # More items are no other settings.
    before = len(server.asked)
    assert asked("--items", "4", "--tasks", "decode,encode")[0] == 0
    assert len(server.asked) == before + 12


def test_what_is_sent(asked, server):
    asked("--items", "1", "--tasks", "counting")
    body = server.asked[0][2]
    assert body["model"] == "stub" and body["temperature"] == 0 and len(body["messages"]) == 1


def test_no_temperature_may_be_sent(asked, server):
    asked("--items", "1", "--tasks", "counting", "--temperature", "none")
    assert "temperature" not in server.asked[0][2]


def test_a_function(cli, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_cipher_model.py").write_text(
        "import codecs\n"
        "def model(prompt):\n"
        "    return codecs.encode(prompt.rpartition('\\n')[2], 'rot13') if 'rot-13 ' in prompt else 'no'\n"
    )
    arguments = ("--function", "my_cipher_model:model", "--out", tmp_path / "out", "--items", "5")
    code, out, err = cli(*arguments, "--tasks", "decode,encode", "--json")
    assert code == 0, err
    document = json.loads(out)
    shares = {
        (one["task"], one["variant"], one["level"]): one["right"]["estimate"] for one in document["findings"]["shares"]
    }
    assert shares["decode", "common", "all"] == 1 and shares["decode", "rare", "all"] == 0
    assert verdicts(document)["common-task"] == "supported"
    assert document["settings"]["model"] == "my_cipher_model:model"


def test_items_of_somebody_s_own(cli, server, tmp_path, reply):
    rows = ["task,variant,prompt,answer,input_logprob,output_logprob"]
    rows += [f"sum,{'common' if n % 2 else 'rare'},what is {n} + 1?,{n + 1},,{-n / 10}" for n in range(30)]
    (tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    server.say = lambda number, prompt: reply(str(int(prompt.split()[2]) + 1))
    where = ("--endpoint", server.url, "--model", "stub", "--out", tmp_path / "out")
    code, out, _ = cli(*where, "--items-from", tmp_path / "mine.csv", "--json")
    document = json.loads(out)
    assert code == 0 and document["findings"]["right"]["estimate"] == 1
    assert set(verdicts(document).values()) == {"inconclusive"}
    code, _, err = cli(*where, "--items-from", tmp_path / "mine.csv", "--items", "3")
    assert code == 2 and "give one of them" in err
    code, _, err = cli(*where, "--items-from", tmp_path / "mine.csv", "--tasks", "decode")
    assert code == 2 and "no items of the tasks decode" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--function", "a:b", "--temperature", "nan"), "A temperature is 0 or more"),
        (("--endpoint", "http://host/v1", "--model", "m", "--temperature", "inf"), "A temperature is"),
        (("--endpoint", "http://host/v1", "--model", "m", "--temperature", "-1"), "A temperature is"),
        (("--endpoint", "http://host/v1", "--model", "m", "--timeout", "inf"), "The timeout must be"),
        (("--endpoint", "http://host/v1", "--model", "m", "--items-from", "no.csv"), "There is no file no.csv"),
        ((), "Either an endpoint or a function"),
        (("--endpoint", "http://host/v1"), "needs the name of a model"),
        (("--endpoint", "host", "--model", "m"), "not a valid address"),
        (("--endpoint", "http://host/v1", "--model", "m", "--function", "a:b"), "Either an endpoint"),
        (("--function", "a:b", "--model", "m"), "--model names"),
        (("--function", "no_such_module:f"), "cannot be imported"),
        (("--endpoint", "http://host/v1", "--model", "m", "--tasks", "nothing"), "no task 'nothing'"),
        (("--endpoint", "http://host/v1", "--model", "m", "--items", "0"), "At least one"),
        (("--endpoint", "http://host/v1", "--model", "m", "--shifts", "a"), "two shifts"),
        (("--endpoint", "http://host/v1", "--model", "m", "--timeout", "0"), "The timeout must be"),
        (("--endpoint", "http://host/v1", "--model", "m", "--at-once", "0"), "At least one question"),
    ],
)
def test_bad_input(cli, tmp_path, arguments, said):
    code, _, err = cli("--out", tmp_path / "out", *arguments)
    assert code == 2 and said in err and "Traceback" not in err
    assert not (tmp_path / "out" / "answers.jsonl").exists()


def test_what_the_server_says_is_told_and_kept(asked, server, reply, tmp_path):
    body = b'{"error": {"message": "The model \\u001b[31mstub\\n does not exist"}}'
    server.say = lambda number, prompt: reply(status=404, body=body)
    code, out, err = asked(*SMALL, "--at-once", "1", "--json")
    said = r"HTTP 404 Not Found: The model \x1b[31mstub does not exist"
    assert code == 1 and len(server.asked) == 3 and "\x1b" not in err
    assert (
        f"36 of 36 items have no answer (33 of them were not asked, because none of the first 3 was answered): {said}."
        in err
    )
    assert err.count("have no answer") == 1 and "Errno" not in err
    assert json.loads(out)["answered"] == 0 and said in json.loads(out)["notes"][0]
    lines = (tmp_path / "out" / "answers.jsonl").read_text().splitlines()
    assert [json.loads(line)["error"] for line in lines] == [said] * 3
    server.say = lambda number, prompt: reply("no")
    code, out, _ = asked(*SMALL, "--json")
    assert code == 0 and json.loads(out)["answered"] == 36 and len(server.asked) == 3 + 36


@pytest.mark.parametrize("options", [(), ("--key-variable", "NO_SUCH_VARIABLE")])
def test_a_missing_key_is_named(asked, server, reply, monkeypatch, options):
    name = options[-1] if options else "RECOMBINE_LLM_KEY"
    monkeypatch.delenv(name, raising=False)
    server.say = lambda number, prompt: reply(status=401)
    code, _, err = asked(*SMALL, *options)
    assert code == 1 and f"fix: put the key into the environment: export {name}=" in err
    monkeypatch.setenv(name, "wrong-one")
    code, _, err = asked(*SMALL, *options)
    assert code == 1 and f"fix: check that the key in {name} is correct" in err


def test_empty_answers_are_told(asked, server, reply, tmp_path):
    items = items_of(SMALL)
    empty = {item.prompt: reply(text) for item, text in zip(items, ("", None, " \n"), strict=False)}
    server.say = lambda number, prompt: empty.get(prompt, reply("no"))
    code, out, _ = asked(*SMALL, "--json")
    document = json.loads(out)
    told = "3 of 36 answers are empty and count as wrong."
    assert code == 0 and document["empty"] == 3 and document["answered"] == 36
    assert document["notes"][0].startswith(told)
    assert told in asked(*SMALL)[1] and told in (tmp_path / "out" / "report.html").read_text()


NOISY = """
import sys
print("loading")
def model(prompt):
    print("thinking about", prompt[:10])
    sys.stdout.write("more")
    return "no"
def leaves(prompt):
    sys.exit("I \x1b[31mleave")
"""


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_a_function_prints_is_not_in_the_document(cli, tmp_path, monkeypatch, at_once):
    name = f"my_noisy_model_{at_once}"
    (tmp_path / f"{name}.py").write_text(NOISY)
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = ("--function", f"{name}:model", "--out", tmp_path / "out", *SMALL, "--at-once", at_once)
    code, out, err = cli(*arguments, "--json")
    assert code == 0 and json.loads(out)["answered"] == 36
    assert "loading" in err and err.count("thinking about") == 36


def test_a_function_that_ends_the_program_does_not_end_ours(cli, tmp_path, monkeypatch):
    (tmp_path / "my_leaving_model.py").write_text(NOISY)
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, err = cli("--function", "my_leaving_model:leaves", "--out", tmp_path / "out", *SMALL)
    assert code == 1 and r"SystemExit: I \x1b[31mleave" in err and "\x1b" not in out + err
    assert "none of the first 3 was answered" in err


@pytest.mark.parametrize(("width", "shown"), [(80, False), (140, True)])
def test_the_table_fits(asked, server, biased, monkeypatch, width, shown):
    server.say = biased(items_of(SMALL), level=0.5, common=1.0, output=1.0)
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = asked(*SMALL)
    rows = [line for line in out.splitlines() if line.startswith((" decode", " encode"))]
    assert code == 0 and len(rows) == 4 and max(len(row.rstrip()) for row in rows) <= width
    # All intervals, or only that of all levels together.
    assert [row.count("[") for row in rows] == [4 if shown else 1] * 4


def test_a_query_is_sent_and_no_secret_of_it_is_stored(cli, server, tmp_path):
    url = f"{server.url}?api-version=2024-02-01&code=hush-hush"
    where = ("--endpoint", url, "--model", "stub", "--out", tmp_path / "out", *SMALL)
    code, out, err = cli(*where, "--json")
    assert code == 0 and {path for path, _, _ in server.asked} == {
        "/v1/chat/completions?api-version=2024-02-01&code=hush-hush"
    }
    assert json.loads(out)["settings"]["endpoint"].endswith("/v1?api-version=2024-02-01&code=[hidden]")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any(b"hush" in path.read_bytes() for path in files) and "hush" not in out + err


def test_notes_on_items_of_somebody_s_own(cli, server, tmp_path):
    rows = ["task,variant,prompt,answer,output_logprob"]
    rows += [f"sum,rare,what is {n} + 1?,{n + 1},{-n / 10}" for n in (*range(12), 3, 3)]
    (tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    where = ("--endpoint", server.url, "--model", "stub", "--out", tmp_path / "out", "--items-from", "mine.csv")
    told = "2 items repeat others and are asked once"
    assert told in cli(*where, "--dry-run")[1]
    assert told in json.loads(cli(*where, "--dry-run", "--json")[1])["notes"][0]
    code, out, _ = cli(*where)
    assert code == 0 and told in out and "12 of 12 answers have no input log-probability" in out


# A test that runs in the background may have been told to ignore this signal, and its children with it.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from recombine.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_end_in_the_middle_loses_nothing(asked, server, reply, tmp_path, sent, code):
    server.say = lambda number, prompt: reply("no", delay=0.05 if number < 20 else 30.0)
    out = tmp_path / "out"
    arguments = ["audit-llm", "embers", "--endpoint", server.url, "--model", "stub", "--out", str(out), *SMALL]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while len(server.asked) < 20:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(sent)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "Traceback" not in err and (sent == signal.SIGKILL or "Answers are kept." in err)
    kept = (out / "answers.jsonl").read_text().splitlines()
    assert len(kept) >= 16
    before, server.say = len(server.asked), lambda number, prompt: reply("no")
    assert asked(*SMALL)[0] == 0
    assert len(server.asked) - before == 36 - len(kept)
