"""Segregation: does a network divide the pixels of a scene into objects? Foreground adjusted Rand index."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import PositiveInt

from recombine.errors import BadInput
from recombine.families.silhouettes import SilhouettesTeacher
from recombine.models.base import Network
from recombine.models.slot_autoencoder import SlotAutoencoderNetwork
from recombine.objectives import Objective
from recombine.probes.base import Measured, Measurement
from recombine.probes.tasks import over_tasks
from recombine.spaces import ProductSpace
from recombine.training import Setting
from recombine.training.program import draw_examples
from recombine.training.streams import Stream

ROUNDS = 10
"""Rounds of reconstruction clustering."""
LEAST = 1e-6
"""The least probability of a pixel to be white or black, in reconstruction clustering."""
METHODS = ("trained", "untrained", "kmeans", "components")
"""What divides a scene: the network, the network before training, k-means on coordinates, connected components."""
KEPT = 8
"""Scenes that are kept for pictures."""


def reconstruction_clustering(
    restore: Callable[[Float[Array, "cluster pixel"]], Float[Array, "cluster pixel"]],
    image: Float[Array, " pixel"],
    clusters: int,
    key: Array,
) -> Int[Array, " pixel"]:
    """The cluster of each pixel, by expectation maximisation with a denoising autoencoder as its model of one object.

    Greff, Srivastava and Schmidhuber, arXiv 1511.06418. Each cluster sees the image times its share of each pixel. A pixel's
    shares are proportional to the probability that the clusters' reconstructions give to it.
    """
    shares = jax.random.uniform(key, (clusters, len(image)), minval=0.1, maxval=1.0)

    def improved(_: Array, shares: Array) -> Array:
        white = jnp.clip(restore(shares * image), LEAST, 1 - LEAST)
        likely = image * white + (1 - image) * (1 - white)
        return likely / jnp.sum(likely, axis=0)

    shares = jax.lax.fori_loop(0, ROUNDS, improved, shares / jnp.sum(shares, axis=0))
    return jnp.argmax(shares, axis=0)


def divided(
    network: Network,
    objective: Objective,
    code: Float[Array, " code"],
    image: Float[Array, " pixel"],
    clusters: int,
    key: Array,
) -> Int[Array, " pixel"]:
    """The part of each pixel: by the masks of slots where a network has them, by reconstruction clustering otherwise."""
    if isinstance(network, SlotAutoencoderNetwork):
        return jnp.argmax(network.masks(code, image[None])[0], axis=0)
    return reconstruction_clustering(lambda images: objective.answer(network(code, images)), image, clusters, key)


def foreground_ari(owner: Int[np.ndarray, " pixel"], found: Int[np.ndarray, " pixel"]) -> float:
    """The adjusted Rand index over pixels that belong to exactly one object. The background does not count.

    Args:
        owner: The object of each pixel; negative for the background and for pixels of several objects.
        found: The part of each pixel.
    """
    from sklearn.metrics import adjusted_rand_score

    counted = owner >= 0
    return float(adjusted_rand_score(owner[counted], found[counted]))


def by_coordinates(white: np.ndarray, clusters: int) -> Int[np.ndarray, " pixel"]:
    """K-means on the coordinates of white pixels; -1 elsewhere."""
    from sklearn.cluster import KMeans

    places = np.argwhere(white)
    found = np.full(white.shape, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Fewer different points than clusters: then some clusters stay empty.
        means = KMeans(min(clusters, len(places)), n_init=4, random_state=0).fit(places)  # pyright: ignore[reportArgumentType]
    found[tuple(places.T)] = means.labels_
    return found.ravel()


def by_contact(white: np.ndarray) -> Int[np.ndarray, " pixel"]:
    """Connected components of white pixels; -1 elsewhere."""
    from scipy import ndimage

    parts = np.zeros(white.shape, int)
    ndimage.label(white, output=parts)
    return parts.ravel() - 1


def touching(owner: np.ndarray) -> bool:
    """Whether two objects of a scene touch or overlap: some component of white pixels has more than one owner."""
    parts = by_contact(owner != -1)
    flat = owner.ravel()
    return any(len(np.unique(flat[(parts == part) & (flat >= 0)])) > 1 for part in range(parts.max() + 1))


@dataclasses.dataclass(frozen=True)
class DivideTask:
    """A scene, the object of each pixel, and the parts that the trained and the untrained network find."""

    objective: Objective
    clusters: int

    def __call__(self, networks: tuple[Network, Network], teacher: Any, encoder: Any, row: Array, key: Array) -> Any:
        by_data, by_start = jax.random.split(key)
        _, code, batch = draw_examples(teacher, encoder, row, by_data, 1)
        assert batch.labels is not None
        image = batch.targets[0]
        trained, untrained = (
            divided(network, self.objective, code, image, self.clusters, by_start) for network in networks
        )
        return {"image": image, "owner": batch.labels[0], "trained": trained, "untrained": untrained}


class Segregation(Measurement):
    """The foreground adjusted Rand index (`ari`) of a network on scenes of several silhouettes.

    A slot autoencoder divides a scene by the masks of its slots. Any other network is used as the autoencoder of
    reconstruction clustering, which is told the number of objects. On the same scenes: the network before training
    (`ari_untrained`), k-means on the coordinates of white pixels with the true number of objects (`ari_kmeans`), and connected
    components (`ari_components`). Each also on the scenes in which objects touch (`..._touching`) and with one object more
    (`..._more`). Only pixels of exactly one object count; the background does not.
    """

    kind: Literal["segregation"] = "segregation"
    objects: PositiveInt = 3
    """The number of objects in a scene."""
    scenes: PositiveInt = 128
    """The number of scenes."""

    summary_names: ClassVar[tuple[str, ...]] = (
        *(
            f"ari{'' if method == 'trained' else f'_{method}'}{end}"
            for end in ("", "_touching", "_more")
            for method in METHODS
        ),
        "share_touching",
    )

    def measure(self, setting: Setting, network: Network) -> Measured:
        teacher, space = setting.teacher, setting.config.space
        if not isinstance(teacher, SilhouettesTeacher):
            raise BadInput(
                f"segregation needs images whose pixels belong to objects; the family is {setting.config.family.kind!r}.",
                fix="family=silhouettes",
            )
        networks, summary, columns = (network, setting.network()), {}, {}
        rows = space.enumerate()
        assert isinstance(space, ProductSpace)
        slot = [name for name, _ in space.factors].index("objects")
        numbers = np.array([int(value) for value in space.factors[slot][1]])[rows[:, slot] - space.offsets[slot]]
        for number, end in ((self.objects, ""), (self.objects + 1, "_more")):
            if not (numbers == number).any():
                continue
            chosen = np.resize(rows[numbers == number], (self.scenes, space.slots))
            drawn = over_tasks(
                DivideTask(setting.config.objective, number),
                setting,
                networks,
                chosen,
                Stream.PROBE,
                f"segregation {number}",
                self.scenes,
            )
            side = round(drawn["image"].shape[1] ** 0.5)
            white = drawn["image"].reshape(-1, side, side) > 0.5
            drawn["kmeans"] = np.stack([by_coordinates(scene, number) for scene in white])
            drawn["components"] = np.stack([by_contact(scene) for scene in white])
            scores = {
                method: np.array([foreground_ari(*pair) for pair in zip(drawn["owner"], drawn[method], strict=True)])
                for method in METHODS
            }
            touch = np.array([touching(owner.reshape(side, side)) for owner in drawn["owner"]])
            for method, values in scores.items():
                name = "ari" if method == "trained" else f"ari_{method}"
                summary[f"{name}{end}"] = float(values.mean())
                if not end and touch.any():
                    summary[f"{name}_touching"] = float(values[touch].mean())
            if not end:
                summary["share_touching"] = float(touch.mean())
                kept = np.arange(self.scenes) < KEPT
                columns = {
                    "scene": list(range(self.scenes)),
                    "touching": touch.tolist(),
                    **{f"ari_{method}": values.tolist() for method, values in scores.items()},
                    **{
                        f"parts_{name}": [
                            part.astype(int).tolist() if keep else []
                            for part, keep in zip(drawn[name], kept, strict=True)
                        ]
                        for name in ("owner", *METHODS)
                    },
                }
        if not columns:
            raise BadInput(f"No scene of the space has {self.objects} objects.", fix="choose another number of objects")
        return Measured(summary, columns)
