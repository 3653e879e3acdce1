"""Scores of a network that draws a picture: do its weights and its neurons respect the picture's mirror symmetry?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int, Shaped

from recombine.errors import BadInput

Mirror = Literal["x", "y"]
"""The coordinate whose sign the mirror changes: x swaps left and right, y swaps top and bottom."""
Maps = Float[np.ndarray, "place map"]
"""Values at every place of a square picture, row by row; one column per map."""

SAME = 0.99
"""Maps whose correlation is at least this, with either sign, count as one."""
FLAT = 1e-6
"""Maps with a smaller standard deviation are constant."""
NO_CHANGE = 1e-10
"""A smaller sum of squares is no change of the picture."""


def mirrored(maps: Shaped[np.ndarray, "place map"], mirror: Mirror = "x") -> Shaped[np.ndarray, "place map"]:
    """The maps in a mirror."""
    side = round(len(maps) ** 0.5)
    if side**2 != len(maps):
        raise BadInput(
            f"A picture is a square of places, row by row; got {len(maps)} places.", fix="use cppn.places(side)"
        )
    square = maps.reshape(side, side, -1)
    return (square[:, ::-1] if mirror == "x" else square[::-1]).reshape(maps.shape)


def odd_share(maps: Maps, mirror: Mirror = "x") -> float:
    """The share of the sum of squares that changes its sign in the mirror: 0 for even maps, 1 for odd ones, .5 for noise.

    Args:
        maps: The maps, taken together.
        mirror: The coordinate whose sign the mirror changes.
    """
    maps = np.asarray(maps, float)
    total = float((maps**2).sum())
    return float((((maps - mirrored(maps, mirror)) / 2) ** 2).sum()) / total if total else 0.0


def axis_of(picture: Maps) -> tuple[Mirror, float]:
    """The mirror about which a picture is more symmetric, and the odd share of its variance there."""
    centred = picture - picture.mean(axis=0)
    shares: dict[Mirror, float] = {"x": odd_share(centred, "x"), "y": odd_share(centred, "y")}
    mirror: Mirror = "x" if shares["x"] <= shares["y"] else "y"
    return mirror, shares[mirror]


def parity_purity(maps: Maps, mirror: Mirror = "x") -> Float[np.ndarray, " map"]:
    """How even or odd each map is: the larger of its even and odd share, 1 for a pure one and .5 for none.

    Args:
        maps: The maps of neurons.
        mirror: The coordinate whose sign the mirror changes.
    """
    odd = np.array([odd_share(maps[:, [number]], mirror) for number in range(maps.shape[1])])
    return np.maximum(odd, 1 - odd)


def distinct_maps(maps: Maps, same: float = SAME) -> Int[np.ndarray, " distinct"]:
    """The neurons whose map is new: not constant, and not that of an earlier neuron up to sign, scale and offset.

    Args:
        maps: The maps of neurons, in the order of the layers.
        same: The correlation from which two maps count as one.

    Returns:
        The numbers of these neurons, in order.
    """
    maps = np.asarray(maps, float)
    deviations = maps.std(axis=0)
    varying = np.flatnonzero(deviations > FLAT)
    scaled = (maps[:, varying] - maps[:, varying].mean(axis=0)) / (deviations[varying] * len(maps) ** 0.5)
    correlations = np.abs(scaled.T @ scaled)
    found: list[int] = []
    for number in range(len(varying)):
        if not found or correlations[number, found].max() < same:
            found.append(number)
    return varying[found]


def sweep_asymmetry(
    model: Any,
    inputs: Any,
    weights: Any = None,
    *,
    mirror: Mirror = "x",
    axis: int = 1,
    size: float = 0.1,
    draws: int = 128,
    seed: int = 0,
    picture: Callable[[np.ndarray], np.ndarray] | None = None,
) -> float:
    """How asymmetric a picture becomes when the weights that draw it are changed a little.

    A draw adds Gaussian noise to one row of a weight matrix: the outgoing weights of one unit. The share of the change of the
    picture that is odd in the mirror is 0 where the change is symmetric and .5 where it ignores the symmetry. The score is the
    mean over the draws that change the picture. It says something about networks that draw a symmetric picture.

    Args:
        model: An Equinox module that is mapped over `inputs`, a PyTorch module that takes all of them, or a function
            `model(weights, inputs)`.
        inputs: The places of a square picture, row by row, as the model takes them.
        weights: The weights of a function: any tree of arrays. None for the parameters of a module.
        mirror: The coordinate whose sign the mirror changes: `x` is the place in a row.
        axis: The axis of a matrix that counts the units it reads: 1 in `equinox.nn.Linear` and `torch.nn.Linear`, 0 where
            inputs are multiplied from the left.
        size: The standard deviation of the noise.
        draws: The number of draws. Matrices are drawn equally often, and the rows of a matrix too.
        seed: Of the draws.
        picture: What is shown of the outputs, such as `cppn.colours`; None for the outputs themselves.

    Returns:
        The score, from 0 to 1; NaN where no draw changes the picture.

    Example:
        ```python
        places = rc.cppn.places(64).astype("float32")
        network = eqx.nn.MLP(4, 1, 16, 2, key=jax.random.key(0))
        rc.sweep_asymmetry(network, places)
        ```
    """
    if weights is None:
        model, weights = _functional(model)
    leaves, structure = jax.tree.flatten(weights)
    matrices = [number for number, leaf in enumerate(leaves) if getattr(leaf, "ndim", 0) == 2]
    if not matrices:
        raise BadInput("The model has no weight matrix to change.", fix="give weights with two axes")

    def drawn(some: list[Any]) -> np.ndarray:
        outputs = _numpy(model(jax.tree.unflatten(structure, some), inputs)).astype(float)
        outputs = outputs.reshape(len(inputs), -1)
        return outputs if picture is None else picture(outputs)

    before, chosen = drawn(leaves), np.random.default_rng(seed)
    shares = []
    for _ in range(draws):
        number = matrices[chosen.integers(len(matrices))]
        noise = np.zeros(tuple(leaves[number].shape), np.float32)
        row = np.moveaxis(noise, axis, 0)[chosen.integers(noise.shape[axis])]
        row += size * chosen.standard_normal(row.shape)
        change = drawn([*leaves[:number], _added(leaves[number], noise), *leaves[number + 1 :]]) - before
        if (change**2).sum() > NO_CHANGE:
            shares.append(odd_share(change, mirror))
    return float(np.mean(shares)) if shares else float("nan")


def few_weights(
    tangents: Float[np.ndarray, "weight number"], change: Float[np.ndarray, " number"], weights: int
) -> float:
    """The share of a change of the outputs that is left after the best few weights have moved, to first order.

    Orthogonal matching pursuit: the weight whose effect is most aligned with what is left is added, and the weights chosen so
    far are fitted again by least squares.

    Args:
        tangents: The derivative of all outputs by each weight.
        change: The wanted change of the outputs.
        weights: The number of weights that may move.

    Returns:
        The share of the sum of squares that is left: 1 where no weight helps, 0 where the change is reached.
    """
    lengths = np.linalg.norm(tangents, axis=1)
    units = tangents[lengths > FLAT] / lengths[lengths > FLAT, None]
    rest, found = change, []
    for _ in range(min(weights, len(units))):
        found.append(int(np.argmax(np.abs(units @ rest))))
        basis = units[found].T
        rest = change - basis @ np.linalg.lstsq(basis, change, rcond=None)[0]
    return float((rest**2).sum() / (change**2).sum())


def _functional(module: Any) -> tuple[Callable[[Any, Any], Any], Any]:
    """A module as a function of its weights and of inputs, and its weights."""
    if isinstance(module, eqx.Module):
        weights, rest = eqx.partition(module, eqx.is_inexact_array)
        return eqx.filter_jit(lambda some, inputs: jax.vmap(eqx.combine(some, rest))(inputs)), weights
    if hasattr(module, "named_parameters"):
        from torch.func import functional_call

        return functools.partial(_call_torch, functional_call, module), dict(module.named_parameters())
    raise BadInput(
        f"Expected an Equinox or PyTorch module, got {type(module).__name__}.",
        fix="give the weights too, and a function model(weights, inputs)",
    )


def _call_torch(functional_call: Any, module: Any, weights: Any, inputs: Any) -> Any:
    import torch

    with torch.no_grad():
        return functional_call(module, weights, (torch.as_tensor(inputs),))


def _added(leaf: Any, noise: np.ndarray) -> Any:
    """A weight matrix plus noise, of the matrix's own type."""
    if hasattr(leaf, "detach"):
        return leaf.detach() + leaf.new_tensor(noise)
    return leaf + noise.astype(leaf.dtype)


def _numpy(outputs: Any) -> np.ndarray:
    return outputs.detach().cpu().numpy() if hasattr(outputs, "detach") else np.asarray(outputs)
