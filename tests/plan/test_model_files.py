"""Model files of PICT, ACTS and CTWedge say what they say in those tools; errors have line and column."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import recombine as rc
from recombine.errors import BadInput
from recombine.plan.constraints import compile_constraints
from recombine.plan.spec import PlanSpec, read_spec
from recombine.supports.covering import allowed

PICT = """\
# machines
PLATFORM:  x86, x64, arm
CPUS:      1, 2, 4
RAM:       1GB, 4GB, 64GB (10)
OS:        Win7 | Seven, Win8, ~Win3
COPY:      <CPUS>, 8, ~-1

{ PLATFORM, CPUS, RAM } @ 3
{ OS, RAM } @ 2

IF [PLATFORM] = "x86" THEN [RAM] <> "64GB";
IF [CPUS] >= 2 AND NOT [OS] LIKE "*3" THEN [RAM] IN {"1GB", "64gb"}
   ELSE [PLATFORM] <> "arm" OR ISNEGATIVE([COPY]);
[CPUS] <= [COPY] OR ispositive([OS]);
IF [OS] = "Seven" THEN [COPY] > 1.0 OR [COPY] = -1;
"""
ACTS = """\
[System]
-- a comment
Name: phone
[Parameter]
Colour (enum): red, green, "dark blue"
Size (int): 1, 2, 10
Lens (boolean): true, false
[Relation]
R1: (Colour, Size, Lens, 3)
[Constraint]
(Colour = "red") => (Size > 2 || !(Lens = true))
Size != 10 && Lens = "false" || Colour != "green"
"""
CTWEDGE = """\
Model Phone
Parameters:
  viewer : Boolean
  lines:  [ 25 .. 31 ] step 3
  display : {mc16 mc8, bw};
Constraints:
  # viewer => lines > 28 #
  # display == bw <=> !viewer #   // both ways
"""


def write(tmp_path, text: str, name: str) -> PlanSpec:
    path = tmp_path / name
    path.write_text(text)
    return read_spec(path)


def satisfying(spec: PlanSpec) -> set[tuple[str, ...]]:
    """All combinations that the constraints allow."""
    space = spec.space
    assert isinstance(space, rc.ProductSpace)
    rows = space.enumerate()
    rows = rows[allowed(space, rows, compile_constraints(spec.forbid, spec.require, space))]
    values = [value for _, values in space.factors for value in values]
    return {tuple(values[part] for part in row) for row in rows.tolist()}


def brute(levels: list[list[str]], rule: Callable[..., bool]) -> set[tuple[str, ...]]:
    return {row for row in itertools.product(*levels) if rule(*row)}


def test_pict(tmp_path):
    spec = write(tmp_path, PICT, "m.pict")
    copies = ["1", "2", "4", "8", "-1"]

    def rule(platform, cpus, ram, os, copy):
        first = platform != "x86" or ram != "64GB"
        then = ram in ("1GB", "64GB") if os != "Win3" and int(cpus) >= 2 else None
        second = (platform != "arm" or copy == "-1") if then is None else then
        third = int(cpus) <= int(copy) or os != "Win3"
        fourth = os != "Win7" or int(copy) > 1 or copy == "-1"
        return first and second and third and fourth and not (os == "Win3" and copy == "-1")

    levels = [["x86", "x64", "arm"], ["1", "2", "4"], ["1GB", "4GB", "64GB"], ["Win7", "Win8", "Win3"], copies]
    assert satisfying(spec) == brute(levels, rule)
    assert spec.stronger == ((("PLATFORM", "CPUS", "RAM"), 3),), "pairs are covered anyway"
    assert "Weights" in spec.notes[0]


def test_acts(tmp_path):
    spec = write(tmp_path, ACTS, "m.txt")

    def rule(colour, size, lens):
        first = colour != "red" or int(size) > 2 or lens != "true"
        return first and ((size != "10" and lens == "false") or colour != "green")

    levels = [["red", "green", "dark blue"], ["1", "2", "10"], ["true", "false"]]
    assert satisfying(spec) == brute(levels, rule)
    assert spec.stronger == ((("Colour", "Size", "Lens"), 3),)


def test_ctwedge(tmp_path):
    spec = write(tmp_path, CTWEDGE, "m.ctw")
    levels = [["true", "false"], ["25", "28", "31"], ["mc16", "mc8", "bw"]]
    expected = brute(levels, lambda v, lines, d: (v != "true" or int(lines) > 28) and ((d == "bw") == (v == "false")))
    assert satisfying(spec) == expected


def test_groups_of_higher_strength_are_covered(tmp_path):
    spec = write(tmp_path, PICT, "m.pict")
    plan = rc.make_plan(**vars(spec))
    rows = [tuple(map(str, row)) for row in plan.names]
    possible = satisfying(spec)
    assert set(rows) <= possible and len(set(rows)) == len(rows)
    for slots in [(0, 1, 2), *itertools.combinations(range(5), 2)]:
        wanted = {tuple(row[slot] for slot in slots) for row in possible}
        assert {tuple(row[slot] for slot in slots) for row in rows} == wanted
    assert any("sets of 3 levels of PLATFORM, CPUS, RAM are covered" in note for note in plan.notes)
    # An orthogonal array of 4^4 has 64 rows, and the second group fits beside it.
    space = rc.ProductSpace(factors=dict.fromkeys("abcdefg", 4))
    both = rc.make_plan(space, stronger={tuple("abcd"): 3, tuple("efg"): 3})
    parts = np.array(both.names)
    assert len({tuple(row) for row in parts[:, 4:]}) == 64 and len(parts) <= 80
    small = rc.make_plan(space, stronger={tuple("abcd"): 3}, budget=20)
    assert len(small.combinations) == 20 and "too small for the groups" in small.notes[0]


def test_groups_in_plan_files_and_in_python(tmp_path):
    text = "factors: {a: [x, y], b: 2, c: 2, d: 3}\nstronger: ['a, b, c @ 3']\nforbid: b<=0 and c>0\n"
    spec = write(tmp_path, text, "plan.yaml")
    assert spec.stronger == ((("a", "b", "c"), 3),) and len(satisfying(spec)) == 18
    for wrong, match in (("a, b", "cannot be read"), ("a, e @ 2", "no factor called 'e'"), ("a, b @ 3", "Strength 3")):
        with pytest.raises(BadInput, match=f"plan.yaml, line 2.*{match}"):
            write(tmp_path, text.replace("a, b, c @ 3", wrong), "plan.yaml")
    with pytest.raises(BadInput, match="'x', which is not a number"):
        write(tmp_path, text.replace("b<=0", "a<=0"), "plan.yaml")
    with pytest.raises(BadInput, match="'much' is not a number"):
        write(tmp_path, text.replace("b<=0", "b<=much"), "plan.yaml")
    with pytest.raises(BadInput, match="subsets have none"):
        rc.make_plan(rc.SubsetSpace(modules=5, max_active=2), stronger={("a",): 1})


@pytest.mark.parametrize(
    "text, name, place, what",
    [
        ("A: 1, 2\nB 1, 2\n", "m.pict", "line 2, column 7", "expected ':'"),
        ("A: 1, 2\nB: 1,, 2\n", "m.pict", "line 2, column 6", "empty value"),
        ("A: 1, 2\nA: 1, 2\n", "m.pict", "line 2, column 1", "occurs twice"),
        ("A: 1, 2, 1\n", "m.pict", "line 1, column 1", "'1' twice"),
        ("A: 1, 2\nB: <C>\n", "m.pict", "line 2, column 4", "no parameter called 'C'"),
        ("A: 1, 2\nB: x\n{ A, C } @ 2\n", "m.pict", "line 3, column 6", "no parameter called 'C'"),
        ("A: 1, 2\nB: x\n{ A, B } @ 3\n", "m.pict", "line 3, column 12", "strength 3 is not possible"),
        ("A: 1, 2\nB: x\n{ A, B @ 3\n", "m.pict", "line 3, column 1", "cannot be read"),
        ('A: 1, 2\nB: x\nIF [A] = 1 [B] = "x";\n', "m.pict", "line 3, column 12", "expected 'THEN'"),
        ('A: 1, 2\nB: x\nIF [A] = 3 THEN [B] = "x";\n', "m.pict", "line 3, column 10", "'A' has no value '3'"),
        ("A: 1, 2\nB: x\n[A] = 1 OR [C] = 1;\n", "m.pict", "line 3, column 12", "no parameter called 'C'"),
        ("A: 1, 2\nB: x\n[A] = 1 OR\n  [B] > 1;\n", "m.pict", "line 4, column 7", "'x' is not a number"),
        ("A: 1, 2\nB: x\n[A] = 1\n", "m.pict", "line 3, column 8", "expected ';'"),
        ("A: 1, 2\nB: x\n[A] = 'x;\n", "m.pict", "line 3, column 7", "quote is not closed"),
        ("A: 1, 2\nB: x\n[A] = 1 + 2;\n", "m.pict", "line 3, column 9", r"'\+' is not expected"),
        ("# nothing\n", "m.pict", "line 1, column 1", "names no parameters"),
        (ACTS.replace("Size > 2", "Sise > 2"), "m.txt", "line 11, column 22", "no parameter called 'Sise'"),
        (ACTS.replace("(enum)", "(enumeration)"), "m.txt", "line 5, column 9", "no type 'enumeration'"),
        (ACTS.replace("[Relation]", "[Relatoin]"), "m.txt", "line 8, column 1", "no section 'Relatoin'"),
        (ACTS.replace("Lens, 3", "Lens, 4"), "m.txt", "line 9, column 26", "strength 4 is not possible"),
        (CTWEDGE.replace("> 28 #", "> 28"), "m.ctw", "line 8", "not closed|not expected"),
        (CTWEDGE.replace("viewer : Bool", "viewer Bool"), "m.ctw", "line 3, column 3", "cannot be read"),
        (CTWEDGE.replace("31 ]", "20 ]"), "m.ctw", "line 4, column 3", "range of 'lines' has no values"),
    ],
)
def test_syntax_errors_have_line_and_column(text, name, place, what, tmp_path):
    with pytest.raises(BadInput, match=f"{name}, {place}.*: .*({what})") as caught:
        write(tmp_path, text, name)
    assert caught.value.exit_code == 2 and "^" in caught.value.message


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(BadInput, match="is XML"):
        write(tmp_path, "<System name='x'/>", "m.xml")
    with pytest.raises(BadInput, match="is empty"):
        write(tmp_path, " \n", "m.pict")
    (tmp_path / "m.pict").write_bytes(b"A: \xff\n")
    with pytest.raises(BadInput, match="cannot be read"):
        read_spec(tmp_path / "m.pict")
