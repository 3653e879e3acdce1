"""The configuration of a run: all that determines its weights."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import Field, PositiveInt, ValidationError, field_validator, model_validator

from recombine.component import Component, Configuration, field, resolve
from recombine.encodings import Encoding, Identity
from recombine.errors import BadInput
from recombine.families import Family, Hyperteacher
from recombine.models import MLP, Model
from recombine.objectives import Objective, Regression
from recombine.recipes import Fast, Recipe
from recombine.spaces import Space, SubsetSpace
from recombine.supports import Random, SupportKind

FORMAT = 1
"""Raise it when the meaning of a run changes (streams, hashing): older runs then no longer count."""


OBJECTIVES = {
    "numbers": "regression",
    "classes": "classification",
    "images": "flow-matching",
    "tokens": "next-token",
    "text": "latent-posterior",
}
"""The objective for each kind of targets."""

LATER = ("parents", "trains")
"""Fields that are part of the hash only when they are set, so that older run names stay valid."""

Seed = Annotated[int, Field(ge=0, lt=2**64)]
"""Larger numbers are refused, because two of them could mean the same draws."""


class Seeds(Configuration):
    """The seeds of a run: teacher, support, initialisation and data are separate random factors."""

    teacher: Seed = 0
    """Draws the family (and a random encoding)."""
    support: Seed = 0
    """Draws the support and splits held-out combinations into validation and test."""
    init: Seed = 0
    """Draws the initial weights."""
    data: Seed = 0
    """Draws the batches."""

    @classmethod
    def replicate(cls, number: int) -> Seeds:
        """The seeds of a replicate: all have this number."""
        return cls(teacher=number, support=number, init=number, data=number)


class RunConfig(Configuration):
    """The configuration of one run. Its hash, `run_id`, is the run's name.

    Example:
        ```python
        config = rc.RunConfig(family=rc.families.Hyperteacher(), model=rc.models.MLP(width=64), recipe=rc.recipes.Fast(steps=500))
        config.replace(width=128, number=40)
        ```
    """

    space: field("spaces", Space) = SubsetSpace(modules=16, max_active=3)  # type: ignore[valid-type]
    support: field("supports", SupportKind) = Random()  # type: ignore[valid-type]
    family: field("families", Family) = Hyperteacher()  # type: ignore[valid-type]
    encoding: field("encodings", Encoding) = Identity()  # type: ignore[valid-type]
    model: field("models", Model) = MLP()  # type: ignore[valid-type]
    objective: field("objectives", Objective) = Regression()  # type: ignore[valid-type]
    recipe: field("recipes", Recipe) = Fast()  # type: ignore[valid-type]
    seeds: Seeds = Seeds()
    target: float | None = Field(default=None, lt=1)
    """Training stops when the headline score on held-out validation tasks reaches this."""
    eval_every: PositiveInt = 25
    """Steps between two evaluations."""
    validation_tasks: PositiveInt = 256
    """Tasks of each validation stream."""
    parents: tuple[RunConfig, ...] = ()
    """Runs whose trained networks this run starts from. How, the model says: a plain one goes on with its parent's weights."""
    trains: tuple[str, ...] = ()
    """Names of the weights that are trained, such as `readout.*`, where `*` is any text; the others stay as they are. None for
    all."""

    @model_validator(mode="before")
    @classmethod
    def _go_with_family(cls, given: Any) -> Any:
        """Components that were not given are the family's defaults."""
        if not isinstance(given, dict) or "family" not in given:
            return given
        try:
            family = resolve("families", given["family"])
        except (BadInput, ValidationError):
            return given  # The validation of the field says what is wrong, and where.
        return family.completed({**family.defaults, **given})

    @field_validator("parents", mode="before")
    @classmethod
    def _are_configurations(cls, given: Any) -> Any:
        """Refuse names of runs: a name alone does not say how a parent is made when it is missing."""
        several = given if isinstance(given, list | tuple) else [given]
        named = [one for one in several if isinstance(one, str)]
        if named:
            raise BadInput(
                f"A parent is given by its whole configuration, not by a name such as {named[0]!r}.",
                fix="in a file, write its settings: parents: [{model: mlp, recipe: {kind: fast, steps: 500}}]; in Python, "
                "parents=(store.load(name).config,)",
            )
        return given

    @model_validator(mode="after")
    def _fits(self) -> RunConfig:
        self.family.check(self.space)
        self.support.check(self.space)
        self.encoding.size(self.space, self.family)
        self.model.check(self.family, self.encoding, self.recipe.samples)
        if self.objective.serves != self.family.targets:
            raise BadInput(
                f"The targets of the family {self.family.kind!r} are {self.family.targets}; the objective "
                f"{self.objective.kind!r} is for {self.objective.serves}.",
                fix=f"objective={OBJECTIVES[self.family.targets]}",
            )
        self.objective.check(self.encoding.size(self.space, self.family), self.family.input_size)
        self.objective.check_family(self.family)
        self.objective.check_model(self.model)
        tokens = self.family.targets == "tokens"
        if self.model.autoregressive != tokens:
            raise BadInput(
                f"The targets of the family {self.family.kind!r} are {self.family.targets}; the model {self.model.kind!r} is "
                f"{'not ' if tokens else ''}made for tokens.",
                fix="model=decoder or model=encoder-decoder" if tokens else "model=mlp, or a family of sequences",
            )
        return self

    def components(self) -> dict[str, Component]:
        """The components of the run by field name."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if isinstance(value, Component)}

    def dump(self) -> dict[str, Any]:
        """The configuration as plain JSON values."""
        return {name: value for name, value in self.model_dump(mode="json").items() if name not in LATER or value}

    @property
    def generation(self) -> int:
        """0 for a run without parents, 1 for a run whose parents have none, and so on."""
        return 1 + max((parent.generation for parent in self.parents), default=-1)

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of the weights that are trained; empty for all."""
        return self.trains or self.model.trained

    def ancestors(self) -> dict[str, RunConfig]:
        """The parents, their parents and so on by name, the oldest first."""
        found: dict[str, RunConfig] = {}
        for parent in self.parents:
            found |= parent.ancestors() | {parent.run_id: parent}
        return found

    @property
    def run_id(self) -> str:
        """The run's name: the hash of the configuration and of the versions of its components."""
        # The name of a parent is a hash too, so it stands for the whole line.
        line = {"parents": [parent.run_id for parent in self.parents]} if self.parents else {}
        meaning = {
            "format": FORMAT,
            "config": self.dump() | {name: part.meaning() for name, part in self.components().items()} | line,
            "versions": {name: part.version for name, part in self.components().items()},
        }
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
