"""Experimental design: arms, claims and figures of a study, sweeps, and how they are run.

A study is a subclass of `Study` with arms, claims and figures; a sweep is a grid without claims. `run_study` and
`run_sweep` bring a store to hold their runs and return what came out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.design.arm import Arm as Arm
    from recombine.design.claims import (
        Claims as Claims,
        Effect as Effect,
        StudyClaim as StudyClaim,
        claim as claim,
        control as control,
        precondition as precondition,
    )
    from recombine.design.column import (
        Column as Column,
        average as average,
        highest as highest,
        lowest as lowest,
        statistic as statistic,
    )
    from recombine.design.study import Design as Design, Figures as Figures, Study as Study
    from recombine.design.sweeps.recorded import RecordedSweep as RecordedSweep, recorded_sweep as recorded_sweep
    from recombine.design.tables import Tables as Tables
