"""A network behind a reader of codes that is trained with it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Reader
from recombine.models.base import Edit, Network, Trace, unedited


class ReadingNetwork(Network):
    """Reads the code once a task, then answers as the network behind it does."""

    reader: Reader
    network: Network

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        read = edit("reading", self.reader(code)[None])
        outputs, sites = self.network.trace(read[0], inputs, edit)
        return outputs, {"reading": jnp.broadcast_to(read, (len(inputs), read.shape[1])), **sites}

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        return self.network.tasks(jax.vmap(self.reader)(codes).astype(inputs.dtype), inputs)
