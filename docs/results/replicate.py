"""Draws recorded main claims at random, runs their studies again with fresh seeds, and counts the answers that come out again.

    python docs/results/replicate.py --number 10 --draw 0 --first-seed 20000 --store replication

The runs stay in the store, so a stopped command goes on where it was. The table goes to docs/results/replication.md.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import recombine as rc
from recombine.component import find
from recombine.engines.local import LocalEngine
from recombine.store.store import Store

HERE = Path(__file__).parent
Record = dict[str, Any]


def main_claims(results: Path) -> list[Record]:
    """The primary claims of all recorded studies; the first claim of a study that has no primary one."""
    claims = []
    for path in sorted(results.glob("*/verdicts.json")):
        own = [record for record in json.loads(path.read_text()) if record["role"] == "claim"]
        claims += [record for record in own if record["primary"]] or own[:1]
    return claims


def again(recorded: Record, store: Path, first_seed: int) -> Record:
    """The verdict on the same claim with other seeds, at the recorded profile."""
    study = find("studies", recorded["study"]).profile(recorded["profile"]).replace(first_seed=first_seed)
    result = rc.design.run_study(
        study, recorded["profile"], Store(store), LocalEngine(), overrides=[f"first_seed={first_seed}"]
    )
    return next(record for record in result.records if record["claim"] == recorded["claim"])


def row(recorded: Record, fresh: Record) -> list[str]:
    """One row of the table."""

    def effect(record: Record) -> str:
        low, high = record["interval"]
        return "no interval" if low is None else f"{record['effect']:.3f} [{low:.3f}, {high:.3f}]"

    same = "yes" if recorded["answer"] == fresh["answer"] else "**no**"
    name = f"[{recorded['study']}]({recorded['study']}/): `{recorded['claim']}`"
    return [name, recorded["answer"], effect(recorded), fresh["answer"], effect(fresh), same]


def main() -> None:
    """Parse the command line, run the studies and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10, help="main claims to draw")
    parser.add_argument("--draw", type=int, default=0, help="the seed of the draw")
    parser.add_argument("--first-seed", type=int, default=20_000, help="the seed of the first replicate")
    parser.add_argument("--store", type=Path, default=Path("replication"))
    parser.add_argument("--results", type=Path, default=HERE, help="the folder with the recorded results")
    parser.add_argument("--out", type=Path, default=HERE / "replication.md")
    given = parser.parse_args()
    claims = main_claims(given.results)
    drawn = random.Random(given.draw).sample(claims, min(given.number, len(claims)))
    rows = []
    for recorded in drawn:
        rows.append(row(recorded, again(recorded, given.store, given.first_seed)))
        print(*rows[-1], sep=" | ", flush=True)
    same = sum(cells[-1] == "yes" for cells in rows)
    head = ["main claim", "recorded", "effect [95 % interval]", "again", "effect [95 % interval]", "the same answer?"]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    given.out.write_text(
        f"# Main claims again, with fresh seeds\n\n"
        f"{len(rows)} of {len(claims)} recorded main claims were drawn at random (draw {given.draw}). Their studies ran again with the "
        f"replicates {given.first_seed} and up. **{same} of {len(rows)}** answers came out again. `make replicate` does it.\n\n{table}\n",
        encoding="utf-8",
    )
    print(f"{same} of {len(rows)} answers came out again: {given.out}")


if __name__ == "__main__":
    main()
