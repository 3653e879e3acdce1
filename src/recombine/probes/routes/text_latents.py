"""What the latents of texts say: topic and style read by a linear probe, and latents that are moved from one text to another."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.families.sequences.topics import TopicsTeacher
from recombine.models.base import Network
from recombine.models.sequence import as_tokens
from recombine.objectives.latent_posterior import LatentPosterior, as_latent_decoder
from recombine.probes.activations import SIDES, fit_probe
from recombine.probes.base import Measured, Measurement
from recombine.probes.decodability import control_targets
from recombine.probes.ridge import STRENGTHS, RidgePath, mean_r2
from recombine.probes.routes.text_bound import CALL
from recombine.probes.tasks import over_tasks
from recombine.training import Setting
from recombine.training.compiling import compiled
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

Moved = dict[str, Float[np.ndarray, "_ layer latent size"]]
"""Latents for each text by where they come from."""


@dataclasses.dataclass(frozen=True)
class LatentsOfText:
    """The mean of the posterior of one text, and the text."""

    objective: LatentPosterior

    def __call__(self, network: Network, teacher: TopicsTeacher, encoder: Any, row: Array, key: Array) -> Any:
        by_text, by_fit = jax.random.split(key)
        task, _, batch = draw_examples(teacher, encoder, row, by_text, 1)
        inputs, text = as_tokens(batch.inputs), as_tokens(batch.targets)
        posterior = self.objective.fit(as_latent_decoder(network), inputs, text, by_fit)
        return {"vector": task.vector, "latents": posterior.mean[0], "inputs": inputs[0], "text": text[0]}


class TextLatents(Measurement):
    """What the posterior means of texts of held-out combinations (test side) say about topic and style.

    A linear probe is fitted on texts of trained combinations: `r2_topic`, `r2_style`, and the share of texts whose topic and style it
    names, `named_topic` and `named_style`. Controls: the untrained network (`_untrained`), and `r2_random`, for targets that are random by
    combination.

    Latents are moved: bits per token of a text (without the divergence) with latents from its own posterior mean (`moved_own`), from
    another text of the same combination (`moved_same`), of the same topic and another style (`moved_topic`), of the same style and another
    topic (`moved_style`), from a text that differs in both (`moved_other`), and at the mean of the prior (`moved_none`).
    `moved_composed` are latents that no text was needed for: a linear map from topic and style to latents, fitted on texts of trained combinations,
    composes those of a combination that was held out.
    """

    kind: Literal["text-latents"] = "text-latents"
    summary_names: ClassVar[tuple[str, ...]] = (
        *(
            f"{name}_{factor}{network}"
            for name in ("r2", "named")
            for factor in ("topic", "style")
            for network in ("", "_untrained")
        ),
        "r2_random",
        *(f"moved_{name}" for name in ("own", "same", "topic", "style", "other", "none", "composed")),
    )
    draws: PositiveInt = 2
    """Texts of each trained combination."""
    texts: PositiveInt = 72
    """Texts of held-out combinations, on each side."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        objective = setting.config.objective
        if not isinstance(objective, LatentPosterior) or not as_latent_decoder(network).latents:
            return Measured({}, {}, refused="The network has no latents.")
        rows = {"trained": np.repeat(setting.regions.require("trained", setting.config.space.size), self.draws, axis=0)}
        for side in SIDES:
            some = setting.regions.require("held_out", self.texts, side)
            rows[side] = np.resize(some, (self.texts, some.shape[1]))
        summary: dict[str, float] = {}
        fits: dict[str, Any] = {}
        for suffix, model in (("_untrained", setting.network()), ("", network)):
            fits = {
                region: over_tasks(
                    LatentsOfText(objective), setting, model, some, Stream.PROBE, f"latents {region}", CALL
                )
                for region, some in rows.items()
            }
            read = probed(fits, rows["trained"], _topics(setting), setting.config.seeds.support)
            summary |= {f"{name}{suffix}": value for name, value in read.items() if not suffix or name != "r2_random"}
        moved = moved_latents(fits, rows)
        records = []
        for name, latents in moved.items():
            bits = _bits(network, fits["test"], latents)
            summary[f"moved_{name}"] = float(np.nanmean(bits))
            records += [
                {"combination": setting.config.space.name(row), "latents": name, "bits": float(value)}
                for row, value in zip(rows["test"], bits, strict=True)
            ]
        return Measured.from_records(summary, records)


def _topics(setting: Setting) -> int:
    teacher = setting.teacher
    assert isinstance(teacher, TopicsTeacher)
    return len(teacher.topics)


def probed(
    fits: dict[str, dict[str, np.ndarray]], trained: Int[np.ndarray, "_ slots"], topics: int, seed: int
) -> dict[str, float]:
    """How well topic and style follow linearly from latents.

    Args:
        fits: Latents and task vectors of the regions `trained` (to fit on), `validation` (to choose the strength on) and `test`.
        trained: The combinations of the texts in `trained`.
        topics: The number of topics: they come first in a task vector.
        seed: Of the control's random targets.
    """
    flat = {
        region: {"vector": found["vector"], "latents": found["latents"].reshape(len(found["latents"]), -1)}
        for region, found in fits.items()
    }
    fit, test = flat["trained"], flat["test"]
    repeats = len(trained) // len(np.unique(trained, axis=0))
    control = control_targets(trained[::repeats], fit["vector"], seed)
    probe = fit_probe(fit, flat["validation"], "latents", control)
    predicted, vector = probe.predict(test["latents"]), test["vector"]
    result = {}
    for name, part in (("topic", slice(None, topics)), ("style", slice(topics, None))):
        result[f"r2_{name}"] = mean_r2(vector[:, part], predicted[:, part])
        right = predicted[:, part].argmax(axis=1) == vector[:, part].argmax(axis=1)
        result[f"named_{name}"] = float(right.mean())
    # Odd texts of trained combinations judge a control that is fitted on even ones: other texts of the same combinations.
    even, odd = (np.arange(len(trained)) % 2 == side for side in (0, 1))
    random = RidgePath(fit["latents"][even], control[even]).predict(fit["latents"][odd], probe.strength)
    return result | {"r2_random": mean_r2(control[odd], random)}


def moved_latents(fits: dict[str, dict[str, np.ndarray]], rows: dict[str, Int[np.ndarray, "_ slots"]]) -> Moved:
    """Latents for each text of the test side, by where they come from; NaN where there is no such text."""
    test, trained, latents = rows["test"], rows["trained"], fits["test"]["latents"]
    shape = latents.shape
    composing = RidgePath(fits["trained"]["vector"], fits["trained"]["latents"].reshape(len(trained), -1))
    composed = composing.predict(fits["test"]["vector"], STRENGTHS[0])
    moved: Moved = {"own": latents, "none": np.zeros_like(latents), "composed": composed.reshape(shape)}
    for name, (topic, style) in {
        "same": (True, True),
        "topic": (True, False),
        "style": (False, True),
        "other": (False, False),
    }.items():
        # Texts of the same combination are on the test side too; the others are of trained combinations.
        donors, given = (test, latents) if name == "same" else (trained, fits["trained"]["latents"])
        found = np.full(shape, np.nan, latents.dtype)
        for number, row in enumerate(test):
            fits_well = ((donors[:, 0] == row[0]) == topic) & ((donors[:, 1] == row[1]) == style)
            if name == "same":
                fits_well[number] = False
            if (places := np.flatnonzero(fits_well)).size:
                found[number] = given[places[number % len(places)]]
        moved[name] = found
    return moved


def _bits(
    network: Network, found: dict[str, np.ndarray], latents: Float[np.ndarray, "_ layer latent size"]
) -> Float[np.ndarray, " text"]:
    """Bits per token of texts with given latents."""
    nats = _nats(network, jnp.asarray(found["inputs"]), jnp.asarray(found["text"]), jnp.asarray(latents))
    return np.asarray(nats, float) / math.log(2)


@compiled
def _nats(network: Network, inputs: Array, text: Array, latents: Array) -> Array:
    decoder = as_latent_decoder(network)
    return -jnp.mean(decoder.log_likelihoods(decoder.stem(inputs), latents, text), axis=1)
