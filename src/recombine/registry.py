"""Components of scripts, notebooks and files of your own, known by name: `rc.register`.

A registered component works by name in this process: in sweeps, on reading back what a store has, and in worker processes. Another
process knows it once it registers the class too, or is told where it is by the variable RECOMBINE_COMPONENTS. What a store says is
never imported: it is data, and importing runs code.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import logging
import os
import re
import sys
import types
from pathlib import Path
from typing import Any, TypeVar

from recombine import component
from recombine.component import Component
from recombine.errors import BadInput

VARIABLE = "RECOMBINE_COMPONENTS"
"""Where components are, with commas between: `module:Class` or `path/to/file.py:Class`."""

KIND = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

Kind = TypeVar("Kind", bound=type[Component])

log = logging.getLogger("recombine")

_registered: dict[tuple[str, str], type[Component]] = {}


def register(cls: Kind) -> Kind:
    """Make a component of your own known by its name. Use it as a decorator, or call it.

    Args:
        cls: A subclass of one of recombine's base classes (`rc.Study`, `rc.families.Family`, ...), with a `kind`.

    Returns:
        The class. A name of recombine's own raises `BadInput`.

    Example:
        ```python
        @rc.register
        class Wide(rc.models.MLP):
            kind: Literal["wide"] = "wide"
        ```
    """
    _load()
    room, kind = _place(cls)
    if component._own(room, kind):
        raise BadInput(f"{kind!r} is a name of recombine's own in {room}.", fix="give it another kind")
    before = _registered.get((room, kind))
    if before is not None and _meaning(before) != _meaning(cls) and before.version == cls.version:
        fix = f"raise `version` of {cls.__name__} if its meaning changed"
        log.warning(f"{kind!r} of {room} was defined anew. Runs of the earlier definition count as the same: {fix}.")
    _registered[room, kind] = cls
    component.forget_found()
    return cls


def _place(cls: type[Component]) -> tuple[str, str]:
    """The room and the kind of a class."""
    if not (inspect.isclass(cls) and issubclass(cls, Component)):
        raise BadInput(f"{cls!r} is not a component.", fix="give a subclass such as of rc.families.Family")
    kind = cls.model_fields["kind"].default
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        fix = f'write `kind: Literal["my-name"] = "my-name"` in {cls.__name__}'
        raise BadInput(f"{cls.__name__} has the kind {kind!r}; expected small letters, digits and hyphens.", fix=fix)
    return component.room_of(cls), kind


def _meaning(cls: type[Component]) -> Any:
    """The fields and the code of a class. A notebook has no file of which the source could be read."""
    fields = {name: (repr(field.annotation), repr(field.default)) for name, field in cls.model_fields.items()}
    code = {}
    for name, value in vars(cls).items():
        function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            code[name] = _instructions(function.__code__)
    return fields, code


def _instructions(code: types.CodeType) -> Any:
    inner = [_instructions(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return code.co_code, code.co_names, inner


def registered(room: str) -> dict[str, type[Component]]:
    """The registered components of a room by kind, with those that RECOMBINE_COMPONENTS names."""
    _load()
    return {kind: cls for (place, kind), cls in _registered.items() if place == room}


@functools.cache
def _load() -> None:
    """Register, once, what the environment names."""
    for entry in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        cls = _imported(entry)
        _registered.setdefault(_place(cls), cls)


def _imported(entry: str) -> type[Component]:
    place, _, name = entry.rpartition(":")
    fix = f"{VARIABLE} names classes as module:Class or path/to/file.py:Class, with commas between"
    try:
        module = _of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        return getattr(module, name)
    except Exception as error:  # A file of others may raise anything when it is imported.
        what = f"{type(error).__name__}: {error}"
        raise BadInput(f"{entry!r} of {VARIABLE} cannot be loaded: {what}.", fix=fix) from error


def _of_file(path: Path) -> object:
    name = f"recombine_component_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve(strict=True))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Pydantic looks up annotations there.
    spec.loader.exec_module(module)
    return module


def check_known(components: list[Component], *, elsewhere: bool = False) -> None:
    """Raise `BadInput` for components that a store could not read back, before anything is trained.

    Args:
        components: The components of runs, and measurements.
        elsewhere: Also refuse classes that a worker process cannot import, such as those of a notebook.
    """
    for cls in dict.fromkeys(map(type, components)):
        room, kind = _place(cls)
        known = component.find(room, kind) if kind in component.kinds(room) else None
        if known is not cls:
            other = f"; {kind!r} of {room} is {known.__module__}.{known.__qualname__}" if known else ""
            where = "this notebook or script" if cls.__module__ == "__main__" else cls.__module__
            raise BadInput(
                f"{cls.__qualname__} of {where} is not known by its name, so a store could not read its runs back{other}.",
                fix=f"rc.register({cls.__name__}), here and wherever its runs are read",
            )
        if elsewhere and (room, kind) in _registered and _entry(cls) is None:
            raise BadInput(
                f"{cls.__qualname__} is defined where worker processes cannot import it.",
                fix="move the class into a file and import it from there, or train in this process (without --jobs)",
            )


def _entry(cls: type[Component]) -> str | None:
    """How another process imports a class; None if it cannot."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if cls.__module__ == "__main__" or file is None or getattr(module, cls.__qualname__, None) is not cls:
        return None
    inside = "." in cls.__module__  # A package may have relative imports.
    return f"{cls.__module__}:{cls.__qualname__}" if inside else f"{Path(file).resolve()}:{cls.__qualname__}"


def environment() -> dict[str, str]:
    """The variable that tells a worker process what is registered here."""
    entries = [entry for cls in _registered.values() if (entry := _entry(cls)) is not None]
    return {VARIABLE: ",".join(entries)} if entries else {}
