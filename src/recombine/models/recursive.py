"""A small network that is applied to its own latent state again and again (a tiny recursive model)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from recombine.encodings.base import Encoding
from recombine.errors import BadInput
from recombine.families.base import Family
from recombine.families.classification import ClassificationFamily
from recombine.models.base import Code, Codes, Edit, Inputs, Model, Network, TaskInputs, TaskOutputs, Traced, unedited
from recombine.models.layers import Attention, Linear, RotaryEmbedding, lecun_normal, matmul, rms_norm

Cells = Float[Array, "*grid cell width"]
"""One vector per cell of a grid."""
Mixing = Literal["attention", "mlp"]


class GatedMLP(eqx.Module):
    """Two products gate each other: `down(silu(gate) * up)` (SwiGLU). No biases."""

    gate_and_up: Float[Array, "unit twice_hidden"]
    down: Float[Array, "hidden unit"]

    @staticmethod
    def draw(units: int, ratio: int, key: Array, quiet: bool = False) -> GatedMLP:
        """Fresh weights. As there are three matrices instead of two, the hidden layer has two thirds of `ratio` times the units.

        Args:
            units: Of inputs and outputs.
            ratio: Hidden units of an ordinary MLP, as a multiple of the units.
            key: Of the random numbers.
            quiet: Whether the outputs are zero at first.
        """
        by_up, by_down = jax.random.split(key)
        hidden = max(1, round(ratio * units * 2 / 3))
        down = jnp.zeros((hidden, units)) if quiet else lecun_normal(by_down, (hidden, units))
        return GatedMLP(lecun_normal(by_up, (units, 2 * hidden)), down)

    def __call__(self, values: Float[Array, "*row unit"]) -> Float[Array, "*row unit"]:
        gate, up = jnp.split(matmul(values, self.gate_and_up), 2, axis=-1)
        return matmul(jax.nn.silu(gate) * up, self.down)


class GridBlock(eqx.Module):
    """Cells see each other by attention or by an MLP over positions; then an MLP works on each cell. Norms follow the sums."""

    mixing: Attention | GatedMLP
    mlp: GatedMLP

    @staticmethod
    def draw(cells: int, width: int, heads: int, ratio: int, mixing: Mixing, quiet: bool, key: Array) -> GridBlock:
        """Fresh weights. A quiet block changes nothing at first."""
        by_mixing, by_mlp = jax.random.split(key)
        if mixing == "mlp":
            return GridBlock(GatedMLP.draw(cells, ratio, by_mixing, quiet), GatedMLP.draw(width, ratio, by_mlp, quiet))
        mixer = Attention.draw(width, heads, jax.random.split(by_mixing, 4))
        if quiet:
            mixer = eqx.tree_at(lambda own: own.out, mixer, jnp.zeros_like(mixer.out))
        return GridBlock(mixer, GatedMLP.draw(width, ratio, by_mlp, quiet))

    def mix(self, state: Cells) -> Cells:
        """What each cell gets from the others."""
        if isinstance(self.mixing, GatedMLP):
            return jnp.swapaxes(self.mixing(jnp.swapaxes(state, -1, -2)), -1, -2)
        cells = state.shape[-2]
        positions = RotaryEmbedding.first(cells, len(self.mixing.key_scale), state.dtype)
        queries, cache = self.mixing.queries(state, positions), self.mixing.cache(state, positions)
        return self.mixing(queries, cache, jnp.ones((1, cells, cells), bool))

    def __call__(self, state: Cells) -> Cells:
        state = rms_norm(state + self.mix(state))
        return rms_norm(state + self.mlp(state))


class State(eqx.Module):
    """What is carried from step to step: the answer so far, and a latent state."""

    answer: Float[Array, "*grid width"]
    latent: Float[Array, "*grid width"]


class RecursiveNetwork(Network):
    """Blocks that update the latent state from the puzzle, the answer and itself, and then the answer. Sites: `answer 1`, ..."""

    embedding: Float[Array, "feature width"]
    identifiers: Float[Array, "code width"] | None
    """What the code of a puzzle adds to each cell: the embedding of its identifier. None where the puzzle shows the task."""
    blocks: tuple[GridBlock, ...]
    answer_blocks: tuple[GridBlock, ...] | None
    """Separate blocks for the answer, in a hierarchy of two networks; None where one network does both."""
    start: State
    """Where every puzzle starts: random, and not trained."""
    readout: Float[Array, "width unit"]
    halt: Linear
    updates: int = eqx.field(static=True)
    cycles: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    gradient: Literal["cycle", "update"] = eqx.field(static=True)
    states: int = eqx.field(static=True)

    def embed(
        self, inputs: Float[Array, "*grid cell feature"], codes: Float[Array, "*grid code"] | None = None
    ) -> Cells:
        """One vector per cell of the puzzle, of about size one."""
        embedded = matmul(inputs, self.embedding)
        if self.identifiers is None or codes is None:
            return embedded
        return embedded + matmul(codes.astype(inputs.dtype), self.identifiers)[..., None, :]

    def initial(self, grids: int, cells: int) -> State:
        """The state before the first step."""
        fixed = jax.lax.stop_gradient(self.start)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (grids, cells, len(leaf))), fixed)

    def _apply(self, blocks: Sequence[GridBlock], state: Cells) -> Cells:
        for block in blocks:
            state = block(state)
        return state

    def _think(self, puzzle: Cells, state: State, times: int) -> State:
        """Update the latent state a number of times."""

        def once(latent: Cells, _: None) -> tuple[Cells, None]:
            return self._apply(self.blocks, latent + puzzle + state.answer), None

        return State(state.answer, jax.lax.scan(once, state.latent, length=times)[0])

    def _answered(self, puzzle: Cells, state: State) -> State:
        """Update the answer once: from itself and the latent state, or from the puzzle where there is no latent state."""
        other = puzzle if self.states == 1 else state.latent
        return State(self._apply(self.answer_blocks or self.blocks, state.answer + other), state.latent)

    def _cycle(self, puzzle: Cells, state: State) -> State:
        """Update the latent state `updates` times, then the answer once. Without a latent state: the answer each time."""
        if self.states == 2:
            return self._answered(puzzle, self._think(puzzle, state, self.updates))

        def once(state: State, _: None) -> tuple[State, None]:
            return self._answered(puzzle, state), None

        return jax.lax.scan(once, state, length=self.updates + 1)[0]

    def step(self, puzzle: Cells, state: State) -> State:
        """One supervised step: `cycles` cycles, of which only the last has a gradient, or only its last two updates."""

        def free(state: State, _: None) -> tuple[State, None]:
            return self._cycle(puzzle, state), None

        if self.cycles > 1:
            state = jax.lax.scan(free, state, length=self.cycles - 1)[0]
        state = jax.lax.stop_gradient(state)
        if self.gradient == "cycle":
            return self._cycle(puzzle, state)
        # One-step gradient: the last update of the latent state and of the answer, or of the answer alone.
        if self.states == 1:
            before = jax.lax.scan(lambda own, _: (self._answered(puzzle, own), None), state, length=self.updates)[0]
            return self._answered(puzzle, jax.lax.stop_gradient(before))
        if self.updates > 1:
            state = jax.lax.stop_gradient(self._think(puzzle, state, self.updates - 1))
        return self._answered(puzzle, self._think(puzzle, state, 1))

    def logits(self, state: State) -> Float[Array, "*grid cell unit"]:
        """The logits of every cell."""
        return matmul(state.answer, self.readout)

    def halting(self, state: State) -> Float[Array, "*grid"]:
        """The logit that the answer is right as it is."""
        return self.halt(jnp.mean(state.answer, axis=-2))[..., 0]

    def unrolled(self, inputs: TaskInputs, steps: int, codes: Codes | None = None) -> State:
        """The states after each of a number of steps; the step is the first axis."""
        puzzle = self.embed(inputs, codes)

        def once(state: State, _: None) -> tuple[State, State]:
            after = self.step(puzzle, state)
            return after, after

        return jax.lax.scan(once, self.initial(*inputs.shape[:2]), length=steps)[1]

    def trace(self, code: Code, inputs: Inputs, edit: Edit = unedited) -> Traced:
        puzzle, state, sites = self.embed(inputs[None], code[None]), self.initial(1, len(inputs)), {}
        for number in range(1, self.steps + 1):
            state = self.step(puzzle, state)
            site = f"answer {number}"
            sites[site] = edit(site, state.answer[0])
            state = State(sites[site][None], state.latent)
        return self.logits(state)[0], sites

    def tasks(self, codes: Codes, inputs: TaskInputs) -> TaskOutputs:
        puzzle = self.embed(inputs, codes)
        once = functools.partial(self.step, puzzle)
        state = jax.lax.scan(lambda own, _: (once(own), None), self.initial(*inputs.shape[:2]), length=self.steps)[0]
        return self.logits(state)


class Recursive(Model):
    """A tiny recursive model (Jolicoeur-Martineau 2025): one network of two layers, used for the latent state and the answer.

    A cycle updates the latent state `updates` times from puzzle, answer and itself, then the answer once. A step has `cycles`
    cycles; only the last one has a gradient. Answers are read after `steps` steps. Train it with `deep-supervision`, which
    supervises every step and carries the state on.

    With `states=1` there is no latent state: the answer is updated from the puzzle and itself, as often as both states are
    together. With no updates, one cycle and one step on top of that, it is an ordinary network that is applied once.
    """

    kind: Literal["recursive"] = "recursive"
    reads_code: ClassVar[bool] = False
    version: ClassVar[int] = 2
    cells: PositiveInt = 36
    """Cells of a grid: the samples of a task."""
    width: PositiveInt = 64
    """Numbers of each cell's state."""
    layers: PositiveInt = 2
    """Blocks of the network."""
    heads: PositiveInt = 4
    """Attention heads; each has an equal share of the width."""
    mlp_ratio: PositiveInt = 4
    """Hidden units of the MLPs, as a multiple of the units (times 2/3, as they are gated)."""
    mixing: Mixing = "attention"
    """How cells see each other: by attention with rotary positions, or by an MLP over positions."""
    updates: NonNegativeInt = 3
    """Updates of the latent state before each update of the answer; 0 only without a latent state."""
    cycles: PositiveInt = 2
    """Cycles in a step."""
    steps: PositiveInt = 8
    """Steps after which an answer is read in evaluation."""
    gradient: Literal["cycle", "update"] = "cycle"
    """Where a step has a gradient: in its last cycle, or only in the last update of latent state and answer (one-step gradient)."""
    networks: int = Field(default=1, ge=1, le=2)
    """Two: a hierarchy of separate networks for the latent state and the answer, each with half of the layers."""
    states: int = Field(default=2, ge=1, le=2)
    """Two: a latent state and the answer. One: the answer alone."""
    quiet_start: bool = True
    """Whether blocks change nothing at first: their last matrices start at zero. With random ones, as in the released code, states
    are noise at first, and small networks took several times as many steps to learn anything."""
    identifiers: bool = False
    """Whether the code of a task (its puzzle identifier) is embedded and added to every cell. Otherwise the code is not used."""

    @model_validator(mode="after")
    def _fits_together(self) -> Recursive:
        if self.width % (2 * self.heads):
            raise ValueError(f"width={self.width} must be a multiple of twice the heads={self.heads}")
        if self.layers % self.networks:
            raise ValueError(f"layers={self.layers} cannot be divided among networks={self.networks}")
        if self.states == 2 and not self.updates:
            raise ValueError("updates=0 needs states=1: a latent state that is never updated is of no use")
        if self.states == 1 and self.networks == 2:
            raise ValueError("networks=2 needs states=2: the second network is for the latent state")
        return self

    def reuse(self) -> int:
        return (self.updates + 1) * self.cycles

    def check(self, family: Family, encoding: Encoding, samples: int) -> None:
        horizon = family.horizon if isinstance(family, ClassificationFamily) else 0
        if horizon != self.cells:
            raise BadInput(
                f"The recursive model has cells={self.cells}, but "
                + (
                    f"the grids of {family.kind!r} have {horizon} cells."
                    if horizon
                    else f"{family.kind!r} has no grids."
                ),
                fix=f"model.cells={horizon}" if horizon else "family=sudoku",
            )
        if samples != self.cells:
            raise BadInput(
                f"An example is a whole grid of {self.cells} cells, and training shows {samples} samples of each task.",
                fix=f"recipe.samples={self.cells}",
            )

    def draw(self, code_size: int, input_size: int, output_size: int, key: Array) -> RecursiveNetwork:
        by_embedding, by_answer, by_latent, by_readout, *by_block = jax.random.split(key, 4 + self.layers)
        shape = self.cells, self.width, self.heads, self.mlp_ratio, self.mixing, self.quiet_start
        blocks = tuple(GridBlock.draw(*shape, own) for own in by_block)
        half = self.layers // self.networks
        normal = jax.random.normal
        return RecursiveNetwork(
            embedding=normal(by_embedding, (input_size, self.width)),
            # Zero at first, as in the released code.
            identifiers=jnp.zeros((code_size, self.width)) if self.identifiers else None,
            blocks=blocks[:half],
            answer_blocks=blocks[half:] or None,
            start=State(normal(by_answer, (self.width,)), normal(by_latent, (self.width,))),
            readout=lecun_normal(by_readout, (self.width, output_size)),
            # As in the released code, halting starts out as very improbable.
            halt=Linear(jnp.zeros((self.width, 1)), jnp.full(1, -5.0)),
            updates=self.updates,
            cycles=self.cycles,
            steps=self.steps,
            gradient=self.gradient,
            states=self.states,
        )
