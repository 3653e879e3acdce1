"""Components: frozen configurations that are found by name.

Every part of an experiment (a space, a support, a family, ...) is a small frozen pydantic model, the
*configuration*. It can be hashed, printed and written to JSON. Where a part has random numbers in it, its
`draw` method turns the configuration and a key into an Equinox module, the *drawn* part: a pytree whose
arrays may differ between the runs that share one compiled program.

A component's `kind` is the name of the file it lives in (`random-sizes` is `random_sizes.py`). Packages of
other people add theirs by an entry point of the group `recombine.<room>`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny

from recombine.errors import BadInput, did_you_mean

ROOMS = (
    "spaces",
    "supports",
    "problems",
    "families",
    "encodings",
    "models",
    "objectives",
    "recipes",
    "probes",
    "studies",
)


class Component(BaseModel):
    """Base of every configuration. Subclasses are either abstract or final."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    version: ClassVar[int] = 1
    """Raise it when the *meaning* of a component changes: runs made before then no longer count as the same."""

    later: ClassVar[frozenset[str]] = frozenset()
    """Fields that were added when runs were already stored. They count once they differ from their default, so that
    the runs made before then still count as the same."""

    kind: str
    """The component's name: that of its file."""

    def meaning(self) -> dict[str, Any]:
        """The configuration as plain JSON values, as far as it determines what is computed."""
        fields = type(self).model_fields
        usual = {name for name in self.later if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=usual)


@functools.cache
def _entry_points(room: str) -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=f"recombine.{room}")}


@functools.cache
def kinds(room: str) -> tuple[str, ...]:
    """The names of all components of a room, without importing any of them."""
    folder = Path(__file__).parent / room
    own = {
        info.name.replace("_", "-")
        for info in pkgutil.iter_modules([str(folder)])
        if not info.ispkg and _declared_kind(folder / f"{info.name}.py") is not None
    }
    return tuple(sorted(own | set(_entry_points(room))))


def _declared_kind(path: Path) -> str | None:
    """The default of `kind: Literal[...]` in a file, found without importing it; None for helper files."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if (
                    isinstance(item, ast.AnnAssign)
                    and isinstance(item.target, ast.Name)
                    and item.target.id == "kind"
                    and isinstance(item.value, ast.Constant)
                ):
                    return str(item.value.value)
    return None


@functools.cache
def summary(room: str, kind: str) -> str:
    """The first line of a component's module, for listings. Does not import recombine's own components."""
    path = Path(__file__).parent / room / f"{kind.replace('-', '_')}.py"
    if path.exists():
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    else:
        text = inspect.getdoc(find(room, kind)) or ""
    return text.strip().splitlines()[0] if text.strip() else ""


@functools.cache
def find(room: str, kind: str) -> type[Component]:
    """The class of a component, imported on demand."""
    if kind not in kinds(room):
        noun = {"families": "family", "studies": "study"}.get(room, room.rstrip("s"))
        raise BadInput(f"There is no {noun} called {kind!r}.", fix=did_you_mean(kind, kinds(room)))
    if kind in _entry_points(room):
        found = _entry_points(room)[kind].load()
        if not (inspect.isclass(found) and issubclass(found, Component)):
            raise BadInput(
                f"The entry point {kind!r} of group recombine.{room} gives {found!r}.",
                fix="it must name a subclass of the room's base class",
            )
        return found
    module = importlib.import_module(f"recombine.{room}.{kind.replace('-', '_')}")
    for value in vars(module).values():
        if (
            inspect.isclass(value)
            and issubclass(value, Component)
            and value.__module__ == module.__name__
            and value.model_fields["kind"].default == kind
        ):
            return value
    raise BadInput(f"{module.__file__} does not define a component whose kind is {kind!r}.")


def room_of(component: Component) -> str:
    """The room of a component: where its base class is defined, also for other people's components."""
    for base in type(component).__mro__:
        parts = base.__module__.split(".")
        if parts[0] == "recombine" and parts[-1] == "base" and parts[1] in ROOMS:
            return parts[1]
    raise BadInput(f"{type(component).__name__} has none of recombine's base classes.")


def resolve(room: str, value: Any) -> Any:
    """Turn a name, a mapping with a `kind`, or a component into a validated component of a room."""
    if isinstance(value, Component):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict) or "kind" not in value:
        raise BadInput(
            f"A component of {room} was given as {value!r}.",
            fix=f"give a name, or a mapping with a kind; {did_you_mean('', kinds(room))}",
        )
    return find(room, str(value["kind"])).model_validate(value)


def field(room: str, base: type) -> Any:
    """The type of a pydantic field that holds any component of a room."""
    return Annotated[SerializeAsAny[base], BeforeValidator(functools.partial(resolve, room))]  # type: ignore[valid-type]
