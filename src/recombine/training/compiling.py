"""How programs are compiled, where compiled programs are kept, and the line that says so."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import equinox as eqx
import jax

log = logging.getLogger("recombine")

NOTICE_SECONDS = 1.0
"""Seconds before a compilation is announced. A program that is in the cache on disk loads faster."""


def use_compile_cache() -> Path:
    """Keep compiled programs on disk, so that the next process compiles nothing. Returns the folder.

    It is `~/.cache/recombine/jax` (`$XDG_CACHE_HOME` where it is set), or the folder that the user chose by
    `JAX_COMPILATION_CACHE_DIR` or in JAX's configuration.
    """
    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR") or jax.config.values.get("jax_compilation_cache_dir")
    if chosen:
        return Path(chosen)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recombine" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return folder


def interactive() -> bool:
    """Whether somebody reads standard error: in a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def compile_notice() -> Callable[[], None] | None:
    """The line that says that a program is being compiled; None outside terminals and notebooks."""
    if not interactive():
        return None
    folder = str(use_compile_cache()).replace(str(Path.home()), "~", 1)

    def write() -> None:
        sys.stderr.write(f"compiling (once for this shape; kept in {folder})\n")
        sys.stderr.flush()

    return write


def compile_lowered(lowered: Any, notice: Callable[[], None] | None = None) -> Any:
    """Compile a lowered program; call `notice` if this takes longer than loading it from disk would."""
    log.info("compiling a program")
    timer = Timer(NOTICE_SECONDS, notice or (lambda: None))
    timer.daemon = True
    timer.start()
    try:
        return lowered.compile()
    finally:
        timer.cancel()


def compiler_options() -> dict[str, int]:
    """Options of the compiler for this machine; none where JAX's optimisations are off, as in the tests.

    On CPUs LLVM's highest level doubles the time of compiling (measured: 5.9 against 11.8 s for a 3 x 128 network, 8.1
    against 19.1 s for `lookup`), and a step gains a few per cent at most: its matrix products are library calls.
    """
    if jax.config.read("jax_disable_most_optimizations") or jax.default_backend() != "cpu":
        return {}
    return {"xla_backend_optimization_level": 1}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on first use with these options. Arguments that are not arrays are static."""

    @functools.cache
    def ready() -> Callable[..., Any]:
        # Not before the first call: asking for the backend starts it.
        use_compile_cache()
        return eqx.filter_jit(function, compiler_options=compiler_options())  # pyright: ignore[reportCallIssue]

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return ready()(*arguments)

    return call
