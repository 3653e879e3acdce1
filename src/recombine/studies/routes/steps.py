"""Held-out accuracy by the number of steps of a chain: what the studies of other routes share."""

from __future__ import annotations

import pandas as pd

from recombine.design import Arm, Tables

MOST = 5
"""The most steps of a trained chain. Chains of one step more are held out."""
LONG = (4, 5)
"""The numbers of steps of the chains that most claims are about: the longest that are trained."""


def by_steps(tables: Tables) -> pd.DataFrame:
    """The accuracy of each run on held-out chains by their number of steps, and over those of `LONG` together (`composed`)."""
    names = {n: f"steps_{n}" for n in range(1, MOST + 2)}
    frame = tables.combinations.reindex(columns=["run", "region", "combination", "whole"])
    frame = frame[frame["region"] == "held_out"]
    frame = frame.assign(
        steps=frame["combination"].astype(str).str.count(r"\S+") - 1, whole=frame["whole"].astype(float)
    )
    means = frame.pivot_table(index="run", columns="steps", values="whole", aggfunc="mean").rename(columns=names)
    long = frame[frame["steps"].isin(LONG)].groupby("run")["whole"].mean().rename("composed")
    return means.reindex(columns=list(names.values())).join(long, how="outer").reset_index()


def scored(arm: Arm) -> pd.DataFrame:
    """The table of runs with the accuracies of `by_steps`."""
    return arm.frame.drop_duplicates("run").merge(by_steps(arm.tables), on="run", how="left")
