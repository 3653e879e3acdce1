"""What human labels of a text-to-image model can say about parts and combinations, and what they cannot.

python examples/human_labels.py TABLE                                         (prints Markdown)
python examples/human_labels.py TABLE --into docs/text-to-image-pipelines.md  (writes it between the marks of the page)

TABLE has one row per image, with the columns kind, object, count, colour, object_2, colour_2, relation, present and success.
Only the numbers below are copied from it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from recombine.audit import Audit, audit_table
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
    """The text between the marks."""
    found = re.search(f"{BEGIN}\n\n(.*?)\n\n{END}", page, flags=re.DOTALL)
    if found is None:
        raise SystemExit(f"The page lacks the marks {BEGIN} and {END}, each between blank lines.")
    return found[1]


def lines(table: Path) -> Iterator[str]:
    """The table of kinds of prompts, then conclusions from it."""
    frame = pd.read_csv(table)
    audits = {
        kind: audit_table(table, factors=factors, scores=["success"], where=f"kind = '{kind}'")
        for kind, (_, factors) in KINDS.items()
    }
    yield "| what was asked for | images | prompts | possible combinations | success | combinations for parameters | parts or combination |"
    yield "|---|---:|---:|---:|---:|---:|---|"
    for kind, audit in audits.items():
        yield row(KINDS[kind][0], audit)
    yield ""
    yield from conclusions(frame, audits)


def row(name: str, audit: Audit) -> str:
    """The row of one kind of prompts."""
    (score,) = audit.scores
    design, overall = score.parts.identification, score.overall
    ends = "" if overall is None else f"{overall.estimate:.2f} [{overall.low:.2f}, {overall.high:.2f}]"
    answer = "identified" if design.identified else "not identified"
    if len(audit.factors) == 1:
        answer = "nothing is combined"
    return (
        f"| {name} | {audit.rows} | {audit.combinations} | {audit.space_size:,} | {ends} | "
        f"{design.combinations} for {design.parameters} | {answer} |"
    )


def conclusions(frame: pd.DataFrame, audits: dict[str, Audit]) -> Iterator[str]:
    """Sentences with numbers from the table."""
    alone = set(frame.object[frame.kind == "single_object"])
    pairs = frame[frame.kind == "two_object"].drop_duplicates("prompt")
    known = (pairs.object.isin(alone) & pairs.object_2.isin(alone)).sum()
    yield (
        f"- **Joint against product.** {len(alone)} objects have a prompt alone. Of the {len(pairs)} prompts with two objects, "
        f"{known} have both of their objects among these. For the others it is unknown how often the parts succeed, so there is "
        "no product to compare with."
    )
    position = frame[frame.kind == "position"]
    there = position[position.present == 1]
    # Four images share a prompt, so a prompt is the unit.
    right = mean_score(there.groupby("prompt").success.mean().to_numpy(float), binary=True)
    assert right is not None
    yield (
        f"- **Positions of objects.** For these prompts, people labelled whether both objects are in the image. They are in "
        f"{len(there)} of {len(position)} images. Of these, a share of {right.estimate:.2f} [{right.low:.2f}, {right.high:.2f}] "
        f"(over {right.replicates} prompts) has them in the right positions."
        + (
            " So mostly the relation fails, not the objects. This conclusion needs no model of parts."
            if right.high < 0.5
            else ""
        )
    )
    other = frame[(frame.kind != "position") & (frame.present != frame.success)]
    yield (
        f"- **Which part failed** is unknown for the other prompts: `present` differs from `success` in {len(other)} of their images, "
        "so it adds no information."
    )
    for kind in ("colors", "two_object", "counting", "color_attr", "position"):
        advice = next((each for each in audits[kind].scores[0].advice if each.rule == "cannot-tell"), None)
        if advice is not None:
            first = advice.sentence.split(". ")[0].removeprefix("To separate parts from combinations: ")
            yield f"- To separate parts from combinations for {KINDS[kind][0]}: {first}."
    yield (
        "- **Whether the model recombines or memorises** is unknown for all kinds: the table does not say what the model was trained "
        "on. It has no activations either, so nothing is known about decodability."
    )


if __name__ == "__main__":
    main()
