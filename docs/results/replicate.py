"""Draws recorded main claims at random, decides them again with fresh seeds, and counts the answers that come out again.

    python docs/results/replicate.py --number 10 --draw 0 --first-seed 20000 --store replication

Only the arms are run that the main claims of a study, and what they need, are about. The runs stay in the store, so a stopped
command goes on where it was. The table goes to docs/results/replication.md, row by row.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from recombine.component import find
from recombine.engines.local import LocalEngine
from recombine.stats.verdicts import settle
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


def again(recorded: Record, main: list[str], store: Path, first_seed: int) -> Record:
    """The verdict on a claim with other seeds, at the recorded profile.

    Args:
        recorded: The claim as it was recorded.
        main: The main claims of its study. They are settled together, as they were recorded.
        store: The folder of the store.
        first_seed: The seed of the first replicate.
    """
    study = find("studies", recorded["study"]).profile(recorded["profile"]).replace(first_seed=first_seed)
    design, opened = study.design.for_claims(*main), Store(store)
    LocalEngine().run(opened, [config for config, _ in design.runs], design.measurements)
    verdicts = settle([effect.judge() for effect in design.effects(design.tables(opened))])
    return next(verdict.record() for verdict in verdicts if verdict.claim.name == recorded["claim"])


def row(recorded: Record, fresh: Record) -> list[str]:
    """One row of the table."""

    def effect(record: Record) -> str:
        low, high = record["interval"]
        return "no interval" if low is None else f"{record['effect']:.3f} [{low:.3f}, {high:.3f}]"

    agrees = "yes" if recorded["answer"] == fresh["answer"] else "**no**"
    name = f"[{recorded['study']}]({recorded['study']}/): `{recorded['claim']}`"
    return [name, recorded["answer"], effect(recorded), fresh["answer"], effect(fresh), agrees]


def same(rows: list[list[str]]) -> int:
    """The number of rows in which both answers are equal."""
    return sum(cells[-1] == "yes" for cells in rows)


def page(rows: list[list[str]], drawn: int, claims: int, draw: int, first_seed: int) -> str:
    """The page in Markdown."""
    head = ["main claim", "recorded", "effect [95 % interval]", "again", "effect [95 % interval]", "the same answer?"]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    left = "" if len(rows) == drawn else f" {drawn - len(rows)} of them are still to run."
    return (
        f"# Main claims again, with fresh seeds\n\n"
        f"{drawn} of {claims} recorded main claims were drawn at random (draw {draw}). They were decided again with the replicates "
        f"{first_seed} and up.{left} **{same(rows)} of {len(rows)}** answers came out again. `make replicate` does it.\n\n{table}\n"
    )


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
    rows: list[list[str]] = []
    for recorded in drawn:
        main = [claim["claim"] for claim in claims if claim["study"] == recorded["study"]]
        rows.append(row(recorded, again(recorded, main, given.store, given.first_seed)))
        print(*rows[-1], sep=" | ", flush=True)
        # After each row, so that a stopped command leaves what it has.
        given.out.write_text(page(rows, len(drawn), len(claims), given.draw, given.first_seed), encoding="utf-8")
    print(f"{same(rows)} of {len(rows)} answers came out again: {given.out}")


if __name__ == "__main__":
    main()
