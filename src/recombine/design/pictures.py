"""Pictures of a family's examples, for reports."""

from __future__ import annotations

import jax
import numpy as np

from recombine.figures.base import Figure
from recombine.figures.episode import EpisodeObject, draw_episode, episode_info
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

CAPTION = (
    "One example, drawn by the family: walls are dark, objects carry their names, and the numbers on the path are the steps "
    "of the teacher, whose actions are the labels."
)


def episodes(config: RunConfig, seed: int = 0) -> list[Figure]:
    """An episode of one of the run's combinations; none for families that have no picture."""
    setting = Setting(config)
    by_row, by_task, by_episode = jax.random.split(jax.random.key(seed), 3)
    task = setting.teacher.task(config.space.sample(by_row), by_task)
    found = setting.teacher.episode(task, by_episode)
    if found is None:
        return []
    things = [EpisodeObject(thing.row, thing.column, thing.name, thing.value) for thing in found.things]
    # The last action (to end, to interact) moves nothing.
    path = [*found.path, *[found.path[-1]] * (len(found.actions) + 1 - len(found.path))]
    info = episode_info(np.array(found.walls), things, path, found.actions, found.title, CAPTION)
    return [Figure(f"episode_{config.family.kind}", "What a task looks like", info.caption, draw_episode(info))]
