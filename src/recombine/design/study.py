"""A study: a question from the literature, the arms that answer it, its claims and figures."""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from recombine.component import Component
from recombine.design.arm import Arm
from recombine.design.claims import Claims, Effect, StudyClaim
from recombine.design.tables import Tables
from recombine.errors import BadInput, did_you_mean
from recombine.probes.base import Measurement
from recombine.probes.scores import Scores
from recombine.store.store import Store
from recombine.training.config import RunConfig

if TYPE_CHECKING:
    import pandas as pd

    from recombine.figures.base import Figure

PROFILES = ("smoke", "demo", "laptop", "paper")
"""The profiles that every study has, smallest first. A study may have more."""

SIZES = ("smoke", "demo", "laptop", "workstation", "paper")
"""All profiles that can be compared by size, smallest first. `workstation` takes half an hour to two hours on two cores."""


Figures = Iterator["Figure"]
"""What `Study.figures` yields."""


@dataclasses.dataclass(frozen=True)
class Design:
    """A study as it will be run: its arms, runs, measurements and claims. Made once, before anything trains."""

    study: Study
    arms: Mapping[str, Arm]
    measurements: tuple[Measurement, ...]
    claims: tuple[StudyClaim, ...]

    @functools.cached_property
    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """All runs with their labels. A run that several arms share occurs once for each of them."""
        return [run for arm in self.arms.values() for run in arm.runs]

    @functools.cached_property
    def run_ids(self) -> list[str]:
        """The names of the runs, each once."""
        return list(dict.fromkeys(config.run_id for config, _ in self.runs))

    def for_claims(self, *names: str) -> Design:
        """The part of the design that decides some claims: these claims, what they need, and the arms that they read.

        Args:
            *names: Names of claims.

        Returns:
            A design with fewer runs. Its figures and overview are those of the whole study, so do not ask for them.

        Example:
            ```python
            part = find("studies", "data-scaling").profile("laptop").design.for_claims("rises")
            len(part.runs)
            ```
        """
        by_name = {claim.name: claim for claim in self.claims}
        wanted: dict[str, None] = {}
        left = list(names)
        while left:
            name = left.pop()
            if name not in by_name:
                raise BadInput(f"{self.study.kind!r} has no claim {name!r}.", fix=did_you_mean(name, by_name))
            if name not in wanted:
                wanted[name] = None
                left += by_name[name].needs
        claims = tuple(claim for claim in self.claims if claim.name in wanted)
        read = frozenset[str]().union(*(claim.effect.arms for claim in claims))
        return dataclasses.replace(
            self, arms={name: arm for name, arm in self.arms.items() if name in read}, claims=claims
        )

    def tables(self, store: Store) -> Tables:
        """The tables of the study's runs."""
        return Tables.from_store(store, self.runs, self.measurements)

    def data(self, tables: Tables) -> dict[str, Tables]:
        """The tables of each arm."""
        return {name: tables.arm(name, arm.axes) for name, arm in self.arms.items()}

    def effects(self, tables: Tables) -> list[Effect]:
        """Every claim with its effect in each replicate: a pure function of tables."""
        data, kind = self.data(tables), self.study.kind
        return [Effect(claim.of(kind), claim.effect.values(data)) for claim in self.claims]

    def figures(self, tables: Tables) -> list[Figure]:
        """The study's figures."""
        data = self.data(tables)
        arms = {name: arm.with_tables(data[name]) for name, arm in self.arms.items()}
        return list(_called(self.study.figures, arms))

    def overview(self, tables: Tables) -> pd.DataFrame:
        """The table to look at first: means over replicates in each cell of each arm."""
        import pandas as pd

        data, parts = self.data(tables), []
        added = {name: self.study.overview_columns(own) for name, own in data.items()}
        columns = [str(column) for frame in added.values() if frame is not None for column in frame if column != "run"]
        shown = list(dict.fromkeys([*self.study.shown, *columns]))
        for name, arm in self.arms.items():
            runs, more = data[name].runs, added[name]
            runs = runs if more is None else runs.merge(more, on="run", how="left")
            runs = runs.reindex(columns=[*dict.fromkeys([*runs.columns, *shown])])
            grouped = runs.groupby(["arm", *arm.axes], sort=False, dropna=False)
            frame = grouped[shown].agg(lambda values: pd.to_numeric(values).mean())
            frame.insert(0, "n", grouped[shown[0]].count())
            parts.append(frame.reset_index())
        overview = pd.concat(parts, ignore_index=True)
        axes = dict.fromkeys(axis for arm in self.arms.values() for axis in arm.axes)
        # A label that is the same in every row tells a reader nothing.
        labels = ["arm", *(axis for axis in axes if overview[axis].nunique(dropna=False) > 1)]
        return overview[[*labels, "n", *shown]]


class Study(Component, abc.ABC):
    """The base of all studies. The fields of a study are what a profile sets and an override changes.

    A study has three methods, read from top to bottom: `arms` names the sets of runs, `claims` says what they are
    expected to show, `figures` draws them. `claims` and `figures` name the arms that they need as arguments. An
    argument with the default None is an arm that some profiles leave out.

    Example:
        ```python
        class Rises(Study):
            '''Does held-out R2 rise with the number of training combinations?'''

            kind: Literal["rises"] = "rises"
            profiles: ClassVar = {"laptop": {}}
            numbers: tuple[int, ...] = (40, 320)

            def arms(self):
                return {"main": Arm(RunConfig(), number=self.numbers)}

            def claims(self, main):
                yield claim("rises", main["r2_held_out"].rise().greater(0.05), "Held-out R2 rises.", primary=True)
        ```
    """

    room: ClassVar[str] = "studies"
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]]
    """The values of the fields in each profile: same code, other sizes."""
    shown: ClassVar[tuple[str, ...]] = ("score_in", "score_held_out")
    """The columns of the overview."""

    replicates: PositiveInt = 12
    """Independent replicates, each with its own teacher, support, initialisation and data."""
    first_seed: NonNegativeInt = 1000
    """The seed of the first replicate. Smaller seeds are for tuning: the seeds that decide are fresh."""

    @classmethod
    def profile(cls, name: str) -> Self:
        """The study at the size of a profile.

        Args:
            name: `smoke` (seconds), `demo`, `laptop` (minutes), `paper` (a cluster), or one of the study's own, such as
                `workstation` (half an hour to two hours).
        """
        if name not in cls.profiles:
            raise BadInput(
                f"The study {cls.model_fields['kind'].default!r} has no profile {name!r}.",
                fix=did_you_mean(name, cls.profiles),
            )
        return cls.model_validate(cls.profiles[name])

    # What a study defines

    @abc.abstractmethod
    def arms(self) -> Mapping[str, Arm | None]:
        """The arms by their names. An arm that is None is left out."""

    @abc.abstractmethod
    def claims(self, *args: Any, **kwargs: Any) -> Claims:
        """The claims, stated before any run. Arguments are arms by their names."""

    def figures(self, *args: Any, **kwargs: Any) -> Iterable[Figure]:
        """The figures. Arguments are arms by their names, with the tables of their runs."""
        return ()

    def measurements(self) -> Sequence[Measurement]:
        """What is measured of each run."""
        return (Scores(),)

    def overview_columns(self, tables: Tables) -> pd.DataFrame | None:
        """Further columns of the overview for the runs of an arm, where `shown` does not suffice.

        Args:
            tables: The tables of one arm.

        Returns:
            A column `run`, one row per run, and the new columns; None for no further columns.
        """
        return None

    def check(self) -> None:
        """Raise ValueError or BadInput for settings that do not go together. Called whenever a study is made."""

    # What follows from it

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self.check()
        return self

    @property
    def question(self) -> str:
        """The question: the first line of the docstring."""
        return (inspect.getdoc(type(self)) or self.kind).splitlines()[0]

    @property
    def seeds(self) -> range:
        """The seeds of the replicates."""
        return self.seeds_for(self.replicates)

    def seeds_for(self, replicates: int) -> range:
        """The seeds of an arm with another number of replicates, for instance where a run takes longer."""
        return range(self.first_seed, self.first_seed + replicates)

    @functools.cached_property
    def design(self) -> Design:
        """The study with its arms bound, its claims listed and everything checked that can be before training."""
        try:
            measurements = tuple(self.measurements())
            arms = {
                name: arm.bind(name, self.seeds, measurements) for name, arm in self.arms().items() if arm is not None
            }
            claims = tuple(_called(self.claims, arms))
            _check_claims(claims)
            claims = _asked(claims)
        except BadInput as error:
            raise BadInput(f"Study {self.kind!r}: {error.message}", fix=error.fix) from error
        return Design(self, arms, measurements, claims)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy without validation, as pydantic does. The copy makes its own design."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop("design", None)  # pyright: ignore[reportAttributeAccessIssue]
        return copy

    def runs(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """The runs and their labels."""
        return self.design.runs

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={value!r}"
            for name in type(self).model_fields
            if name != "kind" and not isinstance(value := getattr(self, name), (RunConfig, Component))
        )
        return f"{type(self).__name__}({fields})"


def _called(method: Any, arms: Mapping[str, Arm]) -> Iterator[Any]:
    """Call a method of a study with the arms that its arguments name."""
    given: dict[str, Arm | None] = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= {arm: bound for arm, bound in arms.items() if arm not in given}
        elif name in arms:
            given[name] = arms[name]
        elif parameter.default is parameter.empty:
            raise BadInput(
                f"{method.__name__}() asks for an arm {name!r} that does not exist.", fix=did_you_mean(name, arms)
            )
    yield from method(**given)


def _check_claims(claims: Sequence[StudyClaim]) -> None:
    names = [claim.name for claim in claims]
    for claim in claims:
        if names.count(claim.name) > 1:
            raise BadInput(f"Two claims are called {claim.name!r}.", fix="give each claim its own name")
        for need in claim.needs:
            if need not in names:
                raise BadInput(
                    f"Claim {claim.name!r} needs {need!r}, and no claim has this name.", fix=did_you_mean(need, names)
                )


def _asked(claims: Sequence[StudyClaim]) -> tuple[StudyClaim, ...]:
    """The claims that the runs can decide: not those about runs that a profile leaves out, nor those that need such a claim."""
    left_out = {claim.name for claim in claims if claim.effect.left_out}
    while more := {claim.name for claim in claims if left_out.intersection(claim.needs)} - left_out:
        left_out |= more
    return tuple(claim for claim in claims if claim.name not in left_out)
