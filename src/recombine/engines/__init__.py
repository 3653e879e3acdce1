"""Engines: where the runs of a sweep are trained and measured.

`LocalEngine` works in this process, `ProcessEngine` in several processes of this machine, `RayEngine` on a Ray cluster.
Each one brings a store to hold the runs and measurements asked for, and does nothing twice. `plan` says what is left to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.engines.base import Engine as Engine, Plan as Plan, Sweep as Sweep, plan as plan
    from recombine.engines.local import LocalEngine as LocalEngine
    from recombine.engines.processes import ProcessEngine as ProcessEngine
    from recombine.engines.ray import RayEngine as RayEngine
    from recombine.engines.time_estimate import estimate as estimate
    from recombine.training.estimate import Estimate as Estimate
