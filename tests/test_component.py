"""Components are found by name, without importing what is not asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Literal

import pytest
from pydantic import BaseModel, ValidationError

from recombine import component
from recombine.component import ROOMS, Component, field, find, kinds, resolve, summary
from recombine.errors import BadInput
from recombine.spaces.base import Space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace


class Plugged(SubsetSpace):
    """A space of somebody else's package."""

    kind: Literal["plugged"] = "plugged"  # type: ignore[assignment]


class Holder(BaseModel):
    """A model with a component in it."""

    space: field("spaces", Space)  # type: ignore[valid-type]


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a package had registered two spaces, the second of them wrongly."""

    def points(*, group: str) -> list[metadata.EntryPoint]:
        names = {"plugged": f"{__name__}:Plugged", "broken": "json:dumps"} if group == "recombine.spaces" else {}
        return [metadata.EntryPoint(name, value, group) for name, value in names.items()]

    monkeypatch.setattr(metadata, "entry_points", points)
    caches = (component._entry_points, kinds, find, summary)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_kinds_are_files_that_declare_one():
    assert kinds("spaces") == ("instances", "lists", "number-pairs", "pairs", "product", "scan", "subset")
    assert {"random", "missing-part"} <= set(kinds("supports"))
    assert not {"base", "rows", "drawing", "listed", "regions", "certificate"} & set(kinds("supports"))


def test_components_may_share_a_folder_of_their_room():
    assert {"hops", "chains", "nested"} <= set(kinds("families")) and "chained" not in kinds("families")
    assert find("families", "chains").__module__ == "recombine.families.chained.chains"
    assert summary("families", "chains").startswith("Chains of named random functions")
    # The helpers of a component that is a folder are no components.
    assert {"odd-one-out", "scenes"} <= set(kinds("families")) and "items" not in kinds("families")


def test_listing_imports_nothing_heavy():
    code = (
        "import sys; from recombine.component import kinds, summary; "
        "[summary(room, kind) for room in ('spaces', 'supports') for kind in kinds(room)]; "
        "print([name for name in ('jax', 'numpy', 'equinox') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_every_kind_can_be_found_and_summed_up():
    wrong = []
    for room in ROOMS:
        for kind in kinds(room):
            cls = find(room, kind)
            fits = issubclass(cls, Component) and cls.model_fields["kind"].default == kind
            if not (fits and summary(room, kind)):
                wrong.append(f"{room} {kind}")
    assert not wrong, f"no component of this kind, or no summary: {', '.join(wrong)}"


def test_find():
    assert find("spaces", "subset") is SubsetSpace
    assert summary("spaces", "subset") == "All sets of up to K of M modules."


@pytest.mark.parametrize(
    ("room", "kind", "message"),
    [
        ("spaces", "subsett", r"There is no space called 'subsett'.*\n.*did you mean 'subset'\?"),
        ("spaces", "qqq", r"known: instances, lists, number-pairs, pairs, product, scan, subset"),
        ("families", "qqq", "There is no family called 'qqq'"),
        ("studies", "qqq", "There is no study called 'qqq'"),
    ],
)
def test_unknown_names(room: str, kind: str, message: str):
    with pytest.raises(BadInput, match=message):
        find(room, kind)


def test_resolve():
    space = SubsetSpace(modules=4, max_active=2)
    assert resolve("spaces", space) is space
    assert resolve("spaces", {"kind": "subset", "modules": 4, "max_active": 2}) == space
    for wrong in (3, None, {"modules": 4}):
        with pytest.raises(
            BadInput,
            match="give a name, or a mapping with a kind; known: instances, lists, number-pairs, pairs, product, scan, subset",
        ):
            resolve("spaces", wrong)


def test_a_field_takes_any_component_of_its_room_and_keeps_it_in_json():
    holder = Holder(space={"kind": "product", "factors": {"a": 2}})
    assert isinstance(holder.space, ProductSpace)
    assert Holder.model_validate_json(holder.model_dump_json()) == holder
    with pytest.raises(ValidationError, match="There is no space called 'sub'"):
        Holder(space="sub")


def test_a_field_refuses_a_component_of_another_room():
    from recombine.supports.missing_part import MissingPart

    with pytest.raises(ValidationError):
        Holder(space=MissingPart())


def test_components_are_frozen_and_refuse_unknown_fields():
    space = SubsetSpace(modules=4, max_active=2)
    with pytest.raises(ValidationError, match="frozen"):
        space.modules = 5  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        resolve("spaces", {"kind": "subset", "modules": 4, "max_active": 2, "typo": 1})


@pytest.mark.usefixtures("entry_points")
def test_other_packages_plug_in():
    assert kinds("spaces") == (
        "broken",
        "instances",
        "lists",
        "number-pairs",
        "pairs",
        "plugged",
        "product",
        "scan",
        "subset",
    )
    space = resolve("spaces", {"kind": "plugged", "modules": 4, "max_active": 2})
    assert type(space).__name__ == "Plugged"
    assert summary("spaces", "plugged") == "A space of somebody else's package."
    with pytest.raises(BadInput, match="it must name a subclass of the room's base class"):
        find("spaces", "broken")
