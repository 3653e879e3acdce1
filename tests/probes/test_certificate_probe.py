"""The certificate beside the scores: the numbers of the drawn support, by brute force over its combinations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recombine.models.mlp import MLP
from recombine.probes.certificate import CertificateOfSupport
from recombine.spaces.subset import SubsetSpace
from recombine.supports.base import SupportKind
from recombine.supports.disconnected import Disconnected
from recombine.supports.missing_part import MissingPart
from recombine.supports.random import Random
from recombine.supports.unpopular import Unpopular
from recombine.training.config import RunConfig, Seeds
from recombine.training.prepare import Setting

SPACE = SubsetSpace(modules=6, max_active=3)


@pytest.mark.parametrize(
    ("kind", "complete", "connected", "groups"),
    [(Random(number=12), 1, 1, 1), (MissingPart(), 0, 0, 2), (Disconnected(), 1, 0, 2), (Unpopular(), 1, 1, 1)],
    ids=lambda value: value.kind if isinstance(value, SupportKind) else "",
)
def test_the_numbers_are_those_of_the_drawn_support(kind, complete, connected, groups):
    config = RunConfig(space=SPACE, support=kind, model=MLP(width=4, depth=1), seeds=Seeds.replicate(3))
    setting = Setting(config)
    measured = CertificateOfSupport().measure(setting, setting.network())
    summary = measured.summary
    rows = SPACE.enumerate()
    trained = [set(SPACE.constituents(row)) for row in rows[setting.support.contains(rows)]]
    usage = [np.mean([part in one for one in trained]) for part in range(6)]
    pairs = [any({*pair} <= one for one in trained) for pair in itertools.combinations(range(6), 2)]
    assert (summary["complete"], summary["connected"], summary["groups"]) == (complete, connected, groups)
    assert summary["size"] == len(trained)
    assert summary["unseen"] == sum(share == 0 for share in usage)
    assert summary["pairs_met"] == pytest.approx(np.mean(pairs))
    assert summary["usage_min"] == pytest.approx(min(usage))
    assert summary["usage_max"] == pytest.approx(max(usage))
    np.testing.assert_allclose(measured.columns["usage"], usage)
    assert measured.columns["constituent"] == list(range(6))


def test_without_pairs_none_are_unmet():
    config = RunConfig(
        space=SubsetSpace(modules=6, max_active=1),
        support=Random(number=4, require_connected=False),
        model=MLP(width=4, depth=1),
    )
    setting = Setting(config)
    summary = CertificateOfSupport().measure(setting, setting.network()).summary
    assert summary["pairs_met"] == 1.0 and summary["unseen"] == 2
