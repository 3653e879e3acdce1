"""A model of transformers from a local folder, for judges: safetensors only, no code from the folder, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recombine.errors import BadInput
from recombine.pipelines.loading import UNSAFE, check_adapter, chosen_device, placing, require_diffusers


def check_judge(folder: Path) -> None:
    """BadInput if the folder holds no model that can be loaded safely; nothing is loaded yet."""
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"{folder} holds no model of transformers: there is no config.json.",
            fix="give the folder that `hf download` or model.save_pretrained(FOLDER) made",
        )
    if not list(folder.glob("*.safetensors")):
        unsafe = sorted(one.name for one in folder.glob("*") if one.suffix in UNSAFE)
        raise BadInput(
            f"The model in {folder} has no safetensors" + (f", only {unsafe[0]}." if unsafe else "."),
            fix="download its safetensors, or save it anew with model.save_pretrained(FOLDER)",
        )
    check_adapter(folder, f"The judge in {folder}")


def load_judge(folder: str | Path, classes: tuple[str, ...], device: str) -> tuple[Any, Any, str]:
    """The model (of the first class that takes it), its processor and the device."""
    folder = Path(folder)
    check_judge(folder)
    torch, _, transformers = require_diffusers()
    device = chosen_device(torch, device)
    given: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), **given)
        kinds = [getattr(transformers, name) for name in classes if hasattr(transformers, name)]
        # A class knows which configurations it takes; the last one may know by other means.
        kind = next((one for one in kinds if type(config) in one._model_mapping), kinds[-1])
        model = kind.from_pretrained(str(folder), use_safetensors=True, **given)
        processor = transformers.AutoProcessor.from_pretrained(str(folder), **given)
    except Exception as error:
        raise BadInput(
            f"The judge in {folder} cannot be loaded: {type(error).__name__}: {str(error)[:300]}",
            fix="the folder needs the model and its processor (tokenizer and image processor)",
        ) from error
    with placing(f"The judge in {folder}", device, "a smaller model, or --device cpu"):
        model = model.to(device).eval()
    return model, processor, device
