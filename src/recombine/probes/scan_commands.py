"""Whether a network answers given commands of SCAN."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.scan import Scan
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.scores import ScoreTask
from recombine.probes.tasks import at_once, over_tasks
from recombine.spaces.scan import language
from recombine.training import RunConfig, Setting
from recombine.training.streams import Stream


class ScanCommands(Measurement):
    """Exact match (0 or 1) of each command, whether it was trained or not."""

    kind: Literal["scan-commands"] = "scan-commands"
    commands: tuple[str, ...] = Field(default=("jump",), min_length=1)
    """The commands, in words."""

    def summary_columns(self, config: RunConfig) -> frozenset[str]:
        return frozenset(self._names())

    def _names(self) -> list[str]:
        return [f"right_{command.replace(' ', '_')}" for command in self.commands]

    def measure(self, setting: Setting, network: Network) -> Measured:
        family = setting.config.family
        if not isinstance(family, Scan):
            raise BadInput(
                f"scan-commands measures runs of SCAN; this one has the family {family.kind!r}.", fix="family=scan"
            )
        rows = np.stack([language.parse(command) for command in self.commands])
        compute = ScoreTask(family, setting.config.objective, 1)
        # The batch size of `scores`, so that both share one compiled program.
        scores = over_tasks(compute, setting, network, rows, Stream.TEST, "commands", at_once(setting))
        return Measured(dict(zip(self._names(), scores["whole"].astype(float).tolist(), strict=True)), {})
