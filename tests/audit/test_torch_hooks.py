"""Hooks on real torch modules: what they take, and that nothing of them stays."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from recombine.audit.asking import torch_hooks
from recombine.audit.asking.torch_hooks import WHOLE, default_layers, evaluating, recording, require_torch
from recombine.errors import BadInput

torch = pytest.importorskip("torch")
nn = torch.nn


def hooks(module: Any) -> int:
    return sum(len(one._forward_hooks) for one in module.modules())


def perceptron() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))


def test_leaves_are_recorded_and_hooks_removed():
    module, inputs = perceptron(), torch.randn(5, 4)
    with evaluating(module), recording(module) as recorder:
        assert hooks(module) == 3
        output = module(inputs)
        rows = recorder.rows(5)
    assert hooks(module) == 0
    assert list(rows) == ["0", "1", "3"]
    np.testing.assert_allclose(rows["3"], output.numpy())
    np.testing.assert_allclose(rows["1"], np.maximum(rows["0"], 0))
    assert all(values.dtype == np.float32 for values in rows.values())


def test_hooks_are_removed_and_modes_restored_after_an_error():
    module = perceptron()
    module[2].eval()
    module.train(True)
    module[0].eval()
    before = [one.training for one in module.modules()]

    def fail() -> None:
        with evaluating(module), recording(module):
            assert not any(one.training for one in module.modules())
            assert not torch.is_grad_enabled()
            module(torch.randn(5, 9))

    with pytest.raises(RuntimeError):
        fail()
    assert hooks(module) == 0
    assert [one.training for one in module.modules()] == before
    assert torch.is_grad_enabled()


def test_unknown_layers_are_refused_with_a_hint():
    module = nn.ModuleDict({"encoder": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    with pytest.raises(BadInput, match="did you mean 'encoder'"), recording(module, ["head", "encodr"]):
        pass
    assert hooks(module) == 0


def test_pictures_keep_channels_and_sequences_keep_features():
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.act, self.line = nn.Conv2d(3, 7, 3), nn.ReLU(), nn.Conv1d(5, 4, 1)
            self.token, self.other = nn.Linear(6, 9), nn.Tanh()

        def forward(self, picture: Any, sequence: Any) -> Any:
            return self.act(self.conv(picture)), self.line(sequence), self.other(self.token(sequence))

    module = Both()
    picture, sequence = torch.randn(2, 3, 8, 8), torch.randn(2, 5, 6)
    with evaluating(module), recording(module) as recorder:
        act, line, token = module(picture, sequence)
        rows = recorder.rows(2)
    np.testing.assert_allclose(rows["act"], act.mean((2, 3)).numpy(), rtol=1e-5)
    np.testing.assert_allclose(rows["line"], line.mean(2).numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(rows["other"], token.mean(1).numpy(), rtol=1e-5, atol=1e-7)
    with evaluating(module), recording(module, ["act"], pool="none") as recorder:
        module(picture, sequence)
        assert recorder.rows(2)["act"].shape == (2, 7 * 36)
    with evaluating(module), recording(module, ["token"], pool=lambda name, values: values[:, -1]) as recorder:
        module(picture, sequence)
        np.testing.assert_allclose(recorder.rows(2)["token"], module.token(sequence)[:, -1].detach(), rtol=1e-5)
    with recording(module, ["token"], pool=lambda name, values: values.mean()) as recorder:
        module(picture, sequence)
        with pytest.raises(BadInput, match="keep the first axis"):
            recorder.rows(2)


def test_tuples_mappings_and_repeated_calls():
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory = nn.LSTM(3, 4, batch_first=True)
            self.relu, self.named = nn.ReLU(), Named()
            self.embed = nn.Embedding(5, 3)
            self.unused = nn.Linear(1, 1)

        def forward(self, tokens: Any) -> Any:
            values, _ = self.memory(self.embed(tokens))
            values = self.relu(self.relu(values) - 1)
            return self.named(values)

    class Named(nn.Module):
        def forward(self, values: Any) -> dict[str, Any]:
            return {"number": values.argmax(-1), "state": (values, None)}

    class Whole(nn.Module):
        def forward(self, values: Any) -> Any:
            return values.sum(0)

    module = Odd()
    with evaluating(module), recording(module) as recorder:
        module(torch.tensor([[0, 1], [2, 3], [4, 0]]))
        rows = recorder.rows(3)
        assert list(rows) == ["embed", "memory", "relu", "relu (2)"], "the first of the mapping are integers"
        assert rows["memory"].shape == (3, 4)
        recorder.forget()
        assert recorder.rows(3) == {}
    # No row for each input: left out. A module without submodules has itself.
    with recording(Whole()) as recorder:
        assert recorder.rows(3) == {}
    assert default_layers(Whole()) == [WHOLE]


def test_half_precision():
    module = nn.Linear(3, 2).to(torch.bfloat16)
    with evaluating(module), recording(module) as recorder:
        module(torch.ones(4, 3, dtype=torch.bfloat16))
        assert recorder.rows(4)[WHOLE].dtype == np.float32


def test_of_many_layers_some_are_taken_evenly():
    module = nn.Sequential(*(nn.Linear(2, 2) for _ in range(100)))
    chosen = [int(name) for name in default_layers(module)]
    assert len(chosen) == torch_hooks.MOST_LAYERS
    assert (chosen[0], chosen[-1]) == (0, 99)
    assert set(np.diff(chosen)) <= {6, 7}


def test_without_torch_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BadInput, match="PyTorch is not installed") as caught:
        require_torch()
    assert "recombine[torch]" in str(caught.value) and "CPU build" in str(caught.value)
