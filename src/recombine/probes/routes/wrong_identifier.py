"""What a network answers when it is told the identifier of another puzzle, or none."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.encodings.puzzle_identifier import PuzzleIdentifier
from recombine.models.base import Network
from recombine.objectives.base import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import at_once, over_tasks
from recombine.training import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream


@dataclasses.dataclass(frozen=True)
class WithIdentifiers:
    """Whether one answer is right with its own identifier, with that of the next puzzle, and with none."""

    objective: Objective
    samples: int
    augmentations: int

    def __call__(self, network: Network, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_data, by_model = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, self.samples)
        codes = jnp.stack([code, jnp.roll(code, self.augmentations), jnp.zeros_like(code)])
        batches = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (3, *leaf.shape)), batch)
        answers = self.objective.evaluate(network, codes, batches, by_model)
        right = (jnp.argmax(answers, axis=-1) == jnp.argmax(batches.targets, axis=-1)) | (batches.mask == 0)
        return dict(zip(("own", "other", "none"), jnp.all(right, axis=-1), strict=True))


class WrongIdentifier(Measurement):
    """The share of held-out grids (test side) that are right with the puzzle's own identifier (`identifier_own`), with that of
    another puzzle in the same version (`identifier_other`), and with none (`identifier_none`)."""

    kind: Literal["wrong-identifier"] = "wrong-identifier"
    summary_names: ClassVar[tuple[str, ...]] = ("identifier_own", "identifier_other", "identifier_none")
    combinations: PositiveInt = 512
    """The largest number of held-out combinations."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if not isinstance(config.encoding, PuzzleIdentifier):
            return Measured({}, {}, refused="The model gets no puzzle identifier (encoding=puzzle-identifier).")
        rows = setting.regions.require("held_out", self.combinations, "test")
        augmentations = getattr(config.family, "augmentations", 1)
        compute = WithIdentifiers(config.objective, config.family.validation_samples, augmentations)
        found = over_tasks(compute, setting, network, rows, Stream.TEST, "held_out", at_once(setting))
        means = {f"identifier_{name}": float(found[name].mean()) for name in ("own", "other", "none")}
        return Measured(means, {name: [value] for name, value in means.items()})
