"""The claims of the study `subgraphs`, stated before any run that decides, and versioned with this file."""

from __future__ import annotations

from recombine.studies.base import claims_of

LISTS, PRODUCTS, PUZZLES = "maximum sum", "multiplication", "puzzle"
STEPS, QUESTION, PLAIN = "steps", "question only", "steps, plain places"
ARMS = {LISTS: (STEPS, QUESTION, PLAIN), PRODUCTS: (STEPS, QUESTION), PUZZLES: (STEPS,)}
"""All steps are written down; only the result is; all steps, with tokens at places one after another, of which the later
ones are never trained."""

SAID = {
    LISTS: ("lists", "lists of trained lengths", "longer lists than those trained on"),
    PRODUCTS: ("products", "numbers of trained lengths", "longer numbers than those trained on"),
    PUZZLES: ("puzzles", "puzzles of trained depths", "deeper puzzles than those trained on"),
}
"""The problems in words: what claims are called after, what training has, and what lies beyond it."""
FITS = {
    (LISTS, STEPS): 0.95,
    (LISTS, QUESTION): 0.9,
    (LISTS, PLAIN): 0.95,
    (PRODUCTS, STEPS): 0.9,
    (PUZZLES, STEPS): 0.9,
}
"""What has to be answered right of held-out problems of trained sizes, before anything is said of larger ones."""
FAILS = {(LISTS, STEPS): 0.4, (LISTS, QUESTION): 0.4, (PRODUCTS, STEPS): 0.4, (PUZZLES, STEPS): 0.1}
"""By how much larger ones are answered right less often. Depths of puzzles differ by little."""
HOW = {STEPS: "with all steps written down", QUESTION: "without steps", PLAIN: "with steps and plain places"}
ENDS = {STEPS: "", QUESTION: "-question", PLAIN: "-plain"}


def fits(problem: str, arm: str) -> str:
    """The name of a precondition."""
    return f"fits-{SAID[problem][0]}{ENDS[arm]}"


def fails(problem: str, arm: str) -> str:
    """The name of the claim that larger problems fail."""
    return f"larger-{SAID[problem][0]}-fail{ENDS[arm]}"


_claim = claims_of("subgraphs")

READ = "answers with as many steps as they need"
"""In others a step that is left out would make another step of each that follows."""

OF_LISTS, OF_PRODUCTS = (fits(LISTS, STEPS),), (fits(PRODUCTS, STEPS),)

CLAIMS = (
    *(
        _claim(
            fits(problem, arm),
            f"Held out {SAID[problem][1]} are answered wholly right {HOW[arm]} (exact match, mean over sizes with at least 16).",
            "above",
            least,
            role="precondition",
        )
        for (problem, arm), least in FITS.items()
    ),
    *(
        _claim(
            fails(problem, arm),
            f"{SAID[problem][2].capitalize()} are answered right far less often {HOW[arm]} (exact match, trained sizes less larger "
            "ones).",
            "greater",
            least,
            primary=(problem, arm) == (LISTS, STEPS),
            needs=(fits(problem, arm),),
        )
        for (problem, arm), least in FAILS.items()
    ),
    _claim(
        "places-are-not-all",
        "Places that were never trained are not the reason: longer lists fail as well where tokens stand at random places in "
        "training (exact match, random places less plain ones).",
        "below",
        0.2,
        needs=(*OF_LISTS, fits(LISTS, PLAIN), fails(LISTS, STEPS)),
    ),
    _claim(
        "answers-are-too-short",
        "Longer lists get answers with fewer steps than they need (share of answers, mean over lengths).",
        "above",
        0.2,
        needs=OF_LISTS,
    ),
    _claim(
        "slips-rise-with-depth",
        "In longer lists a step whose parents are all right is wrong more often the deeper it lies (deeper half less shallower half "
        f"of the steps of one operation with as many parents in lists of one length; {READ}).",
        "greater",
        0.02,
        needs=OF_LISTS,
    ),
    _claim(
        "rates-carry-over",
        "Slips and recoveries of single steps in lists of one number more than trained predict how often steps of still longer "
        f"lists are right (share of right steps less what these rates give where errors go on from step to step; {READ}).",
        "equivalent",
        0.05,
        needs=OF_LISTS,
    ),
    *(
        _claim(
            f"errors-propagate{end}",
            f"In {SAID[problem][2]} more steps are wrong because of wrong ones before them than by themselves (share of steps, "
            f"propagation less local; {READ}).",
            "greater",
            0.02,
            needs=needs,
        )
        for problem, end, needs in ((LISTS, "", OF_LISTS), (PRODUCTS, "-products", OF_PRODUCTS))
    ),
    *(
        _claim(
            f"seen-subgraphs-are-right{end}",
            f"In {SAID[problem][2]}, steps that are right with all that they follow from have subgraphs that training showed more "
            "often than those of other steps of the same operation, number of parents, depth and size (log2 of 1 + times shown; "
            f"{READ}).",
            "greater",
            0.1,
            needs=needs,
        )
        for problem, end, needs in ((LISTS, "", OF_LISTS), (PRODUCTS, "-products", OF_PRODUCTS))
    ),
    _claim(
        "told-digits-are-right",
        "Without steps, digits of larger products that single digits of the factors tell most of are right more often than those "
        "that they tell least of (accuracy beyond always saying the most frequent digit, as a share of what is left; half of the places "
        "with the highest relative information gain less half with the lowest).",
        "greater",
        0.2,
        needs=("results-are-learned",),
    ),
    _claim(
        "results-are-learned",
        "Without steps, digits of products of trained lengths are right more often than by always saying the most frequent digit "
        "(share of what is left).",
        "above",
        0.5,
        role="precondition",
    ),
)
