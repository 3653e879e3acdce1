"""What is recorded is what the network had with the prompt; and nothing is lost or done twice."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

from recombine.errors import BadInput
from recombine.pipelines.folder import ImageFolder
from recombine.pipelines.generation import GenerationSettings, generate
from recombine.pipelines.hooks import Conditioning, Recorder, _image_stream, _streams, find_conditioning
from recombine.pipelines.loading import load_pipeline
from recombine.pipelines.prompts.drawing import draw_prompts

QUICK = GenerationSettings(images=2, steps=3, guidance=5.0)


@pytest.fixture(params=["unet", "transformer"])
def loaded(request):
    return load_pipeline(request.getfixturevalue(request.param))


def made(loaded, prompts, path, settings, silent):
    folder = ImageFolder(path)
    folder.begin({"steps": settings.steps})
    assert generate(loaded, prompts, folder, settings, silent) == []
    return folder


def test_the_half_with_the_prompt_is_kept(loaded, pets, tmp_path, silent):
    """From the same noise the first step is the same without guidance, where there is no other half."""
    prompts = draw_prompts("pets", pets, 3, 0)
    with_it = made(loaded, prompts, tmp_path / "with", QUICK, silent)
    without = made(loaded, prompts, tmp_path / "without", dataclasses.replace(QUICK, guidance=1.0), silent)
    names = [prompt.name for prompt in prompts]
    first = [
        name for name in with_it.manifest(names[0])["arrays"] if name.endswith("@0.3")
    ]  # The first of three steps.
    assert len(first) in (3, 5)
    for name in first:
        for one, other in zip(with_it.arrays(names, name), without.arrays(names, name), strict=True):
            assert one.shape[0] == 2 and np.allclose(one, other, atol=1e-4)
    last = first[-1].replace("@0.3", "@1.0")
    assert not np.allclose(with_it.arrays(names, last)[0], without.arrays(names, last)[0], atol=1e-4)
    encoders = [name for name in with_it.manifest(names[0])["arrays"] if name.startswith("text:")]
    assert encoders and not np.allclose(*with_it.arrays(names[:2], encoders[0]))


def test_the_stream_of_the_image_stream_is_kept(transformer, pets, tmp_path, silent):
    loaded = load_pipeline(transformer)
    seen = []
    block = loaded.network.transformer_blocks[1]
    block.register_forward_hook(lambda module, inputs, output: seen.append(output[1].mean(1)))
    prompt = draw_prompts("pets", pets, 2, 0)[:1]
    folder = made(loaded, prompt, tmp_path / "out", QUICK, silent)
    (found,) = folder.arrays([prompt[0].name], "transformer_blocks.1@1.0")
    assert np.allclose(found, seen[-1][2:].numpy(), atol=1e-5)  # The second half has the prompt.


@pytest.mark.parametrize("number", [0, 1])
def test_of_a_unet_the_output_of_a_block_is_kept_and_not_its_skips(unet, pets, tmp_path, silent, number):
    loaded = load_pipeline(unet)
    seen = []
    block = loaded.network.down_blocks[number]
    block.register_forward_hook(lambda module, inputs, output: seen.append(output[0].mean((2, 3))))
    prompt = draw_prompts("pets", pets, 2, 0)[:1]
    folder = made(loaded, prompt, tmp_path / "out", QUICK, silent)
    (found,) = folder.arrays([prompt[0].name], f"down_blocks.{number}@1.0")
    assert np.allclose(found, seen[-1][2:].numpy(), atol=1e-5)


def test_of_two_streams_of_one_shape_the_nearer_is_the_image_stream():
    picture = torch.ones(1, 4, 3)
    text = -picture
    assert _image_stream(picture, _streams((text + 0.1, picture + 0.2))) == 1
    assert _image_stream(picture, _streams((picture + 0.2, text))) == 0
    assert _image_stream(picture, _streams((text[:, :2], picture + 9))) == 1
    # A skip has the shape of what went in, and the output has not.
    assert _image_stream(picture, _streams((picture[:, :2], (picture, picture[:, :2])))) == 0
    assert _image_stream(picture, _streams(None)) is None


class Network(torch.nn.Module):
    """Gives on what it is told."""

    def __init__(self):
        super().__init__()
        self.block, self.refiner = torch.nn.Identity(), torch.nn.Identity()

    def forward(self, sample, timestep, encoder_hidden_states=None):
        return self.block(sample + self.refiner(encoder_hidden_states).mean())


def watched():
    network = Network()
    recorder = Recorder(network)
    network.register_forward_pre_hook(recorder.begin, with_kwargs=True)
    for name in ("block", "refiner"):
        part = getattr(network, name)
        part.register_forward_hook(recorder.block(name, part), with_kwargs=True)
    return network, recorder


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([["prompt", "nothing"]], (0, 0, 2)),
        ([["nothing", "prompt"]], (0, 1, 2)),
        ([["prompt"], ["nothing"]], (0, 0, 1)),
        ([["nothing"], ["prompt"]], (1, 0, 1)),
        ([["prompt"]], (0, 0, 1)),
    ],
)
def test_wherever_a_pipeline_has_the_prompt_it_is_found(order, expected):
    network, recorder = watched()

    def call(prompt, steps, seed):
        for step in range(steps):
            for rows in order:
                told = [float(len(prompt)) if one == "prompt" else 0.0 for one in rows]
                sample = torch.full((len(rows), 4, 2, 2), float(seed))
                network(sample, torch.tensor(9.0 - step), encoder_hidden_states=torch.tensor(told)[:, None])

    found = find_conditioning(recorder, ("a", "long"), call)
    assert (found.call, found.chunk, found.chunks) == expected
    assert found.still == {"refiner"} and found.note == "Left out, because they see only the text: refiner."


def test_prompts_of_different_lengths_in_one_call():
    network, recorder = watched()

    def call(prompt, steps, seed):
        told = torch.stack([torch.zeros(len(prompt), 3), torch.full((len(prompt), 3), float(len(prompt)))])
        network(torch.full((2, 4, 2, 2), float(seed)), 1, encoder_hidden_states=told)

    found = find_conditioning(recorder, ("a", "long"), call)
    assert (found.call, found.chunk, found.chunks) == (0, 1, 2)


def test_a_prompt_that_does_not_matter_is_said_and_nothing_is_guessed():
    network, recorder = watched()

    def call(rows):
        return lambda prompt, steps, seed: network(
            torch.full((rows, 4), float(seed)), 1, encoder_hidden_states=torch.zeros(rows, 1)
        )

    found = find_conditioning(recorder, ("a", "long"), call(1))
    assert found == Conditioning(0, 0, 1, {}, frozenset({"refiner"}), found.note)
    assert "got the same input" in found.note
    with pytest.raises(BadInput, match="cannot be found"):
        find_conditioning(recorder, ("a", "long"), call(2))


def test_a_network_that_sees_no_image_stream_is_refused():
    network, recorder = watched()

    def call(prompt, steps, seed):
        network(torch.zeros(1, 4), 1, encoder_hidden_states=torch.full((1, 1), float(len(prompt))))

    with pytest.raises(BadInput, match="changes with the noise"):
        find_conditioning(recorder, ("a", "long"), call)


def test_a_run_that_is_cut_off_goes_on_as_if_nothing_had_been(loaded, pets, tmp_path, silent, monkeypatch):
    prompts = draw_prompts("pets", pets, 4, 0)
    whole = made(loaded, prompts, tmp_path / "whole", QUICK, silent)
    folder = ImageFolder(tmp_path / "cut")
    folder.begin({"steps": 3})
    saved = Image.Image.save
    count = 0

    def cut_off(self, *args, **kwargs):
        nonlocal count
        count += 1
        if count == 6:  # The second image of the third prompt.
            raise KeyboardInterrupt
        return saved(self, *args, **kwargs)

    monkeypatch.setattr(Image.Image, "save", cut_off)
    with pytest.raises(KeyboardInterrupt):
        generate(loaded, prompts, folder, QUICK, silent)
    monkeypatch.undo()
    assert [folder.has(prompt.name) for prompt in prompts] == [True, True, False, False]
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*.png")}
    assert len(before) == 4
    again = ImageFolder(tmp_path / "cut")
    again.begin({"steps": 3})
    generate(loaded, prompts, again, QUICK, silent)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    for prompt in prompts:
        for number in range(2):
            assert again.image(prompt.name, number).read_bytes() == whole.image(prompt.name, number).read_bytes()
        for name in whole.manifest(prompt.name)["arrays"]:
            assert np.array_equal(*(one.arrays([prompt.name], name)[0] for one in (whole, again)))


def test_other_settings_are_not_mixed(tmp_path):
    folder = ImageFolder(tmp_path)
    folder.begin({"steps": 3})
    folder.write("a", {"flagged": [False], "arrays": []}, [Image.new("RGB", (4, 4))], {})
    with pytest.raises(BadInput, match=r"steps 3 \(now 4\)"):
        ImageFolder(tmp_path).begin({"steps": 4})
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        ImageFolder(tmp_path / "other").begin({"steps": 3})


def test_settings_may_change_as_long_as_there_are_no_images(tmp_path):
    folder = ImageFolder(tmp_path / "out")
    folder.begin({"steps": 3})
    folder.begin({"steps": 4, "precision": "float32"})
    assert folder.settings()["steps"] == 4 and folder.settings()["precision"] == "float32"
    folder.write("a", {"flagged": [False], "arrays": []}, [Image.new("RGB", (4, 4))], {})
    folder.begin({"steps": 4})
    with pytest.raises(BadInput, match=r"precision 'float32' \(now 'float16'\)"):
        folder.begin({"steps": 4, "precision": "float16"})


def test_one_prompt_that_fails_is_recorded_and_a_pipeline_that_fails_is_an_error(
    unet, pets, tmp_path, silent, monkeypatch
):
    loaded = load_pipeline(unet)
    prompts = draw_prompts("pets", pets, 3, 0)
    real, calls = type(loaded.pipe).__call__, []

    def failing(self, prompt, **given):
        calls.append(prompt)
        if len(calls) == 5:  # After the three that find the prompt and the first.
            raise RuntimeError("no")
        return real(self, prompt, **given)

    monkeypatch.setattr(type(loaded.pipe), "__call__", failing)
    folder = ImageFolder(tmp_path / "a")
    folder.begin({})
    notes = generate(loaded, prompts, folder, QUICK, silent)
    assert "1 prompts have no images" in notes[0] and "RuntimeError: no" in notes[0]
    assert [folder.has(one.name) for one in prompts] == [True, False, True]
    monkeypatch.setattr(type(loaded.pipe), "__call__", lambda self, prompt, **given: 1 / 0)
    other = ImageFolder(tmp_path / "b")
    other.begin({})
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        generate(loaded, prompts, other, QUICK, silent)


@pytest.mark.parametrize("bad", [0, 2])
def test_a_prompt_that_always_fails_does_not_keep_the_others(unet, pets, tmp_path, silent, monkeypatch, bad):
    loaded = load_pipeline(unet)
    prompts = draw_prompts("pets", pets, 4, 0)
    real = type(loaded.pipe).__call__

    def failing(self, prompt, **given):
        if prompt == prompts[bad].text:
            raise RuntimeError("never")
        return real(self, prompt, **given)

    monkeypatch.setattr(type(loaded.pipe), "__call__", failing)
    folder = ImageFolder(tmp_path / "a")
    folder.begin({})
    for some in (prompts[:3], prompts[:3], prompts):  # The second run has nothing but the bad one to do.
        notes = generate(loaded, some, folder, QUICK, silent)
        assert "1 prompts have no images" in notes[0] and "RuntimeError: never" in notes[0]
        assert [folder.has(one.name) for one in some] == [one is not prompts[bad] for one in some]


def test_settings_are_checked():
    with pytest.raises(BadInput, match="seed"):
        GenerationSettings(seed=-1)
    with pytest.raises(BadInput, match="steps"):
        GenerationSettings(steps=1)
    with pytest.raises(BadInput, match="images"):
        GenerationSettings(images=0)
