"""One example of a grid world in plain values, to be drawn."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object on the grid."""

    row: int
    column: int
    name: str
    value: float | None = None
    """What it pays; None where objects have no value."""
    wanted: bool = False
    """Whether the task asks for this one."""


@dataclasses.dataclass(frozen=True)
class Episode:
    """A grid, what stands on it, and the way that the teacher takes."""

    walls: tuple[tuple[bool, ...], ...]
    things: tuple[Thing, ...]
    path: tuple[tuple[int, int], ...]
    """The cells (row, column) that the agent visits, the first one included."""
    actions: tuple[str, ...]
    """The teacher's actions, in words."""
    title: str
    """The task in words."""
