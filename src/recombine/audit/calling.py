"""How a model is asked: a function, a PyTorch module, an Equinox module, a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from recombine.audit.torch_hooks import Pool, evaluating, recording
from recombine.errors import BadInput, did_you_mean

BATCH = 64
"""Inputs in one call of a module or an estimator."""

Layers = dict[str, Float[np.ndarray, "row _"]]
Call = Callable[[list[Any]], tuple[list[Any], Layers]]
"""From inputs to an output for each, and to a row of activations for each, layer by layer."""


class Callee(NamedTuple):
    """A model that can be asked."""

    call: Call
    batch: int
    """How many inputs it takes at once."""


@contextlib.contextmanager
def callee(
    model: Any, layers: Sequence[str] | None, pool: Pool, batch: int | None, method: str
) -> Iterator[Callee]:
    """The model, ready to be asked for as long as the context lasts; afterwards it is as it was."""
    if batch is not None and batch < 1:
        raise BadInput(f"A call takes one input at least, got batch={batch}.")
    torch = sys.modules.get("torch")
    equinox = sys.modules.get("equinox")
    if torch is not None and isinstance(model, torch.nn.Module):
        with evaluating(model), recording(model, layers, pool=pool) as recorder:
            yield Callee(lambda inputs: _torch(model, recorder, inputs), batch or BATCH)
        return
    if equinox is not None and isinstance(model, equinox.Module):
        number = batch or BATCH
        yield Callee(_equinox(model, layers, pool, number), number)
        return
    if layers:
        raise BadInput(
            f"Layers are named ({', '.join(layers)}), and a {type(model).__name__} does not show its layers.",
            fix="give a PyTorch module, or an Equinox module with a method `trace`",
        )
    if hasattr(model, "predict"):
        asked = getattr(model, method, None)
        if asked is None:
            offers = [one for one in dir(model) if one.startswith(("predict", "decision", "transform"))]
            raise BadInput(
                f"A {type(model).__name__} has no method {method!r}.", fix=did_you_mean(method, offers)
            )
        yield Callee(lambda inputs: (_split(asked(_table(inputs)), len(inputs)), {}), batch or BATCH)
        return
    if not callable(model):
        raise BadInput(
            f"A model that can be called was expected, got a {type(model).__name__}.",
            fix="give a function of one input, a PyTorch or Equinox module, or an estimator with `predict`",
        )
    if batch is None or batch == 1:
        yield Callee(lambda inputs: ([model(one) for one in inputs], {}), 1)
    else:
        yield Callee(lambda inputs: (_split(model(_stacked(inputs)), len(inputs)), {}), batch)


def _torch(model: Any, recorder: Any, inputs: list[Any]) -> tuple[list[Any], Layers]:
    """One call of a module. Its inputs are moved to where its weights are, in their precision."""
    torch = sys.modules["torch"]
    weight = next((one for one in model.parameters() if one.is_floating_point()), None)

    def stack(values: list[Any]) -> Any:
        tensors = [torch.as_tensor(value) for value in values]
        if len({one.shape for one in tensors}) > 1:
            raise _unequal([tuple(one.shape) for one in tensors])
        made = torch.stack(tensors)
        if weight is None:
            return made
        return made.to(weight.device, weight.dtype if made.is_floating_point() else None)

    recorder.forget()
    first = inputs[0]
    if isinstance(first, Mapping):
        output = model(**{name: stack([one[name] for one in inputs]) for name in first})
    elif isinstance(first, tuple):
        output = model(*(stack(list(values)) for values in zip(*inputs, strict=True)))
    else:
        output = model(stack(inputs))
    rows = recorder.rows(len(inputs))
    recorder.forget()
    return _split(output, len(inputs)), rows


def _equinox(model: Any, layers: Sequence[str] | None, pool: Pool, batch: int) -> Call:
    """A module is written for one input: it is vmapped, with its `trace` if it has one."""
    import equinox as eqx
    import jax

    model = eqx.nn.inference_mode(model)
    traced = hasattr(model, "trace")
    if layers and not traced:
        raise BadInput(
            f"Layers are named ({', '.join(layers)}), and {type(model).__name__} has no method `trace`.",
            fix="write one that returns the output and a dictionary of activations",
        )
    names: list[str] = []

    @eqx.filter_jit
    def compiled(model: Any, stacked: Any) -> Any:
        def one(*arguments: Any) -> Any:
            if not traced:
                return model(*arguments), ()
            output, sites = model.trace(*arguments)
            # JAX would sort a dictionary by its names.
            names[:] = sites
            return output, tuple(sites.values())

        return jax.vmap(one)(*stacked)

    def call(inputs: list[Any]) -> tuple[list[Any], Layers]:
        arguments = [one if isinstance(one, tuple) else (one,) for one in inputs]
        shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(one)) for one in arguments}
        if len(shapes) > 1:
            raise _unequal(sorted(shapes))
        # The last call is filled up: one shape, one compilation.
        padded = arguments + [arguments[-1]] * (batch - len(arguments))
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *padded)
        output, values = compiled(model, stacked)
        sites = {
            name: np.asarray(value)[: len(inputs)] for name, value in zip(names, values, strict=True)
        } if traced else {}  # fmt: skip
        for name in layers or ():
            if name not in sites:
                raise BadInput(f"The trace has no site {name!r}.", fix=did_you_mean(name, sites))
        kept = {name: value for name, value in sites.items() if layers is None or name in layers}
        output = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(inputs)], output)
        return _split(output, len(inputs)), {name: _pooled(name, value, pool) for name, value in kept.items()}

    return call


def _pooled(name: str, values: np.ndarray, pool: Pool) -> Float[np.ndarray, "row _"]:
    """A row for each input: the features are the last axis."""
    if callable(pool):
        values = np.asarray(pool(name, values))
    elif pool == "mean" and values.ndim > 2:
        values = values.mean(axis=tuple(range(1, values.ndim - 1)))
    return values.reshape(len(values), -1).astype(np.float32)


def _table(inputs: list[Any]) -> Any:
    """What an estimator takes: a matrix of rows, a frame of mappings, or a list of anything else."""
    if isinstance(inputs[0], Mapping):
        import pandas as pd

        return pd.DataFrame(inputs)
    return _stacked(inputs)


def _stacked(inputs: list[Any]) -> Any:
    """An array with a leading axis where inputs are arrays or numbers of one shape; else the list."""
    if all(hasattr(one, "shape") or isinstance(one, int | float | list | tuple) for one in inputs):
        with contextlib.suppress(ValueError):
            made = np.stack([np.asarray(one) for one in inputs])
            return made if made.dtype.kind in "biufc" else inputs
    return inputs


def _split(output: Any, number: int) -> list[Any]:
    """The output for each input of a call. Tensors come off the graph and the accelerator."""
    if hasattr(output, "detach"):
        output = output.detach().cpu()
    if isinstance(output, Mapping):
        columns = {name: _split(value, number) for name, value in output.items() if value is not None}
        return [{name: column[index] for name, column in columns.items()} for index in range(number)]
    if isinstance(output, tuple):
        columns = [_split(value, number) for value in output if value is not None]
        return [tuple(column[index] for column in columns) for index in range(number)]
    if not hasattr(output, "__len__") or (np.ndim(output) == 0 and hasattr(output, "shape")):
        raise BadInput(f"{number} inputs gave one {type(output).__name__}, not an output each.")
    if len(output) != number:
        raise BadInput(
            f"{number} inputs gave {len(output)} outputs.",
            fix="one output for each input, in their order; or ask one at a time with batch=1",
        )
    return [output[index] for index in range(number)]


def _unequal(shapes: Sequence[Any]) -> BadInput:
    return BadInput(
        f"The inputs of one call differ in shape, e.g. {shapes[0]} and {shapes[-1]}.",
        fix="make them alike, or ask one at a time with batch=1",
    )
