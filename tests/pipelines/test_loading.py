"""Only pipelines are loaded, and nothing that could run code."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from recombine.errors import BadInput
from recombine.pipelines import loading
from recombine.pipelines.hooks import find_blocks
from recombine.pipelines.loading import chosen_precision, fingerprint, load_pipeline


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_blocks_are_found_by_structure(unet, transformer):
    assert list(find_blocks(load_pipeline(unet).network)) == [
        "down_blocks.0",
        "down_blocks.1",
        "mid_block",
        "up_blocks.0",
        "up_blocks.1",
    ]
    network = load_pipeline(transformer).network
    assert list(find_blocks(network)) == [f"transformer_blocks.{n}" for n in range(3)]
    assert list(find_blocks(network, most=2)) == ["transformer_blocks.0", "transformer_blocks.2"]


def test_no_pipeline(tmp_path):
    with pytest.raises(BadInput, match="is not a folder"):
        load_pipeline(tmp_path / "nothing")
    with pytest.raises(BadInput, match=r"no model_index\.json"):
        load_pipeline(tmp_path)
    (tmp_path / "model_index.json").write_text("[")
    with pytest.raises(BadInput, match="cannot be read"):
        load_pipeline(tmp_path)
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(BadInput, match="names no pipeline"):
        load_pipeline(tmp_path)


def test_pickled_weights_are_refused_before_anything_is_loaded(unet, tmp_path):
    folder = copied(unet, tmp_path)
    (folder / "unet/diffusion_pytorch_model.safetensors").rename(folder / "unet/diffusion_pytorch_model.bin")
    with pytest.raises(BadInput, match=r"diffusion_pytorch_model\.bin, which may contain code") as error:
        load_pipeline(folder)
    assert "safe_serialization" in str(error.value)


def test_pickled_weights_beside_safe_ones_are_not_looked_at(unet, tmp_path):
    folder = copied(unet, tmp_path)
    (folder / "unet/diffusion_pytorch_model.bin").write_bytes(b"not even a pickle")
    assert type(load_pipeline(folder).network).__name__ == "UNet2DConditionModel"


def test_code_in_the_folder_is_not_run(unet, tmp_path):
    folder = copied(unet, tmp_path)
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps(index | {"_class_name": ["mine", "Mine"]}))
    with pytest.raises(BadInput, match="its own code"):
        load_pipeline(folder)
    (folder / "model_index.json").write_text(json.dumps(index | {"unet": ["mine", "Mine"]}))
    (folder / "mine.py").write_text("raise SystemExit")
    with pytest.raises(BadInput, match="its own code"):
        load_pipeline(folder)
    (folder / "mine.py").unlink()
    with pytest.raises(BadInput, match="is of 'mine', which is not loaded"):
        load_pipeline(folder)


def test_a_damaged_pipeline_and_one_without_a_denoiser(unet, tmp_path):
    folder = copied(unet, tmp_path)
    (folder / "vae/diffusion_pytorch_model.safetensors").write_bytes(b"short")
    with pytest.raises(BadInput, match="cannot be loaded"):
        load_pipeline(folder)
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps({k: v for k, v in index.items() if k != "unet"}))
    with pytest.raises(BadInput, match="neither a U-Net nor a transformer"):
        load_pipeline(folder)


def test_a_pipeline_without_prompts_is_refused(tmp_path):
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    network = UNet2DModel(
        sample_size=8,
        block_out_channels=(8,),
        layers_per_block=1,
        down_block_types=("DownBlock2D",),
        up_block_types=("UpBlock2D",),
        norm_num_groups=4,
    )
    DDPMPipeline(network, DDPMScheduler()).save_pretrained(tmp_path / "noise")
    with pytest.raises(BadInput, match="takes no prompt"):
        load_pipeline(tmp_path / "noise")


def test_other_weights_are_told_apart(unet, transformer, tmp_path):
    folder = copied(unet, tmp_path)
    assert fingerprint(folder) == fingerprint(unet) != fingerprint(transformer)
    weights = folder / "unet/diffusion_pytorch_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert fingerprint(folder) != fingerprint(unet)


def test_large_weights_are_told_apart_by_headers_and_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "SAMPLE", 64)
    header = json.dumps({"a": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}).encode()
    seen = set()
    for name, values in (("a", bytes(4000)), ("b", bytes(4000)), ("a", b"".join((bytes(8), b"x" * 3992)))):
        content = len(header).to_bytes(8, "little") + header.replace(b'"a"', f'"{name}"'.encode()) + values
        (tmp_path / "model.safetensors").write_bytes(content)
        seen.add(fingerprint(tmp_path))
    assert len(seen) == 3
    middle = bytearray(content)
    middle[1500:3000] = bytes(1500)
    (tmp_path / "model.safetensors").write_bytes(bytes(middle))
    assert fingerprint(tmp_path) not in seen


def test_adapters_and_names_of_code_are_refused(unet, tmp_path):
    folder = copied(unet, tmp_path)
    (folder / "unet/adapter_config.json").write_text('{"base_model_name_or_path": "else/where"}')
    with pytest.raises(BadInput, match=r"unet in .* is an adapter"):
        load_pipeline(folder)
    (folder / "unet/adapter_config.json").unlink()
    config = folder / "text_encoder/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"auto_map": {"AutoModel": "mine.Mine"}}))
    with pytest.raises(BadInput, match=r"text_encoder in .* refers to its own code in config\.json"):
        load_pipeline(folder)


def test_the_libraries_are_told_to_stay_off_the_network(monkeypatch):
    for name in loading.OFFLINE:
        monkeypatch.delenv(name, raising=False)
    loading.require_diffusers()
    assert [os.environ[name] for name in loading.OFFLINE] == ["1", "1"]


def test_too_little_memory_is_said(unet, monkeypatch):
    import torch
    from diffusers import StableDiffusionPipeline

    def full(self, *given):
        raise torch.OutOfMemoryError("CUDA out of memory. SiteScore to allocate 2.00 GiB")

    monkeypatch.setattr(StableDiffusionPipeline, "to", full)
    with pytest.raises(BadInput, match="does not fit on cpu: OutOfMemoryError") as error:
        load_pipeline(unet)
    assert "--offload" in str(error.value)


def test_devices_and_precisions(unet):
    assert chosen_precision("auto", "cuda", "unet") == "float16"
    assert chosen_precision("auto", "cuda", "transformer") == "bfloat16"
    assert chosen_precision("auto", "cpu", "unet") == "float32"
    with pytest.raises(BadInput, match="no precision"):
        chosen_precision("int8", "cpu", "unet")
    with pytest.raises(BadInput, match="device 'cuda:7' is not available"):
        load_pipeline(unet, device="cuda:7")
