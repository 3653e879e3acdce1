"""Models of transformers: a pipeline, a model with its tokenizer, or a local folder that has both."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from recombine.audit.asking.torch_hooks import Pool, evaluating, recording, require_torch
from recombine.errors import BadInput, MissingPackage

TASKS = {
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
}
"""The task of a model, by the end of its architecture's name."""
SETTINGS = {"text-generation": {"return_full_text": False, "do_sample": False, "max_new_tokens": 32}}
"""How a model that is no pipeline is asked: the most probable continuation, without the prompt."""
AGAIN = re.compile(r" \(\d+\)$")
"""A layer that ran again in the same call: when a later token was generated."""


def is_hugging_face(model: Any) -> bool:
    """Whether a model is a pipeline of transformers, a pair of model and tokenizer, or a folder."""
    if isinstance(model, str | os.PathLike):
        return True
    if isinstance(model, tuple) and len(model) == 2 and hasattr(model[1], "decode") and callable(model[1]):
        return True
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(model, transformers.Pipeline)


@contextlib.contextmanager
def prepared_pipeline(
    model: Any, layers: Sequence[str] | None, pool: Pool
) -> Iterator[Callable[[list[Any]], tuple[list[Any], dict[str, Any]]]]:
    """A call of the pipeline on several inputs, while the context lasts.

    Activations are those of the first pass, in which the model reads the input: means over the tokens that are no
    padding. The output is what the pipeline returns for one input; a list of a single item is that item.
    """
    pipe = _pipeline(model)
    network, mask = pipe.model, list[Any]()

    def before(module: Any, positional: Any, named: dict[str, Any]) -> None:
        if not mask:
            mask.append(named.get("attention_mask"))

    def pooled(name: str, values: Any) -> Any:
        real = mask[0] if mask else None
        if callable(pool):
            return pool(name, values)
        if values.ndim != 3 or real is None or tuple(values.shape[:2]) != tuple(real.shape):
            return values if values.ndim < 3 else values.float().mean(dim=tuple(range(1, values.ndim - 1)))
        weight = real.to(values.device).float()
        return (values.float() * weight[:, :, None]).sum(dim=1) / weight.sum(dim=1, keepdim=True).clamp(min=1)

    with evaluating(network), recording(network, layers, pool="none" if pool == "none" else pooled) as recorder:
        handle = network.register_forward_pre_hook(before, with_kwargs=True)
        try:

            def call(inputs: list[Any]) -> tuple[list[Any], dict[str, Any]]:
                recorder.forget()
                mask.clear()
                outputs = pipe(list(inputs), batch_size=len(inputs))
                rows = {name: values for name, values in recorder.rows(len(inputs)).items() if not AGAIN.search(name)}
                return [
                    output[0] if isinstance(output, list) and len(output) == 1 else output for output in outputs
                ], rows

            yield call
        finally:
            handle.remove()


def _pipeline(model: Any) -> Any:
    """The model as a pipeline. A folder is read without network, and nothing in it is run or unpickled."""
    require_torch()
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise MissingPackage("transformers is not installed.", fix="pip install transformers") from None
    if isinstance(model, transformers.Pipeline):
        return model
    if isinstance(model, str | os.PathLike):
        model = _loaded(transformers, Path(model))
    network, tokenizer = model
    task = _task([type(network).__name__])
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if task == "text-generation":
        tokenizer.padding_side = "left"
    made = transformers.pipeline(task, model=network, tokenizer=tokenizer, device=network.device)
    if task == "text-generation":
        return _Asked(made, SETTINGS[task])
    return made


class _Asked:
    """A pipeline that is always called with the same settings."""

    def __init__(self, pipe: Any, settings: dict[str, Any]) -> None:
        self.model, self._pipe, self._settings = pipe.model, pipe, settings

    def __call__(self, inputs: list[Any], batch_size: int) -> Any:
        return self._pipe(inputs, batch_size=batch_size, **self._settings)


def _loaded(transformers: Any, folder: Path) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BadInput(
            f"{folder} is not the folder of a model: it has no config.json that can be read.",
            fix="give a local folder as save_pretrained writes it; recombine downloads nothing",
        ) from None
    task = _task(config.get("architectures") or [])
    kind = {"text-generation": "AutoModelForCausalLM", "text-classification": "AutoModelForSequenceClassification"}
    name = kind.get(task, "AutoModelForTokenClassification")
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        network = getattr(transformers, name).from_pretrained(str(folder), use_safetensors=True, **options)
        return network, transformers.AutoTokenizer.from_pretrained(str(folder), **options)
    except (OSError, ValueError, ImportError, KeyError) as error:
        first = str(error).strip().split("\n")[0][:200]
        raise BadInput(
            f"The model in {folder} cannot be loaded: {first}.",
            fix="save it with safetensors, and its tokenizer beside it",
        ) from None


def _task(architectures: Sequence[str]) -> str:
    for architecture in architectures:
        for end, task in TASKS.items():
            if architecture.endswith(end):
                return task
    named = ", ".join(architectures) or "no architecture"
    raise BadInput(
        f"How to ask a model of {named} is not known.", fix="make a pipeline of transformers for it, and give that"
    )
