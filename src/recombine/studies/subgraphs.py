"""Does a network that writes its steps down compute, or does it match subgraphs that it has seen?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import pandas as pd
from pydantic import PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, Tables, claim, precondition, statistic
from recombine.families import Einstein, MaximumSum, Multiplication
from recombine.graphs.einstein import left_word
from recombine.models import Decoder, Model
from recombine.objectives import NextToken
from recombine.probes import GraphSteps
from recombine.probes.graph_steps import COLUMNS
from recombine.probes.graph_steps.statistics import digit_skill, digit_table, predictable_digits, slips_by_depth
from recombine.studies.shapes import if_run, left_out, sequence_run
from recombine.supports import ShortLists, SmallFactors
from recombine.training.config import RunConfig

Format = Literal["steps", "question only", "steps, plain places"]
STEPS, QUESTION, PLAIN = get_args(Format)
"""All steps are written; only the result is; all steps, at consecutive positions, of which training never reaches the last."""
ARMS = {
    "lists": ("lists", STEPS),
    "lists_question": ("lists", QUESTION),
    "lists_plain": ("lists", PLAIN),
    "products": ("products", STEPS),
    "products_question": ("products", QUESTION),
    "puzzles": ("puzzles", STEPS),
}
"""The problem and the format of each arm."""
FAMILIES = {"lists": MaximumSum, "products": Multiplication, "puzzles": Einstein}
TITLES = {"lists": "Maximum sums", "products": "Multiplication", "puzzles": "Einstein's puzzle"}
SIZES = {"lists": "numbers in the list", "products": "digits of the factors", "puzzles": "depth of the graph"}
WORDS = {"lists": ("lists", "lengths"), "products": ("numbers", "lengths"), "puzzles": ("puzzles", "depths")}
TRAINED = {problem: f"{things} of trained {sizes}" for problem, (things, sizes) in WORDS.items()}
LARGER = {problem: f"longer {things} than those trained on" for problem, (things, _) in WORDS.items()}
LARGER["puzzles"] = "deeper puzzles than those trained on"
HOW = {STEPS: "with all steps written down", QUESTION: "without steps", PLAIN: "with steps and plain places"}
FITS = {"lists": 0.95, "lists_question": 0.9, "lists_plain": 0.95, "products": 0.9, "puzzles": 0.9}
"""The accuracy on held-out problems of trained sizes that claims about larger ones need."""
FAILS = {"lists": 0.4, "lists_question": 0.4, "products": 0.4, "puzzles": 0.1}
"""The margins by which larger problems fail. Depths of puzzles differ by little."""
READ = "answers that are kept going for as many steps as they need"
"""In an answer that ends early, steps are missing and no error can reach them."""
DIGITS = {"products_question": "right, question only", "products": "right, with steps"}
TINY: dict[str, Any] = {"tasks": 16, "steps": 8, "eval_every": 8, "validation_tasks": 8}
LONG: dict[str, Any] = {"tasks": 256, "steps": 20_000, "eval_every": 1000, "validation_tasks": 128}


def graph_run(kind: str, name: str, space: Any, family: Any = None, **settings: Any) -> dict[str, Any]:
    """The settings of a run on the problems of a space, by the kind of family and its name for the space."""
    return sequence_run({"kind": kind, name: space, **(family or {})}, space=space, **settings)


class Subgraphs(Study):
    """Does a network that writes its steps down compute, or does it match subgraphs that it has seen?

    Decoders solve problems whose solution is a graph of steps. They are trained on small problems and tested on larger ones: the
    largest sum of entries of a list, no two of them neighbours; products of two numbers; Einstein's puzzles. Every token that
    a network writes is a node that can be right, restored, wrong because of its parents, or wrong by itself.
    """

    kind: Literal["subgraphs"] = "subgraphs"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "lists": graph_run(
                *("maximum-sum", "lists", {"kind": "lists", "longest": 5}),
                support={"kind": "short-lists", "longest": 3, "number": 100, "reserve": 24},
                **TINY,
            ),
            "products": graph_run(
                *("multiplication", "pairs", {"kind": "number-pairs", "left": 2, "right": 2}),
                support={"kind": "small-factors", "left": 1, "right": 2, "number": 60, "reserve": 24},
                **TINY,
            ),
            "puzzles": graph_run("einstein", "instances", {"kind": "instances", "number": 80}, **TINY),
            "model": {"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
            "formats": (STEPS,),
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "paper": {
            "lists": graph_run(
                *("maximum-sum", "lists", {"kind": "lists", "longest": 10}),
                support={"kind": "short-lists", "longest": 5, "number": 200_000, "tilt": 1},
                **LONG,
            ),
            "products": graph_run(
                *("multiplication", "pairs", {"kind": "number-pairs", "left": 4, "right": 3}),
                support={"kind": "small-factors", "left": 3, "right": 2, "number": 60_000},
                **LONG,
            ),
            "puzzles": graph_run(
                *("einstein", "instances", {"kind": "instances", "number": 19_200}, {"names": 16}),
                support={"kind": "leading-instances", "block": 16},
                **LONG,
            ),
            "model": {"kind": "decoder", "width": 256, "layers": 6},
            "replicates": 12,
        },
    }
    shown = (
        *("exact_in", "exact_beyond", "result_beyond", "flawed_beyond", "short_beyond"),
        *("share_correct_beyond", "share_propagation_beyond", "share_local_beyond"),
        *("step_error_beyond", "step_recovery_beyond", "bound_beyond"),
    )

    lists: RunConfig = RunConfig.model_validate(
        sequence_run("maximum-sum", tasks=64, steps=2000, eval_every=500, validation_tasks=64)
    ).replace(support=ShortLists(longest=4, tilt=1))
    """Maximum sums. The arms set whether steps are written, and positions."""
    products: RunConfig = RunConfig.model_validate(
        sequence_run("multiplication", tasks=32, steps=4500, eval_every=1500, validation_tasks=64)
    )
    """Multiplication."""
    puzzles: RunConfig = RunConfig.model_validate(
        graph_run(
            *("einstein", "instances", {"kind": "instances", "number": 19_800}),
            family={"houses": 2, "attributes": 3, "names": 45},
            support={"kind": "leading-instances", "block": 45},
            **{"tasks": 64, "steps": 2500, "eval_every": 500, "validation_tasks": 64},
        )
    )
    """Einstein's puzzle. With fewer names networks memorise the puzzles; with three houses they need far longer."""
    model: field("models", Model) = Decoder(width=64)  # type: ignore[valid-type]
    formats: tuple[Format, ...] = get_args(Format)
    """What is written, and at which positions. Claims about a format that is left out are not asked."""
    first_seed: int = 4000
    """Fresh seeds: earlier ones decided before answers were kept going."""
    spread: PositiveInt = 2
    """Random positions are drawn from this many times the tokens of the longest prompt and answer."""
    replicates: PositiveInt = 8
    """Independent replicates: what is trained on, initialisation and order of the data."""

    def check(self) -> None:
        for problem, family in FAMILIES.items():
            given, wanted = getattr(self, problem).family, family.model_fields["kind"].default
            if not (isinstance(given, family) and given.steps):
                raise ValueError(f"{problem} is {given.kind}: it must be {wanted}, with its steps")

    def arms(self) -> dict[str, Arm]:
        arms = {}
        for name, (problem, written) in ARMS.items():
            base: RunConfig = getattr(self, problem)
            family: Any = base.family.replace(steps=written != QUESTION)
            spread = 0 if written == PLAIN else self.spread * (family.longest_prompt + family.longest_answer)
            # The largest problem of training: training on longer ones would only add pads.
            prompts, answers = 0, 0
            if isinstance(base.support, ShortLists):
                prompts, answers = family.lengths(base.support.longest)
            elif isinstance(base.support, SmallFactors):
                prompts, answers = family.lengths(10 * base.support.left + base.support.right)
            objective = NextToken(random_positions=spread, prompt_length=prompts, answer_length=answers)
            if written in self.formats:
                arms[name] = Arm(base, family=family, objective=objective, model=self.model)
        return arms

    def measurements(self) -> list[Any]:
        return [GraphSteps()]

    def claims(self, **arms: Arm) -> Claims:
        def of(column: str, arm: str = "lists") -> Column:
            return if_run(self, arms.get(arm), column)

        def computed(function: Any, arm: str, rows: str) -> Column:
            if arm not in arms:
                return left_out(self)
            return statistic(lambda tables: function(part(tables, rows)), arms[arm])

        for arm, least in FITS.items():
            problem, written = ARMS[arm]
            text = f"Held-out {TRAINED[problem]} are entirely right {HOW[written]} (exact match, mean over sizes with at least 16)."
            yield precondition(f"fits-{arm.replace('_', '-')}", of("exact_in", arm).above(least), text)
        for arm, margin in FAILS.items():
            problem, written = ARMS[arm]
            text = f"{LARGER[problem].capitalize()} are right far less often {HOW[written]} (exact match, trained sizes minus larger ones)."
            name = f"larger-{problem}-fail" + ("-question" if written == QUESTION else "")
            lost = (of("exact_in", arm) - of("exact_beyond", arm)).greater(margin)
            yield claim(name, lost, text, primary=arm == "lists", needs=f"fits-{arm.replace('_', '-')}")
        text = "Untrained positions are not the reason: longer lists fail with random positions as well (exact match, random minus plain)."
        needs = ("fits-lists", "fits-lists-plain", "larger-lists-fail")
        places = of("exact_beyond") - of("exact_beyond", "lists_plain")
        yield claim("places-are-not-all", places.below(0.2), text, needs=needs)
        text = "Longer lists get answers with fewer steps than they need (share, mean over lengths)."
        yield claim("answers-are-too-short", of("short_beyond").above(0.2), text, needs="fits-lists")
        text = (
            "In longer lists a step whose parents are all right is wrong more often the deeper it lies (deeper half minus shallower "
            f"half of the steps of one operation with as many parents in lists of one length; {READ})."
        )
        slips = computed(slips_by_depth, "lists", "steps").greater(0.02)
        yield claim("slips-rise-with-depth", slips, text, needs="fits-lists", version=2)
        text = (
            "Slips and recoveries of single steps in lists of one number more than trained predict how often steps of still longer "
            f"lists are right (share of right steps minus the prediction, in which errors propagate from step to step; {READ})."
        )
        off = of("off_prediction_beyond").equivalent(0.05)
        yield claim("rates-carry-over", off, text, needs="fits-lists", version=2)
        for problem, end in (("lists", ""), ("products", "-products")):
            text = f"In {LARGER[problem]} more steps are wrong because of earlier errors than by themselves (share of steps, propagation minus local; {READ})."
            more = of("share_propagation_beyond", problem) - of("share_local_beyond", problem)
            yield claim(f"errors-propagate{end}", more.greater(0.02), text, needs=f"fits-{problem}", version=2)
            text = (
                f"In {LARGER[problem]}, steps that are right with everything before them have subgraphs that training showed more often than "
                f"other steps of the same operation, parents, depth and size (log2 of 1 + times shown; {READ})."
            )
            seen = of("frequency_of_right_beyond", problem).greater(0.1)
            yield claim(f"seen-subgraphs-are-right{end}", seen, text, needs=f"fits-{problem}", version=2)
        text = (
            "Without steps, digits of larger products are right more often where single digits of the factors tell most than where they tell "
            "least (accuracy beyond the most frequent digit, as a share of what is left; half of the places with the highest relative "
            "information gain minus half with the lowest)."
        )
        told = computed(predictable_digits, "products_question", "result").greater(0.2)
        yield claim("told-digits-are-right", told, text, needs="results-are-learned")
        text = (
            "Without steps, digits of products of trained lengths beat the most frequent digit (share of what is left)."
        )
        learned = computed(digit_skill, "products_question", "result").above(0.5)
        yield precondition("results-are-learned", learned, text)

    def figures(self, **arms: Arm) -> Figures:
        from recombine.figures import graph_steps as figures

        def rows(name: str, *names: str) -> pd.DataFrame:
            frames = [part(arms[arm].tables, name) for arm in names if arm in arms]
            return pd.concat(frames) if frames else pd.DataFrame(columns=["arm", "replicate", *COLUMNS])

        fewest = GraphSteps().fewest
        formats = {name: {arm: form for arm, (of, form) in ARMS.items() if of == name} for name in FAMILIES}
        for problem in ("lists", "puzzles", "products"):
            yield figures.answers_by_size(
                rows("answers", *formats[problem]),
                name=f"{problem}_by_size",
                title=TITLES[problem],
                size=SIZES[problem],
                labels=formats[problem],
                fewest=fewest,
                rows=problem == "products",
            )
        graphs = {problem: getattr(self, problem).family.graph for problem in FAMILIES}
        yield figures.answers_by_depth(rows("answers", *FAMILIES), graphs=graphs, labels=TITLES, fewest=fewest)
        for problem, title in TITLES.items():
            about = {"name": f"{problem}_by_depth", "title": title, "problems": LARGER[problem]}
            yield figures.steps_by_depth(rows("steps", problem), **about)
        keys = ["replicate", "size", "name", "beyond", "place"]
        asked, steps = (digit_table(rows("result", arm)).rename(columns={"accuracy": arm}) for arm in DIGITS)
        frame = asked[[*keys, "gain", "products_question"]]
        frame = frame.merge(steps[[*keys, "products"]], on=keys, how="outer")
        yield figures.digits_of_products(frame, accuracies=DIGITS)
        for problem, title in TITLES.items():
            answers = rows("answers", problem)
            yield figures.one_answer(
                answers[answers["replicate"] == self.seeds[0]],
                graph=graphs[problem],
                problem=getattr(self, problem).space.name,
                name=f"{problem}_one_answer",
                title=title,
                write=houses if problem == "puzzles" else None,
            )


def part(tables: Tables, name: str) -> pd.DataFrame:
    """A part of the table of `graph-steps`: `answers`, `result` or `steps`."""
    frame = tables["graph-steps"].reindex(columns=["arm", "replicate", *COLUMNS])
    return frame[frame["part"] == name]


def houses(mask: int) -> str:
    """The houses that are left, in the words of puzzles."""
    return left_word("", mask, mask.bit_length())[1:] or "none"
