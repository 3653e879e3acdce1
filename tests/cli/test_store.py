"""`recombine store ...`: deleting, archiving, tagging and merging from the command line."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from recombine.store.requests import requests
from recombine.store.store import Store

STUDY = "data-scaling"


@pytest.fixture
def ids(copy):
    return Store(copy).run_ids()


def test_ls_says_what_a_store_holds(cli, copy, ids):
    cli("store", "tag", "mine", ids[0], "--store", copy)
    document = cli("store", "ls", "--store", copy, "--json").document
    assert document["runs"] == {"complete": 8, "failed": 0, "damaged": 0} and document["tags"] == {"mine": 1}
    assert document["asked"][0]["complete"] is True and document["bytes"] > 0
    words = cli("store", "ls", "--store", copy).out
    assert "tag mine" in words and STUDY in words and "8 of 8" in words


def test_rm_shows_asks_and_deletes(cli, copy, ids, monkeypatch):
    looked = cli("store", "rm", ids[0][:10], "--store", copy, "--dry-run")
    assert looked.code == 0 and ids[0] in looked.out and STUDY in looked.out
    unasked = cli("store", "rm", ids[0], "--store", copy)
    assert unasked.code == 2 and "--yes" in unasked.err
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    for word, left in (("n", 8), ("", 8), ("y", 7)):
        monkeypatch.setattr("builtins.input", lambda word=word: word)
        answer = cli("store", "rm", ids[0], "--store", copy)
        assert answer.code == 0 and len(Store(copy).run_ids()) == left
    assert "1 run deleted" in answer.out and "for good?" in answer.err
    document = cli("store", "rm", ids[1], "--store", copy, "--yes", "--json").document
    assert document["removed"] == [ids[1]] and document["bytes"] > 0 and document["forgotten"] == []
    assert "To be finished" in cli("resume", "--store", copy, "--dry-run").out


def test_rm_of_a_study_forgets_what_was_asked_and_keeps_what_was_found(cli, copy):
    before = cli("verdicts", "--store", copy, "--json").document
    document = cli("store", "rm", "--study", STUDY, "--store", copy, "--yes", "--json").document
    assert len(document["removed"]) == 8 and len(document["forgotten"]) == 1
    assert Store(copy).run_ids() == [] and requests(Store(copy)) == []
    assert cli("verdicts", "--store", copy, "--json").document == before
    assert "nothing to resume" in " ".join(cli("resume", "--store", copy).out.split())


def test_runs_that_another_sweep_uses_stay(cli, copy, tmp_path, ids):
    from recombine.store.requests import remember

    other = {"request": "sweep", "name": "grid", "runs": ids[:3], "measurements": [], "time": "now"}
    remember(Store(copy), other)
    looked = cli("store", "rm", "--study", STUDY, "--store", copy, "--dry-run", "--json").document
    assert sorted(looked["kept"]) == ids[:3] and looked["would_remove"] == ids[3:]
    answer = cli("store", "rm", "--study", STUDY, "--store", copy, "--yes")
    assert "3 runs will stay" in answer.out and "grid" in answer.out
    assert Store(copy).run_ids() == ids[:3]


def test_rm_needs_to_be_told_what(cli, copy):
    answer = cli("store", "rm", "--store", copy, "--yes")
    assert answer.code == 2 and "Name the runs to delete" in answer.err
    none = cli("store", "rm", "--failed", "--store", copy, "--yes")
    assert none.code == 0 and "nothing to delete" in none.out
    where = cli("store", "rm", "--where", "support.number=12", "--store", copy, "--dry-run", "--json").document
    assert len(where["would_remove"]) == 4 and where["removed"] == []
    assert len(Store(copy).run_ids()) == 8


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_archive_remove_and_merge_bring_everything_back(cli, copy, tmp_path, ending, ids):
    before = cli("verdicts", "--store", copy, "--json").document
    cli("store", "tag", "mine", ids[0], "--store", copy)
    file = tmp_path / f"all.{ending}"
    looked = cli("store", "archive", file, "--store", copy, "--dry-run", "--json").document
    assert len(looked["would_archive"]) == 8 and not file.exists()
    answer = cli("store", "archive", file, "--store", copy, "--remove")
    assert answer.code == 0 and "read back and checked" in answer.out and "8 of them were deleted" in answer.out
    assert Store(copy).run_ids() == [] and "nothing to resume" in " ".join(cli("resume", "--store", copy).out.split())

    for store in (copy, tmp_path / "new"):
        document = cli("store", "merge", file, "--store", store, "--json").document
        assert len(document["merged"][str(file)]["runs"]) == 8 and document["conflicts"] == []
        assert Store(store).run_ids() == ids
        assert cli("verdicts", "--store", store, "--json").document == before
        assert "is complete" in cli("resume", "--store", store).out
        assert [one["run"] for one in cli("ls", "--tag", "mine", "--store", store, "--json").document] == ids[:1]
    again = cli("store", "merge", file, copy, "--store", tmp_path / "new")
    assert again.code == 0 and "Taken into" in again.out
    assert cli("doctor", "--store", tmp_path / "new").code == 0


def test_an_archive_that_cannot_be_removes_nothing(cli, copy, tmp_path, ids, monkeypatch):
    from recombine.errors import RecombineError
    from recombine.store import archive

    def broken(*_):
        raise RecombineError("it does not hold what was written")

    monkeypatch.setattr(archive, "check", broken)
    answer = cli("store", "archive", tmp_path / "all.zip", "--store", copy, "--remove", "--json")
    assert answer.code == 1 and Store(copy).run_ids() == ids and not (tmp_path / "all.zip").exists()


def test_damaged_runs_are_left_out_and_the_exit_code_says_so(cli, copy, tmp_path, ids):
    (copy / "runs" / ids[0] / "weights.safetensors").unlink()
    answer = cli("store", "archive", tmp_path / "all.zip", ids[0], ids[1], "--remove", "--store", copy)
    assert answer.code == 1 and "1 damaged runs were left out" in answer.err
    assert ids[0] in Store(copy).names() and ids[1] not in Store(copy).names()


def test_conflicts_are_told_and_the_exit_code_says_so(cli, copy, tmp_path, ids):
    other = tmp_path / "other"
    shutil.copytree(copy, other)
    weights = other / "runs" / ids[0] / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-2] ^= 0x40
    weights.write_bytes(bytes(data))
    answer = cli("store", "merge", other, "--store", copy, "--json")
    assert answer.code == 1 and len(answer.document["conflicts"]) == 1
    assert f"conflict: Run {ids[0]}" in answer.err and "1 conflicts" in answer.err
    assert Store(copy).run_ids() == ids


def test_tags_are_given_listed_and_taken(cli, copy, ids):
    answer = cli("store", "tag", "mine", ids[0][:8], ids[1], "--store", copy)
    assert answer.code == 0 and "2 runs tagged 'mine'" in answer.out
    assert cli("store", "tag", "mine", ids[1], "--store", copy, "--json").document["new"] == []
    words = cli("ls", "--tag", "mine", "--store", copy)
    assert "2 runs in" in words.out and ids[0][:8] in words.out and ids[2][:8] not in words.out
    assert cli("store", "tag", "few", "--where", "number=12", "--store", copy).code == 0
    assert len(cli("ls", "--tag", "few", "--store", copy, "--json").document) == 4
    assert cli("store", "untag", "mine", ids[0], "--store", copy, "--json").document["runs"] == ids[1:2]
    assert cli("store", "untag", "mine", "--store", copy).code == 0
    assert cli("store", "ls", "--store", copy, "--json").document["tags"] == {"few": 4}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("store tag mine", "Name the runs to tag"),
        ("store tag a/b --failed", "cannot be a tag"),
        ("store untag mine", "no tag 'mine'"),
        ("ls --tag mine", "no tag 'mine'"),
        ("ls families --tag mine", "--tag is for runs"),
        ("store rm zzz --yes", "not the name of a run"),
        ("store rm --sweep grid --yes", "no sweep 'grid'"),
        ("store archive all.rar", "not the name of an archive"),
        ("store archive all.zip --tag mine", "no tag 'mine'"),
        ("store merge", "at least one store"),
        ("store merge nowhere", "no store or archive nowhere"),
        ("store mrege a", "merge"),
        ("ls sweps", "did you mean 'sweeps'"),
    ],
)
def test_bad_input(cli, copy, ids, line, says):
    for more in ((), ("--json",)):
        answer = cli(*line.split(), "--store", copy, *more)
        assert answer.code == 2 and says in answer.err and "Traceback" not in answer.err
    assert Store(copy).run_ids() == ids


@pytest.mark.parametrize("command", ["ls", "rm a --yes", "archive a.zip", "tag a b", "untag a"])
def test_a_store_that_is_not_there_is_not_made(cli, tmp_path, command):
    answer = cli("store", *command.split(), "--store", tmp_path / "nowhere")
    assert answer.code == 2 and "no store at" in answer.err and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["store"], ["store", "rm", "--help"], ["sweep", "--help"], ["resume", "--help"]])
def test_help_does_not_load_jax(arguments):
    text = (
        "import sys\nfrom recombine.cli.main import _guarded\n"
        f"assert _guarded({arguments!r}) == 0\nassert not {{'jax', 'pandas', 'yaml'}} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL)


def test_show_draws_the_line_of_a_run(cli, tiny, tmp_path):
    from recombine.engines.local import LocalEngine
    from recombine.store.store import Store

    base = tiny()
    child = base.replace(parents=(base,), trains=("layers.2.*",))
    LocalEngine().run(Store(tmp_path / "store"), [child])
    shown = cli("show", child.run_id, "--store", tmp_path / "store")
    assert shown.code == 0, shown.err
    assert f"{child.run_id}  mlp" in shown.out and "trains layers.2.*" in shown.out
    assert f"└── from {base.run_id}  mlp" in shown.out
    removal = cli("store", "rm", base.run_id, "--dry-run", "--store", tmp_path / "store")
    assert f"run {child.run_id[:6]}" in removal.out.replace("\n", ""), "it says which run started from it"
