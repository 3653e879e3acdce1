"""What people's labels of a text-to-image model can say about parts and combinations, and what they cannot.

python examples/human_labels.py TABLE                                         (prints it, as Markdown)
python examples/human_labels.py TABLE --into docs/text-to-image-pipelines.md  (puts it between the page's marks)

TABLE is read where it lies: one row an image, with the columns kind, object, count, colour, object_2, colour_2, relation,
present and success. Nothing of it is copied but the numbers below.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from recombine.audit.audit import audit_table
from recombine.audit.findings import Audit
from recombine.audit.strata import mean_score

KINDS = {
    "single_object": ("one object", ("object",)),
    "colors": ("an object in a colour", ("object", "colour")),
    "two_object": ("two objects", ("object", "object_2")),
    "counting": ("a number of objects", ("object", "count")),
    "color_attr": ("two objects, each in a colour", ("object", "colour", "object_2", "colour_2")),
    "position": ("two objects, where they stand", ("object", "object_2", "relation")),
}
BEGIN, END = "<!-- human labels: begin -->", "<!-- human labels: end -->"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("table", type=Path)
    options.add_argument("--into", type=Path, help="a page with the two marks")
    given = options.parse_args()
    text = "\n".join(lines(given.table))
    if given.into is None:
        print(text)
        return
    page = given.into.read_text(encoding="utf-8")
    given.into.write_text(page.replace(between(page), text), encoding="utf-8")


def between(page: str) -> str:
    """What stands between the marks."""
    found = re.search(f"{BEGIN}\n\n(.*?)\n\n{END}", page, flags=re.DOTALL)
    if found is None:
        raise SystemExit(f"The page lacks the marks {BEGIN} and {END}, each between blank lines.")
    return found[1]


def lines(table: Path) -> Iterator[str]:
    """The table of kinds, then what follows from it."""
    frame = pd.read_csv(table)
    audits = {
        kind: audit_table(table, factors=factors, scores=["success"], where=f"kind = '{kind}'")
        for kind, (_, factors) in KINDS.items()
    }
    yield "| what was asked for | images | prompts | of so many combinations | success | combinations for parameters | parts or combination |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for kind, audit in audits.items():
        yield row(KINDS[kind][0], audit)
    yield ""
    yield from said(frame, audits)


def row(name: str, audit: Audit) -> str:
    """One kind."""
    (score,) = audit.scores
    found, overall = score.parts.identification, score.overall
    ends = "" if overall is None else f"{overall.estimate:.2f} [{overall.low:.2f}, {overall.high:.2f}]"
    tell = "can be told" if found.identified else "cannot be told"
    if len(audit.factors) == 1:
        tell = "nothing is combined"
    return (
        f"| {name} | {audit.rows} | {audit.combinations} | {audit.space_size:,} | {ends} | "
        f"{found.combinations} for {found.parameters} | {tell} |"
    )


def said(frame: pd.DataFrame, audits: dict[str, Audit]) -> Iterator[str]:
    """Sentences, each from the table."""
    alone = set(frame.object[frame.kind == "single_object"])
    pairs = frame[frame.kind == "two_object"].drop_duplicates("prompt")
    known = (pairs.object.isin(alone) & pairs.object_2.isin(alone)).sum()
    yield (
        f"- **Joint against product.** {len(alone)} objects were asked for alone. Of the {len(pairs)} prompts with two objects, "
        f"{known} have both of theirs among them: for the others nobody knows how often the parts succeed, so there is no "
        "product to compare with."
    )
    position = frame[frame.kind == "position"]
    there = position[position.present == 1]
    # Four images share a prompt, so a prompt is the unit.
    right = mean_score(there.groupby("prompt").success.mean().to_numpy(float), binary=True)
    assert right is not None
    yield (
        f"- **Where things stand.** Here people said of each image whether both objects are there. They are in {len(there)} of "
        f"{len(position)} images; of these, a share of {right.estimate:.2f} [{right.low:.2f}, {right.high:.2f}] (over "
        f"{right.replicates} prompts) has them where they should be."
        + (
            " So mostly it is the relation that fails, and not the objects; no model of parts is needed to say so."
            if right.high < 0.5
            else ""
        )
    )
    other = frame[(frame.kind != "position") & (frame.present != frame.success)]
    yield (
        f"- **Which part failed** is not known elsewhere: `present` differs from `success` in {len(other)} of the other images, "
        "so it says nothing that success does not."
    )
    for kind in ("colors", "two_object", "counting", "color_attr", "position"):
        advice = next((one for one in audits[kind].scores[0].advice if one.rule == "cannot-tell"), None)
        if advice is not None:
            first = advice.sentence.split(". ")[0].removeprefix("To tell parts from combination: ")
            yield f"- To tell parts from combination for {KINDS[kind][0]}: {first}."
    yield (
        "- **Whether it recombines or remembers** cannot be said of any of them: the table does not say what was trained on. "
        "And it holds no activations, so nothing of decodability."
    )


if __name__ == "__main__":
    main()
