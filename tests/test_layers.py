"""Rules for the whole tree: imports go one way, rooms and files stay small enough to read."""

from __future__ import annotations

import ast
from pathlib import Path

import recombine

PACKAGE = Path(recombine.__file__).parent

ORDER = (
    "root",
    "language",
    "spaces",
    "supports",
    "problems",
    "graphs",
    "cppn",
    "families",
    "encodings",
    "models",
    "objectives",
    "recipes",
    "training",
    "probes",
    "stats",
    "store",
    "engines",
    "figures",
    "plan",
    "audit",
    "endpoints",
    "pipelines",
    "report",
    "design",
    "studies",
    "view",
    "cli",
    "testing",
)
"""docs/architecture.md says the same in words. `root` is what every room may use: errors, components, overrides, filters,
the names of what is being written;
`testing` is a file of its own, for the tests of other people's components."""

ROOT = {
    "progress",
    "_html",
    "_lazy",
    "_show",
    "component",
    "errors",
    "filters",
    "interrupts",
    "overrides",
    "plain",
    "writers",
}

SHARED = {"recombine.models.layers"}
"""Modules that every room may import, because they import no room themselves."""

MOST_ENTRIES = 30
"""Files and folders of one room, without its `__init__.py`."""
MOST_IMPORTS = 25
"""Import statements at the top level of a file outside the tests, without those for type checkers."""


def room_of(module: str) -> str:
    """The room of a module's full name, e.g. `spaces` of `recombine.spaces.subset`."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] in ROOT or module in SHARED:
        return "root"
    return parts[1]


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """Every module of recombine that a file imports, anywhere in it, also under TYPE_CHECKING, with the line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are written in full"
            # `from recombine.spaces import subset` imports a module, `from recombine import __version__` does not.
            inner = [(node.lineno, f"{node.module}.{name.name}") for name in node.names]
            found += inner if node.module == "recombine" else [(node.lineno, node.module)]
    names = {path.stem for path in PACKAGE.iterdir()}
    return [
        (line, name)
        for line, name in found
        if name.split(".")[0] == "recombine" and (name.count(".") == 0 or name.split(".")[1] in names)
    ]


OUTSIDE = [PACKAGE / "__init__.py", PACKAGE / "__main__.py"]
"""The doors to the package; they belong to no room."""
SOURCE = sorted(path for path in PACKAGE.rglob("*.py") if path not in OUTSIDE)


def test_every_room_has_its_place():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(ORDER) - {"root", "testing"}
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert loose == ROOT | {"testing"}


def test_the_check_sees_what_it_looks_for():
    text = (
        "from recombine.store.store import Store\n"
        "def f():\n    import recombine.cli.main\n"
        "if TYPE_CHECKING:\n    from recombine.figures.base import Figure\n"
        "from recombine import __version__\n"
    )
    assert [name for _, name in imported(ast.parse(text))] == [
        "recombine.store.store",
        "recombine.cli.main",
        "recombine.figures.base",
    ]
    assert room_of("recombine.store.store") == "store" and room_of("recombine.errors") == "root"


def test_a_room_imports_only_rooms_to_its_left():
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in SOURCE
        for line, name in imported(ast.parse(path.read_text()))
        if ORDER.index(room_of(name)) > ORDER.index(room_of(module_of(path)))
    ]
    assert not wrong, "a room imports only what is to its left in ORDER:\n" + "\n".join(wrong)


def folders() -> list[Path]:
    """All rooms and their sub-packages."""
    return sorted({path.parent for path in SOURCE} - {PACKAGE})


def test_no_room_has_too_many_entries():
    wrong = []
    for folder in folders():
        name = folder.relative_to(PACKAGE).as_posix()
        entries = [path for path in folder.iterdir() if path.name not in ("__init__.py", "__pycache__")]
        if len(entries) > MOST_ENTRIES:
            wrong.append(f"{name} has {len(entries)} entries")
    assert not wrong, f"a folder has at most {MOST_ENTRIES} files and folders:\n" + "\n".join(wrong)


def test_no_file_has_too_many_imports():
    wrong = []
    for path in SOURCE:
        imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        if len(imports) > MOST_IMPORTS:
            wrong.append(f"{path.relative_to(PACKAGE)} has {len(imports)} import statements")
    assert not wrong, f"a file has at most {MOST_IMPORTS} import statements:\n" + "\n".join(wrong)
