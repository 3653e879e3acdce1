"""The bound of texts and what their latents say, measured on runs of no steps and on latents whose meaning is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recombine.overrides import apply
from recombine.probes import TextBound, TextLatents
from recombine.probes.routes.text_bound import others
from recombine.probes.routes.text_latents import moved_latents, probed
from recombine.testing import check_probe
from recombine.training import Setting
from recombine.training.config import RunConfig

RUN = RunConfig.model_validate(
    {
        "family": {"kind": "topics", "groups": 2, "members": 3, "length": 12},
        "space": {"kind": "product", "factors": {"topic": 4, "style": 4}},
        "model": {"kind": "latent-decoder", "width": 8, "layers": 1, "latents": 1, "latent_size": 2, "window": 2},
        "objective": {"kind": "latent-posterior", "fast_steps": 2},
        "recipe": {"kind": "fast", "steps": 0, "tasks": 4, "samples": 1},
    }
)


def test_bounds() -> None:
    check_probe(TextBound(texts=8), RUN)
    summary = TextBound(texts=32).measure(Setting(RUN), Setting(RUN).network()).summary
    # An untrained network is worse than the exact models, and each of these knows more than the next.
    assert summary["bits"] > summary["exact_reach"] > summary["exact"] > summary["exact_told"] > 0
    assert summary["excess"] == pytest.approx(summary["bits"] - summary["exact"])
    assert 0 < summary["divergence"] < summary["bits"]


def test_without_latents_the_bound_is_exact() -> None:
    config = apply(RUN, ["latents=0"])
    setting = Setting(config)
    summary = TextBound(texts=8).measure(setting, setting.network()).summary
    assert {"bits", "bits_in", "exact_reach"} <= set(summary) and "divergence" not in summary
    assert TextLatents().measure(setting, setting.network()).refused


def test_latents_probe() -> None:
    check_probe(TextLatents(draws=2, texts=8), RUN)


GRID = np.array([[topic, 4 + style] for topic in range(4) for style in range(4)])


def world(noise: float, seed: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Latents that are the sum of a vector of the topic and one of the style, and noise."""
    draw = np.random.default_rng(seed)
    parts = np.random.default_rng(99).normal(size=(8, 6))
    held_out = (GRID[:, 0] + GRID[:, 1]) % 4 == 0
    rows = {"trained": np.repeat(GRID[~held_out], 8, axis=0)}
    rows |= dict.fromkeys(("test", "validation"), np.repeat(GRID[held_out], 8, axis=0))
    fits = {}
    for region, some in rows.items():
        vector = np.zeros((len(some), 8))
        np.put_along_axis(vector, some, 1, axis=1)
        latents = vector @ parts + noise * draw.normal(size=(len(some), 6))
        fits[region] = {"vector": vector, "latents": latents.reshape(len(some), 1, 2, 3)}
    return fits, rows


def test_additive_latents_are_read_and_composed() -> None:
    fits, rows = world(0.01)
    read = probed(fits, rows["trained"], 4, seed=0)
    assert read["named_topic"] == read["named_style"] == 1 and read["r2_topic"] > 0.95 and read["r2_random"] < 0.7
    moved = moved_latents(fits, rows)
    for name in ("own", "same", "composed"):
        np.testing.assert_allclose(moved[name], fits["test"]["latents"], atol=0.1)
    assert np.abs(moved["other"] - moved["own"]).mean() > 0.3 and not moved["none"].any()


def test_noise_is_not_read() -> None:
    fits, rows = world(100.0)
    read = probed(fits, rows["trained"], 4, seed=0)
    assert max(read["r2_topic"], read["r2_style"], read["r2_random"]) < 0.2 and read["named_topic"] < 0.6


def test_latents_are_moved_from_the_right_texts() -> None:
    """Latents that are the numbers of topic and style say where they come from."""
    _, rows = world(0.0)
    fits: dict[str, Any] = {
        region: {"vector": np.eye(8)[some].sum(1), "latents": some.reshape(-1, 1, 1, 2).astype(float)}
        for region, some in rows.items()
    }
    moved = moved_latents(fits, rows)
    for name, (topic, style) in {"same": (1, 1), "topic": (1, 0), "style": (0, 1), "other": (0, 0)}.items():
        alike = moved[name].reshape(-1, 2) == rows["test"]
        np.testing.assert_array_equal(alike, np.broadcast_to([topic, style], alike.shape))


def test_others_differ_in_both_factors() -> None:
    assert (others(GRID) != GRID).all()
    assert len(others(GRID[:1])) == 1
