"""The claims of the study `constraints`, with the arms that they speak of."""

from __future__ import annotations

from recombine.studies.base import claims_of

SMALL, LARGE, PACKING = "9 buses", "14 buses", "knapsack"
"""The problems: optimal power flow in two networks, and a knapsack."""
PROBLEMS = (SMALL, LARGE, PACKING)
PLAIN, STEPS, REWARD = "answer only", "with steps", "with reward"
ARMS = (PLAIN, STEPS, REWARD)
"""What training shows and rewards: the answer's numbers; intermediate quantities as well; the answer, and beside it answers
that are drawn and reinforced by the share of their constraints that hold."""
DECODER, ENCODER = "decoder", "encoder-decoder"

_claim = claims_of("constraints")

FORMED = {
    "9": f"{SMALL}, answer only; lowest over sizes and architectures",
    "14": LARGE,
    "knapsack": PACKING,
    "9-steps": f"{SMALL}, {STEPS}",
    "9-reward": f"{SMALL}, {REWARD}",
    "knapsack-reward": f"{PACKING}, {REWARD}",
}
"""The networks whose answers must be numbers, in words."""
FITS = {
    "9": f"{SMALL}, {DECODER}, largest size",
    "9-encoder-decoder": f"{SMALL}, {ENCODER}, largest size",
    "9-usual": f"{SMALL}, {DECODER}, middle size",
    "9-steps": f"{SMALL}, {STEPS}",
    "9-reward": f"{SMALL}, {REWARD}",
    "14": f"{LARGE}, {DECODER}, middle size",
    "knapsack": f"{PACKING}, {DECODER}, middle size",
    "knapsack-reward": f"{PACKING}, {REWARD}",
}
"""Those that must have learned from what they are trained on."""

NINE = ("well-formed-9", "fits-9")
BOTH = (*NINE, "fits-9-encoder-decoder")
FOURTEEN = ("well-formed-14", "fits-14")
SACK = ("well-formed-knapsack", "fits-knapsack")

CLAIMS = (
    *(
        _claim(
            f"well-formed-{short}",
            f"Held-out answers are numbers throughout ({networks}; share). A constraint that needs a number which is none does not "
            f"hold, so that more of that could move rates by .2; claims that leave less room than that count only these answers.",
            "above",
            0.8,
            role="precondition",
        )
        for short, networks in FORMED.items()
    ),
    *(
        _claim(
            f"fits-{short}",
            f"The network has learned from the questions it is trained on: its numbers are nearer to the best ones than the mean "
            f"answer is ({networks}; error on trained instances as a share of the mean's error on the same).",
            "below",
            0.8,
            role="precondition",
        )
        for short, networks in FITS.items()
    ),
    _claim(
        "bounds-not-balance",
        "Bounds of single numbers are met far more often than the balance of power at loaded buses (9 buses; lowest difference "
        "over sizes and architectures).",
        "greater",
        0.3,
        primary=True,
        needs=BOTH,
    ),
    _claim(
        "bounds-not-balance-14",
        "The same in the network of 14 buses.",
        "greater",
        0.3,
        needs=FOURTEEN,
    ),
    _claim(
        "bounds-not-weight",
        "In the knapsack, bounds are met far more often than the capacities, which differ from question to question.",
        "greater",
        0.3,
        needs=SACK,
    ),
    _claim(
        "size-changes-little-decoder",
        "The share of all constraints that hold differs little over three sizes (9 buses, decoder; largest less smallest share, over "
        "answers that are numbers throughout).",
        "below",
        0.1,
        needs=NINE,
    ),
    _claim(
        "size-changes-little-encoder-decoder",
        "The same for encoder-decoders.",
        "below",
        0.1,
        needs=BOTH,
    ),
    _claim(
        "architecture-changes-little",
        "Decoders and encoder-decoders satisfy as many constraints (9 buses, largest size; over answers that are numbers throughout).",
        "equivalent",
        0.1,
        needs=BOTH,
    ),
    _claim(
        "error-falls",
        "Larger networks say numbers that are nearer to the best ones (9 buses, decoder; error of the smallest less that of the "
        "largest, in units of the spread of answers).",
        "greater",
        0.05,
        needs=NINE,
    ),
    _claim(
        "balance-stays-low",
        "All the same, power balances at few loaded buses (9 buses, decoder, largest size; over answers that are numbers throughout).",
        "below",
        0.3,
        needs=NINE,
    ),
    *(
        _claim(
            f"plateau-is-the-mean-{short}",
            f"A network satisfies as many constraints as the mean of all training answers, which does not read the question "
            f"({problem}; total of the network less that of the mean, over answers that are numbers throughout).",
            "equivalent",
            0.05,
            needs=needs,
        )
        for short, problem, needs in (
            ("9", SMALL, NINE),
            ("14", LARGE, FOURTEEN),
            ("knapsack", PACKING, SACK),
        )
    ),
    *(
        _claim(
            f"plateau-is-the-box-{short}",
            f"The share of constraints that hold is the share of those that only keep numbers and lines within fixed limits "
            f"({problem}; total of the network, over answers that are numbers throughout, less that share, which is known before training).",
            "equivalent",
            0.05,
            needs=needs,
        )
        for short, problem, needs in (("9", SMALL, NINE), ("14", LARGE, FOURTEEN))
    ),
    _claim(
        "steps-do-not-lift",
        "Intermediate steps do not bring the balance: the rate at loaded buses rises by less than this (9 buses, decoder; over answers "
        "that are numbers throughout).",
        "below",
        0.1,
        needs=(*NINE, "fits-9-usual", "fits-9-steps", "well-formed-9-steps"),
    ),
    _claim(
        "reward-does-not-lift",
        "Nor does a reward for constraints that hold (9 buses, decoder; over answers that are numbers throughout).",
        "below",
        0.1,
        needs=(
            *NINE,
            "fits-9-usual",
            "fits-9-reward",
            "well-formed-9-reward",
            "reward-works-where-it-can",
        ),
    ),
    _claim(
        "reward-works-where-it-can",
        "Where taking less is enough, the reward is learned: more capacities are kept with it than without (knapsack; over "
        "answers that are numbers throughout).",
        "greater",
        0.05,
        role="control",
        needs=(*SACK, "fits-knapsack-reward", "well-formed-knapsack-reward"),
    ),
    _claim(
        "newton-repairs-9",
        "A Newton solve that keeps the answer's controls satisfies nearly all constraints (9 buses, decoder, largest size; total over "
        "answers that are numbers throughout).",
        "above",
        0.98,
        needs=NINE,
    ),
    _claim(
        "newton-repairs-14",
        "The same in the network of 14 buses.",
        "above",
        0.98,
        needs=FOURTEEN,
    ),
    _claim(
        "newton-needs-no-network",
        "The solve does it, not the network: after it the mean answer satisfies as many (9 buses; total of the network less that "
        "of the mean, both repaired, where the network's answers are numbers throughout).",
        "equivalent",
        0.02,
        role="control",
        needs=NINE,
    ),
)
"""Stated before any run that decides, and versioned with this file."""
