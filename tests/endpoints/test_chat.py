"""One question to an endpoint that may be down, slow, busy or odd."""

from __future__ import annotations

import email.utils
import socket
import time

import pytest

from recombine.endpoints.chat import ChatEndpoint, RequestFailed, Unavailable, address
from recombine.errors import BadInput

KEY = "RECOMBINE_TEST_KEY"
HELLO = [{"role": "user", "content": "hello"}]


def chat(server, **given):
    return ChatEndpoint(server.url, "seer", KEY, **{"first_wait": 0.001, **given})


def test_it_asks_and_says(server, reply, monkeypatch):
    monkeypatch.setenv(KEY, "secret-key")
    server.say = lambda number, prompt: reply(f"you said {prompt}")
    assert chat(server).ask(HELLO, temperature=0) == "you said hello"
    path, key, body = server.asked[0]
    assert path == "/v1/chat/completions" and key == "Bearer secret-key"
    assert body == {"model": "seer", "messages": HELLO, "temperature": 0}


def test_without_a_key_none_is_sent(server, monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    chat(server).ask(HELLO)
    assert server.asked[0][1] is None


def test_a_whole_address_is_taken_as_it_is(server):
    server.url += "/chat/completions"
    assert chat(server).ask(HELLO) == "yes" and server.asked[0][0] == "/v1/chat/completions"


def test_what_comes_in_pieces_or_not_at_all(server, reply):
    pieces = b'{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}, 3]}}]}'
    server.say = lambda number, prompt: reply(body=pieces) if number == 1 else reply(None)
    assert chat(server).ask(HELLO) == "ab"
    assert chat(server).ask(HELLO) == ""


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_it_waits_and_tries_again(server, reply, status):
    server.say = lambda number, prompt: reply(status=status) if number < 3 else reply("there")
    assert chat(server).ask(HELLO) == "there" and len(server.asked) == 3


def test_it_waits_as_long_as_it_is_asked_to(server, reply):
    server.say = lambda number, prompt: (
        reply(status=429, headers=(("Retry-After", "0.3"),)) if number == 1 else reply("there")
    )
    began = time.monotonic()
    assert chat(server).ask(HELLO) == "there"
    assert 0.3 <= time.monotonic() - began < 3


def test_a_wait_may_be_a_date(server, reply):
    soon = email.utils.formatdate(time.time() + 2, usegmt=True)
    server.say = lambda number, prompt: (
        reply(status=429, headers=(("Retry-After", soon),)) if number == 1 else reply("there")
    )
    began = time.monotonic()
    assert chat(server).ask(HELLO) == "there"
    assert 0.5 < time.monotonic() - began < 5


@pytest.mark.parametrize("odd", ["soon", "nan", "-3", "inf", "Thu, 99 Foo 2020", ""])
def test_odd_waits_are_passed_over(server, reply, odd):
    server.say = lambda number, prompt: (
        reply(status=429, headers=(("Retry-After", odd),)) if number == 1 else reply("there")
    )
    assert chat(server).ask(HELLO) == "there"


def test_a_wait_beyond_the_limit_is_not_waited(server, reply):
    server.say = lambda number, prompt: reply(status=429, headers=(("Retry-After", "3600"),))
    with pytest.raises(Unavailable, match="HTTP 429 Too Many Requests, and asks to wait for 3600 s"):
        chat(server).ask(HELLO)
    assert len(server.asked) == 1


def test_all_attempts_together_have_a_limit(server, reply):
    server.say = lambda number, prompt: reply(status=500)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="HTTP 500"):
        chat(server, first_wait=0.2, attempts=50, limit=0.5).ask(HELLO)
    assert time.monotonic() - began < 2 and len(server.asked) == 2


def test_one_that_hangs_is_silent(server, reply):
    server.say = lambda number, prompt: reply("late", delay=1.0)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"[Tt]ime"):
        chat(server, timeout=0.1, attempts=2).ask(HELLO)
    assert time.monotonic() - began < 0.9


def test_one_that_is_down_is_silent():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(Unavailable, match="refused"):
        ChatEndpoint(url, "seer", KEY, first_wait=0.001).ask(HELLO)


@pytest.mark.parametrize("status", [401, 403])
def test_a_shut_door_is_not_knocked_at_again(server, reply, status):
    server.say = lambda number, prompt: reply(status=status)
    with pytest.raises(Unavailable, match=f"HTTP {status}"):
        chat(server).ask(HELLO)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body", [b"<html>", b"{", b"[]", b'{"choices": []}', b'{"choices": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_garbage_is_no_answer(server, reply, body):
    server.say = lambda number, prompt: reply(body=body)
    with pytest.raises(RequestFailed, match="not a chat completion") as caught:
        chat(server).ask(HELLO)
    assert not isinstance(caught.value, Unavailable) and len(server.asked) == 1


SAYS = [
    (b'{"error": {"message": "no such model: \\u001b[31mseer"}}', r"no such model: \\x1b\[31mseer"),
    (b'{"error": "model \'seer\' not found"}', "model 'seer' not found"),
    (b'{"detail": "Not Found"}', "Not Found"),
    (b'{"message": "go  away"}', "go away"),
    (b'{"odd": [1]}', r'\{"odd": \[1\]\}'),
    (b"<html>\r\n  <h1>Not here\x07</h1>", r"<html> <h1>Not here\\x07</h1>"),
    (b"\xff\xfe", "\ufffd\ufffd"),
]


@pytest.mark.parametrize(("body", "said"), SAYS)
@pytest.mark.parametrize("status", [400, 404, 503])
def test_what_an_error_explains_is_passed_on(server, reply, status, body, said):
    server.say = lambda number, prompt: reply(status=status, body=body, reason="Odd")
    with pytest.raises(RequestFailed, match=f"^HTTP {status} Odd: {said}$"):
        chat(server, attempts=1).ask(HELLO)


@pytest.mark.parametrize(
    ("body", "came"),
    [
        (b'{"error": {"message": "overloaded"}}', "got an error: overloaded$"),
        (b'{"error": null, "usage": 3}', r'got JSON without it: \{"error": null, "usage": 3\}$'),
        (b"<!doctype html><title>Log in</title>", "got a web page: <!doctype html><title>Log in</title>$"),
        (b"pong", "got text that is not JSON: pong$"),
        (b"", "got nothing$"),
        (b'["ok"]', r'got JSON without it: \["ok"\]$'),
    ],
)
def test_what_is_no_chat_says_what_was_expected_and_what_came(server, reply, body, came):
    server.say = lambda number, prompt: reply(body=body)
    with pytest.raises(RequestFailed, match="expected JSON with choices.0..message.content, " + came):
        chat(server).ask(HELLO)


def test_words_beside_an_error_are_words(server, reply):
    body = b'{"error": {"message": "a warning"}, "choices": [{"message": {"content": "a"}}]}'
    server.say = lambda number, prompt: reply(body=body)
    assert chat(server).ask(HELLO) == "a"


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_explanation_is_cut_but_never_in_the_key(server, reply, monkeypatch, status):
    monkeypatch.setenv(KEY, "secret/key-0123456789")
    for before in (150, 190, 199):
        echo = b"x" * before + b" secret/key-0123456789 secret%2Fkey-0123456789" + b"y" * 300_000
        server.say = lambda number, prompt, echo=echo: reply(status=status, body=echo)
        with pytest.raises(RequestFailed) as caught:
            chat(server, attempts=1).ask(HELLO)
        told = str(caught.value)
        assert "secret" not in told and "x" * before in told and len(told) < 320


def test_without_a_key_a_shut_door_names_the_variable(server, reply, monkeypatch):
    monkeypatch.delenv(KEY, raising=False)
    server.say = lambda number, prompt: reply(status=401, body=b'{"error": {"message": "no key"}}')
    asked = chat(server)
    with pytest.raises(Unavailable, match=rf"HTTP 401 Unauthorized: no key \(no key was sent: {KEY} is not set\)$"):
        asked.ask(HELLO)
    assert f"export {KEY}=" in asked.fix
    monkeypatch.setenv(KEY, "wrong-key")
    with pytest.raises(Unavailable, match=r"no key$"):
        asked.ask(HELLO)
    assert asked.fix == f"check that the key in {KEY} is correct"


def test_a_query_is_sent_and_its_secrets_are_not_told(server, reply):
    server.url += "?api-version=2024-02-01&code=hush%2Fhush"
    assert chat(server).ask(HELLO) == "yes"
    sent = "/v1/chat/completions?api-version=2024-02-01&code=hush%2Fhush"
    assert server.asked[0][0] == sent
    asked = chat(server)
    assert asked.base.endswith("/v1?api-version=2024-02-01&code=[hidden]") and "hush" not in asked.url
    server.say = lambda number, prompt: reply(status=400, body=f"bad {sent} hush/hush".encode())
    with pytest.raises(RequestFailed, match="HTTP 400") as caught:
        asked.ask(HELLO)
    assert "hush" not in str(caught.value)


def test_a_redirect_is_not_followed(server, reply, monkeypatch):
    monkeypatch.setenv(KEY, "secret-key")
    server.say = lambda number, prompt: reply(status=302, headers=(("Location", "/elsewhere?key=x"),))
    with pytest.raises(RequestFailed, match="HTTP 302 Found: it redirects to /elsewhere, and redirects are not"):
        chat(server).ask(HELLO)
    assert [path for path, _, _ in server.asked] == ["/v1/chat/completions"]


def test_a_key_that_comes_back_is_not_passed_on(server, reply, monkeypatch):
    monkeypatch.setenv(KEY, "secret-key")
    server.say = lambda number, prompt: (
        reply("it is secret-key") if number == 1 else reply(status=400, reason="bad secret-key")
    )
    assert chat(server).ask(HELLO) == "it is [key]"
    with pytest.raises(RequestFailed, match=r"HTTP 400 bad \[key\]"):
        chat(server).ask(HELLO)


@pytest.mark.parametrize("key", ["two\nlines-key", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_not_repeated(server, monkeypatch, key):
    monkeypatch.setenv(KEY, key)
    with pytest.raises(Unavailable, match=f"the key in {KEY} contains characters") as caught:
        chat(server).ask(HELLO)
    assert key not in str(caught.value) and not server.asked


def test_addresses():
    assert address("https://host:8080/v1/?key=hidden#part", KEY) == "https://host:8080/v1"
    for url in (
        "ftp://x",
        "host/v1",
        "http://[::1/v1",
        "http://host:port/v1",
        "http://",
        "",
        "http://a/b c",
        "http://a/?k=\x7f",
    ):
        with pytest.raises(BadInput, match="not a valid address"):
            address(url, KEY)
    with pytest.raises(BadInput, match="key"):
        address("http://me:secret@host/v1", KEY)
