"""How well concepts can be read off blocks and text encoders, on prompts that no probe was fitted on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from recombine.audit.questions import Answers, Question, questions
from recombine.pipelines.drawing import FOLDS, TEST, VALIDATION
from recombine.pipelines.findings import PlaceFinding, SiteFinding
from recombine.pipelines.logistic import STRENGTHS, LogisticProbe, Scaled
from recombine.pipelines.recorded import Recorded
from recombine.stats.intervals import LEVEL, Interval
from recombine.stats.prediction import wilson

DEALS = 5
"""How often the labels of the control are dealt out."""
HELD = (VALIDATION, TEST)
Features = Float[np.ndarray, "row feature"]


@dataclasses.dataclass(frozen=True)
class Tried:
    """A site for one question."""

    block: str
    time: str
    strength: float
    validation: tuple[float, float]
    """Balanced accuracy on validation prompts, then how sure."""
    test: float


@dataclasses.dataclass(frozen=True)
class Read:
    """What all sites say, and for each combination how well its concepts are read."""

    sites: tuple[SiteFinding, ...]
    places: tuple[PlaceFinding, ...]
    sure: Float[np.ndarray, " cell"]
    """The mean over concepts of the log-probability of the truth, by probes that were fitted on other prompts."""
    from_text: Float[np.ndarray, " cell"]
    recall: dict[tuple[str, int], float]
    """By place and value how often it was read where it was asked for, likewise."""
    notes: tuple[str, ...]


def read_concepts(recorded: Recorded, seed: int, on: Callable[[float], None]) -> Read:
    """Chooses a site for each place on validation prompts and scores it on test prompts; then reads every combination."""
    count = len(recorded.prompts)
    nothing = np.full(count, np.nan)
    asked, notes = questions(recorded.cells, np.ones(count, bool))
    finite = _finite(recorded)
    if not finite.all():
        notes.append(f"{int((~finite).sum())} images have activations that are not numbers and are not read.")
    known = np.unique(recorded.cell[finite])
    fold = recorded.fold[known]
    if not asked or not all((fold == one).any() for one in range(FOLDS)):
        notes.append(
            "There are too few prompts to fit a probe on some, choose on others and score on the rest."
        )
        return Read((), (), nothing, nothing, {}, tuple(notes))
    sites: list[list[Tried]] = [[] for _ in asked]
    number = len(recorded.blocks) * len(recorded.times)
    for done, (block, time) in enumerate((one, two) for one in recorded.blocks for two in recorded.times):
        on(done / number)
        features = recorded.features(block, time)
        for place, question in enumerate(asked):
            sites[place].append(_tried(recorded, question, features, finite, block, time))
    texts: list[list[Tried]] = [[] for _ in asked]
    for encoder in recorded.encoders:
        features = recorded.encoded(encoder)
        if not np.isfinite(features[finite]).all():
            notes.append(f"{encoder} has activations that are not numbers and is left out.")
            continue
        for place, question in enumerate(asked):
            texts[place].append(_tried(recorded, question, features, finite, encoder, ""))
    places, own, rival, recall = [], [], [], {}
    for place, question in enumerate(asked):
        best = max(sites[place], key=lambda one: one.validation)
        words = max(texts[place], key=lambda one: one.validation, default=None)
        places.append(_place(recorded, question, best, words, finite, seed))
        features = recorded.features(best.block, best.time)
        answers = _crossed(recorded, question, features, finite, best.strength)
        own.append(_spread(question, answers, count))
        recall |= _recall(recorded, question, answers)
        if words is not None:
            said = _crossed(recorded, question, recorded.encoded(words.block), finite, words.strength)
            rival.append(_spread(question, said, count))
    found = tuple(
        SiteFinding(one.block, one.time, question.place, one.validation[0], one.test)
        for question, each in zip(asked, sites, strict=True)
        for one in each
    )
    if not recorded.encoders:
        notes.append("No text encoder was seen at work, so nothing can be said of it as a rival.")
    return Read(found, tuple(places), _mean(own, nothing), _mean(rival, nothing), recall, tuple(notes))


def _finite(recorded: Recorded) -> Bool[np.ndarray, " row"]:
    """Which images have numbers everywhere (half precision may overflow)."""
    good = np.ones(len(recorded.cell), bool)
    for block in recorded.blocks:
        for time in recorded.times[:-1]:
            good &= np.isfinite(recorded.features(block, time)).all(1)
    return good


def _member(recorded: Recorded, question: Question) -> Bool[np.ndarray, "row value"]:
    member = np.zeros((len(recorded.prompts), question.member.shape[1]), bool)
    member[question.cells] = question.member
    return member[recorded.cell]


def _tried(
    recorded: Recorded,
    question: Question,
    features: Features,
    finite: Bool[np.ndarray, " row"],
    block: str,
    time: str,
) -> Tried:
    """Fitted on training prompts; the strength that is best on validation prompts, scored on both."""
    fold = recorded.fold[question.cells]
    options = []
    scaled = Scaled(features[_fit_rows(recorded, question, finite, HELD)])
    for strength in STRENGTHS:
        said = _said(recorded, question, features, finite, strength, HELD, question.member, scaled)
        quality = tuple(
            _known(question.balanced(values, fold == VALIDATION)) for values in (said.right, said.sure)
        )
        options.append(((round(quality[0], 9), quality[1]), strength, said))
    best, strength, said = max(options, key=lambda one: one[0])
    return Tried(block, time, strength, best, question.balanced(said.right, fold == TEST))


def _said(
    recorded: Recorded,
    question: Question,
    features: Features,
    finite: Bool[np.ndarray, " row"],
    strength: float,
    out: tuple[int, ...],
    member: Bool[np.ndarray, "asked value"],
    scaled: Scaled | None = None,
) -> Answers:
    """What a probe that is fitted on all other folds says of the combinations of some, mean over their images.

    `scaled` saves the work of bringing the rows that are fitted on to one scale, where that was done.
    """
    asked = dataclasses.replace(question, member=member)
    truth = _member(recorded, asked)
    can = finite & np.isin(recorded.cell, question.cells)
    fit = _fit_rows(recorded, question, finite, out)
    tried = np.flatnonzero(can & np.isin(recorded.fold[recorded.cell], out))
    shape = (len(question.cells), 1 if question.exclusive else member.shape[1])
    right, sure = np.full(shape, np.nan), np.full(shape, np.nan)
    if len(fit) and len(tried):
        probe = LogisticProbe(scaled or Scaled(features[fit]), truth[fit], strength, question.exclusive)
        answers = asked.answers(probe.log_odds(features[tried]), truth[tried])
        place = np.searchsorted(question.cells, recorded.cell[tried])
        for into, values in ((right, answers.right), (sure, answers.sure)):
            sums = np.zeros(shape)
            np.add.at(sums, place, values)
            times = np.bincount(place, minlength=len(sums))[:, None]
            np.copyto(into, sums / np.maximum(times, 1), where=times > 0)
    return Answers(right, sure)


def _fit_rows(
    recorded: Recorded, question: Question, finite: Bool[np.ndarray, " row"], out: tuple[int, ...]
) -> Int[np.ndarray, " fit"]:
    """The images of all folds but some."""
    held = np.isin(recorded.fold[recorded.cell], out)
    return np.flatnonzero(finite & np.isin(recorded.cell, question.cells) & ~held)


def _crossed(
    recorded: Recorded,
    question: Question,
    features: Features,
    finite: Bool[np.ndarray, " row"],
    strength: float,
) -> Answers:
    """Every combination read by a probe that was fitted on the other folds."""
    fold = recorded.fold[question.cells]
    parts = [
        _said(recorded, question, features, finite, strength, (one,), question.member) for one in range(FOLDS)
    ]
    index = np.arange(len(fold))
    return Answers(
        np.stack([one.right for one in parts])[fold, index],
        np.stack([one.sure for one in parts])[fold, index],
    )


def _place(
    recorded: Recorded,
    question: Question,
    best: Tried,
    words: Tried | None,
    finite: Bool[np.ndarray, " row"],
    seed: int,
) -> PlaceFinding:
    features = recorded.features(best.block, best.time)
    rng = np.random.default_rng([seed, 11])
    test = recorded.fold[question.cells] == TEST
    dealt = []
    for _ in range(DEALS):
        member = rng.permutation(question.member)
        said = _said(recorded, question, features, finite, best.strength, HELD, member)
        dealt.append(dataclasses.replace(question, member=member).balanced(said.right, test))
    control = _average(np.array(dealt))
    score = _interval(question, test, best.test)
    text = None if words is None else _interval(question, test, words.test)
    encoder = "" if words is None else words.block
    chosen = (question.place, best.block, best.time)
    return PlaceFinding(*chosen, score, question.chance, control, score.estimate - control, text, encoder)


def _interval(question: Question, test: Bool[np.ndarray, " asked"], share: float) -> Interval:
    """Wilson's, for as many trials as test prompts: the concepts of one prompt are no independent trials."""
    trials = max(1, int(test.sum()))
    if not math.isfinite(share):
        return Interval(math.nan, 0.0, 1.0, trials, LEVEL, "none")
    return Interval(share, *wilson(share, trials), trials, LEVEL, "wilson, over test prompts")


def _spread(question: Question, answers: Answers, count: int) -> Float[np.ndarray, " cell"]:
    found = np.full(count, np.nan)
    found[question.cells] = question.by_combination(answers.sure)
    return found


def _recall(recorded: Recorded, question: Question, answers: Answers) -> dict[tuple[str, int], float]:
    """For each value the share of the combinations that hold it in which it was read."""
    slots = [index for index, name in enumerate(recorded.cells.place) if name == question.place]
    parts: Int[np.ndarray, "asked slot"] = recorded.cells.parts[question.cells][:, slots]
    found = {}
    for value in np.unique(parts).tolist():
        holds = (parts == value).any(1)
        columns = np.flatnonzero((question.member & holds[:, None]).sum(0) == holds.sum())
        if question.exclusive:
            found[question.place, value] = _average(answers.right[holds, 0])
        else:
            same = [one for one in columns if question.member[:, one].sum() == holds.sum()]
            if same:
                found[question.place, value] = _average(answers.right[holds, same[0]])
    return found


def _mean(parts: list[Float[np.ndarray, " cell"]], nothing: Float[np.ndarray, " cell"]) -> np.ndarray:
    """The mean over places of what is known."""
    if not parts:
        return nothing
    known = np.isfinite(np.stack(parts))
    total = np.where(known, np.stack(parts), 0).sum(0)
    return np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan)


def _average(values: Float[np.ndarray, " n"]) -> float:
    """The mean of what is known."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value
