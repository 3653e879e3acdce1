"""Where the prompt is in a pipeline's calls, found by asking for two images and comparing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from recombine.errors import BadInput

if TYPE_CHECKING:
    from recombine.pipelines.recording import Call, Recorder

STEPS = 2


@dataclasses.dataclass(frozen=True)
class Conditioning:
    """Under guidance a step has an image with the prompt and one without: in one call, or in two."""

    call: int = 0
    """Which call of a step has the prompt."""
    chunk: int = 0
    """Which part of its rows."""
    chunks: int = 1
    """Into how many parts the rows fall."""
    encoders: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Of each text encoder, which call and which row have the prompt."""
    still: frozenset[str] = frozenset()
    """Blocks that do not change with the noise: they see the text alone."""
    note: str = ""

    def rows(self, step: list[Call], images: int) -> tuple[Call, slice]:
        """The call of a step that has the prompt, and its rows."""
        call = step[min(self.call, len(step) - 1)]
        chunks = max(1, call.rows // images)
        # Guidance may be switched off for some steps: then there is only the prompt.
        chunk = self.chunk if chunks == self.chunks else chunks - 1
        return call, slice(chunk * images, (chunk + 1) * images)


def find_conditioning(recorder: Recorder, prompts: tuple[str, str], call: Any) -> Conditioning:
    """Two prompts from one noise, a step or two each: what differs at the first step is what has the prompt.

    The first prompt from another noise then shows which blocks see the picture. `call(prompt, steps, seed)` asks the
    pipeline for one image.
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
        recorder.forget()
    (first, encoded), (second, other), (noise, _) = seen
    still = _still(first, noise)
    note = f"Left out, as they see the text alone: {', '.join(sorted(still))}." if still else ""
    encoders = {}
    for name in encoded:
        both = list(zip(encoded[name], other.get(name, []), strict=False))
        found = [(place, row) for place, (a, b) in enumerate(both) for row in _differing(a, b)]
        if found:
            encoders[name] = found[0]
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        rows = sorted(
            {row for x, y in zip(a.inputs, b.inputs, strict=False) for row in _changed(x, y, a.rows)}
        )
        if rows:
            return Conditioning(place, rows[0], a.rows, encoders, still, note)
    if len(first) > 1 or first[0].rows > 1:
        raise BadInput(
            "The network is given the same for two prompts, so which of its parts has the prompt cannot be told.",
            fix="switch guidance off with --guidance 1 (or 0, as the pipeline has it): then there is one part only",
        )
    note = f"The network was given the same for two prompts; its only part was taken. {note}".strip()
    return Conditioning(0, 0, 1, encoders, still, note)


def _still(one: list[Call], other: list[Call]) -> frozenset[str]:
    """Blocks that give out the same from two noises, at the first step. BadInput if all do."""
    same: dict[str, bool] = {}
    for a, b in zip(one, other, strict=False):
        for name in a.pooled.keys() & b.pooled.keys():
            x, y = a.pooled[name], b.pooled[name]
            same[name] = same.get(name, True) and x.shape == y.shape and bool((x == y).all())
    if same and all(same.values()):
        raise BadInput(
            "No block of the network changes with the noise: none of them sees the picture.",
            fix="give a pipeline whose U-Net or transformer is made of blocks",
        )
    return frozenset(name for name, still in same.items() if still)


def _changed(one: Any, other: Any, rows: int) -> list[int]:
    """The rows of a call in which an input differs."""
    if one.shape != other.shape:
        # Prompts of different lengths, in a call of their own.
        if one.ndim < 2 or rows == 1:
            return [0] if one.ndim > 1 else []
        # Where rows share a call, they are filled up to one length: those without the prompt begin alike all the same.
        if not len(one) == len(other) == rows or one.shape[2:] != other.shape[2:]:
            return []
        length = min(one.shape[1], other.shape[1])
        found = _differing(one[:, :length], other[:, :length])
        return found if len(found) < rows else []
    return _differing(one, other) if one.ndim > 1 and len(one) == rows else []


def _differing(one: Any, other: Any) -> list[int]:
    if one.shape != other.shape:
        return list(range(min(len(one), len(other))))
    return (one != other).flatten(1).any(dim=1).nonzero().flatten().tolist()
