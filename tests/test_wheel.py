"""The package builds, holds what it needs and nothing else, and works where the sources are not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; its errors are shown when it fails."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what belongs to the package, so that nothing is left in the sources."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=ignored)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", out, source]
    try:
        import hatchling  # noqa: F401
    except ImportError:
        pass
    else:
        # With the backend at hand no other environment need be made (and no network).
        command.insert(3, "--no-isolation")
    run(*command, cwd=source)
    (found,) = out.glob("recombine-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel, which sees the dependencies of this one but not its recombine."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(place, with_pip=False)
    inside = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(place), "platbase": str(place)}))
    # A plain path in a .pth file: the .pth files of *that* folder (the editable install) are not read.
    (inside / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index"]
    # Elsewhere it is already "satisfied" by the editable install that the .pth file makes visible.
    pip += ["--ignore-installed", "--quiet", "--disable-pip-version-check", wheel]
    run(*pip, cwd=place)
    return python


def test_the_wheel_holds_the_package_and_its_data(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    folder = REPOSITORY / "src"
    expected = {
        path.relative_to(folder).as_posix()
        for path in (folder / "recombine").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected - names == set()
    assert any(name.endswith(".j2") for name in names), "the templates of the report"
    assert {name.split("/")[0] for name in names} == {"recombine", wheel.name.split("-py3")[0] + ".dist-info"}
    parts = {part for name in names for part in name.split("/")}
    assert not [part for part in parts if part in ("tests", "__pycache__") or part.startswith("test_")]


def test_the_metadata_names_licence_python_and_command(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    text = archive.read(metadata).decode()
    assert "Name: recombine\n" in text and "Requires-Python: >=3.11\n" in text
    assert "License-Expression: MIT\n" in text and "License-File: LICENSE\n" in text
    base = metadata.rpartition("/")[0]
    assert "MIT License" in archive.read(f"{base}/licenses/LICENSE").decode()
    assert "recombine = recombine.__main__:main" in archive.read(f"{base}/entry_points.txt").decode()
    # Test tools are for developers only.
    required = [line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert required and not any("pytest" in line or "ruff" in line for line in required)


def test_the_wheel_works_where_the_sources_are_not(installed, tmp_path):
    place = "import recombine, pathlib; print(pathlib.Path(recombine.__file__).resolve())"
    found = Path(run(installed, "-c", place, cwd=tmp_path).strip())
    assert installed.parents[1].resolve() in found.parents
    command = installed.parent / "recombine"
    import recombine

    assert run(command, "--version", cwd=tmp_path).strip() == recombine.__version__
    studies = json.loads(run(command, "ls", "studies", "--json", cwd=tmp_path))
    assert "data-scaling" in [study["name"] for study in studies]
    families = json.loads(run(command, "ls", "families", "--json", cwd=tmp_path))
    assert {"hyperteacher", "lookup"} <= {family["name"] for family in families}


def test_the_installed_package_finds_every_component_and_its_data(installed, tmp_path):
    script = """
from recombine.component import ROOMS, find, kinds
for room in ROOMS:
    assert kinds(room), room
    for kind in kinds(room):
        find(room, kind)
from importlib import resources
names = {entry.name for entry in (resources.files("recombine.report") / "templates").iterdir()}
assert any(name.endswith(".j2") for name in names), names
print("found")
"""
    assert run(installed, "-c", script, cwd=tmp_path).strip() == "found"
