"""The whole audit of a text-to-image pipeline: prompts, images, judgements, probes, and how they go together."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from recombine.audit.cells import Cells
from recombine.audit.strata import mean_score
from recombine.errors import BadInput
from recombine.pipelines.drawing import VALIDATION, Prompt, draw_prompts
from recombine.pipelines.findings import ConceptFinding, ImagesAudit, Joint, Point, SetFinding
from recombine.pipelines.folder import Folder
from recombine.pipelines.generating import Settings, generate
from recombine.pipelines.judge import RIGHT, Judge
from recombine.pipelines.judging import Answers, judge_images
from recombine.pipelines.loading import check_folder, fingerprint, free_memory, load_pipeline
from recombine.pipelines.prompt_set import PromptSet
from recombine.pipelines.reading import Read, read_concepts
from recombine.pipelines.recorded import Recorded, recorded, right_concepts
from recombine.pipelines.relating import joint_and_product, relate
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.prediction import wilson

if TYPE_CHECKING:
    from recombine.audit.audit import On


@dataclasses.dataclass(frozen=True)
class Made:
    """What was made, for pages and tables."""

    audit: ImagesAudit
    folder: Folder
    prompts: dict[str, list[Prompt]]
    cells: dict[str, Cells]
    """The table of successes of each set."""
    answers: Answers


def audit_images(
    pipeline: str | Path,
    sets: Mapping[str, PromptSet],
    out: str | Path,
    *,
    judge: Judge | None = None,
    prompts: int = 100,
    settings: Settings | None = None,
    device: str = "auto",
    precision: str = "auto",
    offload: bool = False,
    on: On | None = None,
) -> Made:
    """Makes what is missing in the folder `out`, has it judged, and says what can be said. It may be called again."""
    say = on or _silent
    settings = settings or Settings()
    if not sets:
        raise BadInput("No prompts were asked for.", fix="name a set")
    index = check_folder(Path(pipeline))
    drawn = {name: draw_prompts(name, one, prompts, settings.seed) for name, one in sets.items()}
    folder = Folder(out)
    asked = {"pipeline": fingerprint(Path(pipeline)), **dataclasses.asdict(settings)}
    # Which precision `auto` is shows once the device is known.
    folder.begin(asked if precision == "auto" else asked | {"precision": precision})
    every = [prompt for each in drawn.values() for prompt in each]
    notes: list[str] = []
    if not all(folder.has(prompt.name) for prompt in every):
        say("loading the pipeline")
        loaded = load_pipeline(pipeline, device=device, precision=precision, offload=offload)
        folder.begin(asked | {"precision": loaded.precision})
        notes += generate(loaded, every, folder, settings, say)
        del loaded  # The judge may need the memory.
        free_memory()
    answers: Answers = {}
    if judge is not None:
        answers, more = judge_images(judge, every, folder, say)
        notes += more
    data = {name: recorded(one, drawn[name], answers, folder) for name, one in sets.items()}
    found = [_set(name, one, len(drawn[name]), answers, settings.seed, say) for name, one in data.items()]
    relation = relate({one.name: one.points for one in found}) if len(found) > 1 else None
    audit = ImagesAudit(
        pipeline=Path(pipeline).name,
        kind=str(index["_class_name"]),
        settings=asked | {"precision": folder.settings().get("precision", precision)},
        judge="" if judge is None else judge.name,
        sets=tuple(found),
        relation=relation,
        notes=tuple(notes),
    )
    return Made(audit, folder, drawn, {name: one.cells for name, one in data.items()}, answers)


def _set(name: str, data: Recorded, drawn: int, answers: Answers, seed: int, say: On) -> SetFinding:
    given = data.given
    stage = f"{name}: what the blocks hold"
    say(stage)
    # As in the audit of tables: the matrices are small and many, and threads would wait for each other.
    with threadpool_limits(1, user_api="blas"):
        read = read_concepts(data, seed, functools.partial(say, stage))
    points = _points(data, read)
    right = [right_concepts(prompt, answers, RIGHT) for prompt in data.prompts]
    judged = data.cells.evaluated
    success = _mean(data.cells.mean[judged, 0].tolist())
    say(f"{name}: parts or combination")
    notes = [*data.notes, *read.notes]
    if len(data.prompts) < drawn:
        notes.append(f"{drawn - len(data.prompts)} of {drawn} prompts have no images.")
    return SetFinding(
        name=name,
        kind="set" if not given.exclusive else "slots",
        prompts=len(data.prompts),
        combinations=given.size_of_space,
        images=len(data.cell),
        judged=int(data.cells.count.sum()),
        success=success,
        sites=read.sites,
        places=read.places,
        concepts=_concepts(data, read, right),
        points=points,
        relation=relate({name: points}),
        joint=_joint(data, right),
        table=_table(data, name, seed),
        notes=tuple(notes),
    )


def _points(data: Recorded, read: Read) -> tuple[Point, ...]:
    number = Counter(part for row in data.cells.parts.tolist() for part in row)
    points = []
    for cell, prompt in enumerate(data.prompts):
        shares = [number[part] / len(data.prompts) for part in data.cells.parts[cell].tolist()]
        points.append(
            Point(
                prompt.name,
                prompt.text,
                float(read.sure[cell]),
                float(read.from_text[cell]),
                float(np.mean(np.log(shares))),
                float(data.cells.mean[cell, 0]),
                prompt.fold,
                prompt.fold != VALIDATION,
                tuple(prompt.combination),
            )
        )
    return tuple(points)


def _concepts(data: Recorded, read: Read, right: list[np.ndarray]) -> tuple[ConceptFinding, ...]:
    """A line for each value of each place."""
    shares: dict[tuple[str, str], list[float]] = {}
    images: Counter[tuple[str, str]] = Counter()
    for prompt, values in zip(data.prompts, right, strict=True):
        for place, question in enumerate(prompt.questions):
            if len(values):
                key = question.place, question.concept
                shares.setdefault(key, []).append(float(values[:, place].mean()))
                images[key] += len(values)
    parts = data.cells.parts
    found, number = [], 0
    for factor in data.cells.factors:
        for value in factor.values:
            key = factor.name, value
            prompts = int((parts == number).any(1).sum())
            if prompts:
                found.append(
                    ConceptFinding(
                        *key,
                        prompts,
                        images[key],
                        _mean(shares.get(key, [])),
                        read.recall.get((factor.name, number), math.nan),
                    )
                )
            number += 1
    return tuple(found)


def _mean(values: list[float]) -> Interval | None:
    """Over prompts; where all have the same share, Wilson's interval with a prompt as the unit."""
    if len(values) > 1 and np.ptp(values) == 0:
        return Interval(values[0], *wilson(values[0], len(values)), len(values), LEVEL, "wilson over prompts")
    return mean_score(np.array(values), binary=True) if len(values) > 1 else None


def _joint(data: Recorded, right: list[np.ndarray]) -> Joint | None:
    labels = [[f"{one.place}={one.concept}" for one in prompt.questions] for prompt in data.prompts]
    return joint_and_product(right, labels)


def _table(data: Recorded, name: str, seed: int) -> Any:
    """The audit of the table of successes."""
    if int(data.cells.evaluated.sum()) < 2:
        return None
    from recombine.audit.audit import audit_cells

    return audit_cells(data.cells, source=name, seed=seed)


def _silent(what: str, done: float | None = None) -> None:
    """Nobody listens."""
