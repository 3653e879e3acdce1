"""Which scenes shall we record next? The example of docs/tutorial.md, from the first model to the last table.

python examples/collect_next.py --out collect_next          (five to ten minutes on two cores)
python examples/collect_next.py --out collect_next --quick  (a smaller network and one replicate: about a minute)

Every step leaves its files in the folder. What the commands print is also kept there, as *.txt.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

import recombine as rc
from recombine.plan.collected import as_names, as_rows, read_collected
from recombine.stats.intervals import t_interval

FACTORS = {
    "object": ["mug", "bowl", "plate", "bottle", "can", "drill"],
    "table": ["wood", "steel", "cloth", "stone"],
    "camera": ["left", "right", "top"],
    "light": ["day", "lamp", "dusk"],
}
SPACE = rc.ProductSpace(factors=tuple((name, tuple(levels)) for name, levels in FACTORS.items()))
WORLD = rc.families.Hyperteacher(inputs=6, hidden=8, outputs=3, coefficients="k-hot")
"""Stands for the robot and its room: from a scene and 6 sensor values to the right grasp (x, y, opening)."""
RECORDED = 96
"""Scenes that were recorded before anybody thought of coverage."""
BUDGET = 6
"""Scenes that can still be recorded: a morning."""
TRIALS = 20
"""Grasps for each scene in an evaluation."""
FEW = 8
"""And in the quick form."""
TOLERANCE = 0.35
"""A grasp succeeds if each of its 3 numbers is so close to the right one, in standard deviations of right grasps."""
ARMS = ("nothing", "random", "random drill", "planned")
REPLICATES = 5
REMEDIES = ("as it is", "twice as wide", "longer", "40 scenes more")
MORE = 40
ENGINE = rc.LocalEngine()
"""Keeps what it compiled: all runs of this example share one program."""


def record_scenes() -> pd.DataFrame:
    """Our habit: whatever was at hand. The drill came late, when the steel table stood under the top camera."""
    every = pd.DataFrame(as_names(SPACE.enumerate(), SPACE), columns=list(FACTORS))
    drill = every[(every.object == "drill") & (every.table == "steel") & (every.camera == "top")]
    others = every[every.object != "drill"].sample(RECORDED - len(drill), random_state=0)
    return pd.concat([others, drill], ignore_index=True)


def configure(scenes: pd.DataFrame, replicate: int, quick: bool) -> rc.RunConfig:
    """The same network, recipe and number of training samples, whatever the scenes. A replicate is another world."""
    rows = as_rows(scenes[list(FACTORS)].values.tolist(), SPACE)
    return rc.RunConfig(
        space=SPACE,
        support=rc.supports.Given(combinations=tuple(tuple(row) for row in rows.tolist())),
        family=WORLD,
        model=rc.models.MLP(width=64 if quick else 128, depth=2),
        recipe=rc.recipes.Fast(steps=400 if quick else 600, tasks=64),
        seeds=rc.Seeds.replicate(replicate),
        eval_every=100,
    )


@functools.cache
def trials_of(replicate: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """How a scene becomes an input with the right grasp in a world, and when a grasp succeeds."""
    teacher = rc.training.Setting(configure(record_scenes(), replicate, quick=True)).teacher
    names = as_names(SPACE.enumerate(), SPACE)
    rows = dict(zip(map(tuple, names), SPACE.enumerate(), strict=True))

    @jax.jit
    def trial(row: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        task = teacher.task(row, key)
        batch = teacher.batch(task, key, 1)
        return task.vector, batch.inputs, batch.targets[0]

    def make_input(scene: Mapping[str, Any], rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        vector, sensors, grasp = trial(rows[tuple(scene.values())], jax.random.key(int(rng.integers(2**31))))
        return (np.asarray(vector), np.asarray(sensors)), np.asarray(grasp)

    rng = np.random.default_rng(0)
    spread = np.std([make_input(dict(zip(FACTORS, scene, strict=True)), rng)[1] for scene in names])

    def success(output: np.ndarray, grasp: np.ndarray) -> bool:
        return bool(np.all(np.abs(output[0] - grasp) < TOLERANCE * spread))

    return make_input, success


def train_all(out: Path, configs: list[rc.RunConfig]) -> list[Any]:
    """Trains what is not in the store yet, and returns the networks."""
    store = rc.Store(out / "runs")
    done = ENGINE.run(store, configs)
    print(f"trained {done.trained}, {done.found} were there: {done.train_seconds:.0f} s "
          f"and {done.compile_seconds:.0f} s to compile")  # fmt: skip
    return [store.load(config).network for config in configs]


def evaluate(network: Any, config: rc.RunConfig, scenes: pd.DataFrame | None = None, trials: int = TRIALS) -> Any:
    """Success in 0 and 1, a row for each grasp; all scenes, or these."""
    make_input, success = trials_of(config.seeds.teacher)
    wanted = None if scenes is None else scenes.values.tolist()
    return rc.ask_model(network, SPACE, make_input, {"success": success}, combinations=wanted, repeats=trials)


def command(out: Path, name: str, *words: str) -> None:
    """Runs a command of recombine in the folder, as you would; shows what it prints and keeps it."""
    tool = Path(sys.executable).with_name("recombine")
    line = " ".join(("recombine", *(word if word.strip() else repr(word) for word in words)))
    settings = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run([str(tool), *words], cwd=out, env=settings, capture_output=True, text=True)
    told = done.stdout if done.stdout.strip() else done.stderr
    (out / f"{name}.txt").write_text(f"$ {line}\n{told}", encoding="utf-8")
    print(f"\n$ {line}\n{told}")
    if done.returncode:
        sys.exit(done.stderr)


def audit(
    out: Path, name: str, network: Any, config: rc.RunConfig, trained: pd.DataFrame, quick: bool, inside: bool = False
) -> pd.DataFrame:
    """Writes the tables that an audit needs, and audits; with a look inside the network, if wanted."""
    asked = evaluate(network, config, trials=FEW if quick else TRIALS)
    asked.frame.to_csv(out / f"evaluation_{name}.csv", index=False)
    trained.to_csv(out / f"trained_{name}.csv", index=False)
    words = ["audit", f"evaluation_{name}.csv", "--factors", ",".join(FACTORS), "--score", "success"]
    words += ["--train", f"trained_{name}.csv", "--report", f"audit_{name}.html"]
    if inside:
        np.savez(out / f"inside_{name}.npz", **asked.layers)
        words += ["--activations", f"inside_{name}.npz"]
    command(out, f"audit_{name}", *words)
    return asked.frame


def plan(out: Path) -> pd.DataFrame:
    """The planner's scenes, from a description of the space and the table of what is there."""
    lines = [f"  {name}: [{', '.join(levels)}]" for name, levels in FACTORS.items()]
    (out / "scenes.yaml").write_text("\n".join(["factors:", *lines, ""]), encoding="utf-8")
    words = ["plan", "scenes.yaml", "--collected", "trained_before.csv", "--budget", str(BUDGET)]
    command(out, "plan", *words, "-o", "next.csv")
    return pd.DataFrame(as_names(read_collected(out / "next.csv", SPACE), SPACE), columns=list(FACTORS))


def additions(recorded: pd.DataFrame, planned: pd.DataFrame, replicate: int) -> dict[str, pd.DataFrame]:
    """As many scenes more, chosen in other ways: drawn from all that is missing, or from all drill scenes."""
    every = pd.DataFrame(as_names(SPACE.enumerate(), SPACE), columns=list(FACTORS))
    missing = every.merge(recorded, how="left", indicator=True).query("_merge == 'left_only'")[list(FACTORS)]
    return {
        "nothing": missing[:0],
        "random": missing.sample(BUDGET, random_state=replicate),
        "random drill": missing[missing.object == "drill"].sample(BUDGET, random_state=1000 + replicate),
        "planned": planned,
    }


def compare(out: Path, recorded: pd.DataFrame, planned: pd.DataFrame, replicates: int, quick: bool) -> None:
    """Success on drill scenes, and on others, that no arm of the replicate was trained on."""
    every = pd.DataFrame(as_names(SPACE.enumerate(), SPACE), columns=list(FACTORS))
    added = [additions(recorded, planned, replicate) for replicate in range(replicates)]
    configs = [
        configure(pd.concat([recorded, added[replicate][arm]]), replicate, quick)
        for replicate in range(replicates)
        for arm in ARMS
    ]
    networks = iter(zip(train_all(out, configs), configs, strict=True))
    rows = []
    for replicate in range(replicates):
        seen = pd.concat([recorded, *added[replicate].values()]).drop_duplicates()
        fresh = every.merge(seen, how="left", indicator=True).query("_merge == 'left_only'")[list(FACTORS)]
        for arm in ARMS:
            frame = evaluate(*next(networks), fresh, FEW if quick else TRIALS).frame
            drill = frame.object == "drill"
            means = frame.success[drill].mean(), frame.success[~drill].mean()
            met = len(pairs_of_drill(added[replicate][arm]) - pairs_of_drill(recorded))
            found = {"drill": means[0], "others": means[1], "met": met}
            rows.append({"replicate": replicate, "added": arm} | found)
    table = pd.DataFrame(rows)
    table.to_csv(out / "comparison.csv", index=False)
    told = report(table)
    (out / "comparison.txt").write_text(told, encoding="utf-8")
    print(f"\n{told}")


def pairs_of_drill(scenes: pd.DataFrame) -> set[tuple[str, str]]:
    """What the drill met in these scenes."""
    drill = scenes[scenes.object == "drill"]
    return {(name, level) for name in FACTORS if name != "object" for level in drill[name]}


def report(table: pd.DataFrame) -> str:
    """Every replicate, the means, and planned less the others with a 95 % t interval over replicates."""
    wide = table.pivot(index="replicate", columns="added", values="drill")[list(ARMS)]
    lines = ["success on drill scenes that no arm was trained on", "", "replicate" + _cells(ARMS)]
    lines += [f"{number:<9}" + _cells(f"{value:.2f}" for value in row) for number, row in wide.iterrows()]
    lines += ["mean     " + _cells(f"{value:.2f}" for value in wide.mean())]
    others = table.groupby("added").others.mean()
    lines += ["others   " + _cells(f"{others[arm]:.2f}" for arm in ARMS) + "   (scenes without the drill)", ""]
    lines += ["the drill's missing pairs that met, by replicate"]
    for arm in ARMS[1:]:
        lines.append(f"{arm:<14}" + ", ".join(str(met) for met in table[table.added == arm].met))
    lines.append("")
    for arm in ARMS[:-1]:
        difference = (wide["planned"] - wide[arm]).to_numpy()
        if len(difference) < 2:
            lines.append(f"planned less {arm}: {difference[0]:+.2f} (one replicate, no interval)")
            continue
        found = t_interval(difference)
        lines.append(f"planned less {arm}: {found.estimate:+.2f} [{found.low:+.2f}, {found.high:+.2f}]")
    return "\n".join([*lines, ""])


def believe(out: Path, trained: pd.DataFrame, replicates: int) -> None:
    """The advice after the hole is closed: a larger model, longer training; and against it, more scenes."""
    every = pd.DataFrame(as_names(SPACE.enumerate(), SPACE), columns=list(FACTORS))
    missing = every.merge(trained, how="left", indicator=True).query("_merge == 'left_only'")[list(FACTORS)]
    configs, tests = [], []
    for replicate in range(replicates):
        more = missing.sample(MORE, random_state=replicate)
        same = configure(trained, replicate, quick=False)
        configs += [
            same,
            same.model_copy(update={"model": rc.models.MLP(width=256, depth=2)}),
            same.model_copy(update={"recipe": rc.recipes.Fast(steps=2000, tasks=64)}),
            configure(pd.concat([trained, more]), replicate, quick=False),
        ]
        tests += [missing.drop(more.index)] * len(REMEDIES)
    networks = train_all(out, configs)
    scores = [evaluate(*one).frame.success.mean() for one in zip(networks, configs, tests, strict=True)]
    wide = pd.DataFrame(np.reshape(scores, (replicates, -1)), columns=list(REMEDIES))
    lines = ["success on scenes that none of the four was trained on", "", "replicate" + _cells(REMEDIES)]
    lines += [f"{number:<9}" + _cells(f"{value:.2f}" for value in row) for number, row in wide.iterrows()]
    lines += ["mean     " + _cells(f"{value:.2f}" for value in wide.mean()), ""]
    for name in REMEDIES[1:]:
        found = t_interval((wide[name] - wide[REMEDIES[0]]).to_numpy())
        lines.append(f"{name}: {found.estimate:+.2f} [{found.low:+.2f}, {found.high:+.2f}]")
    told = "\n".join([*lines, ""])
    (out / "remedies.txt").write_text(told, encoding="utf-8")
    print(f"\n{told}")


def _cells(values: Any) -> str:
    return "".join(f"{value:>16}" for value in values)


def main() -> None:
    """All steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("collect_next"))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    out, quick = given.out, given.quick
    out.mkdir(parents=True, exist_ok=True)

    print("1. A model, and what it does in every scene")
    recorded = record_scenes()
    first = configure(recorded, 0, quick)
    (network,) = train_all(out, [first])
    before = audit(out, "before", network, first, recorded, quick, inside=not quick)
    print(f"mean success {before.success.mean():.2f} over {len(before)} grasps")

    print("\n2. What to record next")
    planned = plan(out)

    print("\n3. The same model with what was planned")
    again = pd.concat([recorded, planned], ignore_index=True)
    second = configure(again, 0, quick)
    (network,) = train_all(out, [second])
    audit(out, "after", network, second, again, quick)

    print("\n4. Was it the planning? Other scenes, as many; other worlds")
    compare(out, recorded, planned, replicates=1 if quick else REPLICATES, quick=quick)
    if not quick:
        print("\n5. And the rest?")
        believe(out, again, REPLICATES)


if __name__ == "__main__":
    main()
