"""A transformer that fills in the missing word of a sentence; its encoder can be taken over by `comparison`."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array
from pydantic import Field, PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.fill_in import FillIn
from recombine.families.odd_one_out.items import MASK
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.comparison import SentenceEncoder
from recombine.models.layers import Linear


class WordFillerNetwork(Network):
    """The encoder of sentences, and a readout at the gap. Site: `gap`."""

    encoder: SentenceEncoder
    readout: Linear

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        tokens = jnp.round(inputs).astype(jnp.int32)
        gap = edit("gap", jnp.sum(self.encoder.states(tokens) * (tokens == MASK)[..., None], axis=1))
        return self.readout(gap), {"gap": gap}

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        outputs, _ = self.trace(codes[0], inputs.reshape(-1, inputs.shape[-1]))
        return outputs.reshape(*inputs.shape[:2], -1)


class WordFiller(Model):
    """A transformer over the words of a sentence, and a readout of all words at the gap."""

    kind: Literal["word-filler"] = "word-filler"
    reads_code: ClassVar[bool] = False
    reads_tokens: ClassVar[bool] = True
    width: PositiveInt = 64
    """Units of the residual stream."""
    layers: PositiveInt = Field(default=2, le=1000)
    """Number of blocks."""
    heads: PositiveInt = 4
    """Attention heads of each block."""
    vocabulary: PositiveInt = 128
    """The most tokens that sentences may have."""

    @model_validator(mode="after")
    def _heads_fit(self) -> WordFiller:
        if self.width % (2 * self.heads):
            raise ValueError(f"width={self.width} must be a multiple of twice the heads={self.heads}")
        return self

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        if not isinstance(family, FillIn):
            raise BadInput(f"The model 'word-filler' does not fit the family {family.kind!r}.", fix="family=fill-in")
        if family.output_size > self.vocabulary:
            need = family.output_size
            raise BadInput(
                f"The sentences have {need} tokens, and vocabulary={self.vocabulary}.", fix=f"vocabulary={need}"
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> WordFillerNetwork:
        by_encoder, by_readout = jax.random.split(key)
        encoder = SentenceEncoder.draw(self.vocabulary, self.width, self.layers, self.heads, by_encoder)
        return WordFillerNetwork(encoder, Linear.draw(self.width, output_size, by_readout))
