"""Records for pages: names from data have their invisible characters written out."""

from __future__ import annotations

import dataclasses
from typing import Any

from recombine.plain import plain


def visible(value: Any) -> Any:
    """A record whose texts have their invisible characters written out."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, tuple):
        return tuple(visible(item) for item in value)
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: visible(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **named)
    return value
