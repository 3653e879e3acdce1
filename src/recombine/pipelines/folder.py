"""The folder of an audit of images: a folder a prompt, whole or not there, and what judges said."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.errors import BadInput, StoreError
from recombine.store.files import (
    check_writable,
    explained,
    new_folder,
    read_record,
    reclaim,
    sealed,
    write_json,
)

SETTINGS = "images.json"
MANIFEST = "manifest.json"
ACTIVATIONS = "activations.safetensors"
TEXT = "text:"
"""Before the names of text encoders."""
AT = "@"
"""Between the name of a block and the point of the schedule."""


class Folder:
    """What was made so far. A prompt counts when its folder is there; it is written elsewhere and then renamed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Makes the folder; BadInput if it holds images of other settings. Without images, settings may change."""
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            check_writable(self.path)
            reclaim(self.path)
        place = self.path / SETTINGS
        if place.is_file():
            held = read_record(place)
            other = [name for name, value in settings.items() if held.get(name) != value]
            if other and not any((self.path / "prompts").glob(f"*/{MANIFEST}")):
                with explained(self.path):
                    write_json(place, sealed(held | dict(settings)))
            elif other:
                told = ", ".join(f"{name} {held.get(name)!r} (now {settings[name]!r})" for name in other)
                raise BadInput(
                    f"{self.path} holds images that were made with other settings: {told}.",
                    fix="give the same settings to go on, or another folder with --out",
                )
            return
        if any(one.name != "temporary" for one in self.path.iterdir()):
            raise BadInput(
                f"{self.path} is not empty and holds no audit of images.", fix="name a new folder with --out"
            )
        with explained(self.path):
            write_json(place, sealed(dict(settings)))

    def settings(self) -> dict[str, Any]:
        """How the images were made."""
        return read_record(self.path / SETTINGS)

    def has(self, prompt: str) -> bool:
        """Whether a prompt's images are there."""
        return (self.path / "prompts" / prompt / MANIFEST).is_file()

    def write(
        self,
        prompt: str,
        record: Mapping[str, Any],
        images: Sequence[Any],
        arrays: Mapping[str, Float[np.ndarray, "image _"]],
    ) -> None:
        """The images of a prompt (of pillow) with what the pipeline had inside."""
        from safetensors.numpy import save_file

        with (
            explained(self.path),
            new_folder(self.path / "temporary", self.path / "prompts" / prompt) as made,
        ):
            for number, image in enumerate(images):
                image.save(made / f"{number}.png")
            save_file({name: np.ascontiguousarray(one) for name, one in arrays.items()}, made / ACTIVATIONS)
            write_json(made / MANIFEST, sealed(dict(record)))

    def manifest(self, prompt: str) -> dict[str, Any]:
        """What is known of a prompt's images."""
        return read_record(self.path / "prompts" / prompt / MANIFEST)

    def image(self, prompt: str, number: int) -> Path:
        """The file of an image."""
        return self.path / "prompts" / prompt / f"{number}.png"

    def arrays(self, prompts: Sequence[str], name: str) -> list[Float[np.ndarray, "image _"]]:
        """One array of several prompts."""
        from safetensors import SafetensorError, safe_open

        found = []
        for prompt in prompts:
            place = self.path / "prompts" / prompt / ACTIVATIONS
            try:
                with safe_open(str(place), framework="numpy") as file:
                    found.append(file.get_tensor(name))
            except (SafetensorError, OSError) as error:
                raise StoreError(
                    f"{place} cannot be read: {error}.",
                    fix="delete the folder of the prompt and run the same command again",
                ) from error
        return found

    def names(self, prompt: str) -> tuple[str, ...]:
        """The arrays of a prompt, in the order of the computation."""
        return tuple(self.manifest(prompt)["arrays"])


class Judgements:
    """What one judge said, a line of JSON an image; a line that was cut off does not count."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The last word on each image."""
        return {(one["prompt"], one["image"]): one for one in self._lines()}

    def add(self, record: Mapping[str, Any]) -> None:
        """Writes a line, to the disk."""
        with explained(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            cut = self._cut()
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(("\n" if cut else "") + json.dumps(dict(record), allow_nan=False) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def _cut(self) -> bool:
        """Whether the last line has no end."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return False
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and {"prompt", "image"} <= set(record):
                yield record
