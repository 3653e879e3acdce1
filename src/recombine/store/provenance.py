"""The origin of a result: versions and machine. No host names, paths or user names."""

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
    """The versions of Python and of the packages that compute."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


@functools.cache
def machine() -> dict[str, Any]:
    """The machine and device that compute."""
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
    """Cores that this process may use. They are part of the execution plan, because threads split sums."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def precise_now() -> str:
    """The time, in UTC, to the microsecond: it orders measurements."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


def provenance() -> dict[str, Any]:
    """Time, versions and machine."""
    return {"time": now(), "versions": versions(), "machine": machine()}
