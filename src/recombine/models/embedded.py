"""A network behind an embedder of codes (an embedding or a text encoder) that is trained with it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from recombine.encodings.base import Embedder
from recombine.models.base import Edit, Network, Trace, unedited


class EmbeddedNetwork(Network):
    """Embeds the code once per task; the network behind it sees the result as its code. Site: `reading`."""

    reader: Embedder
    """The embedder. Stored weights are named after this field."""
    network: Network

    def trace(
        self, code: Float[Array, " code"], inputs: Float[Array, "sample feature"], edit: Edit = unedited
    ) -> tuple[Float[Array, "sample output"], Trace]:
        embedded = edit("reading", self.reader(code)[None])
        outputs, sites = self.network.trace(embedded[0], inputs, edit)
        return outputs, {"reading": jnp.broadcast_to(embedded, (len(inputs), embedded.shape[1])), **sites}

    def tasks(
        self, codes: Float[Array, "task code"], inputs: Float[Array, "task sample feature"]
    ) -> Float[Array, "task sample output"]:
        return self.network.tasks(jax.vmap(self.reader)(codes).astype(inputs.dtype), inputs)
