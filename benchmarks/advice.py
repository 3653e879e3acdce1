"""How often the advice of an audit is right, on tables with a known cause. The figures of docs/methods-audit.md."""

from __future__ import annotations

import argparse
import collections
import re
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from recombine.audit.advising.simulation import CAUSES, Design, advice_of, outcome, simulated_table

SIZES = {"large": Design(), "small": Design(levels=(6, 6, 2), rows=2)}
HEAD = ("| table | cause | tables | right first | wrong first | cannot tell |", "|---|---|---|---|---|---|")
MARKS = ("<!-- advice: begin -->\n", "<!-- advice: end -->")


def main() -> None:
    """Print one row per cause and size: right, wrong, cannot tell. About 0.3 s of CPU per table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100, help="tables for each cause and size")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--draws", type=int, default=39, help="simulated tables of the test for interactions")
    parser.add_argument("--size", choices=[*SIZES], action="append")
    parser.add_argument("--cause", choices=CAUSES, action="append")
    parser.add_argument("--show", action="store_true", help="print the rules of every table that is not right")
    parser.add_argument("--into", type=Path, help="replace the table of this document")
    given = parser.parse_args()
    threadpool_limits(1, user_api="blas")
    lines = [*HEAD]
    print("\n".join(lines))
    for size in given.size or SIZES:
        for cause in given.cause or CAUSES:
            counts: collections.Counter[str] = collections.Counter()
            begin = time.process_time()
            for seed in range(given.first, given.first + given.tables):
                advice = advice_of(simulated_table(cause, seed, SIZES[size]), draws=given.draws, seed=seed)
                counts[outcome(cause, advice)] += 1
                if given.show and outcome(cause, advice) != "right":
                    print(size, cause, seed, outcome(cause, advice), [each.rule for each in advice], flush=True)
            shares = " | ".join(f"{counts[name] / given.tables:.2f}" for name in ("right", "wrong", "cannot tell"))
            lines.append(f"| {size} | {cause} | {given.tables} | {shares} |")
            print(f"{lines[-1]} {(time.process_time() - begin) / given.tables:.2f} s of CPU per table", flush=True)
    if given.into is not None:
        text = given.into.read_text(encoding="utf-8")
        table = MARKS[0] + "\n".join(lines) + "\n" + MARKS[1]
        given.into.write_text(
            re.sub(f"{MARKS[0]}.*?{MARKS[1]}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
