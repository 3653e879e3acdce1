"""The options of `recombine audit` for logs of evaluation tools, and for prompts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.audit.logs.log import Log


@Parameter(name="*", group="Logs and prompts")
@dataclasses.dataclass(frozen=True)
class LogOptions:
    """How a log is read, and how its prompts name the factors."""

    template: list[str] | None = None
    """How prompts name the factors: "a {colour} {object} on a {place}"; {colour:red|blue} lists values, {_} is any text. Again for other prompts."""
    parse: str | None = None
    """Or a function from a prompt to a dictionary by factor: module:function."""
    prompt: str | None = None
    """The column that holds the prompt, if it is not the log's own."""
    log_format: str | None = None
    """inspect, lm-eval, helm, geneval, wandb, mlflow or table, if it is not recognised."""

    def source(self, path: Path) -> Path | Log:
        """The log at a path; the path itself if it is an ordinary table and no option is given."""
        from recombine.audit.logs.log import Log, reader_of

        if self == NO_LOG and reader_of(path) is None:
            return path
        if self.prompt is not None and not self.template and self.parse is None:
            raise BadInput("--prompt names a column to which nothing is applied.", fix="add --template or --parse")
        function = None
        if self.parse is not None:
            from recombine.endpoints.function import load_function

            function = load_function(self.parse, fix="name a function(prompt) that returns a dictionary by factor")
        return Log(path, self.template or (), function, self.prompt, self.log_format)


NO_LOG = LogOptions()


def with_defaults(source: Path | Log, columns: dict[str, Any]) -> dict[str, Any]:
    """The columns, with the factors of the template and the only score of a log where none are named."""
    if isinstance(source, Path) or (columns["scores"] and (columns["factors"] or columns["roles"] or columns["sets"])):
        return columns
    peek = source.peek()
    factors = columns["factors"] or (() if columns["roles"] or columns["sets"] else peek.factors)
    if not factors and not columns["roles"] and not columns["sets"]:
        others = [name for name in peek.columns if name not in peek.scores]
        raise BadInput(
            f"No factor is named. {source.title} has the columns {', '.join(others[:12])}.",
            fix='name factors (--factors colour,object), or say how prompts name them (--template "a {colour} {object}")',
        )
    scores = columns["scores"] or peek.scores
    if len(scores) > 1 and not columns["scores"]:
        raise BadInput(
            f"{source.title} has several scores: {', '.join(scores[:12])}.",
            fix=f"name one or more: --score {scores[0]}",
        )
    return columns | {"factors": factors, "scores": scores}
