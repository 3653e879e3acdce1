"""A model behind a chat endpoint that calls functions rightly, but for chosen pairs of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from recombine.audit.tools.questions import ToolQuestion

TOOLS = [
    {"name": "find_city", "description": "Find the largest city of a country.", "properties": {"country": "string"}},
    {
        "name": "weather",
        "description": "Get the weather of a city.",
        "properties": {"city": "string", "days": "integer"},
    },
    {"name": "translate", "description": "Translate a text.", "properties": {"text": "string", "language": "string"}},
    {"name": "send_mail", "description": "Send a mail.", "properties": {"to": "string", "body": "string"}},
    {"name": "convert", "description": "Convert money.", "properties": {"amount": "number", "currency": "string"}},
]


def tools_document() -> list[dict[str, Any]]:
    """Five functions in the form of a chat endpoint."""
    return [
        {
            "type": "function",
            "function": {
                "name": each["name"],
                "description": each["description"],
                "parameters": {
                    "type": "object",
                    "properties": {name: {"type": kind} for name, kind in each["properties"].items()},
                    "required": list(each["properties"]),
                },
            },
        }
        for each in TOOLS
    ]


def stub_model(
    questions: Sequence[ToolQuestion],
    broken: Collection[tuple[str, str]] = (),
    *,
    reply: Callable[..., Any],
    server: Any,
) -> Callable[[int, str], Any]:
    """Answers native and written questions. Inside a broken pair, it writes a guess where the inner result belongs."""
    known = {question.prompt: question for question in questions}

    def message(number: int, prompt: str) -> dict[str, Any]:
        body = server.asked[number - 1][2]
        question = known[prompt]
        if "tools" not in body:
            return {"content": json.dumps(written(question, 0))}
        level = question.depth - 1 - sum(each["role"] == "tool" for each in body["messages"])
        arguments = dict(question.chain[level].arguments)
        if level < question.depth - 1:
            result = next(each["content"] for each in reversed(body["messages"]) if each["role"] == "tool")
            pair = question.functions[level], question.functions[level + 1]
            given = question.results[level]
            # Results arrive as texts.
            given = result if isinstance(given, str) else json.loads(result)
            arguments[question.parameters[level]] = "a guess" if pair in broken else given
        function = {"name": question.functions[level], "arguments": json.dumps(arguments)}
        return {"content": None, "tool_calls": [{"id": f"c{level}", "type": "function", "function": function}]}

    def written(question: ToolQuestion, level: int) -> dict[str, Any]:
        arguments = dict(question.chain[level].arguments)
        if level < question.depth - 1:
            pair = question.functions[level], question.functions[level + 1]
            arguments[question.parameters[level]] = "a guess" if pair in broken else written(question, level + 1)
        return {"name": question.functions[level], "arguments": arguments}

    def say(number: int, prompt: str) -> Any:
        return reply(body=json.dumps({"choices": [{"message": message(number, prompt)}]}).encode())

    return say
