"""Generates the images of prompts, and records activations at four points of the schedule."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recombine.errors import BadInput
from recombine.pipelines.folder import AT, TEXT, ImageFolder
from recombine.pipelines.hooks import Conditioning, Recorder, find_blocks, find_conditioning, recording
from recombine.pipelines.prompts.drawing import Prompt

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress
    from recombine.pipelines.loading import LoadedPipeline

TIMES = (0.3, 0.5, 0.7, 1.0)
"""Points of the schedule, as fractions of its steps."""
MOST_FAILURES = 3
"""If this many prompts fail and none has images, the pipeline is at fault."""


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """Settings of the generation of images."""

    images: int = 4
    """Images per prompt."""
    steps: int = 30
    guidance: float | None = None
    """None: the pipeline's default."""
    size: int | None = None
    """Height and width in pixels; None: the pipeline's default."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"images": 1, "steps": 2, "seed": 0}.items():
            if (value := getattr(self, name)) < least:
                raise BadInput(f"{name} must be {least} or more, got {value}.")
        if self.guidance is not None and not math.isfinite(self.guidance):
            raise BadInput(f"The guidance must be a number, got {self.guidance}.")


def generate(
    loaded: LoadedPipeline, prompts: Sequence[Prompt], folder: ImageFolder, settings: GenerationSettings, on: OnProgress
) -> list[str]:
    """Generate the missing images. Returns sentences about failures."""
    missing = [prompt for prompt in prompts if not folder.has(prompt.name)]
    if not missing:
        return []
    blocks = find_blocks(loaded.network)
    failures: list[str] = []
    failed_in_row = 0
    with recording(loaded, blocks) as recorder:
        on("finding where the prompt enters")
        where = _conditioning(loaded, recorder, prompts, settings)
        for done, prompt in enumerate(missing):
            on("generating images", done / len(missing))
            try:
                _make(loaded, recorder, where, prompt, folder, settings)
                failed_in_row = 0
            except BadInput:
                raise
            except Exception as error:
                failures.append(f"{type(error).__name__}: {str(error)[:200]}")
                failed_in_row += 1
                # If other prompts have images, the prompt is at fault, and the rest continues.
                nothing = not any(folder.has(other.name) for other in prompts)
                if nothing and failed_in_row >= min(MOST_FAILURES, len(missing)):
                    raise BadInput(
                        f"The pipeline failed on {failed_in_row} prompts in a row, the last with {failures[-1]}",
                        fix=_advice(error),
                    ) from error
    reasons = "; ".join(dict.fromkeys(failures[:MOST_FAILURES]))
    return [f"{len(failures)} prompts have no images, because the pipeline failed: {reasons}."] if failures else []


def _advice(error: Exception) -> str:
    if "OutOfMemory" in type(error).__name__ or "out of memory" in str(error):
        return "fewer --images-per-prompt, a smaller --size, or --offload"
    return "try the pipeline on one prompt with diffusers alone"


def _conditioning(
    loaded: LoadedPipeline, recorder: Recorder, prompts: Sequence[Prompt], settings: GenerationSettings
) -> Conditioning:
    tried: list[str] = []
    failed: list[str] = []

    def call(prompt: str, steps: int, seed: int) -> Any:
        tried.append(prompt)
        return _call(loaded, prompt, dataclasses.replace(settings, images=1, steps=steps), [seed])

    for attempt in range(MOST_FAILURES):
        first, *others = [prompt for prompt in prompts if prompt.text not in failed] or prompts
        # The most different prompt: from another set, or with other concepts.
        second = max(others, key=lambda other: len(set(other.combination) - set(first.combination)), default=None)
        texts = (first.text, "a house on a hill" if second is None else second.text)
        try:
            return find_conditioning(recorder, texts, call)
        except BadInput:
            raise
        except Exception as error:
            failed.append(tried[-1])
            if attempt == MOST_FAILURES - 1:
                raise BadInput(
                    f"The pipeline failed on the prompt {tried[-1]!r}: {type(error).__name__}: {str(error)[:300]}",
                    fix=_advice(error),
                ) from error
    raise AssertionError


def _make(
    loaded: LoadedPipeline,
    recorder: Recorder,
    where: Conditioning,
    prompt: Prompt,
    folder: ImageFolder,
    settings: GenerationSettings,
) -> None:
    """Generate and store the images of one prompt."""
    texts = [f"{settings.seed}\n{prompt.text}\n{number}" for number in range(settings.images)]
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") for text in texts]
    together = "num_images_per_prompt" in loaded.parameters
    images, flagged, parts = [], [], []
    for batch in [seeds] if together else [[seed] for seed in seeds]:
        recorder.forget()
        result = _call(loaded, prompt.text, dataclasses.replace(settings, images=len(batch)), batch)
        images += list(result.images)
        marks = getattr(result, "nsfw_content_detected", None)
        flagged += [bool(mark) for mark in marks] if marks else [False] * len(batch)
        parts.append(activations(recorder, where, len(batch)))
    if len(images) != settings.images:
        raise ValueError(f"expected {settings.images} images, got {len(images)}")
    # Some pipelines do not encode every prompt again.
    names = [name for name in parts[0] if all(name in part for part in parts)]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in names}
    record = {"prompt": prompt.text, "set": prompt.set, "combination": list(prompt.combination), "seeds": seeds}
    record |= {"flagged": flagged, "arrays": names, "note": where.note}
    folder.write(prompt.name, record, images, arrays)


def activations(recorder: Recorder, where: Conditioning, images: int) -> dict[str, np.ndarray]:
    """The recorded activations at the points of the schedule, with the prompt: one row per image."""
    steps = recorder.steps()
    if not steps:
        raise ValueError("the denoising network was not called")
    points = {time: where.rows(steps[max(1, round(time * len(steps))) - 1], images) for time in TIMES}
    arrays = {
        f"{name}{AT}{time}": call.pooled[name][rows].cpu().numpy()
        for name in points[TIMES[0]][0].pooled
        for time, (call, rows) in points.items()
        if name in call.pooled and len(call.pooled[name]) == call.rows and name not in where.still
    }
    if not arrays:
        raise ValueError("no block gave any output")
    for name, (index, row) in where.encoders.items():
        calls = recorder.encoded.get(name, [])
        if index < len(calls) and row < len(calls[index]):
            arrays[f"{TEXT}{name}"] = np.repeat(calls[index][row].cpu().numpy()[None], images, axis=0)
    return arrays


def _call(loaded: LoadedPipeline, prompt: str, settings: GenerationSettings, seeds: Sequence[int]) -> Any:
    """Call the pipeline with the settings that it accepts."""
    import torch

    wanted: dict[str, Any] = {
        "num_inference_steps": settings.steps,
        "num_images_per_prompt": settings.images,
        # On the CPU: the noise is the same for every device.
        "generator": [torch.Generator("cpu").manual_seed(seed) for seed in seeds],
        "guidance_scale": settings.guidance,
        "height": settings.size,
        "width": settings.size,
    }
    accepted = {name: value for name, value in wanted.items() if value is not None and name in loaded.parameters}
    with torch.inference_mode():
        return loaded.pipe(prompt, **accepted)
