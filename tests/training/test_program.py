"""Buckets: runs of equal shape share one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.recipes.paper import Paper
from recombine.spaces.subset import SubsetSpace
from recombine.supports.missing_part import MissingPart
from recombine.supports.random import Random
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting
from recombine.training.program import SHORTEST_LIST, Program, buckets, padded_length, signature
from recombine.training.trainer import Trainer

Tiny = Callable[..., RunConfig]


def paper(**changes: Any) -> Paper:
    return Paper(**{"learning_rate": 0.01, "steps": 30, "tasks": 8, "samples": 4, **changes})


def test_what_is_an_array_does_not_split_a_bucket(tiny: Tiny):
    configs = [
        tiny(),
        tiny(support=Random(number=9)),
        tiny(support=Random(held_out=0.3)),
        tiny(recipe=paper(learning_rate=0.1)),
        tiny(recipe=paper(steps=7)),
        tiny(seeds=Seeds.replicate(5)),
        tiny(target=0.5),
    ]
    ((program, found),) = buckets(configs)
    assert found == configs
    assert program.chunk == 10


@pytest.mark.parametrize(
    "change",
    [
        {"model": MLP(width=9, depth=2)},
        {"family": Lookup(inputs=4, hidden=5, outputs=3)},
        {"space": SubsetSpace(modules=7, max_active=2)},
        {"recipe": paper(tasks=9)},
        {"recipe": paper(weight_decay=0.0)},
        {"support": MissingPart(part=1)},
        {"eval_every": 5},
        {"validation_tasks": 8},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_code_splits_a_bucket(change: dict[str, Any], tiny: Tiny):
    one, other, again = tiny(), tiny(**change), tiny(seeds=Seeds.replicate(1))
    assert [configs for _, configs in buckets([one, other, again])] == [[one, again], [other]]


def test_rules_share_a_bucket_only_with_themselves(tiny: Tiny):
    """A rule is part of the program, and one without a part given draws it by the seed."""
    by_seed = [tiny(support=MissingPart(), seeds=Seeds.replicate(number)) for number in (0, 1)]
    assert len(buckets(by_seed)) == 2
    fixed = [tiny(support=MissingPart(part=2), seeds=Seeds(init=number)) for number in (0, 1)]
    assert len(buckets(fixed)) == 1


def test_lists_are_padded_to_few_lengths():
    least = SHORTEST_LIST
    assert [padded_length(length) for length in (1, least, least + 1, 2 * least, 2 * least + 1)] == [
        least,
        least,
        2 * least,
        2 * least,
        4 * least,
    ]
    assert all(padded_length(length) >= length for length in range(1, 5 * least, 997))


def test_lanes_of_one_bucket_have_one_shape(tiny: Tiny):
    """Else they could not be stacked, or would compile again."""
    changes = [{}, {"support": Random(number=9)}, {"seeds": Seeds.replicate(3)}, {"recipe": paper(steps=99)}]
    shapes = set()
    for change in changes:
        setting = Setting(tiny(**change))
        shapes.add(signature((setting.state(), setting.arrays())))
    assert len(shapes) == 1


def test_a_sweep_compiles_once_a_bucket(tiny: Tiny):
    runs = [
        tiny(support=Random(number=number), recipe=paper(learning_rate=rate, steps=steps), seeds=Seeds.replicate(seed))
        for number, rate, steps, seed in [(9, 0.01, 10, 0), (12, 0.02, 5, 1), (15, 0.03, 20, 2), (18, 0.01, 3, 3)]
    ]
    runs += [run.model_copy(update={"model": MLP(width=4, depth=1)}) for run in runs[:2]]
    assert len(buckets(runs)) == 2
    trainer = Trainer()
    outcomes = list(trainer.train(runs))
    assert trainer.compiler.compilations == 2
    assert [outcome.config for outcome in outcomes] == runs
    assert [outcome.compile_seconds > 0 for outcome in outcomes] == [True, False, False, False, True, False]
    assert trainer.compiler.seconds == pytest.approx(sum(outcome.compile_seconds for outcome in outcomes))
    list(trainer.train(runs[:1]))
    assert trainer.compiler.compilations == 2, "a trainer keeps what it has compiled"


def test_programs_are_named_by_what_they_compile_to(tiny: Tiny):
    name = Program.of(tiny()).name
    assert Program.of(tiny(recipe=paper(learning_rate=1.0, steps=5), seeds=Seeds.replicate(9))).name == name
    assert Program.of(tiny(), stack_size=3).name != name
    assert Program.of(tiny()).stack_size == tiny().model.stack_size()


def test_a_look_is_the_pooled_r2_of_both_validation_streams(tiny: Tiny):
    """Recomputed in numpy from the tasks that the program shows."""
    config = tiny()
    setting, program = Setting(config), Program.of(config)
    run_arrays, state = setting.arrays(), setting.state()
    shown: list[tuple[Any, Any]] = []
    drawing = program._examples

    def watch(*given: Any) -> Any:
        shown.append((given[1], drawing(*given)))
        return shown[-1][1]

    object.__setattr__(program, "_examples", watch)
    found = program.evaluate(state, run_arrays)
    ((rows, (_, codes, batch)),) = shown
    predictions = np.asarray(jax.vmap(state.network)(codes, batch.inputs), float)
    targets, number = np.asarray(batch.targets, float), config.validation_tasks
    for score, part in zip(found, (slice(number), slice(number, None)), strict=True):
        y, guess = targets[part], predictions[part]
        wanted = 1 - ((y - guess) ** 2).sum() / ((y - y.mean(1, keepdims=True)) ** 2).sum()
        assert float(score) == pytest.approx(wanted, rel=1e-4)
    trained = setting.support.contains(np.asarray(rows))
    assert trained[:number].all()
    assert not trained[number:].any()
