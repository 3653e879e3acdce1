"""Do seven granular tasks, made of the same programs, teach a network to call functions in new ways better than one umbrella task?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.errors import BadInput
from recombine.families.sequences.function_calls import FunctionCalls
from recombine.probes import CallAnswers, Compute, Scores
from recombine.studies.shapes import sequence_run
from recombine.training.config import RunConfig

ROUTES = {
    "granular": "seven granular tasks",
    "umbrella": "umbrella task",
    "sevenfold": "umbrella task, seven times the programs",
}
"""The routes, in words."""
SPLITS = {
    "seen": "nothing new",
    "function": "a function that was never trained",
    "pair": "a pair that was never nested",
    "depth": "one call deeper",
}
"""What is new in a program, in words."""
NEW = ("function", "pair", "depth")
METRICS = {
    "ast": "whole program (AST)",
    "executed": "executed result",
    "name_f1": "names (F1)",
    "argument_f1": "arguments (F1)",
    "order": "order of calls (LCS)",
    "hallucinated": "invented names (share)",
}
COVERAGE = {
    "0, new function": "never: its function is new",
    "0": "never",
    "1": "once",
    "2-3": "2 or 3 times",
    "4+": "4 times or more",
}
"""How often training nests a pair, in words."""


class FunctionCalling(Study):
    """Do seven granular tasks, made of the same programs, teach a network to call functions in new ways better than one umbrella task?

    A prompt lists three functions with made-up names and descriptions, and a request. The umbrella task is to answer with all calls.
    The granular tasks are nested calls, chains, parallel calls, the next function, names, arguments, and the response. They are made
    of the same programs, and both routes are trained with equally many tokens. A third route has the umbrella task of seven times as
    many programs, also with as many tokens. Test programs have a new function, a pair of functions that training never nests, or one
    call more in depth. The rival explanation of a failure is that training never nested a pair: the table of `call-answers` has each
    pair of each program with its number of training programs.
    """

    kind: Literal["function-calling"] = "function-calling"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run(
                {"kind": "function-calls", "programs": 40, "tests": 8, "functions": 14, "held_out_pairs": 8},
                tasks=8,
                steps=6,
                eval_every=6,
                validation_tasks=4,
                model={"kind": "decoder", "width": 16, "heads": 2, "layers": 1},
            ),
            "combinations": 16,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 7600},
        "paper": {
            "base": sequence_run(
                {
                    "kind": "function-calls",
                    "programs": 2000,
                    "tests": 400,
                    "functions": 30,
                    "held_out_functions": 5,
                    "candidates": 5,
                },
                tasks=256,
                steps=20_000,
                eval_every=1000,
                validation_tasks=256,
                model={"kind": "decoder", "width": 192, "layers": 4, "heads": 6, "window": 3},
            ),
            "combinations": 2048,
            "replicates": 12,
        },
    }
    shown = "ast_trained", "ast_seen", "ast_function", "ast_pair", "ast_depth", "training_tokens"

    base: RunConfig = RunConfig.model_validate(
        sequence_run(
            "function-calls",
            tasks=16,
            steps=5000,
            eval_every=1250,
            validation_tasks=64,
            model={"kind": "decoder", "width": 64, "layers": 2, "window": 3},
        )
    )
    """What all runs share, with the steps of the granular route; the others have as many as give equal tokens."""
    times: int = Field(default=7, ge=2)
    """How many times as many programs the third route has. It is also the number of training instances for each program."""
    combinations: PositiveInt = 256
    """Training examples, and held-out programs, that are scored token by token."""
    replicates: PositiveInt = 8
    """Independent replicates: functions, programs, what is held out, initialisation and order of the data."""

    def check(self) -> None:
        if not isinstance(self.base.family, FunctionCalls):
            raise BadInput(
                f"function-calling needs runs of function-calls, got {self.base.family.kind!r}.",
                fix="base.family=function-calls",
            )

    def families(self) -> dict[str, FunctionCalls]:
        """The family of each route. All have equally many training instances."""
        given = self.base.family
        assert isinstance(given, FunctionCalls)
        one = given.replace(rows=self.times, tasks="umbrella")
        return {
            "granular": one.replace(tasks="granular"),
            "umbrella": one,
            "sevenfold": one.replace(rows=1, programs=self.times * given.programs),
        }

    def arms(self) -> dict[str, Arm]:
        families, routes = self.families(), {}
        tokens = families["granular"].mean_tokens()
        for route, family in families.items():
            # There are fewer single calls than programs of two calls, so more programs are longer ones.
            share = tokens / family.mean_tokens()
            prompt, answer = family.lengths(family.depth)
            routes[route] = {
                "family": family,
                "steps": round(share * self.base.recipe.steps),
                "prompt_length": prompt,
                "answer_length": answer,
            }
        return {"main": Arm(self.base, route=routes)}

    def measurements(self) -> list[Any]:
        return [Scores(combinations=self.combinations, draws=1, samples=1, map=False), CallAnswers(), Compute()]

    def claims(self, main: Arm) -> Claims:
        def score(route: str, split: str, metric: str = "ast") -> Column:
            return main[f"{metric}_{split}"].at(route=route)

        def new(route: str, metric: str = "ast") -> Column:
            """The mean over programs with something new."""
            function, pair, depth = (score(route, split, metric) for split in NEW)
            return (function + pair + depth) / 3

        for route, words in ROUTES.items():
            text = f"The network calls the programs that it is trained on ({words}; AST match)."
            yield precondition(f"fits-{route}", score(route, "trained").above(0.9), text)
        text = "The network answers the granular examples that it is trained on (exact match of the answer)."
        yield precondition("fits-granular-tasks", main["accuracy_in"].at(route="granular").above(0.9), text)
        tokens = main["training_tokens"]
        ratio = tokens.at(route="granular") / tokens.at(route="umbrella")
        text = "The granular and the umbrella route are trained with equally many tokens (ratio minus one)."
        yield precondition("equal-tokens", (ratio - 1).equivalent(0.02), text)
        ratio = tokens.at(route="granular") / tokens.at(route="sevenfold")
        text = "So are the granular route and the umbrella route with seven times the programs (ratio minus one)."
        yield precondition("equal-tokens-sevenfold", (ratio - 1).equivalent(0.02), text)

        both = ("fits-granular", "fits-granular-tasks", "fits-umbrella", "equal-tokens")
        text = (
            "Granular tasks help: with equally many tokens, more programs with something new are called right than after the umbrella task "
            "(AST match, mean over a new function, a new pair and a new depth, granular minus umbrella)."
        )
        gain = new("granular") - new("umbrella")
        yield claim("granular-helps", gain.greater(0.05), text, primary=True, needs=both)
        for split in NEW:
            text = f"So they do where the program has {SPLITS[split]} (AST match, granular minus umbrella)."
            if split == "depth":
                text = "So they do where the program is one call deeper than in training (AST match, granular minus umbrella)."
            gain = score("granular", split) - score("umbrella", split)
            yield claim(f"granular-helps-{split}", gain.greater(0.05), text, needs=both)
        text = "The same programs in seven tasks are better than seven times the programs in one task (AST match, something new, granular minus umbrella)."
        needs = ("fits-granular", "fits-granular-tasks", "fits-sevenfold", "equal-tokens-sevenfold")
        gain = new("granular") - new("sevenfold")
        yield claim("granular-beats-more-programs", gain.greater(0.05), text, needs=needs)
        text = "Seven times the programs help the umbrella task (AST match, something new, seven times minus once)."
        gain = new("sevenfold") - new("umbrella")
        yield claim("more-programs-help", gain.greater(0.05), text, needs=("fits-umbrella", "fits-sevenfold"))
        text = (
            "Names are easier than arguments (F1, something new, mean of granular and umbrella, names minus arguments)."
        )
        gaps = [new(route, "name_f1") - new(route, "argument_f1") for route in ("granular", "umbrella")]
        yield claim("names-are-easier", ((gaps[0] + gaps[1]) / 2).greater(0.05), text, needs=both)

        fits = ("fits-granular", "fits-umbrella")
        gaps = [score(route, "seen") - score(route, "pair") for route in ("granular", "umbrella")]
        text = "Coverage of pairs: calls whose pair was never nested fail more often (AST match, mean of granular and umbrella, nested pairs minus new ones)."
        yield claim("new-pairs-fail", ((gaps[0] + gaps[1]) / 2).greater(0.05), text, needs=fits)
        gaps = [score(route, "seen") - score(route, "depth") for route in ("granular", "umbrella")]
        text = (
            "Coverage of pairs is not the only reason: programs that are one call deeper fail more often although training nests all of "
            "their pairs (AST match, mean of granular and umbrella, depth of training minus one deeper)."
        )
        yield claim("depth-fails-with-all-pairs-nested", ((gaps[0] + gaps[1]) / 2).greater(0.1), text, needs=fits)
        text = "The prompt says which function a name stands for: with the names of a prompt exchanged, answers are not those of before (AST match, highest route)."
        yield control(
            "names-are-read", main["ast_renamed"].highest().below(0.1), text, needs=tuple(f"fits-{r}" for r in ROUTES)
        )

    def figures(self, main: Arm) -> Figures:
        from recombine.figures.study import dots

        share: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0}
        frame = main.frame
        splits = {"trained": "programs of training", **SPLITS}
        long = frame.melt(["replicate", "route"], [f"ast_{split}" for split in splits], "split", "score")
        yield dots(
            _by_route(long.assign(split=long["split"].str.removeprefix("ast_")), "split"),
            category="split",
            measures=ROUTES,
            labels=splits,
            title="Which programs does each route call right?",
            caption="Programs whose calls are all right, by what is new in them.",
            x_title="AST match",
            **share,
        )
        columns = {f"{metric}_{split}": metric for metric in METRICS for split in NEW}
        long = frame.melt(["replicate", "route"], list(columns), "metric", "score").replace({"metric": columns})
        yield dots(
            _by_route(long, "metric"),
            category="metric",
            measures=ROUTES,
            labels=METRICS,
            title="What goes wrong in programs with something new?",
            caption="Means over programs with a new function, a new pair and a new depth. Lower is better for invented names.",
            x_title="score",
            **share,
        )
        pairs = by_coverage(main.tables["call-answers"])
        yield dots(
            _by_route(pairs.rename(columns={"ast": "score"}), "nested"),
            category="nested",
            measures=ROUTES,
            labels=COVERAGE,
            title="Do calls fail where training never nested the pair?",
            caption="Held-out programs of the depth of training, by how often training nests their pair of functions.",
            x_title="AST match",
            **share,
        )


def by_coverage(answers: pd.DataFrame) -> pd.DataFrame:
    """The AST match of held-out programs at the depth of training, by how often training nests their pair.

    Args:
        answers: The table of `call-answers`, with the columns `route` and `replicate`.

    Returns:
        Columns replicate, route, nested (one of `COVERAGE`) and ast.
    """
    frame = answers[answers["split"].isin(["seen", "function", "pair"])]
    bins = pd.cut(frame["trained"], [-1, 0, 1, 3, float("inf")], labels=["0", "1", "2-3", "4+"]).astype(str)
    nested = bins.where(frame["split"] != "function", "0, new function")
    return frame.assign(nested=nested).groupby(["replicate", "route", "nested"])["ast"].mean().reset_index()


def _by_route(frame: pd.DataFrame, category: str) -> pd.DataFrame:
    """Scores with one column per route."""
    return frame.pivot_table(index=["replicate", category], columns="route", values="score").reset_index()
