"""The claims of the study `coverage-principle`, stated before any run that decides."""

from __future__ import annotations

from recombine.studies.base import claims_of

TWO, THREE, OTHER, THOUGHT, LARGE, LOOKUP = (
    "two-hop",
    "three-hop",
    "non-tree",
    "thought",
    "large",
    "lookup",
)
ARMS = {
    TWO: "two hops",
    THREE: "three hops",
    OTHER: "two hops, not a tree",
    THOUGHT: "two hops, said in between",
    LARGE: "two hops, 20 times the weights",
    LOOKUP: "control: answers drawn one by one",
}
"""The arms in words."""

_claim = claims_of("coverage-principle")

HELD_OUT = "held-out inputs all of whose facts occur in training"
NEEDS = ("fits-two-hop", "composes")

CLAIMS = (
    *(
        _claim(
            f"fits-{arm}",
            f"The network answers the inputs that it is trained on ({words}; accuracy, lowest over sizes).",
            "above",
            0.95,
            role="precondition",
        )
        for arm, words in ARMS.items()
    ),
    _claim(
        "composes",
        "With the most examples, held-out inputs that the data covers well (cutoff above the median) are answered right.",
        "above",
        0.5,
        role="precondition",
    ),
    _claim(
        "coverage-tells",
        "Held-out inputs that the data covers well are answered right far more often than those that it does not cover "
        "(accuracy; what is covered follows from the training examples alone).",
        "greater",
        0.2,
        primary=True,
        needs=NEEDS,
    ),
    _claim(
        "more-evidence-is-better",
        "Of covered inputs, those with a cutoff above the median are answered right more often than the others.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "some-evidence-is-better",
        "Covered inputs with a cutoff up to the median are answered right more often than uncovered ones.",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "evidence-not-facts",
        "More evidence is better also among inputs all of whose facts occur in training: the cutoff does not merely stand "
        "for facts that were never seen (cutoff above the median less the others).",
        "greater",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "uncovered-stay-at-chance",
        "Uncovered inputs are answered right at most twice as often as by chance (accuracy less 2 / n).",
        "below",
        0.0,
        needs=NEEDS,
    ),
    _claim(
        "uncovered-are-guessed",
        "Uncovered inputs are answered right no more often than by the commonest training answer to their last token "
        "(accuracy, network less that guess).",
        "below",
        0.05,
        needs=NEEDS,
    ),
    _claim(
        "three-hops-need-more",
        f"With as many examples, three hops are answered right less often than two ({HELD_OUT}).",
        "greater",
        0.1,
        needs=(*NEEDS, "fits-three-hop"),
    ),
    _claim(
        "non-tree-fails",
        "With as many examples, chains in which an input is needed twice are answered right less often than trees "
        f"({HELD_OUT}).",
        "greater",
        0.1,
        needs=(*NEEDS, "fits-non-tree"),
    ),
    _claim(
        "thought-helps",
        "With few examples, a network that says what lies in between answers more inputs right than one that says the "
        f"answer at once ({HELD_OUT}).",
        "greater",
        0.1,
        needs=(*NEEDS, "fits-thought"),
    ),
    _claim(
        "size-does-not-help",
        "Twenty times the weights do not make up for examples: with few of them, accuracy rises by less than this "
        f"({HELD_OUT}).",
        "below",
        0.1,
        needs=(*NEEDS, "fits-large"),
    ),
    _claim(
        "needs-more-than-facts",
        "The examples needed grow faster with the number of tokens n than the facts do, which are as n^2 (exponent).",
        "above",
        2.0,
        needs=NEEDS,
    ),
    _claim(
        "control-fails",
        "Where the answer to each input is drawn by itself, held-out inputs are answered right at most twice as often as by "
        "chance (accuracy less 2 / n).",
        "below",
        0.0,
        role="control",
        needs=("fits-lookup",),
    ),
)
"""Stated before any run that decides, and versioned with this file."""
