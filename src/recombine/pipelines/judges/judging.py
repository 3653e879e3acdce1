"""Judges all images. Judgements are kept; images without one are judged again next time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recombine.endpoints.asking import reasons
from recombine.pipelines.folder import ImageFolder, JudgementLog
from recombine.pipelines.judges.base import ImageToJudge, Judge, Judgement
from recombine.pipelines.prompts.drawing import Prompt
from recombine.store.files import sha256_of

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress

Judgements = dict[tuple[str, int], Judgement]
"""Judgements by name of the prompt and number of the image."""


def judge_images(
    judge: Judge, prompts: Sequence[Prompt], folder: ImageFolder, on: OnProgress
) -> tuple[Judgements, list[str]]:
    """Judge all existing images that have no judgement yet.

    Args:
        judge: The judge.
        prompts: The prompts of the images.
        folder: The folder of the images. Judgements are stored there.
        on: Called with the progress.

    Returns:
        The judgements, and sentences about images without one.
    """
    log = JudgementLog(folder.path / "judgements" / judge.file)
    held = {} if judge.always_ask else log.read()
    images, flagged = _images(prompts, folder)
    inputs = {(image.prompt, image.number): _inputs(image, judge) for image in images}
    earlier = {key: _known(held.get(key), needed) for key, needed in inputs.items()}
    judgements: Judgements = {key: judgement for key, judgement in earlier.items() if judgement is not None}
    waiting = [image for image in images if (image.prompt, image.number) not in judgements]
    # Images that failed before come last, so that a few bad ones do not block the others.
    waiting.sort(key=lambda image: (image.prompt, image.number) in held)
    if waiting:
        judge.prepare()
    failures: list[str] = []
    left = 0
    for done, image in enumerate(waiting):
        key = (image.prompt, image.number)
        on("judging images", done / len(waiting))
        if judge.unavailable():
            left += 1
            continue
        try:
            judgement = judge.assess(image)
        except Exception as error:  # noqa: BLE001 (a user's judge may raise anything)
            judgement = Judgement(error=f"{type(error).__name__}: {str(error)[:200]}")
        judgements[key] = judgement
        failures += [judgement.error] if judgement.success is None else []
        if not judge.always_ask:
            names = {"prompt": image.prompt, "image": image.number, "judge": judge.name}
            log.add({**names, "asked": inputs[key], **dataclasses.asdict(judgement)})
    ordered = {key: judgements[key] for key in inputs if key in judgements}
    return ordered, _notes(failures, left, flagged, len(images), judge)


def _images(prompts: Sequence[Prompt], folder: ImageFolder) -> tuple[list[ImageToJudge], int]:
    """The images to judge, and the number of images that the pipeline's safety filter blackened."""
    there = [prompt for prompt in prompts if folder.has(prompt.name)]
    made = [(prompt, *mark) for prompt in there for mark in enumerate(folder.manifest(prompt.name)["flagged"])]
    images = [
        ImageToJudge(prompt.name, prompt.text, number, folder.image(prompt.name, number), prompt.questions)
        for prompt, number, flagged in made
        if not flagged
    ]
    return images, len(made) - len(images)


def _inputs(image: ImageToJudge, judge: Judge) -> dict[str, Any]:
    """Everything that a judgement depends on. An earlier judgement is reused only if this is the same."""
    if judge.always_ask:
        return {}
    inputs: dict[str, Any] = {
        "picture": sha256_of(image.path)[:16] if image.path.is_file() else "",
        "questions": [[question.place, question.concept, question.text] for question in image.questions],
    }
    if judge.uses_alternatives:
        others = json.dumps([image.text, *(question.alternatives for question in image.questions)])
        inputs["others"] = hashlib.sha256(others.encode()).hexdigest()[:16]
    return inputs


def _known(record: dict[str, Any] | None, inputs: dict[str, Any]) -> Judgement | None:
    """An earlier judgement; None if it is incomplete, or if its inputs differ."""
    if record is None or record.get("success") is None or record.get("asked") != inputs:
        return None
    scores = tuple(record.get("scores") or ())
    complete = len(scores) in (0, len(inputs["questions"])) and None not in scores
    return Judgement(scores, bool(record["success"])) if complete else None


def _notes(failures: list[str], left: int, flagged: int, images: int, judge: Judge) -> list[str]:
    notes = []
    if failures:
        notes.append(f"{len(failures)} of {images} images have no judgement: {reasons(failures)}. They are left out.")
    if left:
        notes.append(f"{left} more images were not judged and are left out: {judge.unavailable()}.")
    if (failures or left) and not judge.always_ask:
        notes.append("The same command judges only the missing images.")
    if flagged:
        notes.append(f"{flagged} images were blackened by the pipeline's safety filter and are left out.")
    return notes
