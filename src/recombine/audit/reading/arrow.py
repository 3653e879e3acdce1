"""Columns of Arrow as arrays of NumPy, without pandas: `to_numpy` imports it, which takes longer than a small audit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def numbers(column: pa.Array) -> np.ndarray:
    """The numbers of a column; missing ones are NaN.

    Args:
        column: An array of Arrow. Integers and floats are read from its buffers, other types by `to_numpy`.

    Returns:
        An array of the column's type, or of floats if some numbers are missing.

    Example:
        >>> numbers(pa.array([1, None, 3]))
        array([ 1., nan,  3.])
    """
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return column.to_numpy(zero_copy_only=False)
    present, values = column.buffers()
    kind = np.dtype(column.type.to_pandas_dtype())
    end = column.offset + len(column)
    read = np.frombuffer(values, kind, end)[column.offset :] if values is not None else np.zeros(len(column), kind)
    if not column.null_count:
        return read
    missing = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little", count=end)[column.offset :] == 0
    return np.where(missing, np.nan, read)
