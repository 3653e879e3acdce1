"""What all tests share: compiled programs are kept between sessions, and array shapes are checked."""

from __future__ import annotations

import gc
import getpass
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from jaxtyping import install_import_hook

SCIENCE = (
    "spaces",
    "supports",
    "problems",
    "graphs",
    "families",
    "encodings",
    "models",
    "objectives",
    "recipes",
    "training",
    "probes",
    "plan",
    "audit",
)
"""The rooms whose functions take and give arrays. (beartype refuses `Self`: write the class's name in these.)"""

CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
"""As type checkers do, this takes an int where a float is expected."""

# A busy machine is no failure: no test asserts a time. Continuous integration tries the same examples each time, so that it
# judges the change; other runs try new ones.
hypothesis.settings.register_profile("recombine", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("recombine")

# Before any of them is imported: array shapes in annotations are checked in tests, and only there.
install_import_hook([f"recombine.{room}" for room in SCIENCE], CHECKER)


def _cache_folder(config: pytest.Config) -> Path:
    """Where compiled programs are kept: with pytest's own cache, or per user where that is switched off."""
    cache = getattr(config, "cache", None)
    if cache is not None:
        return Path(cache.mkdir("jax"))
    return Path(tempfile.gettempdir()) / f"recombine-jax-{getpass.getuser()}"


def pytest_configure(config: pytest.Config) -> None:
    # By environment, so that the processes that tests start find it too. Compiling is most of a test's time:
    # what was compiled is kept, and nothing is optimised (slow tests switch that on where it matters).
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_cache_folder(config)))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


MAPPINGS = 30_000
"""Of its memory, at which a process lets go of its compiled programs; Linux allows 65,530, and beyond them JAX crashes."""


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Programs of tests that are through do not pile up: each takes several mappings of memory."""
    yield
    maps, jax = Path("/proc/self/maps"), sys.modules.get("jax")
    if jax is not None and maps.exists() and maps.read_bytes().count(b"\n") > MAPPINGS:
        from recombine.training.program import shared_compiler

        shared_compiler.cache_clear()
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def fresh_programs() -> Iterator[None]:
    """No program is compiled yet: for tests that count compilations."""
    from recombine.training.program import shared_compiler

    shared_compiler.cache_clear()
    yield
    shared_compiler.cache_clear()


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Any]:
    """Makes the configuration of a run that trains in a blink; keywords replace its fields."""
    # Imported here, so that the hook above comes first.
    from recombine.families.hyperteacher import Hyperteacher
    from recombine.models.mlp import MLP
    from recombine.recipes.paper import Paper
    from recombine.spaces.subset import SubsetSpace
    from recombine.supports.random import Random
    from recombine.training.config import RunConfig

    def make(**changes: Any) -> RunConfig:
        fields: dict[str, Any] = {
            "space": SubsetSpace(modules=6, max_active=2),
            "support": Random(number=12),
            "family": Hyperteacher(inputs=4, hidden=5, outputs=3),
            "model": MLP(width=8, depth=2),
            "recipe": Paper(learning_rate=0.01, steps=30, tasks=8, samples=4),
            "eval_every": 10,
            "validation_tasks": 16,
        }
        return RunConfig(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def picbreeder() -> Path:
    """The folder of the published evolved networks, which are not part of the project.

    They are beside the project, or where RECOMBINE_PICBREEDER says. Where that is set, as in continuous integration, they must
    be there; elsewhere tests that need them are skipped.
    """
    named = os.environ.get("RECOMBINE_PICBREEDER")
    root = Path(__file__).parents[1]
    folder = root / named if named else root.parent / "shared" / "data" / "picbreeder"
    if not folder.is_dir():
        assert not named, f"RECOMBINE_PICBREEDER={named}, and there is no such folder"
        pytest.skip(f"the published evolved networks are not in {folder}")
    return folder
