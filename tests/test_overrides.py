"""Overrides: `a.b=c` on any configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, ConfigDict

from recombine.component import field
from recombine.errors import BadInput
from recombine.families.lookup import Lookup
from recombine.models.mlp import MLP
from recombine.overrides import apply, field_names, parse_value, split, validate
from recombine.recipes.paper import Paper
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace
from recombine.supports.missing_part import MissingPart
from recombine.training.config import RunConfig, Seeds


@pytest.fixture(scope="session")
def config(tiny: Callable[..., RunConfig]) -> RunConfig:
    return tiny()


class Inner(BaseModel):
    """Two values."""

    model_config = ConfigDict(extra="forbid")

    size: int = 1
    names: tuple[str, ...] = ()


class Twins(BaseModel):
    """Two of a kind: their leaf names are ambiguous."""

    model_config = ConfigDict(extra="forbid")

    left: Inner = Inner()
    right: Inner = Inner()
    space: field("spaces", Space) = SubsetSpace(modules=4, max_active=2)  # type: ignore[valid-type]
    limit: float | None = 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1e-3", 1e-3),
        ("true", True),
        ("True", True),
        ("false", False),
        ("null", None),
        ("none", None),
        ("None", None),
        ("paper", "paper"),
        ("missing-part", "missing-part"),
        ("8,4", [8, 4]),
        ("8,", [8]),
        ("a,b", ["a", "b"]),
        ("[1, 2]", [1, 2]),
        ('{"kind": "mlp"}', {"kind": "mlp"}),
        ('"3"', "3"),
        ("", ""),
    ],
)
def test_values(text: str, value: Any):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@settings(derandomize=True)
@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(st.integers(), min_size=2))
def test_numbers_and_lists_are_read_as_they_are_written(value: Any):
    assert parse_value(",".join(map(str, value)) if isinstance(value, list) else repr(value)) == value


def test_name_and_value():
    assert split("a.b=c") == ("a.b", "c")
    assert split(" width = 8 ") == ("width", 8)
    assert split("name=a=b") == ("name", "a=b")


@pytest.mark.parametrize("bad", ["width", "=3", "", " = 3"])
def test_what_is_no_override(bad: str):
    with pytest.raises(BadInput, match="write name=value"):
        split(bad)


def test_leaf_names_and_full_names(config: RunConfig):
    short = apply(config, ["width=32", "learning_rate=0.5", "eval_every=7", "teacher=3"])
    assert short == apply(config, ["model.width=32", "recipe.learning_rate=0.5", "eval_every=7", "seeds.teacher=3"])
    assert (short.model.width, short.recipe.learning_rate, short.eval_every, short.seeds.teacher) == (32, 0.5, 7, 3)
    assert config.model.width == 8, "the configuration that was given stays as it is"
    assert apply(config, []) == config


def test_every_place_can_be_set_to_what_it_is(config: RunConfig):
    def at(place: str) -> Any:
        node = config.model_dump(mode="json")
        for step in place.split("."):
            node = node[step]
        return node

    names = [place for place, _ in field_names(config)]
    assert {"space", "space.modules", "seeds.init", "recipe.learning_rate", "target"} <= set(names)
    assert not any(name.endswith("kind") for name in names)
    for place in names:
        assert apply(config, [f"{place}={json.dumps(at(place))}"]) == config


def test_an_ambiguous_name():
    with pytest.raises(BadInput, match=r"'size' could mean left\.size or right\.size") as caught:
        apply(Twins(), ["size=3"])
    assert "full name" in str(caught.value)
    assert apply(Twins(), ["left.size=3"]).left.size == 3


@pytest.mark.parametrize(
    ("override", "hint"), [("widht=3", "'width'"), ("modle.width=3", "'model.width'"), ("zzzzzz=3", "known: ")]
)
def test_unknown_names_get_a_hint(override: str, hint: str, config: RunConfig):
    with pytest.raises(BadInput, match="nothing called") as caught:
        apply(config, [override])
    assert hint in str(caught.value)


def test_unknown_kinds_get_a_hint(config: RunConfig):
    with pytest.raises(BadInput, match="no family called 'lokup'") as caught:
        apply(config, ["family=lokup"])
    assert "'lookup'" in str(caught.value)


def test_kinds_come_first_wherever_they_stand(config: RunConfig):
    for order in (["support=missing-part", "part=2"], ["part=2", "support=missing-part"]):
        assert apply(config, order).support == MissingPart(part=2)
    changed = apply(config, ["layers=3", "recipe=paper", "family=lookup", "steps=9"])
    assert changed.family == Lookup(layers=3)
    assert changed.recipe == Paper(steps=9), "a new kind begins from its own defaults"


def test_a_field_of_the_kind_that_went_is_unknown(config: RunConfig):
    with pytest.raises(BadInput, match="nothing called 'number'"):
        apply(config, ["support=missing-part", "number=9"])


def test_whole_components(config: RunConfig):
    changed = apply(config, ['space={"kind": "product", "factors": {"a": 3, "b": 5}}'])
    assert isinstance(changed.space, ProductSpace)
    assert changed.space.levels == (3, 5)


def test_values_that_only_make_sense_together(config: RunConfig):
    changed = apply(config, ["max_active=9", "modules=20", "number=30"])
    assert changed.space == SubsetSpace(modules=20, max_active=9)


@pytest.mark.parametrize(
    "overrides",
    [
        ["space=product", 'factors={"a": 3, "b": 5}'],
        ["space=subset", "modules=8", "max_active=2"],
        ['space={"kind": "product", "factors": {"a": 3, "b": 4}}', "number=9"],
    ],
)
def test_a_kind_and_the_values_that_it_needs(overrides: list[str], config: RunConfig):
    assert apply(config, overrides) != config


def test_lists_and_none(tiny: Callable[..., RunConfig]):
    config = tiny(model=MLP(), target=0.5)
    assert apply(config, ["widths=8,4"]).model == MLP(widths=(8, 4))
    assert apply(config, ["widths=[8]"]).model == MLP(widths=(8,))
    assert apply(config, ["target=none"]).target is None
    twins = apply(Twins(), ["left.names=a,b", "limit=null"])
    assert (twins.left.names, twins.limit) == (("a", "b"), None)


@pytest.mark.parametrize(
    ("override", "place", "given"),
    [
        ("width=0", "model.width", "0"),
        ("width=wide", "model.width", "'wide'"),
        ("learning_rate=-1", "recipe.learning_rate", "-1"),
        ("seeds.teacher=-1", "seeds.teacher", "-1"),
        ("eval_every=0", "eval_every", "0"),
        ("target=2", "target", "2"),
        ("coefficients=all", "family.coefficients", "'all'"),
        ("modules=1", "space", "modules=1"),
        ("widths=8,8", "model", "either widths or width"),
        ("seeds=3", "seeds", "3"),
    ],
)
def test_bad_values_are_named_with_their_place(override: str, place: str, given: str, config: RunConfig):
    with pytest.raises(BadInput) as caught:
        apply(config, [override])
    assert place in str(caught.value)
    assert given in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("override", ["family=3", "family=none", "model={}"])
def test_what_cannot_be_a_component(override: str, config: RunConfig):
    with pytest.raises(BadInput, match=r"A component of (families|models) was given as"):
        apply(config, [override])


def test_errors_of_the_parts_together_are_in_words(config: RunConfig):
    with pytest.raises(BadInput, match="validation and test need at least one combination each"):
        apply(config, ["number=20"])


def test_plain_values_are_validated_alike():
    assert validate(Twins, {"limit": None}).limit is None
    with pytest.raises(BadInput, match=r"left\.size"):
        validate(Twins, {"left": {"size": "x"}})
    with pytest.raises(BadInput, match="nothing called 'middle'"):
        validate(Twins, {"middle": 1})


# replace: the same changes in Python


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_replace_changes_what_an_override_changes(config: RunConfig, data: st.DataObject):
    values = {
        "width": st.integers(-1, 64),
        "model.width": st.integers(1, 64),
        "learning_rate": st.floats(-0.1, 1, allow_nan=False),
        "teacher": st.integers(0, 2**64),
        "target": st.none() | st.floats(0, 1.2, allow_nan=False),
        "support": st.sampled_from(["missing-part", "random", "randm"]),
        "number": st.integers(3, 30),
        "recipe": st.sampled_from([{"kind": "paper", "steps": 9}, {"kind": "fast"}, {}, "paper"]),
        "steps": st.integers(0, 9),
        "widht": st.integers(),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(values)), max_size=4, unique=True))
    changes = {name: data.draw(values[name]) for name in names}

    def outcome(change: Callable[[], RunConfig]) -> RunConfig | str:
        try:
            return change()
        except BadInput as error:
            return str(error)

    overrides = [f"{name}={json.dumps(value)}" for name, value in changes.items()]
    assert outcome(lambda: config.replace(**changes)) == outcome(lambda: apply(config, overrides))


def test_replace_takes_components_as_objects_names_and_mappings(config: RunConfig):
    for support in (MissingPart(part=2), {"kind": "missing-part", "part": 2}):
        assert config.replace(support=support).support == MissingPart(part=2)
        assert config.replace(part=1, support=support).support == MissingPart(part=1)
    assert config.replace(support="missing-part", part=2).support == MissingPart(part=2)
    assert config.replace(teacher=4, seeds=Seeds.replicate(3)).seeds == Seeds(teacher=4, support=3, init=3, data=3)
    assert config.replace() == config
    mapping = {"kind": "missing-part"}
    config.replace(support=mapping, part=2)
    assert mapping == {"kind": "missing-part"}, "what was given stays as it is"


def test_replace_on_components_and_studies(config: RunConfig):
    from recombine.studies.encodings import Encodings

    assert config.model.replace(width=64, depth=1) == MLP(width=64, depth=1)
    assert Encodings.profile("laptop").replace(width=64).base.model.width == 64
    with pytest.raises(BadInput, match=r"(?s)width = 0.*greater than 0"):
        config.model.replace(width=0)


def test_replace_keeps_components_of_classes_that_no_room_knows(config: RunConfig):
    class Mine(MLP):
        """A model of a notebook."""

        kind: Literal["mine"] = "mine"  # type: ignore[assignment]

    changed = config.replace(model=Mine(width=4), depth=3).replace(width=5, steps=7)
    assert changed.model == Mine(width=5, depth=3)
    assert changed.recipe.steps == 7


def test_replace_says_how_lists_are_given(config: RunConfig):
    with pytest.raises(BadInput, match=r"(?s)widths = 3: several values are expected.*a list or a tuple"):
        config.replace(widths=3)
    with pytest.raises(BadInput, match=r"(?s)widths = 3: several values are expected.*commas"):
        apply(config, ["widths=3"])


def test_model_copy_refuses_names_that_are_not_fields(config: RunConfig):
    with pytest.raises(BadInput, match=r"(?s)no field 'model.width'.*replace\(\*\*\{'model.width': 3\}\)"):
        config.model_copy(update={"model.width": 3})
    with pytest.raises(BadInput, match="no field 'widht'"):
        config.model.model_copy(update={"widht": 3})
    assert config.model_copy(update={"eval_every": 3}).eval_every == 3


def test_of_several_sets_of_runs_the_main_one_is_meant():
    from recombine.studies.encodings import Encodings

    changed = apply(Encodings.profile("laptop"), ["width=64", "few_shot.model.width=32"])
    assert changed.base.model.width == 64 and changed.few_shot.model.width == 32
    assert changed.control_base.model.width == 128
