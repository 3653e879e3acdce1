"""Mixtures of experts: scores on unseen composites with weights by prompt, by a classifier and by search, and interference."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.chained.string_tasks import StringTasks
from recombine.language.vocabulary import BEGIN
from recombine.models.base import Network, unedited
from recombine.models.expert import ExpertNetwork
from recombine.models.sequence import as_tokens
from recombine.objectives import NextToken
from recombine.probes.base import Measured, Measurement
from recombine.probes.routes.expert_scores import Row, accuracy, is_refused, named, single, unseen_composites
from recombine.probes.routes.search import search_weights
from recombine.probes.tasks import over_tasks
from recombine.training import Setting
from recombine.training.compiling import compiled
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

WAYS = ("prompt", "classifier", "search", "mean", "sum")
"""How the weights of a mixture are found. The last two are the same for every task."""


@dataclasses.dataclass(frozen=True)
class Examples:
    """One example of a combination: prompt, shown answer and right answer."""

    def __call__(self, network: None, teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        _, code, batch = draw_examples(teacher, encoder, row, key, 1)
        return {"code": code, "input": batch.inputs, "target": batch.targets}


class Mixing(Measurement):
    """Scores of a mixture of experts, one expert a task.

    On pairs of tasks that the base never saw (exact match, mean over pairs): `composite_base`, without experts;
    `composite_best`, the best single expert of each pair, chosen by these very answers; `composite_one`, a single expert or none, chosen
    by the few examples that the search has; and mixtures whose weights come from the tasks that the prompt names
    (`composite_prompt`, equal weights), from a classifier (`composite_classifier`), from the cross-entropy method on a few
    examples (`composite_search`), or are 1 / experts (`composite_mean`) or 1 each (`composite_sum`). The classifier is a
    logistic regression that tells tasks by the state of the base before the answer. It is fitted on single tasks, and its
    probabilities are averaged over the examples of a pair.

    On single tasks (mean over tasks): `single_base`, `single_alone` (the task's own expert), `single_mean` and `single_sum`. What
    a mixture is below `single_alone` is interference.
    """

    kind: Literal["mixing"] = "mixing"
    draws: PositiveInt = 256
    """Strings of each single task; the same as in `expert-scores`."""
    composite_draws: PositiveInt = 64
    """Strings of each composite."""
    few: PositiveInt = 16
    """Examples of a composite for the search, and prompts of each task for the classifier."""
    population: PositiveInt = 16
    """Candidates in each round of the search."""
    rounds: PositiveInt = 8
    """Rounds of the search."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *(f"composite_{way}" for way in ("base", "best", "one", *WAYS)),
        *(f"single_{way}" for way in ("base", "alone", "mean", "sum")),
        "classifier_accuracy",
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        if refused := is_refused(config):
            return Measured({}, {}, refused=refused)
        if not isinstance(network, ExpertNetwork) or len(network.experts) < 2:
            return Measured({}, {}, refused="The network is no mixture of experts.")
        tasks = expert_tasks(setting)
        size, codes = len(tasks), np.eye(len(tasks))
        fixed = {"base": np.zeros(size), "mean": np.full(size, 1 / size), "sum": np.ones(size)}

        def score(row: Row, weights: Float[np.ndarray, " expert"], draws: int) -> float:
            return accuracy(setting, network.weighted(jnp.asarray(weights, jnp.float32)).merged(), row, draws)

        records: list[dict[str, Any]] = []

        def record(row: Row, way: str, weights: Float[np.ndarray, " expert"], found: float) -> None:
            name = " then ".join(named(config, row))
            told = dict(zip(tasks, weights.tolist(), strict=True))
            records.append(
                {"combination": name, "way": way, "accuracy": found, "weights": [told[task] for task in tasks]}
            )

        for number, task in enumerate(tasks):
            row = single(config, task)
            for way, weights in {**fixed, "alone": codes[number]}.items():
                record(row, f"single_{way}", weights, score(row, weights, self.draws))
        classifier, told_right = self._classifier(setting, network, tasks)
        for row in unseen_composites(config):
            few = self._examples(setting, row, "few")
            alone = [score(row, weights, self.composite_draws) for weights in codes]
            best = int(np.argmax(alone))
            record(row, "composite_best", codes[best], alone[best])
            known = np.concatenate([fixed["base"][None], codes])
            chosen = {
                "one": known[np.argmax(likelihoods(network, known, few))],
                "prompt": np.isin(tasks, named(config, row)) / 2,
                "classifier": classifier.predict_proba(states(network, few["code"])).mean(axis=0),
                "search": search_weights(
                    lambda rows, few=few: likelihoods(network, rows, few),
                    size,
                    population=self.population,
                    rounds=self.rounds,
                    seed=config.seeds.data,
                )[0],
            }
            for way, weights in {**fixed, **chosen}.items():
                record(row, f"composite_{way}", weights, score(row, weights, self.composite_draws))
        summary = {
            name: float(np.mean([row["accuracy"] for row in records if row["way"] == name]))
            for name in self.summary_names[:-1]
        }
        return Measured.from_records(summary | {"classifier_accuracy": told_right}, records)

    def _examples(self, setting: Setting, row: Row, purpose: str) -> dict[str, np.ndarray]:
        """A few examples of a combination, which no score uses."""
        rows, region = np.repeat(row[None], self.few, axis=0), f"{purpose} {'+'.join(named(setting.config, row))}"
        return over_tasks(Examples(), setting, None, rows, Stream.PROBE, region, self.few)

    def _classifier(self, setting: Setting, network: ExpertNetwork, tasks: tuple[str, ...]) -> tuple[Any, float]:
        """A classifier of the expert to use, and its accuracy on fresh prompts of single tasks."""
        from sklearn.linear_model import LogisticRegression

        data = {
            purpose: np.concatenate(
                [
                    states(network, self._examples(setting, single(setting.config, task), purpose)["code"])
                    for task in tasks
                ]
            )
            for purpose in ("classify", "check")
        }
        labels = np.repeat(np.arange(len(tasks)), self.few)
        classifier = LogisticRegression(max_iter=1000).fit(data["classify"], labels)
        return classifier, float(classifier.score(data["check"], labels))


def expert_tasks(setting: Setting) -> tuple[str, ...]:
    """The task of each expert of a mixture. Raises BadInput unless each has one task, and all have one base."""
    parents = setting.config.parents
    if len({parent.parents for parent in parents}) != 1:
        raise BadInput("The experts of a mixture have different bases.", fix="give all of them the same parent")
    found = []
    for parent in parents:
        rows = Setting(parent).regions.require("trained", 2)
        if len(rows) != 1 or len(names := named(parent, rows[0])) != 1:
            raise BadInput(
                "An expert of the mixture was not trained on one single task.", fix="one combination, with `nothing`"
            )
        found.append(names[0])
    assert isinstance(setting.config.family, StringTasks)
    return tuple(found)


def likelihoods(
    network: ExpertNetwork, weights: Float[np.ndarray, "candidate expert"], few: dict[str, np.ndarray]
) -> Float[np.ndarray, " candidate"]:
    """The mean log-likelihood per token of the right answers, by weights. Smoother than exact match on so few examples."""
    given = (jnp.asarray(few[name]) for name in ("code", "input", "target"))
    return np.asarray(_likelihoods(network, jnp.asarray(weights, jnp.float32), *given), float)


@compiled
def _likelihoods(network: Any, weights: Any, codes: Any, inputs: Any, targets: Any) -> Any:
    from recombine.families.base import Batch

    batch = jax.vmap(Batch)(inputs, targets, jnp.ones(inputs.shape[:2]))
    objective = NextToken()
    return jax.vmap(lambda own: -objective.loss(network.weighted(own).tasks(codes, inputs), batch))(weights)


def states(network: ExpertNetwork, codes: np.ndarray) -> np.ndarray:
    """The last state of the base before the first token of the answer, by prompt."""
    return np.asarray(_states(network.base(), jnp.asarray(codes)))


@compiled
def _states(base: Any, codes: Any) -> Any:
    shown = jnp.full((len(codes), 1), BEGIN)
    steps = jnp.arange(codes.shape[1] + base.longest_answer)[None]
    return base.hidden_states(as_tokens(codes), shown, steps, unedited)[0][:, 0]
