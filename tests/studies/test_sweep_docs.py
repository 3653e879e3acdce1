"""The example of docs/sweeps.md is a sweep as it stands."""

import re
from pathlib import Path

from recombine.design.sweeps.yaml_file import read_sweep

PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"


def test_the_example_is_a_sweep(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    (tmp_path / "width-by-data.yaml").write_text(text)
    sweep = read_sweep(tmp_path / "width-by-data.yaml")
    assert len(sweep.cells) == 12 and len(sweep.runs()) == 144
    assert {config.recipe.learning_rate for config, names in sweep.runs() if names["encoding"] == "orthogonal"} == {
        0.01
    }
