"""The gallery: nearest images against brute force, and the detection of copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from recombine.errors import BadInput
from recombine.probes import gallery
from recombine.probes.gallery import Gallery, _summary, nearest, shades
from recombine.probes.tasks import over_tasks
from recombine.supports.random import Random
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


def test_the_nearest_is_the_nearest():
    rng = np.random.default_rng(0)
    images, among = rng.uniform(-1, 1, (7, 12)), rng.uniform(-1, 1, (20, 12))
    near, away = nearest(images, among)
    apart = cdist(images, among)
    np.testing.assert_array_equal(near, apart.argmin(1))
    np.testing.assert_allclose(away, apart.min(1) / 12**0.5)
    assert nearest(among[3:4], among)[0] == [3]


def test_shades_are_whole_numbers():
    assert shades(np.array([-1.0, 0.0, 1.0, 7.0])) == [0, 128, 255, 255]


def test_copies_are_detected():
    """Right images that lie on training images are all copied; images as far as rendered ones are one in twenty."""
    rng = np.random.default_rng(1)
    where = np.repeat(["trained", "held_out"], 2000)
    usual = rng.uniform(0.2, 0.4, 4000) + 0.2 * (where == "held_out")
    found = {"real whole": np.ones(4000), "noised whole": rng.integers(0, 2, 4000),
             "drawn whole": np.tile([1.0, 0.0], 2000)}  # fmt: skip
    right = found["drawn whole"] > 0
    expected = rng.uniform(0.4, 0.6, (2000, 4))
    same = _summary(found, where, usual, usual, expected)
    assert same["copied_right"] == pytest.approx(0.05, abs=0.02)
    assert same["copied_wrong"] == pytest.approx(0.05, abs=0.02)
    # As near as fresh images of trained combinations are: a network that falls back to these.
    fallen = _summary(found, where, np.where(right, usual, 0.3), usual, expected)
    assert fallen["copied_right"] == pytest.approx(0.05, abs=0.02)
    assert fallen["copied_wrong"] == 1.0
    assert (same["checker_error"], same["checker_error_noised"]) == (0.0, pytest.approx(0.5, abs=0.05))


def test_one_in_twenty_is_expected_of_few_images_too():
    rng = np.random.default_rng(2)
    few, shares = {"real whole": np.ones(8), "noised whole": np.ones(8), "drawn whole": np.ones(8)}, []
    where = np.full(8, "held_out")
    few["drawn whole"][5:] = 0
    for _ in range(2000):
        away, expected = rng.uniform(size=8), rng.uniform(size=(8, 16))
        shares.append(_summary(few, where, away, away, expected)["copied_right"])
    assert np.mean(shares) == pytest.approx(0.05, abs=0.01)


def test_every_combination_is_drawn(monkeypatch):
    # Small batches: padding costs as much as an image.
    monkeypatch.setattr(gallery, "over_tasks", lambda *arguments: over_tasks(*arguments[:6], batch=8))
    config = RunConfig.model_validate(
        {
            "family": "scenes",
            "space": {"kind": "product", "factors": {"shape": ["disc", "square"], "colour": ["red", "blue", "white"],
                                                     "size": ["small", "large"]}},
            "support": Random(number=6),
            "encoding": {"kind": "captions", "width": 8, "heads": 2},
            "model": {"kind": "unet", "width": 4, "condition": 8},
            "objective": {"kind": "flow-matching", "steps": 2},
        }
    )  # fmt: skip
    setting = Setting(config)
    found = Gallery(training_images=64).measure(setting, setting.network())
    assert sorted(found.columns["combination"]) == sorted(
        config.space.name(row) for row in np.stack(np.meshgrid([0, 1], [2, 3, 4], [5, 6]), -1).reshape(-1, 3)
    )
    assert found.columns["region"].count("trained") == 6
    assert {len(image) for image in found.columns["image"]} == {3 * 16 * 16}
    assert found.summary["checker_error"] == 0.0
    away = [
        a for a, region in zip(found.columns["distance"], found.columns["region"], strict=True) if region == "trained"
    ]
    assert set(away) == {0}


def test_families_without_images_are_refused(tiny):
    with pytest.raises(BadInput, match="shows images"):
        Gallery().measure(Setting(tiny()), Setting(tiny()).network())
