"""rc.experts: what is decomposed, what a mixture is, that a reward is learned, and errors that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recombine as rc
from recombine.errors import BadInput

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # Tiny products: threads would wait for each other.

CHOICES = 4


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, CHOICES))


BATCH = torch.tensor(np.random.default_rng(0).standard_normal((32, 6)), dtype=torch.float32)


def sample(model: Any, batch: Any) -> Any:
    return torch.distributions.Categorical(logits=model(batch)).sample()


def log_probability(model: Any, batch: Any, answers: Any) -> Any:
    return torch.distributions.Categorical(logits=model(batch)).log_prob(answers)


def choice(number: int) -> Any:
    return lambda batch, answers: torch.where(answers == number, 1.0, -1.0)


def train(experts: Any, name: str, reward: Any, **settings: Any) -> Any:
    torch.manual_seed(1)
    return experts.train(
        name, sample=sample, log_probability=log_probability, reward=reward, batches=[BATCH], **settings
    )


def test_experts_learn_their_reward_and_leave_each_other_alone(module: Any) -> None:
    before = {name: value.clone() for name, value in module.state_dict().items()}
    experts = rc.experts(module)
    assert experts.parameters == 6 + CHOICES and "none yet" in repr(experts)
    first = train(experts, "two", choice(2), steps=80, learning_rate=0.1, divergence=0.0)
    assert np.mean(first[-10:]) > np.mean(first[:10]) + 0.2
    kept = {name: scale.clone() for name, scale in experts.scales["two"].items()}
    train(experts, "three", choice(3), steps=80, learning_rate=0.1, divergence=0.0)
    for name, scale in kept.items():
        assert torch.equal(experts.scales["two"][name], scale)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])

    def chance(model: Any, number: int) -> float:
        with torch.no_grad():
            return float(torch.softmax(model(BATCH), dim=1)[:, number].mean())

    assert chance(experts.mix({"two": 1.0}), 2) > chance(module, 2) + 0.1
    weights = experts.search(lambda model: chance(model, 3), population=8, rounds=3)
    found = chance(experts.mix(weights), 3)
    assert found >= max(chance(experts.mix({name: 1.0}), 3) for name in experts.scales) > chance(module, 3)


def test_a_mixture_is_that_of_the_singular_values(module: Any) -> None:
    experts = rc.experts(module)
    rng = np.random.default_rng(3)
    for name in ("a", "b"):
        experts.scales[name] = {
            "0.weight": torch.tensor(rng.uniform(0.5, 1.5, 6), dtype=torch.float32),
            "2.weight": torch.ones(CHOICES),
        }
    mixed = experts.mix({"a": 0.25, "b": 0.5})
    left, values, right = np.linalg.svd(module[0].weight.detach().double().numpy(), full_matrices=False)
    scales = 1 + sum(w * (experts.scales[n]["0.weight"].numpy() - 1) for n, w in (("a", 0.25), ("b", 0.5)))
    np.testing.assert_allclose(mixed[0].weight.detach().numpy(), left @ np.diag(values * scales) @ right, atol=1e-5)
    assert torch.equal(mixed[2].weight, module[2].weight) and torch.equal(mixed[0].bias, module[0].bias)
    assert torch.equal(experts.mix({})[0].weight, module[0].weight)


def test_a_large_divergence_keeps_an_expert_near_the_module(module: Any) -> None:
    moved = []
    for divergence in (0.0, 30.0):
        experts = rc.experts(module)
        train(experts, "two", choice(2), steps=40, learning_rate=0.05, divergence=divergence)
        moved.append(sum(float(((scale - 1) ** 2).sum()) for scale in experts.scales["two"].values()))
    assert moved[1] < 0.3 * moved[0]


def test_convolutions_are_matrices_and_embeddings_are_left() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(9, 5), torch.nn.Conv1d(5, 3, 2))
    assert rc.experts(model).parameters == 3


def test_bad_input(module: Any) -> None:
    experts = rc.experts(module)
    with pytest.raises(BadInput, match="nothing to learn"):
        train(experts, "same", lambda batch, answers: torch.ones(len(answers)), steps=5)
    with pytest.raises(BadInput, match="A reward is not finite: nan"):
        train(experts, "nan", lambda batch, answers: torch.full((len(answers),), float("nan")), steps=5)
    with pytest.raises(BadInput, match="3 rewards were given for 32"):
        train(experts, "few", lambda batch, answers: torch.arange(3), steps=5)
    with pytest.raises(BadInput, match="no matrix to decompose"):
        rc.experts(torch.nn.LayerNorm(4))
    with pytest.raises(BadInput, match="need a PyTorch module, got int"):
        rc.experts(3)
    with pytest.raises(BadInput, match="There is no expert 'sum'"):
        experts.mix({"sum": 1.0})
    with pytest.raises(BadInput, match="at least one step"):
        train(experts, "none", choice(1), steps=0)
    with pytest.raises(BadInput, match="no experts to mix"):
        experts.search(lambda model: 0.0)
