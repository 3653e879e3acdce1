"""Questions about scenes of several coloured shapes: is there something red, is there a red square?

A scene that has the red square and one that has not have the same bag of features: only which colour goes with which shape
differs. `drawing` places and draws the objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from recombine.errors import BadInput
from recombine.families.base import Batch, Task, Teacher
from recombine.families.classification import ClassificationFamily
from recombine.families.objects.drawing import CELLS, LOOKS, bitmaps, check_values, in_cells
from recombine.families.scenes.rendering import COLOURS, DARK, LIGHT, SHAPES, TINTED
from recombine.spaces import ProductSpace, Space

FACTORS = ("shape", "colour", "objects")
SPACE: Mapping[str, tuple[str, ...]] = {
    "shape": ("disc", "square", "triangle", "cross"),
    "colour": ("red", "green", "blue", "yellow"),
    "objects": ("1", "2", "3", "4", "5"),
}
"""The default space."""
MOST = 5
"""The most objects of a scene."""
CONJUNCTION = 0.5
"""The share of questions about a conjunction. The others are about shape or colour alone, equally often."""

Things = Int[Array, "object 2"]
"""Shape and colour of each object, as levels of the space. Only the first ones are in the scene."""


class Pair(eqx.Module):
    """Two scenes with the same bag of features. Only in the first, one object has the shape and colour asked for."""

    bound: Things
    unbound: Things


class ObjectsTeacher(Teacher):
    """The painter, on a space, with the conjunctions that scenes may show."""

    shown: Bool[Array, "shape colour"]
    """Conjunctions that may be in any scene. Others are only in scenes of combinations that name them."""
    table: Float[Array, "any_shape shift shift side side"]
    """What shapes look like in a cell."""
    space: ProductSpace = eqx.field(static=True)
    noise: float = eqx.field(static=True)

    def task(self, row: Int[Array, " slots"], key: Array) -> Task:
        by_kind, by_feature = jax.random.split(key)
        both = jax.random.bernoulli(by_kind, CONJUNCTION)
        shape = both | jax.random.bernoulli(by_feature)
        return self.question(row, shape, both | ~shape)

    def question(self, row: Int[Array, " slots"], shape: Bool[Array, ""], colour: Bool[Array, ""]) -> Task:
        """The task that asks for the shape, the colour or both of a combination. How many objects there are is not said."""
        asked = {"shape": shape, "colour": colour, "objects": jnp.zeros((), bool)}
        coefficients = jnp.stack([asked[name] for name, _ in self.space.factors]).astype(jnp.float32)
        vector = jnp.zeros(self.space.width).at[row].set(coefficients)
        return Task(row, coefficients, vector)

    def levels(self, row: Int[Array, " slots"]) -> dict[str, Int[Array, ""]]:
        """Shape and colour as levels of the space, and how many objects there are."""
        levels = {
            name: row[slot] - offset
            for slot, ((name, _), offset) in enumerate(zip(self.space.factors, self.space.offsets, strict=True))
        }
        return levels | {"objects": self._numbers("objects")[levels["objects"]]}

    def _numbers(self, factor: str) -> Int[Array, " level"]:
        """What the levels of a factor stand for: numbers in SHAPES or COLOURS, or numbers of objects."""
        known = {"shape": SHAPES, "colour": tuple(COLOURS)}
        values = dict(self.space.factors)[factor]
        return jnp.array([known[factor].index(value) if factor in known else int(value) for value in values])

    def pair(self, row: Int[Array, " slots"], key: Array) -> Pair:
        """Two scenes of a combination with equal features and swapped bindings.

        A scene of one object has no such partner: the other scene then has an object with one of the two features.
        """
        # One draw for everything: many small ones take long to compile.
        numbers = jax.random.uniform(key, (MOST,))
        level = self.levels(row)
        shape, colour = level["shape"], level["colour"]
        others = (jnp.arange(self.shown.shape[0]) != shape)[:, None] & (jnp.arange(self.shown.shape[1]) != colour)
        good = self.shown & self.shown[:, colour][:, None] & self.shown[shape] & others
        partner = _picked(numbers[:1], good)[0]
        asked = jnp.stack([shape, colour])
        bystanders = _picked(numbers[1 : MOST - 1], self.shown.at[shape, colour].set(False))
        swapped = jnp.stack([jnp.stack([shape, partner[1]]), jnp.stack([partner[0], colour])])
        alone = swapped[(numbers[-1] < 0.5).astype(int)][None]
        swapped = jnp.where(level["objects"] == 1, jnp.concatenate([alone, alone]), swapped)
        return Pair(jnp.concatenate([asked[None], partner[None], bystanders]), jnp.concatenate([swapped, bystanders]))

    def scene(self, task: Task, present: Bool[Array, ""], key: Array) -> Things:
        """A scene in which what is asked for is present, or is not."""
        by_pair, by_absent = jax.random.split(key)
        level, asked = self.levels(task.combination), self._asked(task)
        pair = self.pair(task.combination, by_pair)
        shape_gone = self.shown & (jnp.arange(self.shown.shape[0]) != level["shape"])[:, None]
        colour_gone = self.shown & (jnp.arange(self.shown.shape[1]) != level["colour"])
        gone = jnp.where(asked["shape"], shape_gone, colour_gone)
        absent = _picked(jax.random.uniform(by_absent, (MOST,)), gone)
        other = jnp.where(asked["shape"] & asked["colour"], pair.unbound, absent)
        return jnp.where(present, pair.bound, other)

    def _asked(self, task: Task) -> dict[str, Bool[Array, ""]]:
        return {name: task.coefficients[slot] > 0 for slot, (name, _) in enumerate(self.space.factors)}

    def image(self, things: Things, number: Int[Array, ""], key: Array) -> Float[Array, " pixel"]:
        """Paint the first objects of a list: rows, columns and channels as one vector, about -1 to 1."""
        by_look, by_noise = jax.random.split(key)
        look, tints, shade = jnp.split(jax.random.uniform(by_look, (LOOKS + 3 * MOST + 1,)), (LOOKS, LOOKS + 3 * MOST))
        inks = jnp.array(list(COLOURS.values()))[self._numbers("colour")[things[:, 1]]]
        inks = inks + TINTED * (2 * tints.reshape(MOST, 3) - 1)
        background = DARK + (LIGHT - DARK) * shade[0]
        image = in_cells(self.table, self._numbers("shape")[things[:, 0]], inks, number, background, look)
        return (2 * image - 1 + self.noise * jax.random.normal(by_noise, image.shape)).ravel()

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        number = self.levels(task.combination)["objects"]

        def example(key: Array) -> tuple[Array, Array]:
            by_answer, by_scene, by_image = jax.random.split(key, 3)
            present = jax.random.bernoulli(by_answer)
            things = self.scene(task, present, by_scene)
            return self.image(things, number, by_image), jax.nn.one_hot(present.astype(int), 2)

        images, answers = jax.vmap(example)(jax.random.split(key, samples))
        return Batch(images, answers, jnp.ones(samples))


def _picked(numbers: Float[Array, " thing"], allowed: Bool[Array, "shape colour"]) -> Things:
    """The conjunctions that random numbers between 0 and 1 pick from those that are allowed, all equally likely."""
    count = jnp.cumsum(allowed.ravel())
    picked = jnp.argmax(count > jnp.floor(numbers * count[-1])[:, None], axis=1)
    return jnp.stack([picked // allowed.shape[1], picked % allowed.shape[1]], axis=1)


class Objects(ClassificationFamily):
    """Answer yes or no: is there a red square (something red, a square) among one to five objects?

    A combination is a shape, a colour and a number of objects. Half of the questions are about the conjunction. Scenes with
    the answers yes and no are equally frequent, and for conjunctions they have the same bag of features. The number of
    objects is not said. With the support `few-objects`, conjunctions that are held out are in no training scene.
    """

    kind: Literal["objects"] = "objects"
    defaults: ClassVar[Mapping[str, Any]] = {
        "space": {"kind": "product", "factors": SPACE},
        "support": {"kind": "few-objects", "conjunctions": 2},
        "model": "slot-attention",
        "objective": "classification",
        "recipe": {"kind": "fast", "tasks": 64, "samples": 2, "steps": 1500},
        "validation_tasks": 32,
        "eval_every": 250,
    }
    pixels: int = Field(default=24, ge=12, multiple_of=12)
    """Pixels along each side."""
    noise: float = Field(default=0.05, ge=0)
    """The standard deviation of the noise on each channel of each pixel; channels go from -1 to 1."""

    def check(self, space: Space) -> None:
        given = dict(space.factors) if isinstance(space, ProductSpace) else {}
        if set(given) != set(FACTORS) or min(len(given["shape"]), len(given["colour"])) < 3:
            raise BadInput(
                f"The family objects needs the factors {', '.join(FACTORS)}, with at least three shapes and colours. Got "
                f"{space.title}.",
                fix="leave the space out: the family brings one",
            )
        known = {"shape": SHAPES, "colour": tuple(COLOURS), "objects": tuple(str(n + 1) for n in range(MOST))}
        check_values(given, known)

    def draw(self, space: Space, key: Array) -> ObjectsTeacher:
        assert isinstance(space, ProductSpace)
        shape, colour = (len(dict(space.factors)[name]) for name in ("shape", "colour"))
        return self.draw_within(space, jnp.ones((shape, colour), bool), key)

    def draw_within(self, space: Space, structure: Any, key: Array) -> ObjectsTeacher:
        self.check(space)
        assert isinstance(space, ProductSpace)
        return ObjectsTeacher(structure, jnp.asarray(bitmaps(self.pixels // CELLS)), space, self.noise)

    @property
    def input_size(self) -> int:
        return 3 * self.pixels**2

    @property
    def output_size(self) -> int:
        return 2

    @property
    def horizon(self) -> int:
        return 1
