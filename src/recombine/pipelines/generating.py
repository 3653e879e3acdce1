"""Images of prompts, with what the pipeline had inside at four points of its schedule."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recombine.errors import BadInput
from recombine.pipelines.blocks import find_blocks
from recombine.pipelines.conditioning import Conditioning, find_conditioning
from recombine.pipelines.drawing import Prompt
from recombine.pipelines.folder import AT, TEXT, Folder
from recombine.pipelines.recording import Recorder, recording

if TYPE_CHECKING:
    from recombine.audit.audit import On
    from recombine.pipelines.loading import Loaded

TIMES = (0.3, 0.5, 0.7, 1.0)
"""Shares of the schedule."""
MOST_FAILURES = 3
"""So many prompts may fail, with no images of others, before it is the pipeline's fault."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How images are made."""

    images: int = 4
    """For each prompt."""
    steps: int = 30
    guidance: float | None = None
    """None: what the pipeline has of its own."""
    size: int | None = None
    """Pixels of an edge; None: what the pipeline has of its own."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("images", self.images, 1),
            ("steps", self.steps, 2),
            ("seed", self.seed, 0),
        ):
            if value < least:
                raise BadInput(f"{name} must be {least} or more, got {value}.")
        if self.guidance is not None and not math.isfinite(self.guidance):
            raise BadInput(f"The guidance must be a number, got {self.guidance}.")


def generate(
    loaded: Loaded, prompts: Sequence[Prompt], folder: Folder, settings: Settings, on: On
) -> list[str]:
    """Makes the images that are missing; returns sentences about what failed."""
    missing = [prompt for prompt in prompts if not folder.has(prompt.name)]
    if not missing:
        return []
    blocks = find_blocks(loaded.network)
    failures: list[str] = []
    row = 0
    with recording(loaded, blocks) as recorder:
        on("finding where the prompt enters")
        where = _conditioning(loaded, recorder, prompts, settings)
        for done, prompt in enumerate(missing):
            on("making images", done / len(missing))
            try:
                _make(loaded, recorder, where, prompt, folder, settings)
                row = 0
            except BadInput:
                raise
            except Exception as error:
                failures.append(f"{type(error).__name__}: {str(error)[:200]}")
                row += 1
                # Where others have images it is the prompt's fault, and the rest goes on.
                nothing = not any(folder.has(one.name) for one in prompts)
                if nothing and row >= min(MOST_FAILURES, len(missing)):
                    raise BadInput(
                        f"The pipeline failed on {row} prompts in a row, the last with {failures[-1]}",
                        fix=_mend(error),
                    ) from error
    told = "; ".join(dict.fromkeys(failures[:MOST_FAILURES]))
    return [f"{len(failures)} prompts have no images, as the pipeline failed: {told}."] if failures else []


def _mend(error: Exception) -> str:
    if "OutOfMemory" in type(error).__name__ or "out of memory" in str(error):
        return "fewer --images-per-prompt, a smaller --size, or --offload"
    return "try the pipeline on one prompt with diffusers alone"


def _conditioning(
    loaded: Loaded, recorder: Recorder, prompts: Sequence[Prompt], settings: Settings
) -> Conditioning:
    failed: list[str] = []

    def call(prompt: str, steps: int, seed: int) -> Any:
        asked = dataclasses.replace(settings, images=1, steps=steps)
        failed.append(prompt)
        result = _call(loaded, prompt, asked, [seed])
        failed.pop()
        return result

    for number in range(MOST_FAILURES):
        first, *others = [one for one in prompts if one.text not in failed] or prompts
        # The most different ones that there are: another set, or other concepts.
        second = max(others, key=lambda one: len(set(one.combination) - set(first.combination)), default=None)
        texts = (first.text, "a house on a hill" if second is None else second.text)
        try:
            return find_conditioning(recorder, texts, call)
        except BadInput:
            raise
        except Exception as error:
            if number == MOST_FAILURES - 1:
                told = failed[-1] if failed else first.text
                raise BadInput(
                    f"The pipeline failed on the prompt {told!r}: {type(error).__name__}: {str(error)[:300]}",
                    fix=_mend(error),
                ) from error
    raise AssertionError


def _make(
    loaded: Loaded,
    recorder: Recorder,
    where: Conditioning,
    prompt: Prompt,
    folder: Folder,
    settings: Settings,
) -> None:
    """The images of one prompt."""
    seeds = [_seed(settings.seed, prompt.text, number) for number in range(settings.images)]
    together = "num_images_per_prompt" in loaded.parameters
    images: list[Any] = []
    flagged: list[bool] = []
    parts: list[dict[str, np.ndarray]] = []
    for some in [seeds] if together else [[seed] for seed in seeds]:
        recorder.forget()
        result = _call(loaded, prompt.text, dataclasses.replace(settings, images=len(some)), some)
        images += list(result.images)
        marks = getattr(result, "nsfw_content_detected", None)
        flagged += [bool(one) for one in marks] if marks else [False] * len(some)
        parts.append(taken(recorder, where, len(some)))
    if len(images) != settings.images:
        raise ValueError(f"{settings.images} images were asked for, {len(images)} came")
    # Not every pipeline encodes every prompt anew.
    names = [name for name in parts[0] if all(name in one for one in parts)]
    arrays = {name: np.concatenate([one[name] for one in parts]) for name in names}
    record = {
        "prompt": prompt.text,
        "set": prompt.set,
        "combination": list(prompt.combination),
        "seeds": seeds,
        "flagged": flagged,
        "arrays": names,
        "note": where.note,
    }
    folder.write(prompt.name, record, images, arrays)


def taken(recorder: Recorder, where: Conditioning, images: int) -> dict[str, np.ndarray]:
    """From all calls those at the points of the schedule, with the prompt: a row for each image."""
    steps = recorder.steps()
    if not steps:
        raise ValueError("the denoising network was not called")
    points = {time: where.rows(steps[max(1, round(time * len(steps))) - 1], images) for time in TIMES}
    found = {
        f"{name}{AT}{time}": call.pooled[name][rows].cpu().numpy()
        for name in points[TIMES[0]][0].pooled
        for time, (call, rows) in points.items()
        if name in call.pooled and len(call.pooled[name]) == call.rows and name not in where.still
    }
    if not found:
        raise ValueError("no block gave out anything")
    for name, (place, row) in where.encoders.items():
        calls = recorder.encoded.get(name, [])
        if place < len(calls) and row < len(calls[place]):
            one = calls[place][row].cpu().numpy()
            found[f"{TEXT}{name}"] = np.repeat(one[None], images, axis=0)
    return found


def _call(loaded: Loaded, prompt: str, settings: Settings, seeds: Sequence[int]) -> Any:
    """Asks the pipeline, with those settings that it has."""
    import torch

    wanted: dict[str, Any] = {
        "num_inference_steps": settings.steps,
        "num_images_per_prompt": settings.images,
        # On the CPU, so that the noise is the same on every device.
        "generator": [torch.Generator("cpu").manual_seed(seed) for seed in seeds],
        "guidance_scale": settings.guidance,
        "height": settings.size,
        "width": settings.size,
    }
    given = {name: value for name, value in wanted.items() if value is not None and name in loaded.parameters}
    with torch.inference_mode():
        return loaded.pipe(prompt, **given)


def _seed(seed: int, prompt: str, number: int) -> int:
    digest = hashlib.sha256(f"{seed}\n{prompt}\n{number}".encode()).digest()
    return int.from_bytes(digest[:7], "big")
