"""A picture of a run's task: a grid world with the teacher's path, images, or a graph of steps."""

from __future__ import annotations

import jax
import numpy as np
import pandas as pd

from recombine.errors import BadInput
from recombine.families.sequences.graphs import GraphFamily
from recombine.figures.base import Figure
from recombine.store.stored_run import StoredRun
from recombine.supports.regions import Region

IMAGES = 8
"""Images of each region."""


def task_picture(run: StoredRun) -> Figure:
    """A picture of the tasks of a run; BadInput for families that have none.

    Args:
        run: The run. Its support and teacher are drawn again from its configuration.
    """
    from recombine.design.pictures import episodes

    family = run.config.family
    if isinstance(family, GraphFamily):
        return _graph(run, family)
    if family.targets == "images":
        return _images(run)
    found = episodes(run.config)
    if not found:
        raise BadInput(f"The family {family.kind!r} has no picture of a task.")
    return found[0]


def _images(run: StoredRun) -> Figure:
    """Images as the teacher renders them: of trained combinations, and of held-out ones."""
    from recombine.figures.image_grid import draw_image_grid, image_grid_info
    from recombine.probes.gallery import shades

    setting, space = run.setting, run.config.space
    rows = []
    shown: dict[Region, str] = {"trained": "trained", "held_out": "held out"}
    for region, words in shown.items():
        for place, row in enumerate(np.asarray(setting.regions.rows(region, IMAGES))[:IMAGES]):
            by_task, by_batch = jax.random.split(jax.random.key(place))
            batch = setting.teacher.batch(setting.teacher.task(row, by_task), by_batch, 1)
            image = {"image": shades(np.asarray(batch.targets)[0]), "kind": region, "right": None}
            rows.append({"row": words, "group": "", "place": place, "name": space.name(row)} | image)
    caption = "One rendered image of each combination: of some that are trained, and of some that are held out."
    info = image_grid_info(pd.DataFrame(rows), {str(region): words for region, words in shown.items()}, caption)
    return Figure("task", "What a task looks like", info.caption, draw_image_grid(info))


def _graph(run: StoredRun, family: GraphFamily) -> Figure:
    """The computation of one held-out instance."""
    from recombine.figures.computation_graph import computation_graph_info, draw_computation_graph

    rows = np.asarray(run.setting.regions.rows("held_out", 1))
    if not len(rows):
        raise BadInput("No combination is held out.")
    lead = f"The computation of one held-out instance, {run.config.space.name(rows[0])}."
    info = computation_graph_info(family.graph(rows[0]), caption_lead=lead)
    return Figure("task", "What a task looks like", info.caption, draw_computation_graph(info))
