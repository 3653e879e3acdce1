"""Runs that are lost or damaged: every command that shows results says so, on the page too, and ends non-zero."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from recombine.store.requests import requests
from recombine.store.store import Store


def flip(path: Path) -> None:
    """Change one bit, and neither the length nor the time of the file."""
    data, state = bytearray(path.read_bytes()), path.stat()
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def first_run(store: Path) -> Path:
    return sorted((store / "runs").iterdir())[0]


def test_a_whole_store_says_how_many_runs_it_found(cli, copy, tmp_path):
    report = cli("report", "--store", copy, "--json", "--out", tmp_path / "r.html")
    assert report.code == 0 and (report.document["runs_expected"], report.document["runs_found"]) == (8, 8)
    assert "Incomplete" not in (tmp_path / "r.html").read_text()
    assert cli("verdicts", "--store", copy).code == 0


def test_a_run_that_is_gone_is_named(cli, copy, tmp_path):
    run = first_run(copy)
    shutil.rmtree(run)
    page, out = tmp_path / "r.html", tmp_path / "out"
    report = cli("report", "--store", copy, "--json", "--out", page)
    assert report.code == 1 and report.document["missing"] == [run.name]
    assert (report.document["runs_expected"], report.document["runs_found"]) == (8, 7)
    assert "Incomplete: 1 of 8 runs are not in the store" in page.read_text()
    for command in (("verdicts",), ("export", "--out", out)):
        answer = cli(*command, "--store", copy, "--json")
        assert answer.code == 1 and f"1 of 8 runs are not in the store: {run.name}" in answer.err
        json.loads(answer.out)
    shutil.rmtree(copy / "runs")
    answer = cli("report", "--store", copy, "--out", page)
    assert answer.code == 2 and "None of the 8 runs is in the store" in answer.err


@pytest.mark.parametrize("file", ["*.parquet", "*.json"])
def test_one_changed_bit_in_a_measurement_is_no_report_as_if_nothing_were(cli, copy, tmp_path, file):
    damaged = sorted((first_run(copy) / "measurements").glob(file))[0]
    flip(damaged)
    page = tmp_path / "r.html"
    report = cli("report", "--store", copy, "--json", "--out", page)
    assert report.code == 1 and any(damaged.stem in problem for problem in report.document["problems"])
    if damaged.suffix == ".parquet":
        assert report.document["damaged"] == [first_run(copy).name]
        assert "measurements of 1 of 8 runs cannot be read" in page.read_text()


def test_what_cannot_be_read_is_not_shown_as_nothing(cli, copy, monkeypatch):
    flip(next((copy / "studies").glob("*.json")))
    answer = cli("verdicts", "--store", copy)
    assert answer.code == 1 and "No study has run" not in answer.out and "damaged" in answer.err
    flip(first_run(copy) / "manifest.json")
    answer = cli("ls", "--store", copy, "--json")
    assert answer.code == 1 and len(answer.document) == 7 and "doctor" in answer.err
    real = os.scandir

    def forbidden(folder):
        if Path(folder).name in ("runs", "studies"):
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", forbidden)
    for command in ("ls", "verdicts"):
        answer = cli(command, "--store", copy)
        assert answer.code == 2 and "cannot be read: Permission denied" in answer.err


def test_a_verdict_from_fewer_runs_takes_the_place_of_none(cli, copy, small_study, monkeypatch):
    from recombine.engines.local import LocalEngine

    record = next((copy / "studies").glob("*.json"))
    before, run = record.read_bytes(), first_run(copy)
    real = LocalEngine.run_generation

    def removed_meanwhile(self, *arguments, **named):
        done = real(self, *arguments, **named)
        shutil.rmtree(run)
        return done

    monkeypatch.setattr(LocalEngine, "run_generation", removed_meanwhile)
    answer = cli("run", "data-scaling", "--profile", "smoke", *small_study, "--store", copy, "--json")
    assert answer.code == 1 and answer.document["missing"] == [run.name]
    assert record.read_bytes() == before


def test_an_edited_sweep_file_does_not_forget_what_the_old_one_left(cli, tmp_path, small_run):
    from recombine.design.sweeps.run import keep_unfinished, request_of
    from recombine.design.sweeps.yaml_file import read_sweep
    from recombine.store.requests import remember

    store, file = Store(tmp_path / "store"), tmp_path / "mine.yaml"
    for number, kept in ((40, 0), (50, 1), (50, 1), (60, 2)):
        file.write_text(f"grid: {{support.number: [{number}]}}\nreplicates: 1")
        request = request_of(read_sweep(file))
        keep_unfinished(store, request)
        remember(store, request)
        names = [each["name"] for each in requests(store, "sweep")]
        assert len(names) == 1 + kept and "mine" in names
    runs = {run for each in requests(store, "sweep") for run in each["runs"]}
    assert len(runs) == 3 and len(store.problems) == 2
    listed = cli("resume", "--store", store.path, "--dry-run", "--json")
    assert len(listed.document["incomplete"]) == 3
