"""Facts in two hops, of which a part is known: the example of docs/coverage-graph.md.

python examples/two_hop_facts.py facts.csv
recombine audit facts.csv --coverage-graph --fragment person,relation --context question --outcome answer

"Where does the boss of Ann live?" names a person (the boss of Ann) without saying who it is, and asks something of them. Each
row is such a question with its answer. Who the boss of Ann is stands nowhere in the table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

PEOPLE = ["Ann", "Ben", "Cho", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea"]
RELATIONS = ["boss", "friend", "teacher", "neighbour", "doctor"]
QUESTIONS = {
    "lives in": ["Bonn", "Cork", "Lima", "Oslo", "Pune"],
    "works in": ["Bonn", "Cork", "Lima", "Oslo", "Pune"],
    "plays": ["drums", "flute", "piano", "violin"],
    "speaks": ["Basque", "Hindi", "Irish", "Norwegian", "Spanish"],
    "drives": ["bus", "tram", "van"],
    "keeps": ["a cat", "a dog", "bees"],
    "reads": ["maps", "novels", "poems", "scores"],
    "cooks": ["curry", "pasta", "soup", "stew"],
}
KNOWN = 0.5
"""The share of all questions that the table answers."""


def facts(seed: int = 0) -> pd.DataFrame:
    """A random world, and a random part of what is true in it."""
    rng = np.random.default_rng(seed)
    who = rng.integers(len(PEOPLE), size=(len(PEOPLE), len(RELATIONS)))
    says = {name: rng.choice(answers, len(PEOPLE)) for name, answers in QUESTIONS.items()}
    rows = [
        (person, relation, question, str(says[question][who[p, r]]))
        for p, person in enumerate(PEOPLE)
        for r, relation in enumerate(RELATIONS)
        for question in QUESTIONS
    ]
    table = pd.DataFrame(rows, columns=["person", "relation", "question", "answer"])
    return table[rng.random(len(table)) < KNOWN]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("out", type=Path, help="the CSV file to write")
    facts().to_csv(options.parse_args().out, index=False)


if __name__ == "__main__":
    main()
