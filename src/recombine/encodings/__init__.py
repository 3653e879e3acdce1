"""Encodings: how a model is given the combination of a task, as numbers, tokens, sentences or examples.

An `Encoding` is the configuration; `Encoding.draw` gives an `Encoder`, which is fixed. Where codes are symbols, an
`Embedder` that is trained with the model turns them into features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.encodings.base import Embedder as Embedder, Encoder as Encoder, Encoding as Encoding
    from recombine.encodings.captions import Captions as Captions
    from recombine.encodings.few_shot import FewShot as FewShot
    from recombine.encodings.identity import Identity as Identity
    from recombine.encodings.interval_shuffle import IntervalShuffle as IntervalShuffle
    from recombine.encodings.invertible import Invertible as Invertible
    from recombine.encodings.orthogonal import Orthogonal as Orthogonal
    from recombine.encodings.prompt import Prompt as Prompt
    from recombine.encodings.puzzle_identifier import PuzzleIdentifier as PuzzleIdentifier
    from recombine.encodings.sentences import Sentences as Sentences
    from recombine.encodings.token_embedding import TokenEmbedding as TokenEmbedding
    from recombine.encodings.tokens import Tokens as Tokens
    from recombine.encodings.unsaid import Unsaid as Unsaid
