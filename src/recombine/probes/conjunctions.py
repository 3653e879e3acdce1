"""Illusory conjunctions: does a network say that there is a red square where red and square belong to different objects?"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.objects import ObjectsTeacher
from recombine.models.base import Network
from recombine.probes.base import Measured, Measurement
from recombine.probes.gallery import shades
from recombine.probes.tasks import over_tasks
from recombine.training import Setting
from recombine.training.streams import Stream

WHERE = ("in", "new_conjunction", "more_objects", "both_new")
"""Trained conjunctions and numbers of objects; held-out conjunctions; more objects than in training; both."""
MEASURES = ("illusory", "missed", "confused", "feature", "untrained_confused")
KEPT = 6
"""Pairs of each kind that are kept for pictures."""


@dataclasses.dataclass(frozen=True)
class PairTask:
    """The answers of two networks to a question about a conjunction, in two scenes with swapped bindings, and about features.

    Both scenes have the same objects' places, background and noise: only the bindings differ.
    """

    def __call__(self, networks: tuple[Network, Network], teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_pair, by_image, by_absent, by_code = jax.random.split(key, 4)
        number, pair = teacher.levels(row)["objects"], teacher.pair(row, by_pair)
        # About the conjunction, the shape and the colour.
        shape, colour = jnp.array([True, True, False]), jnp.array([True, False, True])
        tasks = jax.vmap(teacher.question, in_axes=(None, 0, 0))(row, shape, colour)
        codes = jax.vmap(lambda task: encoder(task, teacher, by_code))(tasks)
        singles = jax.tree.map(lambda leaf: leaf[1:], tasks)
        absent = jax.vmap(lambda task: teacher.scene(task, jnp.zeros((), bool), by_absent))(singles)
        things = jnp.concatenate([jnp.stack([pair.bound, pair.unbound]), absent])
        images = jax.vmap(lambda some: teacher.image(some, number, by_image))(things)
        shown = images[jnp.array([[0, 1], [0, 2], [0, 3]])]
        trained, untrained = networks
        outputs = trained.tasks(codes, shown)
        said = outputs[..., 1] - outputs[..., 0]
        first = untrained.tasks(codes[:1], shown[:1])[0]
        return {
            "bound": said[0, 0],
            "unbound": said[0, 1],
            "untrained": (first[0, 1] - first[0, 0]) - (first[1, 1] - first[1, 0]),
            "feature": jnp.mean(jnp.stack([said[1:, 0] > 0, said[1:, 1] <= 0]).astype(jnp.float32)),
            "images": images[:2],
        }


class Conjunctions(Measurement):
    """Errors of binding on pairs of scenes with the same bag of features and swapped bindings.

    `illusory` is the share of scenes with a red thing and a square, but no red square, in which the network says that there is
    a red square. `missed` is the share of scenes with one in which it says that there is none. `confused` is the share of pairs
    in which the scene without it gets the stronger yes; a network that sees only the bag of features has .5, whatever its bias.
    `feature` is the share of right answers about shape or colour alone. `untrained_confused` is of the network before training.
    Each number is for trained combinations (`_in`), conjunctions that no training scene showed (`_new_conjunction`), more objects
    than any training scene had (`_more_objects`), and both. Scenes have at least two objects.
    """

    kind: Literal["conjunctions"] = "conjunctions"
    draws: PositiveInt = 16
    """The number of pairs of each combination."""

    summary_names: ClassVar[tuple[str, ...]] = tuple(f"{measure}_{where}" for where in WHERE for measure in MEASURES)

    def measure(self, setting: Setting, network: Network) -> Measured:
        teacher = setting.teacher
        if not isinstance(teacher, ObjectsTeacher):
            raise BadInput(
                f"conjunctions needs questions about objects; the family is {setting.config.family.kind!r}.",
                fix="family=objects",
            )
        space = setting.config.space
        every = space.enumerate()
        levels = jax.vmap(teacher.levels)(jnp.asarray(every))
        numbers, shown = np.asarray(levels["objects"]), np.asarray(teacher.shown[levels["shape"], levels["colour"]])
        most = int(numbers[setting.support.contains(every)].max())
        where = np.select(
            [shown & (numbers <= most), numbers <= most, shown], ["in", "new_conjunction", "more_objects"], "both_new"
        )
        several = numbers > 1
        rows, where, numbers = (np.repeat(values[several], self.draws, axis=0) for values in (every, where, numbers))
        networks = network, setting.network()
        drawn = over_tasks(PairTask(), setting, networks, rows, Stream.PROBE, "conjunctions")
        errors = {
            "illusory": drawn["unbound"] > 0,
            "missed": drawn["bound"] <= 0,
            # A tie says nothing about either scene.
            "confused": _confused(drawn["bound"] - drawn["unbound"]),
            "feature": drawn["feature"],
            "untrained_confused": _confused(drawn["untrained"]),
        }
        summary = {
            f"{measure}_{name}": float(np.mean(values[where == name]))
            for name in WHERE
            if (where == name).any()
            for measure, values in errors.items()
        }
        order = np.concatenate([np.flatnonzero(where == name)[:: self.draws][:KEPT] for name in WHERE])
        kept = np.isin(np.arange(len(rows)), order)
        columns: dict[str, list[Any]] = {
            "combination": [space.name(row) for row in rows],
            "where": where.tolist(),
            "objects": numbers.tolist(),
            "bound": drawn["bound"].astype(float).tolist(),
            "unbound": drawn["unbound"].astype(float).tolist(),
            "feature": drawn["feature"].astype(float).tolist(),
        }
        for place, name in enumerate(("image_bound", "image_unbound")):
            columns[name] = [
                shades(pair[place]) if keep else [] for pair, keep in zip(drawn["images"], kept, strict=True)
            ]
        return Measured(summary, columns)


def _confused(difference: np.ndarray) -> np.ndarray:
    """One where the wrong scene gets the stronger yes, a half where both get the same."""
    return (1 - np.sign(difference)) / 2
