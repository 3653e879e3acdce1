"""Experts on your own PyTorch module: one scale per singular value of each matrix, trained by a reward, and mixed.

The weights of the module stay as they are. An expert is a few numbers, so many experts fit beside one module.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from recombine._show import text_table
from recombine.errors import BadInput, did_you_mean

Sample = Callable[[Any, Any], Any]
"""Gives answers of a module to a batch, drawn at random."""
LogProbability = Callable[[Any, Any, Any], Any]
"""Gives the log-probability of each answer: called with module, batch and answers."""
Reward = Callable[[Any, Any], Any]
"""Gives one number per answer: called with batch and answers."""


class ModuleExperts:
    """Experts on one module. Made by `rc.experts`."""

    def __init__(self, model: Any) -> None:
        import torch

        self.model = model
        self.scales: dict[str, dict[str, Any]] = {}
        """The scales of each expert, by the name of the matrix."""
        self._parts: dict[str, tuple[Any, Any]] = {}
        embeddings = {
            id(weight)
            for module in model.modules()
            if isinstance(module, torch.nn.Embedding | torch.nn.EmbeddingBag)
            for weight in module.parameters(recurse=False)
        }
        for name, weight in model.named_parameters():
            if weight.ndim < 2 or not weight.is_floating_point() or id(weight) in embeddings:
                continue
            matrix = weight.detach().flatten(1)
            if not torch.isfinite(matrix).all():
                raise BadInput(f"The weight {name!r} is not finite.", fix="load the weights of a trained module")
            left, values, right = torch.linalg.svd(matrix.float(), full_matrices=False)
            self._parts[name] = (left * values).to(weight.dtype), right.to(weight.dtype)
        if not self._parts:
            raise BadInput(
                "The module has no matrix to decompose.",
                fix="give a module with weights of two or more axes, such as torch.nn.Linear; embeddings are left as they are",
            )

    @property
    def parameters(self) -> int:
        """The number of scales of one expert."""
        return sum(len(right) for _, right in self._parts.values())

    def train(
        self,
        name: str,
        *,
        sample: Sample,
        log_probability: LogProbability,
        reward: Reward,
        batches: Iterable[Any],
        steps: int = 200,
        learning_rate: float = 0.02,
        divergence: float = 0.05,
        draws: int = 4,
    ) -> list[float]:
        """Train an expert by REINFORCE: more reward, and not too far from the module.

        Every step draws several answers to a batch. The baseline of an answer is the mean reward of the other answers to the
        same question. Other experts stay as they are.

        Args:
            name: The name of the expert. An expert of this name is trained anew.
            sample: Called with a module and a batch; gives random answers, one per question.
            log_probability: Called with a module, a batch and answers; gives one number per answer, with a gradient.
            reward: Called with a batch and answers; gives one number per answer. It needs no gradient.
            batches: The batches. They are used in turn.
            steps: Steps of training.
            learning_rate: Of the scales (Adam).
            divergence: The weight of the KL divergence from the module.
            draws: Answers to each question in a step.

        Returns:
            The mean reward in each step.

        Example:
            ```python
            experts = rc.experts(module)
            rewards = experts.train("sums", sample=sample, log_probability=log_probability, reward=reward, batches=[batch])
            expert = experts.mix({"sums": 1.0})  # a module like yours
            ```
        """
        import torch

        if steps < 1 or draws < 2 or learning_rate <= 0 or divergence < 0:
            given = f"steps={steps}, draws={draws}, learning_rate={learning_rate}, divergence={divergence}"
            raise BadInput(
                f"An expert needs at least one step, two draws, a positive learning rate and no negative divergence; got {given}."
            )
        known = list(batches)
        if not known:
            raise BadInput("There is no batch to train on.", fix="batches=[batch]")
        module, scales = self._with_scales()
        adam = torch.optim.Adam(list(scales.values()), lr=learning_rate)
        history: list[float] = []
        constant = True
        for batch in itertools.islice(itertools.cycle(known), steps):
            returns, chances = [], []
            for _ in range(draws):
                with torch.no_grad():
                    answers = sample(module, batch)
                    rewards = _numbers(reward(batch, answers), "reward")
                    before = _numbers(log_probability(self.model, batch, answers), "log-probability")
                own = log_probability(module, batch, answers)
                told = _numbers(own, "log-probability")
                if not len(rewards) == len(told) == len(before):
                    raise BadInput(
                        f"{len(rewards)} rewards were given for {len(told)} answers.", fix="give one reward per answer"
                    )
                returns.append((rewards, rewards - divergence * (told - before)))
                chances.append(own)
            rewards = torch.stack([each for each, _ in returns])
            history.append(float(rewards.mean()))
            constant = constant and bool((rewards == rewards.flatten()[0]).all()) and history[-1] == history[0]
            if constant and len(history) >= min(steps, len(known)):
                raise BadInput(
                    f"The reward is the same for all {rewards.numel() * len(history)} answers ({history[-1]:g}): there is nothing to learn.",
                    fix="check the reward, draw more answers, or begin with a module that is right at times",
                )
            total = torch.stack([each for _, each in returns])
            others = (total.sum(dim=0, keepdim=True) - total) / (draws - 1)
            adam.zero_grad()
            (-((total - others).detach() * torch.stack(chances)).mean()).backward()
            adam.step()
        self.scales[name] = {matrix: scale.detach().clone() for matrix, scale in scales.items()}
        return history

    def mix(self, weights: Mapping[str, float]) -> Any:
        """A copy of the module with a mixture of experts in its weights.

        The scales are 1 + sum of weight x (scale - 1) over experts: weight 1 for one expert is that expert, and without experts
        it is the module itself.

        Args:
            weights: How much of each expert is used, by name.

        Returns:
            A module of the same class, with ordinary weights.
        """
        import torch

        for name, weight in weights.items():
            if name not in self.scales:
                raise BadInput(f"There is no expert {name!r}.", fix=did_you_mean(name, self.scales))
            if not np.isfinite(weight):
                raise BadInput(f"The weight of the expert {name!r} is {weight}.", fix="give a finite number")
        module = copy.deepcopy(self.model)
        with torch.no_grad():
            for matrix, parameter in module.named_parameters():
                if matrix in self._parts:
                    change = sum(weight * (self.scales[name][matrix] - 1) for name, weight in weights.items())
                    if isinstance(change, torch.Tensor):
                        left, right = self._parts[matrix]
                        parameter += ((left * change) @ right).reshape(parameter.shape)
        return module

    def search(self, score: Callable[[Any], float], *, population: int = 16, rounds: int = 8, seed: int = 0) -> Any:
        """Find weights of the experts for new data, by the cross-entropy method.

        Args:
            score: Called with a module; gives a number, higher is better, such as the score on a few examples.
            population: Mixtures in each round.
            rounds: Rounds.
            seed: Draws the mixtures.

        Returns:
            The weights by name, for `mix`. They are at least as good, by `score`, as each single expert and as the module.
        """
        import torch

        from recombine.probes.routes.search import search_weights

        names = list(self.scales)
        if not names:
            raise BadInput("There are no experts to mix.", fix="train some first")

        def scores(rows: Any) -> Any:
            with torch.no_grad():
                return np.array([float(score(self.mix(dict(zip(names, row, strict=True))))) for row in rows])

        weights, _ = search_weights(scores, len(names), population=population, rounds=rounds, seed=seed)
        return dict(zip(names, weights.tolist(), strict=True))

    def _with_scales(self) -> tuple[Any, dict[str, Any]]:
        """A copy of the module with scales of one, which are its only trained parameters."""
        import torch
        from torch.nn.utils import parametrize

        class Scaled(torch.nn.Module):
            """A matrix plus its change by scales of its singular values."""

            def __init__(self, left: Any, right: Any) -> None:
                super().__init__()
                self.left, self.right = (torch.nn.Parameter(part, requires_grad=False) for part in (left, right))
                self.scales = torch.nn.Parameter(torch.ones_like(right[:, 0]))

            def forward(self, value: Any) -> Any:
                return value + ((self.left * (self.scales - 1)) @ self.right).reshape(value.shape)

        module = copy.deepcopy(self.model)
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        scales = {}
        for name, (left, right) in self._parts.items():
            owner, _, own = name.rpartition(".")
            scaled = Scaled(left, right)
            parametrize.register_parametrization(module.get_submodule(owner), own, scaled, unsafe=True)
            scales[name] = scaled.scales
        return module, scales

    def __repr__(self) -> str:
        rows = [("matrices", str(len(self._parts))), ("scales of an expert", str(self.parameters))]
        return f"experts: {', '.join(self.scales) or 'none yet'}\n{text_table(rows)}"


def experts(model: Any) -> ModuleExperts:
    """Decompose the matrices of a PyTorch module, to train experts on it and to mix them.

    Each matrix is W = U S V'. An expert has one scale per singular value (singular value fine-tuning, Sun et al. 2025), so it
    has few parameters, and experts do not change each other. Convolutions are matrices of output channels; embeddings are left as they are.

    Args:
        model: The module. It is not changed.

    Returns:
        An object with `train`, `mix` and `search`.

    Example:
        ```python
        experts = rc.experts(module)
        experts.train("sums", sample=sample, log_probability=log_probability, reward=reward, batches=[batch])
        module_for_sums = experts.mix({"sums": 1.0})
        ```
    """
    if not any(cls.__module__.split(".")[0] == "torch" for cls in type(model).__mro__):
        raise BadInput(
            f"Experts need a PyTorch module, got {type(model).__name__}.",
            fix="give a torch.nn.Module; for runs of recombine there is model=expert",
        )
    return ModuleExperts(model)


def _numbers(values: Any, what: str) -> Any:
    """One finite number per answer, without a gradient."""
    import torch

    numbers = torch.as_tensor(values).detach().float().flatten()
    if not torch.isfinite(numbers).all():
        raise BadInput(f"A {what} is not finite: {numbers[~torch.isfinite(numbers)][0]}.", fix=f"check the {what}")
    return numbers
