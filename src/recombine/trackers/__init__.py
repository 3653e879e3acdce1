"""Trackers: curves, scores, verdicts and figures, also in TensorBoard, Weights & Biases, MLflow or Trackio.

A tracker is optional and only receives. It is no part of a run, so no run's name depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.trackers.base import TrackedRun as TrackedRun, Tracker as Tracker
    from recombine.trackers.mlflow import MLflow as MLflow
    from recombine.trackers.tensorboard import TensorBoard as TensorBoard
    from recombine.trackers.tracking import Tracking as Tracking, trackers_of as trackers_of
    from recombine.trackers.trackio import Trackio as Trackio
    from recombine.trackers.wandb import WandB as WandB
