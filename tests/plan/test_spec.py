"""The space of a plan, from a file and in short; every error names its place and a way out."""

from __future__ import annotations

import pytest

from recombine.errors import BadInput
from recombine.plan.spec import levels_space, read_spec, subsets_space
from recombine.spaces.product import ProductSpace
from recombine.spaces.subset import SubsetSpace

FILE = """\
factors:
  colour: [red, no, 1.50, "two words", 雪]
  height: 3
forbid: colour=red and height=2
require:
  - if colour="two words" then height!=0
include: [height=1]
cost: levels
costs: {height: 2, colour: {red: 5}}
budget: 12.5
strength: 2
collected: done.csv
"""


def write(tmp_path, text, name="plan.yaml"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_says_all_of_a_plan(tmp_path):
    spec = read_spec(write(tmp_path, FILE))
    assert spec.space == ProductSpace(
        factors=(("colour", ("red", "no", "1.50", "two words", "雪")), ("height", ("0", "1", "2")))
    ), "levels are as they are written"
    assert spec.forbid == ("colour=red and height=2",) and len(spec.require) == 1 and spec.include == ("height=1",)
    assert (spec.cost, spec.budget, spec.strength) == ("levels", 12.5, 2)
    assert spec.costs == {"height": "2", "colour": {"red": "5"}}
    assert spec.collected == tmp_path / "done.csv", "beside the file"


def test_toml_says_the_same(tmp_path):
    text = """
forbid = ["colour=red and height=2"]
budget = 4
[factors]
colour = ["red", "blue", true, 1.5]
height = 3
"""
    spec = read_spec(write(tmp_path, text, "plan.toml"))
    assert isinstance(spec.space, ProductSpace)
    assert spec.space.factors[0] == ("colour", ("red", "blue", "true", "1.5")) and spec.space.levels == (4, 3)
    assert spec.budget == 4


def test_short_forms():
    space = levels_space("4^2 3 2^3")
    assert space.levels == (4, 4, 3, 2, 2, 2)
    assert space.factors[0] == ("f1", ("0", "1", "2", "3"))
    assert levels_space("3^13").size == 3**13
    assert subsets_space("16,3") == SubsetSpace(modules=16, max_active=3)
    assert subsets_space("16 3 2").min_active == 2


def test_spaces_in_short_in_a_file(tmp_path):
    assert read_spec(write(tmp_path, "subsets: [16, 3]")).space == SubsetSpace(modules=16, max_active=3)
    assert read_spec(write(tmp_path, "levels: 3^4 2")).space == levels_space("3^4 2")
    assert read_spec(write(tmp_path, "subsets = [16, 3]", "a.toml")).space == SubsetSpace(modules=16, max_active=3)


@pytest.mark.parametrize("text", ["", "3^", "^3", "3^0", "0^3", "x", "3**4", "3^13^2", "-3^2", "3^999999", "9999999"])
def test_levels_that_cannot_be_read(text):
    with pytest.raises(BadInput) as caught:
        levels_space(text)
    assert caught.value.fix


@pytest.mark.parametrize("text", ["", "16", "16,", "3,16", "16,0", "a,b", "16,3,4", "16,3,2,1", "100000,2"])
def test_subsets_that_cannot_be_read(text):
    with pytest.raises(BadInput) as caught:
        subsets_space(text)
    assert caught.value.fix


BAD = [
    ("factors: {colour: [red, blue]}\nfactrs: 3\n", "line 2: a plan has no key 'factrs'", "'factors'"),
    ("factors: {a: 2}\nconstraints: []\n", "line 2: a plan has no key 'constraints'", "forbid or require"),
    ("factors:\n  a: 2\n  a: 3\n", "line 3: the key 'a' occurs twice", ""),
    ("factors:\n  a: [x,\n   y, x]\n", "line 3: the factor 'a' has the level 'x' twice", ""),
    ("factors:\n  a: red\n", "line 2: the factor 'a' needs a list", "colour: [red, blue]"),
    ("factors:\n  a: 0\n", "line 2: the factor 'a' needs a list", ""),
    ("factors:\n  a: []\n", "line 2: the factor 'a' needs a list", ""),
    ("factors:\n  a: [[x], y]\n", "line 2: the factor 'a' needs a list", ""),
    ("factors: [a, b]\n", "line 1: factors must be a mapping", ""),
    ("budget: 3\n", "does not describe the space", "factors, levels and subsets"),
    ("factors: {a: 2}\nsubsets: [3, 2]\n", "describes the space twice", ""),
    ("factors: {a: 2}\nbudget: lots\n", "line 2: budget must be a number, got 'lots'", ""),
    ("factors: {a: 2}\nbudget: -1\n", "line 2: budget must be a number of at least 0", ""),
    ("factors: {a: 2}\nbudget: .nan\n", "line 2: budget must be a number", ""),
    ("factors: {a: 2}\nstrength: 2.5\n", "line 2: strength must be an integer", ""),
    ("factors: {a: 2}\nforbid: {a: 1}\n", "line 2: forbid must be a list of expressions", ""),
    (
        "factors: {a: 2}\nforbid:\n - a=1\n - a=7\n",
        "line 4: A constraint cannot be parsed: 'a' has no level '7'",
        "known: 0, 1",
    ),
    ("factors: {a: 2}\ncosts: 3\n", "line 2: costs must be a mapping", ""),
    ("factors: {a: 2\n", "line 2, column 1", "YAML"),
    ("- a\n- b\n", "is not a mapping", ""),
    ("", "is empty", ""),
    ("subsets: [3, 16]", "line 1: max_active=16 is more than modules=3", "--subsets"),
    ("a: &x [*x]\n", "too deep", ""),
    ("factors: {a: 2}\nbudget: 1\nbudget: 2\n", "line 3: the key 'budget' occurs twice", ""),
    ("factors: {a: 2}\n? [x]\n: 3\n", "line 2: a key is not a name", ""),
    ("!!python/object/apply:os.system ['true']: 3\n", "line 1: a key is not a name", ""),
]


@pytest.mark.parametrize(("text", "says", "fix"), BAD)
def test_bad_files(tmp_path, text, says, fix):
    with pytest.raises(BadInput) as caught:
        read_spec(write(tmp_path, text))
    assert says in caught.value.message and fix in str(caught.value.fix)
    assert "plan.yaml" in caught.value.message


def test_aliases_do_not_explode(tmp_path):
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(BadInput, match="too many values"):
        read_spec(write(tmp_path, "\n".join(lines)))


def test_files_that_cannot_be_read(tmp_path):
    write(tmp_path, "factors: {a: 2}", "robot.yaml")
    with pytest.raises(BadInput, match=r"did you mean '.*robot.yaml'"):
        read_spec(tmp_path / "robt.yaml")
    with pytest.raises(BadInput, match="no file"):
        read_spec(tmp_path)
    with pytest.raises(BadInput, match="UTF-8"):
        read_spec(write(tmp_path, b"factors: {a: \xff\xfe}"))
    with pytest.raises(BadInput, match=r"not TOML.*line 2"):
        read_spec(write(tmp_path, "budget = 1\nfactors = 3 4", "a.toml"))
