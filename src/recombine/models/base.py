"""Base classes of models: the configuration and the drawn network, with its trace of activations."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.component import Component
from recombine.encodings.base import Embedder, Encoding
from recombine.errors import BadInput
from recombine.families.base import Family, Teacher, describe

Code = Float[Array, " code"]
Inputs = Float[Array, "sample feature"]
Outputs = Float[Array, "sample output"]
"""The code of one task, and the inputs and outputs of its examples."""
Codes = Float[Array, "task code"]
TaskInputs = Float[Array, "task sample feature"]
TaskOutputs = Float[Array, "task sample output"]
"""The same of several tasks."""

Trace = dict[str, Float[Array, "sample _"]]
"""Activations by the name of their site, in the order of the computation. Sites may have any width."""
Traced = tuple[Outputs, Trace]

Edit = Callable[[str, Float[Array, "sample _"]], Float[Array, "sample _"]]
"""A function of a site's name and activations; the network continues with the activations that it returns."""


def unedited(site: str, values: Float[Array, "sample _"]) -> Float[Array, "sample _"]:
    """The edit that changes nothing."""
    return values


class Network(eqx.Module):
    """A drawn model. Its functions see one task: a code and several inputs."""

    @abc.abstractmethod
    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        """The outputs, and the activations at every site.

        Args:
            code: The task, as its encoding gives it.
            inputs: The inputs of several examples.
            edit: Called at every site in turn. Swap test, erasure and patching are edits.

        Returns:
            The outputs, and the edited activations by site.
        """

    def __call__(self, code: Code, inputs: Inputs) -> Outputs:
        """The outputs. Compiled code keeps nothing of the trace."""
        return self.trace(code, inputs)[0]

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        """The outputs for many tasks at once: the function that is trained.

        A model overrides it where another form than vmap is faster.
        """
        return jax.vmap(self)(codes, inputs)

    def advanced(self, done: Float[Array, ""] | float) -> Network:
        """The network after a step, given the share of training that is done: for what changes on a schedule, not by a gradient."""
        return self

    def penalty(self) -> Float[Array, ""] | None:
        """What a step minimises besides the loss, such as the size of a mask; None for nothing."""
        return None

    def __repr__(self) -> str:
        return describe(self)


class EmbeddedNetwork(Network):
    """A network behind an embedder that is trained with it. A code is embedded once per task. Site: `reading`."""

    reader: Embedder
    """The embedder. Stored weights are named after this field."""
    network: Network

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        embedded = edit("reading", self.reader(code)[None])
        outputs, sites = self.network.trace(embedded[0], inputs, edit)
        return outputs, {"reading": jnp.broadcast_to(embedded, (len(inputs), embedded.shape[1])), **sites}

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        return self.network.tasks(jax.vmap(self.reader)(codes).astype(inputs.dtype), inputs)

    def advanced(self, done: Float[Array, ""] | float) -> Network:
        return EmbeddedNetwork(self.reader, self.network.advanced(done))

    def penalty(self) -> Float[Array, ""] | None:
        return self.network.penalty()


class Model(Component, abc.ABC):
    """The configuration of a model."""

    trained: ClassVar[tuple[str, ...]] = ()
    """Names of the weights that are trained unless the run says otherwise; empty for all."""
    autoregressive: ClassVar[bool] = False
    """Whether it answers in tokens, one after another (`SequenceNetwork`)."""
    reads_code: ClassVar[bool] = True
    """Whether it uses the code of a task. Models of families whose inputs show the task need not."""
    reads_inputs: ClassVar[bool] = True
    """Whether its outputs depend on the inputs. A model that writes an answer without seeing its own tokens need not."""
    reads_tokens: ClassVar[bool] = False
    """Whether its inputs are numbers of tokens."""

    def stack_size(self) -> int:
        """How many runs of this model one program steps at once. More than 1 only where stacking is faster."""
        return 1

    def reuse(self) -> int:
        """How often one output uses each weight. More than 1 where layers share weights: an estimate of time needs it."""
        return 1

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        """Raise BadInput if this model does not fit a family, an encoding or the number of examples per task."""
        return

    @abc.abstractmethod
    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        """A network with fresh weights.

        Args:
            code_size: Numbers in the code of a task.
            input_size: Features of one input.
            output_size: Numbers in one output.
            key: Of the random numbers.
        """

    def build(self, teacher: Teacher, code_size: int, input_size: int, output_size: int, key: Array) -> Network:
        """The network before training. Only a model that is constructed from the teacher uses the teacher."""
        return self.draw(code_size, input_size, output_size, key)

    def inherit(self, network: Network, parents: Sequence[Network]) -> Network:
        """The network of a run with parents, before its first step.

        By default it is that of the only parent. A model that makes something else of its parents overrides this.

        Args:
            network: With fresh weights, and the embedder of the encoding if it has one.
            parents: The trained networks of the parents.

        Returns:
            A network with the structure and shapes of `network`.
        """
        if len(parents) != 1:
            fix = "give one parent"
            raise BadInput(
                f"The model {self.kind!r} goes on with the weights of one run, and {len(parents)} are given.", fix=fix
            )
        if differ := differences(network, parents[0]):
            fix = "give the run the model, the space, the family and the encoding of its parent, or another parent"
            raise BadInput(f"The weights of the parent do not fit: {differ}.", fix=fix)
        return parents[0]


def leaf_name(path: tuple[Any, ...]) -> str:
    """The name of a leaf: its path with dots, such as `layers.0.weight`."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def differences(network: Network, other: Network) -> str:
    """The first leaf in which two networks differ in name, shape or type, in words; empty if there is none."""
    ours, others = (
        {
            leaf_name(path): (leaf.shape, str(leaf.dtype))
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
            if hasattr(leaf, "shape")
        }
        for tree in (network, other)
    )
    for name in [*ours, *(name for name in others if name not in ours)]:
        if ours.get(name) != others.get(name):
            own, theirs = (
                f"{found[name][1]}{list(found[name][0])}" if name in found else "nothing" for found in (ours, others)
            )
            return f"{name} is {theirs} in the parent and {own} here"
    return ""
