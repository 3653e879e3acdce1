"""The steps of graphs that a network writes down: exact counts where the answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.vocabulary import END, SPECIAL
from recombine.graphs.labels import LABELS, node_labels
from recombine.probes.graph_steps import GraphSteps, Lists, sayable, trained_subgraphs
from recombine.spaces.lists import ListSpace
from recombine.studies.subgraphs import Subgraphs
from recombine.supports.short_lists import ShortLists
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SPACE = ListSpace(longest=4)


def test_what_is_stated_is_read_by_place() -> None:
    rows = SPACE.of(np.array([[3, 2, 1], [1, 5, 1]]))
    # The best sums backwards, then the labels: 1, 2, 4 and 1, 2, 1; the second answer ends early.
    said = np.array([[1, 2, 4, 1, 2, 1], [1, 5, 5, 2, END - SPECIAL - 5, 0]]) + SPECIAL + 5
    lists = Lists.of(SPACE, rows, said, -5)
    labels = node_labels(lists.graph, lists.stated, lists.entries)
    assert {LABELS[one] for one in labels[0]} == {"correct"}
    assert [LABELS[one] for one in labels[1][3:]] == ["correct"] * 4 + ["local"] * 2


def test_lists_with_sums_beyond_training_are_left_out() -> None:
    rows = np.concatenate(
        [SPACE.of(np.array([[5, 0, 5, 5]])), SPACE.of(np.array([[5, 5, 0, 5], [-5, 4, 0, 4]]))]
    )
    # Lists of up to 3 numbers have sums of up to 10.
    assert sayable(SPACE, rows, 3).tolist() == [True, True, True]
    assert sayable(SPACE, rows, 2).tolist() == [False, False, False]
    assert sayable(
        ListSpace(longest=5), ListSpace(longest=5).of(np.array([[5, 0, 5, 0, 5]])), 4
    ).tolist() == [False]


def test_subgraphs_of_training_are_counted() -> None:
    support = ShortLists(longest=3, number=50, reserve=4).draw(SPACE, 0)
    frequency = trained_subgraphs(SPACE, support)
    lengths = (support.rows < SPACE.width).sum(axis=1)
    # Every node of every list: entries, best sums and labels.
    assert frequency.counts.sum() == 3 * lengths.sum()


def test_an_untrained_network_is_measured() -> None:
    config = Subgraphs.profile("smoke").runs()[0][0]
    setting = Setting(config)
    found = GraphSteps().measure(setting, setting.network())
    shares = [found.summary[f"share_{label}_beyond"] for label in LABELS]
    assert sum(shares) == pytest.approx(1)
    assert found.summary["share_correct_in"] < 0.5
    lengths = np.array(found.columns["length"])
    assert set(lengths) == {2, 3, 4}
    nodes = np.array(found.columns["nodes"])
    rows = setting.regions.rows("held_out", 10_000, "test")
    tested = (rows[sayable(SPACE, rows, 3)] < SPACE.width).sum(axis=1)
    for length in (2, 3, 4):
        assert nodes[lengths == length].sum() == 2 * length * (tested == length).sum()


def test_answers_without_steps_have_none_to_measure() -> None:
    runs = Subgraphs.profile("smoke").runs()
    config = next(config for config, labels in runs if labels["arm"] == "question only")
    setting = Setting(config)
    found = GraphSteps().measure(setting, setting.network())
    assert not found.summary and not found.columns["nodes"]


def test_other_families_are_refused() -> None:
    setting = Setting(RunConfig())
    with pytest.raises(BadInput, match="have none"):
        GraphSteps().measure(setting, setting.network())
