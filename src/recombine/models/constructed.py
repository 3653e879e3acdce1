"""The theorem's network: an ordinary MLP whose weights are computed from the teacher's, not learned."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family, Teacher
from recombine.families.hyperteacher import Hyperteacher, HyperteacherTeacher
from recombine.models.base import Model, Network
from recombine.models.layers import Linear
from recombine.models.mlp import MLPNetwork


class Constructed(Model):
    """Two hidden layers that approximate a hyperteacher of one hidden layer, for every combination at once.

    A pre-activation of the teacher is a sum of products x_i w_hi(z), with w linear in z. A product is
    ((x + w)^2 - (x - w)^2) / 4, and a square is interpolated by `knots` ReLUs. So the first layer forms the squares (and
    passes the teacher's biases on, one unit each), the second applies the teacher's ReLU, the readout is the teacher's.

    The number of neurons does not depend on the number of modules; the number of weights is linear in it. The network reads
    the task vector, so it needs the identity encoding.
    """

    kind: Literal["constructed"] = "constructed"
    knots: int = Field(default=8, ge=2, multiple_of=2)
    """ReLUs of each square, an even number. The error falls with its square."""

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if encoding.kind != "identity":
            raise BadInput(
                f"The constructed model reads the task vector itself; the encoding is {encoding.kind!r}.",
                fix="encoding=identity",
            )
        if not isinstance(family, Hyperteacher) or family.layers != 1:
            raise BadInput(
                f"The constructed model is for the hyperteacher with one hidden layer; the family is {family!r}.",
                fix="family=hyperteacher family.layers=1",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        raise BadInput(
            "The constructed model has no random weights: it is built from a teacher.",
            fix="use it in a run (model=constructed), or call build with a drawn hyperteacher",
        )

    def build(self, teacher: Teacher, code_size: int, input_size: int, output_size: int, key: Array) -> MLPNetwork:
        known = self._known(teacher)
        if code_size != known.space.width:
            raise BadInput(
                f"The constructed model reads the task vector, {known.space.width} numbers; the code has {code_size}.",
                fix="encoding=identity",
            )
        (modules,), scale = known.shared, known.space.slots**-0.5
        reach = _reach(known)
        step, half = 2 * reach / self.knots, self.knots // 2
        weights = scale * modules.weights.transpose(0, 2, 1)  # module, hidden, feature
        hidden, features = weights.shape[1:]
        # Units of the first layer: (hidden, feature, plus or minus, side, knot), side * (x +- w) - knot * step.
        units = (hidden, features, 2, 2, half)
        sign, side = jnp.array([1.0, -1.0]).reshape(2, 1, 1), jnp.array([1.0, -1.0]).reshape(2, 1)
        of_code = jnp.broadcast_to(weights[..., None, None, None] * sign * side, (code_size, *units))
        of_input = jnp.broadcast_to(
            jnp.eye(features).reshape(features, 1, features, 1, 1, 1) * side, (features, *units)
        )
        offsets = jnp.broadcast_to(-step * jnp.arange(half), units)
        # From knot to knot the slope of s^2 grows by 2 steps; at zero each side begins with half of that.
        height = step * jnp.where(jnp.arange(half) == 0, 1.0, 2.0)
        product = jnp.broadcast_to(sign * height / 4, units[1:]).reshape(1, -1, 1)
        onto = jnp.eye(hidden)[:, None] * product
        # The teacher's biases are linear in z. Lifted above zero, a ReLU leaves them as they are.
        biases = scale * modules.biases
        lift = known.space.slots * jnp.max(jnp.abs(biases))
        first = jnp.concatenate([of_code.reshape(code_size, -1), of_input.reshape(features, -1)])
        passed = jnp.concatenate([biases, jnp.zeros((features, hidden))])
        return MLPNetwork(
            (
                Linear(
                    jnp.concatenate([first, passed], axis=1), jnp.append(offsets.reshape(-1), jnp.full(hidden, lift))
                ),
                Linear(jnp.concatenate([onto.reshape(-1, hidden), jnp.eye(hidden)]), jnp.full(hidden, -lift)),
                Linear(known.readout, jnp.zeros(known.readout.shape[1])),
            )
        )

    def bound(self, teacher: Teacher) -> float:
        """The largest error of the network on any task and input, up to rounding.

        An interpolated square lies above the true one by at most (reach / knots)^2, so the difference of two is as near,
        and a product is off by a quarter of it. Errors add over the inputs, pass the ReLU, and are weighted by the readout.
        """
        known = self._known(teacher)
        product = (float(_reach(known)) / self.knots) ** 2 / 4
        return float(np.abs(np.asarray(known.readout)).sum(0).max()) * known.shape.inputs * product

    def widths(self, teacher: Teacher) -> tuple[int, int]:
        """The units of the two hidden layers. They do not depend on the number of modules."""
        shape = self._known(teacher).shape
        return 2 * shape.hidden * shape.inputs * self.knots + shape.hidden, shape.hidden

    def neurons(self, teacher: Teacher) -> int:
        """All hidden units."""
        return sum(self.widths(teacher))

    def weights(self, teacher: Teacher) -> int:
        """All weights and biases: linear in the number of modules."""
        known = self._known(teacher)
        sizes = (known.space.width + known.shape.inputs, *self.widths(known), known.shape.outputs)
        return sum((features + 1) * units for features, units in itertools.pairwise(sizes))

    def _known(self, teacher: Teacher) -> HyperteacherTeacher:
        """The teacher, if this is one that the construction is for."""
        # Not a subclass either: its modules may be composed in another way.
        if type(teacher) is not HyperteacherTeacher or teacher.shape.layers != 1:
            shape = getattr(teacher, "shape", None)
            raise BadInput(
                "The constructed model is for the hyperteacher with one hidden layer; this is a "
                f"{type(teacher).__name__}{f' of {shape!r}' if shape else ''}.",
                fix="family=hyperteacher family.layers=1",
            )
        return teacher


def _reach(teacher: HyperteacherTeacher) -> Float[Array, ""]:
    """The largest |x +- w(z)|: |x| is at most 1, and z has at most K coefficients, each at most 1.

    By the largest weight of any module, so that more modules of the same law do not widen it.
    """
    (modules,) = teacher.shared
    return 1 + math.sqrt(teacher.space.slots) * jnp.max(jnp.abs(modules.weights))
