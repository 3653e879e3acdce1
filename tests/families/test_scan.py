"""SCAN as sequences: words in, actions out; and the control, in which nothing follows from the words."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.lookup_scan import LookupScan
from recombine.families.scan import Scan
from recombine.language.vocabulary import END, PAD
from recombine.spaces.scan import ScanSpace, language
from recombine.spaces.subset import SubsetSpace
from recombine.training.config import RunConfig

SPACE = ScanSpace()


def spoken(family: Scan, command: str, seed: int = 0) -> tuple[str, str, np.ndarray]:
    teacher = family.draw(SPACE, jax.random.key(seed))
    task = teacher.task(jnp.asarray(language.parse(command)), jax.random.key(0))
    prompt, answer = np.asarray(teacher.prompt(task)), np.asarray(teacher.answer(task))
    words = family.vocabulary
    return " ".join(words.spelled(prompt)), " ".join(words.spelled(answer)), answer


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "I_JUMP"),
        ("turn left twice", "I_TURN_LEFT I_TURN_LEFT"),
        ("walk opposite right after look", "I_LOOK I_TURN_RIGHT I_TURN_RIGHT I_WALK"),
        ("run around left and jump", "I_TURN_LEFT I_RUN " * 4 + "I_JUMP"),
    ],
)
def test_commands_and_their_actions(command: str, actions: str) -> None:
    prompt, answer, tokens = spoken(Scan(), command)
    assert (prompt, answer) == (command, actions)
    length = len(actions.split())
    assert tokens[length] == END
    assert (tokens[length + 1 :] == PAD).all()


def test_the_longest_command_has_room() -> None:
    longest = "jump around left thrice and run around right thrice"
    _, answer, tokens = spoken(Scan(), longest)
    assert len(answer.split()) == len(tokens) - 1 == 48
    assert len(longest.split()) == Scan().longest_prompt


def test_the_control_exchanges_answers() -> None:
    family = LookupScan()
    teacher = family.draw(SPACE, jax.random.key(1))
    rows = jnp.asarray(SPACE.enumerate())
    tasks = jax.vmap(lambda row: teacher.task(row, jax.random.key(0)))(rows)
    answers = np.asarray(jax.jit(jax.vmap(teacher.answer))(tasks))
    own = np.asarray(jax.jit(jax.vmap(Scan().draw(SPACE, jax.random.key(0)).answer))(tasks))
    assert (answers != own).any(axis=1).mean() > 0.9
    # The same answers, each as often as before.
    order = [np.lexsort(one.T) for one in (answers, own)]
    np.testing.assert_array_equal(answers[order[0]], own[order[1]])


def test_a_run_of_it_has_its_parts() -> None:
    config = RunConfig.model_validate({"family": "scan"})
    kinds = {name: part.kind for name, part in config.components().items()}
    assert kinds["space"] == "scan" and kinds["support"] == "scan-split"
    assert kinds["model"] == "encoder-decoder" and kinds["objective"] == "next-token"


def test_other_spaces_are_refused() -> None:
    with pytest.raises(BadInput, match="space of SCAN commands"):
        Scan().check(SubsetSpace(modules=4, max_active=2))
