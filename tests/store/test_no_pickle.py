"""Nothing is ever unpickled, and no text is ever run as code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import recombine

SOURCE = sorted(Path(recombine.__file__).parent.rglob("*.py"))

MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
FUNCTIONS = {"eval", "exec", "__import__"}
METHODS = {"read_pickle", "to_pickle", "allow_pickle", "read_hdf", "unsafe_load", "tree_deserialise_leaves"}
ARRAY_LOADERS = {("np", "load"), ("numpy", "load"), ("jnp", "load"), ("yaml", "load"), ("torch", "load")}


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Name) and node.id in FUNCTIONS:
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            if node.attr in METHODS:
                found.append(node.attr)
            if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in ARRAY_LOADERS:
                found.append(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


def test_the_check_sees_what_it_looks_for():
    text = "import pickle\nfrom shelve import open\neval('1')\nnp.load('x', allow_pickle=True)\npd.read_pickle('x')"
    assert set(offences(ast.parse(text))) == {"pickle", "shelve", "eval", "np.load", "allow_pickle", "read_pickle"}


def test_there_is_source_to_check():
    assert len(SOURCE) > 40


@pytest.mark.parametrize("path", SOURCE, ids=lambda path: str(path.relative_to(SOURCE[0].parent)))
def test_no_pickle_and_no_eval(path):
    assert offences(ast.parse(path.read_text())) == []
