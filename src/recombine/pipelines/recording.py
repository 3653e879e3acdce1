"""What a pipeline has inside while it makes an image: hooks on blocks and text encoders, always taken off again."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from recombine.pipelines.loading import Loaded

ENCODER = "text_encoder"
"""How the names of text encoders begin."""


@dataclasses.dataclass
class Call:
    """One call of the denoising network: one step may have several, with the prompt and without."""

    timestep: float | None
    inputs: list[torch.Tensor]
    """What it was given, if that is kept."""
    pooled: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """(row, feature) by block."""

    @property
    def rows(self) -> int:
        """Images in the call, those without the prompt included."""
        return max((len(one) for one in self.pooled.values()), default=0)


class Recorder:
    """Keeps the pooled outputs of all blocks in all calls, and those of the text encoders."""

    def __init__(self, network: torch.nn.Module) -> None:
        self._forward = inspect.signature(type(network).forward)
        self.keep_inputs = False
        self.forget()

    def forget(self) -> None:
        """Before each image."""
        self.calls: list[Call] = []
        self.encoded: dict[str, list[torch.Tensor]] = {}

    def steps(self) -> list[list[Call]]:
        """The calls, those at one noise level together."""
        found: list[list[Call]] = []
        for call in self.calls:
            same = found and call.timestep is not None and found[-1][0].timestep == call.timestep
            if same:
                found[-1].append(call)
            else:
                found.append([call])
        return found

    def begin(self, network: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The denoising network is about to be called."""
        given = self._forward.bind_partial(network, *args, **kwargs).arguments
        time = given.get("timestep")
        value = (
            None if time is None else float(time.reshape(-1)[0]) if hasattr(time, "reshape") else float(time)
        )
        kept = [one.detach().cpu() for one in _tensors((args, kwargs))] if self.keep_inputs else []
        self.calls.append(Call(value, kept))

    def block(self, name: str, block: torch.nn.Module) -> Any:
        """The hook of a block."""
        forward = inspect.signature(type(block).forward)
        place: list[int | None] = []  # Found at the first call: a block always gives out the same things.

        def take(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if self.calls and name not in self.calls[-1].pooled:
                streams = _streams(output)
                if not place:
                    given = forward.bind_partial(module, *args, **kwargs).arguments
                    place.append(_picture(given.get("hidden_states"), streams))
                if place[0] is not None and place[0] < len(streams):
                    self.calls[-1].pooled[name] = pooled(streams[place[0]])

        return take

    def encoder(self, name: str) -> Any:
        """The hook of a text encoder."""

        def take(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self.encoded.setdefault(name, []).append(_encoded(args, kwargs, output))

        return take


@contextlib.contextmanager
def recording(loaded: Loaded, blocks: Mapping[str, torch.nn.Module]) -> Iterator[Recorder]:
    """Hooks for as long as the context lasts."""
    recorder = Recorder(loaded.network)
    encoders = {
        name: part
        for name, part in loaded.pipe.components.items()
        if name.startswith(ENCODER) and callable(getattr(part, "register_forward_hook", None))
    }
    handles = []
    try:
        handles.append(loaded.network.register_forward_pre_hook(recorder.begin, with_kwargs=True))
        for name, block in blocks.items():
            handles.append(block.register_forward_hook(recorder.block(name, block), with_kwargs=True))
        for name, part in encoders.items():
            handles.append(part.register_forward_hook(recorder.encoder(name), with_kwargs=True))
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def pooled(values: torch.Tensor) -> torch.Tensor:
    """The mean over space or tokens: features are the axis after the batch in pictures, the last one in sequences."""
    if values.ndim < 3:
        return values.detach().float()
    kept = 1 if values.ndim >= 4 else values.ndim - 1
    return values.detach().float().mean(dim=[axis for axis in range(1, values.ndim) if axis != kept])


def _streams(output: Any) -> list[Any]:
    """What a block gives out, side by side. What lies in nests (a U-Net's skips to its other side) is none of them."""
    if isinstance(output, Mapping):
        output = list(output.values())
    return list(output) if isinstance(output, tuple | list) else [output]


def _picture(given: Any, streams: list[Any]) -> int | None:
    """Which one is the stream of the picture; blocks with two streams give out that of the text too.

    It has the shape of what went in as `hidden_states`; of two such ones it is the nearer, as blocks add to their streams.
    """
    found = [
        place
        for place, one in enumerate(streams)
        if hasattr(one, "is_floating_point") and one.is_floating_point() and one.ndim > 1
    ]
    if len(found) > 1 and hasattr(given, "shape"):
        alike = [place for place in found if streams[place].shape == given.shape]
        if len(alike) > 1:
            return min(alike, key=lambda place: float((streams[place] - given).float().norm()))
        found = alike or found
    return found[0] if found else None


def _encoded(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> torch.Tensor:
    """The mean over tokens of what a text encoder gives out (those that count, if it was told), and its own summary."""
    import torch

    hidden = getattr(output, "last_hidden_state", None)
    if hidden is None:
        hidden = next(one for one in _tensors(output) if one.ndim == 3)
    mask: Any = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
    if not hasattr(mask, "shape") or mask.shape != hidden.shape[:2]:
        parts = [pooled(hidden)]
    else:
        weight = mask.to(hidden.device).float()[..., None]
        parts = [(hidden.detach().float() * weight).sum(1) / weight.sum(1).clamp(min=1)]
    for name in ("text_embeds", "pooler_output"):
        summary = getattr(output, name, None)
        if summary is not None and summary.ndim == 2:
            parts.append(summary.detach().float())
    return torch.cat(parts, dim=1)


def _tensors(value: Any) -> list[torch.Tensor]:
    """All floating-point tensors in a nest of tuples, lists and mappings, in their order."""
    if hasattr(value, "is_floating_point"):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        value = list(value.values())
    return [one for each in value for one in _tensors(each)] if isinstance(value, tuple | list) else []
