"""Memory: what a compiled program needs, what is available, and what would fit."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from recombine.errors import RecombineError
from recombine.training.config import RunConfig

SHARE = 0.8
"""The share of the available memory that a stack of several runs may use."""

MARGIN = 0.9
"""Advised settings use at most this share, because memory is not quite proportional to the settings."""

EXHAUSTED = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "YNNPACK operation failed")
"""XLA's messages for too little memory. The last one is of its library for matrix products on CPUs."""


class NotEnoughMemory(RecombineError):
    """A run does not fit into memory, even alone. Nothing of it is stored, because a larger machine may train it."""


@dataclasses.dataclass(frozen=True)
class MemoryNeed:
    """The memory that a compiled program needs, in bytes."""

    arguments: int
    """Weights, optimiser state and lists, which are in memory before the call."""
    working: int
    """Intermediate values and new results, in addition."""


def memory_need(advance: Any) -> MemoryNeed | None:
    """The memory that a compiled `advance` needs, as the compiler reports it; None if it does not."""
    try:
        stats = advance.memory
        new = max(0, stats.output_size_in_bytes - stats.alias_size_in_bytes)
        return MemoryNeed(stats.argument_size_in_bytes, stats.temp_size_in_bytes + new)
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in EXHAUSTED)
    )


def available_memory() -> int | None:
    """Bytes that are free on the device that computes; None if this is unknown."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    machine, bounds = _numbers("/proc/meminfo"), [*_groups(), *_limits()]
    if "MemAvailable" in machine:
        bounds.append(machine["MemAvailable"] + machine.get("SwapFree", 0))
    return max(0, min(bounds)) if bounds else None


def _numbers(path: str | Path) -> dict[str, int]:
    """Read the numbers in a file of the kernel, by name, in bytes."""
    numbers = {}
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, *rest = line.replace(":", " ").split()
            if rest and rest[0].isdigit():
                numbers[name] = int(rest[0]) * (1024 if rest[-1] == "kB" else 1)
    return numbers


def _groups() -> Iterator[int]:
    """Free memory in the control groups of this process (of a container or a job)."""
    own = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((line.partition("::")[2] for line in lines if line.startswith("0::")), "")
    root = Path("/sys/fs/cgroup")
    group = root / own.lstrip("/")
    # Version 2, where the groups above may have limits too; then version 1.
    for folder in (group, *group.parents):
        yield from _group(folder, "memory.max", "memory.current", "inactive_file")
        if folder == root:
            break
    names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    yield from _group(root / "memory", *names)


def _group(folder: Path, limit: str, used: str, cache: str) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):  # "max" is not a number.
        free = int((folder / limit).read_text()) - int((folder / used).read_text())
        # Cached files are dropped when memory is needed.
        yield free + _numbers(folder / "memory.stat").get(cache, 0)


def _limits() -> Iterator[int]:
    """Free memory under the limits of this process."""
    try:
        import resource
    except ImportError:
        return  # This system has no such limits.
    used = _numbers("/proc/self/status")
    for limit, name in ((resource.RLIMIT_DATA, "VmData"), (resource.RLIMIT_AS, "VmSize")):
        allowed = resource.getrlimit(limit)[0]
        if allowed != resource.RLIM_INFINITY:
            yield allowed - used.get(name, 0)


def fitting_stack_size(stack_size: int, need: MemoryNeed | None, free: int | None) -> int:
    """The number of runs that fit in a stack, at most its size; 0 if not even one fits."""
    if need is None or free is None or need.working <= (SHARE if stack_size > 1 else 1.0) * free:
        return stack_size
    if stack_size == 1:
        return 0
    # At least one. Whether it fits alone shows when it is compiled alone.
    return max(1, int(stack_size * SHARE * free / need.working))


def weights_do_not_fit(config: RunConfig, weights: int, free: int) -> NotEnoughMemory:
    """The error for a run whose weights alone take more memory than is available."""
    fix = "a smaller model, such as a smaller model.width or model.depth"
    what = f"Run {config.run_id} does not fit into memory: its weights take {format_bytes(weights)}"
    return NotEnoughMemory(f"{what}, and {format_bytes(free)} are available.", fix=fix)


def does_not_fit(config: RunConfig, need: MemoryNeed | None, free: int | None) -> NotEnoughMemory:
    """The error for a run that does not fit alone: what it needs, what is available, and what would fit."""
    what = f"Run {config.run_id} does not fit into memory"
    width = getattr(config.model, "width", None)
    smaller = f"a smaller model.width (now {width})" if width else "a smaller model"
    if need is None or free is None:
        tasks, samples = config.recipe.tasks, config.recipe.samples
        fewer = f"fewer recipe.tasks (now {tasks}) or recipe.samples (now {samples})"
        return NotEnoughMemory(f"{what}.", fix=f"{fewer}, or {smaller}")
    # Intermediate values grow with the examples in memory at once: of a step, or of an evaluation.
    share = MARGIN * free / need.working
    # The gradient keeps the states of all outer steps, unless these are trained one at a time.
    steps = 1 if config.objective.one_step_at_a_time else getattr(config.model, "steps", 1)
    step = config.recipe.tasks * config.recipe.samples * steps
    samples = config.family.validation_samples
    evaluation = 2 * config.validation_tasks * samples
    most = share * max(step, evaluation)
    advice = []
    fewer_steps = int(most * steps / step) if step > most and steps > 1 else 0
    if step > most:
        advice.append((f"recipe.tasks={int(most / config.recipe.samples / steps)}", config.recipe.tasks))
    if evaluation > most:
        advice.append((f"validation_tasks={int(most / 2 / samples)}", config.validation_tasks))
    words = " and ".join(f"{setting} (now {now})" for setting, now in advice)
    if fewer_steps:
        words = f"model.steps={fewer_steps} (now {steps}) or {words}"
    fits = bool(words) and not any(setting.endswith("=0") for setting, _ in advice)
    needed = need.arguments + need.working
    return NotEnoughMemory(
        f"{what}: its steps take about {format_bytes(need.working)} beside {format_bytes(need.arguments)} of weights and lists, "
        f"and {format_bytes(free)} are available.",
        fix=f"{f'about {words} would fit; else ' if fits else ''}{smaller}, or {format_bytes(needed / MARGIN)} of memory",
    )


def format_bytes(count: float) -> str:
    """A number of bytes with its unit, such as `1.5 GB`."""
    power = next((power for power in range(4) if count < 1000 ** (power + 1)), 4)
    return f"{count / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
