"""Make `bfcl_sample.json`: questions of the Berkeley Function Calling Leaderboard, with the verdicts of its own checker.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d unpacked
    python tests/calling/make_bfcl_sample.py unpacked            # writes the sample
    python tests/calling/make_bfcl_sample.py unpacked --all      # compares all questions, and writes nothing

The package pins numpy 1.26 and needs the clients of all vendors, so it is not installed: its checker is loaded alone, with
its table of models and its converters of Java and JavaScript replaced by empty modules. Answers are the possible answers of
the package, and changed ones. The data and the checker are under the Apache License 2.0.
"""

from __future__ import annotations

import collections
import copy
import json
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CATEGORIES = (
    "simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple", "live_parallel",
    "live_parallel_multiple",
)  # fmt: skip
EACH = 6
"""Questions of each category in the sample, beside those on which the checkers differ."""
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""The package's types that are none of JSON Schema."""
DROPPED = ("optional", "default", "format", "enum", "example", "description", "minimum", "maximum")
Answer = list[dict[str, dict[str, Any]]]


def json_schema(given: Any) -> Any:
    """A schema of the package as JSON Schema."""
    if isinstance(given, list):
        return [json_schema(each) for each in given]
    if not isinstance(given, dict):
        return given
    made = {}
    for key, value in given.items():
        if key == "type" and isinstance(value, str):
            value = TYPES.get(value, value)
            if value is None:
                continue
        if key not in DROPPED or isinstance(value, dict):  # A parameter may be called `format`.
            made[key] = json_schema(value)
    return made


def first_answer(possible: list[dict[str, Any]]) -> Answer:
    """The first of the possible values of each parameter."""

    def first(values: Any) -> Any:
        return plain(next((value for value in values if value != ""), None)) if isinstance(values, list) else values

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: made for key, each in value.items() if (made := first(each)) is not None}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return [
        {name: {key: made for key, each in values.items() if (made := first(each)) is not None}}
        for call in possible
        for name, values in call.items()
    ]


def changed_answers(answer: Answer, rng: random.Random) -> Iterator[tuple[str, Answer]]:
    """An answer as it is, and with one thing changed."""

    def edited(kinds: tuple[type, ...], change: Callable[[dict[str, Any], str], None]) -> Answer | None:
        made = copy.deepcopy(answer)
        ((_, values),) = made[rng.randrange(len(made))].items()
        keys = [key for key, value in values.items() if not kinds or type(value) in kinds]
        if not keys:
            return None
        change(values, rng.choice(keys))
        return made

    def other(values: dict[str, Any], key: str) -> None:
        value = values[key]
        if isinstance(value, bool):
            values[key] = not value
        elif isinstance(value, (int, float)):
            values[key] = value + 1
        elif isinstance(value, str):
            values[key] = f"{value} other"
        else:
            values[key] = {**value, "zzz": 1} if isinstance(value, dict) else [*value, *(value[:1] or [1])]

    def retyped(values: dict[str, Any], key: str) -> None:
        values[key] = [values[key]] if isinstance(values[key], str) else str(values[key])

    def spelled(values: dict[str, Any], key: str) -> None:
        values[key] = values[key].upper().replace(" ", ", ")

    def as_float(values: dict[str, Any], key: str) -> None:
        values[key] = float(values[key])

    def as_integer(values: dict[str, Any], key: str) -> None:
        values[key] = int(values[key]) if values[key] == int(values[key]) else values[key]

    yield "as it is", answer
    name = next(iter(answer[0]))
    yield "another name", [{f"{name}_x": answer[0][name]}, *answer[1:]]
    yield "one more argument", [{name: {**answer[0][name], "zzz": 1}}, *answer[1:]]
    changes = {
        "without an argument": edited((), lambda values, key: values.pop(key)),
        "another value": edited((), other),
        "another type": edited((), retyped),
        "spelled otherwise": edited((str,), spelled),
        "a float": edited((int,), as_float),
        "an integer": edited((float,), as_integer),
    }
    yield from ((kind, made) for kind, made in changes.items() if made is not None)
    if len(answer) > 1:
        yield "in another order", answer[::-1]
        yield "one call fewer", answer[1:]
    yield "one call more", [*answer, *answer[:1]]


def load_checker(folder: Path) -> Callable[..., bool]:
    """The checker of the package, without what it imports for other languages and models."""
    sys.path.insert(0, str(folder))
    models: Any = types.ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = collections.defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
    sys.modules[models.__name__] = models
    for language in ("java", "js"):
        converter: Any = types.ModuleType(f"bfcl_eval.eval_checker.ast_eval.type_convertor.{language}_type_converter")
        setattr(converter, f"{language}_type_converter", None)
        sys.modules[converter.__name__] = converter
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]

    def valid(functions: list[Any], answer: Answer, possible: list[Any], category: str) -> bool:
        given = copy.deepcopy((functions, answer, possible))
        return bool(ast_checker(*given, Language.PYTHON, category, "model")["valid"])

    return valid


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """All questions with changed answers and the verdicts of the package."""
    valid, data = load_checker(folder), folder / "bfcl_eval" / "data"
    rng = random.Random(0)
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        lines = (data / "possible_answer" / name).read_text().splitlines()
        possible = {record["id"]: record["ground_truth"] for record in map(json.loads, lines)}
        for question in map(json.loads, (data / name).read_text().splitlines()):
            truth = possible.get(question["id"])
            if truth is None:
                continue
            answers = [
                {"kind": kind, "calls": answer, "valid": valid(question["function"], answer, truth, category)}
                for kind, answer in changed_answers(first_answer(truth), rng)
            ]
            functions = [
                {"name": each["name"], "parameters": json_schema(each["parameters"])} for each in question["function"]
            ]
            needed = {name for call in truth for name in call}
            functions = [each for each in functions if each["name"] in needed]
            yield {"id": question["id"], "functions": functions, "possible": truth, "answers": answers}


def main() -> None:
    from bfcl_reading import our_verdicts

    counts, kept, differing = collections.Counter[tuple[str, bool, bool]](), [], []
    seen = collections.Counter[str]()
    for record in records(Path(sys.argv[1])):
        category = record["id"].rstrip("0123456789-_")
        ours = our_verdicts(record)
        both = list(zip(record["answers"], ours, strict=True))
        counts.update((answer["kind"], answer["valid"], our) for answer, our in both)
        seen[category] += 1
        if any(answer["valid"] != our for answer, our in both):
            differing.append(record)
        elif seen[category] <= EACH:
            kept.append(record)
    for key, number in sorted(counts.items()):
        print(*key, number)
    print(counts.total(), "answers,", sum(n for (_, valid, our), n in counts.items() if valid != our), "differ")
    print("differing:", [record["id"] for record in differing])
    if "--all" not in sys.argv:
        source = "bfcl-eval 2026.3.23 (Berkeley Function Calling Leaderboard), Apache License 2.0, changed by make_bfcl_sample.py"
        lines = [json.dumps({"source": source}), *map(json.dumps, kept + differing)]
        Path(__file__).with_name("bfcl_sample.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
