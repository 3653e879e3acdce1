"""A run's name is the hash of what determines its weights."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from recombine.encodings.identity import Identity
from recombine.errors import BadInput
from recombine.families.hyperteacher import Hyperteacher
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.objectives.regression import Regression
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds

OTHERS: dict[str, list[Any]] = {"coefficients": ["k-hot"], "sizes": ["exactly"], "target": [0.5], "widths": [[8, 8]]}
"""Other values of fields where a larger number will not do."""


def leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def others(name: str, value: Any) -> list[Any]:
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    return [value * 0.9] if isinstance(value, float) else []


def changed(config: RunConfig, path: tuple[str, ...], value: Any) -> RunConfig:
    values = config.dump()
    node = values
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    if path[-1] == "widths":
        node |= {"width": 256, "depth": 4}
    return RunConfig.model_validate(values)


def test_every_field_changes_the_name(tiny: Callable[..., RunConfig]):
    config = tiny()
    names = {config.run_id}
    made = 0
    for path, value in leaves(config.dump()):
        # Kinds are changed below; `held_out` excludes `number`.
        for other in [] if path[-1] in ("kind", "held_out") else others(path[-1], value):
            names.add(changed(config, path, other).run_id)
            made += 1
    assert made >= 25
    assert len(names) == made + 1
    kinds = [
        config.run_id,
        tiny(family=Lookup(inputs=4, hidden=5, outputs=3)).run_id,
        tiny(support=Random(held_out=0.5)).run_id,
        tiny(support="missing-part").run_id,
    ]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("part", [SubsetSpace, Random, Hyperteacher, Identity, MLP, Regression, Paper])
def test_a_new_meaning_of_a_component_changes_the_name(
    part: type, tiny: Callable[..., RunConfig], monkeypatch: pytest.MonkeyPatch
):
    before = tiny().run_id
    monkeypatch.setattr(part, "version", 2)
    assert tiny().run_id != before
    monkeypatch.undo()
    assert tiny().run_id == before


def test_the_name_is_the_same_in_every_process(tiny: Callable[..., RunConfig]):
    config = tiny()
    code = "import sys; from recombine import RunConfig; print(RunConfig.model_validate_json(sys.argv[1]).run_id)"
    argument = json.dumps(config.dump())
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code, argument], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.strip() == config.run_id
    assert len(config.run_id) == 16
    int(config.run_id, 16)


def test_equal_configurations_have_one_name_however_they_are_written(tiny: Callable[..., RunConfig]):
    config = tiny()
    assert RunConfig.model_validate(config.dump()) == config
    assert RunConfig.model_validate(json.loads(json.dumps(config.dump()))).run_id == config.run_id
    assert RunConfig.model_validate(dict(reversed(config.dump().items()))).run_id == config.run_id


def test_components_may_be_given_by_name():
    config = RunConfig.model_validate({"family": "lookup", "recipe": {"kind": "paper", "steps": 3}})
    assert isinstance(config.family, Lookup)
    assert isinstance(config.recipe, Paper)
    assert config.recipe.steps == 3


def test_replicates_share_no_seed():
    one, other = Seeds.replicate(0).model_dump(), Seeds.replicate(1).model_dump()
    assert set(one) == {"teacher", "support", "init", "data"}
    assert all(one[name] != other[name] for name in one)


@pytest.mark.parametrize(
    "bad",
    [
        {"target": 1.0},
        {"eval_every": 0},
        {"validation_tasks": 0},
        {"nonsense": 1},
        {"seeds": {"teacher": -1}},
        {"seeds": {"init": 2**64}},
        {"family": "no-such"},
        {"support": {"kind": "random", "number": 21}},
        {"support": {"kind": "random", "number": 2}},
    ],
)
def test_senseless_runs_are_refused(bad: dict[str, Any], tiny: Callable[..., RunConfig]):
    with pytest.raises((ValidationError, BadInput)):
        tiny(**bad)


def test_the_parts_of_a_run_have_their_roles(tiny: Callable[..., RunConfig]):
    parts = tiny().components()
    assert list(parts) == ["space", "support", "family", "encoding", "model", "objective", "recipe"]
    for one, other in itertools.combinations(parts.values(), 2):
        assert one.kind != other.kind
