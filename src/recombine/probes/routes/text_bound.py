"""The bound of a model of texts in bits per token, with what it consists of, and the exact values that it can be compared with."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from pydantic import Field, PositiveInt

from recombine.families.sequences.topics import TopicsTeacher
from recombine.models.base import Network
from recombine.models.latent_decoder import LatentDecoder
from recombine.models.sequence import as_tokens
from recombine.objectives.latent_posterior import LatentPosterior, Posterior, as_latent_decoder, mean_log_likelihood
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.training import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

CALL = 64
"""Texts in one compiled call. Each is passed through the network as often as there are fast steps and draws."""


@dataclasses.dataclass(frozen=True)
class BoundOfText:
    """The bound of one text, in nats per token. A row holds its combination, and that of a text whose latents are tried on it."""

    objective: LatentPosterior
    reach: int
    draws: int
    longer: int = 0
    """The number of fast steps in a longer fit. 0: the bound alone."""

    def __call__(self, network: Network, teacher: TopicsTeacher, encoder: Any, rows: Array, key: Array) -> Any:
        decoder, objective = as_latent_decoder(network), self.objective
        by_text, by_other, by_fit, by_draw = jax.random.split(key, 4)
        task, _, batch = draw_examples(teacher, encoder, rows[:2], by_text, 1)
        other = draw_examples(teacher, encoder, rows[2:], by_other, 1)[2]
        inputs, text = as_tokens(batch.inputs), as_tokens(batch.targets)
        size, topic, style = text.shape[1], task.combination[0], task.combination[1] - len(teacher.topics)
        by_topic, by_style = teacher.log_likelihoods(text[0])
        found = {
            "exact_told": -jnp.mean(by_topic[:, topic] + by_style[:, style]),
            "exact": -jnp.mean(teacher.exact(text[0])),
            "exact_reach": -jnp.mean(teacher.exact(text[0], self.reach)),
        }
        stem = decoder.stem(inputs)

        def expected(posterior: Posterior) -> Array:
            def of(latents: Array) -> Array:
                return jnp.mean(decoder.log_likelihoods(stem, latents, text), axis=1)

            return -mean_log_likelihood(of, posterior, by_draw, self.draws)[0]

        def bound(posterior: Posterior) -> Array:
            return expected(posterior) + posterior.divergence()[0] / size

        if not decoder.latents:
            alone = -jnp.mean(decoder.log_likelihoods(stem, jnp.zeros((1, *decoder.latent_shape)), text))
            return found | {"bits": alone}
        own = objective.fit(decoder, inputs, text, by_fit)
        found |= {"bits": bound(own), "divergence": own.divergence()[0] / size}
        if not self.longer:
            return found
        fitted = objective.fit(decoder, as_tokens(other.inputs), as_tokens(other.targets), by_fit)
        longer = objective.fit(decoder, inputs, text, by_fit, self.longer)
        # The trap: one draw of noise for all steps of the fit, and the same draw for the bound.
        fixed = objective.replace(fixed_noise=True)
        trapped = fixed.fit(decoder, inputs, text, by_fit, self.longer)
        noise = fixed.noises(by_fit, 1, trapped.mean.shape)[0]
        reused = -jnp.mean(decoder.log_likelihoods(stem, trapped.at(noise), text)) + trapped.divergence()[0] / size
        return found | {
            "bits_shuffled": expected(fitted) + own.divergence()[0] / size,
            "bits_longer": bound(longer),
            "bits_same_noise": reused,
            "bits_fresh_noise": bound(trapped),
        }


NAMES = ("bits", "divergence", "bits_shuffled", "bits_longer", "bits_same_noise", "bits_fresh_noise")
EXACT = ("exact_told", "exact", "exact_reach")


class TextBound(Measurement):
    """Bits per token of fresh texts, for the family `topics` (test side of held-out combinations; `_in`: trained ones).

    `bits` is the negative evidence lower bound with fresh noise, and the exact negative log-likelihood without latents. `excess` is
    `bits` minus `exact`, the bits of the best model that sees all tokens so far. `exact_reach` is the best model that sees as many
    tokens as the network does without latents, `exact_told` the one that knows topic and style. `divergence` is the part of the bound that
    is the Kullback-Leibler divergence; `bits_shuffled` has the latents of a text of another combination, at the same divergence.
    `bits_longer` has `times` as many fast steps as training.

    `bits_same_noise` is the trap: one draw of noise is used in all steps of a longer fit and in the bound itself.
    `bits_fresh_noise` is the same posterior with fresh noise.
    """

    kind: Literal["text-bound"] = "text-bound"
    summary_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}{region}" for name in (*NAMES, *EXACT, "excess", "gain_reach") for region in ("", "_in")
    )
    texts: PositiveInt = 64
    """Texts of each region."""
    times: PositiveInt = 2
    """How many times the fast steps of training a longer fit takes."""
    draws: int = Field(default=16, ge=8)
    """Draws of fresh noise of each text."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        config = setting.config
        objective, model = config.objective, config.model
        if not isinstance(objective, LatentPosterior) or not isinstance(model, LatentDecoder):
            return Measured({}, {}, refused=f"The objective {config.objective.kind!r} has no bound.")
        alone = BoundOfText(objective, model.reach, self.draws)
        computes = {"_in": alone, "": dataclasses.replace(alone, longer=self.times * objective.fast_steps)}
        summary: dict[str, float] = {}
        columns: dict[str, list[Any]] = {}
        for region, side, suffix in (("trained", None, "_in"), ("held_out", "test", "")):
            rows = setting.regions.require(region, self.texts, side)  # type: ignore[arg-type]
            rows = np.resize(rows, (self.texts, rows.shape[1]))
            pairs = np.concatenate([rows, others(rows)], axis=1)
            found = over_tasks(computes[suffix], setting, network, pairs, Stream.TEST, f"bound {region}", CALL)
            bits = {name: values.astype(float) / math.log(2) for name, values in found.items()}
            means = {name: float(values.mean()) for name, values in bits.items()}
            means |= {"excess": means["bits"] - means["exact"], "gain_reach": means["exact_reach"] - means["bits"]}
            summary |= {f"{name}{suffix}": value for name, value in means.items()}
            table = {"region": [region] * len(rows), "combination": [config.space.name(row) for row in rows]}
            table |= {name: bits[name].tolist() for name in ("bits", *EXACT)}
            columns = {name: columns.get(name, []) + more for name, more in table.items()}
        return Measured(summary, columns)


def others(rows: np.ndarray) -> np.ndarray:
    """For each combination another of the same list that differs from it in both factors, where there is one."""
    chosen = []
    for number, row in enumerate(rows):
        turned = np.roll(rows, -number - 1, axis=0)
        differs = np.all(turned != row, axis=1)
        chosen.append(turned[np.argmax(differs)])
    return np.array(chosen)
