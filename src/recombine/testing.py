"""Conformance checks for your own components: do they do what the rest of recombine relies on?

    from recombine.testing import check_family
    def test_my_family():
        check_family(MyFamily(), SubsetSpace(modules=6, max_active=2))

Each check draws a little, compares, and raises AssertionError with what was expected and what came. The checks find
errors; they do not prove that a component is right. Its meaning needs its own tests.
"""

from __future__ import annotations

import functools
import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from scipy import stats

from recombine.component import Component
from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Batch, Family
from recombine.models.base import Model, Network, Trace
from recombine.probes.base import Measured, Measurement
from recombine.spaces.base import Space
from recombine.supports.base import Support, SupportKind
from recombine.training import RunConfig, Setting
from recombine.training.checkpoint import load_tree, save_tree
from recombine.training.program import padded_length, signature

if TYPE_CHECKING:
    from recombine.design.study import Study

__all__ = [
    "check_component",
    "check_encoding",
    "check_family",
    "check_model",
    "check_probe",
    "check_space",
    "check_study",
    "check_support",
]

DRAWS = 4096
"""The number of combinations drawn to compare frequencies."""

SMALL = 800
"""Spaces up to this size are compared with the list of all their combinations."""

TASKS, SAMPLES, TOKENS = 8, 6, 7


def _expect(holds: Any, message: str) -> None:
    """An assertion that also holds when Python runs with -O."""
    if not np.all(holds):
        raise AssertionError(message)


def _contents(tree: PyTree) -> list[bytes]:
    """The arrays of a pytree, bit for bit."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    is_key = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    plain = [jax.random.key_data(leaf) if key else leaf for leaf, key in zip(leaves, is_key, strict=True)]
    return [np.asarray(leaf).tobytes() for leaf in plain]


_alike = functools.partial(np.allclose, rtol=1e-4, atol=1e-5)
"""Whether numbers agree as far as the order of sums allows."""


def _finite(tree: PyTree) -> bool:
    floats = [leaf for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    return all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in floats)


def _keys(number: int, seed: int = 0) -> Array:
    return jax.random.split(jax.random.key(seed), number)


def _close(observed: np.ndarray, shares: np.ndarray, draws: int) -> bool:
    """Whether frequencies agree with the expected ones, within six standard errors."""
    return bool(np.all(np.abs(observed - shares) <= 6 * np.sqrt(shares * (1 - shares) / draws) + 6 / draws))


def check_component(component: Component) -> None:
    """Check that a configuration can be hashed, compared, and written to JSON and read back.

    Args:
        component: The configuration.
    """
    name = type(component).__name__
    _expect(component.kind, f"{name}.kind is empty")
    _expect(isinstance(hash(component), int), f"{name} cannot be hashed")
    dump = json.loads(json.dumps(component.model_dump(mode="json")))
    again = type(component).model_validate(dump)
    _expect(again == component, f"{name} reloads from its own dump as {again!r}, expected {component!r}")


def check_space(space: Space) -> None:
    """Check that samples are uniform over combinations, and that rows, names, moments and interactions agree.

    Args:
        space: The space. Small ones are compared with the list of all combinations.
    """
    check_component(space)
    _expect(space.size >= 1, f"size is {space.size}, expected at least one combination")
    _expect(1 <= space.slots <= space.width, f"slots is {space.slots}, expected 1..{space.width}")
    rows = np.asarray(jax.jit(jax.vmap(space.sample))(_keys(DRAWS)))
    _expect(rows.shape == (DRAWS, space.slots), f"sample gives {rows.shape[1:]}, expected ({space.slots},)")
    _expect(rows.dtype == np.int32, f"sample gives {rows.dtype}, expected int32")
    _check_rows(space, rows)
    for row in rows[:16]:
        parts = space.constituents(row)
        _expect(space.row(parts) == row, f"row(constituents(row)) is not the row {row.tolist()}")
        _expect(space.name(row).strip(), f"the combination {parts} has no name")
        wanted = np.isin(np.arange(space.width), parts)
        _expect(space.vector(jnp.asarray(row)) == wanted, f"the vector of {parts} is not one at its parts alone")
    labels = [space.label(part) for part in range(min(space.width, 1000))]
    _expect(len(set(labels)) == len(labels), "two constituents have one label")
    for alien in (-1, space.width + 1):
        refused = ~space.contains(np.full((1, space.slots), alien, np.int32))
        _expect(refused, f"contains takes a row of {alien}, which is the number of no constituent")
    moment = space.second_moment()
    _expect(np.allclose(moment, moment.T), "second_moment is not symmetric")
    _expect(_close(_moment(rows, space.width), moment, DRAWS), "second_moment is not that of the samples")
    if space.size <= SMALL:
        _check_listing(space, rows)
    _check_interactions(space)


def _check_rows(space: Space, rows: np.ndarray) -> None:
    active = rows < space.width
    _expect(active.any(axis=1), "a combination has no constituent")
    rising = (rows[:, 1:] > rows[:, :-1]) | (rows[:, 1:] == space.width)
    _expect(rising, f"a row is not sorted, distinct and padded at its end with {space.width}")
    _expect(space.contains(rows), "contains refuses a combination that was sampled")


def _moment(rows: np.ndarray, width: int) -> np.ndarray:
    """E[z z'] of the indicator vectors of rows."""
    dense = np.zeros((len(rows), width + 1), np.float32)
    dense[np.arange(len(rows))[:, None], rows] = 1
    return dense[:, :width].T @ dense[:, :width] / len(rows)


def _check_listing(space: Space, rows: np.ndarray) -> None:
    every = space.enumerate()
    _expect(len(every) == space.size, f"enumerate lists {len(every)} combinations, size says {space.size}")
    _check_rows(space, every)
    number = {tuple(row): index for index, row in enumerate(every.tolist())}
    _expect(len(number) == len(every), "enumerate lists a combination twice")
    counts = np.bincount([number[tuple(row)] for row in rows.tolist()], minlength=len(every))
    if len(every) > 1:
        p_value = float(stats.chisquare(counts).pvalue)
        _expect(p_value > 1e-6, f"sample is not uniform over combinations (chi-square p = {p_value:.1g})")


def _check_interactions(space: Space) -> None:
    for strength in range(1, min(2, space.slots) + 1):
        count = space.interactions(strength)
        if count > 50 * SMALL:
            continue
        listed = {tuple(parts) for parts in space.list_interactions(strength).tolist()}
        _expect(len(listed) == count, f"{len(listed)} interactions of {strength} listed, {count} counted")
        drawn = space.sample_interactions(np.random.default_rng(0), strength, 64).tolist()
        _expect({tuple(parts) for parts in drawn} <= listed, f"an interaction of {strength} drawn is not listed")
        if space.size <= SMALL:
            lists = [space.constituents(row) for row in space.enumerate()]
            met = set(itertools.chain.from_iterable(itertools.combinations(parts, strength) for parts in lists))
            _expect(listed == met, f"the interactions of {strength} are not those of the combinations")


def check_support(kind: SupportKind, space: Space, seed: int = 0) -> None:
    """Check that a drawn support is consistent: samples, size, moment and reserve agree with `contains`.

    Args:
        kind: The support's configuration.
        space: The space to draw it on.
        seed: The seed of the draw.
    """
    check_component(kind)
    kind.check(space)
    support, again, other = kind.draw(space, seed), kind.draw(space, seed), kind.draw(space, seed + 1)
    _expect(1 <= support.size < space.size, f"size is {support.size}: something must be trained, something not")
    length = kind.length(space)
    _expect(length in (None, support.size), f"length says {length}, the drawn support has {support.size}")
    pad_to = None if length is None else padded_length(length)
    rows = _drawn(support, pad_to)
    _check_rows(space, rows)
    _expect(support.contains(rows), "the sampler draws a combination that the support does not contain")
    _expect(_drawn(again, pad_to) == rows, "two draws with one seed differ")
    _expect(_close(_moment(rows, space.width), support.second_moment(), DRAWS), "second_moment is not the samplers'")
    _expect(~support.contains(support.reserved), "a reserved combination may be trained on")
    _expect(space.contains(support.reserved), "a reserved row is not a combination of the space")
    if length is not None:
        shapes = {signature(drawn.sampler(pad_to)) for drawn in (support, other)}
        _expect(len(shapes) == 1, "samplers of equal length differ in shape: they could not share a program")
    if space.size <= SMALL:
        _check_against_listing(support)
    broken = kind.promises(space).broken(support.certificate())
    _expect(not broken, f"the certificate breaks a promise: {'; '.join(broken)}")


def _drawn(support: Support, pad_to: int | None) -> np.ndarray:
    return np.asarray(_samples(support.sampler(pad_to), _keys(DRAWS)))


_samples = eqx.filter_jit(lambda draw, keys: jax.vmap(draw)(keys))


def _check_against_listing(support: Support) -> None:
    space = support.space
    every = space.enumerate()
    trained = every[support.contains(every)]
    _expect(len(trained) == support.size, f"{len(trained)} combinations are contained, size says {support.size}")
    lists = [set(space.constituents(row)) for row in trained]
    for strength in range(1, min(2, space.slots) + 1):
        interactions = space.list_interactions(strength)
        wanted = [any(set(parts) <= other for other in lists) for parts in interactions.tolist()]
        _expect(support.covers(interactions) == np.array(wanted), f"covers is wrong for sets of {strength}")


def check_family(family: Family, space: Space) -> None:
    """Check that tasks depend on combination and key alone, that shapes are right, and that scores and metrics agree.

    Args:
        family: The family.
        space: A space that the family accepts.
    """
    check_component(family)
    teacher = _check_draws(lambda key: family.draw(space, key))
    rows = jax.jit(jax.vmap(space.sample))(_keys(TASKS, 1))

    def examples(row: Array, key: Array) -> tuple[Any, Batch]:
        by_task, by_batch = jax.random.split(key)
        task = teacher.task(row, by_task)
        return task, teacher.batch(task, by_batch, SAMPLES)

    tasks, batch = jax.jit(jax.vmap(examples))(rows, _keys(TASKS, 2))
    single_task = jax.jit(examples)
    alone = single_task(rows[3], _keys(TASKS, 2)[3])
    for single, many in zip(jax.tree.leaves(alone), jax.tree.leaves((tasks, batch)), strict=True):
        _expect(_alike(single, many[3]), "a task differs when it is drawn beside others")
    _expect(_finite((tasks, batch)), "a task or a batch holds a number that is not finite")
    for index, row in enumerate(np.asarray(rows)):
        parts, vector = list(space.constituents(row)), np.asarray(tasks.vector[index])
        coefficients = np.asarray(tasks.coefficients[index])
        _expect(tasks.combination[index] == row, f"the task of {parts} names another combination")
        _expect(coefficients[len(parts) :] == 0, f"the task of {parts} has coefficients at pads")
        _expect(vector[parts] == coefficients[: len(parts)], f"the vector of {parts} has other coefficients")
        _expect(np.delete(vector, parts) == 0, f"the vector of {parts} is not zero elsewhere")
    shape = (TASKS, SAMPLES, family.input_size)
    _expect(batch.inputs.shape == shape, f"inputs have shape {batch.inputs.shape}, expected {shape}")
    _expect(batch.mask.shape == shape[:2], f"the mask has shape {batch.mask.shape}, expected {shape[:2]}")
    _expect((batch.mask == 0) | (batch.mask == 1), "the mask holds other numbers than 0 and 1")
    # Answers in tokens have the length of the longest one; outputs are a number for each word at each place.
    if family.targets not in ("tokens", "text"):
        shape = (TASKS, SAMPLES, family.output_size)
        _expect(batch.targets.shape == shape, f"targets have shape {batch.targets.shape}, expected {shape}")
    if family.targets != "tokens":  # A prompt has one answer, whatever the key.
        fresh = single_task(rows[0], jax.random.key(5))[1].inputs
        _expect(not np.array_equal(fresh, batch.inputs[0]), "two keys give the same inputs")
    _check_scores(family, batch)


def _check_scores(family: Family, batch: Batch) -> None:
    # What is scored has one number per token; outputs have one for each word at each place.
    size = batch.targets.shape[-1] if family.targets in ("tokens", "text") else family.output_size
    blank = jnp.zeros((TASKS, SAMPLES, size))
    score = jax.jit(jax.vmap(family.score))
    scores = score(batch, blank)
    for name, values in scores.items():
        _expect(values.shape == (TASKS,), f"score gives {values.shape[1:]} for {name!r} of a task, expected one number")
    first = next(iter(family.metrics(scores).values()))
    headline = float(family.headline(scores))
    _expect(np.isclose(first, headline, rtol=1e-3), f"the headline is {headline}, the first metric {first}")
    if batch.targets.shape == blank.shape:
        best = float(family.headline(score(batch, batch.targets)))
        _expect(best > headline, f"the targets themselves score {best}, no better than zeros ({headline})")


def _check_draws(draw: Callable[[Array], Any], seed: int = 0) -> Any:
    """The draw with one key, after a check that it repeats and that another key only changes the values of arrays."""
    first, again, other = (draw(jax.random.key(number)) for number in (seed, seed, seed + 1))
    _expect(_contents(first) == _contents(again), "two draws with one key differ")
    same_shapes = signature(first) == signature(other)
    _expect(same_shapes, "draws with different keys differ in shape: runs could not share a program")
    return first


def check_encoding(encoding: Encoding, space: Space, family: Family) -> None:
    """Check that codes have the right length, depend on task and key alone, and tell combinations apart.

    Args:
        encoding: The encoding.
        space: The space.
        family: A family on this space.
    """
    check_component(encoding)
    teacher = family.draw(space, jax.random.key(0))
    encoder = _check_draws(lambda key: encoding.draw(space, family, key), seed=1)
    size = encoding.size(space, family)
    rows = np.unique(np.asarray(jax.jit(jax.vmap(space.sample))(_keys(32, 2))), axis=0)

    def code(row: Array) -> Array:
        return encoder(teacher.task(row, jax.random.key(3)), teacher, jax.random.key(4))

    codes = np.asarray(jax.jit(jax.vmap(code))(jnp.asarray(rows)))
    _expect(codes.shape == (len(rows), size), f"a code has shape {codes.shape[1:]}, size says ({size},)")
    _expect(np.isfinite(codes), "a code holds a number that is not finite")
    _expect(_alike(jax.jit(code)(jnp.asarray(rows[0])), codes[0]), "the same task has two codes")
    _expect(len(np.unique(codes, axis=0)) == len(rows), "two combinations have one code")


RESERVED_SITES = {"vector", "control", "encoding"}


def check_model(model: Model, code_size: int = 5, input_size: int = 4, output_size: int = 3) -> None:
    """Check that a network uses code and input, and can be traced, trained, stacked, saved and loaded.

    Args:
        model: The model.
        code_size: The length of a code.
        input_size: The length of an input.
        output_size: The length of an output.
    """
    check_component(model)
    output_size = 7 * input_size if model.autoregressive and output_size < 4 * input_size else output_size
    _expect(model.stack_size() >= 1, f"stack_size is {model.stack_size()}, expected at least 1")

    def draw(key: Array) -> Network:
        return model.draw(code_size, input_size, output_size, key)

    network = _check_draws(draw)
    by_code, by_input = _keys(2, 1)
    shapes = (TASKS, code_size), (TASKS, SAMPLES, input_size)
    if model.autoregressive:  # Reads and says words: numbers from 3 on.
        number = output_size // input_size
        codes = jax.random.randint(by_code, shapes[0], 3, number).astype(jnp.float32)
        inputs = jax.random.randint(by_input, shapes[1], 3, number).astype(jnp.float32)
    else:
        codes, inputs = jax.random.normal(by_code, shapes[0]), jax.random.normal(by_input, shapes[1])
        if model.reads_tokens:
            inputs = jax.random.randint(by_input, shapes[1], 0, TOKENS).astype(jnp.float32)
    outputs = _many(network, codes, inputs)
    shape = (TASKS, SAMPLES, output_size)
    _expect(outputs.shape == shape, f"outputs have shape {outputs.shape}, expected {shape}")
    _expect(_finite(outputs), "an output is not finite")
    same = jnp.allclose(outputs, _many(network, codes[::-1], inputs))
    _expect(same != model.reads_code, "the code changes nothing" if same else "the code changes the outputs")
    same = jnp.allclose(outputs, _many(network, codes, inputs[::-1]))
    _expect(same != model.reads_inputs, "the input changes nothing" if same else "the input changes the outputs")
    other = draw(jax.random.key(1))
    _expect(not jnp.allclose(outputs, _many(other, codes, inputs)), "the key changes nothing")
    together = eqx.filter_jit(lambda network, *examples: network.tasks(*examples))(network, codes, inputs)
    _expect(_alike(together, outputs), "tasks together have other outputs than one by one")
    traced, sites = _traced(network, codes[0], inputs[0])
    _expect(_alike(traced, outputs[0]), "trace gives other outputs than the call")
    for site, values in sites.items():
        _expect(site not in RESERVED_SITES, f"a site may not be called {site!r}")
        good = values.ndim == 2 and values.shape[0] == SAMPLES
        _expect(good, f"the site {site!r} has shape {values.shape}, expected ({SAMPLES}, units)")
        _expect(_finite(values), f"the site {site!r} is not finite")
    _check_edits(network, codes[0], inputs[0], traced, list(sites))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda network: jnp.mean(jax.vmap(network)(codes, inputs) ** 2)))(network)
    _expect(_finite(gradient), "a gradient is not finite")
    _expect(any(bool(jnp.any(leaf)) for leaf in jax.tree.leaves(gradient)), "every gradient is zero")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        save_tree(path, network)
        _expect(_contents(load_tree(path, other)[0]) == _contents(network), "it is not the same after loading")


_many = eqx.filter_jit(lambda network, codes, inputs: jax.vmap(network)(codes, inputs))
"""The outputs of tasks one by one; compiled, because this is much faster."""


def _traced(network: Network, code: Array, inputs: Array) -> tuple[Array, Trace]:
    """A compiled trace, its sites in the order of the computation (JAX would sort them by name)."""
    order: list[str] = []

    def run(network: Network, code: Array, inputs: Array) -> tuple[Array, tuple[Array, ...]]:
        # A network whose trace takes no edit fails in its own check, not here.
        outputs, sites = network.trace(code, inputs)
        order[:] = sites
        return outputs, tuple(sites.values())

    outputs, values = eqx.filter_jit(run)(network, code, inputs)
    return outputs, dict(zip(order, values, strict=True))


def _check_edits(network: Network, code: Array, inputs: Array, plain: Array, sites: list[str]) -> None:
    """Check that every site passes through `edit`, and that the network continues with the edited values."""
    met: list[str] = []

    @eqx.filter_jit  # One program for all edits: which site is set to zero is an argument.
    def edited(network: Network, code: Array, inputs: Array, wiped: Array) -> tuple[Array, Trace]:
        def wipe(site: str, values: Array) -> Array:
            met.append(site)
            return jnp.where(wiped == sites.index(site), jnp.zeros_like(values), values) if site in sites else values

        met.clear()
        return network.trace(code, inputs, wipe)

    same = edited(network, code, inputs, jnp.asarray(-1))[0]
    _expect(_alike(same, plain), "an edit that changes nothing changes the outputs")
    _expect(met == sites, f"edit is given the sites {met}, the trace has {sites}")
    for number, site in enumerate(sites):
        outputs, after = edited(network, code, inputs, jnp.asarray(number))
        _expect(not np.any(after[site]), f"the trace has {site!r} as it was before its edit")
        _expect(not jnp.allclose(outputs, plain), f"zeros in place of {site!r} change nothing")


def check_probe(probe: Measurement, config: RunConfig) -> None:
    """Check that a measurement repeats, changes nothing, says which numbers it gives, and can be stored and read back.

    Args:
        probe: The measurement.
        config: A small run that allows it. It is measured with its first weights, so nothing is trained.
    """
    from recombine.store.measurements import read_measurement, write_measurement

    check_component(probe)
    setting = Setting(config)
    network = setting.network()
    before = _contents(network)
    try:
        measured, again = probe.measure(setting, network), probe.measure(setting, network)
    except BadInput as error:
        raise AssertionError(f"the measurement refuses this run, so nothing can be checked: {error}") from error
    _expect(isinstance(measured, Measured), f"measure gives {type(measured).__name__}, expected Measured")
    _expect(_contents(network) == before, "measure changed the network")
    _expect(len(measured.summary) > 0, "the summary has no number")
    for name, value in measured.summary.items():
        _expect(type(value) in (int, float), f"the summary's {name!r} is {value!r}, expected a plain number")
    declared = probe.summary_columns(config)
    if declared is not None:
        unknown = sorted(measured.summary.keys() - declared)
        _expect(not unknown, f"summary_columns does not declare {', '.join(unknown)}, so no study could use it")
    lengths = {name: len(column) for name, column in measured.columns.items()}
    _expect(len(set(lengths.values())) <= 1, f"the columns of the table differ in length: {lengths}")
    with tempfile.TemporaryDirectory() as folder:
        places = Path(folder) / "measurements", Path(folder) / "temporary"
        places[1].mkdir()
        write_measurement(places[0], probe, measured, places[1])
        record = read_measurement(places[0], probe.name)
        kept = None if record is None else record["summary"]
    _expect(_same(kept, measured.summary), f"the summary is stored as {kept}, expected {measured.summary}")
    _expect(
        _same(again.summary, measured.summary), f"a second measurement gives {again.summary}, not {measured.summary}"
    )
    _expect(_same(again.columns, measured.columns), "a second measurement gives another table")


def _same(left: Any, right: Any) -> bool:
    """Whether values are equal; numbers that are undefined are equal to each other, and to null in JSON."""

    def text(value: Any) -> str:
        return json.dumps(value, sort_keys=True, default=str).replace("NaN", "null").replace("-Infinity", "null")

    return text(left).replace("Infinity", "null") == text(right).replace("Infinity", "null")


def check_study(study: type[Study], *, run: bool = True) -> None:
    """Check that every profile of a study can be designed, and that its smallest one runs, decides its claims and draws.

    Args:
        study: The class.
        run: Also train the smallest profile, in a folder that is deleted.
    """
    from recombine.design.run import run_study
    from recombine.engines.local import LocalEngine
    from recombine.store.store import Store

    _expect(len(study.profiles) > 0, f"{study.__name__} has no profile")
    sizes = {}
    for name in study.profiles:
        made = study.profile(name)
        check_component(made)
        design = made.design
        _expect(len(design.runs) > 0, f"the profile {name!r} has no run")
        _expect(len(design.claims) > 0, f"the profile {name!r} has no claim")
        primary = [claim.name for claim in design.claims if claim.primary]
        _expect(len(primary) >= 1, f"the profile {name!r} has no primary claim: claim(..., primary=True)")
        sizes[name] = sum(config.recipe.steps for config, _ in design.runs)
    question = study.profile(next(iter(study.profiles))).question
    _expect(question.endswith("?"), f"the first line of the docstring is {question!r}, expected a question")
    if not run:
        return
    smallest = min(sizes, key=lambda name: sizes[name])
    made = study.profile(smallest)
    with tempfile.TemporaryDirectory() as folder:
        result = run_study(made, smallest, Store(Path(folder) / "store"), LocalEngine())
        for effect in result.record["effects"]:
            name, values = effect["claim"]["name"], np.asarray(effect["values"], float)
            _expect(np.isfinite(values).any(), f"the claim {name!r} has no effect in any replicate of {smallest!r}")
        names = [figure.name for figure in result.figures]
        _expect(len(set(names)) == len(names), f"two figures have one name: {names}")
        for figure in result.figures:
            figure.chart.to_dict()  # Raises where it cannot be drawn.
