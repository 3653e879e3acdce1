"""Training: a run's configuration, what is drawn for it, and the loop that trains it.

`RunConfig` says all that determines a run's weights. `Setting` draws its support, teacher and encoding. `train` trains one
run in this process and gives an `Outcome`; engines train many and store them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.training.config import RunConfig as RunConfig, Seeds as Seeds
    from recombine.training.memory import NotEnoughMemory as NotEnoughMemory
    from recombine.training.outcome import Outcome as Outcome
    from recombine.training.prepare import Setting as Setting
    from recombine.training.progress import Progress as Progress, ProgressDisplay as ProgressDisplay
    from recombine.training.trainer import Trainer as Trainer, train as train
