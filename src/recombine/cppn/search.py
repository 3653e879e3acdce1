"""Novelty search over pictures: genomes that grow as in NEAT and are selected for being different, never for a target."""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt

from recombine.component import Configuration
from recombine.cppn.dense_network import dense
from recombine.cppn.genome import ACTIVATIONS, INPUTS, Activation, Genome, Link
from recombine.cppn.picture import places
from recombine.cppn.scores import axis_of

SIDE = 24
"""Pixels of a side at which pictures are compared."""
BLOCK = 3
"""Pixels of a side of the squares that are averaged before pictures are compared: finer detail is not novelty."""
CACHED = 64
"""Searches in the cache. The runs of a replicate share theirs."""


class Search(Configuration):
    """The settings of a novelty search and of the choice from its archive."""

    population: PositiveInt = 48
    """Genomes of a generation."""
    generations: PositiveInt = 200
    """Generations."""
    neighbours: PositiveInt = 10
    """The novelty of a picture is its mean distance to this many nearest others, in the population and the archive."""
    archived: PositiveInt = 4
    """The most novel children of each generation that are kept for good."""
    weight_change: PositiveFloat = 0.5
    """The standard deviation of a change of a weight."""
    new_link: float = Field(default=0.3, ge=0, le=1)
    """The probability that a child has a new link."""
    new_node: float = Field(default=0.3, ge=0, le=1)
    """The probability that a child has a new node, which divides a link."""
    depth: PositiveInt = 10
    """The most hidden layers of the dense network. Children that need more are dropped."""
    width: PositiveInt = 16
    """The most units of a layer of the dense network."""
    hidden: PositiveInt = 10
    """The fewest hidden nodes of the chosen genome."""
    contrast: PositiveFloat = 0.15
    """The smallest `contrast` of the chosen picture."""
    asymmetry: float = Field(default=0.05, ge=0, le=1)
    """The largest odd share of the variance of the chosen picture, about one of its two axes. It stands for the taste of people,
    who chose symmetric pictures on Picbreeder; it looks at the picture and not at the network."""


def descriptor(genome: Genome) -> Float[np.ndarray, " square"]:
    """What pictures are compared by: their brightness in averaged squares."""
    shown = np.clip(np.abs(genome.values(_PLACES)[:, genome.outputs[-1]]), 0, 1)
    number = SIDE // BLOCK
    return shown.reshape(number, BLOCK, number, BLOCK).mean(axis=(1, 3)).ravel()


_PLACES = places(SIDE)


def first_genome(rng: np.random.Generator) -> Genome:
    """A grey picture without hidden nodes: each input is linked to the output with probability one half, at least one."""
    output = len(INPUTS)
    linked = rng.random(len(INPUTS)) < 0.5
    linked[rng.integers(len(INPUTS))] = True
    links = tuple((int(node), output, float(rng.normal())) for node in np.flatnonzero(linked))
    passed: tuple[Activation, ...] = ("identity",) * output
    return Genome(activations=(*passed, _kind(rng)), links=links, outputs=(output,))


def mutated(genome: Genome, settings: Search, rng: np.random.Generator) -> Genome:
    """A child: changed weights, and at times a new link, a new node or another activation.

    Args:
        genome: The parent.
        settings: Of the search.
        rng: Draws the changes.
    """
    links: list[Link] = [
        (source, target, weight + settings.weight_change * float(rng.normal()) if rng.random() < 0.5 else weight)
        for source, target, weight in genome.links
    ]
    kinds = list(genome.activations)
    if rng.random() < settings.new_node:
        source, target, weight = links.pop(int(rng.integers(len(links))))
        links += [(source, len(kinds), 1.0), (len(kinds), target, weight)]
        kinds.append(_kind(rng))
    if rng.random() < settings.new_link:
        source, target = int(rng.integers(len(kinds))), int(rng.integers(len(INPUTS), len(kinds)))
        joined = {link[:2] for link in links}
        if (source, target) not in joined and not _leads(links, target, source):
            links.append((source, target, float(rng.normal())))
    if rng.random() < 0.1:
        kinds[int(rng.integers(len(INPUTS), len(kinds)))] = _kind(rng)
    return Genome(activations=tuple(kinds), links=tuple(links), outputs=genome.outputs)


def _kind(rng: np.random.Generator) -> Activation:
    return ACTIVATIONS[int(rng.integers(len(ACTIVATIONS)))]


def _leads(links: list[Link], start: int, end: int) -> bool:
    """Whether a path leads from one node to another."""
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        more = {target for source, target, _ in links if source == node} - seen
        seen |= more
        waiting += more
    return end in seen


def novelty(pictures: Float[np.ndarray, "n square"], others: Float[np.ndarray, "m square"], number: int) -> np.ndarray:
    """The mean distance of each picture to its nearest others. The others include the pictures themselves."""
    squares = (pictures**2).sum(1)[:, None] + (others**2).sum(1) - 2 * pictures @ others.T
    distances = np.sqrt(np.maximum(squares, 0))
    nearest = np.partition(distances, min(number, distances.shape[1] - 1), axis=1)[:, : number + 1]
    # The nearest is the picture itself, at distance zero.
    return nearest.sum(axis=1) / max(1, nearest.shape[1] - 1)


def fits(genome: Genome, settings: Search) -> bool:
    """Whether the dense network of a genome is small enough."""
    if max(genome.layers[node] for node in genome.outputs) > settings.depth:
        return False
    return dense(genome).width <= settings.width


@functools.lru_cache(maxsize=CACHED)
def novelty_search(settings: Search, seed: int) -> tuple[Genome, ...]:
    """Search for pictures that differ from all that were found before.

    Args:
        settings: Of the search.
        seed: Of all random numbers.

    Returns:
        The archive in the order in which genomes were found, with the last population at its end.
    """
    rng = np.random.default_rng(seed)
    population = [first_genome(rng) for _ in range(settings.population)]
    pictures = np.stack([descriptor(genome) for genome in population])
    archive: list[Genome] = []
    archived = np.empty((0, pictures.shape[1]))
    scores = novelty(pictures, pictures, settings.neighbours)
    for _ in range(settings.generations):
        children: list[Genome] = []
        while len(children) < settings.population:
            first, second = rng.integers(len(population), size=2)
            child = mutated(population[first if scores[first] >= scores[second] else second], settings, rng)
            if fits(child, settings):
                children.append(child)
        everyone = population + children
        pictures = np.concatenate([pictures, np.stack([descriptor(child) for child in children])])
        scores = novelty(pictures, np.concatenate([pictures, archived]), settings.neighbours)
        best = len(population) + np.argsort(-scores[len(population) :])[: settings.archived]
        archive += [everyone[number] for number in best]
        archived = np.concatenate([archived, pictures[best]])
        kept = np.argsort(-scores)[: settings.population]
        population = [everyone[number] for number in kept]
        pictures, scores = pictures[kept], scores[kept]
    return (*archive, *population)


def contrast(picture: Float[np.ndarray, " square"]) -> float:
    """The standard deviation of the brightness along rows or along columns, whichever is smaller.

    It is zero for stripes: a picture that does not change along one axis is symmetric about it in a trivial way.
    """
    square = picture.reshape(SIDE // BLOCK, SIDE // BLOCK)
    return min(float((square - square.mean(axis=axis, keepdims=True)).std()) for axis in (0, 1))


def chosen(settings: Search, seed: int) -> Genome:
    """The genome of a replicate: the most novel one that fulfils the conditions of `Search`.

    Conditions on contrast, on hidden nodes and on symmetry are given up in the opposite order where no genome fulfils all.

    Args:
        settings: Of the search.
        seed: Of the search.
    """
    archive = list(dict.fromkeys(novelty_search(settings, seed)))  # pyright: ignore[reportArgumentType]
    pictures = np.stack([descriptor(genome) for genome in archive])
    scores = novelty(pictures, pictures, settings.neighbours)
    conditions = [
        np.array([contrast(picture) >= settings.contrast for picture in pictures]),
        np.array([genome.hidden >= settings.hidden for genome in archive]),
        np.array([axis_of(picture[:, None])[1] <= settings.asymmetry for picture in pictures]),
    ]
    for number in range(len(conditions), -1, -1):
        allowed = np.all(conditions[:number], axis=0) if number else np.ones(len(archive), bool)
        if allowed.any():
            return archive[int(np.argmax(np.where(allowed, scores, -np.inf)))]
    raise AssertionError("an archive has at least one genome")
