"""Models: multilayer perceptrons, hypernetworks, transformers, convolutional networks and a U-Net.

A `Model` is the configuration; `Model.draw` gives a `Network` with fresh weights. `Network.trace` returns the
activations at every named site and lets the caller edit them. `layers` has the attention, norms, rotary embedding, KV
cache, MLP block and convolutions that networks are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.models import layers as layers
    from recombine.models.base import Model as Model, Network as Network
    from recombine.models.comparison import Comparison as Comparison
    from recombine.models.constructed import Constructed as Constructed
    from recombine.models.convnet import Convnet as Convnet
    from recombine.models.cppn import CPPN as CPPN, CPPNNetwork as CPPNNetwork
    from recombine.models.decoder import Decoder as Decoder
    from recombine.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from recombine.models.expert import Expert as Expert, ExpertNetwork as ExpertNetwork
    from recombine.models.hypernetwork import Hypernetwork as Hypernetwork
    from recombine.models.latent_decoder import (
        LatentDecoder as LatentDecoder,
        LatentDecoderNetwork as LatentDecoderNetwork,
    )
    from recombine.models.masked import Masked as Masked, MaskedNetwork as MaskedNetwork
    from recombine.models.mlp import MLP as MLP
    from recombine.models.recursive import Recursive as Recursive, RecursiveNetwork as RecursiveNetwork
    from recombine.models.sequence import SequenceModel as SequenceModel, SequenceNetwork as SequenceNetwork
    from recombine.models.slot_attention import SlotAttention as SlotAttention
    from recombine.models.slot_autoencoder import SlotAutoencoder as SlotAutoencoder
    from recombine.models.syntactic_attention import SyntacticAttention as SyntacticAttention
    from recombine.models.transformer import Transformer as Transformer
    from recombine.models.unet import UNet as UNet
    from recombine.models.word_filler import WordFiller as WordFiller
