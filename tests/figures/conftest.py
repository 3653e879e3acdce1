"""Small frames of the shapes that the store gives."""

import itertools

import numpy as np
import pandas as pd
import pytest

SIZES = (40, 160)
SITES = ("hidden 10", "encoding", "hidden 2", "hidden 1")


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    rows = [
        (f"{family}-{number}-{replicate}", family, replicate, number, *(mean + rng.normal(0, 0.02, 2)))
        for family, mean in (("hyperteacher", np.array([0.9, 0.6])), ("lookup", np.array([0.6, -0.5])))
        for number, replicate in itertools.product(SIZES, range(4))
    ]
    return pd.DataFrame(rows, columns=["run", "family", "replicate", "number", "r2_in", "r2_held_out"])


@pytest.fixture
def probes():
    rng = np.random.default_rng(1)
    rows = [
        (f"{number}-{replicate}", replicate, number, site, network, form, strength, *rng.normal(0.5, 0.1, 3))
        for number, replicate, site in itertools.product(SIZES, range(3), SITES)
        for network in ("trained", "untrained")
        for form in ("intrinsic", "transfer")
        for strength in ("1", "chosen")
    ]
    columns = ["run", "replicate", "number", "site", "network", "form", "strength", "r2", "control", "selectivity"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture
def combinations():
    """Three constituents; 0 and 1 met in training, 1 and 2 met by stratum only, 0 and 2 never met."""
    rows = [
        ([0], "trained", "all_pairs_met", 1.0, 10.0),
        ([0, 1], "trained", "all_pairs_met", 3.0, 10.0),
        ([2], "held_out", "all_pairs_met", 2.0, 10.0),
        ([1, 2], "held_out", "all_pairs_met", 4.0, 5.0),
        ([0, 2], "held_out", "some_pairs_unmet", 20.0, 10.0),
        ([0, 1, 2], "held_out", "some_pairs_unmet", 5.0, 10.0),
    ]
    first = [("a", 0, 40, "+".join(map(str, row[0])), row[0], len(row[0]), *row[1:]) for row in rows]
    later = [("b", 1, *one[2:]) for one in first]
    columns = [
        "run",
        "replicate",
        "number",
        "combination",
        "constituents",
        "parts",
        "region",
        "stratum",
        "error",
        "spread",
    ]
    return pd.DataFrame([*later, *first], columns=columns)


@pytest.fixture
def curves():
    rows = [
        (f"{number}-{replicate}", replicate, number, "hyperteacher", step, 1.0, step / 100, step / 200 - 0.3)
        for number, replicate in itertools.product(SIZES, range(3))
        for step in range(0, 110, 10)
        # The last replicate stops early.
        if replicate < 2 or step <= 50
    ]
    columns = ["run", "replicate", "number", "family", "step", "loss", "score_in", "score_held_out"]
    return pd.DataFrame(rows, columns=columns)
