"""Many questions, several at once; what was answered is kept, what was not is asked again next time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from recombine.endpoints.chat import SHORTEST_KEY, NoAnswer, Silent
from recombine.endpoints.kept import Kept
from recombine.errors import BadInput
from recombine.language.answers import KEPT, is_right
from recombine.language.items import Item
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.audit.audit import On

Ask = Callable[[str], Any]
"""From a prompt to the model's words. It may raise anything: that is recorded, and the others are asked."""
GIVE_UP = 3
"""So many items in a row to which nobody said anything, and the model counts as gone. As long as nothing at all was
answered, failures of any kind count: what is wrong with each of the first questions is wrong with all."""
SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""What the names of variables of the environment have in them whose values are kept out of files."""
ERROR = 300
"""Characters of an error that are kept."""


@dataclasses.dataclass(frozen=True)
class Said:
    """What came of one question."""

    text: str | None
    """The model's words; None where there are none."""
    error: str = ""
    silent: bool = False
    """Nobody was there, or not for us."""


def ask_items(
    items: Sequence[Item], ask: Ask, kept: Kept, *, at_once: int = 1, on: On | None = None
) -> list[str]:
    """Asks what `kept` has no answer to, writes each answer down as it comes, and says in sentences what is missing.

    Items that failed before come last, so that a few bad ones do not keep the others waiting, and the next ones are
    asked when this is called again after it gave up.
    """
    if at_once < 1:
        raise BadInput(f"At least one question is asked at once, got {at_once}.", fix="give 1 or more")
    held = kept.read()
    waiting = [item for item in items if not answered(held.get(item.name))]
    waiting.sort(key=lambda item: item.name in held)
    failures: list[str] = []
    done, silent, gave_up = 0, 0, ""
    none_yet = not any(answered(held.get(item.name)) for item in items)

    def settle(item: Item) -> Said:
        said = _said(item, ask)
        kept.add({"item": item.name, **_judged(item, said)})
        return said

    each = _one_by_one(waiting, settle) if at_once == 1 else _at_once(waiting, settle, at_once)
    with contextlib.closing(each):
        for said in each:
            done += 1
            failures += [said.error] if said.text is None else []
            silent = silent + 1 if said.silent else 0
            none_yet = none_yet and said.text is None
            if on is not None:
                on("asking the model", done / len(waiting))
            if silent >= GIVE_UP:
                gave_up = f"nobody answered {silent} in a row"
            elif none_yet and done >= GIVE_UP:
                gave_up = f"none of the first {done} got one"
            if gave_up:
                break
    return _notes(failures, len(waiting) - done, len(items), gave_up)


def answered(record: dict[str, Any] | None) -> TypeGuard[dict[str, Any]]:
    """Whether a record is that of an answer."""
    return record is not None and isinstance(record.get("correct"), bool)


def without_secrets(text: str) -> str:
    """The text without the values of variables that are called keys, tokens, secrets or passwords."""
    for name, value in os.environ.items():
        if len(value) >= SHORTEST_KEY and any(word in name.upper() for word in SECRET):
            text = text.replace(value, "[key]")
    return text


def _judged(item: Item, said: Said) -> dict[str, Any]:
    if said.text is None:
        return {"correct": None, "said": "", "error": said.error}
    return {"correct": is_right(said.text, item.answer), "said": _cut(said.text, KEPT), "error": ""}


def _cut(text: str, most: int) -> str:
    """The beginning of a text, as a file can hold it: halves of characters cannot be written."""
    return without_secrets(text)[:most].encode("utf-8", "replace").decode()


def _said(item: Item, ask: Ask) -> Said:
    try:
        text = ask(item.prompt)
        if isinstance(text, (str, int, float)):
            return Said(str(text))
        return Said(None, f"the answer is a {type(text).__name__}, not text")
    except NoAnswer as error:
        return Said(None, _cut(str(error), ERROR), isinstance(error, Silent))
    # Somebody else's model may raise anything, and may mean to end its own program.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Said(None, plain(_cut(f"{type(error).__name__}: {error}", ERROR)))


def _one_by_one(items: Sequence[Item], settle: Callable[[Item], Said]) -> Generator[Said, None, None]:
    for item in items:
        yield settle(item)


def _at_once(
    items: Sequence[Item], settle: Callable[[Item], Said], threads: int
) -> Generator[Said, None, None]:
    """In the order in which answers come. Each is written down by the thread that got it: none waits to be kept."""
    left, lock, stop = iter(items), threading.Lock(), threading.Event()
    found: queue.Queue[Said | BaseException | None] = queue.Queue()

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    item = next(left, None)
                if item is None:
                    break
                found.put(settle(item))
            found.put(None)
        except BaseException as error:  # noqa: BLE001 (raised again by whoever waits)
            found.put(error)

    running = min(threads, len(items))
    for _ in range(running):
        # An interrupted command does not wait for answers that may take minutes.
        threading.Thread(target=work, daemon=True).start()
    try:
        while running:
            one = found.get()
            if isinstance(one, BaseException):
                raise one
            if one is None:
                running -= 1
            else:
                yield one
    finally:
        stop.set()


def _notes(failures: list[str], left: int, items: int, gave_up: str) -> list[str]:
    if not failures and not left:
        return []
    kinds = list(dict.fromkeys(failures))
    told = "; ".join(kinds[:3]) + ("; and others" if len(kinds) > 3 else "")
    unasked = f" ({left} of them were given up, as {gave_up})" if left else ""
    return [
        f"{len(failures) + left} of {items} items have no answer{unasked}: {told.rstrip('.')}.",
        "They are left out; the same command asks only for what is missing.",
    ]
