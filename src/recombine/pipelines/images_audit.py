"""The audit of a text-to-image pipeline: prompts, images, judgements, probes, and their relation."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from recombine.audit.audit import OnProgress, audit_cells, silent
from recombine.audit.cells import Cells
from recombine.audit.strata import mean_score
from recombine.errors import BadInput
from recombine.pipelines.findings import CombinationFinding, ConceptFinding, ImagesAudit, SetFinding
from recombine.pipelines.folder import ImageFolder
from recombine.pipelines.generation import GenerationSettings, generate
from recombine.pipelines.judges import THRESHOLD, Judge, Judgements, judge_images
from recombine.pipelines.loading import check_folder, fingerprint, free_memory, load_pipeline
from recombine.pipelines.probing import ProbeResults, probe_concepts
from recombine.pipelines.prompts.drawing import VALIDATION, Prompt, draw_prompts
from recombine.pipelines.prompts.sets import PromptSet
from recombine.pipelines.recorded_set import RecordedSet, load_recorded_set, right_concepts
from recombine.pipelines.relation import joint_and_product, relate
from recombine.stats import LEVEL, Interval, wilson


@dataclasses.dataclass(frozen=True, repr=False)
class ImagesResult:
    """The result of an audit: findings, images and judgements."""

    audit: ImagesAudit
    folder: ImageFolder
    prompts: dict[str, list[Prompt]]
    cells: dict[str, Cells]
    """The table of successes of each set."""
    answers: Judgements

    def __repr__(self) -> str:
        return repr(self.audit)

    def _repr_html_(self) -> str:
        return self.audit._repr_html_()


def audit_images(
    pipeline: str | Path,
    sets: Mapping[str, PromptSet],
    out: str | Path,
    *,
    judge: Judge | None = None,
    prompts: int = 100,
    settings: GenerationSettings | None = None,
    device: str = "auto",
    precision: str = "auto",
    offload: bool = False,
    on: OnProgress | None = None,
) -> ImagesResult:
    """Audit a text-to-image pipeline. Call it again to continue an interrupted audit.

    Args:
        pipeline: The folder of a pipeline that diffusers saved.
        sets: The sets of prompts, by name.
        out: The folder for images and judgements.
        judge: Decides whether an image shows its concepts. None: no success rates.
        prompts: Prompts per set.
        settings: How images are generated.
        device: The device of the pipeline; `auto` uses an accelerator if there is one.
        precision: auto, float32, float16 or bfloat16.
        offload: Keep parts of the pipeline in main memory while they are not used.
        on: Called with the progress.

    Returns:
        The findings with their images and judgements.

    Example:
        ```python
        result = audit_images("sd-turbo", prompt_sets(["animals"]), "out", judge=make_judge("clip:clip-vit-large"))
        result.audit
        ```
    """
    say = on or silent
    settings = settings or GenerationSettings()
    if not sets:
        raise BadInput("No prompts were given.", fix="name a set of prompts")
    index = check_folder(Path(pipeline))
    drawn = {name: draw_prompts(name, given, prompts, settings.seed) for name, given in sets.items()}
    folder = ImageFolder(out)
    recorded = {"pipeline": fingerprint(Path(pipeline)), **dataclasses.asdict(settings)}
    # The precision of `auto` is known once the device is.
    folder.begin(recorded if precision == "auto" else recorded | {"precision": precision})
    every = [prompt for chosen in drawn.values() for prompt in chosen]
    notes: list[str] = []
    if not all(folder.has(prompt.name) for prompt in every):
        say("loading the pipeline")
        loaded = load_pipeline(pipeline, device=device, precision=precision, offload=offload)
        folder.begin(recorded | {"precision": loaded.precision})
        notes += generate(loaded, every, folder, settings, say)
        del loaded  # The judge may need the memory.
        free_memory()
    answers: Judgements = {}
    if judge is not None:
        answers, more = judge_images(judge, every, folder, say)
        notes += more
    data = {name: load_recorded_set(given, drawn[name], answers, folder) for name, given in sets.items()}
    findings = [_set(name, images, len(drawn[name]), answers, settings.seed, say) for name, images in data.items()]
    relation = relate({each.name: each.points for each in findings}) if len(findings) > 1 else None
    audit = ImagesAudit(
        pipeline=Path(pipeline).name,
        kind=str(index["_class_name"]),
        settings=recorded | {"precision": folder.settings().get("precision", precision)},
        judge="" if judge is None else judge.name,
        sets=tuple(findings),
        relation=relation,
        notes=tuple(notes),
    )
    return ImagesResult(audit, folder, drawn, {name: images.cells for name, images in data.items()}, answers)


def _set(name: str, data: RecordedSet, drawn: int, answers: Judgements, seed: int, say: OnProgress) -> SetFinding:
    given = data.given
    stage = f"{name}: probing the blocks"
    say(stage)
    # There are many small matrices: threads would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        probed = probe_concepts(data, seed, functools.partial(say, stage))
    points = _points(data, probed)
    right = [right_concepts(prompt, answers, THRESHOLD) for prompt in data.prompts]
    labels = [[f"{question.place}={question.concept}" for question in prompt.questions] for prompt in data.prompts]
    say(f"{name}: parts or combination")
    notes = [*data.notes, *probed.notes]
    if len(data.prompts) < drawn:
        notes.append(f"{drawn - len(data.prompts)} of {drawn} prompts have no images.")
    return SetFinding(
        name=name,
        kind="set" if not given.exclusive else "slots",
        prompts=len(data.prompts),
        combinations=given.size_of_space,
        images=len(data.cell),
        judged=int(data.cells.count.sum()),
        success=_mean(data.cells.mean[data.cells.evaluated, 0].tolist()),
        sites=probed.sites,
        places=probed.places,
        concepts=_concepts(data, probed, right),
        points=points,
        relation=relate({name: points}),
        joint=joint_and_product(right, labels),
        # The audit of the table of successes needs something to compare.
        table=audit_cells(data.cells, source=name, seed=seed) if data.cells.evaluated.sum() > 1 else None,
        notes=tuple(notes),
    )


def _points(data: RecordedSet, probed: ProbeResults) -> tuple[CombinationFinding, ...]:
    parts = data.cells.constituents
    frequency = np.log(np.bincount(parts.ravel())[parts] / len(data.prompts)).mean(1)
    # By combination: decodability, from the text alone, frequency, success.
    numbers = zip(probed.log_probability, probed.from_text, frequency, data.cells.mean[:, 0], strict=True)
    points = []
    for prompt, row in zip(data.prompts, numbers, strict=True):
        decoded, from_text, often, success = map(float, row)
        split = (prompt.fold, prompt.fold != VALIDATION, prompt.combination)
        points.append(CombinationFinding(prompt.name, prompt.text, decoded, from_text, often, success, *split))
    return tuple(points)


def _concepts(data: RecordedSet, probed: ProbeResults, right: list[np.ndarray]) -> tuple[ConceptFinding, ...]:
    """One finding per value of each slot."""
    shares: dict[tuple[str, str], list[float]] = {}
    images: Counter[tuple[str, str]] = Counter()
    for prompt, values in zip(data.prompts, right, strict=True):
        for index, question in enumerate(prompt.questions if len(values) else ()):
            key = question.place, question.concept
            shares.setdefault(key, []).append(float(values[:, index].mean()))
            images[key] += len(values)
    findings = []
    for number, key in enumerate((factor.name, value) for factor in data.cells.factors for value in factor.values):
        prompts = int((data.cells.constituents == number).any(1).sum())
        if prompts:
            success, recall = _mean(shares.get(key, [])), probed.recall.get((key[0], number), math.nan)
            findings.append(ConceptFinding(*key, prompts, images[key], success, recall))
    return tuple(findings)


def _mean(values: list[float]) -> Interval | None:
    """The mean over prompts. If all have the same share: Wilson's interval with a prompt as the unit."""
    if len(values) > 1 and np.ptp(values) == 0:
        return Interval(values[0], *wilson(values[0], len(values)), len(values), LEVEL, "wilson over prompts")
    return mean_score(np.array(values), binary=True) if len(values) > 1 else None
