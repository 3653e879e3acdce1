"""Steps that a network writes down: exact counts where the answers are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.maximum_sum import MaximumSum
from recombine.families.puzzles.einstein import Einstein
from recombine.graphs.labels import CORRECT, LABELS, LOCAL, node_labels
from recombine.language.vocabulary import END, PAD, SPECIAL
from recombine.objectives.next_token import NextToken
from recombine.probes.graph_steps import Answers, GraphSteps, in_vocabulary, regions_of
from recombine.probes.graph_steps.shapes import Shape, frequency_of_right, off_prediction, shapes_of, trained_subgraphs
from recombine.spaces.lists import ListSpace
from recombine.studies.subgraphs import Subgraphs
from recombine.supports.leading_instances import LeadingInstances
from recombine.supports.short_lists import ShortLists
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting

SPACE = ListSpace(longest=4)
FAMILY = MaximumSum(lists=SPACE)


@pytest.fixture(scope="module")
def configs() -> dict[str, RunConfig]:
    whole = {"formats": ("steps", "question only"), "first_seed": 0, "replicates": 1}
    study = Subgraphs.model_validate(Subgraphs.profiles["smoke"] | whole)
    return {labels["arm"]: config for config, labels in study.runs()}


class Told(NextToken):
    """Stands for a network that says what is right, but for the last token of its answers before the end: another word of
    the answer, or (`short`) nothing."""

    wrong: bool = False
    short: bool = False

    def evaluate(self, network: Any, codes: Any, batch: Any, key: Any, whole: bool = False) -> Any:
        targets = batch.targets
        place, end = jnp.arange(targets.shape[-1]), jnp.sum(targets != 0, axis=-1, keepdims=True) - 1
        if self.short and not whole:
            return jnp.where(place == end - 1, END, jnp.where(place == end, PAD, targets))
        # Entries are taken or left out: 1 or 2.
        other = 2 * SPECIAL + 2 * 5 + 3 - targets
        return jnp.where((place == end - 1) & self.wrong, other, targets)


def test_stated_values_are_read_by_position() -> None:
    rows = SPACE.of(np.array([[3, 2, 1], [1, 5, 1]]))
    # The best sums backwards, then the labels: 1, 2, 4 and 1, 2, 1; the second answer ends early.
    said = np.array([[1, 2, 4, 1, 2, 1], [1, 5, 5, 2, END - SPECIAL - 5, 0]]) + SPECIAL + 5
    graph, inputs, stated = FAMILY.stated(rows, said)
    labels = node_labels(graph, stated, inputs)
    assert {LABELS[one] for one in labels[0]} == {"correct"}
    assert [LABELS[one] for one in labels[1][3:]] == ["correct"] * 4 + ["local"] * 2


def test_lists_with_sums_beyond_training_are_left_out() -> None:
    support = ShortLists(longest=2, number=200, reserve=4)
    config = RunConfig.model_validate({"family": FAMILY, "space": SPACE, "support": support})
    rows = SPACE.of(np.array([[5, 0, 5, 5], [5, 0, 1, 0], [-5, 4, 0, -1]]))
    # Lists of two numbers have sums of up to 5, and nearly all of them are trained on.
    for steps in (True, False):
        setting = Setting(config.model_copy(update={"family": FAMILY.model_copy(update={"steps": steps})}))
        assert in_vocabulary(setting, rows).tolist() == [False, False, True]


def test_subgraphs_of_training_are_counted_as_often_as_they_are_shown() -> None:
    support = ShortLists(longest=3, number=50, reserve=4).draw(SPACE, 0)
    frequency = trained_subgraphs(FAMILY, support.rows, 1000 * support.shares)
    lengths = (support.rows < SPACE.width).sum(axis=1)
    # Every node of every list: entries, best sums and labels.
    assert frequency.counts.sum() == pytest.approx(3 * (1000 * support.shares * lengths).sum())


@pytest.mark.parametrize("problem", ["lists", "products", "puzzles"])
def test_right_answers_have_right_steps(configs: dict[str, RunConfig], problem: str) -> None:
    config = configs[problem]
    setting = Setting(config.model_copy(update={"objective": Told()}))
    found = GraphSteps(fewest=1).measure(setting, setting.network())
    for where in ("in", "beyond"):
        assert found.summary[f"exact_{where}"] == found.summary[f"result_{where}"] == 1
        assert found.summary[f"share_correct_{where}"] == 1
        assert found.summary[f"step_error_{where}"] == found.summary[f"flawed_{where}"] == 0
        assert np.isnan(found.summary[f"frequency_of_right_{where}"]), "no wrong step to compare with"
    columns = {name: np.array(values) for name, values in found.columns.items()}
    for part in ("answers", "result", "steps"):
        own = columns["part"] == part
        assert own.any() and (columns["number"] == columns["right"])[own].all()
    assert len(set(columns["beyond"])) == 2


def test_one_wrong_token_is_one_wrong_step(configs: dict[str, RunConfig]) -> None:
    config = configs["lists"]
    setting = Setting(config.model_copy(update={"objective": Told(wrong=True)}))
    found = GraphSteps(fewest=1).measure(setting, setting.network())
    columns = {name: np.array(values) for name, values in found.columns.items()}
    own = columns["part"] == "answers"
    assert found.summary["exact_in"] == found.summary["result_in"] == 0
    steps = columns["part"] == "steps"
    assert columns["local"][steps].sum() == columns["slips"][steps].sum() == columns["number"][own].sum()
    assert columns["unsound"][steps].sum() == columns["propagation"][steps].sum() == 0
    assert found.summary["short_in"] == 0 and columns["short"][own].sum() == columns["long"][own].sum() == 0
    assert 0 < found.summary["share_local_in"] < 0.5


def test_steps_of_answers_that_end_early_are_read_as_if_they_went_on(configs: dict[str, RunConfig]) -> None:
    config = configs["lists"]
    setting = Setting(config.model_copy(update={"objective": Told(short=True)}))
    found = GraphSteps(fewest=1).measure(setting, setting.network())
    columns = {name: np.array(values) for name, values in found.columns.items()}
    own = columns["part"] == "answers"
    assert (columns["short"] == columns["number"])[own].all() and found.summary["short_in"] == 1
    assert found.summary["exact_in"] == 0
    assert found.summary["share_correct_in"] == found.summary["share_correct_beyond"] == 1
    rows = SPACE.of(np.array([[3, 2, 1]] * 3))
    right = np.array([[1, 2, 4, 1, 2, 1, END - SPECIAL - 5, PAD - SPECIAL - 5]] * 3) + SPECIAL + 5
    said = right.copy()
    said[1, 1:] = [*right[1, 2:], PAD]  # Leaves a step out.
    said[2, -1] = SPECIAL  # Goes on.
    assert Answers(rows, said, right).excess_length.tolist() == [0, -1, 1]


def test_a_wrong_end_token_is_not_a_wrong_step() -> None:
    rows = SPACE.of(np.array([[3, 2, 1], [3, 2, 1], [3, 2, 1]]))
    right = np.array([[1, 2, 4, 1, 2, 1, END - SPECIAL - 5]] * 3) + SPECIAL + 5
    said = right.copy()
    said[0, -1] = SPECIAL  # Goes on where it should end.
    said[1, 1] = SPECIAL
    answers = Answers(rows, said, right)
    assert answers.correct.tolist() == [False, False, True]
    assert answers.result(FAMILY).all()
    assert answers.flawed(FAMILY).tolist() == [False, True, False]


def test_sizes_with_few_problems_are_left_out_of_means(configs: dict[str, RunConfig]) -> None:
    setting = Setting(configs["lists"])
    found = GraphSteps(fewest=1).measure(setting, setting.network())
    columns = {name: np.array(values) for name, values in found.columns.items()}
    own = (columns["part"] == "answers") & ~columns["beyond"].astype(bool)
    numbers = columns["number"][own]
    none = GraphSteps(fewest=int(numbers.max()) + 1).measure(setting, setting.network())
    assert np.isnan(none.summary["exact_in"]) and none.columns == found.columns
    some = GraphSteps(fewest=int(numbers.max())).measure(setting, setting.network())
    largest = numbers == numbers.max()
    wanted = (columns["right"][own] / numbers)[largest].mean()
    assert some.summary["exact_in"] == pytest.approx(wanted)


def test_later_puzzles_are_beyond_only_if_they_are_deeper(configs: dict[str, RunConfig]) -> None:
    config = configs["puzzles"]
    setting = Setting(config)
    assert isinstance(config.family, Einstein) and isinstance(config.support, LeadingInstances)
    rows = setting.support.reserved
    depths, trained = config.family.sizes(rows), config.family.sizes(setting.support.rows)  # type: ignore[attr-defined]
    found = regions_of(setting, rows)
    later = rows[:, 0] >= 4 * round(0.6 * 20)
    np.testing.assert_array_equal(found["beyond"], depths > trained.max())
    np.testing.assert_array_equal(found["in"], ~later & np.isin(depths, trained))
    assert not (found["in"] & found["beyond"]).any()
    assert (later & ~found["in"] & ~found["beyond"]).any(), "later ones that are no deeper are neither"


def test_products_of_other_sizes_are_beyond(configs: dict[str, RunConfig]) -> None:
    setting = Setting(configs["products"])
    rows = setting.support.reserved
    found, sizes = regions_of(setting, rows), setting.config.family.sizes(rows)  # type: ignore[attr-defined]
    assert set(sizes[found["in"]]) == {11, 12} and set(sizes[found["beyond"]]) == {22}


def test_steps_are_grouped_by_their_number_of_parents(configs: dict[str, RunConfig]) -> None:
    setting = Setting(configs["lists"])
    found = GraphSteps().measure(setting, setting.network())
    kinds = {
        (step, parents)
        for part, step, parents in zip(*(found.columns[name] for name in ("part", "step", "parents")), strict=True)
        if part == "steps"
    }
    assert kinds >= {("best sum", 1), ("best sum", 2), ("best sum", 3), ("label", 3), ("label", 4)}


def test_an_untrained_network_is_measured(configs: dict[str, RunConfig]) -> None:
    setting = Setting(configs["lists"])
    found = GraphSteps().measure(setting, setting.network())
    assert sum(found.summary[f"share_{label}_beyond"] for label in LABELS) == pytest.approx(1)
    assert found.summary["share_correct_beyond"] < 0.5 and not found.summary["exact_in"] > 0.2
    sizes, nodes = np.array(found.columns["size"]), np.array(found.columns["number"])
    steps = np.array(found.columns["part"]) == "steps"
    answers = np.array(found.columns["part"]) == "answers"
    assert set(sizes) == {2, 3, 4, 5}
    for size in (2, 3, 4, 5):
        own = answers & (sizes == size)
        assert nodes[steps & (sizes == size)].sum() == 2 * size * nodes[own].sum()


def test_answers_without_steps_have_only_results(configs: dict[str, RunConfig]) -> None:
    setting = Setting(configs["products_question"])
    found = GraphSteps().measure(setting, setting.network())
    assert set(found.columns["part"]) == {"answers", "result"}
    assert "exact_beyond" in found.summary and "bound_beyond" not in found.summary


def _labelled(shape: Shape, rng: np.random.Generator, error: float, recovery: float = 0.3) -> Shape:
    """Steps that go wrong and are mended at random, so often."""
    right = np.ones(shape.labels.shape, bool)
    for step in shape.graph.steps:
        sound = right[:, list(shape.graph.parents[step])].all(axis=1)
        right[:, step] = rng.random(len(right)) < np.where(sound, 1 - error, recovery)
    return dataclasses.replace(shape, labels=np.where(right, CORRECT, LOCAL))


def test_rates_predict_longer_lists_and_subgraphs_are_compared_at_equal_depth() -> None:
    """Two lengths whose errors are drawn: in the longer one they are as frequent, or there are none, or more."""
    rng = np.random.default_rng(0)
    shapes = []
    for length in (3, 4):
        rows = SPACE.of(rng.integers(-5, 6, (400, length)))
        said = np.zeros((400, 2 * length + 1), int)
        (one,) = shapes_of(FAMILY, length, rows, said)
        shapes.append(_labelled(one, rng, 0.1))
    assert abs(off_prediction(shapes)) < 0.02, "the same rates"
    better, worse = (_labelled(shapes[1], rng, error) for error in (0.0, 0.3))
    assert off_prediction([shapes[0], better]) > 0.1
    assert off_prediction([shapes[0], worse]) < -0.1
    assert np.isnan(off_prediction(shapes[:1]))
    known = trained_subgraphs(FAMILY, SPACE.of(rng.integers(-5, 6, (900, 3))), np.ones(900))
    assert abs(frequency_of_right(shapes, known)) < 0.2, "errors at random have nothing to do with training"


def test_other_families_are_refused() -> None:
    setting = Setting(RunConfig())
    with pytest.raises(BadInput, match="needs a family with computation graphs"):
        GraphSteps().measure(setting, setting.network())
