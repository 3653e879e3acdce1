"""A chat endpoint on this machine that says what a test wants."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest


@dataclasses.dataclass(frozen=True)
class Reply:
    """What the stub does with a question."""

    text: str | None = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    """Instead of a chat's answer; an error has none unless told."""
    reason: str | None = None
    delay: float = 0.0


class Stub(http.server.BaseHTTPRequestHandler):
    """Keeps what it was asked."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append((self.path, self.headers.get("Authorization"), body))
            number = len(server.asked)
        reply = server.say(number, body["messages"][0]["content"])
        time.sleep(reply.delay)
        said = {"choices": [{"message": {"role": "assistant", "content": reply.text}}]}
        usual = json.dumps(said).encode() if reply.status == 200 else b""
        sent = usual if reply.body is None else reply.body
        try:
            self.send_response(reply.status, reply.reason)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)
        except OSError:
            pass  # Whoever asked has gone.

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture
def server() -> Iterator[Any]:
    made: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    made.daemon_threads = True
    made.block_on_close = False
    made.asked, made.lock = [], threading.Lock()
    made.say = lambda number, prompt: Reply("yes")
    made.url = f"http://127.0.0.1:{made.server_address[1]}/v1"
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def biased() -> Callable[..., Callable[[int, str], Reply]]:
    """A model that is right with a chance that depends on the variant and on the answer's log-probability, and on nothing else."""
    return biased_model


def biased_model(items: list[Any], *, level: float, common: float, output: float, seed: int = 0) -> Any:
    """Log-odds: a level, more for the common variant, and more for 10 nats of the answer's log-probability."""
    known = {item.prompt: item for item in items}
    mean: dict[str, float] = {}
    for task in {item.task for item in items}:
        mean[task] = float(np.mean([item.output_logprob for item in items if item.task == task]))

    def say(number: int, prompt: str) -> Reply:
        item = known[prompt]
        odds = level + common * ((item.variant == "common") - 0.5)
        odds += output * (item.output_logprob - mean[item.task]) / 10
        digest = hashlib.sha256(f"{seed} {item.name}".encode()).digest()
        drawn = int.from_bytes(digest[:8], "big") / 2**64
        return Reply(item.answer if drawn < 1 / (1 + np.exp(-odds)) else "no idea")

    return say
