"""A study: a question from the literature, the runs that answer it, its claims and figures. No training code here."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float
from pydantic import PositiveInt

from recombine.component import Component
from recombine.errors import BadInput, did_you_mean
from recombine.overrides import validate
from recombine.probes.base import Measurement
from recombine.stats.verdicts import Claim, Direction, Verdict, judge
from recombine.store.store import Store
from recombine.training.config import RunConfig, Seeds

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

PROFILES = ("smoke", "demo", "laptop", "paper")


@dataclasses.dataclass(frozen=True)
class Tables:
    """What a study's claims and figures are computed from. Each frame has the labels of the study's runs."""

    runs: pd.DataFrame
    combinations: pd.DataFrame
    probes: pd.DataFrame
    """The tables of `decodability`."""
    curves: pd.DataFrame
    others: Mapping[str, pd.DataFrame] = dataclasses.field(default_factory=dict)
    """The tables of the study's other measurements, by kind."""


@dataclasses.dataclass(frozen=True)
class Effect:
    """A claim with its effect in each replicate."""

    claim: Claim
    values: Float[np.ndarray, " replicate"]

    def judge(self) -> Verdict:
        return judge(self.claim, self.values)

    def record(self) -> dict[str, Any]:
        """Plain values from which the verdict can be computed again."""
        return {"claim": dataclasses.asdict(self.claim), "values": [float(value) for value in self.values]}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Effect:
        claim = record["claim"] | {"needs": tuple(record["claim"]["needs"])}
        values = [np.nan if value is None else value for value in record["values"]]
        return cls(Claim(**claim), np.array(values, dtype=float))


def claims_of(study: str) -> Callable[..., Claim]:
    """Makes the claims of one study: name, statement, direction, margin, and what else a `Claim` has."""

    def claim(name: str, statement: str, direction: Direction, margin: float, **more: Any) -> Claim:
        return Claim(name, study, statement, direction, margin, **more)

    return claim


def ascend(study: Study, *names: str, least: int = 2) -> None:
    """Raise ValueError if one of these fields is not at least so many different sizes, smallest first."""
    for name in names:
        levels = getattr(study, name)
        if len(levels) < least or sorted(set(levels)) != list(levels):
            raise ValueError(f"{name} must be at least {least} different sizes, smallest first, got {levels}")


class Study(Component, abc.ABC):
    """The configuration of a study: its fields are what a profile sets and an override changes."""

    question: ClassVar[str]
    profiles: ClassVar[dict[str, dict[str, Any]]]
    """The values of the fields in each profile: same code, other sizes."""

    cells: ClassVar[tuple[str, ...]] = ()
    """The labels that name a cell of the study's grid: the rows of its overview."""
    shown: ClassVar[tuple[str, ...]] = ("score_in", "score_held_out")
    """The columns of the overview."""

    single: ClassVar[frozenset[str]] = frozenset()
    """Kinds of measurements whose tables the study wants row by row as well, beside what is pooled of them."""

    replicates: PositiveInt = 12
    """Independent replicates, each with its own teacher, support, initialisation and data."""
    first_seed: int = 1000
    """The seed of the first replicate. Smaller seeds are for tuning and trying out: those that decide are fresh."""

    @classmethod
    def profile(cls, name: str) -> Self:
        """The study at the size of a profile."""
        if name not in cls.profiles:
            raise BadInput(
                f"The study {cls.model_fields['kind'].default!r} has no profile {name!r}.",
                fix=did_you_mean(name, cls.profiles),
            )
        return cls.model_validate(cls.profiles[name])

    @property
    def seeds(self) -> range:
        """The seeds of the replicates."""
        return range(self.first_seed, self.first_seed + self.replicates)

    def run(self, base: RunConfig, seed: int, **changes: Any) -> RunConfig:
        """A run of one replicate: everything that is random is drawn from its seed."""
        return validate(RunConfig, dict(base) | changes | {"seeds": Seeds.replicate(seed)})

    @abc.abstractmethod
    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """The runs and their labels (at least `replicate`)."""

    @abc.abstractmethod
    def measurements(self) -> list[Measurement]:
        """What is measured of each run."""

    @abc.abstractmethod
    def effects(self, tables: Tables) -> list[Effect]:
        """The claims with their effects: a pure function of tables."""

    @abc.abstractmethod
    def figures(self, tables: Tables) -> list[Figure]:
        """The study's figures."""

    def overview(self, tables: Tables) -> pd.DataFrame:
        """The one table that a reader looks at first: means over replicates in each cell of the grid."""
        runs = tables.runs.reindex(columns=[*tables.runs.columns.union(list(self.shown))])
        grouped = runs.groupby(list(self.cells), sort=False, dropna=False)
        frame = grouped[list(self.shown)].mean()
        frame.insert(0, "n", grouped[self.shown[0]].count())
        return frame.reset_index()

    def tables(self, store: Store) -> Tables:
        """The study's runs as labelled tables. Failed runs stay in `runs`, with empty scores."""
        import pandas as pd

        labels = pd.DataFrame([{"run": config.run_id} | names for config, names in self.runs()])
        ids = list(dict.fromkeys(labels["run"]))
        # Only the study's own measurements: others may have been made of these runs since.
        own_measurements = self.measurements()
        frames = {
            "runs": store.runs_df(ids, own_measurements),
            "combinations": store.combinations_df(ids, own_measurements),
            "probes": store.probes_df(ids, own_measurements),
            "curves": store.curves_df(ids),
        }
        # A label wins over a column of the same name: `family` is what the study calls it.
        own = [name for name in labels.columns if name != "run"]

        def labelled(frame: pd.DataFrame) -> pd.DataFrame:
            return labels.merge(frame.drop(columns=[one for one in own if one in frame.columns]), on="run")

        others = ({one.kind for one in own_measurements} - {"scores", "decodability"}) | self.single
        return Tables(
            **{name: labelled(frame) for name, frame in frames.items()},
            others={
                kind: labelled(store.probes_df(ids, own_measurements, kind=kind)) for kind in sorted(others)
            },
        )
