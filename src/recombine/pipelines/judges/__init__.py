"""Judges decide whether an image shows what its prompt asks for.

`make_judge` makes one from a specification: human labels in a file, a Python function, CLIP, a local model for visual
question answering, or an endpoint. `judge_images` applies a judge to all images and keeps its judgements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recombine._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

if TYPE_CHECKING:
    from recombine.pipelines.judges.base import (
        THRESHOLD as THRESHOLD,
        FunctionJudge as FunctionJudge,
        ImageToJudge as ImageToJudge,
        Judge as Judge,
        Judgement as Judgement,
        from_scores as from_scores,
        make_judge as make_judge,
    )
    from recombine.pipelines.judges.endpoint import EndpointJudge as EndpointJudge
    from recombine.pipelines.judges.judging import Judgements as Judgements, judge_images as judge_images
    from recombine.pipelines.judges.labels import LabelJudge as LabelJudge
    from recombine.pipelines.judges.local_model import ClipJudge as ClipJudge, VqaJudge as VqaJudge
