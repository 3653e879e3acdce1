"""Held-out accuracy of runs on episodes, by the context of prompts and by the kind of queries."""

from __future__ import annotations

import pandas as pd

from recombine.design import Arm, Tables


def _scored(tables: Tables, pattern: str, column: str) -> pd.DataFrame:
    """The mean accuracy of each run on held-out queries, by what a pattern finds in their names: one column each."""
    frame = tables.combinations.reindex(columns=["run", "region", "combination", "whole"])
    frame = frame[frame["region"] == "held_out"]
    found = frame["combination"].astype(str).str.extract(pattern, expand=False)
    means = frame.assign(whole=frame["whole"].astype(float)).groupby(["run", found.rename(column)])["whole"].mean()
    return means.unstack(column).rename_axis(columns=None).reset_index()


def by_context(tables: Tables) -> pd.DataFrame:
    """The accuracy of each run on held-out queries by the context of the prompt."""
    return _scored(tables, r"context=(\w+)", "context")


def by_kind(tables: Tables, context: str = "") -> pd.DataFrame:
    """The accuracy of each run on held-out queries by their kind, such as `new`.

    Args:
        tables: The tables of an arm.
        context: Only prompts of this context; empty for all.
    """
    return _scored(tables, rf"context={context or '[^ ]+'} .*query=(\w+)", "kind")


def with_contexts(arm: Arm) -> pd.DataFrame:
    """The table of runs with the accuracies of `by_context`."""
    return arm.frame.drop_duplicates("run").merge(by_context(arm.tables), on="run", how="left")


def with_kinds(arm: Arm, context: str = "") -> pd.DataFrame:
    """The table of runs with the accuracies of `by_kind`."""
    return arm.frame.drop_duplicates("run").merge(by_kind(arm.tables, context), on="run", how="left")
