"""Writes docs/results/debate.md, the debate claim by claim, from debate.toml and the recorded verdicts.

Each row of debate.toml names the claims that decide it, with the answers for which its sentences were written. The page shows the
recorded answer and effect of each. A recorded answer that differs from the one in the row stops the script: the row must be written anew.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recombine.cli.output import effect_text

HERE = Path(__file__).parent
ROWS, PAGE = HERE / "debate.toml", HERE / "debate.md"
Row = Mapping[str, Any]

HEAD = """# The debate, claim by claim

The debate is about one question: can a neural network recombine what it knows? The paper *Scaling can lead to compositional
generalization* and two notes on the debate make the claims below. Each row gives the claim in our words, the paper that it comes
from, what came out here, on what the answer depends, and what would change it. The links lead to the claims that decide the row,
with effects, intervals and margins. All results are at laptop size unless the row says otherwise.
"""


def recorded(results: Path) -> dict[str, Row]:
    """The recorded verdicts in a folder, by `study/claim`."""
    files = sorted(results.glob("*/verdicts.json"))
    records = [record for file in files for record in json.loads(file.read_text(encoding="utf-8"))]
    return {f"{record['study']}/{record['claim']}": record for record in records}


def stale(rows: list[Row], verdicts: Mapping[str, Row]) -> list[str]:
    """What no longer fits: claims that are not recorded, and answers that differ from those a row was written for.

    Args:
        rows: The rows of debate.toml.
        verdicts: The recorded verdicts, by `study/claim`.
    """
    wrong = []
    for row in rows:
        for name, answer in row["claims"].items():
            if name not in verdicts:
                wrong.append(f"{row['said']} Its claim {name} is not recorded.")
            elif verdicts[name]["answer"] != answer:
                now = verdicts[name]["answer"]
                wrong.append(
                    f"{row['said']} It was written for {name}: {answer}. Recorded now: {now}. Write the row anew."
                )
    return wrong


def section(row: Row, verdicts: Mapping[str, Row]) -> str:
    """One claim of the debate: what is said, what came out, the claims that decide, condition, change and command."""
    lines = [f"### {row['said']}", f"*Said by:* {row['source']}.", row["answer"]]
    head = ["study", "claim", "does it hold?", "effect [95 % interval]"]
    cells = [head, ["---"] * len(head)]
    for name in row["claims"]:
        record = verdicts[name]
        study = record["study"]
        cells.append([f"[{study}]({study}/)", record["statement"], f"**{record['answer']}**", effect_text(record)])
    lines.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells))
    lines.append(
        f"- *Condition:* {row['condition']}\n- *What would change it:* {row['change']}\n- *At full size:* `{row['large']}`"
    )
    return "\n\n".join(lines)


def contents(rows: list[Row]) -> str:
    """The rows with their answers in a word, each with a link to its section."""
    cells = [f"| [{row['said']}](#{anchor(row['said'])}) | {row['word']} |" for row in rows]
    return "\n".join(["| what is said | does it hold here? |", "| --- | --- |", *cells])


def anchor(heading: str) -> str:
    """The anchor that Markdown gives a heading."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def page(parts: list[Row], verdicts: Mapping[str, Row]) -> str:
    """The whole page, with the number of claims that have each answer."""
    rows = [row for part in parts for row in part["row"]]
    counts = Counter(verdicts[name]["answer"] for row in rows for name in row["claims"])
    listed = ", ".join(f"{count} *{answer}*" for answer, count in counts.most_common())
    text = [HEAD, f"The {len(rows)} rows rest on {sum(counts.values())} recorded claims: {listed}.", contents(rows)]
    for part in parts:
        text += [f"## {part['title']}", *[section(row, verdicts) for row in part["row"]]]
    return "\n\n".join(each.strip() for each in text) + "\n"


def main() -> None:
    """Write the page, or stop at rows that their evidence no longer bears out."""
    parts, verdicts = tomllib.loads(ROWS.read_text(encoding="utf-8"))["part"], recorded(HERE)
    wrong = stale([row for part in parts for row in part["row"]], verdicts)
    if wrong:
        raise SystemExit("\n".join(wrong))
    PAGE.write_text(page(parts, verdicts), encoding="utf-8")


if __name__ == "__main__":
    main()
