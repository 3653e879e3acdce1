"""Questions about calls, asked of a chat endpoint: each call gets a made-up result, until the model calls no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recombine.audit.tools.questions import ToolQuestion, result_message
from recombine.calling import Library, read_tool_calls
from recombine.endpoints.chat import text_of

Chat = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], Mapping[str, Any]]
"""From messages and tools to the message of the model."""
EXTRA = 2
"""More turns than a question needs: a model may begin with the wrong call."""
OTHER = "ok"
"""The result of a call that the question does not ask for."""


def ask_natively(question: ToolQuestion, library: Library, chat: Chat) -> str:
    """Ask a question with native calls, and answer each call with the made-up result of the question.

    Args:
        question: The question.
        library: The functions.
        chat: The model.

    Returns:
        The turns of the dialogue as JSON text. It ends when the outermost function was called, or nothing was.
    """
    tools = library.tools()
    messages: list[Mapping[str, Any]] = [{"role": "user", "content": question.prompt}]
    left = [*zip(question.functions[1:], question.results, strict=True)]
    turns: list[dict[str, Any]] = []
    for turn in range(question.depth + EXTRA):
        message = chat(messages, tools)
        made = message.get("tool_calls") or []
        reading = read_tool_calls(made)
        if reading.problem:
            turns.append({"content": text_of(message), "tool_calls": made})
            break
        results = []
        finished = False
        for call in reading.calls:
            # A function that stands in the chain twice is called for the inner place first.
            place = next((index for index in range(len(left) - 1, -1, -1) if left[index][0] == call.name), None)
            finished = finished or (place is None and call.name == question.functions[0])
            results.append(OTHER if place is None else left.pop(place)[1])
        turns.append({"content": text_of(message), "tool_calls": made, "results": results})
        if finished:
            break
        identified = [{**each, "id": each.get("id") or f"call_{turn}_{number}"} for number, each in enumerate(made)]
        messages.append({"role": "assistant", "content": message.get("content"), "tool_calls": identified})
        messages += [result_message(each["id"], result) for each, result in zip(identified, results, strict=True)]
    return dialogue_text(turns)


def dialogue_text(turns: Sequence[Mapping[str, Any]]) -> str:
    """The turns of a dialogue as they are kept."""
    return json.dumps({"turns": list(turns)}, ensure_ascii=False)
