"""Components of scripts and notebooks: registered and read back, or refused before anything is trained."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest

import recombine as rc
from recombine import component, registry
from recombine.component import find, kinds
from recombine.errors import BadInput
from recombine.models.mlp import MLP

FILE = '''
from typing import Literal
import recombine as rc
class Wide(rc.models.MLP):
    """A wide network."""
    kind: Literal["wide"] = "wide"
'''


class Wide(MLP):
    """A wide network."""

    kind: Literal["wide"] = "wide"  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.delenv(registry.VARIABLE, raising=False)
    registry._load.cache_clear()
    component.forget_found()
    yield
    monkeypatch.undo()
    registry._load.cache_clear()
    component.forget_found()


def test_an_unregistered_component_is_refused_before_training(tmp_path, tiny):
    store = rc.Store(tmp_path / "store")
    with pytest.raises(BadInput, match=r"could not read its runs back[^$]*rc\.register\(Wide\)"):
        rc.LocalEngine().run(store, [tiny(model=Wide(width=8, depth=2))])
    assert store.run_ids() == [] and not list(store.checkpoints.glob("*"))


def test_a_registered_component_is_stored_and_read_back(tmp_path, tiny):
    assert rc.register(Wide) is Wide and find("models", "wide") is Wide and "wide" in kinds("models")
    config = tiny(model=Wide(width=8, depth=2))
    store = rc.Store(tmp_path / "store")
    rc.LocalEngine().run(store, [config])
    read = rc.load_store(tmp_path / "store").load(config)
    assert read.config == config and type(read.config.model) is Wide
    assert read.network is not None and store.problems == []


def test_another_process_is_told_by_the_variable(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    monkeypatch.setenv(registry.VARIABLE, f"{path}:Wide")
    registry._load.cache_clear()
    component.forget_found()
    assert find("models", "wide").__name__ == "Wide" and component.summary("models", "wide") == "A wide network."


def test_workers_are_told_of_classes_that_they_can_import(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = __import__("mine").Wide
    rc.register(mine)
    assert registry.environment() == {registry.VARIABLE: f"{path}:Wide"}
    registry.check_known([mine(width=8)], elsewhere=True)
    code = "from recombine.component import find; print(find('models', 'wide').__name__)"
    told = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), **registry.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.strip() == "Wide", told.stderr


def test_what_workers_cannot_import_is_refused_before_they_start(tmp_path, tiny):
    class Inner(MLP):
        kind: Literal["inner"] = "inner"  # type: ignore[assignment]

    rc.register(Inner)
    registry.check_known([Inner()])
    with pytest.raises(BadInput, match="worker processes cannot import it"):
        registry.check_known([Inner()], elsewhere=True)
    assert rc.engines.ProcessEngine.elsewhere and rc.engines.RayEngine.elsewhere and not rc.LocalEngine.elsewhere


@pytest.mark.parametrize("entry", ["no_such_module:X", "/no/such/file.py:X", "json:Nothing", "nonsense"])
def test_a_wrong_variable_is_named(monkeypatch, entry):
    monkeypatch.setenv(registry.VARIABLE, entry)
    registry._load.cache_clear()
    component.forget_found()
    with pytest.raises(BadInput, match="RECOMBINE_COMPONENTS cannot be loaded"):
        find("models", "mlp")


def test_bad_classes_are_refused():
    class Shadow(MLP):
        kind: Literal["mlp"] = "mlp"

    class Odd(MLP):
        kind: Literal["My Model"] = "My Model"  # type: ignore[assignment]

    for wrong, message in ((Shadow, "recombine's own"), (Odd, "small letters"), (dict, "not a component")):
        with pytest.raises(BadInput, match=message):
            rc.register(wrong)  # type: ignore[type-var]


CELL = """
from typing import Literal
import recombine as rc
class Again(rc.models.MLP):
    kind: Literal["again"] = "again"
    width: int = WIDTH
    def stack_size(self):
        return SIZE
"""


def defined(width: int, size: int) -> type:
    """The class of a cell of a notebook, which is in no file."""
    names: dict = {"__name__": "__main__"}
    exec(CELL.replace("WIDTH", str(width)).replace("SIZE", str(size)), names)
    return names["Again"]


def test_a_class_that_is_defined_anew_is_named(caplog):
    rc.register(defined(8, 1))
    rc.register(defined(8, 1))
    assert not caplog.records, "a cell that ran twice"
    for other in (defined(9, 1), defined(9, 2)):
        caplog.clear()
        rc.register(other)
        assert "raise `version`" in caplog.text
