"""Which kinds of support exist for a space, for messages that refuse one of them."""

from __future__ import annotations

from typing import Any

from recombine.component import find, kinds
from recombine.spaces.base import Space

FEW = 1000
"""How many combinations are asked for where a kind takes a number and its default would be too long a list."""


def existing(space: Space) -> tuple[str, ...]:
    """The kinds of support that exist for this space as they come, or with a number of combinations."""
    return tuple(kind for kind in kinds("supports") if _exists(kind, space))


def _exists(kind: str, space: Space) -> bool:
    found: Any = find("supports", kind)
    plain: list[dict[str, Any]] = [{}]
    if "number" in found.model_fields:
        plain.append({"number": min(FEW, max(1, space.size // 2))})
    for settings in plain:
        try:
            # In this order: `check` asks for this list where there is an obstacle, and would never end.
            support = found(**settings)
            if support.obstacle(space) is None:
                support.check(space)
                return True
        except ValueError:  # it has settings that must be given, or does not exist as it comes
            continue
    return False


def instead(space: Space) -> str:
    """The kinds that exist for this space, as the end of a message."""
    found = existing(space)
    return f"supports that exist here: {', '.join(found)}" if found else "choose a larger space"
