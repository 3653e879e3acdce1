"""Asks many questions, several at once. Answers are kept; failed questions are asked again next time."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from recombine.endpoints.answer_cache import AnswerCache
from recombine.endpoints.chat import SHORTEST_KEY, RequestFailed, Unavailable
from recombine.endpoints.secrets import without_secret
from recombine.errors import BadInput
from recombine.language.answers import MAX_STORED, is_right
from recombine.language.items import Item
from recombine.plain import plain

if TYPE_CHECKING:
    from recombine.audit.audit import OnProgress

Q = TypeVar("Q", bound=Any)
"""A question: anything with a `name` of its own in the cache."""
Ask = Callable[[str], Any]
"""From a prompt to the model's answer. It may raise anything: the error is recorded, and the other items are asked."""
GIVE_UP = 3
"""After this many items in a row without a reply, no more are asked. As long as nothing was answered, failures of any
kind count: an error on each of the first questions probably affects all."""
SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD")
"""Environment variables with one of these words in their name are secret: their values are removed from texts."""
ERROR = 300
"""Most characters of an error that are kept."""


@dataclasses.dataclass(frozen=True)
class Reply:
    """The outcome of one question."""

    text: str | None
    """The model's answer; None if there is none."""
    error: str = ""
    unavailable: bool = False
    """The model could not be reached, or refused the key."""


def ask_items(
    items: Sequence[Item], ask: Ask, cache: AnswerCache, *, at_once: int = 1, on: OnProgress | None = None
) -> list[str]:
    """Ask all items that have no answer in the cache, by their prompts. See `ask_all`."""

    def graded(item: Item, text: str) -> bool:
        return is_right(text, item.answer)

    return ask_all(items, lambda item: ask(item.prompt), graded, cache, at_once=at_once, on=on)


def ask_all(
    items: Sequence[Q],
    ask: Callable[[Q], Any],
    graded: Callable[[Q, str], bool],
    cache: AnswerCache,
    *,
    at_once: int = 1,
    most: int = MAX_STORED,
    on: OnProgress | None = None,
) -> list[str]:
    """Ask all questions that have no answer in the cache, and store each answer as soon as it arrives.

    Questions that failed before come last, so that a few bad ones do not block the others.

    Args:
        items: The questions.
        ask: The model: from a question to its answer. It may raise anything.
        graded: Whether an answer is right.
        cache: Where answers are read and stored.
        at_once: The number of questions in parallel.
        most: The number of characters of an answer that are stored.
        on: Called with the progress.

    Returns:
        Sentences about the questions without an answer. Empty if all are answered.
    """
    if at_once < 1:
        raise BadInput(f"At least one question must be asked at once, got {at_once}.", fix="give 1 or more")
    held = cache.read()
    unanswered = (item for item in items if not answered(held.get(item.name)))
    waiting = sorted(unanswered, key=lambda item: item.name in held)
    failures, done, unavailable, gave_up = list[str](), 0, 0, ""
    none_yet = not any(answered(held.get(item.name)) for item in items)

    def settle(item: Q) -> Reply:
        reply = _reply(item, ask)
        record = {"item": item.name, "correct": None, "said": "", "error": reply.error}
        if reply.text is not None:
            record |= {"correct": graded(item, reply.text), "said": _cut(reply.text, most)}
        cache.add(record)
        return reply

    replies = (settle(item) for item in waiting) if at_once == 1 else _at_once(waiting, settle, at_once)
    with contextlib.closing(replies):
        for reply in replies:
            done += 1
            failures += [reply.error] if reply.text is None else []
            unavailable = unavailable + 1 if reply.unavailable else 0
            none_yet = none_yet and reply.text is None
            if on is not None:
                on("asking the model", done / len(waiting))
            if unavailable >= GIVE_UP:
                gave_up = f"there was no reply to {unavailable} questions in a row"
                break
            if none_yet and done >= GIVE_UP:
                gave_up = f"none of the first {done} was answered"
                break
    return _notes(failures, len(waiting) - done, len(items), gave_up)


def answered(record: dict[str, Any] | None) -> TypeGuard[dict[str, Any]]:
    """The record is an answer, not a failure."""
    return record is not None and isinstance(record.get("correct"), bool)


def without_secrets(text: str) -> str:
    """The text without the values of environment variables for keys, tokens, secrets and passwords."""
    for name, value in os.environ.items():
        if len(value) >= SHORTEST_KEY and any(word in name.upper() for word in SECRET):
            text = without_secret(text, value)
    return text


def _cut(text: str, most: int) -> str:
    """The beginning of a text without secrets, in valid UTF-8."""
    return without_secrets(text)[:most].encode("utf-8", "replace").decode()


def _reply(item: Q, ask: Callable[[Q], Any]) -> Reply:
    try:
        text = ask(item)
        if isinstance(text, (str, int, float)):
            return Reply(str(text))
        return Reply(None, f"the answer is a {type(text).__name__}, not text")
    except RequestFailed as error:
        return Reply(None, _cut(str(error), ERROR), isinstance(error, Unavailable))
    # A user's function may raise anything, and may try to end the program.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Reply(None, plain(_cut(f"{type(error).__name__}: {error}", ERROR)))


def _at_once(items: Sequence[Q], settle: Callable[[Q], Reply], threads: int) -> Generator[Reply, None, None]:
    """Replies in the order of their arrival. Each thread stores its replies itself, so none is lost."""
    left, lock, stop = iter(items), threading.Lock(), threading.Event()
    # Threads wait for room, so few questions are asked after the caller gives up.
    replies: queue.Queue[Reply | BaseException] = queue.Queue(threads)

    def work() -> None:
        try:
            while not stop.is_set():
                with lock:
                    item = next(left, None)
                if item is None:
                    return
                replies.put(settle(item))
        except BaseException as error:  # noqa: BLE001 (raised again by the caller)
            replies.put(error)

    for _ in range(min(threads, len(items))):
        # Daemon threads: an interrupted command does not wait for answers that may take minutes.
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in items:
            reply = replies.get()
            if isinstance(reply, BaseException):
                raise reply
            yield reply
    finally:
        stop.set()
        while not replies.empty():  # Make room: threads that wait can end.
            replies.get_nowait()


def _notes(failures: list[str], left: int, items: int, gave_up: str) -> list[str]:
    if not failures and not left:
        return []
    unasked = f" ({left} of them were not asked, because {gave_up})" if left else ""
    return [
        f"{len(failures) + left} of {items} items have no answer{unasked}: {reasons(failures).rstrip('.')}.",
        "They are left out. The same command asks only the missing questions.",
    ]


def reasons(failures: Sequence[str], most: int = 3) -> str:
    """The different errors, each once; the first few of them."""
    kinds = list(dict.fromkeys(failures))
    return "; ".join(kinds[:most]) + ("; and others" if len(kinds) > most else "")
