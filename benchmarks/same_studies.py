"""Whether a change of code left the studies as they were: the names of all runs, and the effects of all claims.

Run it once before and once after a change, with the code of each:

    python benchmarks/same_studies.py write before.json --stores stores-before
    python benchmarks/same_studies.py write after.json --stores stores-after
    python benchmarks/same_studies.py compare before.json after.json --renames renames.txt

`--stores` is a folder with one store per study (`recombine run STUDY --profile smoke --store FOLDER/STUDY`). A line of
renames.txt is `component kind old_field new_field`, for instance `recipe fast rate learning_rate`; the kind `*` means every
kind, and the component `run` means a field of the run itself. A study that was split is compared with the union of its parts:
`--split data-scaling=grid-worlds,data-growth`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from recombine.component import find, kinds
from recombine.overrides import validate
from recombine.training.config import RunConfig


def write(out: Path, stores: Path | None) -> None:
    """Write the runs of every study and profile, and the recorded effects, to a JSON file."""
    document: dict[str, Any] = {"runs": {}, "effects": {}}
    for kind in kinds("studies"):
        study = find("studies", kind)
        document["runs"][kind] = {
            profile: {config.run_id: config.model_dump(mode="json") for config, _ in study.profile(profile).runs()}
            for profile in study.profiles
        }
        for path in sorted((stores / kind / "studies").glob("*.json")) if stores else ():
            record = json.loads(path.read_text())
            document["effects"][kind] = {item["claim"]["name"]: item["values"] for item in record["effects"]}
    out.write_text(json.dumps(document))


def renamed(config: dict[str, Any], renames: list[list[str]]) -> dict[str, Any]:
    """A configuration with the fields of today."""
    config = {name: dict(value) if isinstance(value, dict) else value for name, value in config.items()}
    for component, kind, old, new in renames:
        part = config if component == "run" else config[component]
        if old in part and kind in ("*", part.get("kind")):
            part[new] = part.pop(old)
    return config


def compare(before: Path, after: Path, renames: list[list[str]], splits: dict[str, list[str]]) -> int:
    """Print what differs; the number of differences."""
    old, new = json.loads(before.read_text()), json.loads(after.read_text())
    wrong = 0
    for kind, profiles in old["runs"].items():
        parts = [kind, *splits.get(kind, ())]
        for profile, runs in profiles.items():
            wanted = {validate(RunConfig, renamed(config, renames)).run_id for config in runs.values()}
            own = {run for part in parts for run in new["runs"].get(part, {}).get(profile, {})}
            if missing := wanted - own:
                wrong += 1
                print(f"{kind}, {profile}: {len(missing)} of {len(wanted)} runs are missing")
            if len(parts) == 1 and (extra := own - wanted):
                wrong += 1
                print(f"{kind}, {profile}: {len(extra)} runs are new")
        effects = {name: values for part in parts for name, values in new["effects"].get(part, {}).items()}
        for name, values in old["effects"].get(kind, {}).items():
            numbers = [
                np.array([np.nan if v is None else v for v in each], float) for each in (values, effects.get(name, []))
            ]
            if numbers[0].shape != numbers[1].shape or not np.allclose(*numbers, rtol=1e-9, atol=1e-12, equal_nan=True):
                wrong += 1
                print(f"{kind}: the effects of {name!r} are {numbers[1]} instead of {numbers[0]}")
    print(f"{wrong} differences in {len(old['runs'])} studies")
    return wrong


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write")
    writer.add_argument("out", type=Path)
    writer.add_argument("--stores", type=Path)
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    comparer.add_argument("--renames", type=Path)
    comparer.add_argument("--split", action="append", default=[])
    given = parser.parse_args()
    if given.command == "write":
        write(given.out, given.stores)
        return
    lines = given.renames.read_text().splitlines() if given.renames else []
    splits = {name: parts.split(",") for name, _, parts in (split.partition("=") for split in given.split)}
    sys.exit(bool(compare(given.before, given.after, [line.split() for line in lines if line.strip()], splits)))


if __name__ == "__main__":
    main()
