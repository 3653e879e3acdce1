"""Networks that answer optimisation problems satisfy some constraints and not others: is their plateau the easy ones?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import pandas as pd
from pydantic import Field, NonNegativeFloat, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.families import Problem as ProblemFamily
from recombine.models import Decoder, EncoderDecoder
from recombine.objectives import ConstraintReward, NextToken
from recombine.probes import ConstraintRates
from recombine.problems.knapsack import Knapsack
from recombine.problems.power_flow import PowerFlow
from recombine.studies.shapes import ascending, if_run, left_out, sequence_run
from recombine.training.config import RunConfig

Method = Literal["answer only", "with steps", "with reward"]
DECODER, ENCODER = "decoder", "encoder-decoder"
ARMS = {
    "nine": ("9 buses", "answer only"),
    "nine_steps": ("9 buses", "with steps"),
    "nine_reward": ("9 buses", "with reward"),
    "fourteen": ("14 buses", "answer only"),
    "knapsack": ("knapsack", "answer only"),
    "knapsack_steps": ("knapsack", "with steps"),
    "knapsack_reward": ("knapsack", "with reward"),
}
"""The problem of each arm, and what training shows (numbers, or also intermediate ones) and rewards (constraints that hold)."""
NETWORKS = {
    "9": ("nine", "9 buses, decoder, largest size"),
    "9-encoder-decoder": ("nine", "9 buses, encoder-decoder, largest size"),
    "9-usual": ("nine", "9 buses, decoder, middle size"),
    "9-steps": ("nine_steps", "9 buses, with steps"),
    "9-reward": ("nine_reward", "9 buses, with reward"),
    "14": ("fourteen", "14 buses, decoder, middle size"),
    "knapsack": ("knapsack", "knapsack, decoder, middle size"),
    "knapsack-reward": ("knapsack_reward", "knapsack, with reward"),
}
"""The networks that claims are about: their arm, and in words."""
NINE, FOURTEEN, SACK = (("well-formed-" + name, "fits-" + name) for name in ("9", "14", "knapsack"))
BOTH = (*NINE, "fits-9-encoder-decoder")
SAME = "The same in the network of 14 buses."
FORMED = "over answers that are numbers throughout"


def instances_run(number: int, held_out: float, learning_rate: float = 0.025, **sizes: int) -> dict[str, Any]:
    """The settings of a run: the number of instances, the share of them that is held out, and the sizes of training."""
    support = {"kind": "random", "held_out": held_out, "require_connected": False}
    run = sequence_run("problem", space={"kind": "instances", "number": number}, support=support, **sizes)
    return run | {"recipe": run["recipe"] | {"learning_rate": learning_rate}}


class Constraints(Study):
    """Networks that answer optimisation problems satisfy some constraints and not others: is their plateau the easy ones?

    Sequence models write, in digits, the optimal power flow of small networks and a knapsack's best load. Sizes and architectures
    vary on 9 buses; steps, a reward for constraints that hold, and other problems have one size. The mean answer is the baseline.
    """

    kind: Literal["constraints"] = "constraints"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": instances_run(48, 0.5, tasks=4, steps=4, eval_every=4, validation_tasks=4),
            "widths": (8, 16),
            **{"models": ("decoder",), "problems": ("9 buses", "knapsack"), "methods": ("answer only",)},
            **{"heads": 2, "layers": 1, "draws": 2, "rewarded": 2, "instances": 16, "replicates": 2},
        },
        "demo": {"replicates": 4},
        "laptop": {},
        "workstation": {
            "base": instances_run(8000, 0.25, tasks=32, steps=4000, eval_every=200, validation_tasks=64),
            "widths": (32, 128),
            **{"models": ("decoder",), "problems": ("9 buses",), "methods": ("answer only",)},
            **{"instances": 512, "replicates": 6, "first_seed": 4500},
        },
        "paper": {
            "base": instances_run(12_000, 0.1, tasks=256, steps=20_000, eval_every=1000, validation_tasks=64),
            "widths": (64, 128, 256),
            **{"layers": 4, "rewarded": 32, "instances": 1024, "replicates": 12},
        },
    }
    shown = (
        *("total_network", "bounds_network", "hard_network", "every_network", "gap_network", "error_in"),
        *("error_mean_in", "error_network", "malformed_network", "total_network_formed", "total_mean_formed"),
        *("total_mean", "hard_mean", "error_mean", "total_nearest", "hard_nearest", "total_network_repaired"),
        *("every_network_repaired", "total_mean_repaired"),
    )

    base: RunConfig = RunConfig.model_validate(
        instances_run(1024, 0.25, learning_rate=0.05, tasks=32, steps=400, eval_every=200, validation_tasks=16)
    )
    """What all runs share; the arms set problem, network and objective."""
    widths: tuple[PositiveInt, ...] = (16, 32, 48)
    """Widths of the residual stream, narrowest first. Arms with one size have the middle one."""
    models: tuple[Literal["decoder", "encoder-decoder"], ...] = ("decoder", "encoder-decoder")
    """The architectures on 9 buses. Claims about what is left out here, in `problems` or in `methods` are not asked."""
    problems: tuple[Literal["9 buses", "14 buses", "knapsack"], ...] = ("9 buses", "14 buses", "knapsack")
    methods: tuple[Method, ...] = get_args(Method)
    """What training shows and rewards."""
    layers: PositiveInt = 2
    heads: PositiveInt = 4
    items: int = 5
    """Items of the knapsack, of which there are two each; six fit in."""
    weight: NonNegativeFloat = 0.8
    """The weight of the reward, beside cross-entropy."""
    rewarded: PositiveInt = 8
    """Tasks of a batch for which answers are drawn for the reward."""
    draws: int = Field(default=4, ge=2)
    """Answers that are drawn for each."""
    instances: PositiveInt = 256
    """Instances of each side that are answered after training."""
    replicates: PositiveInt = 8
    """Independent replicates: instances, which of them are held out, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "widths")
        if not isinstance(self.base.family, ProblemFamily):
            raise ValueError(f"base is {self.base.family.kind}: it must be of the family 'problem'")
        self.arms()  # What a component refuses is refused here, and not in the middle of a run.

    @property
    def middle(self) -> int:
        """The width of the arms that have one."""
        return self.widths[len(self.widths) // 2]

    def arms(self) -> dict[str, Arm]:
        size: dict[str, Any] = {"width": self.middle, "layers": self.layers, "heads": self.heads}
        models = {DECODER: Decoder(**size), ENCODER: EncoderDecoder(**size)}
        problems = {
            "9 buses": PowerFlow(case="case9", solver="batched", text="pairs"),
            "14 buses": PowerFlow(case="case14", solver="batched", text="pairs"),
            "knapsack": Knapsack(items=self.items, count=self.items + 1, solver="listing", text="pairs"),
        }
        arms: dict[str, Arm] = {}
        for name, (title, method) in ARMS.items():
            problem, main = problems[title], name == "nine"
            reward = {"problem": problem, "weight": self.weight, "tasks": self.rewarded, "draws": self.draws}
            if title in self.problems and (method in self.methods or name in ("nine", "fourteen")):
                arms[name] = Arm(
                    self.base,
                    family=ProblemFamily(problem=problem, steps=method == "with steps"),
                    model={model: models[model] for model in (self.models if main else (DECODER,))},
                    width=self.widths if main else (self.middle,),
                    objective=ConstraintReward(**reward) if method == "with reward" else NextToken(),
                )
        return arms

    def measurements(self) -> list[Any]:
        return [ConstraintRates(instances=self.instances)]

    def claims(self, **arms: Arm) -> Claims:
        nine = arms.get("nine")

        def of(name: str, column: str) -> Column:
            arm, model = NETWORKS[name][0], ENCODER if name == "9-encoder-decoder" else DECODER
            width = self.widths[-1] if arm == "nine" and name != "9-usual" else self.middle
            return if_run(self, arms.get(arm), column, model=model, width=width)

        def less(column: str, other: str, name: str, second: str = "") -> Column:
            return of(name, column) - of(second or name, other)

        for name in ("9", "14", "knapsack", "9-steps", "9-reward", "knapsack-reward"):
            arm = NETWORKS[name][0]
            formed = 1 - arms[arm]["malformed_network"].highest() if arm in arms else left_out(self)
            text = (
                f"Held-out answers are numbers throughout ({', '.join(ARMS[arm])}; lowest share). A constraint on a number that is none "
                "does not hold: more of that could move rates by .2. Claims that leave less room count only these answers."
            )
            yield precondition(f"well-formed-{name}", formed.above(0.8), text)
        for name, (_, words) in NETWORKS.items():
            text = (
                "The network has learned from the questions it is trained on: its numbers are nearer to the best ones than the mean "
                f"answer is ({words}; error on trained instances as a share of the mean's error on the same)."
            )
            error = of(name, "error_in") / of(name, "error_mean_in")
            yield precondition(f"fits-{name}", error.below(0.8), text)
        text = "Bounds of single numbers hold far more often than the balance at loaded buses (9 buses; lowest over sizes and architectures)."
        over = (if_run(self, nine, "bounds_network") - if_run(self, nine, "hard_network")).lowest()
        needs = BOTH if ENCODER in self.models else NINE
        yield claim("bounds-not-balance", over.greater(0.3), text, primary=True, needs=needs)
        over = {name: less("bounds_network", "hard_network", name).greater(0.3) for name in ("14", "knapsack")}
        yield claim("bounds-not-balance-14", over["14"], SAME, needs=FOURTEEN)
        text = (
            "In the knapsack, bounds hold far more often than the capacities, which differ from question to question."
        )
        yield claim("bounds-not-weight", over["knapsack"], text, needs=SACK)
        text = f"The share of all constraints that hold differs little over sizes (9 buses, decoder; largest minus smallest, {FORMED})."
        for model, needs in ((DECODER, NINE), (ENCODER, BOTH)):
            totals = if_run(self, nine, "total_network_formed", model=model)
            spread = (totals.highest() - totals.lowest()).below(0.1)
            yield claim(f"size-changes-little-{model}", spread, text, needs=needs)
            text = "The same for encoder-decoders."
        text = f"Decoders and encoder-decoders satisfy as many constraints (9 buses, largest size; {FORMED})."
        other = of("9-encoder-decoder", "total_network_formed") - of("9", "total_network_formed")
        yield claim("architecture-changes-little", other.equivalent(0.1), text, needs=BOTH)
        text = "Larger networks write numbers nearer to the best ones (9 buses, decoder; error of the smallest minus the largest, in spreads of answers)."
        smallest = if_run(self, nine, "error_network", model=DECODER, width=self.widths[0])
        yield claim("error-falls", (smallest - of("9", "error_network")).greater(0.05), text, needs=NINE)
        text = f"All the same, power balances at few loaded buses (9 buses, decoder, largest size; {FORMED})."
        yield claim("balance-stays-low", of("9", "hard_network_formed").below(0.3), text, needs=NINE)
        for name, needs in (("9", NINE), ("14", FOURTEEN), ("knapsack", SACK)):
            problem = ARMS[NETWORKS[name][0]][0]
            text = f"A network satisfies as many constraints as the mean training answer, which ignores the question ({problem}; difference, {FORMED})."
            mean = less("total_network_formed", "total_mean_formed", name).equivalent(0.05)
            yield claim(f"plateau-is-the-mean-{name}", mean, text, needs=needs)
        for name, needs in (("9", NINE), ("14", FOURTEEN)):
            text = f"The share of constraints that hold is that of fixed limits on numbers and lines, known before training ({name} buses; difference, {FORMED})."
            box = less("total_network_formed", "share_box", name).equivalent(0.05)
            yield claim(f"plateau-is-the-box-{name}", box, text, needs=needs)
        hard = "hard_network_formed"
        text = f"Intermediate steps do not bring the balance: its rate at loaded buses rises by less than this (9 buses, decoder; {FORMED})."
        needs = (*NINE, "fits-9-usual", "fits-9-steps", "well-formed-9-steps")
        yield claim("steps-do-not-lift", less(hard, hard, "9-steps", "9-usual").below(0.1), text, needs=needs)
        text = f"Nor does a reward for constraints that hold (9 buses, decoder; {FORMED})."
        needs = (*NINE, "fits-9-usual", "fits-9-reward", "well-formed-9-reward", "reward-works-where-it-can")
        yield claim("reward-does-not-lift", less(hard, hard, "9-reward", "9-usual").below(0.1), text, needs=needs)
        text = f"Where taking less is enough, the reward is learned: more capacities are kept with it than without (knapsack; {FORMED})."
        needs = (*SACK, "fits-knapsack-reward", "well-formed-knapsack-reward")
        kept = less(hard, hard, "knapsack-reward", "knapsack").greater(0.05)
        yield control("reward-works-where-it-can", kept, text, needs=needs)
        text = f"A Newton solve that keeps the answer's controls satisfies nearly all constraints (9 buses, largest decoder; {FORMED})."
        repaired = "total_network_repaired_formed"
        yield claim("newton-repairs-9", of("9", repaired).above(0.98), text, needs=NINE)
        yield claim("newton-repairs-14", of("14", repaired).above(0.98), SAME, needs=FOURTEEN)
        text = f"The solve does it, not the network: the repaired mean answer satisfies as many (9 buses; network minus mean, both repaired, {FORMED})."
        same = less(repaired, "total_mean_repaired_formed", "9").equivalent(0.02)
        yield control("newton-needs-no-network", same, text, needs=NINE)

    def figures(self, **arms: Arm) -> Figures:
        from recombine.figures.constraint_rates import SCORE, rates_by_size, rates_by_tolerance, rates_by_type
        from recombine.figures.study import dots, scatter

        def rows(*names: str, width: int | None = None, table: str = "runs") -> pd.DataFrame:
            """The rows of some arms; with a width, only the decoder of that width on 9 buses."""
            frames = [arms[name].tables[table] for name in names if name in arms]
            frame = pd.concat(frames) if frames else pd.DataFrame()
            labels = ["arm", "model", "width", "replicate"]
            frame = frame.reindex(columns=[*dict.fromkeys([*labels, *frame.columns])])
            chosen = (frame["model"] == DECODER) & (frame["width"] == width) | (frame["arm"] != "nine")
            return frame if width is None else frame[chosen]

        yield rates_by_size(
            rows("nine"),
            x="width",
            facet="model",
            title="Does size bring feasibility?",
            caption="Held-out instances of 9 buses at the strictest tolerance (0.01 per unit). Dashed: the mean of training answers.",
            x_title="width of the network",
        )
        yield rates_by_type(
            rows("nine", width=self.widths[-1], table="constraint-rates"),
            title="Which constraints hold?",
            caption="Constraints of 9 buses at the strictest tolerance: the largest decoder, also after a Newton solve, and two answers without it.",
        )
        yield dots(
            rows(*ARMS, width=self.middle),
            category="arm",
            measures={
                "hard_network": "what depends on the question",
                "total_network": "all constraints",
                "total_mean": "all constraints, mean answer",
                "total_network_repaired": "all constraints, after a repair",
            },
            labels={name: ", ".join(words) for name, words in ARMS.items() if name in arms},
            title="Do steps or a reward help?",
            caption="Decoders of the middle size: only the answer, with intermediate steps, and with a reward for constraints that hold.",
            x_title="share of constraints that hold",
            **SCORE,
        )
        problems = {name: ARMS[name][0] for name in ("nine", "fourteen", "knapsack")}
        yield rates_by_tolerance(
            rows(*problems, width=self.widths[-1], table="constraint-rates"),
            facet="arm",
            facet_labels=problems,
            title="How far off are the answers?",
            caption="Balance at loaded buses, or capacities, by the violation allowed: in per unit (0.01 is 1 MW), or as a share of the capacity.",
        )
        frame = rows("nine", "nine_steps", "nine_reward")
        methods = {name: method for name, (_, method) in ARMS.items()}
        group = frame["model"].where(frame["arm"] == "nine", frame["arm"].map(methods))
        yield scatter(
            frame.assign(group=group, size="width " + frame["width"].astype(str)),
            x="error_network",
            y="hard_network",
            group="group",
            point_name="size",
            name="by_error",
            title="Does a smaller error bring balance?",
            caption="Networks on 9 buses: the error of their numbers, in spreads of answers, against the share of loaded buses that balance.",
            x_title="error of the numbers (about 1: as far off as the mean answer)",
            y_title="balance at loaded buses",
        )
