"""Draws recorded main claims at random, decides them again with fresh seeds, and counts the answers that come out again.

    python docs/results/replicate.py --number 10 --draw 0 --first-seed 20000 --store replication

Only the arms are run that the main claims of a study, and what they need, are about. replication.json keeps what was drawn and
what came out, claim by claim, so a stopped command goes on where it was; replication.md is the same as a page. `--redraw` forgets
both and draws anew.
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


def drawn(claims: list[Record], number: int, draw: int, first_seed: int) -> Record:
    """A new draw of claims, each with what was recorded of it and nothing yet of what comes out again."""
    chosen = random.Random(draw).sample(claims, min(number, len(claims)))
    kept = ("study", "profile", "claim", "answer", "effect", "interval", "replicates")
    rows = [{"recorded": {name: record[name] for name in kept}, "again": None} for record in chosen]
    return {"draw": draw, "first_seed": first_seed, "of": len(claims), "rows": rows}


def page(state: Record) -> str:
    """What came out, as a page in Markdown."""

    def effect(record: Record) -> str:
        low, high = record["interval"]
        return "no interval" if low is None else f"{record['effect']:.3f} [{low:.3f}, {high:.3f}]"

    done = [row for row in state["rows"] if row["again"]]
    same = sum(row["recorded"]["answer"] == row["again"]["answer"] for row in done)
    head = ["main claim", "recorded", "effect [95 % interval]", "again", "effect [95 % interval]", "the same answer?"]
    lines = [head, ["---"] * len(head)]
    for row in done:
        old, new = row["recorded"], row["again"]
        agrees = "yes" if old["answer"] == new["answer"] else "**no**"
        name = f"[{old['study']}]({old['study']}/): `{old['claim']}`"
        lines.append([name, old["answer"], effect(old), new["answer"], effect(new), agrees])
    left = [f"`{row['recorded']['study']}`" for row in state["rows"] if not row["again"]]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    open_ = f" Still to run: {', '.join(left)}." if left else ""
    return (
        f"# Main claims again, with fresh seeds\n\n"
        f"{len(state['rows'])} of {state['of']} recorded main claims were drawn at random (draw {state['draw']}). They are decided again "
        f"with as many replicates as were recorded, from seed {state['first_seed']} on. **{same} of {len(done)}** answers came out "
        f"again.{open_} `make replicate` does it.\n\n{table}\n"
    )


def main() -> None:
    """Parse the command line, run what is left and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=10, help="main claims to draw")
    parser.add_argument("--draw", type=int, default=0, help="the seed of the draw")
    parser.add_argument("--first-seed", type=int, default=20_000, help="the seed of the first replicate")
    parser.add_argument("--store", type=Path, default=Path("replication"))
    parser.add_argument("--results", type=Path, default=HERE, help="the folder with the recorded results")
    parser.add_argument("--redraw", action="store_true", help="forget the last draw")
    given = parser.parse_args()
    kept, claims = given.results / "replication.json", main_claims(given.results)
    if kept.exists() and not given.redraw:
        state = json.loads(kept.read_text(encoding="utf-8"))
    else:
        state = drawn(claims, given.number, given.draw, given.first_seed)
    for row in state["rows"]:
        if row["again"] is None:
            recorded = row["recorded"]
            own = [claim["claim"] for claim in claims if claim["study"] == recorded["study"]]
            fresh = again(recorded, own, given.store, state["first_seed"])
            row["again"] = {name: fresh[name] for name in ("answer", "effect", "interval", "replicates")}
        # After each claim, so that a stopped command leaves what it has.
        kept.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        kept.with_suffix(".md").write_text(page(state), encoding="utf-8")
        print(row["recorded"]["study"], row["recorded"]["answer"], "|", row["again"]["answer"], flush=True)


if __name__ == "__main__":
    main()
