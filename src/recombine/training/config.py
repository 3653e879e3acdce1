"""The configuration of one run: all that determines its weights."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from recombine.component import Component, field, resolve
from recombine.encodings.base import Encoding
from recombine.encodings.identity import Identity
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.hyperteacher import Hyperteacher
from recombine.models.base import Model
from recombine.models.mlp import MLP
from recombine.objectives.base import Objective
from recombine.objectives.regression import Regression
from recombine.recipes.base import Recipe
from recombine.recipes.fast import Fast
from recombine.spaces.base import Space
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import SupportKind
from recombine.supports.random import Random

FORMAT = 1
"""Raise it when the meaning of a run as a whole changes (streams, hashing): older runs no longer count."""


OBJECTIVES = {
    "numbers": "regression",
    "classes": "classification",
    "images": "flow-matching",
    "tokens": "next-token",
}
"""What to train for where targets are of a kind."""

Seed = Annotated[int, Field(ge=0, lt=2**64)]
"""Larger numbers are refused: two of them could name the same draws."""


STRICT = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Seeds(BaseModel):
    """Teacher, support, initialisation and data order are separate random factors."""

    model_config = STRICT

    teacher: Seed = 0
    """Draws the family (and a random encoding)."""
    support: Seed = 0
    """Draws the support and cuts the held-out combinations into validation and test."""
    init: Seed = 0
    """Draws the first weights."""
    data: Seed = 0
    """Draws the batches."""

    @classmethod
    def replicate(cls, number: int) -> Seeds:
        """A replicate draws everything afresh."""
        return cls(teacher=number, support=number, init=number, data=number)


class RunConfig(BaseModel):
    """One run."""

    model_config = STRICT

    space: field("spaces", Space) = SubsetSpace(modules=16, max_active=3)  # type: ignore[valid-type]
    support: field("supports", SupportKind) = Random()  # type: ignore[valid-type]
    family: field("families", Family) = Hyperteacher()  # type: ignore[valid-type]
    encoding: field("encodings", Encoding) = Identity()  # type: ignore[valid-type]
    model: field("models", Model) = MLP()  # type: ignore[valid-type]
    objective: field("objectives", Objective) = Regression()  # type: ignore[valid-type]
    recipe: field("recipes", Recipe) = Fast()  # type: ignore[valid-type]
    seeds: Seeds = Seeds()
    target: float | None = Field(default=None, lt=1)
    """Stop when the headline score of the held-out validation stream reaches this."""
    every: PositiveInt = 25
    """Steps between two evaluations."""
    validation_tasks: PositiveInt = 256
    """Tasks of each validation stream."""

    @model_validator(mode="before")
    @classmethod
    def _go_with_family(cls, given: Any) -> Any:
        """Parts that were not given are those that go with the family."""
        if not isinstance(given, dict) or "family" not in given:
            return given
        try:
            family = resolve("families", given["family"])
        except (BadInput, ValidationError):
            return given  # The field itself says what is wrong, and where.
        return {**family.defaults, **given}

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
        speaks = self.family.targets == "tokens"
        if self.model.speaks != speaks:
            raise BadInput(
                f"The targets of the family {self.family.kind!r} are {self.family.targets}; the model {self.model.kind!r} is "
                f"{'not ' if speaks else ''}made for tokens.",
                fix="model=decoder or model=encoder-decoder"
                if speaks
                else "model=mlp, or a family of sequences",
            )
        return self

    def components(self) -> dict[str, Component]:
        """The run's components by their role."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if isinstance(value, Component)}

    def dump(self) -> dict[str, Any]:
        """The configuration as plain JSON values."""
        return self.model_dump(mode="json")

    @property
    def run_id(self) -> str:
        """The hash of what determines the weights: configuration and versions of the components' meaning."""
        meaning = {
            "format": FORMAT,
            "config": self.dump() | {name: part.meaning() for name, part in self.components().items()},
            "versions": {name: part.version for name, part in self.components().items()},
        }
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
