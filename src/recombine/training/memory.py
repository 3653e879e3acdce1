"""Memory: what a compiled program needs, what there is, and what would fit."""

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
"""A stack of several runs may take this share of the memory that is available."""

MARGIN = 0.9
"""What is advised fits with so much to spare: needs are not quite proportional to the settings."""

EXHAUSTED = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "YNNPACK operation failed")
"""What XLA says when there is not enough; the last is its library for products on CPUs, which knows no better word."""


class NotEnoughMemory(RecombineError):
    """A run does not fit, even alone. Nothing of it is stored: on a larger machine it may."""


@dataclasses.dataclass(frozen=True)
class Need:
    """What a compiled program needs, in bytes."""

    arguments: int
    """Weights, optimiser, lists: in memory already when it is called."""
    working: int
    """Values on the way and new results: in addition."""


def need_of(advance: Any) -> Need | None:
    """What a compiled `advance` needs, as the compiler says; None where it does not say."""
    try:
        stats = advance.memory
        new = max(0, stats.output_size_in_bytes - stats.alias_size_in_bytes)
        return Need(stats.argument_size_in_bytes, stats.temp_size_in_bytes + new)
    except (AttributeError, NotImplementedError, RuntimeError):
        return None


def exhausted(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in EXHAUSTED)
    )


def available() -> int | None:
    """Bytes that programs may still take on the device that computes; None where nothing tells."""
    device = jax.devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats and "bytes_limit" in stats:
        return max(0, stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    found = [*_machine(), *_groups(), *_limits()]
    return max(0, min(found)) if found else None


def _numbers(path: str | Path) -> dict[str, int]:
    """The numbers of a file of the kernel by their names; those in kB as bytes."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, *rest = line.replace(":", " ").split()
            if rest and rest[0].isdigit():
                found[name] = int(rest[0]) * (1024 if rest[-1] == "kB" else 1)
    return found


def _machine() -> Iterator[int]:
    memory = _numbers("/proc/meminfo")
    if "MemAvailable" in memory:
        yield memory["MemAvailable"] + memory.get("SwapFree", 0)


def _groups() -> Iterator[int]:
    """What the control groups of this process (a container's, a job's) leave."""
    own = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((line.partition("::")[2] for line in lines if line.startswith("0::")), "")
    root = Path("/sys/fs/cgroup")
    place = root / own.lstrip("/")
    # The second version; each group is below others that may have limits too. Then the first version.
    for folder in (place, *place.parents):
        yield from _group(folder, "memory.max", "memory.current", "inactive_file")
        if folder == root:
            break
    names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    yield from _group(root / "memory", *names)


def _group(folder: Path, limit: str, used: str, cache: str) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):  # "max" is no number.
        free = int((folder / limit).read_text()) - int((folder / used).read_text())
        # Files that are kept in memory make room when it is needed.
        yield free + _numbers(folder / "memory.stat").get(cache, 0)


def _limits() -> Iterator[int]:
    """What the limits of this process leave."""
    try:
        import resource
    except ImportError:
        return  # Not on this system.
    used = _numbers("/proc/self/status")
    for limit, name in ((resource.RLIMIT_DATA, "VmData"), (resource.RLIMIT_AS, "VmSize")):
        allowed = resource.getrlimit(limit)[0]
        if allowed != resource.RLIM_INFINITY:
            yield allowed - used.get(name, 0)


def fitting_lanes(lanes: int, need: Need | None, free: int | None) -> int:
    """How many runs a stack may hold, at most those that it has; fewer than 1 if not even one fits."""
    if need is None or free is None or need.working <= (SHARE if lanes > 1 else 1.0) * free:
        return lanes
    if lanes == 1:
        return 0
    # At least one: whether it fits alone is seen when it is compiled alone.
    return max(1, int(lanes * SHARE * free / need.working))


def too_large(config: RunConfig, need: Need | None, free: int | None) -> NotEnoughMemory:
    """The error for a run that does not fit alone: what it needs, what there is, and what would fit."""
    what = f"Run {config.run_id} does not fit into memory"
    width = getattr(config.model, "width", None)
    smaller = f"a smaller model.width (now {width})" if width else "a smaller model"
    if need is None or free is None:
        tasks, samples = config.recipe.tasks, config.recipe.samples
        fewer = f"fewer recipe.tasks (now {tasks}) or recipe.samples (now {samples})"
        return NotEnoughMemory(f"{what}.", fix=f"{fewer}, or {smaller}")
    # Values on the way grow with the examples that are in memory at once: of a step, or of an evaluation.
    share = MARGIN * free / need.working
    step = config.recipe.tasks * config.recipe.samples
    samples = config.family.validation_samples
    look = 2 * config.validation_tasks * samples
    most = share * max(step, look)
    advice = []
    if step > most:
        advice.append((f"recipe.tasks={int(most / config.recipe.samples)}", config.recipe.tasks))
    if look > most:
        advice.append((f"validation_tasks={int(most / 2 / samples)}", config.validation_tasks))
    words = " and ".join(f"{setting} (now {now})" for setting, now in advice)
    fits = not any(setting.endswith("=0") for setting, _ in advice)
    needed = need.arguments + need.working
    return NotEnoughMemory(
        f"{what}: its steps take about {size(need.working)} beside {size(need.arguments)} of weights and lists, "
        f"and {size(free)} are available.",
        fix=f"{f'about {words} would fit; else ' if fits else ''}{smaller}, or {size(needed / MARGIN)} of memory",
    )


def size(count: float) -> str:
    """So many bytes, in words."""
    power = next((power for power in range(4) if count < 1000 ** (power + 1)), 4)
    return f"{count / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
