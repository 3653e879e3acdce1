"""Components: frozen configurations that are found by name.

Every part of an experiment (a space, a support, a family, ...) is a small frozen pydantic model, the
*configuration*. It can be hashed, printed and written to JSON. Where a part is random, its `draw` method
turns the configuration and a key into an Equinox module, the *drawn* part: a pytree whose arrays may differ
between runs that share one compiled program.

A component's `kind` is the name of its file or folder (`random-sizes` is `random_sizes.py`). Components that belong
together may share a folder of their room. Other packages add components by entry points of the group
`recombine.<room>`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import logging
import pkgutil
import re
import threading
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny, model_validator

from recombine.errors import BadInput, did_you_mean

ROOMS = (
    *("spaces", "supports", "problems", "families", "encodings"),
    *("models", "objectives", "recipes", "probes", "studies"),
)


log = logging.getLogger(__name__)


class Configuration(BaseModel):
    """Base of components and of run configurations: frozen, strict, and changed by `replace`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        """Python takes true for 1; a width of true is a mistake."""
        if isinstance(values, dict):
            for name, value in values.items():
                items = value if isinstance(value, (list, tuple)) else (value,)
                if any(isinstance(item, bool) for item in items) and not _may_be_bool(cls, name):
                    raise ValueError(f"{name} = {value!r}: a number is expected, not true or false")
        return values

    def replace(self, /, **changes: Any) -> Self:
        """Make a copy with other settings, validated as a whole.

        This is what overrides on the command line do. A leaf name suffices where it is unique.

        Args:
            **changes: New values by name. A component may be given as an object, a name or a mapping with a `kind`.

        Returns:
            The changed copy. Unknown names, ambiguous names and bad values raise `BadInput`.

        Example:
            ```python
            config.replace(width=64, support="missing-part", **{"recipe.steps": 500})
            ```
        """
        from recombine.overrides import replace

        return replace(self, changes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy without validation, as pydantic does; names that are not fields are refused."""
        for name, value in (update or {}).items():
            if name not in type(self).model_fields:
                fix = f"use replace(**{{{name!r}: {value!r}}}), which takes nested names and validates"
                raise BadInput(f"{type(self).__name__} has no field {name!r}, so model_copy cannot set it.", fix=fix)
        return super().model_copy(update=update, deep=deep)

    def _settings(self) -> dict[str, Any]:
        """The settings that differ from their default, as `repr` shows them."""
        fields = type(self).model_fields
        return {name: getattr(self, name) for name in fields if getattr(self, name) != fields[name].get_default()}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings})"


@functools.cache
def _may_be_bool(configuration: type[BaseModel], name: str) -> bool:
    """Whether a field is not of numbers only."""

    def parts(annotation: Any) -> set[Any]:
        inner = get_args(annotation)
        return set[Any]().union(*map(parts, inner)) if inner else {annotation}

    field = configuration.model_fields.get(name)
    kinds_of_values = parts(field.annotation) if field is not None else {bool}
    return not kinds_of_values & {int, float} or bool in kinds_of_values


class Component(Configuration):
    """Base of every component's configuration. Subclasses are either abstract or final."""

    version: ClassVar[int] = 1
    """Raise it when the *meaning* of a component changes: earlier runs then no longer count as the same."""

    later: ClassVar[frozenset[str]] = frozenset()
    """Fields that were added after runs were stored. They are part of the hash only when they differ from their
    default, so that older run names stay valid."""

    kind: str
    """The component's name: that of its file."""

    def meaning(self) -> dict[str, Any]:
        """The configuration as plain JSON values, as far as it determines what is computed."""
        fields = type(self).model_fields
        usual = {name for name in self.later if getattr(self, name) == fields[name].default}
        return self.model_dump(mode="json", exclude=usual)


class ChangedFields(dict[str, Any]):
    """The fields of a component while `replace` changes some of them.

    It remembers the component, so that classes that no room knows (a notebook's own) can be changed too.
    """

    def __init__(self, component: Component) -> None:
        super().__init__(component)
        self.component = component
        self.component_class = type(component)


@functools.cache
def _entry_points(room: str) -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=f"recombine.{room}")}


_KIND = re.compile(r'^    kind: Literal\["[^"]+"\] = "', re.MULTILINE)
"""How the source of a component declares its kind. Files of helpers declare none."""


@functools.cache
def kinds(room: str) -> tuple[str, ...]:
    """The kinds of all components of a room. Nothing is imported."""
    own = _sources(room).keys()
    _report_shadows(room, frozenset(own & set(_entry_points(room))))
    return tuple(sorted(own | set(_entry_points(room))))


@functools.cache
def _report_shadows(room: str, names: frozenset[str]) -> None:
    for name in sorted(names):
        package = getattr(_entry_points(room)[name].dist, "name", "a package")
        log.warning(f"{package} offers {name!r} for {room}, which is a name of recombine's own: recombine's is used.")


def _own(room: str, kind: str) -> bool:
    """Whether a component is recombine's own. A plug-in of the same name does not take its place."""
    return kind in _sources(room)


@functools.cache
def _sources(room: str) -> dict[str, Path]:
    """The file of each of recombine's own components of a room, by kind.

    It is `name.py`, or `name/__init__.py` where the component is a folder. A folder that is no component may hold several.
    """

    def inside(folder: Path) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for info in pkgutil.iter_modules([str(folder)]):
            path = folder / info.name / "__init__.py" if info.ispkg else folder / f"{info.name}.py"
            if _KIND.search(path.read_text(encoding="utf-8")):
                found[info.name.replace("_", "-")] = path
            elif info.ispkg and folder.name == room:
                found |= inside(path.parent)
        return found

    return inside(Path(__file__).parent / room)


def _module(path: Path) -> str:
    """The full name of the module in a file of recombine."""
    parts = path.relative_to(Path(__file__).parent.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


_PARSING = threading.Lock()
"""`ast` of Python 3.11 fails when two threads parse at once."""


@functools.cache
def summary(room: str, kind: str) -> str:
    """The first line of a component's documentation, for listings. recombine's own components are not imported."""
    path = _sources(room).get(kind)
    if path:
        with _PARSING:
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    else:
        try:
            text = inspect.getdoc(find(room, kind))
        except BadInput as error:
            return f"(unusable: {error.message})"
    return (text or "").strip().partition("\n")[0]


@functools.cache
def find(room: str, kind: str) -> type[Component]:
    """The class of a component, imported on demand.

    Args:
        room: The room, such as `supports`.
        kind: The component's kind, such as `missing-part`. An unknown one raises `BadInput` with the nearest name.
    """
    if kind not in kinds(room):
        noun = {"families": "family", "studies": "study"}.get(room, room.rstrip("s"))
        raise BadInput(f"There is no {noun} called {kind!r}.", fix=did_you_mean(kind, kinds(room)))
    if kind in _entry_points(room) and not _own(room, kind):
        point = _entry_points(room)[kind]
        try:
            loaded = point.load()
        except Exception as error:  # A package of others may raise anything when it is imported.
            package = getattr(point.dist, "name", point.value)
            fix = f"update or remove the package {package}"
            raise BadInput(
                f"{kind!r} of {room} comes from {point.value}, which cannot be loaded: {type(error).__name__}: {error}.",
                fix=fix,
            ) from error
        if not (inspect.isclass(loaded) and issubclass(loaded, Component)):
            fix = "it must name a subclass of the room's base class"
            raise BadInput(f"The entry point {kind!r} of group recombine.{room} gives {loaded!r}.", fix=fix)
        return loaded
    module = importlib.import_module(_module(_sources(room)[kind]))
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    for value in own:
        if inspect.isclass(value) and issubclass(value, Component) and value.model_fields["kind"].default == kind:
            return value
    raise BadInput(f"{module.__file__} does not define a component whose kind is {kind!r}.")


def room_of(component: Component) -> str:
    """The room of a component: the one that defines its base class, also for components of other packages."""
    if room := getattr(type(component), "room", None):
        return room
    for base in type(component).__mro__:
        parts = base.__module__.split(".")
        if parts[0] == "recombine" and parts[-1] == "base" and parts[1] in ROOMS:
            return parts[1]
    raise BadInput(f"{type(component).__name__} has none of recombine's base classes.")


def resolve(room: str, value: Any) -> Any:
    """Turn a value into a validated component.

    Args:
        room: The room of the component.
        value: A component, a kind, or a mapping with a `kind`.
    """
    if isinstance(value, Component):
        return value
    if isinstance(value, ChangedFields):
        return value.component_class.model_validate(value)
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, dict) or "kind" not in value:
        fix = f"give a name, or a mapping with a kind; {did_you_mean('', kinds(room))}"
        raise BadInput(f"A component of {room} was given as {value!r}.", fix=fix)
    return find(room, str(value["kind"])).model_validate(value)


def field(room: str, base: type) -> Any:
    """The type of a pydantic field for any component of a room, given as an object, a name or a mapping."""
    return Annotated[SerializeAsAny[base], BeforeValidator(functools.partial(resolve, room))]  # type: ignore[valid-type]
