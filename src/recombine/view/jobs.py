"""Commands that the viewer starts: one process each, with its last lines, its progress and its end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.plain import plain

LINES = 200
"""Lines of a command's output that are kept."""
MOST = 50
"""Ended commands that are remembered."""
PATIENCE = 20.0
"""Seconds that a command has to end when the viewer ends; then it is killed. What is stored is whole either way."""


@dataclasses.dataclass
class Job:
    """A command that was started."""

    id: str
    title: str
    kind: str
    """`run` or `audit`: one runs of each kind at a time."""
    command: list[str]
    process: subprocess.Popen[str]
    output: Path
    """Where standard output goes: one JSON document."""
    began: float = dataclasses.field(default_factory=time.time)
    ended: float | None = None
    page: Path | None = None
    """The page that an audit writes."""
    stopped: bool = False
    lines: deque[str] = dataclasses.field(default_factory=lambda: deque(maxlen=LINES))

    @property
    def state(self) -> str:
        """running, done, stopped or failed."""
        if self.process.poll() is None:
            return "running"
        return "done" if self.process.returncode == 0 else "stopped" if self.stopped else "failed"

    def answer(self) -> Any:
        """What the command printed, None if that is no JSON."""
        with contextlib.suppress(OSError, ValueError):
            return json.loads(self.output.read_text(encoding="utf-8"))
        return None

    def record(self) -> dict[str, Any]:
        """Plain values for a page."""
        state = self.state
        answer = self.answer() if state == "failed" else None
        error = answer if isinstance(answer, dict) and "error" in answer else {}
        return {
            "id": self.id,
            "title": self.title,
            "kind": self.kind,
            "command": " ".join(self.command),
            "state": state,
            "seconds": round((self.ended or time.time()) - self.began, 1),
            "lines": list(self.lines),
            "error": error.get("error"),
            "fix": error.get("fix"),
        }


class Jobs:
    """The commands that were started. A command ends with the viewer; finished runs are kept and can be resumed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._jobs, self._lock, self._count = folder, dict[str, Job](), threading.Lock(), 0

    def start(self, kind: str, title: str, arguments: list[str]) -> Job:
        """Start `recombine` with these arguments and `--json`; BadInput while another of its kind runs.

        Args:
            kind: `run` or `audit`.
            title: What is started, in words.
            arguments: The arguments of the command. No shell sees them.
        """
        with self._lock:
            for job in self._jobs.values():
                if job.kind == kind and job.state == "running":
                    raise BadInput(f"{job.title} is running.", fix="wait until it is done, or stop it")
            self._count += 1
            name = f"{kind}-{self._count}"
            job = self._popen(name, kind, title, arguments)
            self._jobs[name] = job
            for old in [each for each in self._jobs.values() if each.state != "running"][:-MOST]:
                del self._jobs[old.id]
        threading.Thread(target=_follow, args=(job,), daemon=True).start()
        return job

    def _popen(self, name: str, kind: str, title: str, arguments: list[str]) -> Job:
        output = self._folder / f"{name}.json"
        command = [sys.executable, "-m", "recombine", *arguments, "--json"]
        with open(output, "w", encoding="utf-8") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                # An interrupt of the terminal reaches the viewer, which stops its commands itself.
                start_new_session=True,
            )
        return Job(name, title, kind, ["recombine", *arguments], process, output)

    def get(self, name: str) -> Job:
        """A command by its name; BadInput if there is none."""
        with self._lock:
            if name not in self._jobs:
                raise BadInput(f"Nothing called {name[:50]!r} was started here.")
            return self._jobs[name]

    def stop(self, name: str) -> Job:
        """Ask a command to end, as Ctrl-C does. Finished runs are kept."""
        job = self.get(name)
        if job.state == "running":
            job.stopped = True
            job.process.send_signal(signal.SIGINT)
        return job

    def records(self) -> list[dict[str, Any]]:
        """All commands, the newest first."""
        with self._lock:
            jobs = list(self._jobs.values())
        return [job.record() for job in reversed(jobs)]

    def close(self) -> None:
        """End all commands that still run."""
        with self._lock:
            jobs = [job for job in self._jobs.values() if job.state == "running"]
        for job in jobs:
            job.stopped = True
            job.process.send_signal(signal.SIGINT)
        for job in jobs:
            try:
                job.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(job.process.pid, signal.SIGKILL)
                job.process.wait()


def _follow(job: Job) -> None:
    """Keep the last lines of a command until it ends."""
    assert job.process.stderr is not None
    with job.process.stderr as errors:
        for line in errors:
            job.lines.append(plain(line.rstrip("\n")))
    job.process.wait()
    job.ended = time.time()


def run_once(arguments: list[str], seconds: float) -> tuple[int, Any]:
    """Run `recombine` with `--json` to its end: its exit code and its JSON document.

    Args:
        arguments: The arguments.
        seconds: How long it may take; BadInput if it takes longer.
    """
    command = [sys.executable, "-m", "recombine", *arguments, "--json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise BadInput(f"This took longer than {seconds:.0f} s.", fix="ask for less, or use the terminal") from None
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        text = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return done.returncode or 1, {"error": plain(text[-1]) if text else "The command printed nothing.", "fix": None}
