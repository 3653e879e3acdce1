"""Where a command computes: the options, what they give, and what is said of those that cannot be."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from recombine.cli.options import EngineOptions, bytes_of
from recombine.engines.local import LocalEngine
from recombine.engines.processes import ProcessEngine
from recombine.engines.ray import RayEngine
from recombine.errors import BadInput
from recombine.store.store import Store


@pytest.mark.parametrize(
    "text, size",
    [("4GB", 4 * 10**9), ("4g", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("600MB", 6 * 10**8), ("2000000000", 2 * 10**9)],
)
def test_sizes_as_people_write_them(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["much", "4 XB", "-1GB", "", "1e9", "4", "10MB"])
def test_sizes_that_mean_nothing_or_too_little(text):
    with pytest.raises(BadInput, match="--memory is") as error:
        bytes_of(text)
    assert "e.g. --memory" in error.value.fix


def test_the_options_give_an_engine():
    assert type(EngineOptions().make()) is LocalEngine
    assert type(EngineOptions(jobs=1).make()) is LocalEngine
    several = EngineOptions(jobs=3, threads=2, memory="4GB").make()
    assert isinstance(several, ProcessEngine)
    assert (several.jobs, several.threads, several.memory) == (3, 2, 4 * 10**9)
    assert isinstance(EngineOptions(threads=1).make(), ProcessEngine), "limits need a process of their own"
    cluster = EngineOptions(engine="ray", threads=4, gpus=0.5, address="auto").make()
    assert isinstance(cluster, RayEngine)
    assert (cluster.cpus, cluster.threads, cluster.gpus, cluster.address) == (4, 4, 0.5, "auto")


@pytest.mark.parametrize(
    "options, message, fix",
    [
        ({"engine": "rya"}, "no engine called 'rya'", "did you mean 'ray'"),
        ({"jobs": 0}, "--jobs is 0", "--jobs 1"),
        ({"threads": -2}, "--threads is -2", "--threads 1"),
        ({"address": "auto"}, "--address belongs to the engine ray", "--engine ray"),
        ({"remote": "s3://bucket"}, "--remote belongs to the engine ray", "--engine ray"),
        ({"gpus": 1.0}, "--gpus belongs to the engine ray", "--engine ray"),
        ({"engine": "ray", "jobs": 2}, "--jobs belongs to the engine local", "--threads"),
        ({"engine": "ray", "remote": "runs"}, "not the address of an object store", "s3://"),
    ],
)
def test_what_cannot_be_is_explained(options, message, fix):
    with pytest.raises(BadInput, match=message) as error:
        EngineOptions(**options).make()
    assert fix in error.value.fix


def test_without_ray_the_message_says_what_to_install(cli, small_run, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ray" else found(name, *rest))
    answer = cli("train", "hyperteacher", *small_run, "--engine", "ray", "--json")
    assert answer.code == 2
    assert answer.document["fix"] == 'pip install "recombine[ray]"'


def test_a_study_in_two_processes(cli, small_study, tmp_path):
    answer = cli("run", "data-scaling", "--profile", "smoke", *small_study, "--jobs", "2", "--json")
    assert answer.code == 0, answer.err
    assert answer.document["sweep"]["trained"] == 8 and len(answer.document["verdicts"]) == 11
    store = Store(tmp_path / "runs")
    assert len(store.run_ids()) == 8 and store.problems == []


def test_bad_options_are_told_before_anything_is_made(cli, small_run, tmp_path):
    answer = cli("train", "hyperteacher", *small_run, "--jobs", "0")
    assert answer.code == 2 and "--jobs is 0" in answer.err
    assert not (tmp_path / "runs").exists()


def test_help_shows_the_options_and_loads_neither_jax_nor_ray():
    program = "import sys; from recombine.cli.main import _guarded; _guarded(['run', '--help']); "
    program += "assert not {'jax', 'ray'} & set(sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for option in ("--engine", "--jobs", "--threads", "--memory", "--gpus", "--address", "--remote"):
        assert option in answer.stdout
