"""Loads a text-to-image pipeline from a local folder: safetensors only, no code from the folder, no network."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import importlib
import inspect
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recombine.errors import BadInput, MissingPackage

INDEX = "model_index.json"
UNSAFE = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".msgpack", ".h5")
"""Suffixes of weights that are pickled, or that PyTorch does not read."""
LIBRARIES = ("diffusers", "transformers")
ONLY_THESE = f"use components of {' and '.join(LIBRARIES)}"
PRECISIONS = ("auto", "float32", "float16", "bfloat16")
DENOISERS = ("unet", "transformer")
"""Names of the networks that are called at every step."""
LARGEST_HEADER = 1 << 24
"""Most bytes of a header of weights that are read."""
SAMPLES, SAMPLE = 32, 1 << 16
"""Number and size of the samples of a weights file: they distinguish pipelines of the same architecture."""
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclasses.dataclass(frozen=True)
class LoadedPipeline:
    """A pipeline that is ready to be called."""

    pipe: Any
    network: Any
    """The network that is called at every step."""
    parameters: tuple[str, ...]
    """The parameters of the pipeline's call."""
    precision: str


def require_diffusers() -> tuple[Any, Any, Any]:
    """Import PyTorch, diffusers and transformers in offline mode. Raise `MissingPackage` if they are not installed."""
    os.environ.update(dict.fromkeys(OFFLINE, "1"))  # They are read on import.
    try:
        modules = tuple(importlib.import_module(name) for name in ("torch", "diffusers", "transformers"))
    except ImportError as error:
        raise MissingPackage(
            f"Pipelines need the extra `diffusers`: {error}.",
            fix="pip install 'recombine[diffusers]'; on a CPU install PyTorch's CPU build first (the default wheels "
            "contain gigabytes for accelerators)",
        ) from None
    torch, diffusers, transformers = modules
    for library in (diffusers, transformers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    return torch, diffusers, transformers


def load_pipeline(
    folder: str | Path, *, device: str = "auto", precision: str = "auto", offload: bool = False
) -> LoadedPipeline:
    """Load a pipeline. Raise `BadInput` before loading anything if the folder is no pipeline or is not safe.

    Args:
        folder: The folder that `pipe.save_pretrained` or `hf download` made.
        device: cpu, cuda, mps, or auto.
        precision: float32, float16, bfloat16, or auto.
        offload: Keep parts of the pipeline in main memory while they are not used.

    Returns:
        The pipeline on its device.
    """
    folder = Path(folder)
    index = check_folder(folder)
    torch, diffusers, _ = require_diffusers()
    for name, library in components(index).items():
        # Some components belong to a pipeline module of diffusers. Any other module could be imported from anywhere.
        if library not in (*LIBRARIES, None) and not hasattr(diffusers.pipelines, str(library)):
            raise BadInput(f"The component {name} in {folder} is of {library!r}, which is not loaded.", fix=ONLY_THESE)
    denoiser = next((name for name in DENOISERS if components(index).get(name)), None)
    if denoiser is None:
        raise BadInput(
            f"{index['_class_name']} in {folder} has neither a U-Net nor a transformer: its blocks cannot be found.",
            fix=f"give a pipeline with a component called {' or '.join(DENOISERS)}",
        )
    device = chosen_device(torch, device)
    if offload and device == "cpu":
        raise BadInput("--offload needs an accelerator, and there is none.", fix="leave --offload out")
    precision = chosen_precision(precision, device, denoiser)
    pipe = _loaded(folder, index, diffusers, getattr(torch, precision))
    parameters = _parameters(pipe)
    pipe.set_progress_bar_config(disable=True)
    with placing(f"The pipeline in {folder}", device, "a smaller --precision, --offload, or --device cpu"):
        if offload:
            pipe.enable_model_cpu_offload(device=device)
        else:
            pipe.to(device)
    return LoadedPipeline(pipe, getattr(pipe, denoiser), parameters, precision)


@contextlib.contextmanager
def placing(what: str, device: str, fix: str) -> Iterator[None]:
    """Raise `BadInput` if something does not fit on a device, usually because of its memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise BadInput(f"{what} does not fit on {device}: {_first_line(error)}", fix=fix) from error


def free_memory() -> None:
    """Free the memory of pipelines that are no longer used."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _loaded(folder: Path, index: dict[str, Any], diffusers: Any, precision: Any) -> Any:
    try:
        with warnings.catch_warnings():
            # Newer versions prefer another name for the precision, which older ones do not know.
            warnings.simplefilter("ignore", FutureWarning)
            return diffusers.DiffusionPipeline.from_pretrained(
                str(folder),
                # Components that are left out on purpose must be named.
                **{name: None for name, library in components(index).items() if library is None},
                **({"variant": "fp16"} if _only_variant(folder, index) else {}),
                torch_dtype=precision,
                local_files_only=True,
                use_safetensors=True,
            )
    except Exception as error:
        raise BadInput(
            f"The pipeline in {folder} cannot be loaded: {_first_line(error)}",
            fix="load it with diffusers' DiffusionPipeline.from_pretrained, and save it again with save_pretrained",
        ) from error


def _parameters(pipe: Any) -> tuple[str, ...]:
    """The parameters of its call. Raise `BadInput` if it does not make images from text alone."""
    parameters = inspect.signature(type(pipe).__call__).parameters
    required = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    needed = ", ".join(name for name in required if name not in ("self", "prompt"))
    if "prompt" not in parameters or needed:
        why = f"does not make images from text alone: it {f'needs {needed}' if needed else 'takes no prompt'}"
        raise BadInput(f"{type(pipe).__name__} {why}.", fix="give a text-to-image pipeline")
    return tuple(parameters)


def components(index: dict[str, Any]) -> dict[str, str | None]:
    """The library of each component; None if the component is left out."""
    return {
        name: value[0]
        for name, value in index.items()
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | None)
    }


def check_folder(folder: Path) -> dict[str, Any]:
    """The index of a pipeline folder. Raise `BadInput` if it is no pipeline, or would run code when loaded."""
    if not (folder / INDEX).is_file():
        what = "is not a folder" if not folder.is_dir() else f"has no {INDEX}"
        raise BadInput(
            f"{folder} {what}: expected a pipeline that diffusers saved.",
            fix="give the folder into which pipe.save_pretrained(FOLDER) wrote it, or that `hf download` made",
        )
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder / INDEX} cannot be read: {error}.") from error
    if not isinstance(index, dict) or not index.get("_class_name"):
        raise BadInput(f"{folder / INDEX} names no pipeline.", fix="save the pipeline again")
    if not isinstance(index["_class_name"], str):
        raise BadInput(
            f"The pipeline in {folder} contains its own code, which is not run.",
            fix="use a pipeline that is part of diffusers",
        )
    for name, library in components(index).items():
        if library is not None:
            _check_component(folder, name, library)
    return index


def _check_component(folder: Path, name: str, library: str) -> None:
    files = [file for file in (folder / name).glob("*") if file.is_file()]
    if (folder / f"{library}.py").exists() or any(file.suffix == ".py" for file in files):
        raise BadInput(f"The component {name} in {folder} contains its own code, which is not run.", fix=ONLY_THESE)
    _check_records(folder / name, f"The component {name} in {folder}")
    unsafe = sorted(file.name for file in files if file.suffix in UNSAFE)
    if unsafe and not any(file.suffix == ".safetensors" for file in files):
        raise BadInput(
            f"The weights of {name} in {folder} are {unsafe[0]}, which may contain code: only safetensors are read.",
            fix="download the safetensors of the same pipeline; or, if you trust it, load it and save it with "
            "pipe.save_pretrained(FOLDER, safe_serialization=True)",
        )


def _check_records(folder: Path, what: str) -> None:
    """Raise `BadInput` if a JSON file refers to weights elsewhere, or to code."""
    check_adapter(folder, what)
    for path in sorted(folder.rglob("*.json")):
        try:
            text = path.read_text(encoding="utf-8")
            record = json.loads(text) if "auto_map" in text else {}
        except (OSError, ValueError) as error:
            raise BadInput(f"{path} cannot be read: {error}.", fix="download or save it again") from error
        if isinstance(record, dict) and record.get("auto_map"):
            raise BadInput(
                f"{what} refers to its own code in {path.name} (auto_map), which is not run.", fix=ONLY_THESE
            )


def check_adapter(folder: Path, what: str) -> None:
    """Raise `BadInput` if there is an adapter: its base model would be loaded from elsewhere."""
    if any(folder.rglob("adapter_config.json")):
        raise BadInput(
            f"{what} is an adapter (adapter_config.json), whose base model is elsewhere.",
            fix="merge the adapter into its base model, and save the result",
        )


def fingerprint(folder: Path) -> str:
    """A hash of a model folder: its text files, the headers of its weights, and samples of the weights.

    Reading all weights would take minutes.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".json", ".safetensors", ".txt", ".model") or not path.is_file():
            continue
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        with open(path, "rb") as file:
            if path.suffix != ".safetensors":
                digest.update(file.read())
                continue
            header = file.read(8)
            digest.update(header + file.read(min(int.from_bytes(header, "little"), LARGEST_HEADER)))
            for number in range(SAMPLES):
                file.seek(max(0, path.stat().st_size - SAMPLE) * number // (SAMPLES - 1))
                digest.update(file.read(SAMPLE))
    return digest.hexdigest()[:16]


def chosen_device(torch: Any, device: str) -> str:
    """The device. `auto` is an accelerator if PyTorch finds one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(
            f"The device {device!r} is not available: {_first_line(error)}", fix="--device cpu, or cuda, or mps"
        ) from error
    return device


def chosen_precision(precision: str, device: str, denoiser: str) -> str:
    """The precision. `auto` is 32 bits on a CPU; on accelerators, the usual 16 bits of the kind of network."""
    if precision not in PRECISIONS:
        raise BadInput(f"There is no precision {precision!r}.", fix=f"one of {', '.join(PRECISIONS)}")
    usual = "float32" if device == "cpu" else "float16" if denoiser == "unet" else "bfloat16"
    return usual if precision == "auto" else precision


def _only_variant(folder: Path, index: dict[str, Any]) -> bool:
    """The weights of some component exist in half precision only."""
    weights = ([file.name for file in (folder / name).glob("*.safetensors")] for name in index)
    return any(files and all(".fp16." in file for file in files) for files in weights)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300] if lines else 'no message'}"
