"""A judge that answers questions about images: a local model of transformers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from recombine.pipelines.judge import Answer, Judge, Shown, from_scores
from recombine.pipelines.judge_loading import check_judge, load_judge
from recombine.pipelines.loading import fingerprint

CLASSES = ("AutoModelForVisualQuestionAnswering", "AutoModelForImageTextToText")
ASK = "{question} Answer with yes or no only."
YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


def yes_or_no(text: str) -> float | None:
    """What an answer says: its first yes or no; None where there is neither."""
    found = YES_NO.search(text)
    return None if found is None else float(found[1].lower() == "yes")


class VqaJudge(Judge):
    """Models with a fixed list of answers (ViLT), and models that write (BLIP, and those that chat: LLaVA, Qwen-VL)."""

    _model: Any

    def __init__(self, folder: str, *, device: str = "auto", **other: Any) -> None:
        self.name = f"vqa:{Path(folder).name}"
        self._folder, self._wanted, self._model = Path(folder), device, None
        check_judge(self._folder)
        self.version = fingerprint(self._folder)

    def prepare(self) -> None:
        if self._model is None:
            self._model, self._processor, self._device = load_judge(self._folder, CLASSES, self._wanted)
            names = getattr(self._model.config, "id2label", None) or {}
            self._answers = {str(name).lower(): int(number) for number, name in names.items()}

    def look(self, shown: Shown) -> Answer:
        image = shown.load()
        scores, said = [], []
        for question in shown.questions:
            score, text = self._ask(image, question.text)
            scores.append(score)
            said += [] if score is not None else [f"neither yes nor no: {text[:100]!r}"]
        return from_scores(scores, "; ".join(said))

    def _ask(self, image: Any, question: str) -> tuple[float | None, str]:
        import torch

        with torch.inference_mode():
            if {"yes", "no"} <= set(self._answers) and not hasattr(self._model, "lm_head"):
                given = self._processor(images=image, text=question, return_tensors="pt", truncation=True)
                logits = self._model(**given.to(self._device)).logits[0].float()
                return float(torch.sigmoid(logits[self._answers["yes"]] - logits[self._answers["no"]])), ""
            given, begin = self._written(image, question)
            out = self._model.generate(**given.to(self._device), max_new_tokens=8, do_sample=False)
        text = self._processor.batch_decode(out[:, begin:], skip_special_tokens=True)[0]
        return yes_or_no(text), text

    def _written(self, image: Any, question: str) -> tuple[Any, int]:
        """The input of a model that writes, and where in its output the answer begins."""
        if getattr(self._processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": ASK.format(question=question)}]
            chat = [{"role": "user", "content": content}]
            text = self._processor.apply_chat_template(chat, add_generation_prompt=True)
            given = self._processor(images=image, text=text, return_tensors="pt")
            return given, given["input_ids"].shape[1]
        given = self._processor(images=image, text=question, return_tensors="pt")
        return given, 0
