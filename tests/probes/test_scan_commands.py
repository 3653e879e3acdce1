"""Single commands of SCAN: what is counted as right is what the network says."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from recombine.errors import BadInput
from recombine.families.scan import said
from recombine.models.sequence import SequenceNetwork
from recombine.overrides import validate
from recombine.probes.scan_commands import ScanCommands
from recombine.spaces import scan_language as language
from recombine.training.config import RunConfig
from recombine.training.prepare import Setting


def test_right_is_what_the_network_says() -> None:
    model = {"kind": "encoder-decoder", "width": 8, "layers": 1, "heads": 1}
    setting = Setting(validate(RunConfig, {"family": "scan", "model": model}))
    network = setting.state().network
    assert isinstance(network, SequenceNetwork)
    commands = ("jump", "turn left twice")
    found = ScanCommands(commands=commands).measure(setting, network).summary
    for command in commands:
        row = jnp.asarray(language.parse(command))
        task = setting.teacher.task(row, setting.data_key)
        code = setting.encoder(task, setting.teacher, setting.data_key)
        right = np.array_equal(network.generate(code[None])[0], said(row))
        assert found[f"right_{command.replace(' ', '_')}"] == float(right)


def test_bad_commands_are_refused() -> None:
    setting = Setting(validate(RunConfig, {"family": "scan"}))
    with pytest.raises(BadInput, match="word 1 is 'hop'"):
        ScanCommands(commands=("hop",)).measure(setting, setting.state().network)
