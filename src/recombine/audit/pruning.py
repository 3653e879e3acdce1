"""Find the subnetwork of your own model that serves one kind of data, and see what the model loses without it.

Works on Equinox and on PyTorch modules. The weights stay as they are: only masks are trained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool

from recombine._show import text_table
from recombine.errors import BadInput

PARTS = ("whole", "subnetwork", "ablated")
START, TEMPERATURE = 0.05, 200.0

Loss = Callable[[Any, Any], Any]
"""A function of a model and a batch that gives a number to be made small."""


@dataclasses.dataclass(frozen=True, repr=False)
class PrunedModel:
    """What a mask keeps of a model, and the losses with and without it."""

    kept: Mapping[str, Bool[np.ndarray, ...]]
    """Which weights of each matrix belong to the subnetwork, by the name of the matrix."""
    losses: Mapping[str, Mapping[str, float]]
    """The loss of the `whole` model, of the `subnetwork` and of the `ablated` model, on `own` and on `other` data."""

    @property
    def share(self) -> float:
        """The share of all masked weights that are kept."""
        return sum(int(mask.sum()) for mask in self.kept.values()) / sum(mask.size for mask in self.kept.values())

    @property
    def specific(self) -> float:
        """How much more the model loses on its own data than on the other data without the subnetwork (difference of losses).

        Compare it with the same number for a model with random weights: masks find a subnetwork there as well.
        """
        lost = {side: self.losses["ablated"][side] - self.losses["whole"][side] for side in self.losses["whole"]}
        return lost["own"] - lost["other"]

    def __repr__(self) -> str:
        rows = [(part, ", ".join(f"{side} {loss:.4g}" for side, loss in self.losses[part].items())) for part in PARTS]
        return f"subnetwork of {self.share:.1%} of the weights; losses:\n{text_table(rows)}"


def subnetwork(
    model: Any, loss: Loss, own: Any, other: Any, *, steps: int = 500, learning_rate: float = 0.01, weight: float = 1.0
) -> PrunedModel:
    """Prune a trained model to the subnetwork that serves some data, by continuous sparsification.

    One mask per weight of every matrix is trained on `own`, with the share of weights that are kept as a penalty.

    Args:
        model: An Equinox or a PyTorch module. It is not changed.
        loss: Called with a model and a batch; gives a scalar (a JAX array or a PyTorch tensor).
        own: A batch of the data that the subnetwork is for.
        other: A batch of other data, to see what the model loses without the subnetwork.
        steps: Steps in which the masks are trained.
        learning_rate: Of the masks.
        weight: The weight of the penalty: larger ones keep fewer weights.

    Returns:
        The masks, and the losses of the whole model, of the subnetwork and of the model without it.

    Example:
        ```python
        def loss(model, batch):
            return jnp.mean((jax.vmap(model)(batch["x"]) - batch["y"]) ** 2)

        pruned = rc.subnetwork(model, loss, own=red_squares, other=blue_discs)
        pruned.losses["ablated"]
        ```
    """
    if steps < 1 or learning_rate <= 0 or weight < 0:
        given = f"steps={steps}, learning_rate={learning_rate}, weight={weight}"
        raise BadInput(f"A mask needs at least one step, a positive learning rate and no negative weight; got {given}.")
    settings = {"steps": steps, "learning_rate": learning_rate, "weight": weight}
    if any(cls.__module__.split(".")[0] == "torch" for cls in type(model).__mro__):
        return _of_torch(model, loss, own, other, **settings)
    return _of_equinox(model, loss, own, other, **settings)


def _refuse_without_matrices(names: list[str]) -> None:
    if not names:
        raise BadInput("The model has no matrix to mask.", fix="give a module with weights of two or more axes")


def _of_equinox(
    model: Any, loss: Loss, own: Any, other: Any, *, steps: int, learning_rate: float, weight: float
) -> PrunedModel:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    from recombine.models.base import leaf_name
    from recombine.models.masked import logits_for, mean, times

    logits = logits_for(model, START)
    _refuse_without_matrices([leaf_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(logits)])
    adam = optax.adam(learning_rate)

    def cost(logits: Any, temperature: Any) -> Any:
        soft = jax.tree.map(lambda logit: jax.nn.sigmoid(temperature * logit), logits)
        return jnp.asarray(loss(times(model, soft), own)) + weight * mean(soft)

    @eqx.filter_jit
    def train(logits: Any) -> Any:
        def step(carry: Any, number: Any) -> tuple[Any, None]:
            logits, state = carry
            gradient = jax.grad(cost)(logits, TEMPERATURE ** (number / steps))
            updates, state = adam.update(gradient, state)
            return (optax.apply_updates(logits, updates), state), None

        return jax.lax.scan(step, (logits, adam.init(logits)), jnp.arange(steps))[0][0]

    logits = train(logits)
    kept = jax.tree.map(lambda logit: logit > 0, logits)
    parts = {
        "whole": model,
        "subnetwork": times(model, kept),
        "ablated": times(model, jax.tree.map(jnp.logical_not, kept)),
    }
    names = {leaf_name(path): np.asarray(mask) for path, mask in jax.tree_util.tree_leaves_with_path(kept)}
    return PrunedModel(names, {part: _losses(loss, of, own, other) for part, of in parts.items()})


def _of_torch(
    model: Any, loss: Loss, own: Any, other: Any, *, steps: int, learning_rate: float, weight: float
) -> PrunedModel:
    import copy

    import torch
    from torch.nn.utils import parametrize

    class Mask(torch.nn.Module):
        """A weight times its mask."""

        def __init__(self, like: Any) -> None:
            super().__init__()
            self.logits = torch.nn.Parameter(torch.full_like(like, START))
            self.mode, self.temperature = "soft", 1.0

        def forward(self, value: Any) -> Any:
            if self.mode == "whole":
                return value
            if self.mode == "soft":
                return value * torch.sigmoid(self.temperature * self.logits)
            return value * ((self.logits > 0) == (self.mode == "subnetwork")).to(value.dtype)

    model = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    masks: dict[str, Mask] = {}
    for name, module in list(model.named_modules()):
        for own_name, parameter in list(module.named_parameters(recurse=False)):
            if parameter.ndim > 1 and parameter.is_floating_point():
                mask = Mask(parameter)
                parametrize.register_parametrization(module, own_name, mask, unsafe=True)
                masks[f"{name}.{own_name}" if name else own_name] = mask
    _refuse_without_matrices(list(masks))
    logits = [mask.logits for mask in masks.values()]
    adam = torch.optim.Adam(logits, lr=learning_rate)
    total = sum(each.numel() for each in logits)
    for number in range(steps):
        temperature = TEMPERATURE ** (number / steps)
        for mask in masks.values():
            mask.temperature = temperature
        share = sum(torch.sigmoid(temperature * each).sum() for each in logits) / total
        adam.zero_grad()
        (loss(model, own) + weight * share).backward()
        adam.step()
    losses = {}
    for part in PARTS:
        for mask in masks.values():
            mask.mode = part
        with torch.no_grad():
            losses[part] = _losses(loss, model, own, other)
    return PrunedModel({name: (mask.logits > 0).cpu().numpy() for name, mask in masks.items()}, losses)


def _losses(loss: Loss, model: Any, own: Any, other: Any) -> dict[str, float]:
    found = {side: float(loss(model, batch)) for side, batch in (("own", own), ("other", other))}
    if not all(np.isfinite(list(found.values()))):
        raise BadInput(f"The loss is not finite: {found}.", fix="check the loss and the batches")
    return found
