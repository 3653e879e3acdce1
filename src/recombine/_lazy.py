"""Imports on first use: the public names of packages, and JAX where a command may end without it."""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the `__getattr__`, `__dir__` and `__all__` of a package whose public names load on first use.

    The names are those that the package imports under `if TYPE_CHECKING:`, so they are written once: type checkers and
    completion read the imports, and at run time nothing heavy loads before it is used.

    Args:
        package: The package's `__name__`.
        file: The package's `__file__`.

    Returns:
        `__getattr__`, `__dir__` and `__all__`, in this order.

    Example:
        ```python
        __getattr__, __dir__, __all__ = attach(__name__, __file__)

        if TYPE_CHECKING:
            from recombine.supports.random import Random as Random
        ```
    """
    modules = _imported(file)

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        if module == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(module), name)

    return __getattr__, lambda: sorted(modules), sorted(modules)


_IMPORT = re.compile(r"^    from (\S+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_NAME = re.compile(r"(\w+) as \w+")


def _imported(file: str) -> dict[str, str]:
    """The module of each name that is imported, as `name as name`, under `if TYPE_CHECKING:`."""
    # Read as text: `ast` would take longer to import than all the rest of `import recombine`.
    with open(file, encoding="utf-8") as source:
        block = source.read().partition("if TYPE_CHECKING:\n")[2]
    return {name: module for module, names in _IMPORT.findall(block) for name in _NAME.findall(names)}


def make_callable(package: str, function: str) -> None:
    """Make a package callable: calling it calls a function, which is imported then.

    Args:
        package: The package's `__name__`.
        function: The function, as `module:name`.
    """
    module, _, name = function.partition(":")

    class CallablePackage(types.ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return getattr(importlib.import_module(module), name)(*arguments, **named)

    sys.modules[package].__class__ = CallablePackage


class LazyModule(types.ModuleType):
    """A module that is imported when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
else:
    # JAX takes longer to import than a small plan takes to make, and planning needs spaces but not JAX.
    jax, jnp = LazyModule("jax"), LazyModule("jax.numpy")
