"""Components of other packages: they take no name of recombine's own, and a broken one is named."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from recombine import component
from recombine.errors import BadInput

CACHED = (component._entry_points, component.kinds, component.find, component.summary, component._report_shadows)


@pytest.fixture
def offered(monkeypatch):
    """Says what other packages offer for the room of supports."""

    def offer(**points):
        made = {name: EntryPoint(name, value, "recombine.supports") for name, value in points.items()}
        monkeypatch.setattr(component, "_entry_points", lambda room: made if room == "supports" else {})
        for function in CACHED[1:]:
            function.cache_clear()

    yield offer
    for function in CACHED:
        function.cache_clear()


def test_a_plug_in_does_not_take_the_place_of_a_component(offered, caplog):
    offered(random="json:JSONDecoder")
    assert component.find("supports", "random").__module__ == "recombine.supports.random"
    assert any("'random' for supports" in record.getMessage() for record in caplog.records)


def test_a_plug_in_that_cannot_be_loaded_is_named_and_the_others_are_listed(offered):
    offered(mine="no_such_module:Mine", odd="json:dumps")
    with pytest.raises(BadInput, match="'mine' of supports comes from no_such_module:Mine, which cannot be loaded"):
        component.find("supports", "mine")
    assert "mine" in component.kinds("supports")
    assert component.summary("supports", "mine").startswith("(unusable: ")
    assert component.summary("supports", "random")
