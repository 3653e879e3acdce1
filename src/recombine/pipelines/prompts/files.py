"""Sets of prompts by name, or from a user's YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from recombine.errors import BadInput, did_you_mean
from recombine.pipelines.prompts.sets import PromptSet, SetPrompts, SlotPrompts
from recombine.plan.spec_file import read_document

KINDS: dict[str, type[PromptSet]] = {"set": SetPrompts, "slots": SlotPrompts}
EXAMPLE = "pets: {kind: set, concepts: [cat, dog, fox, owl], size: 2}"


def built_in() -> dict[str, PromptSet]:
    """All built-in sets by name. They stand in a file like those of users."""
    return read_sets(Path(__file__).with_name("built_in.yaml"))


def prompt_sets(asked: Sequence[str]) -> dict[str, PromptSet]:
    """Sets of prompts by name.

    Args:
        asked: Names of built-in sets, and paths of YAML or TOML files. A file gives all its sets.

    Returns:
        The sets by name.
    """
    known = built_in()
    sets: dict[str, PromptSet] = {}
    for name in asked:
        if name in known:
            new = {name: known[name]}
        elif name.lower().endswith((".yaml", ".yml", ".toml")) or Path(name).is_file():
            new = read_sets(Path(name))
        else:
            raise BadInput(
                f"There is no set of prompts {name!r}.", fix=f"{did_you_mean(name, known)}, or name a YAML file"
            )
        twice = sorted(set(new) & set(sets))
        if twice:
            raise BadInput(f"The set {twice[0]!r} was given twice.", fix="name each set once")
        sets |= new
    if not sets:
        raise BadInput("No prompts were given.", fix=f"--prompts {next(iter(known))}, or a YAML file")
    return sets


def read_sets(path: Path) -> dict[str, PromptSet]:
    """The sets of a YAML or TOML file, by name."""
    document = read_document(path)
    sets: dict[str, PromptSet] = {}
    for name, given in document.values.items():
        if not isinstance(given, dict):
            document.fail((name,), f"{name} is not a set of prompts.", fix=f"write {EXAMPLE}")
        kind = given.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            document.fail((name, "kind"), f"{name} has the kind {kind!r}.", fix="write kind: set, or kind: slots")
        try:
            sets[name] = KINDS[kind].model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            location = (name, *first["loc"])
            own = first.get("ctx", {}).get("error")
            if isinstance(own, BadInput):
                document.fail(location, f"{name}: {own.message}", fix=own.fix)
            document.fail(location, f"{'.'.join(map(str, location))}: {first['msg']}.", fix=f"as in {EXAMPLE}")
    return sets
