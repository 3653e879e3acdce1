"""Models of several makes are asked, and the answers are audited as any table."""

from __future__ import annotations

import importlib.util
import itertools
import zlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from recombine.audit.asking import space as asking
from recombine.audit.asking.ask import ask_model, audit_model
from recombine.audit.findings import Audit
from recombine.errors import BadInput
from recombine.models.mlp import MLP
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is an extra")
COLOURS, SHAPES = ["red", "green", "blue", "grey"], ["cube", "ball", "cone", "ring"]
SPACE = {"colour": COLOURS, "shape": SHAPES}
TRAINED = [one for one in itertools.product(COLOURS, SHAPES) if one not in {("red", "ring"), ("blue", "ball")}]


def picture(combination: dict[str, str], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One-hot parts with noise; the target is the numbers of both."""
    numbers = np.array([COLOURS.index(combination["colour"]), SHAPES.index(combination["shape"])])
    values = np.concatenate([np.eye(4)[one] for one in numbers])
    return values + 0.1 * rng.normal(size=8), numbers


def both_right(output: Any, target: np.ndarray) -> bool:
    return int(output[:4].argmax()) == target[0] and int(output[4:].argmax()) == target[1]


def fails_on_one(values: np.ndarray) -> np.ndarray:
    """Says what it sees, but takes a red ring for a green one."""
    values = np.array(values)
    if values[0] > 0.5 and values[7] > 0.5:
        values[1] = 2
    return values


class TestFunction:
    def test_what_it_cannot_do_is_in_the_table(self):
        asked = ask_model(fails_on_one, SPACE, picture, both_right, train=TRAINED, repeats=3)
        assert len(asked.frame) == 16 * 3
        means = asked.frame.groupby(["colour", "shape"])["score"].mean()
        assert means["red", "ring"] == 0
        assert (means.drop(("red", "ring")) == 1).all()
        assert asked.train is not None and len(asked.train) == 14
        assert asked.layers == {} and asked.notes == ()

    def test_inputs_follow_from_the_seed_and_the_combination(self):
        def first(values: np.ndarray) -> float:
            return float(values[0])

        def itself(output: float, target: Any) -> float:
            return output

        whole = ask_model(first, SPACE, picture, itself, repeats=2).frame
        again = ask_model(first, SPACE, picture, itself, repeats=2).frame
        assert whole.equals(again)
        part = ask_model(first, SPACE, picture, itself, repeats=2, combinations=TRAINED[3:6]).frame
        merged = part.merge(whole, on=["colour", "shape", "score"])
        assert len(merged) == len(part) == 6
        other = ask_model(first, SPACE, picture, itself, repeats=2, seed=1).frame
        assert not (other["score"] == whole["score"]).any()
        assert whole["score"].nunique() == len(whole)

    def test_failures_are_missing_with_a_note(self):
        def unreliable(values: np.ndarray) -> np.ndarray:
            if values[2] > 0.5:
                raise ConnectionError("timed out")
            return values if values[0] < 0.5 else np.zeros(2)

        asked = ask_model(unreliable, SPACE, picture, both_right, repeats=2)
        assert len(asked.frame) == 16, "blue raises an error, of red the score does"
        assert set(asked.frame["colour"]) == {"green", "grey"}
        assert "16 of 32 calls failed" in asked.notes[0]
        assert "ConnectionError: timed out" in asked.notes[0] and "ValueError" in asked.notes[0]
        assert asked.notes[1].startswith("Without any answer: red + cube, ")

    def test_if_all_fail_the_first_error_is_shown(self):
        def broken(values: np.ndarray) -> None:
            raise KeyError("endpoint")

        with pytest.raises(BadInput, match="All 64 calls failed, the first with KeyError: 'endpoint'") as caught:
            ask_model(broken, SPACE, picture, both_right)
        assert isinstance(caught.value.__cause__, KeyError)

    def test_several_at_once(self):
        sizes = []

        @jax.jit
        def batched(values: Any) -> Any:
            sizes.append(values.shape)
            return 2 * values

        asked = ask_model(batched, SPACE, picture, both_right, repeats=3, batch=16)
        assert sizes == [(16, 8)]
        assert (asked.frame["score"] == 1).all()
        words = ask_model(
            lambda texts: [text.upper() for text in texts],
            SPACE,
            lambda one, rng: (one["colour"], one["colour"].upper()),
            lambda output, target: output == target,
            batch=5,
        )
        assert (words.frame["score"] == 1).all()
        with pytest.raises(BadInput, match="8 inputs gave 3 outputs"):
            ask_model(lambda values: values[:3], SPACE, picture, both_right, batch=8)

    def test_a_bad_input_does_not_lose_its_batch(self):
        def strict(values: np.ndarray) -> np.ndarray:
            if (values[:, 2] > 0.5).any():
                raise RuntimeError("no blue here")
            return values

        asked = ask_model(strict, SPACE, picture, both_right, repeats=1, batch=16)
        assert len(asked.frame) == 12
        assert "4 of 16 calls failed" in asked.notes[0]

    def test_several_scores(self):
        scores = {"colour right": lambda output, target: output[:4].argmax() == target[0], "both": both_right}
        asked = ask_model(fails_on_one, SPACE, picture, scores, repeats=1)
        assert asked.scores == ("colour right", "both")
        assert asked.frame[["colour right", "both"]].dtypes.map(str).tolist() == ["float64"] * 2
        with pytest.raises(BadInput, match="Names of scores must differ from the factors"):
            ask_model(fails_on_one, SPACE, picture, {"shape": both_right})


@needs_torch
class TestTorch:
    torch = torch

    def module(self, hole: bool = True) -> Any:
        """Weights by hand: the first layer mixes the parts linearly, one unit sees the red ring and spoils its answer."""
        torch = self.torch
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 9), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(9, 8)
        )
        with torch.no_grad():
            model[0].weight[:8], model[0].bias[:8] = torch.eye(8), 0
            model[0].weight[8], model[0].bias[8] = torch.tensor([5.0, 0, 0, 0, 0, 0, 0, 5.0]), -8
            model[3].weight[:, :8], model[3].bias[:] = torch.eye(8), 0
            model[3].weight[:, 8] = torch.tensor([-2.0, 1, 0, 0, 0, 0, 0, 0]) * hole
        return model.train()

    def test_it_is_asked_and_looked_into(self):
        model = self.module()
        asked = ask_model(model, SPACE, picture, both_right, train=TRAINED, batch=10)
        means = asked.frame.groupby(["colour", "shape"])["score"].mean()
        assert means["red", "ring"] == 0 and (means.drop(("red", "ring")) == 1).all()
        assert {name: values.shape for name, values in asked.layers.items()} == {
            "0": (64, 9),
            "1": (64, 9),
            "3": (64, 8),
        }
        # Rows of the layers are those of the table.
        first = ask_model(model, SPACE, picture, lambda output, target: output[0], layers=["3"], batch=7)
        np.testing.assert_allclose(first.layers["3"][:, 0], first.frame["score"], rtol=1e-6)
        assert all(one.training for one in model.modules())
        assert not any(one._forward_hooks for one in model.modules())
        assert all(one.grad is None for one in model.parameters())

    def test_layers_by_name_or_none(self):
        model = self.module()
        assert ask_model(model, SPACE, picture, both_right, layers=[]).layers == {}
        assert list(ask_model(model, SPACE, picture, both_right, layers=["1"]).layers) == ["1"]
        with pytest.raises(BadInput, match="has no layer '7'"):
            ask_model(model, SPACE, picture, both_right, layers=["7"])

    def test_several_arguments_outputs_and_shapes(self):
        torch = self.torch

        class Two(torch.nn.Module):
            def forward(self, left: Any, right: Any = None) -> Any:
                return {"logits": torch.cat([left, right], 1), "none": None, "pair": (left, right)}

        def pair(one: Any, rng: np.random.Generator) -> Any:
            values, target = picture(one, rng)
            return (values[:4], values[4:]), target

        def named(one: Any, rng: np.random.Generator) -> Any:
            (left, right), target = pair(one, rng)
            return {"left": left, "right": right}, target

        for make in (pair, named):
            asked = ask_model(
                Two(), SPACE, make, lambda output, target: both_right(output["logits"], target), repeats=1
            )
            assert (asked.frame["score"] == 1).all()
        lengths = itertools.count(1)
        with pytest.raises(BadInput, match="differ in shape"):
            ask_model(Two(), SPACE, lambda one, rng: (np.ones(next(lengths)), None), both_right)

    def test_layers_of_unequal_width_are_left_out_with_a_note(self):
        torch = self.torch

        def grown(one: Any, rng: np.random.Generator) -> Any:
            values, target = picture(one, rng)
            return np.tile(values, (1 + COLOURS.index(one["colour"]), 1)), target

        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
        score = lambda output, target: float(output.mean())  # noqa: E731
        asked = ask_model(model, SPACE, grown, score, batch=1, pool="none", repeats=1)
        assert asked.layers == {} and "not of one width in every call: 0, 1." in asked.notes[0]
        assert set(ask_model(model, SPACE, grown, score, batch=1, repeats=1).layers) == {"0", "1"}


class TestEstimator:
    def test_predict_and_other_methods(self):
        rng = np.random.default_rng(0)
        every = [dict(zip(SPACE, one, strict=True)) for one in itertools.product(*SPACE.values())]
        inputs = np.stack([picture(one, rng)[0] for one in every * 5])
        labels = [one["colour"] for one in every * 5]
        model = LogisticRegression().fit(inputs, labels)

        def told(one: dict[str, str], rng: np.random.Generator) -> tuple[np.ndarray, str]:
            return picture(one, rng)[0], one["colour"]

        asked = ask_model(model, SPACE, told, lambda output, target: output == target)
        assert (asked.frame["score"] == 1).all()
        where = list(model.classes_)
        sure = ask_model(model, SPACE, told, lambda output, target: output[where.index(target)], method="predict_proba")
        assert sure.frame["score"].between(0.25, 1).all()
        with pytest.raises(BadInput, match="did you mean 'predict_proba'"):
            ask_model(model, SPACE, told, both_right, method="predict_prob")
        with pytest.raises(BadInput, match="does not expose its layers"):
            ask_model(model, SPACE, told, both_right, layers=["0"])

    def test_rows_by_name(self):
        frame = asking.named_space(SPACE).table(asking.named_space(SPACE).choose(None, 0))
        model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(pd.DataFrame(frame), frame["shape"])
        asked = ask_model(model, SPACE, lambda one, rng: (one, one["shape"]), lambda output, target: output == target)
        assert (asked.frame["score"] == 1).all()


class TestEquinox:
    def test_a_network_of_recombine(self):
        space = SubsetSpace(modules=5, max_active=2)
        network = MLP(width=12, depth=2).draw(5, 3, 2, jax.random.key(0))

        def make(combination: tuple[int, ...], rng: np.random.Generator) -> Any:
            code = np.isin(np.arange(5), combination).astype(np.float32)
            return (code, rng.normal(size=(4, 3)).astype(np.float32)), code

        def mean(output: np.ndarray, target: np.ndarray) -> float:
            assert output.shape == (4, 2)
            return output.mean()

        asked = ask_model(network, space, make, mean, repeats=3, train=lambda one: 4 not in one, batch=8)
        assert asked.sets == ("modules",) and asked.factors == ()
        assert len(asked.frame) == 15 * 3
        assert asked.train is not None and len(asked.train) == 10
        assert {name: values.shape for name, values in asked.layers.items()} == {
            "hidden 1": (45, 12),
            "hidden 2": (45, 12),
        }
        # The last row, which stood in a call that was filled up.
        (code, inputs), _ = make((3, 4), np.random.default_rng([0, zlib.crc32(b"3 + 4"), 2]))
        output, trace = network.trace(jnp.asarray(code), jnp.asarray(inputs))
        assert asked.frame["score"].iloc[-1] == pytest.approx(float(output.mean()), rel=1e-4)
        np.testing.assert_allclose(asked.layers["hidden 2"][-1], trace["hidden 2"].mean(0), rtol=1e-4, atol=1e-6)
        with pytest.raises(BadInput, match="did you mean 'hidden 1'"):
            ask_model(network, space, make, mean, layers=["hidden1"])

    def test_a_module_without_a_trace(self):
        model = eqx.nn.Sequential([eqx.nn.Linear(8, 8, key=jax.random.key(0)), eqx.nn.Dropout(0.5)])
        asked = ask_model(
            model, SPACE, lambda one, rng: (picture(one, rng)[0], None), lambda output, target: output.sum()
        )
        assert len(asked.frame) == 64 and asked.layers == {}
        assert not model.layers[1].inference, "the user's own module is as it was"
        with pytest.raises(BadInput, match="no method `trace`"):
            ask_model(model, SPACE, picture, both_right, layers=["a"])


class TestSpaces:
    def test_combinations_as_the_user_has_them(self):
        space = ProductSpace(factors=SPACE)
        mine = asking.named_space(SPACE)
        rows = space.enumerate()[[3, 9]]
        expected = [{"colour": "red", "shape": "ring"}, {"colour": "blue", "shape": "ball"}]
        assert mine.checked(rows) == expected
        assert mine.checked([("red", "ring"), {"shape": "ball", "colour": "blue"}, ("red", "ring")]) == expected
        assert asking.named_space(space).checked(rows) == expected
        subsets = asking.named_space(SubsetSpace(modules=6, max_active=3))
        assert subsets.checked([{4, 1}, (2,), [1, 4]]) == [(1, 4), (2,)]
        assert subsets.checked(np.array([[1, 4, 6]])) == [(1, 4)]
        numbers = asking.named_space({"size": [1, 2], "step": 3})
        assert numbers.choose(None, 0)[-1] == {"size": 2, "step": 2}, "values keep their type"
        assert numbers.checked([("1", "2")]) == [{"size": 1, "step": 2}]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ([("red", "rung")], "did you mean 'ring'"),
            ([("red",)], "a value for each of colour, shape"),
            (["red"], "a value for each of colour, shape"),
            ([{"color": "red", "shape": "ring"}], "did you mean 'colour'"),
            ([{"colour": "red"}], "Factor 'shape' has no value None"),
            (np.array([[0, 99]]), "not a row of this space"),
        ],
    )
    def test_wrong_ones_are_refused(self, given: Any, message: str):
        with pytest.raises(BadInput, match=message):
            asking.named_space(SPACE).checked(given)

    @pytest.mark.parametrize("space", [7, {}, {"a": "xyz"}, {"a": []}, {"a": [1, "1"]}, {"a": 1.5}])
    def test_wrong_spaces_are_refused(self, space: Any):
        with pytest.raises(BadInput):
            asking.named_space(space)

    def test_large_spaces_are_drawn_from(self):
        large = asking.named_space({f"f{n}": 10 for n in range(20)})
        drawn = large.choose(None, 0)
        assert len(drawn) == asking.MOST == len({tuple(one.values()) for one in drawn})
        subsets = asking.named_space(SubsetSpace(modules=60, max_active=5)).choose(30, 0)
        assert len(set(subsets)) == 30
        assert len(asking.named_space(SPACE).choose(7, 0)) == 7
        with pytest.raises(BadInput, match="nothing to compare"):
            asking.named_space(SPACE).choose(1, 0)


def test_other_mistakes_are_explained():
    with pytest.raises(BadInput, match="got a int"):
        ask_model(3, SPACE, picture, both_right)
    with pytest.raises(BadInput, match="an input and a target"):
        ask_model(fails_on_one, SPACE, lambda one, rng: np.zeros(8), both_right)
    with pytest.raises(BadInput, match="repeats=0"):
        ask_model(fails_on_one, SPACE, picture, both_right, repeats=0)
    with pytest.raises(BadInput, match="batch=0"):
        ask_model(fails_on_one, SPACE, picture, both_right, batch=0)
    with pytest.raises(BadInput, match="`train` names no combination"):
        ask_model(fails_on_one, SPACE, picture, both_right, train=[])


@needs_torch
def test_the_audit_of_a_torch_module():
    """The whole way: support, gap, and both parts read off the first layer."""
    model = TestTorch().module()
    said: list[str] = []
    found = audit_model(
        model, SPACE, picture, both_right, train=TRAINED, progress=lambda what, done=None: said.append(what)
    )
    assert isinstance(found, Audit)
    assert (found.source, found.combinations, found.rows) == ("Sequential", 16, 64)
    assert found.support is not None and found.support.size == 14
    assert found.support.unmet_count == 2
    (score,) = found.scores
    inside = score.decodability
    assert inside is not None
    sites = {(one.layer, one.factor): one for one in inside.sites}
    assert set(sites) == set(itertools.product(("0", "1", "3"), SPACE))
    assert sites["0", "colour"].score.estimate > 0.95
    assert said[0] == "asking the model"


def test_the_audit_of_sets_of_modules():
    space = SubsetSpace(modules=6, max_active=2)
    found = audit_model(
        lambda one: one,
        space,
        lambda one, rng: (set(one), None),
        lambda output, target: float(5 not in output or len(output) < 2),
        train=lambda one: 5 not in one,
        repeats=2,
    )
    assert found.combinations == 21
    assert found.support is not None and any("5" in one for one in found.support.unseen)


def test_answers_show_themselves_and_training_may_be_a_frame():
    answers = ask_model(fails_on_one, SPACE, picture, both_right, train=pd.DataFrame(TRAINED, columns=[*SPACE]))
    assert answers.train is not None and len(answers.train) == 14
    assert repr(answers) == "ModelAnswers: 64 answers (colour, shape, score), activations of 0 layers"
    assert "<td>red</td>" in answers._repr_html_()
