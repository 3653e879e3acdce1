"""An audit of a model that can be called: recombine asks it, and audits the answers like any table."""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from recombine._html import card, listing, table
from recombine.audit.asking.calling import Call, prepared_model
from recombine.audit.asking.space import Combination, NamedSpace, named_space
from recombine.audit.asking.torch_hooks import Pool
from recombine.audit.cells import Activations
from recombine.audit.findings import Audit
from recombine.audit.wording import counted, listed
from recombine.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd

    from recombine.audit.audit import OnProgress

MakeInput = Callable[[Any, np.random.Generator], tuple[Any, Any]]
"""From a combination to an input for the model and a target for the score (None if the score needs none)."""
Score = Callable[[Any, Any], Any]
"""From the model's output and the target to a number."""
FAILURES_SHOWN = 3
"""How many different errors the notes quote."""
ROWS_SHOWN = 5
"""How many answers a notebook shows."""


@dataclasses.dataclass(frozen=True, repr=False)
class ModelAnswers:
    """The scored answers of a model as a table, one row per answer, with the model's activations."""

    frame: pd.DataFrame
    layers: dict[str, Float[np.ndarray, "row _"]]
    train: pd.DataFrame | None
    """The combinations that the model was trained on."""
    factors: tuple[str, ...]
    sets: tuple[str, ...]
    """The column that holds sets of modules, if the space is one of subsets."""
    scores: tuple[str, ...]
    notes: tuple[str, ...]

    def audit(self, *, source: str = "", seed: int = 0, progress: OnProgress | None = None) -> Audit:
        """Audit the answers.

        Args:
            source: The title of the audit.
            seed: The seed of all resampling.
            progress: Called with each stage.

        Returns:
            The findings, as those of `audit_table`.
        """
        from recombine.audit.audit import audit_cells
        from recombine.audit.reading.read import read_rows

        cells, rows = read_rows(self.frame, factors=self.factors, sets=self.sets, scores=self.scores, train=self.train)
        layers = {name: values[rows.row] for name, values in self.layers.items()}
        inside = Activations(layers, rows.cell, rows.scores) if layers else None
        audit = audit_cells(cells, inside, source=source, seed=seed, progress=progress)
        return dataclasses.replace(audit, notes=(*self.notes, *audit.notes))

    def __repr__(self) -> str:
        """The size of the table, its columns and the notes."""
        return "\n  ".join([f"ModelAnswers: {self._size()}", *self.notes])

    def _repr_html_(self) -> str:
        rows = self.frame.head(ROWS_SHOWN).itertuples(index=False)
        return card(f"ModelAnswers: {self._size()}", table([*self.frame], rows), listing(self.notes))

    def _size(self) -> str:
        columns = ", ".join((*self.factors, *self.sets, *self.scores))
        layers = counted(len(self.layers), "layer")
        return f"{counted(len(self.frame), 'answer')} ({columns}), activations of {layers}"


def audit_model(
    model: Any,
    space: Any,
    make_input: MakeInput,
    scores: Score | Mapping[str, Score],
    *,
    combinations: int | Iterable[Any] | np.ndarray | None = None,
    train: Callable[[Any], bool] | Iterable[Any] | np.ndarray | None = None,
    repeats: int = 4,
    layers: Sequence[str] | None = None,
    pool: Pool = "mean",
    batch: int | None = None,
    method: str = "predict",
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Audit:
    """Ask a model about combinations, and audit the answers.

    Args:
        model: A function of one input (with `batch`: of several), a PyTorch module, an Equinox module (with `trace`,
            if its activations are to be read), an estimator with `predict`, a pipeline of transformers, a model with
            its tokenizer, or the local folder of one.
        space: A `ProductSpace`, a `SubsetSpace`, or a mapping from factors to values: `{"colour": ["red", "blue"]}`.
        make_input: Called with a combination and a random generator; returns the input and the target. A combination
            is a dictionary by factor, or a tuple of module numbers.
        scores: A function of output and target that returns a number, or a mapping from names to such functions.
        combinations: Which combinations to ask about, or how many at random; None: all, or 500 of a larger space.
        train: The combinations that the model was trained on (a list or a frame), or a function that says so.
        repeats: Inputs per combination.
        layers: The layers whose activations are read; None: all, or 16 of a PyTorch module; an empty list: none.
        pool: How activations become one row per input: `mean` over positions, `none`, or a function.
        batch: Inputs per call.
        method: The method of an estimator.
        seed: The seed of inputs and of all resampling.
        progress: Called with each stage.

    Returns:
        The findings, as those of `audit_table`.

    Example:
        ```python
        audit = audit_model(model, {"colour": colours, "shape": shapes}, make_input, score, train=trained)
        audit.scores[0].advice
        ```
    """
    if progress is not None:
        progress("asking the model")
    calls: dict[str, Any] = {"repeats": repeats, "layers": layers, "pool": pool, "batch": batch, "method": method}
    answers = ask_model(model, space, make_input, scores, combinations=combinations, train=train, seed=seed, **calls)
    return answers.audit(source=getattr(model, "__name__", type(model).__name__), seed=seed, progress=progress)


def ask_model(
    model: Any,
    space: Any,
    make_input: MakeInput,
    scores: Score | Mapping[str, Score],
    *,
    combinations: int | Iterable[Any] | np.ndarray | None = None,
    train: Callable[[Any], bool] | Iterable[Any] | np.ndarray | None = None,
    repeats: int = 4,
    layers: Sequence[str] | None = None,
    pool: Pool = "mean",
    batch: int | None = None,
    method: str = "predict",
    seed: int = 0,
) -> ModelAnswers:
    """Ask a model `repeats` times about each combination. The arguments are those of `audit_model`.

    A call that raises an error is a missing answer, not a wrong one; the notes count such calls.

    Returns:
        The answers: `answers.frame` is the table, `answers.audit()` audits it.

    Example:
        ```python
        answers = ask_model(model, {"colour": colours, "shape": shapes}, make_input, score)
        answers.frame.to_csv("results.csv", index=False)
        ```
    """
    names = named_space(space)
    functions = dict(scores) if isinstance(scores, Mapping) else {"score": scores}
    columns = (*names.factors, *names.sets)
    if not functions or set(functions) & set(columns):
        raise BadInput(
            f"Names of scores must differ from the factors ({', '.join(columns)}), got {sorted(functions)}.",
            fix='give a mapping with another name: scores={"success": function}',
        )
    if repeats < 1:
        raise BadInput(f"Each combination is asked at least once, got repeats={repeats}.", fix="repeats=1 or more")
    chosen = names.choose(combinations, seed)
    trained = None if train is None else _trained(names, train, chosen)
    with prepared_model(model, layers, pool, batch, method) as (call, at_once):
        collector = _Collector(call, functions, keep=layers is None or len(layers) > 0)
        numbered = itertools.product(enumerate(chosen), range(repeats))
        while batch_of := list(itertools.islice(numbered, at_once)):
            examples = []
            for (number, combination), repeat in batch_of:
                rng = np.random.default_rng([seed, zlib.crc32(names.name(combination).encode()), repeat])
                example = make_input(combination, rng)
                if not isinstance(example, tuple) or len(example) != 2:
                    raise BadInput(
                        f"make_input must return an input and a target, got a {type(example).__name__}.",
                        fix="return input, None where the score needs no target",
                    )
                examples.append((number, *example))
            collector.ask(examples)
    return _answers(names, chosen, trained, collector, len(chosen) * repeats)


def _trained(names: NamedSpace, train: Any, chosen: list[Combination]) -> list[Combination]:
    """The combinations that the model was trained on."""
    if callable(train):
        everything = names.listed()
        trained = [each for each in (chosen if everything is None else everything) if train(each)]
    else:
        trained = names.checked(train.to_dict("records") if hasattr(train, "to_dict") else train)
    if not trained:
        raise BadInput("`train` names no combination.", fix="leave `train` out if it is unknown")
    return trained


class _Collector:
    """Calls the model in batches, and keeps scores, activations and failures."""

    def __init__(self, call: Call, scores: dict[str, Score], keep: bool) -> None:
        self._call, self._keep = call, keep
        self.functions = scores
        self.number: list[int] = []
        self.scores: list[list[float]] = []
        self.layers: list[dict[str, np.ndarray]] = []
        self.failures: list[str] = []
        self.first_error: Exception | None = None

    def ask(self, examples: list[tuple[int, Any, Any]]) -> None:
        """Call the model on examples: the number of the combination, the input and the target."""
        try:
            outputs, layers = self._call([model_input for _, model_input, _ in examples])
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 (a user's model may raise anything)
            if len(examples) == 1:
                self._failed(error)
                return
            # One bad input must not lose the others.
            for example in examples:
                self.ask([example])
            return
        for index, ((number, _, target), output) in enumerate(zip(examples, outputs, strict=True)):
            try:
                scores = [float(score(output, target)) for score in self.functions.values()]
            except Exception as error:  # noqa: BLE001 (a user's score, of any output)
                self._failed(error)
                continue
            self.number.append(number)
            self.scores.append(scores)
            self.layers.append({name: values[index] for name, values in layers.items()} if self._keep else {})

    def _failed(self, error: Exception) -> None:
        self.first_error = self.first_error or error
        self.failures.append(f"{type(error).__name__}: {str(error)[:100]}")

    def stacked(self) -> tuple[dict[str, Float[np.ndarray, "row _"]], list[str]]:
        """The layers that every answer has in one width, and the names of the others."""
        stacked, uneven = {}, []
        for name in dict.fromkeys(itertools.chain.from_iterable(self.layers)):
            if len({answer[name].shape if name in answer else None for answer in self.layers}) == 1:
                stacked[name] = np.stack([answer[name] for answer in self.layers])
            else:
                uneven.append(name)
        return stacked, uneven


def _answers(
    names: NamedSpace, chosen: list[Combination], trained: list[Combination] | None, collector: _Collector, calls: int
) -> ModelAnswers:
    """The answers of so many calls as a table, with notes about failures."""
    import pandas as pd

    if not collector.scores:
        raise BadInput(
            f"All {calls} calls failed, the first with {collector.failures[0]}",
            fix="try make_input, the model and the score on one combination",
        ) from collector.first_error
    notes = []
    if collector.failures:
        kinds = list(dict.fromkeys(collector.failures))
        silent = sorted(set(range(len(chosen))) - set(collector.number))
        notes.append(
            f"{len(collector.failures)} of {calls} calls failed and are missing: "
            + "; ".join(kinds[:FAILURES_SHOWN])
            + ("; and others." if len(kinds) > FAILURES_SHOWN else ".")
        )
        if silent:
            notes.append(f"Without any answer: {listed([names.name(chosen[number]) for number in silent])}.")
    layers, uneven = collector.stacked()
    if uneven:
        notes.append(f"Left out, because their activations are not of one width in every call: {listed(uneven)}.")
    frame = pd.DataFrame(names.table([chosen[number] for number in collector.number]))
    for index, name in enumerate(collector.functions):
        frame[name] = np.array([scores[index] for scores in collector.scores], dtype=float)
    train = None if trained is None else pd.DataFrame(names.table(trained))
    return ModelAnswers(frame, layers, train, names.factors, names.sets, tuple(collector.functions), tuple(notes))
