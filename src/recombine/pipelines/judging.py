"""Every image before the judge; what was answered is kept, what was not is asked again next time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recombine.pipelines.drawing import Prompt
from recombine.pipelines.folder import Folder, Judgements
from recombine.pipelines.judge import Answer, Judge, Shown
from recombine.store.files import sha256_of

if TYPE_CHECKING:
    from recombine.audit.audit import On

Answers = dict[tuple[str, int], Answer]
"""By name of the prompt and number of the image."""


def judge_images(
    judge: Judge, prompts: Sequence[Prompt], folder: Folder, on: On
) -> tuple[Answers, list[str]]:
    """What the judge says of all images that are there, and sentences about what it did not say."""
    kept = Judgements(folder.path / "judgements" / judge.file)
    held = {} if judge.fresh else kept.read()
    shown, flagged = _shown(prompts, folder)
    found: Answers = {}
    asked = {(one.prompt, one.number): _asked(one, judge) for one in shown}
    for one in shown:
        known = _known(held.get((one.prompt, one.number)), asked[one.prompt, one.number])
        if known is not None:
            found[one.prompt, one.number] = known
    waiting = [one for one in shown if (one.prompt, one.number) not in found]
    # Those that failed before come last, so that a few bad ones do not keep the others waiting.
    waiting.sort(key=lambda one: (one.prompt, one.number) in held)
    if waiting:
        judge.prepare()
    failures: list[str] = []
    left = 0
    for done, one in enumerate(waiting):
        on("judging images", done / len(waiting))
        if judge.gone():
            left += 1
            continue
        try:
            answer = judge.look(one)
        except Exception as error:  # noqa: BLE001 (somebody else's judge may raise anything)
            answer = Answer(error=f"{type(error).__name__}: {str(error)[:200]}")
        found[one.prompt, one.number] = answer
        failures += [answer.error] if answer.success is None else []
        if not judge.fresh:
            key = {"prompt": one.prompt, "image": one.number, "judge": judge.name}
            kept.add({**key, "asked": asked[one.prompt, one.number], **answer.record()})
    order = [key for key in asked if key in found]
    return {key: found[key] for key in order}, _notes(failures, left, flagged, len(shown), judge)


def _shown(prompts: Sequence[Prompt], folder: Folder) -> tuple[list[Shown], int]:
    """The images to judge, and how many the pipeline's own filter blackened: these say nothing."""
    shown, flagged = [], 0
    for prompt in prompts:
        if not folder.has(prompt.name):
            continue
        for number, flag in enumerate(folder.manifest(prompt.name)["flagged"]):
            if flag:
                flagged += 1
                continue
            path = folder.image(prompt.name, number)
            shown.append(Shown(prompt.name, prompt.text, number, path, prompt.questions))
    return shown, flagged


def _asked(shown: Shown, judge: Judge) -> dict[str, Any]:
    """All that an answer depends on: an old one counts only where it is the same."""
    if judge.fresh:
        return {}
    asked: dict[str, Any] = {
        "picture": sha256_of(shown.path)[:16] if shown.path.is_file() else "",
        "questions": [[one.place, one.concept, one.text] for one in shown.questions],
    }
    if judge.compares:
        others = json.dumps([shown.text, *(one.alternatives for one in shown.questions)])
        asked["others"] = hashlib.sha256(others.encode()).hexdigest()[:16]
    return asked


def _known(record: dict[str, Any] | None, asked: dict[str, Any]) -> Answer | None:
    """What was answered before; None if something is missing, or if something else was asked."""
    if record is None or record.get("success") is None or record.get("asked") != asked:
        return None
    scores = tuple(record.get("scores") or ())
    whole = len(scores) in (0, len(asked["questions"])) and None not in scores
    return Answer(scores, bool(record["success"])) if whole else None


def _notes(failures: list[str], left: int, flagged: int, images: int, judge: Judge) -> list[str]:
    notes = []
    if failures:
        kinds = list(dict.fromkeys(failures))
        told = "; ".join(kinds[:3]) + ("; and others" if len(kinds) > 3 else "")
        notes.append(f"{len(failures)} of {images} images have no judgement: {told}. They are left out.")
    if left:
        notes.append(f"{left} more images were not judged and are left out: {judge.gone()}.")
    if (failures or left) and not judge.fresh:
        notes.append("The same command asks only for what is missing.")
    if flagged:
        notes.append(f"{flagged} images were blackened by the pipeline's own filter and are left out.")
    return notes
