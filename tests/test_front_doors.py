"""The front doors of packages: what they export, and that they load nothing heavy."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from pydantic import ValidationError

from recombine.component import ROOMS, find, kinds, resolve

OTHER_ROOMS = ("calling", "graphs", "language", "plan", "stats")


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "studies"])
def test_every_kind_is_exported_and_found_by_name(room: str):
    door = importlib.import_module(f"recombine.{room}")
    for kind in kinds(room):
        component = find(room, kind)
        if not component.__module__.startswith("recombine."):
            continue
        assert component.__name__ in door.__all__
        assert getattr(door, component.__name__) is component
        try:
            default = component()  # type: ignore[call-arg]
        except ValidationError:  # Some settings have no default.
            continue
        assert resolve(room, kind) == default


@pytest.mark.parametrize("room", sorted({*ROOMS, *OTHER_ROOMS} - {"studies"}))
def test_every_exported_name_exists(room: str):
    door = importlib.import_module(f"recombine.{room}")
    assert dir(door) == door.__all__
    assert {name for name in door.__all__ if not hasattr(door, name)} == set()


def test_front_doors_load_nothing_heavy():
    doors = ", ".join(f"recombine.{room}" for room in (*ROOMS, *OTHER_ROOMS))
    heavy = "{'jax', 'numpy', 'pandas', 'pydantic', 'scipy', 'sklearn'}"
    code = f"import sys, {doors}; print({heavy} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"
