"""Is one scale per singular value enough for an expert, and do experts mix?"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.design import Arm, Claims, Column, Figures, Study, claim, control, precondition
from recombine.errors import BadInput
from recombine.families.chained.string_tasks import NOTHING, StringTasks, composites
from recombine.models import Expert
from recombine.objectives import NextToken, PolicyGradient
from recombine.probes import ExpertScores, Mixing
from recombine.recipes import Paper, Recipe
from recombine.studies.shapes import ascending, sequence_run
from recombine.supports import Given
from recombine.training.config import RunConfig, Seeds

SCALES, TOKENS, REWARD = "scales", "next token", "reward"
WAYS = {
    "composite_base": "base",
    "composite_best": "best single expert, in hindsight",
    "composite_one": "single expert, by few examples",
    "composite_prompt": "mix, by the prompt",
    "composite_classifier": "mix, by a classifier",
    "composite_search": "mix, by search on few examples",
    "composite_mean": "mean of all experts",
    "composite_sum": "sum of all experts",
}


def base_run(
    tasks: tuple[str, ...],
    *,
    steps: int,
    batch: int,
    shown: tuple[int, ...],
    rare: float,
    family: dict[str, Any],
    **settings: Any,
) -> dict[str, Any]:
    """The settings of the base: trained on all single tasks, and on some pairs of them.

    Args:
        tasks: The tasks.
        steps: Steps of training.
        batch: Strings in a step.
        shown: Which pairs are trained: those whose second task is so many places after the first.
        rare: How often a single task is trained, relative to a pair.
        family: Settings of the family.
        **settings: Other parts of the run.
    """
    alone, pairs = [(task, NOTHING) for task in tasks], list(composites(tasks, shown))
    weights = [rare] * len(alone) + [1.0] * len(pairs)
    return sequence_run(
        {"kind": "string-tasks", "tasks": tasks, **family},
        tasks=batch,
        steps=steps,
        eval_every=steps,
        validation_tasks=16,
        support={"kind": "given", "combinations": alone + pairs, "weights": weights},
        **settings,
    )


EVERY = ("reverse", "shift", "sort", "swap", "rotate", "repeat")


class ExpertVectors(Study):
    """Is one scale per singular value enough for an expert, and do experts mix?

    A small decoder is trained on string tasks to partial competence. From it, one expert a task is trained: one scale per singular
    value of each matrix (Transformer-squared, Sun, Cetin and Tang 2025), or LoRA of several ranks. The published comparison trains
    the first by a reward and the second by next tokens, so the two are confounded; here both are trained both ways, so that the objective is taken apart. Mixtures of
    experts answer pairs of tasks that the base never saw. Experts are added to each other, and merged one after the other.
    """

    kind: Literal["expert-vectors"] = "expert-vectors"
    profiles: ClassVar[dict[str, dict[str, Any]]] = {
        "smoke": {
            "base": base_run(
                EVERY[:3],
                steps=10,
                batch=16,
                shown=(1,),
                rare=1.0,
                family={"length": 4, "alphabet": 4},
                model={"kind": "decoder", "width": 16, "layers": 1, "heads": 2},
            ),
            "ranks": (4,),
            "steps": 5,
            "steps_reward": 5,
            "batch": 8,
            "draws": 16,
            "composite_draws": 8,
            "few": 8,
            "replicates": 2,
        },
        "demo": {"replicates": 4},
        "laptop": {"first_seed": 8000},
        "workstation": {"first_seed": 8100, "replicates": 24, "ranks": (1, 4, 16)},
        "paper": {
            "base": base_run(
                EVERY,
                steps=2000,
                batch=256,
                shown=(1, 2, 3),
                rare=0.1,
                family={"length": 8, "alphabet": 12},
                model={"kind": "decoder", "width": 128, "layers": 4, "heads": 4},
            ),
            "ranks": (1, 4, 16),
            "steps": 2000,
            "steps_reward": 5000,
            "batch": 128,
            "replicates": 12,
        },
    }
    shown = "own", "own_base", "parameters", "composites"

    base: RunConfig = RunConfig.model_validate(
        base_run(
            EVERY,
            steps=300,
            batch=64,
            shown=(1, 2, 3, 4),
            rare=0.1,
            family={},
            model={"kind": "decoder", "width": 64, "layers": 2, "heads": 4},
        )
    )
    """The base. Its steps end before it has learned its tasks."""
    ranks: tuple[PositiveInt, ...] = (1, 16)
    """Ranks of LoRA, lowest first."""
    steps: PositiveInt = 150
    """Steps in which an expert is trained by next tokens."""
    steps_reward: PositiveInt = 150
    """Steps in which an expert is trained by a reward."""
    batch: PositiveInt = 16
    """Strings in a step of an expert."""
    answers: int = Field(default=4, ge=2)
    """Sampled answers to each string where an expert is trained by a reward."""
    divergence: float = Field(default=0.05, ge=0)
    """The weight of the KL divergence from the base there."""
    rate_scales: PositiveFloat = 0.02
    """The learning rate of scales, trained by next tokens."""
    rate_scales_reward: PositiveFloat = 0.02
    """The same, trained by a reward."""
    rate_lora: PositiveFloat = 0.002
    """The learning rate of LoRA, trained by next tokens."""
    rate_lora_reward: PositiveFloat = 0.002
    """The same, trained by a reward."""
    draws: PositiveInt = 256
    """Strings of each single task in the test."""
    composite_draws: PositiveInt = 64
    """Strings of each composite in the test."""
    few: PositiveInt = 16
    """Examples of a composite that the search has."""
    replicates: PositiveInt = 8
    """Independent replicates: strings, initialisation and order of the data."""

    def check(self) -> None:
        ascending(self, "ranks", least=1)
        if not isinstance(self.base.family, StringTasks):
            raise BadInput(
                f"The base must be trained on string tasks, not on {self.base.family.kind!r}.",
                fix="base.family=string-tasks",
            )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The single tasks, in the order in which experts are merged."""
        assert isinstance(self.base.family, StringTasks)
        return self.base.family.tasks

    @property
    def models(self) -> dict[str, Expert]:
        """The kinds of experts by name."""
        model = Expert(model=self.base.model)
        lora = {self.lora(rank): model.replace(adapter="low-rank", rank=rank) for rank in self.ranks}
        return {SCALES: model, **lora}

    @staticmethod
    def lora(rank: int) -> str:
        """The name of LoRA experts of a rank."""
        return f"LoRA {rank}"

    @property
    def pair(self) -> tuple[str, str]:
        """The kinds of experts that most claims compare: scales, and LoRA of the highest rank."""
        return SCALES, self.lora(self.ranks[-1])

    def _recipe(self, model: str, objective: str) -> Recipe:
        scales, tokens = model == SCALES, objective == TOKENS
        rates = (self.rate_scales, self.rate_scales_reward) if scales else (self.rate_lora, self.rate_lora_reward)
        return Paper(
            learning_rate=rates[0 if tokens else 1],
            steps=self.steps if tokens else self.steps_reward,
            tasks=self.batch,
            samples=1,
            weight_decay=0.0,
            falling=True,
        )

    def _objective(self, objective: str) -> NextToken:
        return NextToken() if objective == TOKENS else PolicyGradient(draws=self.answers, divergence=self.divergence)

    def expert(self, task: str, model: str, objective: str, seed: int, parent: RunConfig | None = None) -> RunConfig:
        """The run of one expert, from the base or from another expert."""
        config = self.base.replace(
            model=self.models[model],
            objective=self._objective(objective),
            recipe=self._recipe(model, objective),
            support=Given(combinations=((task, NOTHING),)),
            seeds=Seeds.replicate(seed),
        )
        steps = config.recipe.steps
        return config.replace(eval_every=steps, parents=(parent or self._base(seed),))

    def _base(self, seed: int) -> RunConfig:
        return self.base.replace(seeds=Seeds.replicate(seed))

    def arms(self) -> dict[str, Arm]:
        # Many runs start from the same ones, and making a configuration takes time.
        expert = functools.cache(self.expert)

        def of(name: str) -> Any:
            return lambda cell: getattr(expert(cell.task, cell.model, cell.objective, cell.seed), name)

        def experts(cell: Any) -> tuple[RunConfig, ...]:
            return tuple(expert(task, cell.model, cell.trained, cell.seed) for task in self.tasks)

        @functools.cache
        def merged(number: int, model: str, seed: int) -> RunConfig:
            """The expert on this many tasks, trained one after the other."""
            task = self.tasks[number - 1]
            if number == 1:
                return expert(task, model, TOKENS, seed)
            return self.expert(task, model, TOKENS, seed, merged(number - 1, model, seed))

        def last(name: str) -> Any:
            return lambda cell: getattr(merged(len(self.tasks), cell.model, cell.seed), name)

        pair = {name: self.models[name] for name in self.pair}
        return {
            "base": Arm(self.base),
            "experts": Arm(
                self.base,
                task=self.tasks,
                model=self.models,
                objective={name: self._objective(name) for name in (TOKENS, REWARD)},
                **{name: of(name) for name in ("recipe", "support", "eval_every", "parents")},
            ),
            "mixtures": Arm(
                self.base,
                model={name: model.replace(experts=len(self.tasks)) for name, model in pair.items()},
                trained=(TOKENS, REWARD),
                steps=0,
                parents=experts,
            ),
            "merged": Arm(
                self.base, model=pair, **{name: last(name) for name in ("recipe", "support", "eval_every", "parents")}
            ),
        }

    def measurements(self) -> list[Any]:
        sizes: dict[str, Any] = {"draws": self.draws, "composite_draws": self.composite_draws}
        return [ExpertScores(**sizes), Mixing(**sizes, few=self.few)]

    def claims(self, base: Arm, experts: Arm, mixtures: Arm, merged: Arm) -> Claims:
        scales, lora = self.pair

        def own(model: str, objective: str, column: str = "own") -> Column:
            """The score of experts on their own task, mean over tasks."""
            return experts[column].at(model=model, objective=objective).mean()

        def mixture(column: str, model: str, trained: str | None = None) -> Column:
            cells = mixtures[column].at(model=model)
            return cells.mean() if trained is None else cells.at(trained=trained)

        singles = sum((base[f"right_{task}"] for task in self.tasks[1:]), base[f"right_{self.tasks[0]}"]) / len(
            self.tasks
        )
        text = "The base answers some strings of its tasks: experts can be told by a reward (exact match, mean over tasks)."
        yield precondition("base-knows-something", singles.above(0.1), text)
        text = "The base leaves something to learn (exact match, mean over tasks)."
        yield precondition("base-is-partial", singles.below(0.9), text)
        partial = ("base-knows-something", "base-is-partial")
        text = "The base answers some pairs of tasks that it never saw: at zero no mixture could be told from another (exact match)."
        yield precondition("composites-are-possible", base["composites"].above(0.05), text)

        for model, name in ((scales, "scales"), (lora, "lora")):
            for objective, by in ((REWARD, "reward"), (TOKENS, "tokens")):
                text = f"An expert is better than the base on its task ({model}, trained by {objective}; exact match, expert minus base, mean over tasks)."
                gain = own(model, objective) - own(model, objective, "own_base")
                main = (model, objective) == (scales, REWARD)
                yield claim(f"expert-over-base-{name}-{by}", gain.greater(0.05), text, primary=main, needs=partial)
        parameters = experts["parameters"].at(task=self.tasks[0], objective=TOKENS)
        ratio = parameters.at(model=lora) / parameters.at(model=scales)
        text = f"One scale per singular value has at most a fifth of the parameters of {lora} (ratio)."
        yield precondition("fewer-parameters", ratio.above(5), text)
        for objective, by in ((REWARD, "reward"), (TOKENS, "tokens")):
            behind = own(lora, objective) - own(scales, objective)
            text = f"At equal objective, scales lose little against {lora}, which has more parameters (trained by {objective}; exact match, LoRA minus scales)."
            yield claim(
                f"fewer-parameters-same-score-{by}", behind.below(0.05), text, needs=(*partial, "fewer-parameters")
            )
        text = f"The published comparison: scales trained by a reward are better than {lora} trained by next tokens (exact match, difference)."
        yield claim(
            "published-comparison", (own(scales, REWARD) - own(lora, TOKENS)).greater(0.02), text, needs=partial
        )
        by_objective = [own(model, REWARD) - own(model, TOKENS) for model in self.pair]
        text = "What the objective adds: reward minus next token, with the same kind of expert (exact match, mean over both kinds)."
        yield claim("objective-part", ((by_objective[0] + by_objective[1]) / 2).greater(0.02), text, needs=partial)
        by_model = [own(scales, objective) - own(lora, objective) for objective in (REWARD, TOKENS)]
        text = f"What the kind of expert adds: scales minus {lora}, with the same objective (exact match, mean over both objectives)."
        yield claim("adapter-part", ((by_model[0] + by_model[1]) / 2).greater(0.02), text, needs=partial)

        best = mixture("composite_best", scales, REWARD)
        possible = (*partial, "composites-are-possible")
        for way in ("search", "prompt", "classifier"):
            short = best - mixture(f"composite_{way}", scales, REWARD)
            words = WAYS[f"composite_{way}"].removeprefix("mix, ")
            text = (
                f"On pairs of tasks that the base never saw, a mixture with weights {words} is at least as good as the best single expert "
                "chosen in hindsight (exact match, best expert minus mixture)."
            )
            yield claim(f"mix-by-{way}", short.below(0.05), text, primary=way == "search", needs=possible)
        text = "The mixture that the search finds is better than the base on these pairs (exact match, mixture minus base)."
        gain = mixture("composite_search", scales, REWARD) - mixture("composite_base", scales, REWARD)
        yield claim("mix-over-base", gain.greater(0.02), text, needs=possible)
        text = "A classifier on the state of the base tells single tasks apart (accuracy)."
        yield precondition(
            "classifier-works", mixture("classifier_accuracy", scales, REWARD).above(0.9), text, needs=()
        )

        def interference(model: str, way: str) -> Column:
            """What experts lose on their own task where all are in the network (mean over objectives and tasks)."""
            return mixture("single_alone", model) - mixture(f"single_{way}", model)

        text = f"The published contrast: the mean of all scale experts interferes less than the sum of all {lora} experts (loss on the own task, LoRA minus scales)."
        contrast = interference(lora, "sum") - interference(scales, "mean")
        yield claim("mixes-interfere-less", contrast.greater(0.05), text, needs=partial)
        for way in ("sum", "mean"):
            text = f"The same with the {way} of both, so that only the kind of expert differs (loss on the own task, LoRA minus scales)."
            like = interference(lora, way) - interference(scales, way)
            yield claim(f"scales-interfere-less-{way}", like.greater(0.05), text, needs=partial)

        earlier = self.tasks[:-1]

        def forgetting(model: str) -> Column:
            """What is lost on earlier tasks after experts on later ones were merged (mean over earlier tasks)."""
            lost = [
                experts["own"].at(model=model, objective=TOKENS, task=task) - merged[f"right_{task}"].at(model=model)
                for task in earlier
            ]
            return sum(lost[1:], lost[0]) / len(lost)

        text = "Experts that are kept apart stay what they were: an expert alone in the mixture scores as in its own run (exact match, difference)."
        kept = (
            mixture("single_alone", scales, TOKENS)
            + mixture("single_alone", lora, TOKENS)
            - own(scales, TOKENS)
            - own(lora, TOKENS)
        ) / 2
        yield control("kept-apart", kept.equivalent(0.01), text)
        text = f"{lora} that is merged before the next task is trained forgets: earlier tasks lose (exact match, right after training minus at the end)."
        yield claim("merged-lora-forgets", forgetting(lora).greater(0.05), text, needs=(*partial, "kept-apart"))
        text = f"Scales that are merged in the same way forget less (loss on earlier tasks, {lora} minus scales)."
        less = forgetting(lora) - forgetting(scales)
        yield claim("merged-scales-forget-less", less.greater(0.05), text, needs=partial)

    def figures(self, base: Arm, experts: Arm, mixtures: Arm, merged: Arm) -> Figures:
        from recombine.figures.study import dots, lines

        limits: dict[str, Any] = {"floor": 0.0, "ceiling": 1.0, "x_title": "exact match"}
        frame = experts.frame.groupby(["replicate", "model", "objective"], sort=False, as_index=False)[
            ["own", "own_base", "parameters"]
        ].mean()
        wide = frame.pivot_table(index=["replicate", "model"], columns="objective", values="own").reset_index()
        start = frame.groupby(["replicate", "model"], as_index=False)["own_base"].mean()
        yield dots(
            wide.merge(start, on=["replicate", "model"]),
            category="model",
            measures={"own_base": "base", TOKENS: "trained by next token", REWARD: "trained by reward"},
            labels=list(self.models),
            name="experts",
            title="Which part of the lead is the objective's?",
            caption="Experts on their own task, mean over tasks: one scale per singular value, and LoRA of several ranks.",
            **limits,
        )
        yield lines(
            frame,
            x="parameters",
            y="own",
            series="objective",
            labels=[TOKENS, REWARD],
            name="by_parameters",
            title="How many trained parameters does an expert need?",
            caption="Experts on their own task by their number of trained parameters. The fewest are scales of singular values; the others LoRA.",
            x_title="trained parameters",
            y_title="exact match",
            log=True,
            floor=0.0,
            ceiling=1.0,
        )
        mixed = mixtures.frame
        ways = mixed.melt(["replicate", "model", "trained"], list(WAYS), "way", "score")
        ways = ways[ways["trained"] == REWARD].replace({"way": WAYS})
        yield dots(
            ways.pivot_table(index=["replicate", "way"], columns="model", values="score").reset_index(),
            category="way",
            measures=dict(zip(self.pair, self.pair, strict=True)),
            labels=list(WAYS.values()),
            name="composites",
            title="Do experts mix on pairs of tasks that were never seen?",
            caption="Pairs that the base was not trained on, with experts that were trained by a reward.",
            **limits,
        )
        together = {"single_alone": "own expert alone", "single_mean": "mean of all", "single_sum": "sum of all"}
        yield dots(
            mixed.assign(kind=mixed["model"].astype(str) + ", " + mixed["trained"].astype(str)),
            category="kind",
            measures={"single_base": "base", **together},
            name="interference",
            title="How much do experts interfere?",
            caption="Single tasks with the task's own expert, and with the experts of all tasks in the network at once.",
            **limits,
        )
        yield dots(
            self._merging(experts.frame, merged.frame),
            category="model",
            measures={"before": "right after its training", "after": "after later experts were merged"},
            labels=list(self.pair),
            name="continual",
            title="Does a new expert harm earlier ones?",
            caption="Tasks before the last. Merged experts are trained one on the other. Kept apart, they stay what they were.",
            **limits,
        )

    def _merging(self, experts: pd.DataFrame, merged: pd.DataFrame) -> pd.DataFrame:
        """The score on earlier tasks right after their expert was trained and at the end, by kind and replicate."""
        earlier = list(self.tasks[:-1])
        first = experts[(experts["objective"] == TOKENS) & experts["task"].isin(earlier)]
        before = first.assign(before=first["own"]).groupby(["replicate", "model"], as_index=False)[["before"]].mean()
        after = merged.assign(
            after=merged.reindex(columns=[f"right_{task}" for task in earlier]).astype(float).mean(axis=1)
        )
        return before.merge(after[["replicate", "model", "after"]], on=["replicate", "model"])
