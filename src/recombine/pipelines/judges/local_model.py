"""Judges that are local models of transformers: safetensors only, no code from the folder, no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from recombine.errors import BadInput
from recombine.pipelines.judges.base import ImageToJudge, Judge, Judgement, from_scores
from recombine.pipelines.loading import UNSAFE, check_adapter, chosen_device, fingerprint, placing, require_diffusers

ASK = "{question} Answer with yes or no only."
YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


class LocalJudge(Judge):
    """A model in a local folder. It is loaded before the first image."""

    kind: ClassVar[str]
    """The kind in its name."""
    classes: ClassVar[tuple[str, ...]]
    """Classes of transformers that may accept the model; the first that does is used."""
    _model: Any

    def __init__(self, folder: str, *, device: str = "auto", **other: Any) -> None:
        self.name = f"{self.kind}:{Path(folder).name}"
        self._folder, self._wanted, self._model = Path(folder), device, None
        check_judge(self._folder)
        self.version = fingerprint(self._folder)

    def prepare(self) -> None:
        if self._model is None:
            self._model, self._processor, self._device = load_judge(self._folder, self.classes, self._wanted)


class ClipJudge(LocalJudge):
    """A concept is shown if the prompt fits the image better than every prompt with another concept in its place."""

    uses_alternatives = True
    kind, classes = "clip", ("AutoModel",)

    def assess(self, image: ImageToJudge) -> Judgement:
        import torch

        texts = [image.questions[0].prompt if image.questions else image.text]
        texts += [text for question in image.questions for text in question.alternatives]
        inputs = self._processor(
            text=texts, images=image.load(), return_tensors="pt", padding="max_length", truncation=True
        )
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._device)).logits_per_image[0].float().cpu()
        others = logits[1:].split([len(question.alternatives) for question in image.questions])
        # The difference to the best alternative: positive if the concept is shown, whatever their number.
        return from_scores([float(torch.sigmoid(logits[0] - each.max())) if len(each) else None for each in others])


def yes_or_no(text: str) -> float | None:
    """The first yes (1) or no (0) in an answer; None if there is neither."""
    match = YES_NO.search(text)
    return None if match is None else float(match[1].lower() == "yes")


class VqaJudge(LocalJudge):
    """Models with a fixed list of answers (ViLT), and generative models (BLIP; chat models such as LLaVA and Qwen-VL)."""

    kind, classes = "vqa", ("AutoModelForVisualQuestionAnswering", "AutoModelForImageTextToText")

    def prepare(self) -> None:
        super().prepare()
        names = getattr(self._model.config, "id2label", None) or {}
        self._answers = {str(name).lower(): int(number) for number, name in names.items()}

    def assess(self, image: ImageToJudge) -> Judgement:
        picture = image.load()
        scores, errors = [], []
        for question in image.questions:
            score, text = self._ask(picture, question.text)
            scores.append(score)
            errors += [] if score is not None else [f"neither yes nor no: {text[:100]!r}"]
        return from_scores(scores, "; ".join(errors))

    def _ask(self, image: Any, question: str) -> tuple[float | None, str]:
        import torch

        with torch.inference_mode():
            if {"yes", "no"} <= set(self._answers) and not hasattr(self._model, "lm_head"):
                inputs = self._processor(images=image, text=question, return_tensors="pt", truncation=True)
                logits = self._model(**inputs.to(self._device)).logits[0].float()
                return float(torch.sigmoid(logits[self._answers["yes"]] - logits[self._answers["no"]])), ""
            inputs, start = self._generation_inputs(image, question)
            out = self._model.generate(**inputs.to(self._device), max_new_tokens=8, do_sample=False)
        text = self._processor.batch_decode(out[:, start:], skip_special_tokens=True)[0]
        return yes_or_no(text), text

    def _generation_inputs(self, image: Any, question: str) -> tuple[Any, int]:
        """The input of a generative model, and the position at which the answer starts in its output."""
        if getattr(self._processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": ASK.format(question=question)}]
            chat = [{"role": "user", "content": content}]
            text = self._processor.apply_chat_template(chat, add_generation_prompt=True)
            inputs = self._processor(images=image, text=text, return_tensors="pt")
            return inputs, inputs["input_ids"].shape[1]
        return self._processor(images=image, text=question, return_tensors="pt"), 0


def check_judge(folder: Path) -> None:
    """Raise `BadInput` if the folder contains no model that can be loaded safely. Loads nothing."""
    if not (folder / "config.json").is_file():
        raise BadInput(
            f"{folder} contains no model of transformers: there is no config.json.",
            fix="give the folder that `hf download` or model.save_pretrained(FOLDER) made",
        )
    if not list(folder.glob("*.safetensors")):
        unsafe = sorted(path.name for path in folder.glob("*") if path.suffix in UNSAFE)
        raise BadInput(
            f"The model in {folder} has no safetensors" + (f", only {unsafe[0]}." if unsafe else "."),
            fix="download its safetensors, or save it again with model.save_pretrained(FOLDER)",
        )
    check_adapter(folder, f"The judge in {folder}")


def load_judge(folder: Path, classes: tuple[str, ...], device: str) -> tuple[Any, Any, str]:
    """The model (of the first class that accepts it), its processor and the device."""
    torch, _, transformers = require_diffusers()
    device = chosen_device(torch, device)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), **options)
        kinds = [getattr(transformers, name) for name in classes if hasattr(transformers, name)]
        # A class lists the configurations that it accepts. The last class may accept others.
        kind = next((each for each in kinds if type(config) in each._model_mapping), kinds[-1])
        model = kind.from_pretrained(str(folder), use_safetensors=True, **options)
        processor = transformers.AutoProcessor.from_pretrained(str(folder), **options)
    except Exception as error:
        raise BadInput(
            f"The judge in {folder} cannot be loaded: {type(error).__name__}: {str(error)[:300]}",
            fix="the folder needs the model and its processor (tokenizer and image processor)",
        ) from error
    with placing(f"The judge in {folder}", device, "a smaller model, or --device cpu"):
        model = model.to(device).eval()
    return model, processor, device
