"""Power cuts, rot, containers, interrupts, output that fails, and a lost Ray node. Each function tries once; Broken says what failed."""

from __future__ import annotations

import contextlib
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sweeps import Broken, Child, compare, contents, finish, read

from recombine.store.files import ASIDE
from recombine.store.store import Store

if TYPE_CHECKING:
    from run import Torture

IMAGE_BYTES = 48 << 20
COPIES = 20
"""How often an image is copied until two copies are equal: only then it is the state of one moment."""


# Power


def power_cut(torture: Torture, index: int) -> str:
    """A sweep on an ext4 image; the image as the disk has it at some moment; the journal is replayed and the sweep goes on."""
    chance = random.Random(f"{torture.options.seed} power {index}")
    image, cut, place = (torture.work / f"{name}-{index}" for name in ("image", "cut", "mounted"))
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    run("mkfs.ext4", "-q", "-F", str(image))
    # The journal is written when something is synced, and otherwise as late as can be: the most can be lost.
    run("mount", "-o", "loop,commit=300", str(image), str(place))
    try:
        child = torture.start(place / "store")
        until, promised = child.begin + chance.uniform(0.3, 1.0) * torture.seconds, dict[str, int]()
        while child.running and time.monotonic() < until:
            for manifest in (place / "store" / "runs").glob("*/manifest.json"):
                promised.setdefault(manifest.parent.name, child.operations)
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):  # It ended just now.
            os.killpg(child.process.pid, signal.SIGSTOP)
        # The operation after a rename syncs the folder; when the one after that has begun, the run counts.
        kept = {name for name, number in promised.items() if child.operations >= number + 3}
        for _ in range(COPIES):
            shutil.copyfile(image, cut)
            if filecmp.cmp(image, cut, shallow=False):
                break
            time.sleep(0.2)
        else:
            raise Broken("The image never stood still.")
        child.kill()
        child.close()
    finally:
        run("umount", str(place))
    run("mount", "-o", "loop", str(cut), str(place))
    try:
        store = place / "store"
        found = set(Store(store, create=False).run_ids()) if (store / "recombine.json").exists() else set()
        if not kept <= found:
            raise Broken(f"After a loss of power these runs are gone, which were stored before: {kept - found}")
        finish(torture.start(store))
        compare_with_repairs(store, torture)
    finally:
        run("umount", str(place))
        image.unlink()
        cut.unlink()
    return f"{len(kept)} runs promised, {len(found)} found"


def run(*command: str) -> None:
    """A command that must work."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{' '.join(command)}: {done.stderr.strip()}")


def compare_with_repairs(store: Path, torture: Torture) -> None:
    """Compare with the undisturbed sweep; what was set aside and rebuilt on the way does not count."""
    read(store)
    found = {name: value for name, value in contents(store).items() if not name.startswith(f"{ASIDE}/")}
    wanted = torture.wanted
    # Times in seconds are lost where a manifest was rebuilt; they are not compared anyway.
    differ = [name for name in wanted.keys() | found.keys() if found.get(name) != wanted.get(name)]
    if differ:
        raise Broken(f"{store}: other bits than in an undisturbed sweep: {sorted(differ)[:4]}")


# Rot


def damage(store: Path, chance: random.Random) -> str:
    """Damage one file of a store; returns what was done."""
    files = sorted(path for path in store.rglob("*") if path.is_file() and ASIDE not in path.parts)
    file = chance.choice(files)
    data, state = bytearray(file.read_bytes()), file.stat()
    way = chance.choice(["bit", "bit", "bit", "zeros", "cut", "gone", "other"])
    same = [path for path in files if path.name == file.name and path != file]
    if way == "gone":
        file.unlink()
    elif way == "other" and same:
        file.write_bytes(chance.choice(same).read_bytes())
    elif way == "cut" or not data:
        file.write_bytes(data[: len(data) // 2])
    else:
        at = chance.randrange(len(data))
        if way == "zeros":
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        else:
            data[at] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    return f"{way} {file.relative_to(store)}"


def rot(torture: Torture, index: int, whole: Path) -> str:
    """One to three damages. The sweep itself, or the doctor that it names, brings the store back; no list is silently another."""
    chance = random.Random(f"{torture.options.seed} rot {index}")
    store = torture.work / f"rotten-{index}"
    shutil.copytree(whole, store)
    done = [damage(store, chance) for _ in range(chance.randint(1, 3))]
    before = scores(whole)
    code, seen = torture.command("ls", "--json", "--store", store), scores(store)
    if code == 0 and any(seen[run] != before[run] for run in seen):
        raise Broken(f"{done}: other scores than were stored, with exit code 0")
    command = ("doctor", "--store", store) if chance.random() < 0.3 else None
    if command is not None and torture.command(*command) != 0:
        raise Broken(f"{done}: doctor did not repair it: {torture.words}")
    code = torture.command("sweep", torture.sweep, "--store", store, "--json")
    if code == 2 and "recombine doctor" in torture.words:  # It wrote nothing and said what helps.
        torture.command("doctor", "--store", store)
        code = torture.command("sweep", torture.sweep, "--store", store, "--json")
    if code != 0:
        raise Broken(f"{done}: the sweep ended with an error: {torture.words}")
    try:
        compare_with_repairs(store, torture)
    except Broken as error:
        raise Broken(f"{done}: {error}") from error
    shutil.rmtree(store)
    return "; ".join(done)


def scores(store: Path) -> dict[str, object]:
    """The summary numbers of the runs that can be read."""
    try:
        opened = Store(store, create=False)
        return {run: opened.summaries(run) for run in opened.run_ids()}
    except Exception:  # noqa: BLE001 - without a marker, for example.
        return {}


# Interrupts


def interrupt(torture: Torture, index: int) -> str:
    """A signal at any moment, in one of three ways; then the sweep goes on and ends with the same bits."""
    chance = random.Random(f"{torture.options.seed} interrupt {index}")
    store = torture.new_store()
    number = chance.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM])
    child = torture.start(store)
    child.wait(until=child.begin + chance.uniform(0.05, 1.05) * torture.seconds)
    phase, begin = child.phase, time.monotonic()
    child.signal(number)
    if twice := chance.random() < 0.3:
        child.wait(until=begin + 0.4)
        child.signal(number)
    code = child.wait(until=begin + 60)
    if code is None:
        child.kill()
        raise Broken(f"{number.name} while {phase} was swallowed: the sweep went on for a minute.")
    taken = time.monotonic() - begin
    # Before Python has loaded anything, the system ends the process.
    if code not in (0, 128 + number, -number):
        raise Broken(f"{number.name} while {phase}: exit code {code}: {child.words()}")
    if "Traceback" in child.words() or "Exception ignored" in child.words():
        raise Broken(f"{number.name} while {phase} gave a traceback: {child.words()}")
    child.close()
    read(store)
    finish(torture.start(store))
    compare(store, torture.wanted)
    shutil.rmtree(store)
    return f"{number.name}{' twice' if twice else ''} while {phase}: {taken:.1f} s"


# Containers


def containers(torture: Torture, index: int) -> str:
    """Two sweeps on one store, each in a PID namespace of its own, with one host name. Of every second pair one is killed."""
    chance = random.Random(f"{torture.options.seed} containers {index}")
    store = torture.new_store()
    before = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    one, two = (Child(store, torture.work, torture.sweep, before=before) for _ in range(2))
    killing = index % 2 == 1
    if killing:
        one.wait(until=time.monotonic() + chance.uniform(0.2, 1.2 * torture.seconds))
        one.kill()
    codes = one.wait(), two.wait()
    if codes[1] != 0 or codes[0] not in ((0, -signal.SIGKILL) if killing else (0,)):
        raise Broken(f"Two containers on one store: exit codes {codes}: {one.words()} {two.words()}")
    one.close()
    two.close()
    finish(torture.start(store))
    # What a dead container left may be removed only by a process of its namespace, of which there is none.
    shutil.rmtree(store / "temporary")
    wanted = {name: value for name, value in torture.wanted.items() if not name.startswith("temporary/")}
    for part in (store / "checkpoints").glob("*.part"):
        part.unlink()
    compare(store, wanted)
    shutil.rmtree(store)
    return "one killed" if killing else "both ended"


# Output


def output(torture: Torture, index: int) -> str:
    """A full disk or nobody behind standard output and error: the sweep ends all the same."""
    store = torture.new_store()
    ways = ("2>/dev/full", ">/dev/full 2>/dev/full", "2>&1 | true", ">&- 2>&-")
    way = ways[index % len(ways)]
    child = Child(store, torture.work, torture.sweep, redirection=way)
    code = child.wait()
    if code not in ((0, 1) if ">/dev/full 2" in way else (0,)) or "Traceback" in child.words():
        raise Broken(f"{way}: exit code {code}: {child.words()}")
    child.close()
    compare(store, torture.wanted)
    shutil.rmtree(store)
    return way


# Ray


def ray_node(_torture: Torture, _index: int) -> str:
    """The test of a cluster of which a node dies."""
    tests = Path(__file__).parents[1] / "tests" / "engines" / "test_ray.py"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests), "-k", "a_node_dies"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode or "1 passed" not in done.stdout:
        raise Broken(f"A sweep on a cluster that loses a node: {done.stdout[-500:]}")
    return "a sweep on two nodes"
