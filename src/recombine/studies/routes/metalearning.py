"""Does a network that has learned to learn compose in context what the same network, trained on one grid, does not?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.families.episodes import ALONE
from recombine.models import Decoder, Model
from recombine.probes import Compute, Scores
from recombine.studies.routes.episodes import by_context, with_contexts
from recombine.studies.shapes import ascending, sequence_run
from recombine.supports import Episodes
from recombine.training.config import RunConfig

TESTED = ("blocked", "interleaved", "rotated")
CELLS = ("tested",)


class Metalearning(Study):
    """Does a network that has learned to learn compose in context what the same network, trained on one grid, does not?

    On a 5 x 5 grid the colour of an animal decides its column, and its kind the row. One row and one column are shown; the other
    16 combinations are tested. Metalearned networks are trained on many grids, each with names of its own, and read the shown cells of a
    new grid in the prompt. The same network without episodes is trained on the shown cells of a single grid, with nothing but the
    question in the prompt, or with the shown cells. In the rotated control a column depends on colour and animal together, so that
    the shown cells do not determine the others. Steps, batches and the compiled program are the same for all.
    """

    kind: Literal["metalearning"] = "metalearning"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run(
                {"kind": "grids", "side": 3, "names": 6}, tasks=16, steps=8, eval_every=8, validation_tasks=4
            ),
            "model": {"kind": "decoder", "heads": 2, "layers": 1, "window": 3},
            "numbers": (4, 32),
            "widths": (8, 16),
            "steps_one": 8,
            "combinations": 64,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 7400},
        "workstation": {"replicates": 24, "first_seed": 7100},
        "paper": {
            "base": sequence_run(
                {"kind": "grids", "turned": True}, tasks=256, steps=50_000, eval_every=2500, validation_tasks=512
            ),
            "numbers": (4, 32, 256, 4000),
            "widths": (32, 128, 256),
            "steps_one": 5000,
            "replicates": 12,
        },
    }
    shown = "accuracy_in", "accuracy_held_out", "step_accuracy_held_out", "training_flops"

    base: RunConfig = RunConfig.model_validate(
        sequence_run("grids", tasks=64, steps=1000, eval_every=250, validation_tasks=128)
    )
    """What all runs share; the arms set support and network."""
    model: field("models", Model) = Decoder(layers=2, window=3)  # type: ignore[valid-type]
    """The network; the arms set its width."""
    numbers: tuple[PositiveInt, ...] = (16, 128, 1300)
    """The numbers of training grids, fewest first."""
    widths: tuple[PositiveInt, ...] = (16, 64)
    """Widths of the residual stream, narrowest first."""
    steps_one: PositiveInt = 300
    """Steps on one grid: nine shown cells are learned sooner."""
    tested: int = Field(default=16, ge=2)
    """Grids that are kept for the test. The first of them is the one grid."""
    combinations: PositiveInt = 1024
    """The largest number of cells that are scored in each region."""
    replicates: PositiveInt = 8
    """Independent replicates: grids, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "numbers", "widths")

    def arms(self) -> dict[str, Arm]:
        def grids(*contexts: str, number: Any) -> Arm:
            return Arm(
                self.base,
                model=self.model,
                support=Episodes(
                    contexts=contexts, queries=CELLS, tested=self.tested, test_contexts=TESTED, test_queries=CELLS
                ),
                number=number,
                width=self.widths[-1],
            )

        def one(context: str, widths: Any) -> Arm:
            return Arm(
                self.base,
                model=self.model,
                support=Episodes(
                    number=1,
                    within=True,
                    tested=self.tested,
                    contexts=(context,),
                    queries=("shown",),
                    test_queries=CELLS,
                ),
                width=widths,
                steps=self.steps_one,
            )

        many = self.numbers[-1]
        main = grids("blocked", number=self.numbers)
        return {
            "main": main,
            "width": main.replace(number=many, width=self.widths),
            "mixed": grids("blocked", "interleaved", number=many // 2),
            "one": one(ALONE, self.widths),
            "one_shown": one("blocked", self.widths[-1]),
        }

    def measurements(self) -> list[Any]:
        return [Scores(combinations=self.combinations, draws=1, samples=1, map=False), Compute()]

    def claims(self, main: Arm, width: Arm, mixed: Arm, one: Arm, one_shown: Arm) -> Claims:
        tables = {"main": main.table(by_context), "width": width.table(by_context), "mixed": mixed.table(by_context)}
        few, many, wide = self.numbers[0], self.numbers[-1], self.widths[-1]

        def score(context: str, number: int = many) -> Column:
            """The accuracy on the tested cells of new grids."""
            return tables["main"][context].at(number=number)

        alone = one["accuracy_held_out"]
        text = "The metalearned network answers questions on the grids that it is trained on (exact match, most grids)."
        yield precondition("fits", main["accuracy_in"].at(number=many).above(0.9), text)
        text = "The network without episodes answers the shown cells of its grid (exact match, lowest over widths)."
        yield precondition("fits-one", one["accuracy_in"].lowest().above(0.9), text)
        text = "So it does with the shown cells in the prompt (exact match)."
        yield precondition("fits-one-shown", one_shown["accuracy_in"].above(0.9), text)
        text = "A metalearned network answers the 16 cells of a new grid that are not shown (exact match, blocked, most grids)."
        yield claim("metalearned-composes", score("blocked").above(0.9), text, primary=True, needs="fits")
        text = (
            "The same network does not, trained on the shown cells of one grid (exact match on the cells that are not shown, metalearned "
            "minus one grid, at the largest width)."
        )
        yield claim(
            "episodes-not-one-grid",
            (score("blocked") - alone.at(width=wide)).greater(0.5),
            text,
            primary=True,
            needs=("fits", "fits-one"),
        )
        text = "The prompt alone is not what helps: one grid with its shown cells in the prompt does not do it either (metalearned minus that)."
        yield claim(
            "prompt-is-not-enough",
            (score("blocked") - one_shown["accuracy_held_out"]).greater(0.5),
            text,
            needs=("fits", "fits-one-shown"),
        )
        text = "A wider network does not replace episodes: on one grid, exact match on cells that are not shown rises by less than this."
        yield claim("width-does-not-replace-episodes", alone.rise("width").below(0.1), text, needs="fits-one")
        text = "More training grids help: exact match on new grids, most minus fewest grids."
        yield claim("more-grids-help", tables["main"]["blocked"].rise("number").greater(0.5), text, needs="fits")
        text = "The network answers the questions on few grids that it is trained on (exact match, fewest grids)."
        yield precondition("fits-few", main["accuracy_in"].at(number=few).above(0.9), text)
        text = "Few grids are remembered and teach nothing about new ones (exact match on new grids, fewest grids)."
        yield claim("few-grids-teach-nothing", score("blocked", few).below(0.2), text, needs="fits-few")
        text = "A wider network learns to learn better: exact match on new grids, widest minus narrowest, most grids."
        yield claim("width-helps-episodes", tables["width"]["blocked"].rise("width").greater(0.1), text, needs="fits")
        text = (
            "Order counts: with the same cells interleaved, a network that was metalearned on blocked ones answers fewer of the others "
            "(exact match, blocked minus interleaved)."
        )
        yield claim("order-counts", (score("blocked") - score("interleaved")).greater(0.2), text, needs="fits")
        text = "A network that is metalearned on both orders answers the questions on its training grids (exact match)."
        yield precondition("fits-mixed", mixed["accuracy_in"].above(0.9), text)
        text = (
            "That is a matter of the training episodes and not of the network: metalearned on both orders, it answers as well where "
            "cells are interleaved (exact match, interleaved, both orders minus blocked only)."
        )
        gain = tables["mixed"]["interleaved"] - score("interleaved")
        yield claim("order-is-learned", gain.greater(0.2), text, needs=("fits", "fits-mixed"))
        text = "On rotated grids, where the shown cells do not determine the others, it fails (exact match)."
        yield control("rotated-fails", score("rotated").below(0.2), text, needs="fits")

    def figures(self, main: Arm, width: Arm, mixed: Arm, one: Arm, one_shown: Arm) -> Figures:
        from recombine.figures.axes import Reference
        from recombine.figures.study import lines

        limits: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0, "y_title": "exact match, cells that are not shown"}
        side = self.base.family.side
        chance = [Reference(1 / side**2, "chance")]
        words = {
            "trained": "trained grids",
            "blocked": "new grids, blocked",
            "interleaved": "new grids, interleaved",
            "rotated": "control: rotated",
        }
        frame = with_contexts(main).rename(columns={"accuracy_in": "trained"})
        yield lines(
            frame.melt(["replicate", "number"], list(words), "context", "accuracy").replace({"context": words}),
            x="number",
            x_title="training grids",
            log=True,
            y="accuracy",
            series="context",
            labels=list(words.values()),
            controls=[words["rotated"]],
            name="by_grids",
            title="How many grids does a network need to learn to learn?",
            caption="Questions about cells that are not shown, on grids of training and on new ones, by the number of training grids.",
            references=chance,
            **limits,
        )
        routes = {
            "many grids, in context": with_contexts(width).assign(score=lambda own: own["blocked"]),
            "one grid, in weights": one.frame.assign(score=lambda own: own["accuracy_held_out"]),
            "one grid, shown in the prompt": one_shown.frame.assign(score=lambda own: own["accuracy_held_out"]),
            "both orders": with_contexts(mixed).assign(score=lambda own: own["blocked"]),
        }
        frame = pd.concat([own.assign(route=name) for name, own in routes.items()])
        yield lines(
            frame[frame["route"].isin(list(routes)[:2])],
            x="width",
            x_title="width",
            log=True,
            y="score",
            series="route",
            labels=list(routes)[:2],
            name="by_width",
            title="Does a wider network do without episodes?",
            caption="Cells that are not shown, of a new grid (in context) or of the only grid (in weights), by the width of the network.",
            references=chance,
            **limits,
        )
        yield lines(
            frame.assign(compute=frame["training_flops"] / 1e9),
            x="compute",
            x_title="billions of operations of training",
            log=True,
            y="score",
            series="route",
            labels=list(routes),
            title="What does a unit of compute buy?",
            caption="Cells that are not shown against the operations of all training steps, as the compiler counts them. Points of a route "
            "differ in width.",
            references=chance,
            **limits,
        )
        orders = {"blocked": "blocked", "interleaved": "interleaved", "rotated": "control: rotated"}
        trained = {
            "on blocked": with_contexts(main).query("number == @self.numbers[-1]"),
            "on both orders": with_contexts(mixed),
        }
        frame = pd.concat([own.assign(trained=name) for name, own in trained.items()])
        frame = frame.melt(["replicate", "trained"], list(orders), "context", "accuracy").replace({"context": orders})
        yield by_order(frame)


def by_order(frame: pd.DataFrame) -> Any:
    """The accuracy in each context, by what the network was metalearned on."""
    from recombine.figures.study import dots

    wide = frame.pivot_table(index=["replicate", "context"], columns="trained", values="accuracy").reset_index()
    return dots(
        wide,
        category="context",
        labels=["blocked", "interleaved", "control: rotated"],
        measures={"on blocked": "metalearned on blocked", "on both orders": "metalearned on both orders"},
        name="by_order",
        title="Does the order of the shown cells count?",
        caption="Cells of new grids that are not shown, by the order of those that are, and by the order in the training episodes.",
        x_title="exact match, cells that are not shown",
        floor=0.0,
        ceiling=1.0,
    )
