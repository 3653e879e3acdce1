"""Does a network that has met many small grammars understand commands of a new one from a few study examples?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from recombine.component import field
from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.families.episodes import ALONE
from recombine.models import Decoder, Model
from recombine.probes import Compute, Scores
from recombine.studies.routes.episodes import by_kind, with_kinds
from recombine.studies.shapes import ascending, sequence_run
from recombine.supports import Episodes
from recombine.training.config import RunConfig

KINDS = {
    "new": "new combinations, as long as those shown",
    "longer": "longer than those shown",
    "longest": "longer than any query of training",
}
"""The kinds of tested commands, in words."""


class FewShotGrammars(Study):
    """Does a network that has met many small grammars understand commands of a new one from a few study examples?

    Each episode has a grammar of its own: four words for colours, one that repeats, one that makes a pattern. The prompt has eight
    study examples and a query. Systematicity is asked with new combinations of the length of those shown, productivity with longer
    commands: of a length that queries had in training, and longer than any of them. The same network without episodes is trained
    on the study commands of a single grammar, or on all its short commands, and has only the query in the prompt.
    """

    kind: Literal["few-shot-grammars"] = "few-shot-grammars"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": sequence_run("grammars", tasks=16, steps=8, eval_every=8, validation_tasks=4),
            "model": {"kind": "decoder", "heads": 2, "layers": 1, "width": 16, "window": 3},
            "numbers": (4, 32),
            "steps_one": 8,
            "tested": 4,
            "combinations": 64,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 7200},
        "workstation": {
            "base": sequence_run("grammars", tasks=64, steps=10_000, eval_every=1000, validation_tasks=128),
            "first_seed": 7300,
        },
        "paper": {
            "base": sequence_run("grammars", tasks=256, steps=50_000, eval_every=2500, validation_tasks=512),
            "model": {"kind": "decoder", "width": 128, "layers": 3, "heads": 8, "window": 3},
            "numbers": (4, 32, 256, 4000),
            "steps_one": 5000,
            "tested": 64,
            "combinations": 4096,
            "replicates": 12,
        },
    }
    shown = "accuracy_in", "accuracy_held_out", "step_accuracy_held_out", "training_flops"

    base: RunConfig = RunConfig.model_validate(
        sequence_run("grammars", tasks=64, steps=2000, eval_every=500, validation_tasks=128)
    )
    """What all runs share; the arms set support and network. After 2,000 steps .12 of the trained queries are right (seed 3), mostly
    single primitives: the precondition `fits` asks for more, as in the profile `workstation`."""
    model: field("models", Model) = Decoder(width=64, window=3)  # type: ignore[valid-type]
    """The network."""
    numbers: tuple[PositiveInt, ...] = (16, 700)
    """The numbers of training grammars, fewest first."""
    steps_one: PositiveInt = 300
    """Steps on one grammar: a few commands are learned sooner."""
    tested: int = Field(default=16, ge=2)
    """Grammars that are kept for the test. The first of them is the one grammar."""
    combinations: PositiveInt = 2048
    """The largest number of commands that are scored in each region."""
    replicates: PositiveInt = 8
    """Independent replicates: grammars, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "numbers")

    def arms(self) -> dict[str, Arm]:
        def grammars(*queries: str, number: Any) -> Arm:
            support = Episodes(
                contexts=("shown",),
                queries=queries,
                tested=self.tested,
                test_contexts=("shown", "other"),
                test_queries=tuple(KINDS),
            )
            return Arm(self.base, model=self.model, support=support, number=number)

        def one(*queries: str) -> Arm:
            support = Episodes(
                number=1,
                within=True,
                tested=self.tested,
                contexts=(ALONE,),
                queries=queries,
                test_queries=tuple(kind for kind in KINDS if kind not in queries),
            )
            return Arm(self.base, model=self.model, support=support, steps=self.steps_one)

        return {
            "main": grammars("study", "new", "longer", number=self.numbers),
            "short": grammars("study", "new", number=self.numbers[-1]),
            "one": one("study"),
            "one_rich": one("study", "new"),
        }

    def measurements(self) -> list[Any]:
        return [Scores(combinations=self.combinations, draws=1, samples=1, map=False), Compute()]

    def claims(self, main: Arm, short: Arm, one: Arm, one_rich: Arm) -> Claims:
        many = self.numbers[-1]
        shown, other = main.table(by_kind, context="shown"), main.table(by_kind, context="other")

        def score(kind: str) -> Column:
            """The accuracy on commands of new grammars."""
            return shown[kind].at(number=many)

        few, short_table = one.table(by_kind), short.table(by_kind, context="shown")
        rich = one_rich.table(by_kind)
        fitted = {"one": one, "one-rich": one_rich, "short": short}
        texts = {
            "one": "The network without episodes answers the study commands of its grammar",
            "one-rich": "The network without episodes answers all short commands of its grammar",
            "short": "The network that is metalearned on short queries answers those of its training grammars",
        }
        text = "The metalearned network answers commands of the grammars that it is trained on (exact match, most grammars)."
        yield precondition("fits", main["accuracy_in"].at(number=many).above(0.9), text)
        for name, arm in fitted.items():
            yield precondition(f"fits-{name}", arm["accuracy_in"].above(0.9), f"{texts[name]} (exact match).")
        text = (
            "Systematicity: a metalearned network answers new combinations of a new grammar where the same network, trained on the study "
            "commands of one grammar, does not (exact match, new commands of the same length, metalearned minus one grammar)."
        )
        yield claim(
            "systematicity", (score("new") - few["new"]).greater(0.5), text, primary=True, needs=("fits", "fits-one")
        )
        text = (
            "Productivity within the lengths of training queries: so it does for commands that are longer than all study examples (exact "
            "match, metalearned minus one grammar)."
        )
        yield claim(
            "productivity",
            (score("longer") - few["longer"]).greater(0.5),
            text,
            primary=True,
            needs=("fits", "fits-one"),
        )
        text = (
            "All short commands of one grammar do not replace episodes: metalearned networks answer more of the longer commands (exact "
            "match, metalearned minus one grammar with all short commands)."
        )
        yield claim(
            "more-commands-do-not-replace-episodes",
            (score("longer") - rich["longer"]).greater(0.2),
            text,
            needs=("fits", "fits-one-rich"),
        )
        text = (
            "Length is learned from episodes with that length: metalearned on short queries only, the network answers fewer of the longer "
            "commands (exact match, with longer queries minus without)."
        )
        yield claim(
            "length-needs-episodes",
            (score("longer") - short_table["longer"]).greater(0.2),
            text,
            needs=("fits", "fits-short"),
        )
        text = "Beyond the lengths of training queries, productivity ends (exact match, longer commands minus the longest)."
        yield claim("productivity-ends", (score("longer") - score("longest")).greater(0.2), text, needs="fits")
        text = "More training grammars help: exact match on new combinations of new grammars, most minus fewest."
        yield claim("more-grammars-help", shown["new"].rise("number").greater(0.2), text, needs="fits")
        text = "With study examples of another grammar, new combinations are not answered (exact match)."
        yield control("other-examples-fail", other["new"].at(number=many).below(0.2), text, needs="fits")

    def figures(self, main: Arm, short: Arm, one: Arm, one_rich: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        frames = {
            "metalearned": with_kinds(main, "shown").query("number == @self.numbers[-1]"),
            "metalearned on short queries": with_kinds(short, "shown"),
            "one grammar, study commands": with_kinds(one),
            "one grammar, all short commands": with_kinds(one_rich),
            "control: another grammar shown": with_kinds(main, "other").query("number == @self.numbers[-1]"),
        }
        yield dots(
            pd.concat([frame.assign(route=name) for name, frame in frames.items()]),
            category="route",
            measures=KINDS,
            labels={name: name for name in frames},
            title="Which commands of a new grammar are understood?",
            caption="Commands of grammars that were kept for the test, or untrained commands of the only grammar.",
            x_title="exact match",
            floor=0.0,
            ceiling=1.0,
        )
        frame = with_kinds(main, "shown").melt(["replicate", "number"], list(KINDS), "kind", "accuracy")
        yield lines(
            frame.replace({"kind": KINDS}),
            x="number",
            x_title="training grammars",
            log=True,
            y="accuracy",
            series="kind",
            labels=list(KINDS.values()),
            name="by_grammars",
            title="How many grammars does a network need to learn to learn?",
            caption="Commands of new grammars, with study examples in the prompt, by the number of training grammars.",
            y_title="exact match, new grammars",
            floor=0.0,
            ceiling=1.0,
        )
