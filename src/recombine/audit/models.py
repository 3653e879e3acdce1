"""An audit of a model that can be called: it is asked, and what it says is audited as any table."""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine.audit.activations import Activations
from recombine.audit.asked_space import AskedSpace, Combination, asked_space
from recombine.audit.calling import Callee, callee
from recombine.audit.findings import Audit
from recombine.audit.torch_hooks import Pool
from recombine.audit.wording import listed
from recombine.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from recombine.audit.audit import On

MakeInput = Callable[[Any, np.random.Generator], tuple[Any, Any]]
"""From a combination to an input for the model and a target for the score (None where the score needs none)."""
Score = Callable[[Any, Any], Any]
"""From the model's output and the target to a number."""
FAILURES_TOLD = 3
"""So many different errors are told."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a model said, as a table with a row for each answer; and what it had inside."""

    frame: pd.DataFrame
    layers: dict[str, Float[np.ndarray, "row _"]]
    train: pd.DataFrame | None
    """The combinations that it was trained on."""
    factors: tuple[str, ...]
    sets: tuple[str, ...]
    """The column that holds sets of modules, if the space is one of subsets."""
    scores: tuple[str, ...]
    notes: tuple[str, ...]

    def audit(self, *, source: str = "", seed: int = 0, on: On | None = None) -> Audit:
        """The audit of the answers."""
        from recombine.audit.audit import audit_cells
        from recombine.audit.reading import read_rows

        cells, rows = read_rows(
            self.frame, factors=self.factors, sets=self.sets, scores=self.scores, train=self.train
        )
        inside = None
        if self.layers:
            layers = {name: values[rows.row] for name, values in self.layers.items()}
            inside = Activations(layers, rows.cell, rows.scores)
        found = audit_cells(cells, inside, source=source, seed=seed, on=on)
        return dataclasses.replace(found, notes=(*self.notes, *found.notes))


def audit_model(
    model: Any,
    space: Any,
    make_input: MakeInput,
    score: Score | Mapping[str, Score],
    *,
    seed: int = 0,
    on: On | None = None,
    **asking: Any,
) -> Audit:
    """Asks a model about combinations and audits the answers: `ask_model`, which has the other settings, and `audit`."""
    if on is not None:
        on("asking the model")
    asked = ask_model(model, space, make_input, score, seed=seed, **asking)
    return asked.audit(source=getattr(model, "__name__", type(model).__name__), seed=seed, on=on)


def ask_model(
    model: Any,
    space: Any,
    make_input: MakeInput,
    score: Score | Mapping[str, Score],
    *,
    combinations: int | Iterable[Any] | np.ndarray | None = None,
    trained: Callable[[Any], bool] | Iterable[Any] | np.ndarray | None = None,
    repeats: int = 4,
    layers: Sequence[str] | None = None,
    pool: Pool = "mean",
    batch: int | None = None,
    method: str = "predict",
    seed: int = 0,
) -> Asked:
    """Asks a model `repeats` times about each combination.

    `model`: a function of one input (or, with `batch`, of several), a PyTorch module, an Equinox module (with `trace`,
    if it is to be looked into), an estimator with `predict` (or another `method`). `space`: a `ProductSpace`, a
    `SubsetSpace`, or a mapping from factors to values. `make_input(combination, rng)` returns the input and the target;
    a combination is a dictionary by factor, or a tuple of module numbers. `score(output, target)` returns a number;
    several scores are a mapping from names to functions.

    `combinations`: which, or how many at random; None: all, or 500 if there are more. `trained`: those that the model
    was trained on, or a function that tells. `layers`: which to look into; None: all, or 16 of a PyTorch module; an
    empty list: none. An answer that raises an error is missing, and that is said.
    """
    wanted = asked_space(space)
    scores = dict(score) if isinstance(score, Mapping) else {"score": score}
    if not scores or set(scores) & set(wanted.columns):
        raise BadInput(
            f"Scores need names that are no factor's ({', '.join(wanted.columns)}), got {sorted(scores)}.",
            fix='give a mapping with another name: score={"success": function}',
        )
    if repeats < 1:
        raise BadInput(f"Each combination is asked once at least, got repeats={repeats}.")
    chosen = wanted.chosen(combinations, seed)
    studied = None if trained is None else _trained(wanted, trained, chosen)
    with callee(model, layers, pool, batch, method) as asked:
        answers = _Answers(asked, scores, keep=layers is None or len(layers) > 0)
        for number, combination in enumerate(chosen):
            for repeat in range(repeats):
                rng = np.random.default_rng([seed, zlib.crc32(wanted.name(combination).encode()), repeat])
                answers.add(number, *_example(make_input, combination, rng))
        answers.finish()
    return _asked(wanted, chosen, studied, answers)


def _trained(wanted: AskedSpace, trained: Any, chosen: list[Combination]) -> list[Combination]:
    """The combinations that the model was trained on."""
    if callable(trained):
        every = wanted.listed()
        found = [one for one in (chosen if every is None else every) if trained(one)]
    else:
        found = wanted.given(trained)
    if not found:
        raise BadInput("No combination was trained on.", fix="leave `trained` out if that is not known")
    return found


def _example(make_input: MakeInput, combination: Combination, rng: np.random.Generator) -> tuple[Any, Any]:
    made = make_input(combination, rng)
    if not isinstance(made, tuple) or len(made) != 2:
        raise BadInput(
            f"make_input must return an input and a target, got a {type(made).__name__}.",
            fix="return input, None where the score needs no target",
        )
    return made


class _Answers:
    """Asks in batches, and keeps scores, activations and failures."""

    def __init__(self, asked: Callee, scores: dict[str, Score], keep: bool) -> None:
        self._asked, self._scores, self._keep = asked, scores, keep
        self._waiting: list[tuple[int, Any, Any]] = []
        self.number: list[int] = []
        self.scores: list[list[float]] = []
        self.layers: list[dict[str, np.ndarray]] = []
        self.calls = 0
        self.failures: list[str] = []
        self.first: Exception | None = None

    def add(self, number: int, given: Any, target: Any) -> None:
        """An input to ask; it is asked when a batch is full."""
        self._waiting.append((number, given, target))
        if len(self._waiting) == self._asked.batch:
            self.finish()

    def finish(self) -> None:
        """Asks what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.calls += len(waiting)
            self._ask(waiting)

    def _ask(self, waiting: list[tuple[int, Any, Any]]) -> None:
        try:
            outputs, layers = self._asked.call([given for _, given, _ in waiting])
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 (somebody else's model may raise anything)
            if len(waiting) == 1:
                self._failed(error)
            else:
                # One bad input is no reason to lose the others.
                for one in waiting:
                    self._ask([one])
            return
        for index, ((number, _, target), output) in enumerate(zip(waiting, outputs, strict=True)):
            try:
                scores = [float(score(output, target)) for score in self._scores.values()]
            except Exception as error:  # noqa: BLE001 (somebody else's score, of an answer that may be anything)
                self._failed(error)
                continue
            self.number.append(number)
            self.scores.append(scores)
            self.layers.append({name: values[index] for name, values in layers.items()} if self._keep else {})

    def _failed(self, error: Exception) -> None:
        self.first = self.first or error
        self.failures.append(f"{type(error).__name__}: {str(error)[:100]}")

    def stacked(self) -> tuple[dict[str, Float[np.ndarray, "row _"]], list[str]]:
        """The layers that every answer has, in one width; and those that were left out for that."""
        names = dict.fromkeys(itertools.chain.from_iterable(self.layers))
        whole, left = {}, []
        for name in names:
            widths = {one[name].shape if name in one else None for one in self.layers}
            if len(widths) == 1:
                whole[name] = np.stack([one[name] for one in self.layers])
            else:
                left.append(name)
        return whole, left


def _asked(
    wanted: AskedSpace, chosen: list[Combination], studied: list[Combination] | None, answers: _Answers
) -> Asked:
    """The answers as a table, and sentences about what failed."""
    import pandas as pd

    if not answers.scores:
        raise BadInput(
            f"All {answers.calls} calls failed, the first with {answers.failures[0]}",
            fix="try make_input, the model and the score on one combination",
        ) from answers.first
    notes = []
    if answers.failures:
        kinds = list(dict.fromkeys(answers.failures))
        silent = sorted(set(range(len(chosen))) - set(answers.number))
        notes.append(
            f"{len(answers.failures)} of {answers.calls} calls failed and are missing: "
            + "; ".join(kinds[:FAILURES_TOLD])
            + ("; and others." if len(kinds) > FAILURES_TOLD else ".")
        )
        if silent:
            notes.append(f"Without any answer: {listed([wanted.name(chosen[number]) for number in silent])}.")
    layers, left = answers.stacked()
    if left:
        notes.append(f"Layers without activations of one width in every call were left out: {listed(left)}.")
    frame = pd.DataFrame(wanted.table([chosen[number] for number in answers.number]))
    for index, name in enumerate(answers._scores):
        frame[name] = np.array([scores[index] for scores in answers.scores], dtype=float)
    train = None if studied is None else pd.DataFrame(wanted.table(studied))
    return Asked(frame, layers, train, wanted.factors, wanted.sets, tuple(answers._scores), tuple(notes))
