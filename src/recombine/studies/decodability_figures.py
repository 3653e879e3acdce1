"""The figures of the study `decodability`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from recombine.figures.base import Figure
from recombine.figures.lines import draw_lines, lines_info
from recombine.figures.scatter import draw_scatter, scatter_info
from recombine.stats.intervals import t_interval
from recombine.studies.base import Tables
from recombine.studies.decodability_effects import LABELS

if TYPE_CHECKING:
    from recombine.studies.decodability import Decodability

UNTRAINED = "before training"
FORMS = {
    "intrinsic": "read-out fitted on held-out combinations",
    "transfer": "read-out fitted on trained combinations",
}
SWAPS = {
    "ceiling": "ceiling: the whole layer",
    "ceiling_shift": "ceiling: a shift, whatever the input",
    "efficacy": "constituent swapped",
    "floor_control": "floor: probe of random codes",
    "floor_random": "floor: random directions",
}
ERASURES = {
    "before": "as it is",
    "after": "constituents erased",
    "random": "random subspaces erased",
    "mean": "whole layer at its mean",
}


def figures(study: Decodability, tables: Tables) -> list[Figure]:
    """Decodability against held-out R2 and by layer; both causal tests by layer."""
    return [_within(study, tables), _by_layer(study, tables), _swaps(study, tables), _erasures(study, tables)]


def _named(number: int) -> str:
    return f"{number} combinations"


def _control(study: Decodability) -> str:
    return f"control: independent functions, {study.numbers[0]}"


def _within(study: Decodability, tables: Tables) -> Figure:
    frame = study.points(tables)
    names = [
        f"width {width}, replicate {seed}"
        for width, seed in zip(frame["width"], frame["replicate"], strict=True)
    ]
    info = scatter_info(
        frame.assign(name=names),
        "deepest",
        "r2_held_out",
        "number",
        labels={number: _named(number) for number in study.numbers},
        ordered=True,
        fit="common",
        name="name",
        note=_note(study, tables),
        x_title="decodability in the deepest layer (intrinsic R²)",
        y_title="held-out R²",
        caption_lead=(
            "A point for each network. Both measures rise with the number of training combinations (colour), so only what "
            "happens within a colour says that networks which keep the constituents are those that recombine. Within a "
            f"colour teachers and first weights differ, and widths ({', '.join(map(str, _widths(study)))}) where there are "
            "several: clouds of one colour that lie far apart are networks of different width, and the second correlation "
            "leaves this difference out."
        ),
    )
    title = "Do networks that keep the constituents generalise better?"
    return Figure("decodability_within_size", title, info.caption, draw_scatter(info))


def _widths(study: Decodability) -> list[int]:
    return sorted({study.width, *study.other_widths})


def _note(study: Decodability, tables: Tables) -> str:
    """The correlations that the claims are about, in words."""
    found = {effect.claim.name: effect.values for effect in study.effects(tables)}
    said = []
    for name, words in (("within-size", "within size"), ("within-size-and-width", "within size and width")):
        values = found[name][np.isfinite(found[name])]
        if len(values) > 1:
            one = t_interval(values)
            low, high = max(one.low, -1.0), min(one.high, 1.0)
            said.append(f"{words} {np.clip(one.estimate, -1, 1):.2f} ({low:.2f} to {high:.2f})")
    return f"rank correlation {'; '.join(said)}" if said else ""


def _layers(frame: pd.DataFrame) -> pd.DataFrame:
    """With a column `layer`: 0 is the encoding."""
    number = frame["site"].astype(str).str.extract(r"hidden (\d+)$")[0].astype(float)
    return frame.assign(layer=number.where(frame["site"] != "encoding", 0.0))


def _by_layer(study: Decodability, tables: Tables) -> Figure:
    columns = [*LABELS, "site", "form", "network", "strength", "r2"]
    probes = _layers(tables.probes.reindex(columns=columns))
    probes = probes[(probes["strength"] == "chosen") & (probes["width"] == study.width)]
    few, many = study.numbers[0], study.numbers[-1]
    main, control = study.base.family.kind, study.control.kind
    parts = [
        probes[_is(probes, main, few, "trained")].assign(series=_named(few)),
        probes[_is(probes, main, many, "trained")].assign(series=_named(many)),
        probes[_is(probes, control, few, "trained")].assign(series=_control(study)),
        probes[_is(probes, main, many, "untrained")].assign(series=UNTRAINED),
    ]
    info = lines_info(
        pd.concat(parts, ignore_index=True),
        x="layer",
        y="r2",
        series="series",
        facet="form",
        log=False,
        labels=[_named(few), _named(many), _control(study), UNTRAINED],
        facet_labels=FORMS,
        controls=[_control(study), UNTRAINED],
        floor=-0.2,
        ceiling=1.0,
        x_title="hidden layer (0: the encoding)",
        y_title="decodability (R²)",
        caption_lead=(
            "How well a linear read-out finds the constituents of tasks of held-out combinations in each layer. Left: it is "
            "fitted on other held-out combinations, equally many for every network. Right, as published: it is fitted on the "
            "network's own training combinations, so that few of them starve the read-out too. The first hidden layer is "
            "told the constituents by the encoding and proves nothing. In the control every combination is a function of its "
            f"own, and there is nothing to recombine; `{UNTRAINED}` is the same network at its first weights."
        ),
    )
    title = "Where do the constituents fade?"
    return Figure("decodability_by_layer", title, info.caption, draw_lines(info))


def _is(probes: pd.DataFrame, family: str, number: int, network: str) -> pd.Series:
    return (
        (probes["family"] == family)
        & (probes["number"] == number)
        & (probes["network"] == network)
        & probes["form"].isin(list(FORMS))
    )


def _measured(study: Decodability, tables: Tables, kind: str, values: Sequence[str]) -> pd.DataFrame:
    """A row a run, layer and measure of an interfering measurement: few and many combinations of the family."""
    columns = [*LABELS, "site", *values]
    frame = _layers(tables.others.get(kind, pd.DataFrame()).reindex(columns=columns))
    ends = [study.numbers[0], study.numbers[-1]]
    frame = frame[
        (frame["family"] == study.base.family.kind)
        & (frame["width"] == study.width)
        & frame["number"].isin(ends)
    ]
    return frame.melt(["replicate", "number", "layer"], list(values), "measure", "value")


def _swaps(study: Decodability, tables: Tables) -> Figure:
    info = lines_info(
        _measured(study, tables, "swap", list(SWAPS)),
        x="layer",
        y="value",
        series="measure",
        facet="number",
        log=False,
        labels=SWAPS,
        facet_labels={number: _named(number) for number in study.numbers},
        controls=["floor_control", "floor_random"],
        floor=-0.5,
        ceiling=1.0,
        x_title="hidden layer",
        y_title="efficacy",
        caption_lead=(
            "The swap test on held-out combinations: activations are moved until a read-out sees another constituent, and the "
            "network runs on. Efficacy is 1 where it then answers as it would for the other task, and 0 where the edit is as "
            "good as none. The ceilings put in the whole layer of the other task, or the mean difference of both "
            "over inputs; the floors are edits of equal length in other directions. The first layer is told the constituents, "
            "and does not count."
        ),
    )
    return Figure("swap_by_layer", "Does the network use what is read?", info.caption, draw_lines(info))


def _erasures(study: Decodability, tables: Tables) -> Figure:
    info = lines_info(
        _measured(study, tables, "erasure", list(ERASURES)),
        x="layer",
        y="value",
        series="measure",
        facet="number",
        log=False,
        labels=ERASURES,
        facet_labels={number: _named(number) for number in study.numbers},
        controls=["before", "mean"],
        floor=-1.0,
        ceiling=1.0,
        x_title="hidden layer",
        y_title="held-out R²",
        caption_lead=(
            "Held-out R² when the constituents are erased from one layer, so that no linear read-out finds them there. If the "
            "network needs what is read, this costs more than erasing random subspaces of the same rank. With the whole layer "
            "at its mean nothing is left to erase."
        ),
    )
    return Figure("erasure_by_layer", "Does the network need what is read?", info.caption, draw_lines(info))
