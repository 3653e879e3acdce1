"""What `make torture` runs: sweeps that are killed, run out of disk, and race; then the store is compared bit by bit.

Every promise of docs/reliability.md about processes is tried here. The same code, with small numbers, is in the tests.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import io
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edges
from child import PHASES
from rich.console import Console
from rich.table import Table
from sweeps import Broken, Child, compare, contents, finish, read

OUT = Console(stderr=True, highlight=False, markup=False)

KILLABLE = PHASES

LINE_SECONDS = 10.0
"""A line of progress is written so often."""

FULL_KILOBYTES, PROBE_KILOBYTES = 16, 80
"""On a disk with the first a sweep does not begin, with the second it does."""

NAMESPACE = "TORTURE_NAMESPACE"

DISK_KILOBYTES = 4096


class Torture:
    """One session."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options = options
        self.work = work
        self.sweep = Path(__file__).with_name("quick.yaml" if options.quick else "sweep.yaml")
        self.rows: list[tuple[str, str, str, str]] = []
        """What was tried, how often, how often all was well, and a note."""
        self.failed = False
        self.words = ""
        """What the last command said on standard error."""
        self.fell: collections.Counter[str] = collections.Counter()
        self.wanted: dict[str, Any] = {}
        self.seconds, self.operations = 0.0, 0
        self._numbers = itertools.count()
        self._said = 0.0

    def say(self, text: str, *, always: bool = False) -> None:
        """A line of progress, now and then."""
        if always or time.monotonic() - self._said > LINE_SECONDS:
            OUT.print(text)
            self._said = time.monotonic()

    def new_store(self) -> Path:
        """Where there is none yet."""
        return self.work / f"store-{next(self._numbers)}"

    def start(self, store: Path, die: int = 0) -> Child:
        """The sweep, started."""
        return Child(store, self.work, self.sweep, die)

    def undisturbed(self) -> None:
        """The sweep that all others are compared with; a second one has everything compiled, and gives the times."""
        first, second = self.new_store(), self.new_store()
        self.seconds, self.operations = finish(self.start(first))
        self.wanted = contents(first)
        if not self.options.quick:
            self.seconds, self.operations = finish(self.start(second))
            compare(second, self.wanted)
        runs = sum(name.endswith("manifest.json") for name in self.wanted)
        text = f"{runs} runs, {self.seconds:.1f} s, {self.operations} file operations"
        self.rows.append(("undisturbed", "1", "1", text))
        self.say(f"undisturbed sweep: {text}", always=True)

    def command(self, *arguments: object) -> int:
        """Call the command line in this process, which has the compiled programs; returns the exit code."""
        from recombine.cli.main import _guarded

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = _guarded([str(argument) for argument in arguments])
        self.words = err.getvalue()[-2000:]
        return code

    def each(self, what: str, number: int, attempt: Callable[[int], str]) -> None:
        """Try something so often, and count how often it went well."""
        survived, notes = 0, collections.Counter[str]()
        for index in range(number):
            try:
                notes[attempt(index)] += 1
                survived += 1
            except Broken as error:
                self.failed = True
                self.say(f"NOT KEPT: {what} {index}: {error}", always=True)
            self.say(f"{what}: {index + 1} of {number}")
        note = ", ".join(f"{count} {text}" for text, count in notes.most_common(4)) if len(notes) <= 4 else ""
        self.rows.append((what, str(number), str(survived), note))

    # Kills

    def kills(self, number: int) -> None:
        """Kill sweeps so many times, over two stores at once."""
        begin, workers = time.monotonic(), 1 if self.options.quick else 2
        shares = [number // workers + (index < number % workers) for index in range(workers)]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            tasks = [pool.submit(self._kills, index, share) for index, share in enumerate(shares)]
            while not all(task.done() for task in tasks):
                time.sleep(0.2)
                done = self.fell.total()
                left = (time.monotonic() - begin) / max(1, done) * (number - done)
                self.say(f"{done} of {number} kills, about {left:.0f} s left")
            sweeps = sum(task.result() for task in tasks)
        self.rows.append(("kills", str(number), str(number), f"over {sweeps} sweeps"))

    def _kills(self, worker: int, number: int) -> int:
        """Kill a sweep, start it again until it is done, compare, take a fresh one; how many sweeps that took."""
        chance = random.Random(f"{self.options.seed} {worker}")
        # In turn: in a phase, at a file operation, by the clock.
        ways = itertools.cycle(way for phase in KILLABLE for way in (phase, "operation", "clock"))
        store, killed, sweeps = self.new_store(), 0, 0
        while killed < number or store.exists():
            if killed < number:
                if self._kill(store, next(ways), chance):
                    killed += 1
                    read(store)
                    continue
            else:
                finish(self.start(store))
            compare(store, self.wanted)
            shutil.rmtree(store)
            sweeps += 1
            if killed < number:
                store = self.new_store()
        return sweeps

    def _kill(self, store: Path, way: str, chance: random.Random) -> bool:
        """Start the sweep and kill it; False if it was done before that."""
        die = 0
        if way == "operation":
            die = chance.randint(1, max(2, self.operations // 3)) * chance.choice((1, -1))
        child = self.start(store, die)
        if way == "operation":
            child.wait()
        elif way == "clock":
            child.wait(until=child.begin + chance.uniform(0, 1.1 * self.seconds))
        else:
            while child.running and PHASES.index(child.phase) < PHASES.index(way):
                time.sleep(0.0005)
            child.wait(until=time.monotonic() + chance.choice((0.0, chance.uniform(0, 0.004), 0.05)))
        child.kill()
        code = child.process.returncode
        if code not in (0, -signal.SIGKILL):
            raise Broken(f"A sweep that was started again ended with exit code {code}: {child.words()}")
        if code:
            self.fell[child.phase] += 1
        child.close()
        return code != 0

    # Two at once

    def races(self, number: int) -> None:
        """Two sweeps on one store at the same moment: both end well, each run is there once. Of some, one is killed."""
        chance = random.Random(f"{self.options.seed} race")
        for index in range(number):
            store = self.new_store()
            one, two = self.start(store), self.start(store)
            killing = index % 2 == 1
            if killing:
                one.wait(until=time.monotonic() + chance.uniform(0, 1.5 * self.seconds))
                one.kill()
            codes = one.wait(), two.wait()
            if codes[1] != 0 or codes[0] not in ((0, -signal.SIGKILL) if killing else (0,)):
                raise Broken(f"Of two sweeps on one store: exit codes {codes}: {one.words()} {two.words()}")
            if killing:
                finish(self.start(store))
            compare(store, self.wanted)
            shutil.rmtree(store)
            self.say(f"{index + 1} of {number} races", always=True)
        self.rows.append(
            ("two sweeps on one store", str(number), str(number), f"one of the two killed in {number // 2}")
        )

    # A full disk

    def disks(self, number: int) -> None:
        """A sweep on a disk that fills up says so, damages nothing, and ends with equal bits when there is space."""
        place = self.work / "disk"
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KILOBYTES}k", "tmpfs", str(place)]
        subprocess.run(mount, check=True)
        try:
            full = sum(self._disk(place, index) for index in range(number))
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=False)
        if not full:
            raise Broken("The disk was never full.")
        text = f"{full} times full, {number - full} times just large enough"
        self.rows.append(("full disks", str(number), str(number), text))

    def _disk(self, place: Path, index: int) -> bool:
        """One sweep on a small disk; whether it was full."""
        chance = random.Random(f"{self.options.seed} disk {index}")
        store, filler = place / f"store-{index}", place / "filler"
        # Each file takes whole pages. First a full disk, then such on which a little fits, or almost everything.
        pages = sum(4 * (1 + len(value) // 4096) for value in self.wanted.values() if isinstance(value, bytes))
        free = chance.randint(PROBE_KILOBYTES, PROBE_KILOBYTES + pages) if index else FULL_KILOBYTES
        filler.write_bytes(bytes((DISK_KILOBYTES - free) * 1024))
        child = self.start(store)
        code, words = child.wait(), child.words()
        if code and (code != 2 or "no space left" not in words or "Traceback" in words):
            raise Broken(f"On a full disk: exit code {code}: {words}")
        child.close()
        read(store)
        filler.unlink()
        finish(self.start(store))
        compare(store, self.wanted)
        shutil.rmtree(store)
        self.say(f"disk {index + 1}: {free} kB free, {'full' if code else 'large enough'}", always=True)
        return code != 0


def namespace() -> list[str] | None:
    """A command before ours that lets it mount a disk that nobody else sees; None where that is not permitted."""
    for command in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        try:
            done = subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
        except FileNotFoundError:
            return None
        if done.returncode == 0:
            return command
    return None


def enter_namespace() -> bool:
    """Start this program again where it may mount; whether it may."""
    if os.environ.get(NAMESPACE):
        return True
    before = namespace()
    if before is None:
        return False
    command = [*before, sys.executable, *sys.argv]
    os.execvpe(command[0], command, os.environ | {NAMESPACE: "1"})


def table(torture: Torture) -> None:
    """What was tried and what came of it."""
    made = Table(title=f"make torture, seed {torture.options.seed}", title_justify="left")
    for name in ("what", "tried", "survived", ""):
        made.add_column(name, overflow="fold")
    for row in torture.rows:
        made.add_row(*row)
    for phase in KILLABLE if torture.fell else ():
        made.add_row("", "", f"{torture.fell[phase]}", f"killed while {phase}", style="dim")
    Console().print(made)


def main() -> int:
    """Try everything; 0 if every promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--races", type=int, default=6)
    parser.add_argument("--disks", type=int, default=6)
    parser.add_argument("--power-cuts", type=int, default=20)
    parser.add_argument("--interrupts", type=int, default=50)
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--containers", type=int, default=10)
    parser.add_argument("--outputs", type=int, default=4)
    parser.add_argument("--ray-nodes", type=int, default=1)
    parser.add_argument("--disks-if-permitted", action="store_true", help="say so and go on where not")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--quick", action="store_true", help="a smaller sweep, one at a time")
    options = parser.parse_args()
    if "--seed" not in sys.argv:
        sys.argv += ["--seed", str(options.seed)]  # The same if it is started again below.
    permitted = not (options.disks or options.power_cuts or options.containers) or enter_namespace()
    OUT.print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="recombine-torture-") as folder:
        torture = Torture(options, Path(folder))
        try:
            torture.undisturbed()
            whole = torture.new_store()
            # Everything is compiled by now.
            torture.seconds, torture.operations = finish(torture.start(whole))
            if permitted:
                if options.disks:
                    torture.disks(options.disks)
                if os.geteuid() == 0 and loop_devices():
                    torture.each("power cuts on ext4", options.power_cuts, lambda n: edges.power_cut(torture, n))
                elif options.power_cuts:
                    torture.rows.append(("power cuts on ext4", "0", "", "NOT TRIED: needs root and loop devices"))
                torture.each("two PID namespaces", options.containers, lambda n: edges.containers(torture, n))
            torture.races(options.races)
            torture.each("interrupts", options.interrupts, lambda n: edges.interrupt(torture, n))
            torture.each("output that fails", options.outputs, lambda n: edges.output(torture, n))
            torture.kills(options.kills)
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(torture.work / "cache")
            torture.each("damages", options.damages, lambda n: edges.rot(torture, n, whole))
            torture.each("lost Ray nodes", options.ray_nodes, lambda n: edges.ray_node(torture, n))
        except Broken as error:
            torture.rows.append(("NOT KEPT", "", "", str(error)))
            torture.failed = True
    if not permitted:
        missing = "NOT TRIED: needs root, or user namespaces, and the commands unshare and mount"
        torture.rows.append(("full disks, power cuts, namespaces", "0", "", missing))
        torture.failed = torture.failed or not options.disks_if_permitted
    table(torture)
    return int(torture.failed)


def loop_devices() -> bool:
    """Whether an image can be mounted here."""
    return Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4") is not None


if __name__ == "__main__":
    sys.exit(main())
