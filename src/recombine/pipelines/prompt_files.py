"""Sets of prompts by name, or from a user's YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recombine.errors import BadInput, did_you_mean
from recombine.pipelines.built_in import built_in
from recombine.pipelines.prompt_set import PromptSet, SetPrompts, SlotPrompts
from recombine.plan.spec_file import read_document

KINDS: dict[str, type[PromptSet]] = {"set": SetPrompts, "slots": SlotPrompts}
EXAMPLE = "pets: {kind: set, concepts: [cat, dog, fox, owl], size: 2}"
ENDINGS = (".yaml", ".yml", ".toml")


def prompt_sets(asked: Sequence[str]) -> dict[str, PromptSet]:
    """The sets that were asked for, by name: built-in ones, and all those of each file."""
    known = built_in()
    found: dict[str, PromptSet] = {}
    for one in asked:
        if one in known:
            made = {one: known[one]}
        elif one.lower().endswith(ENDINGS) or Path(one).is_file():
            made = read_sets(Path(one))
        else:
            raise BadInput(
                f"There is no set of prompts {one!r}.",
                fix=f"{did_you_mean(one, known)}, or name a YAML file",
            )
        twice = sorted(set(made) & set(found))
        if twice:
            raise BadInput(f"The set {twice[0]!r} was asked for twice.", fix="name each once")
        found |= made
    if not found:
        raise BadInput("No prompts were asked for.", fix=f"--prompts {next(iter(known))}, or a YAML file")
    return found


def read_sets(path: Path) -> dict[str, PromptSet]:
    """The sets of a file, each under its name."""
    document = read_document(path)
    found: dict[str, PromptSet] = {}
    for name, given in document.values.items():
        if not isinstance(given, dict):
            document.fail((name,), f"{name} is no set of prompts.", fix=f"write {EXAMPLE}")
        kind = given.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            document.fail(
                (name, "kind"), f"{name} has the kind {kind!r}.", fix="write kind: set, or kind: slots"
            )
        try:
            found[name] = KINDS[kind].model_validate(_lists(given))
        except ValidationError as error:
            first = error.errors()[0]
            place = (name, *first["loc"])
            own = first.get("ctx", {}).get("error")
            if isinstance(own, BadInput):
                document.fail(place, f"{name}: {own.message}", fix=own.fix)
            document.fail(place, f"{'.'.join(map(str, place))}: {first['msg']}.", fix=f"as in {EXAMPLE}")
    return found


def _lists(given: Any) -> Any:
    """Lists as tuples, at any depth."""
    if isinstance(given, dict):
        return {name: _lists(value) for name, value in given.items()}
    return tuple(_lists(one) for one in given) if isinstance(given, list) else given
