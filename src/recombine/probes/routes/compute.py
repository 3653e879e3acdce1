"""What a run costs: its weights without embeddings, and the floating-point operations of its training."""

from __future__ import annotations

from typing import ClassVar, Literal

from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.training.flops import step_flops, weight_count
from recombine.training.prepare import Setting


class Compute(Measurement):
    """The number of weights without embeddings (`weights`) and the operations of all training steps (`training_flops`).

    The compiler counts the operations of loss and gradient; the optimiser is left out. A run that stops at a `target` needs
    fewer steps than counted here.
    """

    kind: Literal["compute"] = "compute"
    summary_names: ClassVar[tuple[str, ...]] = ("weights", "step_flops", "training_flops")

    def measure(self, setting: Setting, network: Network) -> Measured:
        step = step_flops(setting.config)
        numbers = {
            "weights": float(weight_count(network)),
            "step_flops": step,
            "training_flops": step * setting.config.recipe.steps,
        }
        return Measured(numbers, {name: [value] for name, value in numbers.items()})
