"""How to call each kind of model: a function, a PyTorch module, an Equinox module, a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.audit.asking.hugging_face import is_hugging_face, prepared_pipeline
from recombine.audit.asking.torch_hooks import Pool, evaluating, recording
from recombine.errors import BadInput, did_you_mean

BATCH, PIPELINE_BATCH = 64, 8
"""Inputs per call of a module or an estimator, and of a pipeline of transformers."""

Layers = dict[str, Float[np.ndarray, "row _"]]
Call = Callable[[list[Any]], tuple[list[Any], Layers]]
"""From inputs to one output per input, and to one row of activations per input for each layer."""


@contextlib.contextmanager
def prepared_model(
    model: Any, layers: Sequence[str] | None, pool: Pool, batch: int | None, method: str
) -> Iterator[tuple[Call, int]]:
    """The model, ready to be called while the context lasts, and its inputs per call. Its modes are restored."""
    if batch is not None and batch < 1:
        raise BadInput(f"A call takes at least one input, got batch={batch}.", fix="batch=1 or more")
    if is_hugging_face(model):
        with prepared_pipeline(model, layers, pool) as call:
            yield call, batch or PIPELINE_BATCH
        return
    torch, equinox = sys.modules.get("torch"), sys.modules.get("equinox")
    number = batch or BATCH
    if torch is not None and isinstance(model, torch.nn.Module):
        with evaluating(model), recording(model, layers, pool=pool) as recorder:
            yield (lambda inputs: _torch(model, recorder, inputs), number)
        return
    if equinox is not None and isinstance(model, equinox.Module):
        yield (_equinox(model, layers, pool, number), number)
        return
    if layers:
        raise BadInput(
            f"Layers are named ({', '.join(layers)}), but a {type(model).__name__} does not expose its layers.",
            fix="give a PyTorch module, or an Equinox module with a method `trace`",
        )
    if hasattr(model, "predict"):
        predict = getattr(model, method, None)
        if predict is None:
            offers = [name for name in dir(model) if name.startswith(("predict", "decision", "transform"))]
            raise BadInput(f"A {type(model).__name__} has no method {method!r}.", fix=did_you_mean(method, offers))
        yield (lambda inputs: (_split(predict(_table(inputs)), len(inputs)), {}), number)
    elif not callable(model):
        raise BadInput(
            f"Expected a model that can be called, got a {type(model).__name__}.",
            fix="give a function of one input, a PyTorch or Equinox module, or an estimator with `predict`",
        )
    elif batch is None or batch == 1:
        yield (lambda inputs: ([model(value) for value in inputs], {}), 1)
    else:
        yield (lambda inputs: (_split(model(_stacked(inputs)), len(inputs)), {}), batch)


def _torch(model: Any, recorder: Any, inputs: list[Any]) -> tuple[list[Any], Layers]:
    """One call of a module. Inputs are moved to the device of the weights, in their precision."""
    torch = sys.modules["torch"]
    weight = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), None)

    def stack(values: list[Any]) -> Any:
        tensors = [torch.as_tensor(value) for value in values]
        if len({tensor.shape for tensor in tensors}) > 1:
            raise _unequal([tuple(tensor.shape) for tensor in tensors])
        stacked = torch.stack(tensors)
        real = stacked.is_floating_point()
        return stacked if weight is None else stacked.to(weight.device, weight.dtype if real else None)

    recorder.forget()
    if isinstance(inputs[0], Mapping):
        output = model(**{name: stack([each[name] for each in inputs]) for name in inputs[0]})
    elif isinstance(inputs[0], tuple):
        output = model(*(stack(list(values)) for values in zip(*inputs, strict=True)))
    else:
        output = model(stack(inputs))
    return _split(output, len(inputs)), recorder.rows(len(inputs))


def _equinox(model: Any, layers: Sequence[str] | None, pool: Pool, batch: int) -> Call:
    """An Equinox module takes one input, so its call (or its `trace`) is vmapped."""
    import equinox as eqx
    import jax

    model = eqx.nn.inference_mode(model)
    traced = hasattr(model, "trace")
    if layers and not traced:
        raise BadInput(
            f"Layers are named ({', '.join(layers)}), but {type(model).__name__} has no method `trace`.",
            fix="add one that returns the output and a dictionary of activations",
        )
    names: list[str] = []

    @eqx.filter_jit
    def compiled(model: Any, stacked: Any) -> Any:
        def single(*arguments: Any) -> Any:
            if not traced:
                return model(*arguments), ()
            output, sites = model.trace(*arguments)
            # JAX would sort a dictionary by its names.
            names[:] = sites
            return output, tuple(sites.values())

        return jax.vmap(single)(*stacked)

    def call(inputs: list[Any]) -> tuple[list[Any], Layers]:
        arguments = [value if isinstance(value, tuple) else (value,) for value in inputs]
        shapes = {tuple(np.shape(leaf) for leaf in jax.tree.leaves(each)) for each in arguments}
        if len(shapes) > 1:
            raise _unequal(sorted(shapes))
        # The last call is padded: one shape, one compilation.
        padded = arguments + [arguments[-1]] * (batch - len(arguments))
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *padded)
        output, values = compiled(model, stacked)
        output, values = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(inputs)], (output, values))
        sites = dict(zip(names, values, strict=True))
        for name in layers or ():
            if name not in sites:
                raise BadInput(f"The trace has no site {name!r}.", fix=did_you_mean(name, sites))
        kept = sites if layers is None else {name: sites[name] for name in sites if name in layers}
        return _split(output, len(inputs)), {name: _pooled(name, value, pool) for name, value in kept.items()}

    return call


def _pooled(name: str, values: np.ndarray, pool: Pool) -> Float[np.ndarray, "row _"]:
    """One row per input; the last axis holds the features."""
    if callable(pool):
        values = np.asarray(pool(name, values))
    elif pool == "mean" and values.ndim > 2:
        values = values.mean(axis=tuple(range(1, values.ndim - 1)))
    return values.reshape(len(values), -1).astype(np.float32)


def _table(inputs: list[Any]) -> Any:
    """The inputs as an estimator takes them: a matrix, a frame of mappings, or a list of anything else."""
    if isinstance(inputs[0], Mapping):
        import pandas as pd

        return pd.DataFrame(inputs)
    return _stacked(inputs)


def _stacked(inputs: list[Any]) -> Any:
    """The inputs as one array if they are arrays or numbers of one shape, otherwise as a list."""
    if all(hasattr(value, "shape") or isinstance(value, int | float | list | tuple) for value in inputs):
        with contextlib.suppress(ValueError):
            stacked = np.stack([np.asarray(value) for value in inputs])
            return stacked if stacked.dtype.kind in "biufc" else inputs
    return inputs


def _split(output: Any, number: int) -> list[Any]:
    """One output per input of a call. Tensors are detached and moved to the CPU."""
    if hasattr(output, "detach"):
        output = output.detach().cpu()
    if isinstance(output, Mapping):
        columns = {name: _split(value, number) for name, value in output.items() if value is not None}
        return [{name: column[index] for name, column in columns.items()} for index in range(number)]
    if isinstance(output, tuple):
        columns = [_split(value, number) for value in output if value is not None]
        return [tuple(column[index] for column in columns) for index in range(number)]
    single = not hasattr(output, "__len__") or (np.ndim(output) == 0 and hasattr(output, "shape"))
    if single or len(output) != number:
        gave = f"one {type(output).__name__}, not one output each" if single else f"{len(output)} outputs"
        raise BadInput(
            f"{number} inputs gave {gave}.",
            fix="return one output per input, in their order; or ask one at a time with batch=1",
        )
    return [output[index] for index in range(number)]


def _unequal(shapes: Sequence[Any]) -> BadInput:
    return BadInput(
        f"The inputs of one call differ in shape, for example {shapes[0]} and {shapes[-1]}.",
        fix="give all inputs one shape, or ask one at a time with batch=1",
    )
