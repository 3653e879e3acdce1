"""What a mask keeps: scores of the subnetwork and of the network without it, on tasks with and without its constituent."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.models.base import EmbeddedNetwork, Network, leaf_name
from recombine.models.masked import MaskedNetwork
from recombine.probes.base import Measured, Measurement
from recombine.probes.scores import ScoreTask
from recombine.probes.tasks import over_tasks
from recombine.supports.regions import Region
from recombine.training import RunConfig, Setting
from recombine.training.streams import Stream

BATCH = 16
"""Tasks in one compiled call. Few combinations are scored here, on many examples each."""
PARTS = ("whole", "subnetwork", "ablated")
REGIONS: dict[str, Region] = {"in": "trained", "held_out": "held_out"}


class Subnetwork(Measurement):
    """The headline score of the whole network, of the subnetwork that a mask keeps, and of the network without it.

    The mask was trained on combinations that share a constituent. Scores are on combinations that the *parent* was trained on
    (`_in`) and on held-out ones of the parent (`_held_out`): those with that constituent (`own`) and those without (`other`).
    So `ablated_own_in` is low, and `ablated_other_in` is high, where the subnetwork is needed for the constituent alone.

    The table has one row per masked matrix: its shape, how many weights are kept, and a fixed random sample of the mask, by which
    two masks of the same network can be compared. Matrices with at most `bits` weights have their whole mask, in order.
    """

    kind: Literal["subnetwork"] = "subnetwork"
    combinations: PositiveInt = 128
    """The largest number of combinations in each region."""
    draws: PositiveInt = 4
    """The number of tasks of each combination."""
    samples: PositiveInt = 64
    """The number of examples of each task."""
    bits: PositiveInt = 1024
    """The largest number of masks in the sample of each matrix."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *(f"{part}_{side}_{region}" for part in PARTS for side in ("own", "other") for region in REGIONS),
        "kept",
    )

    def summary_columns(self, config: RunConfig) -> frozenset[str] | None:
        return frozenset(self.summary_names)

    def measure(self, setting: Setting, network: Network) -> Measured:
        masked = network.network if isinstance(network, EmbeddedNetwork) else network
        if not isinstance(masked, MaskedNetwork) or not setting.config.parents:
            raise BadInput("subnetwork needs a masked network with a parent.", fix="model=masked, and a parent")
        parent = Setting(setting.config.parents[0])
        own, older = (each.regions.rows("trained", self.combinations) for each in (setting, parent))
        parts_of = setting.config.space.constituents
        common = set.intersection(*(set(parts_of(row)) for row in own))
        seen = {part for row in older for part in parts_of(row)}
        focal = common & seen
        if not focal:
            raise BadInput("The combinations that the mask was trained on have no constituent in common.")
        compute = ScoreTask(setting.config.family, setting.config.objective, self.samples)
        summary: dict[str, float] = {"kept": float(masked.share())}
        whole = {"whole": masked.network, "subnetwork": masked.part("subnetwork"), "ablated": masked.part("ablated")}
        parts = {
            name: eqx.tree_at(lambda outer: outer.network, network, part) if network is not masked else part
            for name, part in whole.items()
        }
        for suffix, region in REGIONS.items():
            rows = parent.regions.rows(region, self.combinations, None if suffix == "in" else "test")
            for side, chosen in _sides(parent, rows, focal).items():
                if not chosen.any():
                    continue
                tasks = np.repeat(rows[chosen], self.draws, axis=0)
                for name, part in parts.items():
                    scores = over_tasks(compute, setting, part, tasks, Stream.TEST, f"{side} {suffix}", BATCH)
                    summary[f"{name}_{side}_{suffix}"] = setting.config.family.metrics(scores)[
                        setting.config.family.metric
                    ]
        return Measured.from_records(summary, [self._row(name, kept) for name, kept in _kept(masked)])

    def _row(self, name: str, mask: Bool[np.ndarray, ...]) -> dict[str, Any]:
        kept = mask.ravel()
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        sample = np.random.default_rng(seed).permutation(len(kept))[: self.bits]
        return {
            "matrix": name,
            "shape": "x".join(map(str, mask.shape)),
            "weights": len(kept),
            "kept": int(kept.sum()),
            "sample": "".join("01"[int(bit)] for bit in kept[np.sort(sample)]),
        }


def _sides(parent: Setting, rows: Int[np.ndarray, "n slots"], focal: set[Any]) -> dict[str, Bool[np.ndarray, " n"]]:
    """Which combinations have the constituent of the mask (`own`), and which do not (`other`)."""
    has = np.array([focal <= set(parent.config.space.constituents(row)) for row in rows], bool)
    return {"own": has, "other": ~has}


def _kept(network: MaskedNetwork) -> list[tuple[str, Bool[np.ndarray, ...]]]:
    """Each masked matrix by name, with which of its weights are kept."""
    return [(leaf_name(path), np.asarray(kept)) for path, kept in jax.tree_util.tree_leaves_with_path(network.kept())]
