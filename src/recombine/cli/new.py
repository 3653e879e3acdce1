"""The command `new`: writes a component of your own that works, with its test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Literal

from recombine.cli.output import say_line, say_written
from recombine.component import kinds
from recombine.errors import BadInput
from recombine.store.files import explained

ROOMS = {"study": "studies", "family": "families", "probe": "probes"}

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new(what: Literal["study", "family", "probe"], name: str, *, folder: Path = Path()) -> None:
    """Write a component of your own that works, with its test.

    Args:
        what: study, family or probe.
        name: Its name, such as my-family: small letters, digits and hyphens.
        folder: Where the two files go.
    """
    module, class_name = name.replace("-", "_"), "".join(part.capitalize() for part in name.split("-"))
    if not NAME.fullmatch(name) or keyword.iskeyword(module):
        raise BadInput(f"{name!r} is not a name for a component.", fix="small letters, digits and hyphens: my-family")
    if name in kinds(ROOMS[what]):
        raise BadInput(f"There is a {what} called {name!r} already.", fix="choose another name")
    files = {folder / f"{module}.py": _CODE[what], folder / f"test_{module}.py": _TEST[what]}
    for path in files:
        if path.exists():
            raise BadInput(f"{path} is there already, and is not overwritten.", fix="choose another name or --folder")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            text = text.replace("@name", name).replace("@module", module).replace("@Class", class_name)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    say_written(map(str, files))
    code, test = files
    say_line(f"next: python -m pytest {test}")
    say_line(f"then: RECOMBINE_COMPONENTS={code}:{class_name} {_NEXT[what].replace('@name', name)}")


_NEXT = {
    "study": "recombine run @name --profile demo",
    "family": "recombine train @name",
    "probe": "recombine train hyperteacher --measure @name",
}

_CODE = {
    "family": '''"""@Class: a task adds the random linear maps of its constituents."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from pydantic import PositiveInt
from recombine.families import Batch, RegressionFamily, Task, Teacher
from recombine.spaces import Space


class @ClassTeacher(Teacher):
    """The maps, drawn once per replicate."""

    maps: Array
    """One matrix per constituent."""

    def task(self, row: Array, key: Array) -> Task:
        return Task.unweighted(row, self.maps.shape[0])

    def batch(self, task: Task, key: Array, samples: int) -> Batch:
        inputs = jax.random.normal(key, (samples, self.maps.shape[1]))
        together = jnp.tensordot(task.vector, self.maps, axes=1)
        return Batch(inputs, jnp.tanh(inputs @ together), jnp.ones(samples))


class @Class(RegressionFamily):
    """Sums of random linear maps, one map per constituent."""

    kind: Literal["@name"] = "@name"  # type: ignore
    inputs: PositiveInt = 4
    """Numbers in one input."""
    outputs: PositiveInt = 3
    """Numbers in one output."""

    @property
    def input_size(self) -> int:
        return self.inputs

    @property
    def output_size(self) -> int:
        return self.outputs

    def draw(self, space: Space, key: Array) -> @ClassTeacher:
        shape = (space.width, self.inputs, self.outputs)
        return @ClassTeacher(jax.random.normal(key, shape) / self.inputs**0.5)
''',
    "probe": '''"""@Class: how far the network's outputs are from the targets."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import PositiveInt
from recombine.models import Network
from recombine.probes import Measured, Measurement
from recombine.probes.tasks import AnswerTask, at_once, over_tasks
from recombine.training import Setting
from recombine.training.streams import Stream


class @Class(Measurement):
    """The mean distance between outputs and targets on held-out combinations."""

    kind: Literal["@name"] = "@name"  # type: ignore
    summary_names: ClassVar[tuple[str, ...]] = ("@module_distance",)
    combinations: PositiveInt = 64
    """The largest number of combinations."""

    def measure(self, setting: Setting, network: Network) -> Measured:
        rows = setting.regions.require("held_out", self.combinations, "test")
        compute = AnswerTask(setting.config.objective)
        batch = at_once(setting)
        found = over_tasks(
            compute, setting, network, rows, Stream.PROBE, self.kind, batch
        )
        distance = np.linalg.norm(found["answer"] - found["target"], axis=-1)
        columns: dict[str, list[Any]] = {
            "combination": [setting.config.space.name(row) for row in rows],
            "distance": distance.tolist(),
        }
        return Measured({"@module_distance": float(distance.mean())}, columns)
''',
    "study": '''"""@Class: does a network recombine better once it has seen more combinations?"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import recombine as rc
from recombine.figures.study import lines


class @Class(rc.Study):
    """Does held-out R2 rise with the number of training combinations?"""

    kind: Literal["@name"] = "@name"  # type: ignore
    profiles: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "smoke": {"steps": 20, "replicates": 2},
        "demo": {"replicates": 6},
        "laptop": {},
    }

    steps: int = 300
    """Steps of training."""
    numbers: tuple[int, ...] = (10, 24)
    """Numbers of training combinations."""

    def arms(self) -> dict[str, rc.Arm]:
        base = rc.RunConfig(
            space=rc.SubsetSpace(modules=8, max_active=2),
            model=rc.models.MLP(width=32, depth=2),
            recipe=rc.recipes.Fast(steps=self.steps, tasks=64),
            eval_every=100,
        )
        main = rc.Arm(base, number=self.numbers)
        control = rc.Arm(base, family="lookup", number=self.numbers[0])
        return {"main": main, "control": control}

    def claims(self, main: rc.Arm, control: rc.Arm) -> Iterator[Any]:
        yield rc.precondition(
            "fits",
            main["r2_in"].lowest().above(0.5),
            "Every network fits its training tasks (R2).",
        )
        yield rc.claim(
            "rises",
            main["r2_held_out"].rise().greater(0.05),
            "Held-out R2 rises with the number of training combinations.",
            primary=True,
            needs="fits",
        )
        yield rc.control(
            "control-stays-at-zero",
            control["correlation_held_out"].equivalent(0.1),
            "Nothing carries over where combinations share nothing.",
        )

    def figures(self, main: rc.Arm) -> Iterator[Any]:
        yield lines(main, x="number", y="r2_held_out", title="Does it rise?")
''',
}

_TEST = {
    "family": """import recombine as rc
from recombine.testing import check_family

from @module import @Class


def test_it_keeps_the_contract_of_a_family() -> None:
    check_family(@Class(), rc.SubsetSpace(modules=6, max_active=2))
""",
    "probe": """import recombine as rc
from recombine.testing import check_probe

from @module import @Class


def test_it_keeps_the_contract_of_a_probe() -> None:
    space = rc.SubsetSpace(modules=6, max_active=2)
    support = rc.supports.Random(number=12)
    check_probe(@Class(), rc.RunConfig(space=space, support=support))
""",
    "study": """from recombine.testing import check_study

from @module import @Class


def test_it_keeps_the_contract_of_a_study() -> None:
    check_study(@Class)  # Trains its smallest profile.
""",
}
