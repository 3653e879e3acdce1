"""`recombine plot`: one number of the runs against a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import recombine as rc
from recombine.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from recombine.cli.output import answer, check_file, check_problems, looked
from recombine.errors import BadInput

ENDINGS = (".html", ".png", ".svg", ".pdf", ".json")


def plot(
    x: str,
    y: str = "score_held_out",
    *,
    by: str | None = None,
    where: str | None = None,
    tag: str | None = None,
    out: Annotated[Path, Parameter(name=("--out", "-o"))] = Path("plot.html"),
    store_path: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Draw one number of the runs against a setting: means with 95 % intervals over replicates.

    Args:
        x: The setting along the axis, e.g. width.
        y: The number that is drawn.
        by: One line or colour per value of this setting.
        where: Only runs for which this holds, e.g. "family = 'hyperteacher'".
        tag: Only runs with this tag.
        out: The file to write: .html, .png, .svg, .pdf or .json.
    """
    from recombine.store.tags import tagged

    if out.suffix.lower() not in ENDINGS:
        raise BadInput(f"A figure cannot be written as {out.name}.", fix=f"end the name in {', '.join(ENDINGS)}")
    check_file(out, "figure", "plot.html")
    store = rc.load_store(store_path)
    index = looked(store, as_json)
    x, y, by = index.column(x), index.column(y), None if by is None else index.column(by)
    frame = index.frame(where=where, runs=None if tag is None else tagged(store, tag), refresh=False)
    if not len(frame):
        raise BadInput(
            f"No run in {store_path} is meant.", fix="recombine ls --where ... shows which runs a filter keeps"
        )
    figure = rc.figures.of_runs(frame, x, y, by=by)
    figure.save(out)
    document = {"figure": str(out), "x": x, "y": y, "by": by, "runs": len(frame), "caption": figure.caption}
    answer(as_json, document | {"problems": store.problems}, f"figure: {out}\n{figure.caption}")
    check_problems(store)
