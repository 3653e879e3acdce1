"""The folder of an audit of images: one complete folder per prompt, and the judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.endpoints.answer_cache import JsonLines, changed_settings
from recombine.errors import BadInput, StoreError
from recombine.store.files import check_writable, explained, new_folder, read_record, reclaim, sealed, write_json

SETTINGS = "images.json"
MANIFEST = "manifest.json"
ACTIVATIONS = "activations.safetensors"
TEXT = "text:"
"""Prefix of the names of text encoders."""
AT = "@"
"""Separates the name of a block from the point of the schedule."""


class ImageFolder:
    """The images so far. A prompt is done when its folder exists: folders are written elsewhere, then renamed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Create the folder. Raise `BadInput` if it contains images with other settings."""
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            check_writable(self.path)
            reclaim(self.path)
        stored = self.path / SETTINGS
        if stored.is_file():
            before = read_record(stored)
            changed = changed_settings(before, settings)
            if not changed:
                return
            if any((self.path / "prompts").glob(f"*/{MANIFEST}")):
                raise BadInput(
                    f"{self.path} contains images with other settings: {changed}.",
                    fix="use the same settings to continue, or another folder with --out",
                )
            settings = before | dict(settings)
        elif any(entry.name != "temporary" for entry in self.path.iterdir()):
            raise BadInput(
                f"{self.path} is not empty and contains no audit of images.", fix="name a new folder with --out"
            )
        with explained(self.path):
            write_json(stored, sealed(dict(settings)))

    def settings(self) -> dict[str, Any]:
        """The settings of the images."""
        return read_record(self.path / SETTINGS)

    def has(self, prompt: str) -> bool:
        """The images of a prompt exist."""
        return (self.path / "prompts" / prompt / MANIFEST).is_file()

    def write(
        self, prompt: str, record: Mapping[str, Any], images: Sequence[Any], arrays: Mapping[str, np.ndarray]
    ) -> None:
        """Write the images of a prompt (Pillow images) with the activations of the pipeline."""
        from safetensors.numpy import save_file

        with explained(self.path), new_folder(self.path / "temporary", self.path / "prompts" / prompt) as new:
            for number, image in enumerate(images):
                image.save(new / f"{number}.png")
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, new / ACTIVATIONS)
            write_json(new / MANIFEST, sealed(dict(record)))

    def manifest(self, prompt: str) -> dict[str, Any]:
        """The record of the images of a prompt."""
        return read_record(self.path / "prompts" / prompt / MANIFEST)

    def image(self, prompt: str, number: int) -> Path:
        """The file of an image."""
        return self.path / "prompts" / prompt / f"{number}.png"

    def arrays(self, prompts: Sequence[str], name: str) -> list[Float[np.ndarray, "image _"]]:
        """One array of each prompt."""
        from safetensors import SafetensorError, safe_open

        arrays = []
        for prompt in prompts:
            path = self.path / "prompts" / prompt / ACTIVATIONS
            try:
                with safe_open(str(path), framework="numpy") as file:
                    arrays.append(file.get_tensor(name))
            except (SafetensorError, OSError) as error:
                raise StoreError(
                    f"{path} cannot be read: {error}.",
                    fix="delete the folder of the prompt and run the same command again",
                ) from error
        return arrays


class JudgementLog(JsonLines):
    """The judgements of one judge: one line of JSON per image."""

    def read(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The last judgement of each image, by prompt and number."""
        complete = (record for record in self if {"prompt", "image"} <= set(record))
        return {(record["prompt"], record["image"]): record for record in complete}
