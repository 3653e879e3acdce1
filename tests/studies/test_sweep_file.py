"""A sweep file becomes runs and labels; whatever cannot be is found before anything trains."""

from __future__ import annotations

import itertools

import pytest

from recombine.design.sweeps.grid import SweepFile, shown
from recombine.design.sweeps.yaml_file import read_sweep
from recombine.errors import BadInput
from recombine.families.goals import Goals
from recombine.overrides import apply, validate
from recombine.training.config import RunConfig, Seeds

FILE = """
base:
  family: hyperteacher
  model: {kind: mlp, depth: 2}
  recipe.learning_rate: 1e-2
grid:
  model.width: [64, 128]
  support.number: [40, 80, 160]
cases:
  - {recipe.steps: 200}
replicates: 3
"""


@pytest.fixture
def read(tmp_path):
    def make(text):
        path = tmp_path / "width by data.yaml"
        path.write_text(text)
        return read_sweep(path)

    return make


def test_every_combination_of_the_grid_is_a_cell_with_its_replicates(read):
    sweep = read(FILE)
    assert sweep.name == "width-by-data"
    labels = [cell.labels for cell in sweep.cells]
    expected = itertools.product([64, 128], [40, 80, 160])
    assert labels == [
        {"recipe.steps": 200, "model.width": width, "support.number": number} for width, number in expected
    ]
    runs = sweep.runs()
    assert len(runs) == 18 and len({config.run_id for config, _ in runs}) == 18
    for config, names in runs:
        assert (config.model.width, config.model.depth) == (names["model.width"], 2)
        assert config.support.number == names["support.number"]
        assert (config.recipe.steps, config.recipe.learning_rate) == (200, 0.01)
        assert config.seeds == Seeds.replicate(names["replicate"])


def test_a_cell_is_the_run_that_overrides_give(read):
    config, _ = read(FILE).runs()[0]
    overrides = ["model=mlp", "depth=2", "learning_rate=0.01", "width=64", "number=40", "steps=200"]
    assert config == apply(validate(RunConfig, {"family": "hyperteacher"}), overrides)


def test_a_sweep_comes_back_from_its_record(read):
    sweep = read(FILE + "measure: [scores, {kind: decodability}]\n")
    again = validate(SweepFile, sweep.model_dump(mode="json"))
    assert again == sweep and again.runs() == sweep.runs()
    assert [one.kind for one in again.measurements()] == ["scores", "decodability"]


def test_nested_settings_dotted_and_leaf_names_mean_the_same(read):
    texts = ["base: {model: {kind: mlp, width: 32}}", "base: {model.width: 32}", "base: {width: 32}"]
    texts.append("base: {model: {width: 32}}")
    assert len({read(text).runs()[0][0].run_id for text in texts}) == 1


def test_a_family_brings_what_goes_with_it_also_in_a_grid(read):
    sweep = read("grid: {family: [hyperteacher, goals]}\nreplicates: 1\n")
    (one, _), (two, labels) = sweep.runs()
    assert labels == {"family": "goals", "replicate": 0}
    assert isinstance(two.family, Goals) and two.objective.kind == "classification"
    assert two == validate(RunConfig, {"family": "goals"}) and one == RunConfig()


def test_a_kind_in_the_grid_keeps_the_settings_that_the_base_gives_it(read):
    sweep = read("base: {model: {kind: mlp, depth: 2}}\ngrid: {model: [mlp, hypernetwork]}\nreplicates: 1\n")
    (one, _), (two, _) = sweep.runs()
    assert (one.model.kind, one.model.depth) == ("mlp", 2)
    assert two.model == validate(RunConfig, {"model": "hypernetwork"}).model


def test_components_with_settings_can_be_values(read):
    sweep = read("grid:\n  model: [{kind: mlp, width: 8}, {kind: mlp, widths: [4, 8]}]\nreplicates: 1\nfirst_seed: 7\n")
    assert [names["model"] for _, names in sweep.runs()] == ["mlp width=8", "mlp widths=4,8"]
    assert [config.model.hidden for config, _ in sweep.runs()] == [(8,) * 4, (4, 8)]
    assert sweep.runs()[0][0].seeds == Seeds.replicate(7)


def test_a_setting_that_a_case_leaves_out_is_shown_as_it_stands(read):
    sweep = read("cases:\n - {encoding: tokens}\n - {recipe.steps: 7}\nreplicates: 1\n")
    first, second = (cell.labels for cell in sweep.cells)
    assert first["encoding"] == "tokens" and first["recipe.steps"] == RunConfig().recipe.steps
    assert second == {"encoding": "identity", "recipe.steps": 7}


def test_seeds_that_the_file_fixes_stay(read):
    sweep = read("base: {seeds.teacher: 5}\nreplicates: 3\n")
    assert [config.seeds.model_dump() for config, _ in sweep.runs()] == [
        {"teacher": 5, "support": n, "init": n, "data": n} for n in range(3)
    ]
    with pytest.raises(BadInput, match="are the same"):
        _ = read("base: {seeds: {teacher: 0, support: 0, init: 0, data: 0}}\nreplicates: 2\n").cells


def test_overrides_change_the_base_and_the_number_of_replicates(read):
    sweep = read(FILE).changed(["replicates=1", "first_seed=9", "depth=3", "base.eval_every=5"])
    ((config, names), *rest) = sweep.runs()
    assert len(rest) == 5 and names["replicate"] == 9
    assert (config.model.depth, config.eval_every, config.recipe.learning_rate) == (3, 5, 0.01)


@pytest.mark.parametrize("name", ["width", "model.width", "base.model.width", "recipe.steps"])
def test_an_override_of_what_varies_is_refused(read, name):
    with pytest.raises(BadInput, match=r"the sweep varies '(model.width|recipe.steps)'"):
        read(FILE).changed([f"{name}=3"])


SYNTAX = [
    ("grid: {model.width: [1, 2}\n", "line 1", "YAML"),
    ("base:\n  family: goals\n\tmodel: mlp\n", "line 3", "YAML"),
    ("replicates: 2\nreplicates: 3\n", "line 2, column 1: the key 'replicates' stands twice", ""),
    ("grid:\n  width: [1]\n  width: [2]\n", "line 3", ""),
    ("", "is empty", "base, grid"),
    ("- 1\n", "not a mapping", "base, grid"),
    ("gird: {}\n", "no key 'gird'", "did you mean 'grid'"),
    ("a: !!python/object/apply:os.system ['true']\n", "could not determine a constructor", ""),
    ("base: {space: &a {b: *a}}\n", "line 1, column 15: an alias stands for itself", ""),
    ("base: {eval_every: 2020-01-01}\n", "no number, text", "quotes"),
]
VALUES = [
    ("grid: {model.width: []}\n", "grid.model.width = []", "list of values"),
    ("grid: {model.width: 64}\n", "grid.model.width = 64", "list of values"),
    ("cases: []\n", "cases = []", "list of mappings"),
    ("replicates: 0\n", "replicates = 0", ""),
    ("first_seed: -1\n", "first_seed = -1", ""),
    ("name: ../up\n", "name = '../up'", ""),
    ("measure: [scrs]\n", "called 'scrs'", "scores"),
]


@pytest.mark.parametrize(("text", "says", "fix"), [*SYNTAX, *VALUES])
def test_a_file_that_is_wrong_is_told_with_its_place_and_the_fix(read, text, says, fix):
    with pytest.raises(BadInput) as caught:
        read(text)
    assert "width by data.yaml" in caught.value.message
    assert says in caught.value.message and fix in (caught.value.fix or "")


CELLS = [
    ("base: {widht: 3}\n", "base: There is nothing called 'widht'", "width"),
    ("base: {model: {kind: mlp, widht: 3}}\n", "base: There is nothing called 'model.widht'", "model.width"),
    ("base: {family: hyperteachr}\n", "base: There is no family called 'hyperteachr'", "hyperteacher"),
    ("grid: {model: [mlp, transfrmer]}\n", "cell model=transfrmer: There is no model", "transformer"),
    ("grid: {support.number: [40, 5]}\n", "cell support.number=5: ", ""),
    ("grid: {objective: [regression, classification]}\n", "cell objective=classification: ", "regression"),
    ("base: {model: transformer}\ngrid: {samples: [64, 4]}\n", "cell samples=4: The transformer", "context"),
    ("grid: {model.width: [64, 64]}\n", "are the same: model.width=64, replicate 0; and model.width=64", ""),
    ("grid: {width: [8], model.width: [16]}\n", "'width' and 'model.width' are the same setting", ""),
    ("grid: {steps: [8]}\ncases: [{steps: 9}]\n", "'steps' stands in the grid and in a case", ""),
    ("grid: {steps: [8]}\ncases: [{recipe.steps: 9}]\n", "are the same setting", ""),
    ("replicates: 1000000\n", "has 1000000 runs", "possible"),
    ("base: {model: }\n", "base: A component of models was given as None", ""),
]


@pytest.mark.parametrize(("text", "says", "fix"), CELLS)
def test_what_cannot_be_names_the_base_or_the_cell(read, text, says, fix):
    sweep = read(text)
    with pytest.raises(BadInput) as caught:
        _ = sweep.cells
    assert says in caught.value.message and fix in (caught.value.fix or "")


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    (tmp_path / "grid.yaml").write_text("replicates: 1\n")
    with pytest.raises(BadInput, match=r"no sweep file") as caught:
        read_sweep(tmp_path / "gird.yaml")
    assert "grid.yaml" in (caught.value.fix or "")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.yaml", "."):
        with pytest.raises(BadInput, match="cannot be read"):
            read_sweep(tmp_path / name)


def test_labels():
    assert [shown(value) for value in (3, 0.5, "mlp", None, [1, 2])] == [3, 0.5, "mlp", None, "1,2"]
    assert shown({"kind": "mlp", "widths": [1, 2]}) == "mlp widths=1,2"
