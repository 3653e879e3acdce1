"""fractured: its runs, its effects on tables whose answers are known, its figures, and a file that is no genome."""

from __future__ import annotations

import numpy as np
import pytest

from recombine.cli.main import main
from recombine.cppn import CHANGES, Genome
from recombine.engines.local import LocalEngine
from recombine.errors import BadInput
from recombine.overrides import apply, validate
from recombine.store.store import Store
from recombine.studies.fractured import Fractured

INSIDE = {
    "evolved": {"mse": 1e-12, "sweep_asymmetry": 0.2, "parity_purity": 0.98, "distinct_maps": 10.0},
    "trained": {"mse": 1e-5, "sweep_asymmetry": 0.4, "parity_purity": 0.7, "distinct_maps": 80.0},
    "sparse": {"mse": 1e-4, "sweep_asymmetry": 0.35, "parity_purity": 0.75, "distinct_maps": 60.0},
    "relu": {"mse": 5e-4, "sweep_asymmetry": 0.4, "parity_purity": 0.7, "distinct_maps": 80.0},
}
LEFT = {"evolved_adapts": 0.1, "trained_adapts": 0.4, "fresh": 2.0}


@pytest.fixture(scope="module")
def laptop() -> Fractured:
    return apply(Fractured.profile("laptop"), ["first_seed=0"])


def score(labels, **changed):
    """What the literature says, with a little noise."""
    arm, wobble = labels["arm"], 1 + 0.01 * np.sin(labels["replicate"] * 7 + len(labels["arm"]))
    if arm in LEFT:
        slow = labels["learning_rate"] < 1e-3
        return {"left": LEFT[arm] * wobble * (1 if slow == (arm == "evolved_adapts") else 3)}
    few = {f"few_weights_{change}": (0.2 if arm == "evolved" else 0.6) * wobble for change in CHANGES}
    values = INSIDE[arm] | changed.get(arm, {})
    return {name: value * wobble for name, value in values.items()} | few | {"picture_asymmetry": 0.02}


@pytest.mark.parametrize("profile", ["smoke", "demo", "laptop", "paper"])
def test_every_profile_is_well_formed(profile):
    design = Fractured.profile(profile).design
    names = {config.run_id for config, _ in design.runs}
    assert len(names) == len(design.runs)
    for config, labels in design.runs:
        assert config.recipe.samples == config.family.side**2, "a step sees the whole picture"
        adapts = labels["arm"].endswith("_adapts")
        assert bool(config.parents) == adapts
        if adapts:
            assert config.parents[0].run_id in names and config.parents[0].seeds == config.seeds
        assert config.support.combinations == ((labels.get("change", "found"),),)
        assert (config.recipe.steps == 0) == (labels["arm"] == "evolved") == (config.model.weights == "evolved")


def test_every_claim_holds_where_the_literature_is_right(laptop, made, words):
    verdicts = words(laptop, made(laptop, score))
    assert set(verdicts.values()) == {"supported"}, verdicts


@pytest.mark.parametrize(
    ("changed", "claims"),
    [
        (
            {"trained": INSIDE["trained"] | {"mse": 0.01}},
            ("trained-agrees", "sweeps-break-symmetry", "neurons-are-purer", "fewer-maps", "adapts-better"),
        ),
        ({"trained": INSIDE["trained"] | {"sweep_asymmetry": 0.2}}, ("sweeps-break-symmetry",)),
        ({"trained": INSIDE["trained"] | {"parity_purity": 0.98}}, ("neurons-are-purer",)),
        ({"trained": INSIDE["trained"] | {"distinct_maps": 11.0}}, ("fewer-maps",)),
        ({"sparse": INSIDE["evolved"]}, ("sparsity-is-not-enough", "sparse-neurons-are-mixed")),
    ],
)
def test_claims_fail_where_nothing_differs(laptop, made, words, changed, claims):
    verdicts = words(laptop, made(laptop, lambda labels: score(labels, **changed)))
    assert all(verdicts[claim] != "supported" for claim in claims)


def test_effects_are_those_of_the_tables(laptop, made, effects):
    found = effects(laptop, made(laptop, score))
    assert np.mean(found["sweeps-break-symmetry"]) == pytest.approx(0.2, abs=0.01)
    assert np.mean(found["fewer-maps"]) == pytest.approx(3, abs=0.05)
    assert np.mean(found["adapts-better"]) == pytest.approx(2, abs=0.05)
    assert np.mean(found["few-weights-do-more"]) == pytest.approx(np.log2(3), abs=0.05)


def test_other_families_are_refused():
    with pytest.raises(BadInput, match="about pictures"):
        validate(Fractured, {"base": {"family": "hyperteacher"}})


@pytest.fixture(scope="module")
def genome_file(tmp_path_factory):
    """A grey picture of a band, as Picbreeder writes it."""
    nodes = [("y", "in"), ("x", "in"), ("d", "in"), ("bias", "in"), ("", "hidden"), ("ink", "out")]
    links = [(1, 4, 2.0), (4, 5, 1.5), (0, 5, 0.5)]
    text = "".join(
        f'<node label="{label}" type="{kind}"><marking branch="1" id="{number}"/>'
        f"<activation>{'identity' if kind == 'in' else 'gaussian'}(x)</activation></node>"
        for number, (label, kind) in enumerate(nodes)
    )
    joined = "".join(
        f'<link><source branch="1" id="{source}"/><target branch="1" id="{target}"/><weight>{weight}</weight></link>'
        for source, target, weight in links
    )
    path = tmp_path_factory.mktemp("genome") / "band.xml"
    path.write_text(f"<data><genome><nodes>{text}</nodes><links>{joined}</links></genome></data>")
    return path


def test_a_file_gives_the_genome_of_every_run(genome_file):
    study = apply(Fractured.profile("smoke"), [f"evolved={genome_file}"])
    genomes = {config.family.genome for config, _ in study.design.runs}
    assert len(genomes) == 1 and isinstance(next(iter(genomes)), Genome)


def test_a_file_that_is_no_genome_is_bad_input(tmp_path, capsys):
    path = tmp_path / "other.zip"
    path.write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(SystemExit) as ended:
        main(["run", "fractured", "--profile", "smoke", "--store", str(tmp_path / "store"), f"evolved={path}"])
    error = " ".join(capsys.readouterr().err.split())
    assert ended.value.code == 2 and "other.zip" in error and "genome of Picbreeder" in error


def test_a_small_study_runs_on_a_file(genome_file, tmp_path):
    from recombine.design.run import run_study

    study = apply(
        Fractured.profile("smoke"),
        [
            f"evolved={genome_file}",
            "replicates=2",
            "first_seed=0",
            "steps=20",
            "adapt_steps=5,",
            "adapt_rates=0.001,",
            "side=10",
            "samples=100",
        ],
    )
    result = run_study(study, "smoke", Store(tmp_path / "store"), LocalEngine())
    assert not result.overview.empty
    assert {"evolved", "trained", "sparse", "relu", "fresh"} <= set(result.overview["arm"])
    names = [figure.name for figure in result.figures]
    assert {"feature_maps", "film_strips", "sweep_asymmetry", "parity_purity", "distinct_maps", "adaptation"} == set(
        names
    )
    assert len({config.recipe.steps for config, _ in study.design.runs}) == 3
