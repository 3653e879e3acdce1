"""The search for pictures, the choice from its archive, and changed pictures."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.cppn import CHANGES, Search, changed, dense, novelty_search, places
from recombine.cppn.changes import PART, part
from recombine.cppn.scores import axis_of
from recombine.cppn.search import chosen, contrast, descriptor, first_genome, novelty
from recombine.errors import BadInput

SMALL = Search(population=16, generations=15, hidden=2, depth=5, width=10)


def test_the_search_is_repeatable_and_seeds_differ():
    again = novelty_search.__wrapped__(SMALL, 0)
    assert novelty_search(SMALL, 0) == again and novelty_search(SMALL, 1) != again
    assert len(again) == SMALL.generations * SMALL.archived + SMALL.population


def test_every_network_is_within_the_limits_and_structure_grows():
    archive = novelty_search(SMALL, 0)
    for genome in archive:
        network = dense(genome)
        assert network.depth <= SMALL.depth and network.width <= SMALL.width
    assert max(genome.hidden for genome in archive[: SMALL.archived]) <= 1
    assert max(genome.hidden for genome in archive) >= 3


def test_last_populations_are_more_varied_than_as_many_first_genomes():
    def variety(genomes):
        pictures = np.stack([descriptor(genome) for genome in genomes])
        return novelty(pictures, pictures, SMALL.neighbours).mean()

    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first = [first_genome(rng) for _ in range(SMALL.population)]
        gains.append(variety(novelty_search(SMALL, seed)[-SMALL.population :]) - variety(first))
    assert np.mean(gains) > 0


def test_novelty_is_the_mean_distance_to_the_nearest_others():
    pictures = np.array([[0.0], [1.0], [3.0], [7.0]])
    np.testing.assert_allclose(novelty(pictures, pictures, 2), [2.0, 1.5, 2.5, 5.0])


@pytest.mark.parametrize("seed", range(4))
def test_the_chosen_genome_is_the_most_novel_that_fulfils_the_conditions(seed):
    genome, archive = chosen(SMALL, seed), list(dict.fromkeys(novelty_search(SMALL, seed)))
    pictures = np.stack([descriptor(each) for each in archive])
    scores = novelty(pictures, pictures, SMALL.neighbours)
    good = [
        contrast(picture) >= SMALL.contrast
        and each.hidden >= SMALL.hidden
        and axis_of(picture[:, None])[1] <= SMALL.asymmetry
        for each, picture in zip(archive, pictures, strict=True)
    ]
    assert any(good), "the small search finds some"
    assert genome == archive[int(np.argmax(np.where(good, scores, -1)))]


def test_conditions_that_nothing_fulfils_are_given_up():
    impossible = SMALL.replace(asymmetry=0.0, hidden=1000)
    assert contrast(descriptor(chosen(impossible, 0))) >= SMALL.contrast


def test_stripes_have_no_contrast():
    stripes = np.tile([0.0, 1.0], 32)
    assert contrast(stripes) == contrast(stripes.reshape(8, 8).T.ravel()) == 0
    assert contrast(np.eye(8).ravel()) == pytest.approx(np.eye(8).std(), rel=0.01)


# Changed pictures


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    """A bright triangle, left of the middle, on a dark ground."""
    y, x = (places(30)[:, column].reshape(30, 30) for column in (0, 1))
    inside = (x > -0.6) & (x < 0.2) & (y < 0.5) & (y > x)
    return np.where(inside, 0.9, 0.1)[..., None]


def test_the_part_is_the_region_nearest_to_a_tenth(picture):
    assert np.array_equal(part(picture), picture[..., 0] > 0.5)
    assert abs(part(picture).mean() - PART) < 0.1


def test_recoloured(picture):
    new, region = changed(picture, "recoloured")[..., 0], part(picture)
    np.testing.assert_allclose(new[region], 0.4)
    np.testing.assert_allclose(new[~region], 0.1)
    dark = changed(1 - picture, "recoloured")[..., 0]
    np.testing.assert_allclose(dark[region], 0.6)


def test_both_parts_of_a_pair_are_recoloured():
    y, x = (places(30)[:, column].reshape(30, 30) for column in (0, 1))
    eyes = np.where((np.abs(np.abs(x) - 0.5) < 0.25) & (np.abs(y) < 0.35), 0.9, 0.1)[..., None]
    one, both = (changed(eyes, change)[..., 0] for change in ("recoloured", "both-recoloured"))
    assert np.array_equal(both, both[:, ::-1]) and not np.array_equal(one, one[:, ::-1])
    assert np.abs(both - eyes[..., 0]).sum() == pytest.approx(2 * np.abs(one - eyes[..., 0]).sum())


def test_moved_and_mirrored_parts_keep_their_pixels(picture):
    region, moved = part(picture), changed(picture, "moved")[..., 0] > 0.5
    assert np.array_equal(moved, np.roll(region, 6, axis=1)), "a fifth of a side, to the right, where there is room"
    turned = changed(picture, "mirrored")[..., 0] > 0.5
    assert turned.sum() == region.sum() and not np.array_equal(turned, region)
    rows, columns = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert any(np.array_equal(turned[box], np.flip(region[box], axis=axis)) for axis in (0, 1))


def test_every_change_changes_colour_pictures_too(picture):
    coloured = np.concatenate([0.3 * picture, 0.5 * picture, picture], axis=-1)
    for change in CHANGES:
        new = changed(coloured, change)
        assert new.shape == coloured.shape and np.abs(new - coloured).max() > 0.1


def test_a_flat_picture_has_no_parts():
    with pytest.raises(BadInput, match="no parts"):
        part(np.ones((8, 8, 1)))
