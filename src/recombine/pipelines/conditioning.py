"""Where the prompt is in a pipeline's calls, found by asking for two images and comparing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

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

    `call(prompt, steps)` asks the pipeline for one image.
    """
    seen = []
    recorder.keep_inputs = True
    try:
        for prompt in prompts:
            recorder.forget()
            call(prompt, STEPS)
            seen.append((recorder.steps()[0], recorder.encoded))
    finally:
        recorder.keep_inputs = False
        recorder.forget()
    (first, encoded), (second, other) = seen
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
            return Conditioning(place, rows[0], a.rows, encoders)
    chunks = first[0].rows
    note = "Where the prompt enters the network could not be found; the last part of each call was taken to have it."
    return Conditioning(0, chunks - 1, max(1, chunks), encoders, note)


def _changed(one: Any, other: Any, rows: int) -> list[int]:
    """The rows of a call in which an input differs."""
    if one.shape != other.shape:
        # Prompts of different lengths, in a call of their own. Where rows share a call, the lengths tell nothing.
        return [0] if one.ndim > 1 and rows == 1 else []
    return _differing(one, other) if one.ndim > 1 and len(one) == rows else []


def _differing(one: Any, other: Any) -> list[int]:
    if one.shape != other.shape:
        return list(range(min(len(one), len(other))))
    return (one != other).flatten(1).any(dim=1).nonzero().flatten().tolist()
