"""How programs are compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


def compiler_options() -> dict[str, int]:
    """Options of the compiler for this machine; none where JAX was told not to optimise, as the tests do.

    On CPUs LLVM's highest level doubles the time of compiling (measured: 5.9 against 11.8 s for a 3 x 128 network, 8.1
    against 19.1 s for `lookup`) and a step gains a few per cent at most: its matrix products are library calls.
    """
    if jax.config.read("jax_disable_most_optimizations") or jax.default_backend() != "cpu":
        return {}
    return {"xla_backend_optimization_level": 1}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled on first use with these options. Arguments that are not arrays are static."""

    @functools.cache
    def ready() -> Callable[..., Any]:
        # Not before the first call: asking for the backend starts it.
        return eqx.filter_jit(function, compiler_options=compiler_options())  # pyright: ignore[reportCallIssue]

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return ready()(*arguments)

    return call
