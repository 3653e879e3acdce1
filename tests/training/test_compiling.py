"""Compiled programs are kept: in memory for this process, on disk for the next; a line says that one is compiled."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import jax
import pytest

from recombine.models.mlp import MLP, MLPNetwork
from recombine.training import compiling
from recombine.training.compiling import use_compile_cache
from recombine.training.config import RunConfig, Seeds
from recombine.training.program import shared_compiler
from recombine.training.progress import Progress
from recombine.training.trainer import train

Tiny = Callable[..., RunConfig]

PROCESS = """
import collections, json
import jax
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: seen.update([event.rpartition("/")[2]]))
import recombine as rc
config = rc.RunConfig(
    space=rc.SubsetSpace(modules=6, max_active=2), support=rc.supports.Random(number=12), model=rc.models.MLP(width=8, depth=1),
    family=rc.families.Hyperteacher(inputs=4, hidden=5, outputs=3), recipe=rc.recipes.Fast(steps=4, tasks=4), validation_tasks=4,
)
counts = []
for seed in range(2):
    rc.train(config.replace(seeds=rc.Seeds.replicate(seed)))
    counts.append({name: seen[f"cache_{name}"] for name in ("hits", "misses")})
print(json.dumps(counts))
"""


def counts(cache: Path) -> list[dict[str, int]]:
    """Programs that a new process found in the cache and compiled, after one run and after a second of its shape."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    answer = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env=environment | {"XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stderr == "", "nothing is written where nobody reads it"
    return json.loads(answer.stdout)


def test_a_second_run_and_a_second_process_compile_nothing(tmp_path: Path):
    first, second = counts(tmp_path)
    assert first["hits"] == 0 and first["misses"] > 0
    assert second == first, "the second run of a process neither compiles nor reads the disk"
    again = counts(tmp_path)
    assert again[0] == again[1] == {"hits": first["misses"], "misses": 0}


def test_the_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: jax.config.values[name] for name in names}
    try:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "mine")
        assert use_compile_cache() == Path("mine"), "the user's variable"
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
        jax.config.update("jax_compilation_cache_dir", "configured")
        assert use_compile_cache() == Path("configured"), "the user's setting of JAX"
        jax.config.update("jax_compilation_cache_dir", None)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert use_compile_cache() == tmp_path / "recombine" / "jax"
        assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "recombine" / "jax")
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


class AtOnce:
    """A timer that does not wait: every compilation takes long enough to be announced."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self.start, self.cancel = act, lambda: None


@pytest.fixture
def slow_terminal(monkeypatch: pytest.MonkeyPatch, fresh_programs: None) -> None:
    """As in a terminal, with slow compilations."""
    monkeypatch.setattr(compiling, "Timer", AtOnce)
    monkeypatch.setattr(compiling, "interactive", lambda: True)


@pytest.mark.usefixtures("slow_terminal")
def test_a_line_says_that_a_program_is_compiled(tiny: Tiny, capsys: Any, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="recombine"):
        train(tiny())
    assert capsys.readouterr().err.startswith("compiling (once for this shape; kept in ")
    assert [record.message for record in caplog.records] == ["compiling a program"]
    assert train(tiny(seeds=Seeds.replicate(1))).compile_seconds == 0
    assert capsys.readouterr().err == "", "the second run of a shape compiles nothing"


@pytest.mark.usefixtures("slow_terminal")
def test_nothing_is_written_when_quiet_or_when_progress_is_reported(tiny: Tiny, capsys: Any):
    train(tiny(), quiet=True)
    train(tiny(eval_every=5), progress=Progress())
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("fresh_programs")
def test_a_class_that_is_defined_anew_is_compiled_anew(tiny: Tiny):
    """As in a notebook: the same name and the same settings, other code."""

    def defined(scale: float) -> type[MLP]:
        class Scaled(MLPNetwork):
            def tasks(self, codes: Any, inputs: Any) -> Any:
                return scale * super().tasks(codes, inputs)

        class Mine(MLP):
            kind: Literal["mine"] = "mine"  # type: ignore[assignment]

            def draw(self, *sizes: Any) -> Any:
                network = super().draw(*sizes)
                return Scaled(**{name: getattr(network, name) for name in network.__dataclass_fields__})

        return Mine

    losses = [train(tiny(model=defined(scale)(width=8, depth=1)), quiet=True).curves[0]["loss"] for scale in (1.0, 0.0)]
    assert losses[0] != losses[1]
    assert shared_compiler().compilations == 2
