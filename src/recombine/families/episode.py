"""One episode of a grid world as plain values, for figures."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object on the grid."""

    row: int
    column: int
    name: str
    value: float | None = None
    """Its reward; None where objects have no value."""
    wanted: bool = False
    """Whether the task asks for this one."""


@dataclasses.dataclass(frozen=True)
class Episode:
    """A grid, the objects on it, and the path of the teacher."""

    walls: tuple[tuple[bool, ...], ...]
    things: tuple[Thing, ...]
    path: tuple[tuple[int, int], ...]
    """The cells (row, column) that the agent visits, with the first."""
    actions: tuple[str, ...]
    """The teacher's actions, in words."""
    title: str
    """The task in words."""
