"""Spaces and tasks that tests of encodings share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from recombine.families.base import Family, Task, Teacher
from recombine.spaces.base import Space

Drawn = tuple[Teacher, Task]


@pytest.fixture(scope="session")
def tasks() -> Callable[..., Any]:
    """Draws a teacher and so many random tasks of it, stacked."""

    def make(space: Space, family: Family, number: int = 32, seed: int = 0) -> Drawn:
        by_teacher, by_row, by_task = jax.random.split(jax.random.key(seed), 3)
        teacher = family.draw(space, by_teacher)
        rows = jax.vmap(space.sample)(jax.random.split(by_row, number))
        return teacher, jax.vmap(teacher.task)(rows, jax.random.split(by_task, number))

    return make
