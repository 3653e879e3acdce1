"""Records activations of a pipeline: hooks on the blocks of its network and its text encoders."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recombine.audit.asking.torch_hooks import evenly
from recombine.errors import BadInput

if TYPE_CHECKING:
    import torch

    from recombine.pipelines.loading import LoadedPipeline

MOST_BLOCKS = 16
"""Largest number of recorded blocks, evenly chosen."""
ENCODER = "text_encoder"
"""Prefix of the names of text encoders."""


@dataclasses.dataclass
class Call:
    """One call of the denoising network. A step may have several calls, with and without the prompt."""

    timestep: float | None
    inputs: list[torch.Tensor]
    """Its inputs, if they are kept."""
    pooled: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """Pooled output of each block, (row, feature)."""

    @property
    def rows(self) -> int:
        """Rows in the call, including those without the prompt."""
        return max((len(output) for output in self.pooled.values()), default=0)


class Recorder:
    """Keeps the pooled outputs of all blocks and text encoders in all calls."""

    def __init__(self, network: torch.nn.Module) -> None:
        self._forward = inspect.signature(type(network).forward)
        self.keep_inputs = False
        self.forget()

    def forget(self) -> None:
        """Clear the recordings, before each image."""
        self.calls: list[Call] = []
        self.encoded: dict[str, list[torch.Tensor]] = {}

    def steps(self) -> list[list[Call]]:
        """The calls, grouped by noise level."""
        steps: list[list[Call]] = []
        for call in self.calls:
            if steps and call.timestep is not None and steps[-1][0].timestep == call.timestep:
                steps[-1].append(call)
            else:
                steps.append([call])
        return steps

    def begin(self, network: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The hook before a call of the denoising network."""
        given = self._forward.bind_partial(network, *args, **kwargs).arguments
        time = given.get("timestep")
        value = None if time is None else float(time.reshape(-1)[0]) if hasattr(time, "reshape") else float(time)
        kept = [tensor.detach().cpu() for tensor in _tensors((args, kwargs))] if self.keep_inputs else []
        self.calls.append(Call(value, kept))

    def block(self, name: str, block: torch.nn.Module) -> Any:
        """The hook of a block."""
        forward = inspect.signature(type(block).forward)
        stream: list[int | None] = []  # Set at the first call: the outputs of a block always have the same order.

        def take(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            if self.calls and name not in self.calls[-1].pooled:
                streams = _streams(output)
                if not stream:
                    given = forward.bind_partial(module, *args, **kwargs).arguments
                    stream.append(_image_stream(given.get("hidden_states"), streams))
                if stream[0] is not None and stream[0] < len(streams):
                    self.calls[-1].pooled[name] = pooled(streams[stream[0]])

        return take

    def encoder(self, name: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """The hook of the text encoder with a name."""
        self.encoded.setdefault(name, []).append(_encoded(args, kwargs, output))


@contextlib.contextmanager
def recording(loaded: LoadedPipeline, blocks: Mapping[str, torch.nn.Module]) -> Iterator[Recorder]:
    """Install the hooks, and remove them at the end of the context."""
    recorder = Recorder(loaded.network)
    with contextlib.ExitStack() as hooks:
        hooks.callback(loaded.network.register_forward_pre_hook(recorder.begin, with_kwargs=True).remove)
        for name, block in blocks.items():
            hooks.callback(block.register_forward_hook(recorder.block(name, block), with_kwargs=True).remove)
        for name, part in loaded.pipe.components.items():
            if name.startswith(ENCODER) and callable(getattr(part, "register_forward_hook", None)):
                hook = functools.partial(recorder.encoder, name)
                hooks.callback(part.register_forward_hook(hook, with_kwargs=True).remove)
        yield recorder


def pooled(values: torch.Tensor) -> torch.Tensor:
    """The mean over space or tokens. Features are axis 1 of images and the last axis of sequences."""
    values, kept = values.detach().float(), 1 if values.ndim >= 4 else values.ndim - 1
    return values if values.ndim < 3 else values.mean(dim=[axis for axis in range(1, values.ndim) if axis != kept])


def _streams(output: Any) -> list[Any]:
    """The top-level outputs of a block. Nested outputs (skip connections of a U-Net) are not streams."""
    if isinstance(output, Mapping):
        output = list(output.values())
    return list(output) if isinstance(output, tuple | list) else [output]


def _image_stream(given: Any, streams: list[Any]) -> int | None:
    """The index of the image stream. Some blocks also return the text stream.

    The image stream has the shape of the input `hidden_states`. Of two such streams it is the one closer to the input,
    because blocks add to their streams.
    """
    real = [hasattr(stream, "is_floating_point") and stream.is_floating_point() for stream in streams]
    indices = [index for index, stream in enumerate(streams) if real[index] and stream.ndim > 1]
    if len(indices) > 1 and hasattr(given, "shape"):
        same_shape = [index for index in indices if streams[index].shape == given.shape]
        if len(same_shape) > 1:
            return min(same_shape, key=lambda index: float((streams[index] - given).float().norm()))
        indices = same_shape or indices
    return indices[0] if indices else None


def _encoded(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> torch.Tensor:
    """The mean output of a text encoder over tokens (without padding, if there is a mask), and its own summary."""
    import torch

    first = getattr(output, "last_hidden_state", None)
    hidden = next(tensor for tensor in _tensors(output) if tensor.ndim == 3) if first is None else first
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
    """All floating-point tensors in nested tuples, lists and mappings, in order."""
    if hasattr(value, "is_floating_point"):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        value = list(value.values())
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, tuple | list) else []


def find_blocks(network: torch.nn.Module, most: int = MOST_BLOCKS) -> dict[str, torch.nn.Module]:
    """The blocks of a U-Net (down, mid and up) or of a transformer (lists of blocks), in the computation's order."""
    from torch import nn

    parts = dict(network.named_children())
    if "down_blocks" in parts and "up_blocks" in parts:
        parts = {name: parts[name] for name in ("down_blocks", "mid_block", "up_blocks") if name in parts}
    else:
        lists = {name: part for name, part in parts.items() if isinstance(part, nn.ModuleList)}
        parts = {name: part for name, part in lists.items() if all(any(block.children()) for block in part)}
    blocks: dict[str, nn.Module] = {}
    for name, part in parts.items():
        listed = isinstance(part, nn.ModuleList)
        blocks |= {f"{name}.{index}": block for index, block in enumerate(part)} if listed else {name: part}
    if not blocks:
        raise BadInput(
            f"{type(network).__name__} has no blocks: neither down, mid and up blocks nor a list of blocks.",
            fix="give a pipeline with a U-Net or a transformer made of blocks",
        )
    return {name: blocks[name] for name in evenly(list(blocks), most)}


STEPS = 2


@dataclasses.dataclass(frozen=True)
class Conditioning:
    """Which part of a call contains the prompt. Under guidance, a step has rows with and without it, in one call or two."""

    call: int = 0
    """The call of a step that contains the prompt."""
    chunk: int = 0
    """The part of its rows that contains the prompt."""
    chunks: int = 1
    """The number of parts."""
    encoders: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """The call and the row of each text encoder that contain the prompt."""
    still: frozenset[str] = frozenset()
    """Blocks that do not depend on the noise: they see only the text."""
    note: str = ""

    def rows(self, step: list[Call], images: int) -> tuple[Call, slice]:
        """The call of a step that contains the prompt, and its rows."""
        call = step[min(self.call, len(step) - 1)]
        chunks = max(1, call.rows // images)
        # Guidance may be off for some steps. Then all rows contain the prompt.
        chunk = self.chunk if chunks == self.chunks else chunks - 1
        return call, slice(chunk * images, (chunk + 1) * images)


def find_conditioning(recorder: Recorder, prompts: tuple[str, str], call: Any) -> Conditioning:
    """Compare two prompts with the same noise. Inputs that differ at the first step contain the prompt.

    The first prompt with other noise then shows which blocks see the image. `call(prompt, steps, seed)` generates one.
    """
    seen = []
    recorder.keep_inputs = True
    try:
        for prompt, seed in ((prompts[0], 1), (prompts[1], 1), (prompts[0], 2)):
            recorder.forget()
            call(prompt, STEPS, seed)
            seen.append((recorder.steps()[0], recorder.encoded))
    finally:
        recorder.keep_inputs = False
    (first, encoded), (second, other), (noise, _) = seen
    still = _still(first, noise)
    note = f"Left out, because they see only the text: {', '.join(sorted(still))}." if still else ""
    encoders = {}
    for name in encoded:
        both = enumerate(zip(encoded[name], other.get(name, []), strict=False))
        if different := [(index, row) for index, (a, b) in both for row in _differing(a, b)]:
            encoders[name] = different[0]
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        rows = sorted({row for x, y in zip(a.inputs, b.inputs, strict=False) for row in _changed(x, y, a.rows)})
        if rows:
            return Conditioning(index, rows[0], a.rows, encoders, still, note)
    if len(first) > 1 or first[0].rows > 1:
        raise BadInput(
            "The network gets the same input for two prompts, so the rows with the prompt cannot be found.",
            fix="switch guidance off with --guidance 1 (for some pipelines 0): then all rows contain the prompt",
        )
    note = f"The network got the same input for two prompts; its only part was used. {note}".strip()
    return Conditioning(0, 0, 1, encoders, still, note)


def _still(first: list[Call], second: list[Call]) -> frozenset[str]:
    """Blocks with the same output for two noises, at the first step. Raise `BadInput` if all are."""
    same: dict[str, bool] = {}
    for a, b in zip(first, second, strict=False):
        for name in a.pooled.keys() & b.pooled.keys():
            same[name] = same.get(name, True) and a.pooled[name].equal(b.pooled[name])
    if same and all(same.values()):
        raise BadInput(
            "No block of the network changes with the noise: none of them sees the image.",
            fix="give a pipeline whose U-Net or transformer is made of blocks",
        )
    return frozenset(name for name, still in same.items() if still)


def _changed(first: Any, second: Any, rows: int) -> list[int]:
    """The rows of a call in which an input differs."""
    if first.ndim < 2:
        return []
    if first.shape != second.shape:
        # Prompts of different lengths, in separate calls.
        if rows == 1:
            return [0]
        # Rows that share a call are padded to first length. Those without the prompt still have the same beginning.
        if not len(first) == len(second) == rows or first.shape[2:] != second.shape[2:]:
            return []
        length = min(first.shape[1], second.shape[1])
        different = _differing(first[:, :length], second[:, :length])
        return different if len(different) < rows else []
    return _differing(first, second) if len(first) == rows else []


def _differing(first: Any, second: Any) -> list[int]:
    if first.shape != second.shape:
        return list(range(min(len(first), len(second))))
    return (first != second).flatten(1).any(dim=1).nonzero().flatten().tolist()
