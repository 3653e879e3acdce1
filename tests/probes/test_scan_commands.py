"""Single commands of SCAN: a command is right if the network generates its actions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.scan import action_tokens
from recombine.models.sequence import SequenceNetwork
from recombine.overrides import validate
from recombine.probes.scan_commands import ScanCommands
from recombine.spaces.scan import language
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


@pytest.fixture(scope="module")
def setting() -> Setting:
    model = {"kind": "encoder-decoder", "width": 8, "layers": 1, "heads": 1}
    return Setting(validate(RunConfig, {"family": "scan", "model": model}))


def test_a_command_is_right_if_the_network_generates_its_actions(setting: Setting) -> None:
    network = setting.network()
    assert isinstance(network, SequenceNetwork)
    commands = ("jump", "turn left twice")
    found = ScanCommands(commands=commands).measure(setting, network).summary
    for command in commands:
        row = jnp.asarray(language.parse(command))
        task = setting.teacher.task(row, setting.data_key)
        code = setting.encoder(task, setting.teacher, setting.data_key)
        right = np.array_equal(network.generate(code[None])[0], action_tokens(row))
        assert found[f"right_{command.replace(' ', '_')}"] == float(right)


def test_bad_commands_are_refused(setting: Setting) -> None:
    with pytest.raises(BadInput, match="'hop' is not a phrase of SCAN"):
        ScanCommands(commands=("hop",)).measure(setting, setting.network())
