"""Input that would take any time or memory: each is refused at once, with what was wrong with it."""

from __future__ import annotations

import json
import zipfile
from types import SimpleNamespace

import pytest

from recombine.errors import BadInput

DEEP = "[" * 100_000


def nested(levels: int) -> str:
    """A YAML list that stands for 9 ** levels values."""
    text = "&b0 [1,1,1,1,1,1,1,1,1]"
    for level in range(1, levels):
        text = f"&b{level} [{text},{','.join([f'*b{level - 1}'] * 8)}]"
    return text


SWEEPS = {
    "aliases": (f"grid: {{model.width: {nested(9)}}}", "too many values"),
    "itself": ("grid: &a {model.width: *a}", "stands for itself"),
    "depth": (f"base: {'{a: ' * 500}1{'}' * 500}", "nested too deeply"),
    "octal": ("base: {recipe.steps: 010}\ngrid: {support.number: [40]}", "YAML reads 010 as another number"),
    "sexagesimal": ("base: {recipe.steps: 1:30}\ngrid: {support.number: [40]}", "YAML reads 1:30 as another number"),
    "truth": ("grid: {model.width: [true]}", "width = True: a number is expected"),
    "yes": ("grid: {model.width: [yes]}", "width = True: a number is expected"),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_files(cli, tmp_path, name):
    text, says = SWEEPS[name]
    (tmp_path / "sweep.yaml").write_text(text)
    answer = cli("sweep", "sweep.yaml", "--dry-run")
    assert answer.code == 2 and says in answer.err and answer.out == ""


def test_text_in_quotes_and_words_stay_what_they_are():
    from recombine.design.sweeps.yaml_file import parse

    assert parse("name: '010'", "a file")["name"] == "010"
    assert parse("base: {number: 10, held_out: 0.5, learning_rate: 1e-3}", "a file")["base"]["held_out"] == 0.5


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("depth=100000", "model.depth = 100000: input should be less than or equal to 1000"),
        ("width=true", "width = True: a number is expected"),
        (f"width={DEEP}", "nested too deeply"),
    ],
)
def test_overrides(cli, override, says):
    answer = cli("train", "hyperteacher", override)
    assert answer.code == 2 and says in answer.err


def test_a_run_whose_weights_do_not_fit_is_named_before_anything_is_drawn(cli, tmp_path):
    answer = cli("train", "hyperteacher", "width=1000000000", "--store", tmp_path / "store")
    assert answer.code == 1 and "its weights take" in answer.err and "a smaller model" in answer.err


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("colour,shape,score\n" + "\n".join(f"c{n % 3},s{n % 4},{n % 2}" for n in range(48)))
    return path


FILTERS = [
    ("length(repeat('x', 2000000000)) > 1", "calls repeat"),
    ("pg_sleep(1000) IS NULL", "calls pg_sleep"),
    ("colour = 'c1' AND len(range(100000000000)) > 1", "calls range"),
    ("1/0", "neither true nor false"),
    ("score", "neither true nor false"),
]


@pytest.mark.parametrize(("where", "says"), FILTERS)
def test_filters(cli, scores, where, says):
    answer = cli("audit", scores, "--factors", "colour,shape", "--score", "score", "--where", where)
    assert answer.code == 2 and says in answer.err


def test_a_negative_seed(cli, scores):
    answer = cli("audit", scores, "--factors", "colour,shape", "--score", "score", "--seed", "-1")
    assert answer.code == 2 and "--seed" in answer.err


def test_scores_whose_square_is_no_number(cli, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,score\n" + "\n".join(f"{n % 3},{n % 4},{n}e151" for n in range(1, 40)))
    answer = cli("audit", "t.csv", "--factors", "a,b", "--score", "score")
    assert answer.code == 2 and "too large to average" in answer.err


def test_an_encrypted_file_of_activations(cli, scores, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("a.npy", b"x")
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.npz").write_bytes(data)
    line = ("--factors", "colour,shape", "--score", "score", "--activations", "a.npz")
    answer = cli("audit", scores, *line)
    assert answer.code == 2 and "encrypted" in answer.err


def test_json_that_is_nested_without_end(cli, tmp_path):
    (tmp_path / "deep.json").write_text(DEEP)
    answer = cli("audit", "compare", "deep.json", "deep.json")
    assert answer.code == 2 and "nested too deeply" in answer.err


def test_a_plan_of_very_large_combinations(cli):
    answer = cli("plan", "--subsets", "5000,2500")
    assert answer.code == 2 and "more than the limit" in answer.err


def test_constraints_that_no_solver_decides_in_time(monkeypatch):
    """The solver's time ends, and the constraints are not taken for contradictory."""
    from scipy import optimize

    from recombine.spaces import ProductSpace
    from recombine.supports.covering import constraints

    given = []

    def out_of_time(*_, options, **__):
        given.append(options["time_limit"])
        return SimpleNamespace(status=1, x=None, message="Time limit reached.")

    monkeypatch.setattr(optimize, "milp", out_of_time)
    space = ProductSpace(factors=dict.fromkeys("abcdef", 2))
    # The first level of a is allowed with nothing, which is seen only after a level of b is chosen: the solver has to decide.
    rules = constraints.Rules(space, [constraints.Forbidden((0, b, c)) for b in (2, 3) for c in (4, 5)])
    with pytest.raises(BadInput, match=r"could not decide .* Time limit reached"):
        rules.require_satisfiable()
    assert given == [constraints.SOLVER_SECONDS]


def test_an_archive_that_unpacks_to_far_more_than_its_size(cli, tmp_path, monkeypatch):
    from recombine.store import packed

    monkeypatch.setattr(packed, "BOMB_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("runs/0123456789abcdef/weights.safetensors", bytes(4 << 20))
    answer = cli("store", "merge", "bomb.zip", "--store", tmp_path / "store")
    assert answer.code == 2 and "far more than its own size" in answer.err
    assert list((tmp_path / "store" / "temporary").iterdir()) == []


def test_no_memory_is_a_message(cli, monkeypatch):
    from recombine.cli import listing

    def too_much(*_):
        raise MemoryError("Unable to allocate 116. GiB")

    monkeypatch.setattr(listing, "kinds", too_much)
    answer = cli("ls", "families", "--json")
    assert answer.code == 1 and "not enough memory" in json.loads(answer.out)["error"]
