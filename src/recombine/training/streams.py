"""Random streams: every random number of a run comes from a key with a named purpose, so streams are independent."""

from __future__ import annotations

import enum
import hashlib

import jax
from jaxtyping import Array

from recombine.supports.listed.drawing import seed_key


class Stream(enum.IntEnum):
    """The purposes of a run's data. Each has its own keys."""

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
