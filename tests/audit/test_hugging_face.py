"""Tiny models of transformers with random weights, made here and saved as users save theirs."""

from __future__ import annotations

import numpy as np
import pytest

import recombine as rc
from recombine.audit.asking.calling import prepared_model
from recombine.errors import BadInput

COLOURS, THINGS = ("red", "green", "blue"), ("cup", "ball")
WORDS = ("<pad>", "<end>", "a", "on", "the", "table", *COLOURS, *THINGS)
INPUTS = ["a red cup", "a green ball on the table", "a blue cup"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A language model and a classifier, each in a folder."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    place = tmp_path_factory.mktemp("models")
    sizes = {"vocab_size": len(WORDS), "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 64}
    ends = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    config = transformers.GPT2Config(**sizes, **ends, num_labels=2)
    for name, kind in (
        ("lm", transformers.GPT2LMHeadModel),
        ("classifier", transformers.GPT2ForSequenceClassification),
    ):
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", pad_token="<pad>")
        kind(config).save_pretrained(place / name)
        tokenizer.save_pretrained(place / name)
    return place


def asked(model, layers=("transformer.h.0", "transformer.h.1"), batch=3, pool="mean"):
    with prepared_model(model, layers, pool, batch, "predict") as (call, at_once):
        assert at_once == (batch or 8)
        return call(INPUTS)


def test_folder_pair_and_pipeline_give_the_same(folder):
    import transformers

    path = folder / "lm"
    pair = (transformers.AutoModelForCausalLM.from_pretrained(path), transformers.AutoTokenizer.from_pretrained(path))
    outputs, layers = asked(str(path))
    other, again = asked(pair)
    assert [output["generated_text"] for output in outputs] == [output["generated_text"] for output in other]
    for name in ("transformer.h.0", "transformer.h.1"):
        assert layers[name].shape == (3, 16)
        np.testing.assert_array_equal(layers[name], again[name])


def test_activations_are_means_over_the_tokens_of_the_input(folder):
    """In a batch with padding they are those of each input alone, computed by the model itself."""
    import torch
    import transformers

    path = folder / "classifier"
    outputs, layers = asked(path)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    for index, text in enumerate(INPUTS):
        with torch.no_grad():
            result = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        np.testing.assert_allclose(layers["transformer.h.0"][index], result.hidden_states[1][0].mean(0), atol=1e-5)
        assert outputs[index]["label"] == f"LABEL_{int(result.logits.argmax())}"
    last = lambda name, values: values[:, -1]  # noqa: E731
    assert asked(path, ("transformer.h.1",), pool=last)[1]["transformer.h.1"].shape == (3, 16)
    hooks = len(model._forward_pre_hooks), len(model.transformer.h[0]._forward_hooks)
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    np.testing.assert_allclose(asked(pipe)[1]["transformer.h.0"], layers["transformer.h.0"], atol=1e-6)
    assert hooks == (len(model._forward_pre_hooks), len(model.transformer.h[0]._forward_hooks)), "ours are removed"


def test_a_folder_is_asked_about_a_space(folder):
    def make_input(combination, rng):
        return f"a {combination['colour']} {combination['thing']}", "LABEL_1"

    space, train = {"colour": COLOURS, "thing": THINGS}, [("red", "cup"), ("blue", "ball"), ("green", "cup")]
    settings = {"repeats": 2, "layers": ["transformer.h.1"], "train": train, "batch": 5}
    answers = rc.ask_model(folder / "classifier", space, make_input, lambda output, target: output["score"], **settings)
    assert len(answers.frame) == 12 and answers.layers["transformer.h.1"].shape == (12, 16) and not answers.notes
    cells = rc.audit.read_cells(answers.frame, factors=["colour", "thing"], scores=["score"], train=answers.train)
    assert len(cells.count) == 6 and cells.trained is not None and cells.trained.sum() == 3


def test_what_cannot_be_asked(folder, tmp_path):
    with pytest.raises(BadInput, match="is not the folder of a model"):
        asked(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["T5ForSomething"]}')
    with pytest.raises(BadInput, match="model of T5ForSomething is not known"):
        asked(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(BadInput, match="cannot be loaded"):
        asked(tmp_path)
    with pytest.raises(BadInput, match=r"no layer 'transformer\.h\.7'"):
        asked(folder / "lm", ("transformer.h.7",))
