"""A training step of the 2-layer, width-128 decoder against bare products, and against a plain PyTorch loop of the same model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from engine import STEPS, chunk
from measuring import row, side_by_side
from recombine.models.decoder import Decoder
from recombine.recipes.paper import Paper
from recombine.training.config import RunConfig

TASKS = 128
TURNS = 5


def config() -> RunConfig:
    """Maximum sums: 8 tokens of prompt, 17 of answer."""
    return RunConfig.model_validate(
        {
            "family": "maximum-sum",
            "model": Decoder(width=128, layers=2, heads=4),
            "recipe": Paper(tasks=TASKS, samples=1),
            "validation_tasks": 1,
        }
    )


def sequences() -> None:
    """Tokens a second, all of them counted that are computed: those of prompts and pads as well."""
    given = config()
    tokens = TASKS * (given.family.input_size + given.encoding.size(given.space, given.family))
    calls = {"ours": chunk(given), "products": _products(given, tokens), "eager PyTorch": _torch(given, tokens)}
    if compiled := _torch_compiled(given, tokens):
        calls["compiled PyTorch"] = compiled
    seconds = dict(zip(calls, side_by_side(list(calls.values()), TURNS), strict=True))
    ours = seconds.pop("ours")
    share = seconds["products"] / ours
    ratios = [f"{value / ours:.2f} x as fast as {name}" for name, value in seconds.items() if "PyTorch" in name]
    row(
        "decoder, 2 x 128, 25 tokens",
        f"{', '.join(ratios)}; {share:.2f} of bare products",
        f"{tokens * STEPS / ours:,.0f} tokens a second; ms a step: ours {1000 * ours / STEPS:.1f}, "
        + ", ".join(f"{name} {1000 * value / STEPS:.1f}" for name, value in seconds.items()),
    )


def _products(given: RunConfig, tokens: int) -> Any:
    """Just the products of the weight matrices: forward, for the weights, for the layer below."""
    model = given.model
    assert isinstance(model, Decoder)
    width, wide = model.width, model.mlp_ratio * model.width
    vocabulary = given.family.output_size // given.family.input_size
    shapes = model.layers * [*4 * [(width, width)], (width, wide), (wide, width)] + [(width, vocabulary)]
    layers = [
        tuple(
            jax.random.normal(jax.random.key(place), shape) for shape in ((tokens, one), (one, other), (tokens, other))
        )
        for place, (one, other) in enumerate(shapes)
    ]

    @jax.jit
    def multiply(layers: Any) -> Any:
        return [each for x, w, g in layers for each in (x @ w, x.T @ g, g @ w.T)]

    return lambda: [multiply(layers) for _ in range(STEPS)]


def _torch_model(given: RunConfig) -> tuple[Any, Any]:
    """The same network in PyTorch: pre-norm, rotary positions, normed queries and keys, tied words; and its step."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    model = given.model
    assert isinstance(model, Decoder)
    width, heads = model.width, model.heads
    length = given.family.input_size + given.encoding.size(given.space, given.family)
    vocabulary = given.family.output_size // given.family.input_size
    half = width // heads // 2
    angles = torch.arange(length)[:, None] * 10_000.0 ** -(torch.arange(half) / half)
    cosine, sine = angles.cos(), angles.sin()

    def turned(values: Any) -> Any:
        one, other = values.chunk(2, dim=-1)
        return torch.cat([one * cosine - other * sine, one * sine + other * cosine], dim=-1)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
            self.query, self.key = nn.RMSNorm(2 * half), nn.RMSNorm(2 * half)
            self.project, self.mix = (nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, stream: Any) -> Any:
            batch = len(stream)
            parts = self.project(self.before(stream)).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            query, key = turned(self.query(parts[0])), turned(self.key(parts[1]))
            found = F.scaled_dot_product_attention(query, key, parts[2], is_causal=True)
            stream = stream + self.mix(found.transpose(1, 2).reshape(batch, length, width))
            return stream + self.down(F.relu(self.up(self.after(stream))))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(model.layers))
            self.last = nn.RMSNorm(width)

        def forward(self, tokens: Any) -> Any:
            stream = self.words(tokens)
            for block in self.blocks:
                stream = block(stream)
            return F.linear(self.last(stream), self.words.weight)

    torch.manual_seed(0)
    return Network(), torch.randint(3, vocabulary, (TASKS, length))


def _torch(given: RunConfig, tokens: int, compiled: bool = False) -> Any:
    import torch
    from torch.nn import functional as F

    network, batch = _torch_model(given)
    assert batch.numel() == tokens
    optimiser = torch.optim.AdamW(network.parameters(), fused=True)
    forward = torch.compile(network) if compiled else network

    def steps() -> Any:
        for _ in range(STEPS):
            optimiser.zero_grad()
            F.cross_entropy(forward(batch).flatten(0, 1), batch.flatten()).backward()
            optimiser.step()
        return jnp.zeros(())

    return steps


def _torch_compiled(given: RunConfig, tokens: int) -> Any | None:
    """The compiled loop, where PyTorch can compile here (it needs a C++ compiler)."""
    try:
        call = _torch(given, tokens, compiled=True)
        call()
    except Exception as error:  # noqa: BLE001 - whatever its compiler says, the bench goes on without it.
        row("  torch.compile", "does not work here", type(error).__name__)
        return None
    return call
