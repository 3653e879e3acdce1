"""What the tests of the command line share: commands called in this process, and one small study that ran."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SIZE = "modules=8 max_active=2 width=8 depth=1 recipe=paper learning_rate=0.01 steps=30 tasks=8 samples=4 eval_every=10"
SMALL_RUN = f"{SIZE} validation_tasks=8 number=20 reserve=12".split()
SMALL_STUDY = f"{SIZE} validation_tasks=8 numbers=12,20 replicates=2".split()
"""The same program as in tests/studies, so that it is compiled once."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON: fails unless it is one document and nothing else."""
        return json.loads(self.out)


def call(*arguments: str | Path) -> Answer:
    from recombine.cli.main import _guarded

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _guarded([str(argument) for argument in arguments])
    return Answer(code, out.getvalue(), err.getvalue())


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Calls a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECOMBINE_STORE", raising=False)
    return call


@pytest.fixture(scope="session")
def small_run() -> list[str]:
    """The settings of a run that trains in a blink."""
    return SMALL_RUN


@pytest.fixture(scope="session")
def small_study() -> list[str]:
    """The settings of a study that runs in seconds."""
    return SMALL_STUDY


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """A store in which the small study ran, and what the command said. Not to be changed: see `copy`."""
    place = tmp_path_factory.mktemp("finished") / "store"
    answer = call("run", "data-scaling", "--profile", "smoke", *SMALL_STUDY, "--store", place, "--json")
    assert answer.code == 0, answer.err
    return place, answer


@pytest.fixture
def copy(finished: tuple[Path, Answer], tmp_path: Path) -> Path:
    """A copy of that store."""
    return Path(shutil.copytree(finished[0], tmp_path / "store"))
