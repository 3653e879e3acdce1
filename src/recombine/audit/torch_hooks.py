"""Activations of a PyTorch module, by forward hooks that are always taken off again."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import torch

MOST_LAYERS = 16
"""So many submodules are looked into where nobody names any."""
WHOLE = "(whole)"
"""The name of a module that has no submodules."""
IDLE = ("Dropout", "Identity", "Flatten", "AlphaDropout", "FeatureAlphaDropout", "DropPath")
"""Modules whose output says nothing that their input does not (when nothing is trained)."""
LAST = (
    "Linear",
    "LayerNorm",
    "RMSNorm",
    "Embedding",
    "EmbeddingBag",
    "MultiheadAttention",
    "LSTM",
    "GRU",
    "RNN",
)
"""Modules whose features are the last axis, whatever axes come before."""
FIRST = ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "MaxPool", "AvgPool", "AdaptiveMax", "AdaptiveAvg")
"""Beginnings of the names of modules whose features are the axis after the batch."""

Pool = Literal["mean", "none"] | Callable[[str, Any], Any]
"""`mean`: over all axes but the batch's and the features'. `none`: all axes as features. Or a function of the layer's
name and its output, which gives a row for each input."""


def require_torch() -> Any:
    """PyTorch, or an error that says how to get it."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise BadInput(
            "PyTorch is not installed.",
            fix="pip install 'recombine[torch]'; its CPU build, installed before, is enough (the default wheels carry "
            "gigabytes for accelerators)",
        ) from None


class Recorder:
    """What named submodules gave out in the last call."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._torch = require_torch()
        self._taken: dict[str, tuple[Any, Any]] = {}

    def forget(self) -> None:
        """Before each call."""
        self._taken = {}

    def hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        """A hook for a submodule. One that is called again in the same call gets a number: relu, relu (2)."""

        def take(module: Any, inputs: Any, output: Any) -> None:
            found = self._first_tensor(output)
            if found is None or not found.is_floating_point():
                return
            number, label = 1, name
            while label in self._taken:
                number += 1
                label = f"{name} ({number})"
            self._taken[label] = (module, found.detach())

        return take

    def rows(self, number: int) -> dict[str, Float[np.ndarray, "row _"]]:
        """A row of features for each of the inputs of the last call, in the order of the computation.

        What has no row for each input, as the output of a module that sees no batch, is left out.
        """
        made = {}
        for name, (module, values) in self._taken.items():
            if values.ndim < 1 or values.shape[0] != number:
                continue
            pooled = self._pooled(name, module, values)
            made[name] = pooled.reshape(number, -1).to(self._torch.float32).cpu().numpy()
        return made

    def _pooled(self, name: str, module: Any, values: torch.Tensor) -> torch.Tensor:
        if callable(self._pool):
            found = self._torch.as_tensor(self._pool(name, values))
            if found.ndim < 1 or found.shape[0] != values.shape[0]:
                raise BadInput(
                    f"The pooling of layer {name!r} turned shape {tuple(values.shape)} into {tuple(found.shape)}.",
                    fix="keep the first axis: it has one entry for each input",
                )
            return found
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
            return next((one for each in output if (one := self._first_tensor(each)) is not None), None)
        return None


def _feature_axis(kind: str, axes: int) -> int:
    """Which axis holds the features: after the batch in pictures, last in sequences; a known module decides."""
    if kind in LAST:
        return axes - 1
    if kind.startswith(FIRST):
        return 1
    return 1 if axes >= 4 else axes - 1


@contextlib.contextmanager
def recording(
    module: torch.nn.Module, layers: Sequence[str] | None = None, *, pool: Pool = "mean"
) -> Iterator[Recorder]:
    """Hooks on the named submodules (None: `default_layers`) for as long as the context lasts."""
    recorder = Recorder(pool)
    known = named_layers(module)
    chosen = default_layers(module) if layers is None else list(layers)
    for name in chosen:
        if name not in known:
            raise BadInput(f"The module has no layer {name!r}.", fix=did_you_mean(name, known))
    handles = []
    try:
        handles += [known[name].register_forward_hook(recorder.hook(name)) for name in chosen]
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients; afterwards every submodule is in the mode in which it was."""
    torch = require_torch()
    before = [(one, one.training) for one in module.modules()]
    try:
        module.eval()
        with torch.no_grad():
            yield
    finally:
        for one, training in before:
            one.training = training


def named_layers(module: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """All submodules by name; the module itself where it has none."""
    found = {name: one for name, one in module.named_modules() if name}
    return found or {WHOLE: module}


def default_layers(module: torch.nn.Module) -> list[str]:
    """The submodules without submodules of their own, less those that change nothing; at most 16, evenly chosen."""
    leaves = [
        name
        for name, one in named_layers(module).items()
        if not any(True for _ in one.children()) and not type(one).__name__.startswith(IDLE)
    ]
    if len(leaves) <= MOST_LAYERS:
        return leaves
    places = np.unique(np.linspace(0, len(leaves) - 1, MOST_LAYERS).round().astype(int))
    return [leaves[place] for place in places]
