"""Random streams: every number of a run comes from a key that names its purpose, so no two streams meet."""

from __future__ import annotations

import enum
import hashlib

import jax
from jaxtyping import Array

from recombine.supports.drawing import seed_key


class Stream(enum.IntEnum):
    """What data of a run is for. Each has its own keys; none is the beginning of another."""

    TRAIN = 0
    VALIDATION_IN = 1
    VALIDATION_OUT = 2
    TEST = 3
    PROBE = 4


def named_key(seed: int, name: str) -> Array:
    """The key of a seed for one purpose. Equal seeds with different names are unrelated."""
    salt = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little")
    return jax.random.fold_in(seed_key(seed), salt)


def stream_key(key: Array, stream: Stream, index: int | Array = 0) -> Array:
    """The key of one batch of one stream."""
    return jax.random.fold_in(jax.random.fold_in(key, int(stream)), index)
