"""Tiny pipelines with random weights, made and saved with diffusers itself: the code path is the real one."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recombine.pipelines.prompts.sets import SetPrompts

PETS = ("cat", "dog", "fox", "owl", "cow", "hen")
WORDS = (*PETS, "an", "image", "with", "one", "a", "photo", "of", "hat", "tie", "is", "there", "exactly", "in", "the")
LENGTH = 16


@pytest.fixture(scope="session")
def pets() -> SetPrompts:
    return SetPrompts(concepts=PETS, size=2)


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """One thread: the tensors are so small that threads would only wait for each other."""
    import torch

    from recombine.pipelines.loading import require_diffusers

    require_diffusers()
    torch.set_num_threads(1)


def _tokenizer(folder: Path) -> tuple[Any, dict[str, int]]:
    """CLIP's, with a vocabulary of letters and a few words."""
    from transformers import CLIPTokenizer

    vocabulary: dict[str, int] = {}
    merges = []
    for letter in string.ascii_lowercase + ",.?":
        for end in ("", "</w>"):
            vocabulary[letter + end] = len(vocabulary)
    for word in WORDS:
        left, *rest = [*word[:-1], word[-1] + "</w>"]
        for right in rest:
            if (left, right) not in merges:
                merges.append((left, right))
            left += right
            vocabulary.setdefault(left, len(vocabulary))
    for sign in ("<|startoftext|>", "<|endoftext|>"):
        vocabulary[sign] = len(vocabulary)
    folder.mkdir(parents=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")
    return CLIPTokenizer.from_pretrained(str(folder), model_max_length=LENGTH), vocabulary


def _text_config(vocabulary: dict[str, int]) -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=LENGTH,
        projection_dim=16,
        bos_token_id=vocabulary["<|startoftext|>"],
        eos_token_id=vocabulary["<|endoftext|>"],
        pad_token_id=vocabulary["<|endoftext|>"],
    )


def _decoder(**more: Any) -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=[8, 8],
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
        norm_num_groups=4,
        **more,
    )


@pytest.fixture(scope="session")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Stable Diffusion pipeline: a U-Net that is told the text by cross-attention."""
    import torch
    from diffusers import DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel

    folder = tmp_path_factory.mktemp("unet")
    torch.manual_seed(0)
    tokenizer, vocabulary = _tokenizer(folder / "words")
    network = UNet2DConditionModel(
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
        norm_num_groups=8,
    )
    pipe = StableDiffusionPipeline(
        vae=_decoder(),
        text_encoder=CLIPTextModel(_text_config(vocabulary)),
        tokenizer=tokenizer,
        unet=network,
        scheduler=DDIMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipe.save_pretrained(folder / "pipeline")
    return folder / "pipeline"


@pytest.fixture(scope="session")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Stable Diffusion 3 pipeline, without its largest text encoder: blocks with a stream for text and one for the picture."""
    import torch
    from diffusers import FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel, StableDiffusion3Pipeline
    from transformers import CLIPTextModelWithProjection

    folder = tmp_path_factory.mktemp("transformer")
    torch.manual_seed(0)
    tokenizer, vocabulary = _tokenizer(folder / "words")
    network = SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=3,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=32,
        caption_projection_dim=16,
        pooled_projection_dim=32,
        out_channels=4,
    )
    pipe = StableDiffusion3Pipeline(
        transformer=network,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_decoder(shift_factor=0.0, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=CLIPTextModelWithProjection(_text_config(vocabulary)),
        tokenizer=tokenizer,
        text_encoder_2=CLIPTextModelWithProjection(_text_config(vocabulary)),
        tokenizer_2=tokenizer,
        text_encoder_3=None,
        tokenizer_3=None,
    )
    pipe.save_pretrained(folder / "pipeline")
    return folder / "pipeline"


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP model with random weights."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPVisionConfig

    folder = tmp_path_factory.mktemp("clip")
    torch.manual_seed(0)
    tokenizer, vocabulary = _tokenizer(folder / "words")
    vision = CLIPVisionConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8
    )
    text = _text_config(vocabulary)
    config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=16)
    CLIPModel(config).save_pretrained(folder / "model")
    pictures = CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    CLIPProcessor(image_processor=pictures, tokenizer=tokenizer).save_pretrained(folder / "model")
    return folder / "model"


@pytest.fixture(scope="session")
def vqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ViLT model with random weights that knows three answers."""
    import torch
    from transformers import BertTokenizer, ViltConfig, ViltForQuestionAnswering, ViltImageProcessor, ViltProcessor

    folder = tmp_path_factory.mktemp("vqa")
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "?"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    config = ViltConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=32,
        patch_size=16,
        max_position_embeddings=40,
        id2label={0: "no", 1: "yes", 2: "two"},
        label2id={"no": 0, "yes": 1, "two": 2},
    )
    ViltForQuestionAnswering(config).save_pretrained(folder / "model")
    pictures = ViltImageProcessor(size={"shortest_edge": 32}, size_divisor=16)
    tokenizer = BertTokenizer.from_pretrained(str(folder), model_max_length=40)
    ViltProcessor(pictures, tokenizer).save_pretrained(folder / "model")
    return folder / "model"


@pytest.fixture
def silent() -> Callable[..., None]:
    def on(what: str, done: float | None = None) -> None:
        pass

    return on
