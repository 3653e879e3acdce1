"""The options that commands share, and the engine that they ask for: this process, several on this machine, or Ray."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

import recombine as rc
from recombine.errors import BadInput, did_you_mean

STORE_HELP = "The folder in which runs are kept."
StoreOption = Annotated[Path, Parameter(name="--store", help=STORE_HELP, env_var="RECOMBINE_STORE")]
JsonOption = Annotated[bool, Parameter(name="--json", help="Print one JSON document and nothing else.")]
DryOption = Annotated[bool, Parameter(name="--dry-run", help="Say what would run, what is done already, and stop.")]
SeedOption = Annotated[int, Parameter(validator=validators.Number(gte=0))]
Overrides = Annotated[str, Parameter(help="Settings to change, as name=value; see `recombine show config`.")]

DEFAULT_STORE = Path("runs")


SortOption = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""Names with commas between; a name may begin with a minus."""


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in one argument, with commas between."""
    return () if text is None else split_names([text])


def split_names(given: Sequence[str] | None) -> tuple[str, ...]:
    """Names apart by commas, in one argument or several."""
    return tuple(name.strip() for argument in given or () for name in argument.split(",") if name.strip())


ENGINES = ("local", "ray")

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{unit}I": 1024**power for power, unit in enumerate("KMGT", start=1)}

LEAST_MEMORY = 5 * 10**8
"""JAX alone, with nothing to train, takes more than half of this."""


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """Where a command computes: options that all commands which train share."""

    engine: str = "local"
    """local: this machine; ray: a Ray cluster."""
    jobs: int | None = None
    """Processes side by side on this machine (with the engine local)."""
    threads: int | None = None
    """Cores of each process; by default the machine's cores are shared."""
    memory: str | None = None
    """Memory that each process may use, e.g. 4GB."""
    gpus: float = 0.0
    """GPUs of each process (with the engine ray)."""
    devices: int = 1
    """Devices over which each run's batches are spread (with the engine local)."""
    address: str | None = None
    """The Ray cluster, e.g. auto; by default RAY_ADDRESS, or Ray on this machine."""
    remote: str | None = None
    """With the engine ray: results travel through this object store, e.g. s3://bucket/runs."""

    def make(self) -> rc.engines.Engine:
        """The engine; BadInput says what is wrong with the options."""
        jobs, threads = self.jobs, self.threads
        if self.engine not in ENGINES:
            raise BadInput(f"There is no engine called {self.engine!r}.", fix=did_you_mean(self.engine, ENGINES))
        for name, value in (("jobs", jobs), ("threads", threads), ("devices", self.devices)):
            if value is not None and value < 1:
                raise BadInput(f"--{name} is {value}; expected 1 or more.", fix=f"--{name} 1, or leave it out")
        if self.devices > 1 and (self.engine, jobs, threads, self.memory) != ("local", None, None, None):
            fix = "leave --engine, --jobs, --threads and --memory out, or --devices"
            raise BadInput("--devices spreads each run over the devices of this process.", fix=fix)
        memory = None if self.memory is None else bytes_of(self.memory)
        if self.engine == "ray":
            if jobs is not None:
                fix = "leave --jobs out; --threads says how many cores each worker takes"
                raise BadInput(
                    "--jobs belongs to the engine local: Ray starts as many workers as fit the cluster.", fix=fix
                )
            worker = {"cpus": threads or 1, "gpus": self.gpus, "memory": memory}
            return rc.engines.RayEngine(self.address, remote=self.remote, **worker)
        for name, given in (("address", self.address), ("remote", self.remote), ("gpus", self.gpus)):
            if given:
                raise BadInput(f"--{name} belongs to the engine ray.", fix="add --engine ray")
        if jobs in (None, 1) and threads is None and memory is None:
            return rc.LocalEngine(self.devices)
        return rc.engines.ProcessEngine(jobs or 1, threads, memory)


LOCAL = EngineOptions()
"""By default commands compute in this process."""


def bytes_of(text: str) -> int:
    """A size as people write it: 4GB, 500 MB, 1.5GiB."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if match is None or match[2] not in UNITS:
        raise BadInput(f"--memory is {text!r}; expected a number and a unit.", fix="e.g. --memory 4GB")
    size = int(float(match[1]) * UNITS[match[2]])
    if size < LEAST_MEMORY:
        least = f"{LEAST_MEMORY // 10**6} MB"
        raise BadInput(f"--memory is {text!r}; a process alone needs {least}.", fix="e.g. --memory 2GB")
    return size
