"""Pictures as tasks: the search runs once, and the pictures are those of the genome."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.cppn import CHANGES, Genome, Search, changed, places
from recombine.errors import BadInput
from recombine.families.picture import SPACE, Picture
from recombine.spaces.subset import SubsetSpace
from recombine.testing import check_family
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SMALL = Search(population=12, generations=6, depth=4, width=8, hidden=1)
FAMILY = Picture(side=12, search=SMALL)
BAND = Genome(activations=("identity",) * 4 + ("gaussian",), links=((1, 4, 2.0), (0, 4, 0.5)), outputs=(4,))


def test_conformance() -> None:
    check_family(FAMILY, SPACE)


def test_pictures_are_those_of_the_genome_and_its_changes() -> None:
    family = Picture(side=12, genome=BAND)
    teacher = family.draw(SPACE, jax.random.key(0))
    found = BAND.values(places(12))[:, [4]].reshape(12, 12, 1)
    wanted = [found, *(changed(found, change) for change in CHANGES)]
    np.testing.assert_allclose(teacher.pictures, np.stack(wanted).reshape(5, 144, 1), atol=1e-6)
    batch = teacher.batch(teacher.task(jnp.asarray(SPACE.row(("moved",))), jax.random.key(0)), jax.random.key(1), 144)
    np.testing.assert_allclose(batch.targets, wanted[1 + CHANGES.index("moved")].reshape(144, 1), atol=1e-6)
    np.testing.assert_allclose(batch.inputs, places(12), atol=1e-6)


def test_replicates_have_their_own_genomes_and_draws_are_those_of_the_compiled_program() -> None:
    settings = [Setting(RunConfig(family=FAMILY, seeds={"teacher": seed})) for seed in (0, 1, 0)]
    first, other, again = (np.asarray(setting.teacher.pictures) for setting in settings)
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_another_space_is_refused() -> None:
    with pytest.raises(BadInput, match="its own space"):
        FAMILY.check(SubsetSpace(modules=4, max_active=2))


def test_the_hash_covers_the_genome() -> None:
    runs = [RunConfig(family=Picture(genome=genome)) for genome in (BAND, BAND.replace(outputs=(4,)), None)]
    assert runs[0].run_id == runs[1].run_id != runs[2].run_id
    assert RunConfig.model_validate(runs[0].dump()) == runs[0]
