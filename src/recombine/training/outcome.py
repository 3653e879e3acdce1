"""A run that ended: its network, its curves, and how it ended."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from recombine import _html
from recombine._show import text_table
from recombine.models.base import Network
from recombine.training.config import RunConfig
from recombine.training.prepare import LoadParent, Setting, no_parent


@dataclasses.dataclass(frozen=True, repr=False)
class Outcome:
    """A run that ended.

    Example:
        ```python
        run = rc.train(config)
        run.measure(rc.probes.Scores()).summary["r2_held_out"]
        ```
    """

    config: RunConfig
    network: Network
    """The trained network."""
    curves: list[dict[str, float]]
    """One record per evaluation: step, loss (mean since the last), score_in, score_held_out (validation streams)."""
    steps: int
    seconds: float
    """Training time without compilation. Runs that were stacked share the time of their stack equally."""
    compile_seconds: float
    """Compilation of the run's program; zero for all but the first run that needs it."""
    reached: bool | None
    """Whether the target was reached; None without a target."""
    failed_at: int | None
    """The step with the first loss that was not finite; None for a sound run."""
    stack_size: int
    """The number of runs that the program trained at once, at the end."""
    earlier_stack_sizes: tuple[int, ...] = ()
    """Earlier numbers, where memory was short on the way and the stack was split."""
    devices: int = 1
    """The number of devices over which the tasks of a batch were spread."""
    parents: LoadParent = no_parent
    """Gives the trained network of a parent."""

    @functools.cached_property
    def setting(self) -> Setting:
        """The run's support, teacher and encoding."""
        return Setting(self.config, self.parents)

    def measure(self, measurement: Any) -> Any:
        """Measure the trained network.

        Args:
            measurement: A component of `recombine.probes`, such as `Scores()`.

        Returns:
            What the measurement gives: a table and a summary.
        """
        return measurement.measure(self.setting, self.network)

    def _title(self) -> str:
        ending = f"{self.steps:,} steps" + (", target reached" if self.reached else "")
        if self.failed_at is not None:
            ending = f"failed at step {self.failed_at}"
        return f"run {self.config.run_id}: {ending} in {self.seconds:.1f} s"

    def _facts(self) -> list[tuple[str, str]]:
        """The settings of the run, and its last scores."""
        rows = setting_rows(self.config)
        if self.curves:
            last = self.curves[-1]
            scores = f"{last['score_in']:.3f} in training, {last['score_held_out']:.3f} held out"
            rows += [(self.config.family.metric, f"{scores} (validation)"), ("loss", f"{last['loss']:.4g}")]
        return rows

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(self._facts())}"

    def _repr_html_(self) -> str:
        return _html.card(self._title(), _html.table(("", ""), self._facts()))


def setting_rows(config: RunConfig) -> list[tuple[str, str]]:
    """The settings of a run, one row each: all components, and the others where they are not the default."""
    values = {name: (getattr(config, name), field.get_default()) for name, field in type(config).model_fields.items()}
    shown = config.components()
    rows = [(name, repr(value)) for name, (value, default) in values.items() if name in shown or value != default]
    line = ", ".join(parent.run_id for parent in config.parents)
    return [(name, line if name == "parents" else text) for name, text in rows]
