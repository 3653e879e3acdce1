"""Activations of a PyTorch module, recorded by forward hooks that are always removed again."""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput, MissingPackage, did_you_mean

if TYPE_CHECKING:
    import torch

MOST_LAYERS = 16
"""How many submodules are recorded by default."""
WHOLE = "(whole)"
"""The name of a module that has no submodules."""
IDLE = ("Dropout", "Identity", "Flatten", "AlphaDropout", "FeatureAlphaDropout", "DropPath")
"""Modules whose output holds nothing beyond their input in evaluation mode."""
LAST = ("Linear", "LayerNorm", "RMSNorm", "Embedding", "EmbeddingBag", "MultiheadAttention", "LSTM", "GRU", "RNN")
"""Modules whose features are the last axis, whatever axes come before."""
FIRST = ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "MaxPool", "AvgPool", "AdaptiveMax", "AdaptiveAvg")
"""Prefixes of modules whose features are the axis after the batch."""

Pool = Literal["mean", "none"] | Callable[[str, Any], Any]
"""`mean`: over all axes except the batch and the features. `none`: all axes as features. Or a function of the layer's
name and its output that returns one row per input."""


def require_torch() -> Any:
    """PyTorch, or an error that says how to install it."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise MissingPackage(
            "PyTorch is not installed.",
            fix="pip install 'recombine[torch]'; the CPU build is enough, if you install it first (the default wheels carry "
            "gigabytes for accelerators)",
        ) from None


class Recorder:
    """The outputs of named submodules in the last call."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._torch = require_torch()
        self._taken: dict[str, tuple[Any, Any]] = {}

    def forget(self) -> None:
        """Clear the recorded outputs, before each call."""
        self._taken = {}

    def hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        """A hook for a submodule. A submodule that runs twice in one call is recorded as relu and relu (2)."""

        def take(module: Any, inputs: Any, output: Any) -> None:
            tensor = self._first_tensor(output)
            if tensor is None or not tensor.is_floating_point():
                return
            labels = itertools.chain([name], (f"{name} ({number})" for number in itertools.count(2)))
            label = next(label for label in labels if label not in self._taken)
            self._taken[label] = (module, tensor.detach())

        return take

    def rows(self, number: int) -> dict[str, Float[np.ndarray, "row _"]]:
        """One row of features per input of the last call, in the order of the computation.

        Outputs without one row per input, such as those of a module that sees no batch, are left out.
        """
        return {
            name: self._pooled(name, module, values).reshape(number, -1).to(self._torch.float32).cpu().numpy()
            for name, (module, values) in self._taken.items()
            if values.ndim and len(values) == number
        }

    def _pooled(self, name: str, module: Any, values: torch.Tensor) -> torch.Tensor:
        if callable(self._pool):
            pooled = self._torch.as_tensor(self._pool(name, values))
            if pooled.ndim < 1 or pooled.shape[0] != values.shape[0]:
                raise BadInput(
                    f"The pooling of layer {name!r} turned shape {tuple(values.shape)} into {tuple(pooled.shape)}.",
                    fix="keep the first axis: it has one entry per input",
                )
            return pooled
        if self._pool == "none" or values.ndim < 3:
            return values
        kept = _feature_axis(type(module).__name__, values.ndim)
        return values.float().mean(dim=[axis for axis in range(1, values.ndim) if axis != kept])

    def _first_tensor(self, output: Any) -> Any:
        """The first tensor in a tensor, a tuple, a list or a mapping of them, at any depth."""
        if isinstance(output, self._torch.Tensor):
            return output
        if isinstance(output, Mapping):
            output = list(output.values())
        if isinstance(output, tuple | list):
            return next((t for each in output if (t := self._first_tensor(each)) is not None), None)
        return None


def _feature_axis(kind: str, axes: int) -> int:
    """Which axis holds the features: by the kind of module, otherwise after the batch in images and last in sequences."""
    if kind in LAST:
        return axes - 1
    return 1 if axes >= 4 or kind.startswith(FIRST) else axes - 1


@contextlib.contextmanager
def recording(
    module: torch.nn.Module, layers: Sequence[str] | None = None, *, pool: Pool = "mean"
) -> Iterator[Recorder]:
    """Hooks on the named submodules (None: `default_layers`) while the context lasts."""
    recorder = Recorder(pool)
    known = named_layers(module)
    chosen = default_layers(module) if layers is None else list(layers)
    for name in chosen:
        if name not in known:
            raise BadInput(f"The module has no layer {name!r}.", fix=did_you_mean(name, known))
    with contextlib.ExitStack() as hooks:
        for name in chosen:
            hooks.callback(known[name].register_forward_hook(recorder.hook(name)).remove)
        yield recorder


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; every submodule's mode is restored afterwards."""
    torch = require_torch()
    before = [(submodule, submodule.training) for submodule in module.modules()]
    try:
        module.eval()
        with torch.no_grad():
            yield
    finally:
        for submodule, training in before:
            submodule.training = training


def named_layers(module: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """All submodules by name; the module itself if it has none."""
    submodules = {name: submodule for name, submodule in module.named_modules() if name}
    return submodules or {WHOLE: module}


def default_layers(module: torch.nn.Module) -> list[str]:
    """The leaf submodules without those that change nothing; at most 16, evenly spaced."""
    leaves = [
        name
        for name, submodule in named_layers(module).items()
        if not any(True for _ in submodule.children()) and not type(submodule).__name__.startswith(IDLE)
    ]
    return evenly(leaves, MOST_LAYERS)


def evenly(names: Sequence[str], most: int) -> list[str]:
    """At most so many names, evenly spaced."""
    if len(names) <= most:
        return list(names)
    return [names[int(index)] for index in np.linspace(0, len(names) - 1, most).round()]
