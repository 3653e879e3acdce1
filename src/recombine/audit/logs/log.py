"""A log of an evaluation tool as a table: its samples, and the factors that a template or a function finds in prompts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import itertools
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.audit.logs.sample import Notes, Reader, Sample, is_scalar
from recombine.audit.logs.template import SHOWN, Template
from recombine.audit.wording import counted
from recombine.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from recombine.audit.reading.formats import Format

READERS = {
    "helm": "helm",
    "inspect": "inspect_ai",
    "geneval": "geneval",
    "lm-eval": "lm_eval",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "table": "plain_table",
}
"""The module of each format, in the order in which they are tried. The last one takes any table."""
HEAD = 1 << 16
"""How many bytes are read to recognise a log."""
PEEK = 200
"""How many samples are read to find out what a log has."""

ParsePrompt = Callable[[str], Mapping[str, Any] | None]
"""From a prompt to the values of its factors; None if it has none."""


@dataclasses.dataclass(frozen=True)
class Peek:
    """What the first samples of a log have."""

    factors: tuple[str, ...]
    """What the template or the function finds in prompts."""
    scores: tuple[str, ...]
    columns: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Log:
    """A log of Inspect, lm-evaluation-harness, HELM, GenEval, Weights & Biases or MLflow, or any table with prompts.

    Wherever an audit takes a table, it takes a log. A log is read one sample at a time.

    Args:
        path: The file, or the folder of a HELM run.
        template: How prompts name the factors: `"a {colour} {object} on a {place}"`; or several such templates.
        parse: Or a function from the prompt to a dictionary by factor, or None.
        prompt: The column that holds the prompt, if it is not the log's own.
        format: The name of the format, if it is not recognised.

    Example:
        ```python
        log = rc.audit.Log("log.eval", template="a {colour} {object}")
        rc.audit_table(log, factors=["colour", "object"], scores="accuracy")
        ```
    """

    path: str | Path
    template: str | Sequence[str] = ()
    parse: ParsePrompt | None = None
    prompt: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.template and self.parse is not None:
            raise BadInput("Both a template and a function are given.", fix="choose one of the two")
        _ = self.templates  # An error in a template is reported at once.

    @property
    def title(self) -> str:
        """The name of the file."""
        return Path(self.path).name

    @functools.cached_property
    def templates(self) -> tuple[Template, ...]:
        """The templates, parsed."""
        return tuple(
            map(Template, (self.template,) if isinstance(self.template, str) and self.template else self.template)
        )

    @functools.cached_property
    def reader(self) -> Reader:
        """How the log is read."""
        found = reader_of(self.path, self.format)
        return found or _reader("table")

    def samples(self, notes: Notes | None = None) -> Generator[Sample]:
        """The samples, with the factors among their columns."""
        path, notes = Path(self.path), notes or Notes()
        total, lost, example, lacking = 0, 0, None, 0
        for number, sample in enumerate(self._read(path, notes), start=1):
            total = number
            if not self.templates and self.parse is None:
                yield sample
                continue
            prompt = self._prompt(sample)
            factors = None if prompt is None else self._factors(prompt, number)
            lacking += prompt is None
            if factors is None:
                lost, example = lost + 1, example or prompt
                yield sample
            else:
                yield dataclasses.replace(sample, columns=sample.columns | factors, factors=tuple(factors))
        if not total:
            raise BadInput(f"{self.title} has no samples.", fix="give a log of an evaluation that ran")
        if lost:
            self._complain(total, lost, lacking, example, notes)

    def _read(self, path: Path, notes: Notes) -> Iterator[Sample]:
        """The samples as they are in the log."""
        if not path.exists():
            raise BadInput(f"There is no file {str(self.path)!r}.", fix="give a log, or the folder of a HELM run")
        number, reader = 0, self.reader
        try:
            for number, sample in enumerate(reader.samples(path, self.title, notes), start=1):  # noqa: B007
                yield sample
        except BadInput:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, RecursionError) as error:
            raise BadInput(
                f"Sample {number + 1} of {self.title} is not as {reader.name} writes it: {type(error).__name__}: {error}.",
                fix="the log may be damaged or of a newer version: write it again, or give its samples as a table",
            ) from error

    def _complain(self, total: int, lost: int, lacking: int, example: str | None, notes: Notes) -> None:
        """An error if no prompt has the factors, a note if some lack them."""
        what = "the templates" if len(self.templates) > 1 else "the template" if self.templates else "the function"
        such = "" if example is None else f", such as {example[:SHOWN]!r}"
        if lost < total:
            verb = "does not match" if lost == 1 else "do not match"
            notes.sentences.append(f"{counted(lost, 'prompt')} of {total:,} {verb} {what}{such}.")
        elif lacking == total:
            raise BadInput(f"{self.title} has no prompts.", fix="name the column that has them: --prompt COLUMN")
        else:
            shown = "" if not self.templates else f" {', '.join(repr(one.text) for one in self.templates)}"
            raise BadInput(
                f"None of the {total:,} prompts of {self.title} matches {what}{shown}{such}.",
                fix="the whole prompt must match; {_} stands for any text, such as '{_} a {colour} {object}.'",
            )

    def _prompt(self, sample: Sample) -> str | None:
        if self.prompt is None:
            return sample.prompt
        if self.prompt not in sample.columns:
            raise BadInput(
                f"{self.title} has no column {self.prompt!r}.", fix=did_you_mean(self.prompt, sample.columns)
            )
        value = sample.columns[self.prompt]
        return None if value is None else str(value)

    def _factors(self, prompt: str, number: int) -> dict[str, Any] | None:
        if self.parse is None:
            found = [(one, values) for one in self.templates if (values := one.match(prompt)) is not None]
            for (first, mine), (second, other) in itertools.pairwise(found):
                if mine != other:
                    raise BadInput(
                        f"Two templates match the prompt {prompt[:SHOWN]!r}, with other values: {first.text!r} and {second.text!r}.",
                        fix="make them exclude each other, for example by listing values: {colour:red|blue}",
                    )
            return found[0][1] if found else None
        try:
            values = self.parse(prompt)
        except Exception as error:
            raise BadInput(
                f"The function failed on the prompt of sample {number}, {prompt[:SHOWN]!r}: {type(error).__name__}: {error}.",
                fix="return None for prompts without factors",
            ) from error
        if values is not None and not (isinstance(values, Mapping) and all(map(is_scalar, values.values()))):
            raise BadInput(
                f"The function returned {values!r} for the prompt of sample {number}.",
                fix='return a dictionary such as {"colour": "red"}, or None',
            )
        return None if values is None else {str(name): value for name, value in values.items()}

    def peek(self) -> Peek:
        """What the log has, from its first samples."""
        columns, scores = dict[str, None](), dict[str, None]()
        factors = dict.fromkeys(name for template in self.templates for name in template.fields)
        with contextlib.closing(self.samples()) as samples:
            for sample in itertools.islice(samples, PEEK):
                factors |= dict.fromkeys(sample.factors)
                columns |= dict.fromkeys(sample.columns)
                scores |= dict.fromkeys(sample.scores)
        named = tuple(name for name in scores if name not in factors)
        return Peek(tuple(factors), named, tuple(name for name in columns if name not in factors))

    def as_format(self, wanted: Sequence[str], where: str | None, folder: Path) -> Format:
        """The log as a temporary table in `folder`, of which only the columns that are needed have values."""
        from recombine.audit.reading.formats import Format, literal

        notes, names = Notes(), dict[str, int]()
        asked, path = (where or "").lower(), folder / "samples.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for sample in self.samples(notes):
                columns = {"prompt": sample.prompt} | sample.columns
                cells = {}
                for name, value in columns.items():
                    number = names.setdefault(name, len(names))
                    if value is not None and (name in wanted or name.lower() in asked):
                        cells[f"c{number}"] = value
                out.write(json.dumps(cells) + "\n")
        columns = ", ".join(f"c{number}: 'JSON'" for number in names.values())
        relation = (
            f"read_json({literal(str(path))}, format = 'newline_delimited', auto_detect = false, "
            f"hive_partitioning = false, columns = {{{columns}}})"
        )
        kinds = ["VARCHAR"] * len(names)
        return Format(
            relation, [*names], kinds, wrap="({} ->> '$')", path=path, alias=False, notes=tuple(notes.sentences)
        )


def reader_of(path: str | Path, format: str | None = None) -> Reader | None:
    """The reader of a log, by its format's name or by its content; None for an ordinary table."""
    path = Path(path)
    if format is not None and format not in READERS:
        raise BadInput(f"There is no format of logs called {format!r}.", fix=did_you_mean(format, READERS))
    if format is not None:
        return _reader(format)
    head = b""
    # What cannot be read is reported where it is opened.
    with contextlib.suppress(OSError), path.open("rb") as stream:
        head = stream.read(HEAD)
    every = (_reader(name) for name in READERS if name != "table")
    return next((reader for reader in every if reader.recognises(path, head)), None)


def _reader(name: str) -> Reader:
    return importlib.import_module(f"recombine.audit.logs.{READERS[name]}").READER
