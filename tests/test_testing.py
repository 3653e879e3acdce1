"""Every component that recombine ships keeps the contract, and the suites see where one does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from recombine.component import find, kinds, resolve
from recombine.encodings.base import Encoder
from recombine.encodings.identity import Identity, IdentityEncoder
from recombine.errors import BadInput
from recombine.families.base import Batch, Family, TaskScores
from recombine.families.hyperteacher import Hyperteacher, HyperteacherTeacher
from recombine.families.scan import Scan
from recombine.families.scenes import Scenes
from recombine.models.base import Edit, Trace, unedited
from recombine.models.mlp import MLP, MLPNetwork
from recombine.probes.base import Measured
from recombine.probes.certificate import CertificateOfSupport
from recombine.probes.scores import Scores
from recombine.probes.subnetwork import Subnetwork
from recombine.spaces.base import Space
from recombine.spaces.instances import InstanceSpace
from recombine.spaces.lists import ListSpace
from recombine.spaces.number_pairs import NumberPairs
from recombine.spaces.product import ProductSpace
from recombine.spaces.scan import ScanSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.certificate import Promise
from recombine.supports.cipher_stream import cipher_space
from recombine.supports.listed import Listed
from recombine.supports.random import Random
from recombine.testing import (
    check_component,
    check_encoding,
    check_family,
    check_model,
    check_probe,
    check_space,
    check_study,
    check_support,
)
from recombine.training import train

SUBSETS = SubsetSpace(modules=6, max_active=3)
TOYS = ProductSpace(factors={"colour": 2, "shape": 3, "place": 4})  # type: ignore[arg-type]
SPACES: list[Space] = [SUBSETS, TOYS]

EXAMPLES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("spaces", "subset"): [
        {"modules": 6, "max_active": 3},
        {"modules": 5, "max_active": 5, "min_active": 2},
        {"modules": 1000, "max_active": 20},
    ],
    ("spaces", "product"): [{"factors": {"colour": ["red", "blue"], "shape": 3}}, {"factors": {"a": 300, "b": 300}}],
    ("supports", "random"): [{"number": 12}, {"held_out": 0.4}, {"number": 8, "reserve": 6}],
    ("supports", "missing-part"): [{}, {"part": 1}],
    ("supports", "balanced"): [{}, {"number": 11, "reserve": 5}],
    ("supports", "disconnected"): [{}, {"groups": "published"}],
    ("supports", "popular"): [{}, {"parts": 2, "number": 8, "reserve": 3}],
    ("supports", "given"): [{"combinations": [[0, 2, 5], [5, 3, 1]], "weights": [1, 2], "reserve": 4}],
    ("supports", "planned"): [{"number": 8, "reserve": 3}, {"number": 4, "strength": 1}],
    ("supports", "optimal"): [{"number": 8, "criterion": one} for one in ("d", "e", "usage", "pair-poor")],
    ("supports", "varied"): [{"number": 8, "strategy": one} for one in ("L", "diagonal", "walk")],
    ("supports", "gaps"): [{"number": 8, "parts": 0, "pairs": 1}],
    ("supports", "missing-block"): [{"values": {"colour": 1}, "ranges": {"shape": 2}}, {"ranges": {"shape": 1}}],
    ("supports", "scan-split"): [{"split": "add-jump"}, {"share": 0.1}],
    ("supports", "compound-divergence"): [{"train": 400, "test": 100, "target": 0.2}],
    ("supports", "short-lists"): [{"longest": 2, "number": 20, "reserve": 5}],
    ("supports", "hops"): [{"number": 60, "reserve": 20}],
    ("supports", "cipher-stream"): [{"words": 2, "lexicon": 8, "number": 300, "reserve": 4, "skew": 4}],
    ("supports", "small-factors"): [{"left": 1, "right": 1, "number": 20, "reserve": 5}],
    ("supports", "table-split"): [],  # It is about a table: tests/families/test_pairs.py.
    ("supports", "leading-instances"): [{"reserve": 2}],
    ("spaces", "lists"): [{"low": 0, "high": 2, "longest": 4}, {}],
    ("models", "decoder"): [{"width": 16, "layers": 1, "heads": 2, "repeats": 2, "tied_embeddings": False}],
    ("models", "recursive"): [{"cells": 6, "width": 16, "heads": 2, "updates": 2, "cycles": 2, "steps": 2}],
    ("models", "encoder-decoder"): [{"width": 16, "layers": 1, "heads": 2}],
    ("encodings", "unsaid"): [],  # It tells no combinations apart: tests/encodings/test_unsaid.py.
    ("encodings", "puzzle-identifier"): [],  # Only puzzles have identifiers: tests/families/test_arc.py.
    ("families", "arc"): [],  # A task tells the puzzle and not the pair of grids: tests/families/test_arc.py.
    ("supports", "episodes"): [],  # Its space is that of episodes: tests/supports/test_episodes.py.
    ("families", "hyperteacher"): [{"inputs": 3, "hidden": 4, "outputs": 2, "layers": 2}],
    ("families", "lookup"): [{"inputs": 3, "hidden": 4, "outputs": 2, "coefficients": "k-hot"}],
    ("models", "mlp"): [{"width": 8, "depth": 2}, {"widths": [7]}],
    ("models", "transformer"): [{"width": 16, "layers": 2, "heads": 2, "context": 4}],
    ("models", "hypernetwork"): [{"hidden": 8}, {"hidden": 8, "layer_norm": True}],
    ("models", "constructed"): [],  # It is built from a teacher: tests/models/test_constructed.py.
    ("models", "cppn"): [],  # So is this one: tests/models/test_cppn.py.
}
"""What to check besides a component's defaults, and instead of them where it has none."""
ELSEWHERE = {
    "families": (
        *("ciphers", "function-calls", "goals", "grammars", "grids", "lookup-goals", "objects", "odd-one-out", "pairs"),
        *("picture", "preferences", "problem", "scenes", "silhouettes", "sprites", "string-tasks", "topics"),
    ),
    "models": ("expert", "latent-decoder", "slot-attention", "slot-autoencoder", "syntactic-attention"),
}
"""Components whose own tests check the contract, on a space or at a size of their own: tests/families, tests/models."""
EXAMPLES |= {(room, kind): [] for room, kinds_apart in ELSEWHERE.items() for kind in kinds_apart}


OWN: dict[str, Space] = {
    **dict.fromkeys(
        ("varied", "missing-block", "corner"),
        ProductSpace(factors={"colour": 4, "shape": 5}),  # type: ignore[arg-type]
    ),
    **dict.fromkeys(("scan-split", "compound-divergence"), ScanSpace()),
    "short-lists": ListSpace(low=0, high=2, longest=4),
    "hops": ProductSpace(factors={"x1": 7, "x2": 7, "x3": 7}),  # type: ignore[arg-type]
    "cipher-stream": cipher_space(5, 4),
    "small-factors": NumberPairs(left=2, right=1),
    "leading-instances": InstanceSpace(number=80),
    "few-objects": ProductSpace(factors={"shape": 3, "colour": 3, "objects": ["1", "2", "3", "4"]}),  # type: ignore[arg-type]
}
"""The spaces of supports that exist on no other."""

SMALLER: dict[str, Space] = {"mazes": InstanceSpace(number=20), "sudoku": InstanceSpace(number=16)}
"""In place of a family's own space, where that takes long: every instance is solved."""

SIZES: dict[str, dict[str, int]] = {
    "unet": {"input_size": 3 * 8**2 + 1, "output_size": 3 * 8**2},
    "convnet": {"input_size": 8**2},
    "comparison": {"input_size": 4 * 3, "output_size": 4},
    "slot-attention": {"input_size": 3 * 8**2},
    "slot-autoencoder": {"input_size": 8**2, "output_size": 8**2},
}
"""Inputs and outputs of models that are not for all sizes."""


def shipped(room: str) -> dict[str, Any]:
    """Every component of a room by its name, so that a new one is checked without a change here."""
    return {
        f"{kind} {case}": find(room, kind)(**case) for kind in kinds(room) for case in EXAMPLES.get((room, kind), [{}])
    }


def on_spaces(room: str) -> dict[str, tuple[Any, Space]]:
    """Every component of a room on both spaces, or once on its own where it exists on no other."""
    made = {}
    for name, component in shipped(room).items():
        given = SMALLER.get(component.kind, getattr(component, "defaults", {}).get("space"))
        own = OWN.get(component.kind) if given is None else resolve("spaces", given)
        for space in SPACES if own is None else [own]:
            made[f"{name} {space.kind}"] = component, space
    return made


def check_all(checks: Mapping[str, Callable[[], None]]) -> None:
    """Make every check; the failure names each component that does not keep its contract."""
    wrong = []
    for name, check in checks.items():
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever a component raises, the others are checked too.
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_spaces():
    check_all({name: partial(check_space, space) for name, space in shipped("spaces").items()})


def test_supports():
    check_all({name: partial(check_support, kind, space) for name, (kind, space) in on_spaces("supports").items()})


def test_families():
    check_all({name: partial(check_family, family, space) for name, (family, space) in on_spaces("families").items()})


def encoded(encoding: Any, space: Space) -> tuple[Space, Family]:
    """The space and the family on which an encoding is checked."""
    if encoding.kind == "sentences":  # Sentences are about products, and tell no coefficients.
        return TOYS, Hyperteacher(inputs=3, hidden=4, outputs=2, coefficients="k-hot")
    if encoding.kind == "captions":  # Captions are of scenes.
        return resolve("spaces", Scenes().defaults["space"]), Scenes()
    if encoding.kind == "prompt":  # Prompts are those of families of sequences.
        return ScanSpace(), Scan()
    return space, Hyperteacher(inputs=3, hidden=4, outputs=2)


def test_encodings():
    cases = {
        # Once for an encoding that has a space of its own.
        f"{name} {own.kind}": (encoding, own, family)
        for name, encoding in shipped("encodings").items()
        for space in SPACES
        for own, family in [encoded(encoding, space)]
    }
    check_all({name: partial(check_encoding, *case) for name, case in cases.items()})


def test_models():
    models = shipped("models").items()
    check_all({name: partial(check_model, model, **SIZES.get(model.kind, {})) for name, model in models})


def test_configurations():
    components = shipped("objectives") | shipped("recipes") | shipped("probes")
    check_all({name: partial(check_component, component) for name, component in components.items()})


def test_every_offender_is_named():
    def broken() -> None:
        raise ValueError("wrong")

    with pytest.raises(AssertionError, match=r"(?s)first: ValueError: wrong.*third: ValueError"):
        check_all({"first": broken, "second": lambda: None, "third": broken})


class Biased(SubsetSpace):
    """Draws one combination too often."""

    kind: Literal["biased"] = "biased"  # type: ignore[assignment]

    def sample(self, key: Array) -> Array:
        row = super().sample(key)
        first = jnp.full(self.slots, self.width).at[0].set(0).astype(jnp.int32)
        return jnp.where(jax.random.bernoulli(key, 0.05), first, row)


class Unsorted(SubsetSpace):
    """Forgets to sort."""

    kind: Literal["unsorted"] = "unsorted"  # type: ignore[assignment]

    def sample(self, key: Array) -> Array:
        return super().sample(key)[::-1]


class Miscounted(SubsetSpace):
    """Believes to be larger than it is."""

    kind: Literal["miscounted"] = "miscounted"  # type: ignore[assignment]

    @property
    def size(self) -> int:
        return super().size + 1


class Generous(SubsetSpace):
    """Takes every row for a combination."""

    kind: Literal["generous"] = "generous"  # type: ignore[assignment]

    def contains(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows), bool)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Biased, "second_moment|uniform"),
        (Unsorted, "not sorted"),
        (Miscounted, "size says"),
        (Generous, "no constituent"),
    ],
)
def test_broken_spaces_are_seen(space: type[SubsetSpace], message: str):
    with pytest.raises(AssertionError, match=message):
        check_space(space(modules=6, max_active=3))


class Leaking(Random):
    """Holds one combination back from `contains` that its sampler draws."""

    kind: Literal["leaking"] = "leaking"  # type: ignore[assignment]

    def draw(self, space: Space, seed: int) -> Listed:
        support = super().draw(space, seed)
        support._set = Listed(space, support.rows[1:])._set
        return support


class Boastful(Random):
    """Promises more than it keeps."""

    kind: Literal["boastful"] = "boastful"  # type: ignore[assignment]

    def promises(self, space: Space) -> Promise:
        return Promise(unseen=3)


class Restless(Random):
    """Draws another support every time."""

    kind: Literal["restless"] = "restless"  # type: ignore[assignment]

    def draw(self, space: Space, seed: int) -> Listed:
        return super().draw(space, int(np.random.default_rng().integers(2**32)))


@pytest.mark.parametrize(
    ("support", "message"),
    [(Leaking, "does not contain"), (Restless, "one seed differ"), (Boastful, "unseen is 0, but 3 was promised")],
)
def test_broken_supports_are_seen(support: type[Random], message: str):
    with pytest.raises(AssertionError, match=message):
        check_support(support(number=12), SUBSETS)


class StuckTeacher(HyperteacherTeacher):
    """Shows the same inputs every time."""

    def batch(self, task: Any, key: Array, samples: int) -> Batch:
        return super().batch(task, jax.random.key(0), samples)


class PaddedTeacher(HyperteacherTeacher):
    """Gives coefficients to pads."""

    def task(self, row: Array, key: Array) -> Any:
        task = super().task(row, key)
        return type(task)(row, jnp.where(task.coefficients > 0, task.coefficients, 0.5), task.vector)


def taught_by(teacher: type[HyperteacherTeacher]) -> type[Hyperteacher]:
    """A family whose teacher is of this class."""

    class Taught(Hyperteacher):
        kind: Literal["taught"] = "taught"  # type: ignore[assignment]

        def draw(self, space: Space, key: Array) -> HyperteacherTeacher:
            drawn = super().draw(space, key)
            return teacher(space=space, shape=self, shared=drawn.shared, readout=drawn.readout)

    return Taught


class Backwards(Hyperteacher):
    """Its headline is an error, not a score."""

    kind: Literal["backwards"] = "backwards"  # type: ignore[assignment]

    def headline(self, scores: TaskScores) -> Array:
        return jnp.sum(jnp.asarray(scores["error"]))

    def metrics(self, scores: TaskScores) -> dict[str, float]:
        return {"error": float(np.sum(np.asarray(scores["error"])))}


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (taught_by(StuckTeacher), "the same inputs"),
        (taught_by(PaddedTeacher), "at pads"),
        (Backwards, "no better than zeros"),
    ],
)
def test_broken_families_are_seen(family: type[Hyperteacher], message: str):
    with pytest.raises(AssertionError, match=message):
        check_family(family(inputs=3, hidden=4, outputs=2), SUBSETS)


class SilentEncoder(IdentityEncoder):
    """Tells nothing."""

    def __call__(self, task: Any, teacher: Any, key: Array) -> Array:
        return jnp.zeros_like(task.vector)


class LongEncoder(IdentityEncoder):
    """Tells more than it said it would."""

    def __call__(self, task: Any, teacher: Any, key: Array) -> Array:
        return jnp.concatenate([task.vector, task.vector])


def encoded_by(encoder: Callable[[], Encoder]) -> type[Identity]:
    """An encoding whose encoder is of this class."""

    class Encoded(Identity):
        kind: Literal["encoded"] = "encoded"  # type: ignore[assignment]

        def draw(self, *given: Any) -> Any:
            return encoder()

    return Encoded


@pytest.mark.parametrize(
    ("encoder", "message"), [(SilentEncoder, "combinations have one code"), (LongEncoder, "size says")]
)
def test_broken_encodings_are_seen(encoder: Callable[[], Encoder], message: str):
    with pytest.raises(AssertionError, match=message):
        check_encoding(encoded_by(encoder)(), SUBSETS, Hyperteacher(inputs=3, hidden=4, outputs=2))


class Deaf(MLPNetwork):
    """Does not listen to the code."""

    def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
        return super().trace(jnp.zeros_like(code), inputs)


class Misnamed(MLPNetwork):
    """Takes a name that the probe needs."""

    def trace(self, code: Array, inputs: Array) -> tuple[Array, Trace]:
        return super().trace(code, inputs)[0], {"encoding": inputs}


class Fickle(MLPNetwork):
    """Gives other outputs when it is traced."""

    def __call__(self, code: Array, inputs: Array) -> Array:
        return 2 * self.trace(code, inputs)[0]


class Uneditable(MLPNetwork):
    """Shows every site to the edit and goes on with what it had."""

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        outputs, sites = super().trace(code, inputs)
        return outputs, {site: edit(site, values) for site, values in sites.items()}


class Unheard(MLPNetwork):
    """Leaves its last site out of the edit."""

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        return super().trace(code, inputs, lambda site, values: values if site == "hidden 2" else edit(site, values))


class Unedited(MLPNetwork):
    """Goes on with the edit and shows what was before it."""

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        return super().trace(code, inputs, edit)[0], super().trace(code, inputs)[1]


class Noisy(MLPNetwork):
    """Does something else when it is edited."""

    def trace(self, code: Array, inputs: Array, edit: Edit = unedited) -> tuple[Array, Trace]:
        outputs, sites = super().trace(code, inputs, edit)
        return outputs if edit is unedited else 2 * outputs, sites


def drawing(network: type[MLPNetwork]) -> type[MLP]:
    """A model whose networks are of this class."""

    class Drawing(MLP):
        kind: Literal["drawing"] = "drawing"  # type: ignore[assignment]

        def draw(self, *given: Any) -> MLPNetwork:
            return network(super().draw(*given).layers)

    return Drawing


class Growing(MLP):
    """Its shape depends on the key."""

    kind: Literal["growing"] = "growing"  # type: ignore[assignment]

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> MLPNetwork:
        width = 4 + int(jax.random.key_data(key)[-1])
        return MLP(width=width, depth=1).draw(code_size, input_size, output_size, key)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (drawing(Deaf), "code changes nothing"),
        (drawing(Misnamed), "may not be called"),
        (drawing(Fickle), "other outputs"),
        (drawing(Uneditable), "in place of 'hidden 1' change nothing"),
        (drawing(Unheard), "edit is given the sites"),
        (drawing(Unedited), "as it was before its edit"),
        (drawing(Noisy), "changes nothing changes the outputs"),
        (Growing, "differ in shape"),
    ],
)
def test_broken_models_are_seen(model: type[MLP], message: str):
    with pytest.raises(AssertionError, match=message):
        check_model(model(width=8, depth=2))


class Forgetful(MLP):
    """Does not write down all of itself."""

    kind: Literal["forgetful"] = "forgetful"  # type: ignore[assignment]

    def model_dump(self, **given: Any) -> dict[str, Any]:
        return {"kind": self.kind}


def test_a_configuration_that_does_not_reload_is_seen():
    with pytest.raises(AssertionError, match="own dump"):
        check_component(Forgetful(width=8))


class Short(Hyperteacher):
    """Its targets have one number, and it says three."""

    def draw(self, space: Space, key: Array) -> Any:
        teacher = super().draw(space, key)
        return ShortTeacher(space=space, shape=self, shared=teacher.shared, readout=teacher.readout)


class ShortTeacher(HyperteacherTeacher):
    def batch(self, task: Any, key: Array, samples: int) -> Batch:
        batch = super().batch(task, key, samples)
        return Batch(batch.inputs, batch.targets[:, :1], batch.mask)


def test_targets_of_another_shape_than_outputs_are_refused(tiny):
    family = Short(inputs=4, hidden=5, outputs=3)
    with pytest.raises(AssertionError, match=r"targets have shape \(8, 6, 1\), expected \(8, 6, 3\)"):
        check_family(family, SUBSETS)
    with pytest.raises(BadInput, match=r"shape \(4, 1\), the outputs of the network \(4, 3\)"):
        train(tiny(family=family), quiet=True)


class Wandering(Scores):
    """Gives other numbers each time."""

    calls: ClassVar[list[int]] = []

    def measure(self, setting: Any, network: Any) -> Measured:
        self.calls.append(1)
        return Measured({"r2_in": float(len(self.calls))}, {"a": [1]})


@pytest.mark.parametrize(
    ("summary", "columns", "message"),
    [
        ({"r2_in": 1.0}, {"a": [1], "b": [1, 2]}, "differ in length"),
        ({"surprise": 1.0}, {"a": [1]}, "does not declare surprise"),
        ({"r2_in": True}, {"a": [1]}, "expected a plain number"),
        ({}, {"a": [1]}, "no number"),
    ],
)
def test_broken_probes_are_seen(tiny, summary, columns, message):
    class Broken(Scores):
        def measure(self, setting: Any, network: Any) -> Measured:
            return Measured(summary, columns)

    with pytest.raises(AssertionError, match=message):
        check_probe(Broken(), tiny())
    with pytest.raises(AssertionError, match="a second measurement gives"):
        check_probe(Wandering(), tiny())


def test_probes_keep_the_contract(tiny):
    for probe in (Scores(combinations=8), CertificateOfSupport()):
        check_probe(probe, tiny())
    with pytest.raises(AssertionError, match="refuses this run"):
        check_probe(Subnetwork(), tiny())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"profiles": {}}, "has no profile"),
        ({"__doc__": "A statement."}, "expected a question"),
        ({"claims": lambda self: ()}, "no claim"),
    ],
)
def test_broken_studies_are_seen(changes, message):
    from recombine.studies.data_scaling import DataScaling

    broken = type("Broken", (DataScaling,), {"__module__": __name__, **changes})
    with pytest.raises(AssertionError, match=message):
        check_study(broken, run=False)
    check_study(DataScaling, run=False)
