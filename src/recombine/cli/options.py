"""The options that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

STORE_HELP = "The folder in which runs are kept."
StoreOption = Annotated[Path, Parameter(name="--store", help=STORE_HELP, env_var="RECOMBINE_STORE")]
JsonOption = Annotated[bool, Parameter(name="--json", help="Print one JSON document and nothing else.")]
DryOption = Annotated[bool, Parameter(name="--dry-run", help="Say what would run, what is done already, and stop.")]
Overrides = Annotated[str, Parameter(help="Settings to change, as name=value; see `recombine show config`.")]

DEFAULT_STORE = Path("runs")


def split_names(given: Sequence[str] | None) -> tuple[str, ...]:
    """Names apart by commas, in one argument or several."""
    return tuple(name.strip() for argument in given or () for name in argument.split(",") if name.strip())
