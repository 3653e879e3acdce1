"""The figures of one run: curves, the map of combinations, decodability by layer, a picture of the task."""

from __future__ import annotations

from collections.abc import Callable

from recombine.errors import RecombineError
from recombine.figures.base import Figure
from recombine.store.store import Store
from recombine.store.stored_run import StoredRun


class NothingToDraw(Exception):
    """Why a run has no such figure, in words for a page."""


def curves(store: Store, run: StoredRun) -> Figure:
    """Scores against steps, on trained and on held-out combinations."""
    from recombine.figures.study import lines

    frame = store.curves_df([run.run_id])
    if frame.empty:
        raise NothingToDraw("This run was not trained, so it has no curves.")
    return lines(
        frame.assign(replicate=0),
        x="step",
        y={"score_in": "trained combinations", "score_held_out": "held-out combinations"},
        name="curves",
        title="Scores during training",
        caption="The score on validation tasks: on combinations of the training set and on held-out ones.",
        log=False,
        x_title="step",
        y_title=run.config.family.metric,
    )


def loss(store: Store, run: StoredRun) -> Figure:
    """The loss against steps."""
    from recombine.figures.study import lines

    frame = store.curves_df([run.run_id])
    frame = frame[frame["loss"] > 0] if "loss" in frame else frame.iloc[:0]
    if frame.empty:
        raise NothingToDraw("This run has no recorded loss.")
    return lines(frame.assign(replicate=0), x="step", y="loss", name="loss", title="Loss", log=False, log_y=True)


def combinations(store: Store, run: StoredRun) -> Figure:
    """The map of the space: single constituents and pairs, trained and held out, with their scores."""
    from recombine.figures.study import combination_map

    frame = store.combinations_df([run.run_id])
    if frame.empty:
        raise NothingToDraw("Its scores by combination were not measured: `--measure scores`.")
    space = run.config.space
    metric = run.config.family.metric
    if not {"error", "spread"} <= set(frame.columns):
        # A score that is no ratio of sums: the mean over combinations takes the place of the pooled score.
        frame = frame.assign(error=1 - frame["score"], spread=1.0)
    labels = [space.label(part) for part in range(space.width)]
    number = run.setting.support.size
    named = {} if metric == "r2" else {"score": metric.replace("_", " ")}
    made = combination_map(
        frame.assign(replicate=0, number=number), labels, title="Which pairs were trained, which held out", **named
    )
    return made


def decodability(store: Store, run: StoredRun) -> Figure:
    """How well the constituents can be read from each layer."""
    from recombine.figures.layers import decodability_by_layer

    frame = store.probes_df([run.run_id])
    if frame.empty:
        raise NothingToDraw("Decodability was not measured: `recombine train ... --measure decodability` measures it.")
    frame = frame.assign(replicate=0, number=run.setting.support.size)
    return decodability_by_layer(frame, title="How decodable are the constituents in each layer?")


def task(store: Store, run: StoredRun) -> Figure:
    """A picture of a task, where the family has one."""
    from recombine.view.task_pictures import task_picture

    try:
        return task_picture(run)
    except RecombineError as error:
        raise NothingToDraw(error.message) from error


FIGURES: dict[str, tuple[str, Callable[[Store, StoredRun], Figure]]] = {
    "curves": ("Scores during training", curves),
    "loss": ("Loss", loss),
    "map": ("Combinations", combinations),
    "decodability": ("Decodability by layer", decodability),
    "task": ("What a task looks like", task),
}
"""The figures of a run in the order of its page, with the titles that stand there until they are drawn."""
