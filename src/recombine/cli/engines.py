"""Which engine a command asked for: this process, several on this machine, or a Ray cluster."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from recombine.errors import BadInput, did_you_mean

# Imported in the functions, as `--help` must not load JAX.
if TYPE_CHECKING:
    from recombine.engines.base import Engine

ENGINES = ("local", "ray")

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{unit}I": 1024**power for power, unit in enumerate("KMGT", start=1)}

LEAST_MEMORY = 5 * 10**8
"""JAX alone, with nothing to train, takes more than half of this."""


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """Where a command computes: options that all commands which train share."""

    engine: Annotated[str, Parameter(help="local: this machine; ray: a Ray cluster.")] = "local"
    jobs: Annotated[
        int | None, Parameter(help="Processes side by side on this machine (with the engine local).")
    ] = None
    threads: Annotated[
        int | None, Parameter(help="Cores of each process; else the machine's are shared out.")
    ] = None
    memory: Annotated[str | None, Parameter(help="Memory that each process may use, e.g. 4GB.")] = None
    gpus: Annotated[float, Parameter(help="GPUs of each process (with the engine ray).")] = 0.0
    devices: Annotated[
        int, Parameter(help="Devices over which each run's batches are spread (with the engine local).")
    ] = 1
    address: Annotated[
        str | None, Parameter(help="The Ray cluster, e.g. auto; else RAY_ADDRESS, else Ray on this machine.")
    ] = None
    remote: Annotated[
        str | None,
        Parameter(
            help="With the engine ray: results travel through this object store, e.g. s3://bucket/runs."
        ),
    ] = None

    def make(self) -> Engine:
        """The engine; BadInput says what is wrong with the options."""
        return engine_of(**dataclasses.asdict(self))


def engine_of(
    engine: str = "local",
    jobs: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    address: str | None = None,
    gpus: float = 0.0,
    remote: str | None = None,
    devices: int = 1,
) -> Engine:
    """The engine that these options ask for."""
    if engine not in ENGINES:
        raise BadInput(f"There is no engine called {engine!r}.", fix=did_you_mean(engine, ENGINES))
    for name, value in (("jobs", jobs), ("threads", threads), ("devices", devices)):
        if value is not None and value < 1:
            raise BadInput(f"--{name} is {value}; expected 1 or more.", fix=f"--{name} 1, or leave it out")
    if devices > 1 and (engine != "local" or jobs is not None or threads is not None or memory is not None):
        raise BadInput(
            "--devices spreads each run over the devices of this process.",
            fix="leave --engine, --jobs, --threads and --memory out, or --devices",
        )
    limit = memory if memory is None or isinstance(memory, int) else bytes_of(memory)
    if engine == "ray":
        return _ray(jobs, threads, limit, address, gpus, remote)
    for name, given in (("address", address), ("remote", remote), ("gpus", gpus)):
        if given:
            raise BadInput(f"--{name} belongs to the engine ray.", fix="add --engine ray")
    if jobs in (None, 1) and threads is None and limit is None:
        from recombine.engines.local import LocalEngine

        return LocalEngine(devices)
    from recombine.engines.processes import ProcessEngine

    return ProcessEngine(jobs or 1, threads, limit)


def _ray(
    jobs: int | None,
    threads: int | None,
    memory: int | None,
    address: str | None,
    gpus: float,
    remote: str | None,
) -> Engine:
    from recombine.engines.ray import RayEngine

    if jobs is not None:
        raise BadInput(
            "--jobs belongs to the engine local: Ray starts as many workers as the cluster has cores for.",
            fix="leave --jobs out; --threads says how many cores each worker takes",
        )
    return RayEngine(address, cpus=threads or 1, gpus=gpus, memory=memory, remote=remote)


def bytes_of(text: str) -> int:
    """A size as people write it: 4GB, 500 MB, 1.5GiB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None or match[2] not in UNITS:
        raise BadInput(f"--memory is {text!r}; expected a number and a unit.", fix="e.g. --memory 4GB")
    size = int(float(match[1]) * UNITS[match[2]])
    if size < LEAST_MEMORY:
        raise BadInput(
            f"--memory is {text!r}; a process needs {LEAST_MEMORY // 10**6} MB before it trains anything.",
            fix="e.g. --memory 2GB",
        )
    return size
