"""Linear probes for concepts at blocks and text encoders, scored on prompts that they were not fitted on."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from recombine.audit.decodability.cross_fitting import known
from recombine.audit.decodability.questions import Answers, Question, questions
from recombine.pipelines.findings import PlaceFinding, SiteFinding
from recombine.pipelines.prompts.drawing import FOLDS, TEST, VALIDATION
from recombine.pipelines.recorded_set import RecordedSet
from recombine.stats import LEVEL, Interval, logistic_weights, wilson

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)
"""Penalties on squared weights, for features of unit variance and a mean loss. Validation prompts choose one."""


class Scaled:
    """Features scaled to unit variance. With more features than rows, they are rotated into the span of the rows: nothing is lost."""

    def __init__(self, features: Float[np.ndarray, "row feature"]) -> None:
        features = np.asarray(features, np.float64)
        self._mean, spread = features.mean(0), features.std(0)
        # Constant features carry no information. A tiny standard deviation is rounding error.
        quiet = spread <= 1e-6 * np.maximum(1e-12, np.abs(self._mean))
        self._scale = np.where(quiet, 0.0, 1 / np.where(quiet, 1, spread))
        self._turn = None
        self.rows: Float[np.ndarray, "row direction"] = self.of(features)
        if features.shape[1] > len(features):
            self._turn = np.linalg.svd(self.rows, full_matrices=False)[2].T
            self.rows = self.rows @ self._turn

    def of(self, features: Float[np.ndarray, "n feature"]) -> Float[np.ndarray, "n direction"]:
        """Scale other rows in the same way."""
        scaled = (np.asarray(features, np.float64) - self._mean) * self._scale
        return scaled if self._turn is None else scaled @ self._turn


class LogisticProbe:
    """One regression per concept (present or absent), or one for all values of a slot.

    Rare answers have the same total weight as frequent ones, so that a probe gains nothing by always answering no.
    """

    def __init__(self, scaled: Scaled, member: Bool[np.ndarray, "row value"], strength: float, exclusive: bool) -> None:
        self._scaled, self._exclusive = scaled, exclusive
        # Values that all rows have, or none, cannot be decoded.
        self._decodable = np.asarray(member.any(0) if exclusive else member.any(0) & ~member.all(0))
        self._weights = _fitted(scaled.rows, member[:, self._decodable], strength, exclusive)

    def log_odds(self, features: Float[np.ndarray, "n feature"]) -> Float[np.ndarray, "n value"]:
        """The log-probability of each value; the log-odds if values do not exclude each other. As in `LinearProbe`."""
        out = self._scaled.of(features) @ self._weights[:-1] + self._weights[-1]
        scores = np.full((len(out), len(self._decodable)), np.nan)
        scores[:, self._decodable] = special.log_softmax(out, axis=1) if self._exclusive else out
        return scores


def _fitted(
    scaled: Float[np.ndarray, "row feature"], targets: Bool[np.ndarray, "row value"], strength: float, exclusive: bool
) -> Float[np.ndarray, "weight value"]:
    """The weights of each value. The last row holds the intercepts."""
    values = targets.shape[1]
    if values < (2 if exclusive else 1):
        return np.zeros((scaled.shape[1] + 1, values))
    weight = _balance(targets.astype(np.float64), exclusive)
    if not exclusive:
        fits = [logistic_weights(scaled, targets[:, value], strength, weight[:, value]) for value in range(values)]
        return np.stack([np.append(weights, intercept) for weights, intercept in fits], axis=1)
    known = targets.any(1)
    labels, shares = targets[known].argmax(1), weight[known][targets[known]]
    if values > 2:
        return np.vstack(logistic_weights(scaled[known], labels, strength, shares))
    # A softmax over two classes has the weights -w/2 and w/2, whose penalty is half that of w.
    half = np.vstack(logistic_weights(scaled[known], labels, strength / 2, shares)) / 2
    return np.concatenate([-half, half], axis=1)


def _balance(targets: Float[np.ndarray, "row value"], exclusive: bool) -> Float[np.ndarray, "row value"]:
    """The weight of each row in each regression: all answers to a question have the same total weight."""
    size = targets.sum(0)
    if exclusive:
        return np.broadcast_to(1 / (len(size) * size), targets.shape)
    return np.where(targets > 0, 0.5 / size, 0.5 / (len(targets) - size))


DEALS = 5
"""Number of random label assignments of the control task."""
HELD = (VALIDATION, TEST)
Features = Float[np.ndarray, "row feature"]


@dataclasses.dataclass(frozen=True)
class SiteScore:
    """The scores of a site for one question."""

    block: str
    time: str
    strength: float
    validation: tuple[float, float]
    """On validation prompts: balanced accuracy, then mean log-probability of the truth."""
    test: float


@dataclasses.dataclass(frozen=True)
class ProbeResults:
    """The scores of all sites, and how well the concepts of each combination are decoded."""

    sites: tuple[SiteFinding, ...]
    places: tuple[PlaceFinding, ...]
    log_probability: Float[np.ndarray, " cell"]
    """The mean log-probability of the true concepts, by probes fitted on other prompts."""
    from_text: Float[np.ndarray, " cell"]
    recall: dict[tuple[str, int], float]
    """The recall of each value, by slot and value, by probes fitted on other prompts."""
    notes: tuple[str, ...]


def probe_concepts(recorded: RecordedSet, seed: int, on: Callable[[float], None]) -> ProbeResults:
    """Choose a site for each slot on validation prompts, score it on test prompts, then decode every combination.

    The seed is that of the control task. `on` is called with the fraction of sites done.
    """
    count = len(recorded.prompts)
    asked, notes = questions(recorded.cells, np.ones(count, bool))
    finite = recorded.finite
    if not finite.all():
        notes.append(f"{int((~finite).sum())} images have activations that are not numbers and are left out.")
    fold = recorded.fold[np.unique(recorded.cell[finite])]
    if not asked or not all((fold == number).any() for number in range(FOLDS)):
        notes.append("There are too few prompts to fit, choose and score probes on different prompts.")
        nothing = np.full(count, np.nan)
        return ProbeResults((), (), nothing, nothing, {}, tuple(notes))
    # Scores of all questions, by site.
    sites: list[list[SiteScore]] = []
    number = len(recorded.blocks) * len(recorded.times)
    for done, (block, time) in enumerate(itertools.product(recorded.blocks, recorded.times)):
        on(done / number)
        features = recorded.features(block, time)
        sites.append([_site_score(recorded, question, features, block, time) for question in asked])
    texts: list[list[SiteScore]] = []
    for encoder in recorded.encoders:
        features = recorded.encoded(encoder)
        if not np.isfinite(features[finite]).all():
            notes.append(f"{encoder} has activations that are not numbers and is left out.")
            continue
        texts.append([_site_score(recorded, question, features, encoder, "") for question in asked])
    places, recall = [], {}
    own, rival = np.full((2, len(asked), count), np.nan)
    for index, question in enumerate(asked):
        best = max((scores[index] for scores in sites), key=lambda site: site.validation)
        text_site = max((scores[index] for scores in texts), key=lambda site: site.validation, default=None)
        places.append(_place(recorded, question, best, text_site, seed))
        features = recorded.features(best.block, best.time)
        answers = _crossed(recorded, question, features, best.strength)
        own[index, question.cells] = question.by_combination(answers.sure)
        recall |= _recall(recorded, question, answers)
        if text_site is not None:
            from_text = _crossed(recorded, question, recorded.encoded(text_site.block), text_site.strength)
            rival[index, question.cells] = question.by_combination(from_text.sure)
    findings = tuple(
        SiteFinding(site.block, site.time, question.place, site.validation[0], site.test)
        for question, scores in zip(asked, zip(*sites, strict=True), strict=True)
        for site in scores
    )
    if not recorded.encoders:
        notes.append("No text encoder was recorded, so it cannot be compared.")
    return ProbeResults(findings, tuple(places), _mean(own), _mean(rival), recall, tuple(notes))


def _site_score(recorded: RecordedSet, question: Question, features: Features, block: str, time: str) -> SiteScore:
    """The site with the regularisation that is best on validation prompts. Probes are fitted on training prompts."""
    fold = recorded.fold[question.cells]
    options = []
    scaled = Scaled(features[_rows(recorded, question, HELD)[0]])
    for strength in STRENGTHS:
        answers = _answers(recorded, question, features, strength, HELD, scaled)
        right, sure = (known(question.balanced(each, fold == VALIDATION)) for each in (answers.right, answers.sure))
        options.append(((round(right, 9), sure), strength, answers))
    best, strength, answers = max(options, key=lambda option: option[0])
    return SiteScore(block, time, strength, best, question.balanced(answers.right, fold == TEST))


def _answers(
    recorded: RecordedSet,
    question: Question,
    features: Features,
    strength: float,
    out: tuple[int, ...],
    scaled: Scaled | None = None,
) -> Answers:
    """Answers about the combinations of the folds `out`, by a probe fitted on all other folds: means over images.

    `scaled` holds the scaled rows for the fit, if they were computed before.
    """
    truth = question.by_row(recorded.cell, len(recorded.prompts))
    fit, tested = _rows(recorded, question, out)
    shape = (len(question.cells), 1 if question.exclusive else question.member.shape[1])
    right, sure = np.full(shape, np.nan), np.full(shape, np.nan)
    if len(fit) and len(tested):
        probe = LogisticProbe(scaled or Scaled(features[fit]), truth[fit], strength, question.exclusive)
        answers = question.answers(probe.log_odds(features[tested]), truth[tested])
        index = np.searchsorted(question.cells, recorded.cell[tested])
        times = np.bincount(index, minlength=len(right))[:, None]
        for into, values in ((right, answers.right), (sure, answers.sure)):
            sums = np.zeros(shape)
            np.add.at(sums, index, values)
            np.copyto(into, sums / np.maximum(times, 1), where=times > 0)
    return Answers(right, sure)


def _rows(
    recorded: RecordedSet, question: Question, out: tuple[int, ...]
) -> tuple[Int[np.ndarray, " fit"], Int[np.ndarray, " tested"]]:
    """The images of all folds except `out`, and those of the folds `out`."""
    usable = recorded.finite & np.isin(recorded.cell, question.cells)
    held = np.isin(recorded.fold[recorded.cell], out)
    return np.flatnonzero(usable & ~held), np.flatnonzero(usable & held)


def _crossed(recorded: RecordedSet, question: Question, features: Features, strength: float) -> Answers:
    """Answers about every combination, by probes fitted on the other folds."""
    by_fold = [_answers(recorded, question, features, strength, (out,)) for out in range(FOLDS)]
    return question.picked(recorded.fold, by_fold)


def _place(
    recorded: RecordedSet, question: Question, best: SiteScore, text_site: SiteScore | None, seed: int
) -> PlaceFinding:
    features = recorded.features(best.block, best.time)
    rng = np.random.default_rng([seed, 11])
    test = recorded.fold[question.cells] == TEST
    controls = []
    for _ in range(DEALS):
        dealt = dataclasses.replace(question, member=rng.permutation(question.member))
        answers = _answers(recorded, dealt, features, best.strength, HELD)
        controls.append(dealt.balanced(answers.right, test))
    control, score = _average(np.array(controls)), _interval(test, best.test)
    text = (None, "") if text_site is None else (_interval(test, text_site.test), text_site.block)
    chosen = (question.place, best.block, best.time)
    return PlaceFinding(*chosen, score, question.chance, control, score.estimate - control, *text)


def _interval(test: Bool[np.ndarray, " asked"], share: float) -> Interval:
    """Wilson's interval with one trial per test prompt: the concepts of one prompt are not independent."""
    trials = max(1, int(test.sum()))
    if not math.isfinite(share):
        return Interval(math.nan, 0.0, 1.0, trials, LEVEL, "none")
    return Interval(share, *wilson(share, trials), trials, LEVEL, "wilson, over test prompts")


def _recall(recorded: RecordedSet, question: Question, answers: Answers) -> dict[tuple[str, int], float]:
    """The share of the combinations with each value in which the value was decoded."""
    slots = [index for index, name in enumerate(recorded.cells.slots) if name == question.place]
    parts: Int[np.ndarray, "asked slot"] = recorded.cells.constituents[question.cells][:, slots]
    recall = {}
    for value in np.unique(parts).tolist():
        holds = (parts == value).any(1)
        # The column of the value; a question of exclusive values has one column of answers.
        same = np.flatnonzero((question.member == holds[:, None]).all(0))
        if question.exclusive or len(same):
            recall[question.place, value] = _average(answers.right[holds, 0 if question.exclusive else same[0]])
    return recall


def _mean(values: Float[np.ndarray, "slot cell"]) -> Float[np.ndarray, " cell"]:
    """The mean over slots, without missing values."""
    known = np.isfinite(values)
    total = np.where(known, values, 0).sum(0)
    return np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan)


def _average(values: Float[np.ndarray, " n"]) -> float:
    """The mean without missing values."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
