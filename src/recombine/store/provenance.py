"""Where a result came from: versions, machine, execution plan. No host names, no paths, no users."""

from __future__ import annotations

import datetime
import functools
import os
import platform
from importlib import metadata
from typing import Any

PACKAGES = ("recombine", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of what computes."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


@functools.cache
def machine() -> dict[str, Any]:
    """What the numbers were computed on."""
    import jax

    device = jax.devices()[0]
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "backend": device.platform,
        "device": device.device_kind,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def threads() -> int:
    """Cores that this process may use: part of the execution plan, for sums are cut by threads."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def provenance() -> dict[str, Any]:
    """All of it."""
    return {"time": now(), "versions": versions(), "machine": machine()}
