"""Runs are stored beside training: in order, none lost, and errors are heard."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from recombine.engines.storing import Storing
from recombine.errors import StoreError


class Place:
    """A store that waits until it is told to go on, and a trainer that forgets."""

    def __init__(self, broken: tuple[str, ...] = ()) -> None:
        self.broken, self.done, self.go = broken, [], threading.Event()

    def commit(self, outcome: Any) -> None:
        self.go.wait(10)
        if outcome.config in self.broken:
            raise StoreError(f"no room for {outcome.config}")
        self.done.append(outcome.config)

    def forget(self, config: str) -> None:
        assert config in self.done, "a checkpoint is forgotten before its run is stored"
        self.done.append(f"forgot {config}")


def storing(place: Place) -> Storing:
    return Storing(cast("Any", place), cast("Any", place))


def ended(name: str) -> Any:
    return SimpleNamespace(config=name)


def test_training_does_not_wait_for_the_last_run_and_the_end_does() -> None:
    place = Place()
    with storing(place) as beside:
        beside.add(ended("a"))
        assert place.done == []
        place.go.set()
        beside.add(ended("b"))
        assert place.done[:2] == ["a", "forgot a"]
    assert place.done == ["a", "forgot a", "b", "forgot b"]


def stored(place: Place, *names: str, then: BaseException | None = None) -> None:
    """Runs that end one after another, and what ends the training."""
    with storing(place) as beside:
        for name in names:
            beside.add(ended(name))
        place.go.set()
        if then is not None:
            raise then


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_run_that_cannot_be_stored_is_heard_of(broken: str) -> None:
    place = Place(broken=(broken,))
    place.go.set()
    with pytest.raises(StoreError, match=f"no room for {broken}"):
        stored(place, "a", "b")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError()])
def test_whatever_ends_training_the_last_run_is_stored(error: BaseException) -> None:
    place = Place()
    with pytest.raises(type(error)):
        stored(place, "a", then=error)
    assert place.done == ["a", "forgot a"]


def test_an_error_of_training_does_not_hide_one_of_storing() -> None:
    with pytest.raises(StoreError, match="no room"):
        stored(Place(broken=("a",)), "a", then=ValueError())
